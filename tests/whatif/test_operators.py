"""`gangsched simulate` on workloads of other operators and on CronJobs.

`make workloads` compares the simulated pods of the same manifests with those of the real controllers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from gangsched.core.objects.policy import Policy
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.building import build
from gangsched.whatif.world.expanding import MAKERS
from gangsched.whatif.world.made import Existing, MadePod
from gangsched.whatif.world.manifests import Manifest, ManifestError
from testbed.controllers.expected import AUTO, BY_HAND
from tests.workloads.pages import manifest

Json = dict[str, Any]


def objects(text: str) -> list[Manifest]:
    return [
        Manifest(where="f", api_version=body["apiVersion"], kind=body["kind"], body=body)
        for body in yaml.safe_load_all(text)
    ]


def workload(kind: str, change: Any = None) -> Manifest:
    """The workload of its page, with the change applied to its spec."""
    [found] = objects(manifest(kind, AUTO))
    if change:
        change(found.body["spec"])
    return found


def made(found: Manifest, *there: Json) -> list[str]:
    existing = [
        Manifest(where="f", api_version=body.get("apiVersion", "v1"), kind=body.get("kind", "Pod"), body=body)
        for body in there
    ]
    pods = [each for each in existing if each.kind == "Pod"]
    others = [each for each in existing if each.kind != "Pod"]
    return [pod.name for pod in MAKERS[found.api_version, found.kind](found, Existing(pods, others))]


def named(name: str, kind: str = "Pod", *, owner: tuple[str, str] = ("", ""), **labels: str) -> Json:
    references = [{"kind": owner[0], "name": owner[1], "controller": True}] if owner[0] else []
    return {"kind": kind, "metadata": {"name": name, "labels": labels, "ownerReferences": references}}


JOBSET = ["bert-leader-0-0", "bert-worker-0-0", "bert-worker-0-1", "bert-worker-1-0", "bert-worker-1-1"]
LWS = ["bert-0", "bert-0-1", "bert-0-2", "bert-0-3", "bert-0-4"]
RAY = ["bert-head-0", *(f"bert-workers-worker-{index}" for index in range(4))]
MPI = [*(f"bert-worker-{index}" for index in range(4)), "bert-launcher-0"]
TORCH = ["bert-master-0", *(f"bert-worker-{index}" for index in range(4))]


def set_in(*path: Any) -> Any:
    """Set the value, the last item of the path, at the key path before it."""

    def change(spec: Any) -> None:
        *way, key, value = path
        for step in way:
            spec = spec[step] if isinstance(spec, list) else spec.setdefault(step, {})
        spec[key] = value

    return change


@pytest.mark.parametrize(
    ("kind", "change", "names"),
    [
        ("JobSet", None, JOBSET),
        ("JobSet", set_in("suspend", True), []),
        ("JobSet", set_in("replicatedJobs", 1, "replicas", 1), JOBSET[:3]),
        ("JobSet", set_in("replicatedJobs", 0, "replicas", 0), JOBSET[1:]),
        ("LeaderWorkerSet", None, LWS),
        ("LeaderWorkerSet", set_in("replicas", 2), [*LWS, *(name.replace("-0", "-1", 1) for name in LWS)]),
        ("LeaderWorkerSet", set_in("replicas", 0), []),
        ("LeaderWorkerSet", set_in("leaderWorkerTemplate", "size", 1), LWS[:1]),
        ("RayCluster", None, RAY),
        ("RayCluster", set_in("suspend", True), []),
        ("RayCluster", set_in("workerGroupSpecs", 0, "suspend", True), RAY[:1]),
        ("RayCluster", set_in("workerGroupSpecs", 0, "replicas", None), RAY[:2]),
        ("RayCluster", set_in("workerGroupSpecs", 0, "maxReplicas", 2), RAY[:3]),
        ("RayCluster", set_in("workerGroupSpecs", 0, "numOfHosts", 2), [*RAY, *(f"{RAY[1][:-1]}{n}" for n in "4567")]),
        ("MPIJob", None, MPI),
        ("MPIJob", set_in("runPolicy", "suspend", True), []),
        ("MPIJob", set_in("mpiReplicaSpecs", "Worker", "replicas", 1), [MPI[0], MPI[-1]]),
        ("PyTorchJob", None, TORCH),
        ("PyTorchJob", set_in("runPolicy", "suspend", True), []),
        ("PyTorchJob", set_in("pytorchReplicaSpecs", "Worker", "replicas", 1), TORCH[:2]),
    ],
)
def test_they_become_the_pods_that_their_controllers_would_make(kind, change, names):
    assert made(workload(kind, change)) == names


@pytest.mark.parametrize(
    ("kind", "path", "own"),
    [
        ("JobSet", ["managedBy"], "jobset.sigs.k8s.io/jobset-controller"),
        ("RayCluster", ["managedBy"], "ray.io/kuberay-operator"),
        ("MPIJob", ["runPolicy", "managedBy"], "kubeflow.org/mpi-operator"),
        ("PyTorchJob", ["runPolicy", "managedBy"], "kubeflow.org/training-operator"),
    ],
)
def test_pods_that_another_controller_makes_are_not_invented_but_told(kind, path, own):
    """MultiKueue, for example, has the pods of a workload made in another cluster."""
    other = "kueue.x-k8s.io/multikueue"
    elsewhere, here = (build([workload(kind, set_in(*path, by))]) for by in (other, own))
    assert (elsewhere.pods, dict(elsewhere.ignored)) == ([], {f"{kind} managed by {other}": 1})
    assert here.pods
    assert not here.ignored


INDEXED = """
apiVersion: batch/v1
kind: Job
metadata: {name: sweep, uid: second}
spec:
  parallelism: 4
  completions: 6
  completionMode: Indexed
  backoffLimitPerIndex: 0
  template: {spec: {restartPolicy: Never, containers: [{name: main}]}}
