"""Whole-gang preemption: who may preempt whom, and in which order of writes."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import EvictPod, PatchStatus
from gangsched.core.objects.results import StatusRefused
from tests.builders import group, node, pod
from tests.preempting import SET, cluster, end, evicted, gang, holder, is_whole, names, record, victims

ALL = names("low", range(4))


def test_a_group_of_lower_priority_leaves_as_a_whole_and_the_other_is_bound_as_a_whole():
    harness = cluster(node(cpu=4), *gang("low", 4))
    assert victims(harness, *holder(4)) == ALL
    assert harness.condition("default/high").reason == "WaitsForVictims"
    assert not harness.bound("default/high-")
    end(harness)
    assert is_whole(harness, "high", 4)
    assert record(harness, "low").preemptions == 1
    assert not record(harness, "low").preempted_at
    assert not harness.machine.cluster.ledger.reserved


HIGH = {"priority_class": "high"}
MID = {"priority_class": "mid"}
GENTLE = {"priority_class": "gentle"}
OWN = {"priority_class": ""}


@pytest.mark.parametrize(
    ("victim", "asking", "leaves"),
    [
        pytest.param({"priority_class": "mid"}, HIGH, True, id="lower"),
        pytest.param({"priority_class": "high"}, HIGH, False, id="equal"),
        pytest.param({"priority": 200}, HIGH, False, id="higher"),
        pytest.param({"priority": 99, "pods_with": {"priority": 200}}, HIGH, True, id="its group below its pods"),
        pytest.param({"priority": 200, "pods_with": {"priority": 1}}, HIGH, False, id="its group above its pods"),
        pytest.param({"pods_with": {"priority": 99}}, HIGH, True, id="lower by its pods"),
        pytest.param({"pods_with": {"priority": 100}}, HIGH, False, id="equal by its pods"),
        pytest.param({"priority": 60}, MID | {"pods_with": {"priority": 200}}, False, id="below its pods"),
        pytest.param({"priority": 60}, HIGH | {"pods_with": {"priority": 5}}, True, id="above its pods"),
        pytest.param({}, {"priority": 100, "pods_with": {"priority": 100}}, False, id="number without class"),
        pytest.param({}, GENTLE, False, id="Never by class"),
        pytest.param({}, GENTLE | {"pods_with": {"priority": 100}}, False, id="Never by class, pods may"),
        pytest.param({}, HIGH | {"preempts": False}, False, id="Never by spec"),
        pytest.param({}, HIGH | {"pods_with": {"preempts": False}}, True, id="by class though never by its pods"),
        pytest.param({}, OWN | {"pods_with": {"priority": 100}}, True, id="by its pods"),
        pytest.param({}, OWN | {"pods_with": {"priority": 100, "preempts": False}}, False, id="Never by its pods"),
        pytest.param({}, OWN | {"preempts": False, "pods_with": {"priority": 100}}, False, id="by pods, Never by spec"),
    ],
)
def test_only_a_lower_priority_of_the_group_leaves_and_only_for_a_group_whose_class_preempts(victim, asking, leaves):
    harness = cluster(node(cpu=4), *gang("low", 4, **victim))
    harness.put_class("gentle", 100, preempts=False)
    assert victims(harness, *gang("high", 4, **asking)) == (ALL if leaves else [])
    end(harness)
    assert is_whole(harness, "high" if leaves else "low", 4)


def test_a_group_preempts_only_if_all_members_of_its_priority_may():
    harness = cluster(node(cpu=4), *gang("low", 4))
    mixed = [pod(f"high-{at}", group="high", priority=100, preempts=at > 0) for at in range(2)]
    assert victims(harness, group("high", min_member=2), *mixed) == []
    harness.change("default/high-0", priority=10)
    harness.wait(5)
    assert evicted(harness) == ALL


def test_a_pod_without_a_group_preempts_a_whole_group():
    harness = cluster(node(cpu=4), *gang("low", 4))
    assert victims(harness, pod("one", group="", priority=100)) == ALL
    assert harness.pod("default/one").nominated_node == "n1"
    end(harness)
    assert harness.bound("default/one") == ["default/one"]


def test_members_above_the_minimum_preempt_nobody():
    harness = cluster(node(cpu=4), *gang("low", 2))
    assert victims(harness, *holder(4, least=2)) == []
    assert is_whole(harness, "high", 2)


def test_nobody_is_preempted_where_it_is_switched_off():
    harness = cluster(node(cpu=4), *gang("low", 4), enabled=False)
    assert victims(harness, *holder(4)) == []


def said(name: str, size: int, **fields):
    """Members that declare their group themselves, so that a PodGroup is made for what must be written."""
    says = Declaration(group=name, min_member=size)
    return [pod(f"{name}-{at}", declaration=says, owner=SET, **fields) for at in range(size)]


@pytest.mark.parametrize("victim", [gang("low", 4), said("low", 4)], ids=["a victim with a PodGroup", "without"])
@pytest.mark.parametrize("asking", [holder(4), said("high", 4, priority=100)], ids=["a holder with one", "without"])
def test_the_order_of_writes_is_the_reservation_then_the_mark_then_the_evictions(victim, asking):
    harness = cluster(node(cpu=4), *victim)
    seen: list[tuple[str, bool, str]] = []

    def looked(_: EvictPod) -> None:
        holding, leaving = harness.status("default/high").reservation, record(harness, "low")
        seen.append((holding.kind if holding else "", bool(leaving.preempted_at), leaving.preempted_by))

    harness.refuse_eviction = looked
    assert victims(harness, *asking) == ALL
    assert seen == [("Preemption", True, "Priority")] * 4
    end(harness)
    assert is_whole(harness, "high", 4)


def test_nothing_is_evicted_while_the_reservation_or_the_mark_cannot_be_written():
    harness = cluster(node(cpu=4), *gang("low", 4))
    refused = "default/high"

    def refuse(effect: PatchStatus) -> StatusRefused | None:
        return StatusRefused(effect.key, stale=False) if str(effect.key) == refused else None

    harness.refuse_status = refuse
    assert victims(harness, *holder(4)) == []
    refused = "default/low"
    harness.wait(20)
    assert evicted(harness) == []
    refused = ""
    harness.wait(20)
    assert evicted(harness) == ALL
