"""What controllers and their webhooks put into pods, and which kinds a simulation expands."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gangsched.config.settings import validated
from gangsched.config.workload_registry import WORKLOADS
from gangsched.core.objects.policy import Policy
from gangsched.kube.workloads.workload_table import chosen
from gangsched.whatif.simulation import Outcome, simulate
from gangsched.whatif.world import expanding, jobsets, leader_workers, made
from gangsched.whatif.world.building import build
from gangsched.whatif.world.contents import World
from gangsched.whatif.world.expanding import MAKERS
from gangsched.whatif.world.manifests import ManifestError, manifests_of

Json = dict[str, Any]

RACK = "topology.example.com/rack"
JOB_SET_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
LWS = "leaderworkerset.sigs.k8s.io"
AUTO: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
AUTO["metadata"]["labels"] = {"gangsched.io/gang": "auto"}


def spec(cpu: str = "1", **fields: Any) -> Json:
    containers = [{"name": "node", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    return {"schedulerName": "gangsched", "containers": containers, **fields}


def body(version: str, kind: str, name: str = "w", *, annotations: Json | None = None, **fields: Any) -> Json:
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": fields}


def node(name: str, cpu: str = "2", **labels: str) -> Json:
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    status = {"allocatable": {"cpu": cpu, "memory": "64Gi", "ephemeral-storage": "64Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def racks(number: int) -> list[Json]:
    return [node(f"n{at}", **{RACK: f"r{at}"}) for at in range(number)]


def world(*objects: Json) -> World:
    return build(manifests_of(yaml.safe_dump_all(objects), "f"))


def asked(*objects: Json) -> dict[str, Json]:
    """The requests of each pod."""
    found = world(*objects)
    pods = [*found.pods, *(pod for pods in found.successors.values() for pod in pods)]
    return {pod.name: dict(pod.shape.requests) for pod in pods}


def simulated(*objects: Json) -> Outcome:
    return simulate(world(*objects), Policy())


def placed(outcome: Outcome) -> dict[str, dict[str, str]]:
    return {group.key.name: dict(group.placements) for group in outcome.groups}


def test_every_kind_whose_pods_can_be_gangs_is_expanded():
    """Of the kinds of docs/gangs.md, RayJob, TrainJob and MPIJob in v1 were ignored, and the status was 0."""
    kinds = {(f"{row.resource.group}/{each}", row.kind) for row in WORKLOADS.values() for each in row.resource.versions}
    assert kinds <= set(MAKERS)


# JobSet


def job_set(*, pods: int = 2, by_selector: bool = False) -> Json:
    template = {"parallelism": pods, "completions": pods, "template": {"spec": spec()}}
    found = {JOB_SET_TOPOLOGY: RACK, **({"alpha.jobset.sigs.k8s.io/node-selector": "true"} if by_selector else {})}
    jobs = [{"name": "w", "replicas": 2, "template": {"spec": template}}]
    return body("jobset.x-k8s.io/v1alpha2", "JobSet", "slices", annotations=found, replicatedJobs=jobs)


def test_each_job_of_an_exclusive_topology_gets_a_rack_of_its_own():
    """JobSet copies the annotation to the pods, and its webhook writes the terms: neither was done."""
    [placements] = placed(simulated(AUTO, *racks(2), job_set())).values()
    by_job = {name: {placements[f"slices-w-{name}-{at}"] for at in range(2)} for name in "01"}
    assert sorted(map(len, by_job.values())) == [1, 1]
    assert by_job["0"] != by_job["1"]


def test_without_a_rack_for_each_job_none_is_bound():
    [placements] = placed(simulated(AUTO, *racks(1), node("n9", "8"), job_set())).values()
    assert placements == {}


def test_with_the_node_selector_strategy_pods_go_to_the_nodes_labelled_for_their_job():
    labelled = [
        node(f"n{at}", **{"alpha.jobset.sigs.k8s.io/namespaced-job": f"default_slices-w-{at}"}) for at in (0, 1)
    ]
    for each in labelled:
        each["spec"] = {"taints": [{"key": "alpha.jobset.sigs.k8s.io/no-schedule", "effect": "NoSchedule"}]}
    [placements] = placed(simulated(AUTO, *labelled, job_set(by_selector=True))).values()
    assert placements == {f"slices-w-{job}-{at}": f"n{job}" for job in (0, 1) for at in (0, 1)}


def test_pods_of_every_job_set_have_the_label_of_their_priority_unless_the_selector_is_given():
    """Regression: JobSet 0.12 labels all of them, so that an exclusive Job keeps away from those of others too."""
    plain = job_set()
    plain["metadata"]["annotations"] = {}
    labels = [{**dict(pod.labels)} for pod in world(plain).pods]
    assert len(labels) == 4
    assert {each.get("jobset.sigs.k8s.io/priority") for each in labels} == {"0"}
    assert not any("jobset.sigs.k8s.io/priority" in dict(pod.labels) for pod in world(job_set(by_selector=True)).pods)


# LeaderWorkerSet


def leader_worker_set(*, annotations: Json, size: int = 2, replicas: int = 2, **parts: Any) -> Json:
    template = {"size": size, "workerTemplate": {"spec": spec()}, **parts}
    fields = {"replicas": replicas, "leaderWorkerTemplate": template}
    return body("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llm", annotations=annotations, **fields)


def test_workers_of_an_exclusive_topology_come_after_their_leader_and_follow_it():
    found = world(*racks(2), leader_worker_set(annotations={f"{LWS}/exclusive-topology": RACK}))
    assert sorted(pod.name for pod in found.pods) == ["llm-0", "llm-1"]
    assert set(found.follows.values()) == {RACK}
    [group] = {len(pod.shape.anti_affinity) for pod in found.pods}
    assert group == 1


def test_subgroups_get_their_labels_and_a_domain_each():
    marks = {f"{LWS}/subgroup-exclusive-topology": RACK}
    found = world(leader_worker_set(annotations=marks, size=4, replicas=1, subGroupPolicy={"subGroupSize": 2}))
    labels = {pod.name: dict(pod.labels) for pod in found.pods}
    assert [labels[name][f"{LWS}/subgroup-index"] for name in sorted(labels)] == ["0", "0", "1", "1"]
    assert len({each[f"{LWS}/subgroup-key"] for each in labels.values()}) == 2
    assert all(len(pod.shape.affinity) == 1 for pod in found.pods)


# Ray


def ray_cluster(*, cpu: str = "1", workers: int = 2, **fields: Any) -> Json:
    group = {"groupName": "g", "replicas": workers, "minReplicas": 0, "maxReplicas": 9, "template": {"spec": spec(cpu)}}
    return {"headGroupSpec": {"template": {"spec": spec(cpu)}}, "workerGroupSpecs": [group], **fields}


def test_a_ray_job_is_its_cluster_and_then_the_pod_that_submits_the_work():
    found = world(AUTO, node("n", "9"), body("ray.io/v1", "RayJob", rayClusterSpec=ray_cluster()))
    assert [pod.name for pod in found.pods] == ["w-00001-head-0", "w-00001-g-worker-0", "w-00001-g-worker-1"]
    [[submitter]] = found.successors.values()
    assert (submitter.scheduler, dict(submitter.shape.requests)["cpu"]) == ("default-scheduler", 500)


def test_a_ray_job_may_have_what_submits_its_work_beside_the_head():
    """kueue#12454: the head was half a CPU too small, so that a cluster fitted that does not."""
    job = body("ray.io/v1", "RayJob", submissionMode="SidecarMode", rayClusterSpec=ray_cluster())
    found = world(AUTO, node("n", "9"), job)
    assert [dict(pod.shape.requests)["cpu"] for pod in found.pods] == [1500, 1000, 1000]
    assert not found.successors