"""


@pytest.mark.parametrize(
    ("status", "there", "number"),
    [
        ({}, [], 4),
        ({"failedIndexes": "0-2"}, [], 3),
        ({"failedIndexes": "0-2,5", "succeeded": 1}, [], 1),
        ({"failedIndexes": "0-2", "succeeded": 3}, [], 0),
        ({}, ["second"], 3),
        ({}, ["first"], 4),
        ({}, [""], 3),
    ],
)
def test_a_job_gets_the_pods_that_it_still_owes_beside_its_own(status, there, number):
    """Pods of a Job of that name that was deleted, with another UID, are not its own; failed indexes are not owed."""
    [job] = objects(INDEXED)
    job = replace(job, body={**job.body, "status": status})
    owners = [{"kind": "Job", "name": "sweep", "uid": uid, "controller": True} for uid in there]
    pods = [{"kind": "Pod", "metadata": {"name": f"x{owner['uid']}", "ownerReferences": [owner]}} for owner in owners]
    assert len(made(job, *pods)) == number


def test_pods_of_a_leader_worker_set_with_an_exclusive_topology_share_the_domain_of_their_leader():
    found = workload("LeaderWorkerSet", set_in("replicas", 2))
    annotations = {f"{LEADER_WORKER}/exclusive-topology": "rack"}
    found.body["metadata"]["annotations"] = annotations | found.body["metadata"].get("annotations", {})
    world = build([found])
    assert [pod.name for pod in world.pods] == ["bert-0", "bert-1"]
    workers = [pod for pods in world.successors.values() for pod in pods]
    assert len(workers) == 8
    # Leaders are kept together with their own workers and apart from others; workers follow the leader's node.
    for pod in world.pods:
        key = dict(pod.labels)[f"{LEADER_WORKER}/group-key"]
        [term] = pod.shape.affinity
        assert (term.topology_key, [each.values for each in term.selector or ()]) == ("rack", [(key,)])
        assert pod.shape.anti_affinity
    assert {world.follows[pod.uid] for pod in workers} == {"rack"}


@pytest.mark.parametrize(
    ("kind", "there", "names"),
    [
        ("JobSet", [named("bert-worker-0", "Job")], [JOBSET[0], *JOBSET[3:]]),
        ("JobSet", [named("x", owner=("Job", "bert-worker-0"))], [*JOBSET[:2], *JOBSET[3:]]),
        ("LeaderWorkerSet", [named("bert-0-2")], [*LWS[:2], *LWS[3:]]),
        ("LeaderWorkerSet", [named("bert", "StatefulSet")], LWS[1:]),
        ("LeaderWorkerSet", [named("bert-0", "StatefulSet")], LWS[:1]),
        (
            "RayCluster",
            [named("x", owner=("RayCluster", "bert"), **{"ray.io/cluster": "bert", "ray.io/group": "headgroup"})],
            RAY,
        ),
        (
            "RayCluster",
            [
                named(
                    "x",
                    owner=("RayCluster", "bert"),
                    **{"ray.io/cluster": "bert", "ray.io/group": "headgroup", "ray.io/node-type": "head"},
                )
            ],
            RAY[1:],
        ),
        ("MPIJob", [named("bert-worker-2")], [*MPI[:2], *MPI[3:]]),
        ("MPIJob", [named("bert-launcher", "Job")], MPI[:-1]),
        ("PyTorchJob", [named("bert-master-0")], TORCH[1:]),
    ],
)
def test_what_is_in_the_files_already_is_not_made_again(kind, there, names):
    assert made(workload(kind), *there) == names


def test_what_has_ended_makes_no_pods():
    for kind, condition in (("JobSet", "Completed"), ("MPIJob", "Succeeded"), ("PyTorchJob", "Failed")):
        found = workload(kind)
        found.body["status"] = {"conditions": [{"type": condition, "status": "True"}]}  # type: ignore[index]
        assert made(found) == []


def cron_job(**spec: object) -> Manifest:
    template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    job = {"parallelism": 2, "template": template}
    body = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"jobTemplate": {"spec": job}, **spec},
    }
    return Manifest(where="f", api_version="batch/v1", kind="CronJob", body=body)


def test_a_cron_job_makes_one_job_unless_it_has_made_one_or_is_suspended():
    assert made(cron_job()) == ["nightly-0-0", "nightly-0-1"]
    assert made(cron_job(suspend=True)) == []
    assert made(cron_job(), named("nightly-29", "Job", owner=("CronJob", "nightly"))) == []
    assert len(made(cron_job(), named("other", "Job", owner=("CronJob", "other")))) == 2


def test_the_pods_of_a_replica_share_the_label_that_tells_it_from_another():
    found = workload("LeaderWorkerSet", set_in("replicas", 2))
    pods = list(MAKERS[found.api_version, found.kind](found, Existing([], [])))
    keys = [pod.labels["leaderworkerset.sigs.k8s.io/group-key"] for pod in pods]
    assert len(set(keys[:5])) == len(set(keys[5:])) == 1
    assert keys[0] != keys[5]
    assert [pod.labels["leaderworkerset.sigs.k8s.io/worker-index"] for pod in pods[:5]] == ["0", "1", "2", "3", "4"]
    assert {pod.annotations["leaderworkerset.sigs.k8s.io/size"] for pod in pods} == {"5"}


KUBEFLOW = "training.kubeflow.org"
JOB_SET = "jobset.sigs.k8s.io"
LEADER_WORKER = "leaderworkerset.sigs.k8s.io"


@pytest.mark.parametrize(
    ("kind", "pod", "labels"),
    [
        (
            "JobSet",
            "bert-worker-1-0",
            {
                f"{JOB_SET}/jobset-name": "bert",
                f"{JOB_SET}/replicatedjob-name": "worker",
                f"{JOB_SET}/replicatedjob-replicas": "2",
                f"{JOB_SET}/job-index": "1",
                "batch.kubernetes.io/job-name": "bert-worker-1",
            },
        ),
        ("LeaderWorkerSet", "bert-0", {f"{LEADER_WORKER}/name": "bert", f"{LEADER_WORKER}/group-index": "0"}),
        ("RayCluster", "bert-head-0", {"ray.io/cluster": "bert", "ray.io/group": "headgroup"}),
        ("RayCluster", "bert-head-0", {"ray.io/node-type": "head", "ray.io/identifier": "bert-head"}),
        ("RayCluster", "bert-workers-worker-0", {"ray.io/node-type": "worker", "ray.io/group": "workers"}),
        ("MPIJob", "bert-launcher-0", {f"{KUBEFLOW}/job-role": "launcher", f"{KUBEFLOW}/job-name": "bert"}),
        ("MPIJob", "bert-worker-3", {f"{KUBEFLOW}/job-role": "worker", f"{KUBEFLOW}/replica-index": "3"}),
        ("PyTorchJob", "bert-master-0", {f"{KUBEFLOW}/replica-type": "master", f"{KUBEFLOW}/job-role": "master"}),
        ("PyTorchJob", "bert-worker-3", {f"{KUBEFLOW}/replica-type": "worker", f"{KUBEFLOW}/replica-index": "3"}),
    ],
)
def test_their_labels_are_those_by_which_their_pods_are_told_apart(kind, pod, labels):
    assert labels.items() <= pods_of(kind)[pod].labels.items()


def pods_of(kind: str, change: Any = None) -> dict[str, MadePod]:
    found = workload(kind, change)
    return {pod.name: pod for pod in MAKERS[found.api_version, found.kind](found, Existing([], []))}


def test_a_launcher_that_works_too_has_the_first_index():
    """Regression: mpi-operator 0.8 counts the workers from 1 then."""
    index = f"{KUBEFLOW}/replica-index"
    found = pods_of("MPIJob", set_in("runLauncherAsWorker", True))
    assert {name: pod.labels[index] for name, pod in found.items()} == {
        **{f"bert-worker-{at}": str(at + 1) for at in range(4)},
        "bert-launcher-0": "0",
    }
    assert index not in pods_of("MPIJob")["bert-launcher-0"].labels


def test_only_masters_have_a_role_and_only_workers_a_leader():
    assert f"{KUBEFLOW}/job-role" not in pods_of("PyTorchJob")["bert-worker-0"].labels
    leaders = {
        name: pod.annotations.get(f"{LEADER_WORKER}/leader-name") for name, pod in pods_of("LeaderWorkerSet").items()
    }
    assert leaders == {"bert-0": None, **dict.fromkeys(LWS[1:], "bert-0")}


def test_a_ray_pod_cannot_be_labelled_as_another_clusters_but_otherwise_as_one_likes():
    given = {"ray.io/cluster": "other", "ray.io/identifier": "mine"}
    head = pods_of("RayCluster", set_in("headGroupSpec", "template", "metadata", "labels", given))["bert-head-0"]
    assert (head.labels["ray.io/cluster"], head.labels["ray.io/identifier"]) == ("bert", "mine")


@pytest.mark.parametrize(("way", "pod"), [(["headGroupSpec"], RAY[0]), (["workerGroupSpecs", 0], RAY[1])])
def test_the_labels_of_a_group_of_a_ray_cluster_are_those_of_its_pods(way, pod):
    """Regression: KubeRay 1.6 adds a group's own labels to those of its template; a gang named there was not seen."""
    given = {"gangsched.io/pod-group": "mine", "ray.io/group": "other"}

    def change(spec):
        set_in(*way, "template", "metadata", "labels", {"gangsched.io/pod-group": "other", "app": "bert"})(spec)
        set_in(*way, "labels", given)(spec)

    labels = pods_of("RayCluster", change)[pod].labels
    assert (labels["gangsched.io/pod-group"], labels["app"]) == ("mine", "bert")
    assert labels["ray.io/group"] != "other"


