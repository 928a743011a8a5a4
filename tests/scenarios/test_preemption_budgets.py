"""Preemption keeps PodDisruptionBudgets, of all that leaves together and of all plans together."""

from __future__ import annotations

import pytest

from gangsched.core.objects.disruption_budget import DisruptionBudget
from tests.builders import node
from tests.preempting import alone, cluster, end, evicted, gang, holder, is_whole, names, victims


def budget(allowed: int, name: str = "all", **fields) -> DisruptionBudget:
    return DisruptionBudget("default", name, (), allowed=allowed, **fields)


READY = {"ready": True}


def test_a_budget_that_allows_one_of_two_is_not_exceeded():
    harness = cluster(node(cpu=2), alone("p0", **READY), alone("p1", **READY))
    harness.put_budget(budget(1))
    assert victims(harness, *holder(2)) == []
    harness.put_budget(budget(2))
    harness.wait(5)
    assert evicted(harness) == ["p0", "p1"]


def test_those_leave_whom_budgets_allow_though_more_work_is_lost():
    harness = cluster(node(cpu=3), alone("old"))
    harness.wait(1000)
    harness.add(alone("p0", labels={"app": "p"}, **READY), alone("p1", labels={"app": "p"}, **READY))
    harness.put_budget(budget(1))
    harness.settle()
    assert victims(harness, *holder(2)) in (["old", "p0"], ["old", "p1"])
    end(harness)
    assert is_whole(harness, "high", 2)


@pytest.mark.parametrize(("allowed", "ready", "leave"), [(3, True, 0), (4, True, 4), (0, False, 4)])
def test_a_budget_over_a_whole_group_allows_all_of_it_or_none(allowed, ready, leave):
    harness = cluster(node(cpu=4), *gang("low", 4, pods_with={"ready": ready}))
    harness.put_budget(budget(allowed))
    assert len(victims(harness, *holder(1))) == leave


def test_budgets_may_be_exceeded_where_the_settings_prefer_it_and_there_is_no_other_way():
    harness = cluster(node(cpu=4), *gang("low", 4, pods_with=READY), exceeds_budgets=True)
    harness.put_budget(budget(1))
    assert len(victims(harness, *holder(4))) == 1
    harness.put_budget(budget(3))
    harness.wait(10)
    assert evicted(harness) == names("low", range(4))


def test_a_pod_under_two_budgets_stays():
    harness = cluster(node(cpu=1), alone("p", **READY))
    harness.put_budget(budget(5), budget(5, "another"))
    assert victims(harness, *holder(1)) == []


def test_two_plans_do_not_exceed_a_budget_together():
    harness = cluster(node(cpu=2), alone("p0", **READY), alone("p1", **READY))
    harness.put_budget(budget(1))
    # Its searches let the bucket of evictions fill, so that both plans are made in one call.
    harness.add(*holder(1, name="hopeless", pods_with={"cpu": 64}))
    harness.wait(60)
    refused: list[str] = []
    harness.refuse_eviction = lambda effect: (
        refused.append(effect.name) if harness.budgets["default/all"].allowed < 1 else None
    )
    assert len(victims(harness, *holder(1), *holder(1, name="next"), wait_s=30)) == 1
    assert refused == []