@pytest.mark.parametrize(("cpu", "bound"), [("2", 0), ("3", 3)])
def test_the_cluster_of_a_ray_job_is_one_gang(cpu, bound):
    """Such a file was told to have no group, with status 0."""
    outcome = simulated(AUTO, node("n", cpu), body("ray.io/v1", "RayJob", rayClusterSpec=ray_cluster()))
    assert {name: len(found) for name, found in placed(outcome).items()} == {"raycluster.w-00001": bound}


@pytest.mark.parametrize(
    "fields",
    [{"suspend": True}, {"clusterSelector": {"ray.io/cluster": "c"}, "submissionMode": "HTTPMode"}, {"managedBy": "x"}],
)
def test_a_ray_job_may_make_no_cluster(fields):
    assert world(body("ray.io/v1", "RayJob", rayClusterSpec=ray_cluster(), **fields)).pods == []


def test_a_ray_service_makes_a_cluster():
    found = world(body("ray.io/v1", "RayService", rayClusterConfig=ray_cluster()))
    assert [dict(pod.labels)["ray.io/serve"] for pod in found.pods] == ["false", "true", "true"]


def test_ray_adds_an_autoscaler_beside_the_head_and_an_init_container_to_workers():
    """Their requests were not counted, so that a head did not fit where it was said to."""
    given_ = body("ray.io/v1", "RayCluster", **ray_cluster(cpu="100m", enableInTreeAutoscaling=True))
    found = asked(given_)
    assert (found["w-head-0"]["cpu"], found["w-g-worker-0"]["cpu"]) == (600, 200)
    own = {"autoscalerOptions": {"resources": {"requests": {"cpu": "1"}}}}
    given_["spec"] |= own
    assert asked(given_)["w-head-0"]["cpu"] == 1100


