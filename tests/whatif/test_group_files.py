"""Kubernetes' own groups in files: their admission, their templates and the order of the documents."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from gangsched.core.objects.policy import Policy
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.manifests import ManifestError
from tests.whatif.test_expanded import Json, body, node, spec
from tests.whatif.test_native import bound, job, native, pods, world

GROUP = "scheduling.k8s.io"
GANG: Json = {"schedulingPolicy": {"gang": {"minCount": 2}}}
TREE: Json = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}


def group(name: str = "g", *, kind: str = "PodGroup", version: str = "v1alpha3", uid: str = "", **fields: Any) -> Json:
    policy = GANG if kind == "PodGroup" else TREE
    metadata = {"name": name, **({"uid": uid} if uid else {})}
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata, "spec": {**policy, **fields}}


def priority_class(name: str, value: int, *, default: bool = False) -> Json:
    metadata = {"name": name}
    return {"apiVersion": f"{GROUP}/v1", "kind": "PriorityClass", "metadata": metadata, "value": value} | (
        {"globalDefault": True} if default else {}
    )


def template(name: str, least: int = 3, **fields: Any) -> Json:
    return {"name": name, "schedulingPolicy": {"gang": {"minCount": least}}, **fields}


def templates(*found: Json, name: str = "w", **fields: Any) -> Json:
    return body(f"{GROUP}/v1beta1", "Workload", name, podGroupTemplates=[*found], **fields)


CLASSES = [priority_class("usual", 10, default=True), priority_class("high", 1000)]


# Priority


@pytest.mark.parametrize("kind", ["PodGroup", "CompositePodGroup"])
@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        ({}, (10, "usual")),
        ({"priorityClassName": ""}, (10, "usual")),
        ({"priorityClassName": "high"}, (1000, "high")),
        ({"priorityClassName": "high", "priority": 1000}, (1000, "high")),
        ({"priority": 10}, (10, "usual")),
        ({"priorityClassName": "system-node-critical"}, (2_000_001_000, "system-node-critical")),
    ],
)
def test_a_native_group_gets_the_priority_that_admission_gives_it(kind, fields, stored):
    """Regression: a group without a class had none, though the cluster has a default one."""
    [found] = [each for each in world(*CLASSES, group(kind=kind, **fields)).foreign if each.key.name == "g"]
    assert found.spec is not None
    assert (found.spec.priority, found.spec.priority_class) == stored


@pytest.mark.parametrize("kind", ["PodGroup", "CompositePodGroup"])
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"priorityClassName": "none"}, "PriorityClass none is missing: add its manifest"),
        ({"priority": 5}, "spec.priority is 5, and its PriorityClass usual gives 10"),
        ({"priorityClassName": "high", "priority": 5}, "spec.priority is 5, and its PriorityClass high gives 1000"),
    ],
)
def test_a_priority_that_admission_refuses_is_refused_unless_the_group_is_stored(kind, fields, why):
    with pytest.raises(ManifestError, match=f"{kind} g: the API server would refuse it, because {why}"):
        world(*CLASSES, group(kind=kind, **fields))
    [found] = world(*CLASSES, group(kind=kind, uid="u", **fields)).foreign
    assert found.spec is not None
    assert (found.spec.priority, found.spec.priority_class) == (
        fields.get("priority"),
        fields.get("priorityClassName", ""),
    )


def test_a_priority_without_any_class_is_refused():
    with pytest.raises(ManifestError, match=r"spec\.priority is 5, and without a PriorityClass it is 0: remove it"):
        world(group(priority=5))
    [found] = world(group()).foreign
    assert found.spec is not None
    assert (found.spec.priority, found.spec.priority_class) == (None, "")


def test_the_default_class_of_a_group_counts_even_if_its_pods_have_a_higher_one():
    low = [each | {"spec": spec("2", schedulingGroup={"podGroupName": "a"})} for each in pods("a", 2)]
    other = [
        each | {"metadata": {"name": f"b{at}"}, "spec": spec("2", schedulingGroup={"podGroupName": "b"})}
        for at, each in enumerate(pods("b", 2))
    ]
    for each in other:
        each["spec"]["priorityClassName"] = "high"
    middle = priority_class("middle", 100)
    files = [*CLASSES, middle, group("b"), group("a", priorityClassName="middle"), *low, *other, node("n", "4")]
    assert bound(*files) == {"a": 2, "b": 0}


# Templates


def named(name: str = "w-t") -> Json:
    return {"spec": spec(restartPolicy="Never", schedulingGroup={"podGroupName": name})}


JOB: Json = {"parallelism": 3, "completions": 3, "template": named()}
REPLICATED = [{"name": "j", "replicas": 1, "template": {"spec": JOB}}]
RUNTIME: Json = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime"}
RUNTIME |= {"metadata": {"name": "r"}, "spec": {"template": {"spec": {"replicatedJobs": REPLICATED}}}}
WORKERS: Json = {"groupName": "g", "replicas": 2, "template": named()}
MAKERS: dict[str, list[Json]] = {
    "Job": [body("batch/v1", "Job", "m", **JOB)],
    "CronJob": [body("batch/v1", "CronJob", "m", schedule="0 0 * * *", jobTemplate={"spec": JOB})],
    "StatefulSet": [body("apps/v1", "StatefulSet", "m", replicas=3, podManagementPolicy="Parallel", template=named())],
    "JobSet": [body("jobset.x-k8s.io/v1alpha2", "JobSet", "m", replicatedJobs=REPLICATED)],
    "LeaderWorkerSet": [
        body(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            "m",
            replicas=1,
            leaderWorkerTemplate={"size": 3, "workerTemplate": named()},
        )
    ],
    "RayCluster": [
        body("ray.io/v1", "RayCluster", "m", headGroupSpec={"template": named()}, workerGroupSpecs=[WORKERS])
    ],
    "PyTorchJob": [
        body(
            "kubeflow.org/v1",
            "PyTorchJob",
            "m",
            pytorchReplicaSpecs={"Worker": {"replicas": 3, "template": named()}},
        )
    ],
    "TrainJob": [RUNTIME, body("trainer.kubeflow.org/v1alpha1", "TrainJob", "m", runtimeRef={"name": "r"})],
}


@pytest.mark.parametrize("kind", MAKERS)
def test_pods_name_their_group_wherever_their_template_is(kind):
    """Regression: only a template in spec.template of the workload was seen."""
    for files in (MAKERS[kind], MAKERS[kind][::-1]):
        few, enough = (bound(templates(template("t")), *files, node("n", cpus)) for cpus in ("2", "4"))
        assert (few, enough) == ({"w-t": 0}, {"w-t": 3})


def test_the_priority_of_a_template_is_copied_and_admitted():
    found = templates(template("t", 2, priorityClassName="high", priority=1000))
    [made] = native(world(*CLASSES, found, *pods("w-t", 2)))
    assert made.spec is not None
    assert (made.spec.priority, made.spec.priority_class) == (1000, "high")
    with pytest.raises(ManifestError, match=r"PodGroup w-t: the API server would refuse it, because spec\.priority"):
        world(*CLASSES, templates(template("t", 2, priority=5)), *pods("w-t", 2))


def composite(name: str, least: int, *found: Json, **fields: Any) -> Json:
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": least}}}
    return {"name": name, **policy, "podGroupTemplates": [*found], **fields}


def two_groups(first: str = "w-a", second: str = "w-b") -> list[Json]:
    others = [each | {"metadata": {"name": f"q{at}"}} for at, each in enumerate(pods(second, 2))]
    return [*pods(first, 2), *others]


@pytest.mark.parametrize(("least", "cpus", "number"), [(2, "3", 0), (2, "4", 4), (1, "3", 2)])
def test_templates_below_a_composite_one_make_a_tree(least, cpus, number):
    tree = body(
        f"{GROUP}/v1beta1",
        "Workload",
        "w",
        compositePodGroupTemplates=[composite("c", least, template("a", 2), template("b", 2))],
    )
    assert bound(tree, *two_groups(), node("n", cpus)) == {"w-c": number}
    assert not world(tree, *two_groups()).doubts


def test_a_tree_of_templates_has_all_its_levels_with_their_terms():
    inner = composite("inner", 1, template("a", 2), priority=1000)
    outer = composite("outer", 1, compositePodGroupTemplates=[inner], priorityClassName="high")
    tree = body(f"{GROUP}/v1beta1", "Workload", "w", compositePodGroupTemplates=[outer])
    inner["priorityClassName"] = "high"
    found = world(*CLASSES, tree, *pods("w-a", 2), node("n", "2")).foreign
    assert [(each.key.name, each.parent, each.spec.priority if each.spec else None) for each in found] == [
        ("w-outer", "", 1000),
        ("w-inner", "w-outer", 1000),
        ("w-a", "w-inner", 10),
    ]


def test_a_composite_group_in_the_files_is_not_made_again():
    tree = body(f"{GROUP}/v1beta1", "Workload", "w", compositePodGroupTemplates=[composite("c", 2, template("a", 2))])
    there = group("w-c", kind="CompositePodGroup", schedulingPolicy={"gang": {"minGroupCount": 1}})
    assert bound(tree, there, *pods("w-a", 2), node("n", "2")) == {"w-c": 2}


def test_which_of_several_trees_a_group_is_in_is_doubted():
    tree = body(f"{GROUP}/v1beta1", "Workload", "w", compositePodGroupTemplates=[composite("c", 2, template("a", 2))])
    [doubt] = world(tree, *two_groups("w-a-x", "w-a-y")).doubts
    assert doubt == (
        "f, item 1: Workload w: PodGroups w-a-x and w-a-y come from its template a, which is below a composite one, "
        "and are taken to be parts of one CompositePodGroup: add the manifests of the PodGroups"
    )


def test_of_two_workloads_with_a_template_of_that_name_the_first_counts_and_that_is_doubted():
    """Regression: the last one counted, and nothing said so."""
    both = templates(template("t", 2), name="v"), templates(template("t", 3), name="w")
    for files, least, first, second in ((both, 2, "v", "w"), (both[::-1], 3, "w", "v")):
        found = world(*files, *pods("t", 3))
        [made] = native(found)
        assert made.spec is not None
        assert made.spec.minimum == least
        [doubt] = found.doubts
        assert doubt == (
            f"f, item 2: Workload {second} has a template of the PodGroup t, as has Workload {first}, which counts: "
            "add the manifest of the PodGroup"
        )


def test_of_two_workloads_the_one_whose_names_say_more_of_the_groups_counts():
    both = templates(template("a", 2), name="train"), templates(template("b", 3), name="train-a")
    found = world(*both, *pods("train-a-b", 3))
    [made] = native(found)
    assert made.spec is not None
    assert (made.spec.minimum, found.doubts) == (3, [])


# The order of documents


CLAIMS = [{"name": "c", "resourceClaimTemplateName": "rct"}]
DEVICES: list[Json] = [
    body("resource.k8s.io/v1", "ResourceClaimTemplate", "rct"),
    body("resource.k8s.io/v1", "DeviceClass", "gpu"),
    body("resource.k8s.io/v1", "ResourceSlice", "s", driver="d", nodeName="n", devices=[{"name": "g0"}]),
]
DEVICES[0]["spec"] = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
DEVICES[2]["spec"]["pool"] = {"name": "n", "generation": 1, "resourceSliceCount": 1}
SHARING = spec(restartPolicy="Never", resourceClaims=CLAIMS)
NAMING = {**SHARING, "schedulingGroup": {"podGroupName": "w-t"}}
SHARED: dict[str, list[Json]] = {
    "pods of a template": [
        templates(template("t", 2, resourceClaims=CLAIMS)),
        *(each | {"spec": NAMING} for each in pods("w-t", 2)),
    ],
    "a Job of a template": [
        templates(template("t", resourceClaims=CLAIMS)),
        job(template=NAMING),
    ],
    "a Job's own group": [job(scheduling=GANG | {"resourceClaims": CLAIMS}, template=SHARING)],
    "pods of a PodGroup": [
        group("w-t", resourceClaims=CLAIMS),
        *(each | {"spec": NAMING} for each in pods("w-t", 2)),
    ],
}


@pytest.mark.parametrize("shared", SHARED)
def test_the_order_of_the_documents_does_not_change_the_outcome(shared):
    """Regression: pods before the Workload whose template shares a claim got claims of their own."""
    dated = [
        each | {"metadata": each["metadata"] | {"creationTimestamp": f"2026-01-01T00:00:{at:02}Z"}}
        for at, each in enumerate([*DEVICES, *SHARED[shared], node("n", "3")])
    ]
    outcomes = {
        (group.reason, *sorted(group.placements.items()))
        for order in [*permutations(dated)][::397]
        for group in simulate(world(*order), Policy()).groups
    }
    [(reason, *placements)] = outcomes
    assert (reason, len(placements)) == ("Scheduled", 3 if "Job" in shared else 2)


def test_one_group_in_two_versions_is_one_object():
    """Regression: of two minima the last one counted, and nothing said so."""
    with pytest.raises(ManifestError, match="f, item 2: PodGroup g: already exists in f, item 1"):
        world(group(version="v1alpha3"), group(version="v1beta1"))


def test_groups_of_two_systems_may_have_one_name():
    other = body("scheduling.volcano.sh/v1beta1", "PodGroup", "g", minMember=1)
    assert len(world(group(), other).foreign) == 2


def test_an_object_gets_the_uid_that_its_own_parts_refer_to():
    """Regression: one of another API group with the same kind and name got it too."""
    owner = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "name": "g", "uid": "u"}
    [part, *_] = pods("other", 1)
    part["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    other = body("scheduling.volcano.sh/v1beta1", "PodGroup", "g", minMember=1)
    found = {each.dialect: each.uid for each in world(group(), other, part).foreign}
    assert found == {"native": "PodGroup/default/g", "volcano": "u"}
