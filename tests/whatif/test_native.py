"""Kubernetes' own groups that controllers make: for Jobs with spec.scheduling, and from the templates of Workloads."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.policy import Policy
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.building import build
from gangsched.whatif.world.contents import World
from gangsched.whatif.world.manifests import ManifestError, manifests_of
from tests.whatif.test_expanded import AUTO, Json, node, placed, spec

OF_SUPER: Json = {"apiVersion": "x/v1", "kind": "SuperJob", "name": "top", "uid": "u", "controller": True}
GANG: Json = {"schedulingPolicy": {"gang": {}}}
DELEGATED = {"scheduling.k8s.io/group-template-name": "workers"}
SUPER = {"apiGroup": "x", "kind": "SuperJob", "name": "top"}


def job(*, completions: int | None = 3, template: Json | None = None, **fields: Any) -> Json:
    """A Job of three pods; `fields` are those of its metadata, or its spec.scheduling."""
    asked = {"scheduling": fields.pop("scheduling")} if "scheduling" in fields else {}
    meta = {"name": "train", **fields}
    body: Json = {"parallelism": 3, "completions": completions, "template": {"spec": template or spec()}, **asked}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": body}


def workload(*templates: str, least: int = 3, **controller: str) -> Json:
    policies = [{"name": each, "schedulingPolicy": {"gang": {"minCount": least}}} for each in templates]
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podGroupTemplates": policies} | ({"controllerRef": controller} if controller else {}),
    }


def pods(group: str, count: int) -> list[Json]:
    named = spec(schedulingGroup={"podGroupName": group})
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{at}"}, "spec": named} for at in range(count)]


def world(*objects: Json) -> World:
    return build(manifests_of(objects, "f"))


def native(found: World) -> list[ForeignGroup]:
    return [each for each in found.foreign if each.dialect == "native"]


def bound(*objects: Json) -> dict[str, int]:
    """The number of bound members of each group."""
    return {name: len(nodes) for name, nodes in placed(simulate(world(*objects), Policy())).items()}


@pytest.mark.parametrize(("cpus", "number"), [("2", 0), ("3", 3)])
def test_a_job_that_asks_for_a_gang_is_a_native_group(cpus, number):
    assert bound(job(scheduling=GANG), node("n", cpus)) == {"train-pgt-0": number}


@pytest.mark.parametrize(
    ("scheduling", "least"),
    [({"schedulingPolicy": {"gang": {"minCount": 2}}}, 2), (GANG, 3), ({"schedulingPolicy": {"basic": {}}}, 1)],
)
def test_its_policy_is_that_of_the_job(scheduling, least):
    [group] = native(world(job(scheduling=scheduling)))
    assert group.spec is not None
    assert group.spec.minimum == least


def test_its_constraints_are_copied_and_its_priority_class_is_that_of_the_pods():
    constrained = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    [group] = native(world(high, job(scheduling=GANG | constrained, template=spec(priorityClassName="high"))))
    assert group.spec is not None
    assert group.spec.topology is not None
    assert (group.spec.topology.key, group.spec.priority_class) == ("rack", "high")


def test_where_jobs_are_gangs_the_automatic_gang_counts_with_what_the_job_states():
    two = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    assert bound(AUTO, job(scheduling=two), node("n", "2")) == {"job.train": 2}


@pytest.mark.parametrize(
    "found",
    [
        job(),
        job(scheduling=GANG, template=spec(schedulingGroup={"podGroupName": "own"})),
        job(scheduling=GANG, ownerReferences=[OF_SUPER]),
    ],
    ids=["nothing asked", "a group of its own", "part of something larger"],
)
def test_no_group_is_made_for_other_jobs(found):
    assert native(world(found)) == []


def test_a_job_that_has_started_has_the_group_that_it_states():
    """Regression: kubectl's export of a Job that waits was simulated as pods without a group."""
    started = job(scheduling=GANG) | {"status": {"startTime": "2026-01-01T00:00:00Z", "active": 3}}
    assert bound(started, node("n", "2")) == {"train-pgt-0": 0}


