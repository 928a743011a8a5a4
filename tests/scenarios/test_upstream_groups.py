"""What Kubernetes' own tests say of its groups, told to gangsched: each story ends as it does there, or says why not.

Source: k8s.io/kubernetes test/integration/scheduler/podgroup at v1.37.2: podgroup_test.go, queueing/queueing_test.go,
podgroup_affinity_test.go and topology_aware_scheduling/tas_test.go. Left out are preemption, of which gangsched has
none, errors injected into the scheduler's plug-ins, and the order in which its queue tries pods again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import node, pod
from tests.harness import Harness
from tests.served import served_group

BASIC: dict[str, Any] = {"basic": {}}


def gang(minimum: int) -> dict[str, Any]:
    return {"gang": {"minCount": minimum}}


def declared(name: str, policy: dict[str, Any], key: str = "", *, created: int = 0) -> ForeignGroup:
    moment = f"1970-01-12T13:46:{created:02}Z"
    constraints = {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
    spec = {"schedulingPolicy": policy, "priority": 0} | constraints
    return served_group("native", name, spec, creationTimestamp=moment)


def of(group: str, *names: str, **fields: Any) -> list[Pod]:
    declaration = DEFAULT.declaration({}, {}, scheduling_group=group)
    return [pod(name, group="", declaration=declaration, **fields) for name in names]


def alone(name: str, **fields: Any) -> Pod:
    return pod(name, group="", **fields)


def bound(harness: Harness, *names: str) -> dict[str, str]:
    """The nodes of the pods with one, of these or of all."""
    found = {pod.name: pod.node for pod in harness.pods.values() if pod.node}
    return {name: found[name] for name in names if name in found} if names else found


def reasons(harness: Harness, *names: str) -> set[str]:
    return {harness.pod(f"default/{name}").condition_reason for name in names}


@pytest.fixture
def harness() -> Harness:
    return Harness()


# podgroup_test.go: one node with 4 CPU, pods of 1 CPU


def test_pods_wait_for_their_group_and_the_group_for_room(harness):
    harness.add(node("n", cpu=4), alone("blocker", cpu="2", node="n", scheduler="other"), *of("g", "p1", "p2", "p3"))
    harness.wait(2)
    assert reasons(harness, "p1", "p2", "p3") == {"PodGroupNotFound"}
    harness.wait(2, declared("g", gang(3)))
    assert reasons(harness, "p1", "p2", "p3") == {"Unschedulable"}
    harness.delete("default/blocker")
    harness.wait(2)
    assert len(bound(harness)) == 3


@pytest.mark.parametrize(
    ("pods", "changed", "whole"),
    [(4, 4, 4), (5, 4, 4), (4, 6, 0)],
    ids=["lowered to what exists", "lowered to what fits", "raised"],
)
def test_a_changed_minimum_counts_from_then_on(harness, pods, changed, whole):
    """Gang of 5: 4 pods and then 4; 5 pods with room for 4 and then 4; 4 pods and then 6."""
    harness.wait(2, node("n", cpu=4), declared("g", gang(5)), *of("g", *(f"p{number}" for number in range(pods))))
    assert bound(harness) == {}
    harness.wait(2, declared("g", gang(changed)))
    assert len(bound(harness)) == whole


# queueing_test.go: a node with 4 CPU and later another, pods of 2 CPU


@pytest.mark.parametrize(("policy", "before"), [(gang(3), 0), (BASIC, 2)], ids=["gang", "basic"])
def test_a_gated_pod_is_not_counted_until_its_gate_is_gone(harness, policy, before):
    """There, a gated pod holds all of a group, also of a basic one, whose other pods here do not wait for it."""
    [gated] = of("g", "p1", gated=True)
    harness.wait(2, node("n", cpu=4), declared("g", policy), gated, *of("g", "p2", "p3"))
    assert len(bound(harness)) == before
    harness.change("default/p1", gated=False)
    harness.wait(2)
    assert len(bound(harness)) == 3


@pytest.mark.parametrize("policy", [gang(2), BASIC], ids=["gang", "basic"])
def test_a_new_pod_of_a_group_that_is_gone_waits_for_it(harness, policy):
    harness.wait(2, node("n", cpu=4), declared("g", policy), *of("g", "p1", "p2"))
    assert len(bound(harness)) == 2
    harness.delete_foreign("native", "default/g")
    harness.wait(2, *of("g", "p3"))
    assert reasons(harness, "p3") == {"PodGroupNotFound"}


# podgroup_affinity_test.go


@pytest.mark.parametrize("nodes", [1, 2])
def test_members_judge_each_others_affinity_within_the_plan(harness, nodes):
    """p1 must be on n1 and apart from app=foo, which p2 has."""
    apart = PodTerm("kubernetes.io/hostname", (Requirement("app", "In", ("foo",)),), ("default",))
    for number in range(nodes):
        harness.add(node(f"n{number + 1}", cpu=4, labels={"kubernetes.io/hostname": f"n{number + 1}"}))
    harness.add(declared("g", gang(2)), *of("g", "p2", labels={"app": "foo"}))
    harness.wait(2, *of("g", "p1", node_selector={"kubernetes.io/hostname": "n1"}, anti_affinity=[apart]))
    assert bound(harness) == ({"p1": "n1", "p2": "n2"} if nodes == 2 else {})


# tas_test.go: the topology key is "rack"; a rack is written as what is taken and what is there of each of its nodes

Racks = dict[str, tuple[tuple[int, int], ...]]


def build(harness: Harness, racks: Racks) -> None:
    """Nodes with the label of their rack; pods of others occupy what is taken."""
    for rack, nodes in racks.items():
        for number, (taken, cpu) in enumerate(nodes):
            harness.add(node(f"{rack}-{number}", cpu=cpu, labels={"rack": rack, "zone": rack[0]}))
            if taken:
                name = f"taken-{rack}-{number}"
                harness.add(alone(name, cpu=str(taken), node=f"{rack}-{number}", scheduler="other"))


def racks_of(harness: Harness, *names: str) -> set[str]:
    return {placed.rpartition("-")[0] for placed in bound(harness, *names).values()}


FREE, FULL = (0, 2), (2, 2)
PREPARED = pytest.mark.without("disorder", why="the racks and what is taken of them are there before the group")


@dataclass(frozen=True)
class Choice:
    """A group on racks: its pods' CPUs, its minimum (0: basic), the rack that it takes ("" for none), and how many of
    its pods are bound (-1: all, or none without a rack).
    """

    racks: Racks
    pods: tuple[int, ...]
    minimum: int
    rack: str
    placed: int = -1


CHOICES = {
    "gang, only one rack is large enough": Choice(
        {"r1": (FREE,) * 3, "r2": (FREE, FULL), "r3": (FREE,)}, (1, 1, 1), 3, "r1"
    ),
    "gang, no rack is large enough": Choice({"r1": (FREE, FREE), "r2": (FREE,), "r3": (FREE,)}, (2, 2, 2), 3, ""),
    "gang, the only rack is taken": Choice({"r1": (FREE, FULL, FULL)}, (1, 1, 1), 3, ""),
    "gang, the rack that is fuller afterwards": Choice(
        {"r1": (FREE, FREE), "r2": (FREE,) * 3, "r3": (FREE,)}, (1, 1, 1), 3, "r1"
    ),
    "gang, fuller with what others have taken": Choice(
        {"r1": ((0, 4),), "r2": ((2, 6),), "r3": ((1, 6),), "r4": ((0, 2),)}, (1, 1, 1), 3, "r2"
    ),
    "gang, members above the minimum stay in its rack": Choice(
        {"r1": (FREE, FREE), "r2": (FREE, FREE)}, (1, 1, 1), 2, "r1", placed=3
    ),
    "gang, a rack with too little left": Choice({"r1": (FREE, FULL)}, (1, 1, 1), 3, ""),
    "basic, one rack": Choice({"r1": (FREE, FREE)}, (1, 1, 1), 0, "r1"),
    "basic, what fits of it in one rack": Choice({"r1": ((0, 2),), "r2": ((0, 2),)}, (1, 1, 1), 0, "r1", placed=2),
    "basic, none fits": Choice({"r1": (FREE,)}, (4, 4), 0, ""),
    "basic, one fits": Choice({"r1": (FREE,)}, (4, 1), 0, "r1", placed=1),
    "basic, the rack that is fuller afterwards": Choice({"r1": ((0, 6),), "r2": ((0, 4),)}, (1, 1, 1), 0, "r2"),
    "basic, fuller with what others have taken": Choice(
        {"r1": ((1, 6),), "r2": ((2, 6),), "r3": ((0, 8),)}, (1, 1, 1), 0, "r2"
    ),
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
@PREPARED
def test_a_group_is_in_one_rack(harness, choice):
    names = [f"p{number}" for number in range(len(choice.pods))]
    build(harness, choice.racks)
    harness.add(declared("g", gang(choice.minimum) if choice.minimum else BASIC, "rack"))
    harness.add(*(each for name, cpu in zip(names, choice.pods, strict=True) for each in of("g", name, cpu=str(cpu))))
    harness.wait(2)
    placed = bound(harness, *names)
    whole = len(names) if choice.rack else 0
    assert racks_of(harness, *names) == ({choice.rack} if choice.rack else set())
    assert len(placed) == (whole if choice.placed < 0 else choice.placed)


@PREPARED
def test_a_rack_of_which_a_node_is_freed_takes_the_gang(harness):
    build(harness, {"r1": (FREE, FULL, FULL)})
    harness.wait(2, declared("g", gang(3), "rack"), *of("g", "p1", "p2", "p3"))
    assert bound(harness, "p1", "p2", "p3") == {}
    harness.delete("default/taken-r1-1")
    harness.wait(2)
    assert len(bound(harness, "p1", "p2", "p3")) == 3


@PREPARED
def test_later_pods_join_the_rack_of_their_group_or_wait(harness):
    build(harness, {"r1": ((0, 6),), "r2": ((0, 4),), "r3": ((0, 2),)})
    harness.wait(2, declared("g", gang(3), "rack"), *of("g", "p1", "p2", "p3"))
    assert racks_of(harness) == {"r2"}
    harness.wait(2, *of("g", "p4"))
    harness.wait(2, *of("g", "p5"))
    assert set(bound(harness).values()) == {"r2-0"}
    assert set(bound(harness)) == {"p1", "p2", "p3", "p4"}


@PREPARED
def test_pods_of_a_basic_group_that_come_one_by_one_stay_in_the_rack_of_the_first(harness):
    build(harness, {"r1": ((2, 8),), "r2": ((0, 2),)})
    harness.add(declared("g", BASIC, "rack"))
    for name in ("p1", "p2", "p3"):
        harness.wait(2, *of("g", name))
    assert bound(harness, "p1", "p2", "p3") == {"p1": "r2-0", "p2": "r2-0"}


@PREPARED
def test_a_second_group_takes_the_rack_that_is_left(harness):
    build(harness, {"r1": (FREE,) * 3, "r2": (FREE, FREE)})
    harness.wait(2, declared("g", gang(3), "rack"), *of("g", "g1", "g2", "g3", cpu="2"))
    harness.wait(2, declared("h", gang(2), "rack", created=1), *of("h", "h1", "h2", cpu="2"))
    assert racks_of(harness, "g1", "g2", "g3") == {"r1"}
    assert racks_of(harness, "h1", "h2") == {"r2"}


@PREPARED
def test_two_small_groups_share_a_rack(harness):
    build(harness, {"r1": (FREE,) * 3, "r2": (FREE,)})
    harness.wait(2, declared("g", gang(2), "rack"), *of("g", "g1", cpu="2"), *of("g", "g2"))
    harness.wait(2, declared("h", gang(3), "rack", created=1), *of("h", "h1", "h2", "h3"))
    assert racks_of(harness) == {"r1"}
    assert len(bound(harness)) == 5


@PREPARED
def test_groups_with_different_keys_choose_by_their_own(harness):
    """Zones a and b; only a3 has three free nodes, and only b has three others."""
    build(harness, {"a1": (FREE,), "a3": (FREE,) * 3, "b1": (FREE, FREE), "b2": (FREE,)})
    harness.wait(2, declared("g", gang(3), "rack"), *of("g", "g1", "g2", "g3", cpu="2"))
    harness.wait(2, declared("h", gang(3), "zone", created=1), *of("h", "h1", "h2", "h3", cpu="2"))
    assert racks_of(harness, "g1", "g2", "g3") == {"a3"}
    assert racks_of(harness, "h1", "h2", "h3") == {"b1", "b2"}


@pytest.mark.parametrize("policy", [gang(2), BASIC], ids=["gang", "basic"])
@PREPARED
def test_a_blocked_rack_is_left_until_it_is_free(harness, policy):
    build(harness, {"r1": ((1, 2),)})
    harness.wait(2, declared("g", policy, "rack"), *of("g", "p1", "p2"))
    assert len(bound(harness, "p1", "p2")) == (1 if policy == BASIC else 0)
    harness.delete("default/taken-r1-0")
    harness.wait(2)
    assert racks_of(harness, "p1", "p2") == {"r1"}
    assert len(bound(harness, "p1", "p2")) == 2
