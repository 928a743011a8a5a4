"""LeaderWorkerSets in which each replica gets a topology domain of its own, with pods as their webhook makes them.

The workers of a replica are created once their leader has a node, and select the leader's domain.
"""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.kube.workloads.workload_kind import Marks
from tests.builders import node, pod
from tests.harness import Harness
from tests.served import KINDS, served_workload

KIND = KINDS["lws"]
LWS = "leaderworkerset.sigs.k8s.io"
RACK = "rack"
SIZE = 3
EXCLUSIVE = {f"{LWS}/exclusive-topology": RACK}
BY_SUBGROUP = {f"{LWS}/subgroup-exclusive-topology": RACK}
CONTAINERS = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
TEMPLATE = {"size": SIZE, "workerTemplate": {"spec": {"containers": CONTAINERS}}}


def lws(name: str = "llm", *, annotations: dict[str, str] = EXCLUSIVE, **spec: Any) -> ForeignGroup:
    spec = {"replicas": 2, "leaderWorkerTemplate": TEMPLATE, **spec}
    return served_workload("lws", name, spec, annotations=annotations)


class Replica:
    """One replica of a set: its leader now, and its workers some time after the leader has a node."""

    def __init__(self, harness: Harness, number: int = 0, *, name: str = "llm", late_s: float = 1.0) -> None:
        self.leader = f"{name}-{number}"
        self._harness, self._name, self._number, self._late_s = harness, name, number, late_s
        harness.add(self._pod(0, affinity=[self._mine()], anti_affinity=[self._others()]))
        harness.after(late_s, self._follow)

    def _mine(self) -> PodTerm:
        return PodTerm(RACK, (Requirement(f"{LWS}/group-key", "In", (f"key-{self.leader}",)),), ("default",))

    def _others(self) -> PodTerm:
        key = f"{LWS}/group-key"
        return PodTerm(
            RACK, (Requirement(key, "Exists"), Requirement(key, "NotIn", (f"key-{self.leader}",))), ("default",)
        )

    def _follow(self) -> None:
        leader = self._harness.pod(f"default/{self.leader}")
        if not leader.node:
            self._harness.after(1.0, self._follow)
            return
        rack = dict(self._harness.nodes[leader.node].labels)[RACK]
        self._harness.add(*(self._pod(worker, node_selector={RACK: rack}) for worker in range(1, SIZE)))

    def _pod(self, worker: int, **fields: Any) -> Pod:
        labels = {
            f"{LWS}/name": self._name,
            f"{LWS}/group-index": str(self._number),
            f"{LWS}/worker-index": str(worker),
            f"{LWS}/group-key": f"key-{self.leader}",
        }
        set_name = self.leader if worker else self._name
        mark = KIND.mark(Marks(labels, {f"{LWS}/size": str(SIZE)}, Owner("StatefulSet", set_name, "u", "apps")))
        assert mark is not None
        return pod(
            f"default/{self.leader}-{worker}" if worker else f"default/{self.leader}",
            group="",
            labels=labels,
            owner=Owner("StatefulSet", set_name, f"uid-sts-{set_name}", "apps"),
            workload=KIND.workload(mark),
            created=self._harness.now + worker,
            **fields,
        )


@pytest.fixture
def auto() -> Harness:
    harness = Harness()
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})
    return harness


def racks(harness: Harness, *cpus: int) -> None:
    """A rack for each entry, with nodes of one CPU."""
    for rack, cpu in enumerate(cpus):
        harness.add(*(node(f"n{rack}-{number}", cpu="1", labels={RACK: f"r{rack}"}) for number in range(cpu)))


def found(harness: Harness, prefix: str = "llm-") -> list[str]:
    """The racks of the bound pods."""
    return sorted(
        dict(harness.nodes[each.node].labels)[RACK]
        for each in harness.pods.values()
        if each.node and each.name.startswith(prefix)
    )


@pytest.mark.parametrize("policy", ["LeaderCreated", "LeaderReady"])
def test_the_leader_is_bound_where_its_workers_have_places(auto, policy):
    """The first rack has room for the leader and one worker, and the nodes of all racks look alike."""
    racks(auto, 2, 2, 3)
    auto.add(lws(startupPolicy=policy))
    Replica(auto, late_s=30.0)
    auto.wait(10)
    assert found(auto) == ["r2"]
    assert len(auto.gang("default/lws.llm.0").operations.placeholders()) == 2
    auto.wait(40, *(pod(f"plain-{number}", group="", node_selector={RACK: "r2"}) for number in range(3)))
    assert (found(auto), found(auto, "plain")) == (["r2"] * SIZE, [])


def test_no_leader_is_bound_unless_a_rack_has_room_for_its_workers(auto):
    racks(auto, 2, 2, 2)
    auto.add(lws())
    Replica(auto)
    auto.wait(60)
    before = found(auto)
    racks(auto, 3)
    auto.wait(20)
    assert (before, found(auto)) == ([], ["r0"] * SIZE)


def test_after_a_resize_a_replica_keeps_its_workers_and_the_rest_of_its_rack_is_free(auto):
    racks(auto, 5)
    auto.add(lws())
    Replica(auto)
    auto.wait(10)
    auto.add(lws(leaderWorkerTemplate=TEMPLATE | {"size": 5}), *(pod(f"plain-{number}", group="") for number in (1, 2)))
    auto.wait(5)
    assert (found(auto), found(auto, "plain")) == (["r0"] * SIZE, ["r0"] * 2)
    assert len(auto.gang("default/lws.llm.0").operations.placeholders()) == 0


@pytest.mark.without("all", why="nothing is decided")
@pytest.mark.parametrize(
    ("annotations", "policy", "refused"),
    [
        (BY_SUBGROUP, "LeaderCreated", False),
        (BY_SUBGROUP, "LeaderReady", True),
        (EXCLUSIVE | BY_SUBGROUP, "LeaderCreated", True),
    ],
)
def test_domains_of_subgroups_are_refused_by_name_only_where_workers_are_created_later(annotations, policy, refused):
    """Workers that are created at once carry the affinity of their subgroup themselves."""
    made = lws(annotations=annotations, startupPolicy=policy)
    assert (made.spec is None) is refused
    assert (f"{LWS}/subgroup-exclusive-topology" in made.error) is refused


@pytest.mark.without("all", why="nothing is decided")
def test_a_replica_of_one_pod_has_nobody_to_hold_places_for():
    made = lws(leaderWorkerTemplate={"size": 1})
    assert made.spec is not None
    assert (made.spec.min_member, made.spec.roles) == (1, ())