@pytest.mark.parametrize(("there", "cpus", "number"), [(0, "2", 0), (2, "2", 0), (2, "3", 3), (3, "2", 0), (3, "3", 3)])
@pytest.mark.parametrize("delegated", [False, True])
def test_the_group_of_a_job_has_the_name_that_its_pods_in_the_files_have(there, cpus, number, delegated):
    """An export of a Job and its pods, without the group and with its real name."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-train", "controller": True}
    named = [
        each | {"metadata": each["metadata"] | {"uid": f"u{at}", "ownerReferences": [owner]}}
        for at, each in enumerate(pods("train-x7-train-pgt-0-b2", there))
    ]
    above = {"annotations": DELEGATED, "ownerReferences": [OF_SUPER]} if delegated else {"scheduling": GANG}
    found = job(uid="u-train", **above) | {"status": {"startTime": "2026-01-01T00:00:00Z", "active": 3}}
    name = "train-x7-train-pgt-0-b2" if there else "w-workers-train" if delegated else "train-pgt-0"
    parent = [workload("workers", least=3, **SUPER)] if delegated else []
    assert bound(found, *parent, *named, node("n", cpus)) == {name: number}


ALL: Json = {"disruptionMode": {"all": {}}}


@pytest.mark.parametrize(
    ("scheduling", "least"),
    [
        ({"schedulingPolicy": {"basic": {}, "gang": None}}, 1),
        ({"schedulingPolicy": {"basic": None, "gang": {"minCount": None}}}, 3),
        ({"schedulingPolicy": None}, 1),
        ({}, 1),
        (GANG | ALL, 3),
    ],
)
def test_null_is_as_good_as_no_field_in_what_a_job_states(scheduling, least):
    [group] = native(world(job(scheduling=scheduling)))
    assert group.spec is not None
    assert group.spec.minimum == least


TWO_KEYS = {"topology": [{"key": "rack"}, {"key": "zone"}]}
NO_CLAIM = {"name": "c"}
CLAIM = {"name": "c", "resourceClaimName": "x"}


@pytest.mark.parametrize(
    ("scheduling", "why"),
    [
        (["gang"], "Expected `object`, got `array`"),
        ({"schedulingPolicy": {"gang": ["x"]}}, "got `array` - at `$.schedulingPolicy.gang`"),
        ({"schedulingPolicy": {"basic": True}}, "got `bool` - at `$.schedulingPolicy.basic`"),
        ({"schedulingPolicy": {}}, "schedulingPolicy does not have exactly one of basic and gang"),
        ({"schedulingPolicy": {"gangg": {}}}, "schedulingPolicy does not have exactly one of basic and gang"),
        (
            {"schedulingPolicy": {"gang": {}, "basic": {}}},
            "schedulingPolicy does not have exactly one of basic and gang",
        ),
        (
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "Expected `int` >= 1 - at `$.schedulingPolicy.gang.minCount`",
        ),
        ({"schedulingPolicy": {"gang": {"minCount": 2**31}}}, "Expected `int` <= 2147483647"),
        ({"schedulingPolicy": {"gang": {"minCount": "2"}}}, "Expected `int | null`, got `str`"),
        (
            {"schedulingPolicy": {"gang": {"minCount": 4}}},
            "schedulingPolicy.gang.minCount is 4, above the parallelism 3",
        ),
        (GANG | {"disruptionMode": {}}, "disruptionMode does not have exactly one of single and all"),
        (ALL, "disruptionMode is all, which the policy basic excludes"),
        (GANG | {"schedulingConstraints": {"topology": [{}]}}, "missing required field `key`"),
        (GANG | {"schedulingConstraints": TWO_KEYS}, "of length <= 1 - at `$.schedulingConstraints.topology`"),
        (GANG | {"resourceClaims": ["a"]}, "got `str` - at `$.resourceClaims[0]`"),
        (GANG | {"resourceClaims": [NO_CLAIM]}, "does not have exactly one of resourceClaimName and"),
        (GANG | {"resourceClaims": [CLAIM, CLAIM]}, "resourceClaims has the name c twice"),
    ],
)
def test_what_the_api_server_would_refuse_of_a_job_is_refused(scheduling, why):
    """Regression: it was read as another policy, or as none, with the exit status 0."""
    with pytest.raises(ManifestError) as refused:
        world(job(scheduling=scheduling))
    assert len(refused.value.problems) == 1
    assert "Job train: the API server would refuse spec.scheduling" in refused.value.problems[0]
    assert why in refused.value.problems[0]


def test_a_job_without_parallelism_runs_one_pod_and_asks_for_no_more():
    alone = job(scheduling={"schedulingPolicy": {"gang": {"minCount": 2}}})
    del alone["spec"]["parallelism"]
    with pytest.raises(ManifestError, match="minCount is 2, above the parallelism 1"):
        world(alone)


def test_a_group_in_the_files_that_the_job_controls_is_taken():
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "Job/default/train", "controller": True}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train-x", "ownerReferences": [owner]},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    assert bound(job(scheduling=GANG), group, node("n", "2")) == {"train-x": 0}
    assert len(native(world(job(scheduling=GANG), group))) == 1


def test_a_delegated_group_comes_from_the_template_that_the_jobs_owner_names():
    delegated = job(
        ownerReferences=[OF_SUPER], annotations={"scheduling.k8s.io/group-template-name": "workers"}, scheduling=GANG
    )
    above = workload("drivers", "workers", least=2, apiGroup="x", kind="SuperJob", name="top")
    assert bound(delegated, above, node("n", "2")) == {"w-workers-train": 2}
    assert native(world(delegated)) == []


@pytest.mark.parametrize(
    ("controller", "wanted", "names"),
    [
        (SUPER, "workers", {"w-workers-train": 2}),
        (SUPER, "", {"w-drivers-train": 2}),
        (SUPER | {"apiGroup": "y"}, "workers", {}),
        (SUPER | {"kind": "OtherJob"}, "workers", {}),
        (SUPER, "others", {}),
    ],
)
def test_a_job_is_delegated_by_the_controller_of_its_api_group_and_template(controller, wanted, names):
    """Regression: a controller of another API group counted. Without a name the first template counts."""
    annotations = {"scheduling.k8s.io/group-template-name": wanted}
    delegated = job(ownerReferences=[OF_SUPER], annotations=annotations)
    assert bound(delegated, workload("drivers", "workers", least=2, **controller), node("n", "2")) == names


def test_of_two_controllers_the_first_counts():
    """Regression: the Job could not be read."""
    other = OF_SUPER | {"name": "other", "uid": "o"}
    above = workload("workers", least=2, **SUPER)
    for owners, names in (([OF_SUPER, other], {"w-workers-train": 2}), ([other, OF_SUPER], {})):
        assert bound(job(ownerReferences=owners, annotations=DELEGATED), above, node("n", "2")) == names


@pytest.mark.parametrize("name", ["workers", "w-workers", "w-workers-7xk2p"])
def test_the_group_that_pods_name_is_made_from_the_template_of_its_workload(name):
    few, enough = (bound(workload("drivers", "workers"), *pods(name, 3), node("n", cpus)) for cpus in "23")
    assert (few, enough) == ({name: 0}, {name: 3})


def test_a_group_in_the_files_is_not_made_again_and_a_name_of_no_template_is_missing():
    there = native(world(workload("workers"), *pods("other", 3)))
    [decision] = simulate(world(workload("workers"), *pods("other", 3), node("n", "3")), Policy()).groups
    assert there == []
    assert decision.reason == "PodGroupNotFound"


def test_a_workload_is_no_object_that_does_not_matter():
    assert not world(workload("workers")).ignored


# What the status of a group in the files says


OLD = "2026-01-01T00:00:00Z"


def scheduled_before(generation: int, conditions: list[Json]) -> list[Json]:
    """Two nodes full of two members of a group that asks for four, two members that wait, and a node with room for one.

    The group is as `kubectl get` shows it, an hour later.
    """
    meta = {"name": "g", "uid": "u", "generation": generation, "creationTimestamp": OLD}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}},
        "status": {"conditions": conditions},
    }
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": OLD}
    members = pods("g", 4)
    for at, member in enumerate(members):
        late = OLD if at < 2 else "2026-01-01T01:00:00Z"
        member["metadata"] |= {"uid": f"p{at}", "creationTimestamp": late}
        if at < 2:
            member["spec"] = member["spec"] | {"nodeName": f"n{at}"}
            member["status"] = {"phase": "Running", "conditions": [bound]}
    return [group, *members, *(node(f"n{at}", "1") for at in range(3))]


@pytest.mark.parametrize(
    ("generation", "observed", "number"),
    [(2, 1, 2), (2, 2, 3), (2, None, 2), (1, None, 3)],
    ids=["raised", "members lost", "unknown", "never changed"],
)
def test_what_a_raised_min_count_adds_is_told_from_lost_members_by_the_condition_in_the_files(
    generation, observed, number
):
    """Regression: the status was not read, and of what a raised minimum adds a part was bound."""
    told = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled"}
    conditions = [told | {"observedGeneration": observed}] if observed else []
    assert bound(*scheduled_before(generation, conditions)) == {"g": number}
