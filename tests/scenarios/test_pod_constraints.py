"""Members that depend on where other pods are: affinity, anti-affinity and topology spread, for whole gangs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm, Requirement, Spread
from tests.builders import group, node, pod, pods
from tests.harness import Harness

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def term(key: str, app: str = "a") -> PodTerm:
    return PodTerm(key, (Requirement("app", "In", (app,)),), ("default",))


def nodes(number: int, *, zone: str = "z1", cpu: int = 8, first: int = 1) -> list[Node]:
    names = [f"{zone}-{at}" for at in range(first, first + number)]
    return [node(name, cpu=cpu, labels={HOST: name, ZONE: zone}) for name in names]


def by_zone(harness: Harness, prefix: str = "default/a-") -> Counter[str]:
    return Counter(harness.pod(name).node.partition("-")[0] for name in harness.bound(prefix))


def members(number: int, **fields: Any) -> list[Pod]:
    return pods("a", number, labels={"app": "a"}, **fields)


def test_one_node_too_few_refuses_the_whole_gang_and_says_that_its_own_anti_affinity_does():
    harness = Harness.waited(5, *nodes(15, cpu=64), group("a", min_member=16), *members(16, anti_affinity=[term(HOST)]))
    assert harness.bound() == []
    said = harness.condition("default/a").message
    assert "Only 15 of 16 members fit" in said
    assert "15 with pods there that the required pod anti-affinity excludes" in said
    harness.settle(*nodes(1, first=16))
    assert len(harness.bound("default/a-")) == 16


def test_a_zone_without_room_keeps_the_others_from_taking_more_and_is_named():
    harness = Harness.of(*nodes(2, zone="z1", cpu=4), *nodes(1, zone="z2", cpu=4), *nodes(1, zone="z3", cpu=1))
    harness.wait(5, group("a", min_member=6, max_schedule_time_s=9999.0), *members(6, spread=[Spread(term(ZONE), 1)]))
    assert harness.bound() == []
    said = harness.condition("default/a").message
    assert (
        f"topology spread by {ZONE} (z1 has 2 of at most 2, z2 has 2 of at most 2; fewest in z3: 1) allows no more"
        in said
    )
    harness.settle(*nodes(1, zone="z3", first=2))
    assert by_zone(harness) == {"z1": 2, "z2": 2, "z3": 2}


def test_members_join_the_pods_of_another_gang_and_wait_until_these_are_bound():
    harness = Harness.of(*nodes(2, zone="z1"), *nodes(2, zone="z2"))
    harness.wait(5, group("a", min_member=8, max_schedule_time_s=9999.0), *members(8, affinity=[term(ZONE, "data")]))
    assert harness.bound() == []
    said = harness.condition("default/a").message
    assert "None of 8 members fits" in said
    assert "4 without the pods that the required pod affinity asks for" in said
    assert "could not take them even if they were empty" not in said
    harness.add(group("data", min_member=2))
    harness.settle(*pods("data", 2, labels={"app": "data"}, node_selector={ZONE: "z2"}))
    assert by_zone(harness) == {"z2": 8}


def test_a_pod_that_is_relabelled_lets_in_who_asked_for_it():
    harness = Harness.of(*nodes(1), pod("data", group="", scheduler="x", node="z1-1", labels={"app": "old"}))
    harness.wait(5, group("a", min_member=2, max_schedule_time_s=9999.0), *members(2, affinity=[term(HOST, "data")]))
    assert harness.bound("default/a-") == []
    harness.change("default/data", labels=(("app", "data"),))
    harness.settle()
    assert len(harness.bound("default/a-")) == 2


@pytest.mark.without("restarts", "standbys", why="counts what one leader does")
def test_only_gangs_that_asked_for_a_pod_are_tried_again_when_it_comes():
    harness = Harness.of(*nodes(1, cpu=64))
    for app in ("x", "y"):
        harness.add(group(app, min_member=2, max_schedule_time_s=9999.0))
        harness.add(*pods(app, 2, labels={"app": app}, affinity=[term(ZONE, f"data-{app}")]))
    harness.wait(5)
    refused = sum(harness.machine.stats().refusals.values())
    harness.wait(5, pod("other", group="", labels={"app": "data-z"}))
    assert sum(harness.machine.stats().refusals.values()) == refused
    harness.wait(5, pod("wanted", group="", labels={"app": "data-x"}))
    assert len(harness.bound("default/x-")) == 2
    assert sum(harness.machine.stats().refusals.values()) == refused