def test_each_pod_of_a_leader_worker_set_has_its_own_claims():
    """Regression: LWS 0.9 has templates of claims; simulate placed the pods as if they had no volumes."""
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": "local"}}
    pods = pods_of("LeaderWorkerSet", set_in("leaderWorkerTemplate", "volumeClaimTemplates", [template]))
    assert {name: list(pod.claims) for name, pod in pods.items()} == {name: [f"data-{name}"] for name in LWS}


def test_each_pod_has_the_size_of_its_own_template():
    launcher = set_in("mpiReplicaSpecs", "Launcher", "template", "spec", "containers", 0, "resources", {})
    world = build([workload("MPIJob", launcher)])
    asks = {pod.name: dict(pod.shape.requests).get("cpu", 0) for pod in world.pods}
    assert asks == {**dict.fromkeys(MPI[:4], 1000), "bert-launcher-0": 0}


@pytest.mark.parametrize(
    ("kind", "change", "waiting"),
    [
        ("JobSet", set_in("replicatedJobs", 1, "dependsOn", [{"name": "leader", "status": "Ready"}]), JOBSET[1:]),
        ("JobSet", set_in("startupPolicy", {"startupPolicyOrder": "InOrder"}), JOBSET[1:]),
        ("LeaderWorkerSet", set_in("startupPolicy", "LeaderReady"), LWS[1:]),
        ("MPIJob", set_in("launcherCreationPolicy", "WaitForWorkersReady"), MPI[4:]),
    ],
)
def test_pods_that_are_made_once_others_run_come_after_these(kind, change, waiting):
    found = workload(kind, change)
    pods = list(MAKERS[found.api_version, found.kind](found, Existing([], [])))
    assert [pod.name for pod in pods if pod.after] == waiting
    assert {pod.after for pod in pods if pod.after} <= {pod.name for pod in pods if not pod.after}


