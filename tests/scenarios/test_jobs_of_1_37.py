"""Jobs with the objects that Kubernetes 1.37's Job controller makes for them, under each combination of its gates.

The objects are those of pkg/controller/job/job_scheduling_manager.go and component-helpers' workloadbuilder at v1.37.2.
Without WorkloadWithJob the API server drops the Job's spec.scheduling, and without TopologyAwareWorkloadScheduling the
constraints of the group, but not those of the Job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from gangsched.config.settings import Settings
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.workloads.workload_table import chosen
from tests.builders import node
from tests.harness import Harness
from tests.served import served_group, served_pod, served_workload

Json = dict[str, Any]
WORKLOADS = chosen(Settings())
CREATED = "1970-01-12T13:46:40Z"
RACK = "rack"
GROUP = "train-7fk2p-train-pgt-0-x9"
OF_JOB: Json = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}
OF_WORKLOAD: Json = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "name": "train-7fk2p", "uid": "w"}
OF_GROUP: Json = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": GROUP, "uid": "uid-g"}


@dataclass(frozen=True)
class Cluster:
    """A cluster with these gates, and a Job that asks for this."""

    native: bool = True
    with_job: bool = True
    topology: bool = True
    indexed: bool = True
    parallelism: int = 4
    completions: int | None = 4
    scheduling: Json | None = None

    @property
    def kept(self) -> Json | None:
        """The Job's spec.scheduling as the API server stores it."""
        return self.scheduling if self.native and self.with_job else None

    def job(self, **status: Any) -> ForeignGroup:
        spec = {
            "parallelism": self.parallelism,
            "completions": self.completions,
            "completionMode": "Indexed" if self.indexed else "NonIndexed",
            "scheduling": self.kept,
        }
        return served_workload("job", "train", spec, status=status)

    @property
    def groups(self) -> list[ForeignGroup]:
        """The PodGroup that the controller makes, if it makes one."""
        if not (self.native and self.with_job):
            return []
        asked = self.kept or {}
        policy = asked.get("schedulingPolicy") or {"basic": {}}
        if "gang" in policy:
            policy = {"gang": {"minCount": policy["gang"].get("minCount") or max(1, self.parallelism)}}
        spec: Json = {
            "workloadRef": {"workloadName": "train-7fk2p", "templateName": "train-pgt-0"},
            "schedulingPolicy": policy,
            "disruptionMode": asked.get("disruptionMode") or {"single": {}},
            "priority": 0,
        }
        if self.topology and "schedulingConstraints" in asked:
            spec["schedulingConstraints"] = asked["schedulingConstraints"]
        meta: Json = {"uid": "uid-g", "creationTimestamp": CREATED, "ownerReferences": [OF_JOB, OF_WORKLOAD]}
        return [served_group("native", GROUP, spec, **meta)]

    def pod(self, number: int) -> Pod:
        index = {"batch.kubernetes.io/job-completion-index": str(number)} if self.indexed else {}
        spec: Json = {
            "schedulerName": "gangsched",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        }
        if self.groups:
            spec["schedulingGroup"] = {"podGroupName": GROUP}
        owners = [OF_JOB, *([OF_GROUP] if self.groups else [])]
        meta: Json = {"creationTimestamp": CREATED, "annotations": index, "ownerReferences": owners}
        return served_pod(f"train-{number}", spec, **meta)

    def pods(self) -> list[Pod]:
        """As many pods as the controller creates at once."""
        number = self.parallelism if self.completions is None else min(self.parallelism, self.completions)
        return [self.pod(at) for at in range(number)]


def started(found: Cluster, *, cpus: int, auto: bool) -> Harness:
    """The Job with its pods on a node with that many CPUs; `auto`: where Jobs are gangs."""
    harness = Harness()
    harness.label_namespace("default", {"gangsched.io/gang": "auto"} if auto else {})
    harness.wait(5, node("n1", cpu=cpus), found.job(), *found.groups, *found.pods())
    return harness


GANG: Json = {"schedulingPolicy": {"gang": {}}}
GATES = {
    "off": Cluster(native=False, with_job=False),
    "without the Job's": Cluster(with_job=False),
    "all": Cluster(),
    "without topology": Cluster(topology=False),
}
SHAPES: dict[str, dict[str, Any]] = {
    "indexed": {"indexed": True},
    "not indexed": {"indexed": False},
    "in waves": {"indexed": True, "completions": 9},
    "not indexed, in waves": {"indexed": False, "completions": 9},
    "without completions": {"indexed": False, "completions": None},
}


@pytest.fixture(params=GATES, ids=lambda name: name.replace(" ", "-"))
def gates(request: pytest.FixtureRequest) -> Cluster:
    return GATES[request.param]