# Kubeflow


def replicas(**types: int) -> Json:
    return {type_: {"replicas": number, "template": {"spec": spec("10m")}} for type_, number in types.items()}


def test_workers_of_pytorch_have_an_init_container_where_there_is_a_master():
    with_master = asked(body("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs=replicas(Master=1, Worker=1)))
    assert {name: each["cpu"] for name, each in with_master.items()} == {"w-master-0": 10, "w-worker-0": 50}
    alone = asked(body("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs=replicas(Worker=1)))
    assert alone["w-worker-0"]["cpu"] == 10


def test_the_launcher_of_an_mpi_job_in_v1_is_a_pod_with_an_init_container():
    found = asked(body("kubeflow.org/v1", "MPIJob", mpiReplicaSpecs=replicas(Launcher=1, Worker=2)))
    assert {name: each["cpu"] for name, each in found.items()} == {
        "w-worker-0": 10,
        "w-worker-1": 10,
        "w-launcher": 100,
    }


TRAINER = "trainer.kubeflow.org/v1alpha1"


def runtime(**policy: Any) -> Json:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"template": {"spec": spec("10m")}}}}
    return body(
        TRAINER, "ClusterTrainingRuntime", "torch", mlPolicy=policy, template={"spec": {"replicatedJobs": [job]}}
    )


def test_a_train_job_is_made_of_its_runtime():
    job = body(TRAINER, "TrainJob", runtimeRef={"name": "torch"})
    assert len(asked(runtime(numNodes=3), job)) == 3
    job["spec"]["trainer"] = {"numNodes": 2, "resourcesPerNode": {"requests": {"cpu": "1"}}}
    assert asked(job, runtime(numNodes=3)) == {f"w-node-0-{at}": {"cpu": 1000} for at in range(2)}
    [(name, placements)] = placed(simulated(AUTO, node("n", "2"), job, runtime())).items()
    assert (name, len(placements)) == ("jobset.w", 2)


def test_a_podgroup_that_trainer_would_make_is_a_doubt():
    """trainer#2525: its pods were bound one by one, with exit status 0, though Trainer makes a gang of them."""
    job = body(TRAINER, "TrainJob", runtimeRef={"name": "torch"})
    assert world(job, runtime()).doubts == []
    made = runtime()
    made["spec"]["podGroupPolicy"] = {"coscheduling": {}}
    [doubt] = world(job, made).doubts
    assert "podGroupPolicy.coscheduling" in doubt


def test_a_train_job_changes_the_pods_of_the_jobs_that_it_names():
    override = {"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}}
    job = body(TRAINER, "TrainJob", runtimeRef={"name": "torch"}, podSpecOverrides=[override])
    [pod] = world(runtime(), job).pods
    assert pod.shape.node_selector == (("a", "b"),)


def test_a_train_job_patches_the_jobs_of_its_runtime():
    """Regression: Trainer 2.3 has runtimePatches instead of podSpecOverrides; simulate passed over them."""
    pod = {"metadata": {"labels": {"gangsched.io/pod-group": "mine"}}, "spec": {"nodeSelector": {"a": "b"}}}
    template = {"spec": {"template": pod}}
    jobs = [{"name": "node", "template": template}, {"name": "other", "template": {"spec": {"template": {}}}}]
    patched = {"metadata": {"annotations": {"gangsched.io/min-member": "2"}}, "spec": {"replicatedJobs": jobs}}
    patches = [{"manager": "one"}, {"manager": "me", "trainingRuntimeSpec": {"template": patched}}]
    job = body(TRAINER, "TrainJob", runtimeRef={"name": "torch"}, runtimePatches=patches)
    [made] = world(runtime(), job).pods
    assert made.shape.node_selector == (("a", "b"),)
    assert dict(made.labels)["gangsched.io/pod-group"] == "mine"
    del pod["metadata"], pod["spec"]
    found = placed(simulated(AUTO, node("n", "20m"), job, runtime(numNodes=3)))
    assert [len(each) for each in found.values()] == [2]


def test_the_resources_of_a_train_job_are_merged_with_those_of_its_runtime():
    """Regression: Trainer 2.3 keeps what the runtime requests and the TrainJob does not mention."""
    made = runtime()
    [replicated] = made["spec"]["template"]["spec"]["replicatedJobs"]
    [container] = replicated["template"]["spec"]["template"]["spec"]["containers"]
    container |= {"name": "node", "resources": {"requests": {"cpu": "10m", "memory": "1"}}}
    trainer = {"resourcesPerNode": {"requests": {"cpu": "1"}}}
    job = body(TRAINER, "TrainJob", runtimeRef={"name": "torch"}, trainer=trainer)
    assert asked(made, job) == {"w-node-0-0": {"cpu": 1000, "memory": 1}}


def test_a_train_job_without_its_runtime_is_refused():
    with pytest.raises(ManifestError, match="ClusterTrainingRuntime torch is missing"):
        world(body(TRAINER, "TrainJob", runtimeRef={"name": "torch"}))


# Jobs


def test_an_indexed_job_makes_the_indexes_that_have_neither_succeeded_nor_failed():
    fields: Json = {"parallelism": 3, "completions": 6, "completionMode": "Indexed", "template": {"spec": spec()}}
    job = {**body("batch/v1", "Job", **fields), "status": {"completedIndexes": "0,2", "failedIndexes": "4"}}
    assert sorted(asked(job)) == ["w-1", "w-3", "w-5"]


def test_a_job_that_another_controller_manages_makes_no_pods():
    assert asked(body("batch/v1", "Job", managedBy="kueue.x-k8s.io/multikueue", template={"spec": spec()})) == {}


TWO_BILLION = 2_000_000_000
SET_OF_ONE = {"size": 1, "workerTemplate": {"spec": spec()}}
IDLE = {"parallelism": 0, "template": {"spec": spec()}}
CROWDS = [
    body("batch/v1", "Job", parallelism=TWO_BILLION, template={"spec": spec()}),
    body("apps/v1", "StatefulSet", replicas=TWO_BILLION, template={"spec": spec()}),
    body("apps/v1", "Deployment", replicas=TWO_BILLION, template={"spec": spec()}),
    body("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", replicas=TWO_BILLION, leaderWorkerTemplate=SET_OF_ONE),
    body(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        replicatedJobs=[{"name": "a", "replicas": TWO_BILLION, "template": {"spec": IDLE}}],
    ),
]


@pytest.mark.parametrize("workload", CROWDS, ids=[each["kind"] for each in CROWDS])
def test_more_pods_than_a_cluster_may_have_are_refused_in_one_sentence(workload, monkeypatch):
    """Regression: they were expanded until the memory was full; Jobs without pods were counted for hours."""
    for module in (expanding, made, jobsets, leader_workers):
        monkeypatch.setattr(module, "MOST_PODS", 100)
    with pytest.raises(ManifestError) as refused:
        build(manifests_of([workload], "f"))
    [problem] = refused.value.problems
    assert str(workload["kind"]) in problem


def test_a_job_may_allow_more_pods_at_once_than_it_needs():
    workload = body("batch/v1", "Job", parallelism=TWO_BILLION, completions=3, template={"spec": spec()})
    assert len(build(manifests_of([workload], "f")).pods) == 3


def test_a_part_that_names_another_controller_makes_no_pods():
    """Regression: of the two checks of `managedBy`, that of the files' objects took every known controller for all."""
    jobs = [{"name": "a", "template": {"spec": {"managedBy": "example.com/x", "template": {"spec": spec()}}}}]
    assert not build(manifests_of([body("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs)], "f")).pods
    other = body("batch/v1", "Job", managedBy="ray.io/kuberay-operator", template={"spec": spec()})
    assert dict(build(manifests_of([other], "f")).ignored) == {"Job managed by ray.io/kuberay-operator": 1}
    pruned = body("apps/v1", "Deployment", managedBy="example.com/x", template={"spec": spec()})
    assert len(build(manifests_of([pruned], "f")).pods) == 1


def test_what_only_concerns_new_pods_casts_no_doubt_on_a_snapshot():
    """Regression: a snapshot of a cluster with sidecars or quotas always ended with status 3."""
    space: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    space["metadata"]["labels"] = {"istio-injection": "enabled"}
    quota = body("v1", "ResourceQuota", hard={"requests.storage": "1Ti"})
    stored = body("v1", "Pod", **spec())
    stored["metadata"]["uid"] = "u"
    job = body("batch/v1", "Job", annotations={"gangsched.io/recorded": "true"}, template={"spec": spec()})
    assert build(manifests_of([space, quota, stored, job], "f")).doubts == []
    assert len(build(manifests_of([space, quota, stored, job, body("v1", "Pod", "new", **spec())], "f")).doubts) == 2


def test_what_a_node_declares_beside_its_resources_counts():
    """Regression: of a node's status only the resources were read, so pods that need a feature had no node."""
    declaring = node("n1")
    declaring["status"] |= {"declaredFeatures": ["A"], "images": [{"names": ["x"], "sizeBytes": 9}]}
    [found] = build(manifests_of([declaring], "f")).nodes
    assert found.features == ("A",)


def test_each_replica_of_each_role_of_a_disaggregated_set_is_a_gang_that_its_annotation_asks_for():
    roles = [
        {
            "name": name,
            "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": size, "workerTemplate": {"spec": spec()}}},
        }
        for name, size in (("prefill", 2), ("decode", 3))
    ]
    asked = {"gangsched.io/gang": "true"}
    found = body("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", "d", annotations=asked, roles=roles)
    few, enough = (placed(simulated(node("n", cpus), found)) for cpus in ("4", "5"))
    named = {name.rpartition("-")[2]: len(nodes) for name, nodes in few.items()}
    assert named == {"prefill.0": 0, "decode.0": 3}
    assert sorted(map(len, enough.values())) == [2, 3]


# A kind of the setting `workloads.custom`


def test_pods_of_a_custom_kind_are_a_gang_and_the_object_alone_is_told_to_make_unknown_ones():
    farm = {"name": "farm", "apiVersion": "example.com/v1", "kind": "Farm", "plural": "farms", "replicas": "spec.size"}
    kinds = chosen(validated({"workloads": {"custom": [farm]}}, "test"))
    found = body("example.com/v1", "Farm", "f", size=3, template={"spec": spec()})
    owner = {"apiVersion": "example.com/v1", "kind": "Farm", "name": "f", "uid": "Farm/default/f", "controller": True}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"f-{at}", "ownerReferences": [owner]},
            "spec": spec(),
        }
        for at in range(3)
    ]
    alone = build(manifests_of([AUTO, found], "f"), kinds)
    few, enough = (
        placed(simulate(build(manifests_of([AUTO, found, *pods, node("n", cpus)], "f"), kinds), Policy()))
        for cpus in "23"
    )
    assert [each.split(": ")[1] for each in alone.doubts] == ["Farm f"]
    assert (few, {name: len(nodes) for name, nodes in enough.items()}) == ({"farm.f": {}}, {"farm.f": 3})


SUSPENDED = "spec.suspend is true: set it to false to ask about it"
TEMPLATE: Json = {"spec": spec()}
REPLICATED: Json = {"replicatedJobs": [{"name": "r", "template": {"spec": {"template": TEMPLATE}}}]}
RAY: Json = {"headGroupSpec": {"template": TEMPLATE}}
ENDED: Json = {"conditions": [{"type": "Complete", "status": "True"}]}


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        (body("batch/v1", "Job", suspend=True, template=TEMPLATE), SUSPENDED),
        (body("batch/v1", "Job", template=TEMPLATE) | {"status": ENDED}, "it has ended"),
        (body("batch/v1", "CronJob", suspend=True, jobTemplate={"spec": {"template": TEMPLATE}}), SUSPENDED),
        (body("jobset.x-k8s.io/v1alpha2", "JobSet", suspend=True, **REPLICATED), SUSPENDED),
        (body("ray.io/v1", "RayCluster", suspend=True, **RAY), SUSPENDED),
        (
            body("ray.io/v1", "RayJob", rayClusterSpec=RAY) | {"status": {"jobDeploymentStatus": "Failed"}},
            "it has ended",
        ),
        (body("trainer.kubeflow.org/v1alpha1", "TrainJob", suspend=True, runtimeRef={"name": "r"}), SUSPENDED),
        (
            body(
                "kubeflow.org/v1",
                "PyTorchJob",
                runPolicy={"suspend": True},
                pytorchReplicaSpecs={"Worker": {"template": TEMPLATE}},
            ),
            "spec.runPolicy.suspend is true: set it to false to ask about it",
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_workload_that_rests_makes_no_pods_and_is_named(workload, why):
    """Regression: it vanished from the answer, even where other things were decided."""
    found = world(workload)
    assert found.pods == []
    assert found.idle == [f"f, document 1: {workload['kind']} w: makes no pods, because {why}"]


def test_a_workload_whose_pods_are_there_does_not_rest():
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "controller": True}
    there = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "ownerReferences": [owner]}, **TEMPLATE}
    found = world(body("apps/v1", "ReplicaSet", replicas=1, template=TEMPLATE), there)
    assert (len(found.pods), found.idle) == (1, [])
