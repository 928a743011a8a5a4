"""What explain says about preemption: the open plan of a group or, without one, why it has none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from gangsched.cli.explain_text import _BARS, _OBSTACLES, lines
from gangsched.core.contention.bars import Bar
from gangsched.core.contention.pool import Obstacle
from gangsched.core.contention.prospects import OpenPlan, Prospect
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import (
    BudgetsReplaced,
    Event,
    GroupsReplaced,
    NodesReplaced,
    PodsReplaced,
    PriorityClassesReplaced,
    Synced,
)
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy, Preemption
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.record import Minima, Phase, Record
from gangsched.core.objects.status import PREEMPTION, GroupStatus, Place, Reservation
from gangsched.views import group_row
from gangsched.views.diagnosed import Diagnosis
from gangsched.views.diagnosis import from_cluster
from gangsched.views.diagnosis_json import as_object
from gangsched.views.group_rows import rows
from tests.builders import group, node, pod, pods
from tests.preempting import alone, cluster, gang, holder

NOW = 1_000_000.0
CLASSES = {
    "high": PriorityClass(100),
    "low": PriorityClass(1),
    "gentle": PriorityClass(100, preempts=False),
}
HIGH = group("high", min_member=4, priority_class="high")


def diagnose(
    *there: Pod,
    asking: Group = HIGH,
    groups: Sequence[Group] = (),
    budgets: Sequence[DisruptionBudget] = (),
    **rules: Any,
) -> Diagnosis:
    """The diagnosis of the group `high`, which needs the whole node that these pods fill."""
    events: list[Event] = [
        PriorityClassesReplaced(tuple(CLASSES.items())),
        BudgetsReplaced(tuple(budgets)),
        NodesReplaced((node("n1", cpu=4),)),
        GroupsReplaced((asking, *groups)),
        PodsReplaced((*there, *pods("high", 4))),
        Synced(),
    ]
    found = from_cluster(events, asking.key, policy=Policy(preemption=Preemption(**rules)), now=NOW)
    assert found is not None
    return found


def prospect(*there: Pod, **fields: Any) -> Prospect:
    found = diagnose(*there, **fields).preemption
    assert found is not None
    return found


def solo(number: int = 1, **fields: Any) -> list[Pod]:
    """Pods without a group on the node, which together have its 4 CPUs."""
    return [pod(f"solo-{at}", group="", cpu=4 // number, **{"node": "n1", **fields}) for at in range(number)]


@pytest.mark.parametrize(
    ("spec", "rules", "bar"),
    [
        ({"priority_class": "high"}, {"enabled": False}, Bar.DISABLED),
        ({"priority_class": "high", "preempts": False}, {}, Bar.NEVER),
        ({"priority_class": "gentle"}, {}, Bar.CLASS),
        ({"priority": 100}, {}, Bar.NUMBER),
    ],
)
def test_a_group_that_may_not_preempt_is_told_which_rule_forbids_it(spec, rules, bar):
    assert prospect(*solo(), asking=group("high", min_member=4, **spec), **rules) == Prospect(bar=bar)


def test_it_is_told_who_would_leave_for_a_group_that_has_no_plan_yet():
    found = prospect(*pods("low", 4, node="n1"), groups=[group("low", min_member=4)])
    assert (found.pods, found.groups, found.plan, found.obstacles) == (4, 1, None, {})
    alone = prospect(*solo(2))
    assert (alone.pods, alone.groups) == (2, 0)


def test_with_a_delay_the_time_is_told_from_which_on_others_may_leave():
    found = prospect(*solo(), delay_s=300.0)
    assert (found.pods, found.due) == (1, NOW + 300)


BUDGET = DisruptionBudget("default", "b", (), allowed=1)
OTHER = DisruptionBudget("default", "c", (), allowed=1)


@pytest.mark.parametrize(
    ("fields", "rules", "budgets", "obstacle"),
    [
        ({"priority": 100}, {}, (), Obstacle.PRIORITY),
        ({"scheduler": "other"}, {}, (), Obstacle.SCHEDULER),
        ({"owner": Owner("Node", "n1", "uid-n1")}, {}, (), Obstacle.NODE),
        ({}, {"spares_uncontrolled": True}, (), Obstacle.UNCONTROLLED),
        ({}, {}, (BUDGET, OTHER), Obstacle.BUDGETS),
        ({"bound_at": NOW - 10}, {"min_runtime_s": 60.0}, (), Obstacle.PROTECTED),
    ],
)
def test_it_is_counted_which_pods_may_not_leave_by_what_keeps_them(fields, rules, budgets, obstacle):
    found = prospect(*solo(2, **fields), budgets=budgets, **rules)
    assert (found.obstacles, found.pods, found.bar, found.exhausted) == ({obstacle: 2}, 0, None, False)
    protected = NOW + 50 if obstacle is Obstacle.PROTECTED else 0.0
    assert found.protected_until == protected


def test_pods_that_budgets_do_not_allow_to_leave_together_are_counted():
    low = [group("low", min_member=4)]
    found = prospect(*pods("low", 4, node="n1", ready=True), groups=low, budgets=[BUDGET])
    assert found.obstacles == {Obstacle.BUDGET: 4}
    assert (
        prospect(*pods("low", 4, node="n1", ready=True), groups=low, budgets=[BUDGET], exceeds_budgets=True).pods == 4
    )


def test_a_group_that_fits_once_terminating_pods_are_gone_preempts_nobody():
    assert prospect(*solo(2, terminating=True, gone_by=NOW + 20)).fits


def test_nothing_is_told_of_a_group_that_does_not_wait_for_room_or_could_never_fit():
    assert diagnose().preemption is None
    assert diagnose(*solo(), asking=group("high", min_member=5, priority_class="high")).preemption is None


def planned() -> Diagnosis:
    """A leader has opened a plan: the group `low` is marked, and one of its pods terminates already."""
    places = (Place("n1", "", 4, tuple(f"high-{at}" for at in range(4)), (("cpu", 1000),)),)
    record = Record(phase=Phase.QUEUED, run_start=NOW - 100)
    asking = group(
        "high",
        min_member=4,
        priority_class="high",
        status=GroupStatus(record, reservation=Reservation(NOW + 60, places, kind=PREEMPTION)),
    )
    marked = Record(
        phase=Phase.SCHEDULED,
        run_start=NOW - 90,
        scheduled_at=NOW - 90,
        satisfied=Minima(4),
        preempted_at=NOW - 5,
        preempted_by="Priority",
        preemptions=1,
    )
    first, *others = pods("low", 4, node="n1", bound_at=NOW - 90)
    leaves = msgspec.structs.replace(first, terminating=True, gone_by=NOW + 25)
    low = group("low", min_member=4, status=GroupStatus(marked))
    return diagnose(leaves, *others, asking=asking, groups=[low])


def test_of_an_open_plan_it_is_told_how_many_leave_of_how_many_groups_since_when_and_until_when():
    found = planned()
    assert (found.reason, found.preemption) == ("WaitsForVictims", Prospect(plan=OpenPlan(4, 1, NOW - 5, NOW + 60)))


def test_a_program_reads_the_same():
    told = json.loads(msgspec.json.encode(as_object(planned())))["preemption"]
    assert told["plan"] == {"pods": 4, "groups": 1, "since": "1970-01-12T13:46:35Z", "expires": "1970-01-12T13:47:40Z"}
    told = json.loads(msgspec.json.encode(as_object(diagnose(*solo(2, priority=100)))))["preemption"]
    assert (told["plan"], told["never"], told["obstacles"]) == (None, None, {"Priority": 2})
    assert told["wouldLeave"] == {"pods": 0, "groups": 0}


@pytest.mark.parametrize(
    "found",
    [
        planned(),
        diagnose(*solo(2)),
        *(diagnose(*solo(), **rules) for rules in ({"enabled": False}, {"min_runtime_s": 60.0}, {"delay_s": 9.0})),
        diagnose(*solo(2, terminating=True, gone_by=NOW + 20)),
    ],
)
def test_a_person_reads_one_row_about_it(found):
    assert sum(line.startswith("  preempts ") for line in lines(found)) == 1


@pytest.mark.parametrize("bar", Bar)
def test_each_rule_that_forbids_it_has_a_sentence(bar):
    assert _BARS[bar]
    assert _OBSTACLES.keys() == set(Obstacle)


def test_a_row_says_who_leaves_for_the_group():
    harness = cluster(node(cpu=4), *gang("low", 2), alone("a"), alone("b"))
    harness.wait(2, *holder(4))
    plans = {row.key.name: row.plan for row in rows(harness.machine)}
    assert plans["low"] is None
    assert plans["high"] is not None
    assert plans["high"].pods == {GroupKey("default", "low"): 2, None: 2}
    planned = next(row for row in rows(harness.machine) if row.plan is not None)
    told = json.loads(msgspec.json.encode(group_row.as_object(planned)))["plan"]
    assert told["leaving"] == [{"group": "default/low", "pods": 2}, {"group": None, "pods": 2}]
    assert told["since"] < told["expires"]
