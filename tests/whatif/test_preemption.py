"""Preemption in a simulation: who leaves when, and what the Eviction API of the simulation answers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import BudgetSeen, PodGone
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy, Preemption
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.results import EvictionRefused, PodEvicted, Spared
from gangsched.core.objects.shape import Requirement
from gangsched.whatif.eviction_api import Evictions
from gangsched.whatif.simulation import Outcome, simulate
from gangsched.whatif.world.contents import World
from tests.builders import group, node, pod, pods

START = 1000.0
HIGH = group("high", min_member=4, priority_class="high")


def world(*victims: Pod, cpu: int = 4, minimum: int = 4, **more: Any) -> World:
    """A node that these pods fill, a group `low` that some of them may name, and a group `high` that needs the node."""
    return World(
        nodes=[node("n1", cpu=cpu)],
        groups=[group("low", min_member=minimum), HIGH],
        pods=[*victims, *pods("high", 4)],
        priority_classes={"high": PriorityClass(100)},
        start=START,
        **more,
    )


def told(outcome: Outcome) -> list[tuple[float, str, str]]:
    """Each decision after those about the files: when, about whom, and the reason."""
    return [(round(each.at), each.finding.key.name, each.finding.reason) for each in outcome.decisions if each.at]


def leaving(outcome: Outcome) -> dict[str, tuple[list[str], bool, str, int]]:
    """By the name of the victim's group: its pods that leave, whether all do, and for whom, with its priority."""
    found = [each.leaving for each in outcome.decisions if each.leaving is not None]
    return {each.group.name: (sorted(each.pods), each.whole, *_of(each.holder)) for each in found}


def _of(holder: Any) -> tuple[str, int]:
    return holder.key.name, holder.priority


@pytest.mark.parametrize("grace_s", [0, 30, 7200])
def test_a_group_leaves_as_a_whole_and_the_other_is_bound_when_its_pods_are_gone(grace_s):
    outcome = simulate(world(*pods("low", 4, node="n1", grace_s=grace_s)), Policy())
    if grace_s:
        assert told(outcome) == [
            (0, "high", "WaitsForVictims"),
            (0, "low", "Preempted"),
            (grace_s, "high", "Scheduled"),
        ]
    else:
        assert told(outcome) == [(0, "high", "Scheduled"), (0, "low", "Preempted")]
    assert leaving(outcome) == {"low": ([f"low-{at}" for at in range(4)], True, "high", 100)}
    assert [(each.key.name, each.reason, len(each.placements)) for each in outcome.groups] == [
        ("high", "Scheduled", 4),
        ("low", "Preempted", 0),
    ]


def test_members_above_a_minimum_and_pods_without_a_group_leave_alone():
    solo = pod("solo", group="", node="n1", cpu=2)
    outcome = simulate(world(*pods("low", 4, node="n1"), solo, cpu=6, minimum=2), Policy())
    victims = leaving(outcome)
    assert victims.keys() == {"low", "solo"}
    assert (len(victims["low"][0]), victims["low"][1]) == (2, False)
    assert victims["solo"] == (["solo"], False, "high", 100)
    bound = {each.key.name: len(each.placements) for each in outcome.groups}
    assert bound == {"high": 4, "low": 2}


@pytest.mark.parametrize(("priority", "waits", "end_s"), [(100, [], 30), (0, ["solo"], 0)])
def test_pods_without_a_group_preempt_and_are_bound_though_no_group_is_there(priority, waits, end_s):
    """The clock stood still without groups, and nobody told that the place is reserved on the API server."""
    low = [pod(f"low-{at}", group="", node="n1", grace_s=30) for at in range(2)]
    solo = pod("solo", group="", priority=priority, created=10.0)
    outcome = simulate(World(nodes=[node("n1", cpu=2)], pods=[*low, solo], start=START), Policy())
    assert [each.key.name for each in outcome.waiting_pods] == waits
    assert (round(outcome.decisions[-1].at), len(leaving(outcome))) == (end_s, 0 if waits else 1)


def test_nobody_leaves_for_a_class_that_preempts_nobody_or_where_preemption_is_off():
    held = world(*pods("low", 4, node="n1"))
    assert leaving(simulate(held, Policy(preemption=Preemption(enabled=False)))) == {}
    held.priority_classes["high"] = PriorityClass(100, preempts=False)
    assert leaving(simulate(held, Policy())) == {}


@pytest.mark.parametrize("delay_s", [0.0, 20.0])
def test_nobody_leaves_for_two_groups_that_are_planned_at_the_same_time(delay_s):
    """After a plan was opened everything was collected anew, with those who were to leave for it."""
    holders = ("first", "second")
    outcome = simulate(
        World(
            nodes=[node("n1", cpu=4), node("n2", cpu=4)],
            groups=[
                *(group(f"low-{at}", min_member=4) for at in (1, 2)),
                *(group(name, min_member=4, priority_class="high") for name in holders),
            ],
            pods=[
                *(each for at in (1, 2) for each in pods(f"low-{at}", 4, node=f"n{at}")),
                *(each for name in holders for each in pods(name, 4)),
            ],
            priority_classes={"high": PriorityClass(100)},
            start=START,
        ),
        Policy(preemption=Preemption(delay_s=delay_s)),
    )
    victims = leaving(outcome)
    assert {name: victims[name][2] for name in victims}.keys() == {"low-1", "low-2"}
    assert sorted(holder for _, _, holder, _ in victims.values()) == ["first", "second"]
    assert sorted(len(each.placements) for each in outcome.groups) == [0, 0, 4, 4]