LIMITS = """
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, defaultRequest: {ephemeral-storage: 1Gi}}]}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: boxed}
handler: h
overhead: {podFixed: {cpu: 250m}}
scheduling: {nodeSelector: {boxes: "yes"}, tolerations: [{key: boxes, operator: Exists}]}
"""


def boxed(found: Any) -> None:
    """Each pod spec below is of the RuntimeClass."""
    if isinstance(found, dict):
        if "containers" in found:
            found["runtimeClassName"] = "boxed"
        for each in found.values():
            boxed(each)
    elif isinstance(found, list):
        for each in found:
            boxed(each)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("JobSet", set_in("startupPolicy", {"startupPolicyOrder": "InOrder"})),
        ("LeaderWorkerSet", set_in("startupPolicy", "LeaderReady")),
        ("MPIJob", set_in("launcherCreationPolicy", "WaitForWorkersReady")),
    ],
)
def test_a_place_is_as_large_as_the_pod_that_comes_later(kind, change):
    """kueue#119, #14317: neither its RuntimeClass nor the namespace's LimitRange counted for the place."""
    found = workload(kind, change)
    boxed(found.body)
    world = build([*objects(LIMITS), found])
    places = {role.template for each in world.foreign if each.spec for role in each.spec.roles if role.template}
    later = {pod.shape for several in world.successors.values() for pod in several}
    assert {(place.requests, place.node_selector) for place in places} == {
        (pod.requests, pod.node_selector) for pod in later
    }
    assert all("ephemeral-storage" in dict(place.requests) for place in places)


