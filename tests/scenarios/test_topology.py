"""`placement.topology`: all members of a group in one domain, from the quorum to the last replacement."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.reasons import Reason
from tests.builders import group, node, pod, pods
from tests.harness import Harness

ZONE = Topology("zone")


def zones(**cpus: int) -> Harness:
    """One node in each zone, with this many CPUs."""
    harness = Harness()
    for zone, cpu in cpus.items():
        harness.add(node(f"node-{zone}", cpu=cpu, labels={"zone": zone}))
    return harness


def zones_of(harness: Harness, prefix: str = "default/a-") -> set[str]:
    return {harness.pod(name).node.removeprefix("node-") for name in harness.bound(prefix)}


def test_the_quorum_is_bound_in_one_domain_or_waits_and_says_how_much_the_best_one_takes():
    harness = zones(a=2, b=3)
    harness.wait(2, group("a", min_member=4, topology=ZONE, max_schedule_time_s=999.0), *pods("a", 4))
    assert not harness.bound()
    message = harness.condition("default/a").message
    assert "Only 3 of 4 members fit into one domain of zone (b was tried: it has most room, or members" in message
    assert "1 with too little cpu; 1 outside that domain" in message
    harness.settle(node("more", cpu=1, labels={"zone": "b"}))
    assert {harness.pod(name).node for name in harness.bound()} == {"node-b", "more"}


def test_room_that_comes_free_in_any_domain_wakes_the_group():
    harness = zones(a=2, b=3)
    harness.add(pod("old", group="", cpu=1, node="node-a"), pod("older", group="", cpu=2, node="node-b"))
    harness.wait(2, group("a", min_member=2, topology=ZONE, max_schedule_time_s=999.0), *pods("a", 2))
    assert not harness.bound("default/a-")
    harness.delete("default/old")
    harness.settle()
    assert zones_of(harness) == {"a"}


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_members_above_the_minimum_and_replacements_stay_in_the_domain():
    harness = zones(a=3, b=64)
    harness.add(pod("old", group="", cpu=63, node="node-b"))
    harness.settle(group("a", min_member=2, topology=ZONE), *pods("a", 2))
    assert zones_of(harness) == {"a"}
    harness.delete("default/old")
    harness.settle(*pods("a", 2, first=2))
    assert zones_of(harness) == {"a"}
    assert len(harness.bound("default/a-")) == 3
    harness.wait(2)
    assert "No node has room in the domain zone=a" in harness.pod("default/a-3").condition_message
    harness.delete("default/a-0")
    harness.settle()
    assert zones_of(harness) == {"a"}
    assert len(harness.bound("default/a-")) == 3


def test_a_node_that_moves_to_another_domain_wakes_the_groups_that_are_bound_to_one():
    harness = Harness.of(node("n1", cpu=2, labels={"zone": "a"}), node("n2", cpu=4, labels={"zone": "b"}))
    harness.add(pod("busy", group="", cpu=3, node="n2"))
    harness.settle(group("a", min_member=2, topology=ZONE), *pods("a", 2))
    harness.delete("default/busy")
    harness.wait(2, *pods("a", 1, first=2))
    assert harness.pod("default/a-2").node == ""
    harness.settle(node("n1", cpu=2, labels={"zone": "b"}))
    assert harness.pod("default/a-2").node == "n2"


# Members in two domains: bound by others, or on a node whose label was changed


def divided(*, required: bool = True) -> Harness:
    """A scheduled group with two members in zone a and one in zone b, each of which has room."""
    harness = zones(a=9, b=9)
    harness.add(pod("a-0", node="node-a"), pod("a-1", node="node-a"), pod("a-2", node="node-b"))
    harness.settle(group("a", min_member=3, topology=Topology("zone", required=required)))
    return harness


@pytest.mark.without("all", why="the number of Events is that of one leader")
def test_a_member_that_joins_a_group_in_two_domains_is_bound_where_most_are_and_the_group_is_told():
    """Regression: nobody was told that the topology that the group requires is broken."""
    harness = divided()
    harness.settle(*pods("a", 1, first=3))
    assert harness.pod("default/a-3").node == "node-a"
    [told] = harness.events(Reason.TOPOLOGY_BROKEN)
    assert (told.kind, told.name, told.type) == ("PodGroup", "a", "Warning")
    assert "are in 2 (a, b)" in told.note
    harness.settle(*pods("a", 3, first=4))
    assert len(harness.bound()) == 7
    assert len(harness.events(Reason.TOPOLOGY_BROKEN)) == 1
    harness.settle(node("node-c", cpu=9, labels={"zone": "c"}), pod("a-7", node="node-c"), *pods("a", 1, first=8))
    assert "are in 3 (a, b, c)" in harness.events(Reason.TOPOLOGY_BROKEN)[1].note


@pytest.mark.without("all", why="the number of Events is that of one leader")
def test_a_node_that_moves_to_another_domain_divides_the_group():
    harness = Harness.of(*(node(f"n{number}", cpu=2, labels={"zone": "a"}) for number in range(2)))
    harness.settle(group("a", min_member=3, topology=ZONE), *pods("a", 3))
    alone = next(name for name in ("n0", "n1") if [pod.node for pod in harness.pods.values()].count(name) == 1)
    harness.add(node(alone, cpu=9, labels={"zone": "b"}), node("n2", cpu=1, labels={"zone": "a"}))
    harness.settle(*pods("a", 1, first=3))
    assert harness.pod("default/a-3").node == "n2"
    assert len(harness.events(Reason.TOPOLOGY_BROKEN)) == 1


def test_nobody_is_told_of_a_topology_that_is_preferred_or_whole():
    harness = divided(required=False)
    harness.wait(5, group("b", min_member=2, topology=ZONE), *pods("b", 2), *pods("a", 1, first=3))
    assert len(harness.bound()) == 6
    assert not harness.events(Reason.TOPOLOGY_BROKEN)