def budget(allowed: int, name: str = "b") -> DisruptionBudget:
    return DisruptionBudget("default", name, (Requirement("a", "In", ("b",)),), allowed=allowed)


COVERED: dict[str, Any] = {"labels": {"a": "b"}, "node": "n1"}


@pytest.mark.parametrize(("allowed", "leave"), [(3, 0), (4, 4)])
def test_a_budget_that_does_not_allow_a_group_to_go_keeps_it(allowed, leave):
    held = world(*pods("low", 4, ready=True, **COVERED), budgets={"default/b": budget(allowed)})
    outcome = simulate(held, Policy())
    assert sum(len(uids) for uids, *_ in leaving(outcome).values()) == leave


def test_a_plan_beyond_the_budgets_ends_when_the_api_server_has_refused_for_long_and_so_does_the_simulation():
    held = world(*pods("low", 4, ready=True, **COVERED), budgets={"default/b": budget(2)})
    outcome = simulate(held, Policy(preemption=Preemption(exceeds_budgets=True)))
    assert leaving(outcome) == {"low": (["low-0", "low-1"], True, "high", 100)}
    assert {each.key.name: len(each.placements) for each in outcome.groups}["high"] == 0


def test_a_terminating_pod_of_the_files_is_gone_at_its_end_and_nobody_leaves_for_what_it_frees():
    ends = pods("low", 4, node="n1", terminating=True, gone_by=9e8 + 45)
    outcome = simulate(world(*ends), Policy(), today=9e8)
    assert leaving(outcome) == {}
    [at] = [each.at for each in outcome.decisions if each.placed]
    assert at == 45


@pytest.mark.parametrize("days", [1, 30, 3000])
def test_a_pod_that_terminates_for_long_takes_no_longer_to_simulate(days, monkeypatch):
    """Regression: the group that waits for it was tried every five minutes, which took a minute for 30 days."""
    calls: list[float] = []
    handle = Machine.handle

    def counting(machine, events, now):
        calls.append(now)
        return handle(machine, events, now)

    monkeypatch.setattr(Machine, "handle", counting)
    end_s = days * 86_400
    gone = pods("low", 4, node="n1", terminating=True, gone_by=START + end_s)
    outcome = simulate(world(*gone), Policy())
    assert (end_s, "high", "Scheduled") in told(outcome)
    assert len(calls) < 400


def test_a_time_out_in_between_is_told_at_its_time():
    """Tries become rare while nothing changes, but what happens for the first time does not wait for the next one."""
    gone = pods("low", 4, node="n1", terminating=True, gone_by=START + 86_400)
    patient = group("patient", min_member=1, max_schedule_time_s=40_000.0)
    there = world(*gone, *pods("patient", 1, cpu=99))
    found = simulate(dataclasses.replace(there, groups=[*there.groups, patient]), Policy())
    assert (40_000, "patient") in [(at, name) for at, name, _ in told(found)]


class TestEvictions:
    def test_a_pod_terminates_for_its_grace_period_and_is_gone_then(self):
        evictions = Evictions()
        left, events = evictions.evict(pod("a", node="n1", grace_s=20), 100.0)
        assert left is not None
        assert (left.terminating, left.gone_by, events[0]) == (True, 120.0, PodEvicted("uid-default/a"))
        assert (evictions.next_end(), evictions.take_ended(119.9)) == (120.0, [])
        assert evictions.take_ended(120.0) == ["uid-default/a"]
        assert evictions.next_end() == float("inf")

    def test_without_a_grace_period_it_is_gone_at_once(self):
        left, events = Evictions().evict(pod("a", node="n1", grace_s=0), 100.0)
        assert (left, events[-1]) == (None, PodGone("uid-default/a"))

    def test_a_second_eviction_of_one_pod_is_accepted_and_changes_nothing(self):
        evictions = Evictions([budget(1)])
        left, _ = evictions.evict(pod("a", ready=True, **COVERED), 100.0)
        assert left is not None
        again, events = evictions.evict(left, 110.0)
        assert (again, events) == (left, [PodEvicted(left.uid)])
        assert evictions.take_ended(130.0) == [left.uid]

    def test_a_budget_allows_as_many_ready_pods_as_it_says_and_any_number_of_others(self):
        evictions = Evictions([budget(1)])
        first, second = pod("x", ready=True, **COVERED), pod("y", ready=True, **COVERED)
        unready = pod("z", **COVERED)
        seen = next(each.budget for each in evictions.evict(first, 100.0)[1] if isinstance(each, BudgetSeen))
        assert (seen.allowed, seen.disrupted) == (0, frozenset({"x"}))
        [refused] = evictions.evict(second, 100.0)[1]
        assert isinstance(refused, EvictionRefused)
        assert refused.why is Spared.BUDGET
        assert PodEvicted(unready.uid) in evictions.evict(unready, 100.0)[1]

    def test_a_pod_under_two_budgets_is_never_evicted(self):
        [refused] = Evictions([budget(9), budget(9, "c")]).evict(pod("a", **COVERED), 100.0)[1]
        assert isinstance(refused, EvictionRefused)
        assert refused.why is Spared.FORBIDDEN