@pytest.fixture(params=SHAPES, ids=lambda name: name.replace(" ", "-"))
def cluster(request: pytest.FixtureRequest, gates: Cluster) -> Cluster:
    return replace(gates, **SHAPES[request.param])


def test_where_jobs_are_gangs_every_job_is_one(cluster):
    before = started(cluster, cpus=3, auto=True).bound()
    after = started(cluster, cpus=4, auto=True).bound()
    assert (before, len(after)) == ([], 4)


def test_elsewhere_a_job_that_asks_for_nothing_is_scheduled_pod_by_pod(gates):
    """With the gates each has a group of the policy basic, which the user did not ask for."""
    assert len(started(gates, cpus=3, auto=False).bound()) == 3


def test_a_job_that_asks_for_a_gang_is_one_as_far_as_the_api_server_keeps_that(cluster):
    asks = replace(cluster, scheduling=GANG)
    assert len(started(asks, cpus=3, auto=False).bound()) == (0 if asks.kept else 3)
    assert len(started(asks, cpus=4, auto=False).bound()) == 4


def test_a_job_that_asks_for_no_gang_is_none_where_jobs_are_gangs_as_far_as_the_api_server_keeps_that(gates):
    """Regression: the label of the namespace won, which says less than the Job's own field."""
    asks = replace(gates, scheduling={"schedulingPolicy": {"basic": {}}})
    assert len(started(asks, cpus=3, auto=True).bound()) == (3 if asks.kept else 0)


@pytest.mark.parametrize("auto", [True, False], ids=["auto", "plain"])
def test_the_minimum_that_a_job_states_counts_everywhere(gates, auto):
    asks = replace(gates, scheduling={"schedulingPolicy": {"gang": {"minCount": 2}}})
    few, some = (len(started(asks, cpus=cpus, auto=auto).bound()) for cpus in (1, 3))
    if asks.kept:
        assert (few, some) == (0, 3)
    else:
        assert (few, some) == ((0, 0) if auto else (1, 3))


@pytest.mark.parametrize("auto", [True, False], ids=["auto", "plain"])
def test_the_topology_that_a_job_states_is_that_of_its_gang(gates, auto):
    """Where Jobs are gangs, it is read from the Job itself; elsewhere the group counts as the API server keeps it.

    The Job has six pods, on two nodes that share no rack, of 2 and 4 CPUs.
    """
    in_a_rack = GANG | {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    asks = replace(gates, parallelism=6, completions=6, scheduling=in_a_rack)
    harness = Harness()
    harness.label_namespace("default", {"gangsched.io/gang": "auto"} if auto else {})
    harness.add(node("n1", cpu=2, labels={RACK: "a"}), node("n2", cpu=4, labels={RACK: "b"}))
    harness.wait(5, asks.job(), *asks.groups, *asks.pods())
    constrained = bool(asks.kept) and (auto or asks.topology)
    assert len(harness.bound()) == (0 if constrained else 6)


def test_the_topology_of_an_automatic_gang_does_not_wait_for_its_native_group():
    asks = Cluster(parallelism=6, completions=6, scheduling={"schedulingConstraints": {"topology": [{"key": RACK}]}})
    harness = Harness()
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})
    harness.hide("native", "gangsched may not read it.", denied=True)
    harness.add(node("n1", cpu=2, labels={RACK: "a"}), node("n2", cpu=4, labels={RACK: "b"}))
    harness.wait(5, asks.job(), *asks.pods())
    assert harness.bound() == []
    assert harness.pod("default/train-0").condition_reason == "Unschedulable"


@pytest.mark.without("disorder", why="the pods succeed in the order in which the story tells it")
def test_the_last_wave_is_as_small_as_what_the_job_still_owes(gates):
    """Its group asks for more pods than the Job creates then, and kube-scheduler 1.37 would wait for them for ever."""
    asks = replace(gates, parallelism=2, completions=3, scheduling=GANG)
    harness = started(asks, cpus=2, auto=False)
    harness.run_pods()
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.wait(5, asks.job(succeeded=2), asks.pod(2))
    assert harness.pod("default/train-2").node == "n1"


def test_a_job_of_more_pods_than_completions_is_one_of_all_pods_that_it_creates(gates):
    """Its group asks for `parallelism` pods, of which only `completions` ever exist."""
    asks = replace(gates, parallelism=6, completions=4, indexed=False, scheduling=GANG)
    few, enough = (len(started(asks, cpus=cpus, auto=True).bound()) for cpus in (3, 4))
    assert (few, enough) == (0, 4)