@pytest.mark.parametrize(
    ("status", "succeeded", "made", "doubts"),
    [("Ready", 0, JOBSET, 0), ("Complete", 0, JOBSET[:1], 1), ("Complete", 1, JOBSET, 0)],
)
def test_pods_that_are_made_once_others_are_complete_are_left_out_and_told(status, succeeded, made, doubts):
    """jobset#893: they were made as soon as the first ran, and an answer that they could never fit was "all bound"."""
    found = workload("JobSet", set_in("replicatedJobs", 1, "dependsOn", [{"name": "leader", "status": status}]))
    said = {"replicatedJobsStatus": [{"name": "leader", "succeeded": succeeded}]}
    world = build([replace(found, body={**found.body, "status": said})])
    later = [each.name for several in world.successors.values() for each in several]
    assert sorted([*(pod.name for pod in world.pods), *later]) == made
    assert len(world.doubts) == doubts


@pytest.mark.parametrize("cpus", [4, 5])
@pytest.mark.parametrize("kind", ["JobSet", "LeaderWorkerSet", "RayCluster", "MPIJob", "PyTorchJob"])
def test_the_group_of_a_page_is_bound_whole_or_not_at_all(kind, cpus):
    room = f"{{cpu: {cpus}, memory: 2Gi, pods: 110}}"
    node = f"apiVersion: v1\nkind: Node\nmetadata: {{name: n}}\nstatus: {{allocatable: {room}}}\n"
    outcome = simulate(build(objects(f"{manifest(kind, BY_HAND)}---\n{node}")), Policy())
    [group] = outcome.groups
    assert (str(group.key), len(group.placements)) == ("default/bert", 5 if cpus == 5 else 0)


def test_those_that_come_later_come_once_the_first_run():
    """Without a gang: each pod of a job that depends on another job is created as soon as that one is bound."""
    depending = workload("JobSet", set_in("replicatedJobs", 1, "dependsOn", [{"name": "leader", "status": "Ready"}]))
    [node] = objects("apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 5, pods: 110}}\n")
    outcome = simulate(build([depending, node]), Policy())
    assert sorted(name for each in outcome.decisions for name in each.placed) == JOBSET


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("JobSet", set_in("replicatedJobs", 1, "replicas", -1), "spec.replicatedJobs worker.replicas is -1"),
        ("RayCluster", set_in("headGroupSpec", {}), "spec.headGroupSpec.template.spec is missing"),
        ("RayCluster", set_in("workerGroupSpecs", 0, "replicas", "2"), "spec.workerGroupSpecs workers.replicas is '2'"),
        ("MPIJob", set_in("mpiReplicaSpecs", "Worker", "template", None), "spec.mpiReplicaSpecs.Worker.template.spec"),
        ("PyTorchJob", set_in("pytorchReplicaSpecs", "Master", "template", None), "Master.template.spec is missing"),
    ],
)
def test_what_the_api_server_would_refuse_names_the_field(kind, change, said):
    with pytest.raises(ManifestError, match=said.replace("[", r"\[")):
        made(workload(kind, change))


@pytest.mark.parametrize(
    ("kind", "metadata", "spec", "said"),
    [
        ("RayCluster", {}, {}, []),
        (
            "RayCluster",
            {"labels": {"ray.io/gang-scheduling-enabled": "true", "ray.io/priority-class-name": "high"}},
            {},
            ["the label ray.io/gang-scheduling-enabled", "the label ray.io/priority-class-name"],
        ),
        ("RayCluster", {"labels": {"ray.io/scheduler-name": "volcano"}}, {}, ["the label ray.io/scheduler-name"]),
        ("JobSet", {}, {"gangPolicy": {"policy": "JobSetAsGang"}}, ["spec.gangPolicy"]),
        (
            "Job",
            {"annotations": {"scheduling.volcano.sh/group-min-member": "4"}},
            {},
            ["the annotation scheduling.volcano.sh/group-min-member"],
        ),
    ],
)
def test_declarations_for_other_operators_that_nothing_reads_are_told(kind, metadata, spec, said):
    """KubeRay, JobSet and Volcano make groups of them, and no such operator runs here."""
    found = workload(kind, lambda there: there.update(spec))
    found.body["metadata"].update(metadata)
    whose = f"of {kind} {found.namespace}/{found.name}"
    assert build([found]).unused == [f"{declaration} {whose}" for declaration in said]
