"""Preemption keeps PodDisruptionBudgets, of all that leaves together and of all plans together."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import EvictPod
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.results import EvictionRefused, Spared
from gangsched.core.objects.shape import Requirement
from tests.builders import node
from tests.preempting import alone, cluster, end, evicted, gang, holder, is_whole, names, record, victims


def budget(allowed: int, name: str = "all", selector: tuple[Requirement, ...] = ()) -> DisruptionBudget:
    return DisruptionBudget("default", name, selector, allowed=allowed)


READY = {"ready": True}
APP_P = (Requirement("app", "In", ("p",)),)


def test_a_budget_that_allows_one_of_two_is_not_exceeded():
    harness = cluster(node(cpu=2), alone("p0", **READY), alone("p1", **READY))
    harness.add(budget(1))
    assert victims(harness, *holder(2)) == []
    harness.wait(5, budget(2))
    assert evicted(harness) == ["p0", "p1"]


@pytest.mark.parametrize(("allowed", "ready", "leave"), [(3, True, 0), (4, True, 4), (0, False, 4)])
def test_a_budget_over_a_whole_group_allows_all_of_it_or_none(allowed, ready, leave):
    harness = cluster(node(cpu=4), *gang("low", 4, pods_with={"ready": ready}))
    harness.add(budget(allowed))
    assert len(victims(harness, *holder(1))) == leave


def test_a_pod_that_terminates_is_counted_once_by_its_budget():
    """Regression: what left for one group was counted by the budget and by us, so that nobody left for another one."""
    there = [alone(f"p{at}", cpu=4, node=f"n{at}", **READY) for at in range(5)]
    harness = cluster(*(node(f"n{at}", cpu=4) for at in range(5)), *there)
    harness.add(budget(4))
    assert len(victims(harness, *holder(2, name="a", pods_with={"cpu": 4}))) == 2
    assert len(victims(harness, *holder(1, name="b", pods_with={"cpu": 4}))) == 1
    assert not victims(harness, *holder(2, name="c", pods_with={"cpu": 4})), "the budget allows one more"


def test_budgets_may_be_exceeded_where_the_settings_prefer_it_and_there_is_no_other_way():
    harness = cluster(node(cpu=4), *gang("low", 4, pods_with=READY), exceeds_budgets=True)
    harness.add(budget(1))
    assert len(victims(harness, *holder(4))) == 1
    harness.wait(10, budget(3))
    assert evicted(harness) == names("low", range(4))


@pytest.mark.parametrize("beside", [{}, READY], ids=["not ready", "under a budget that allows it"])
def test_nobody_leaves_before_a_budget_that_is_exceeded_has_allowed_its_part(beside):
    """Found by random worlds: all that were under some budget were asked at once, and one was refused for good."""
    harness = cluster(
        node(cpu=3), *gang("low", 2, pods_with=READY), alone("p", labels={"app": "p"}, **beside), exceeds_budgets=True
    )
    others = (Requirement("app", "NotIn", ("p",)),)
    harness.add(*([budget(0)] if not beside else [budget(0, "low", others), budget(1, "p", APP_P)]))
    assert victims(harness, *holder(3), wait_s=90) == []
    harness.wait(400, *(replace(each, allowed=2) for each in harness.budgets.values()))
    assert evicted(harness) == ["low-0", "low-1", "p"]


@pytest.mark.parametrize(("counts_unready", "leave"), [(True, []), (False, ["bad", "good"])])
def test_nobody_leaves_beside_an_unready_pod_whose_eviction_its_budget_refuses(counts_unready, leave):
    """kubernetes/kubernetes#72320: pods that are not ready counted as free of every budget, so `good` left in vain."""
    runs = {"cpu": 2, "phase": PodPhase.RUNNING}
    bad, good = (Requirement("app", "In", (name,)) for name in ("bad", "good"))
    harness = cluster(
        *(node("a", cpu=2), node("b", cpu=2)),
        alone("bad", node="a", labels={"app": "bad"}, **runs),
        alone("good", node="b", labels={"app": "good"}, **runs, **READY),
    )
    harness.add(replace(budget(0, "bad", (bad,)), counts_unready=counts_unready), budget(1, "good", (good,)))
    assert victims(harness, *holder(2, pods_with={"cpu": 2}), wait_s=300) == leave


def test_a_pod_under_two_budgets_stays():
    harness = cluster(node(cpu=1), alone("p", **READY))
    harness.add(budget(5), budget(5, "another"))
    assert victims(harness, *holder(1)) == []


def test_two_plans_do_not_exceed_a_budget_together():
    harness = cluster(node(cpu=2), alone("p0", **READY), alone("p1", **READY))
    harness.add(budget(1))
    # Its searches let the bucket of evictions fill, so that both plans are made in one call.
    harness.wait(60, *holder(1, name="hopeless", pods_with={"cpu": 64}))
    refused: list[str] = []
    harness.refuse_eviction = lambda effect: (
        refused.append(effect.name) if harness.budgets["default/all"].allowed < 1 else None
    )
    assert len(victims(harness, *holder(1), *holder(1, name="next"), wait_s=30)) == 1
    assert refused == []


def with_one_under_a_budget(*others: str):
    """Pods that take a whole node each, and p, whose budget allows its eviction."""
    harness = cluster(*(node(name, cpu=1) for name in (*others, "p")), *map(alone, others))
    harness.add(budget(1, selector=APP_P))
    harness.settle(alone("p", labels={"app": "p"}, **READY))
    return harness


def test_pods_under_budgets_leave_first():
    harness = with_one_under_a_budget("a", "z")
    asked: list[str] = []
    harness.refuse_eviction = lambda effect: asked.append(effect.name)
    assert victims(harness, *holder(3)) == ["a", "p", "z"]
    assert asked[0] == "p"
    end(harness)
    assert is_whole(harness, "high", 3)


@pytest.mark.without("all", why="a new leader does not know who has left")
def test_a_group_under_a_budget_that_has_left_first_counts_as_preempted_once():
    """Regression: it was marked once more when the next one was to leave."""
    harness = cluster(node("n1", cpu=2), *gang("first", 2, pods_with={"labels": {"app": "p"}, **READY}))
    harness.add(node("n2", cpu=2), *gang("second", 2))
    harness.put_budget(budget(2, selector=APP_P))
    harness.settle()
    harness.eviction_takes_s = lambda _: 0.5
    assert len(victims(harness, *holder(4))) == 4
    end(harness)
    assert [record(harness, name).preemptions for name in ("first", "second")] == [1, 1]


def test_nobody_else_leaves_if_the_server_refuses_to_evict_those_under_budgets():
    harness = with_one_under_a_budget("a", "z")
    harness.refuse_eviction = refusing("p", times=1000)
    assert victims(harness, *holder(3), wait_s=90) == []


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader searches anew, with the new node")
def test_the_others_stay_if_the_group_fits_once_those_under_budgets_have_left():
    harness = with_one_under_a_budget("a")
    harness.refuse_eviction = refusing("p", times=3)
    assert victims(harness, *holder(2), wait_s=1) == []
    harness.wait(60, node("n3", cpu=1))
    assert evicted(harness) == ["p"]
    end(harness)
    assert is_whole(harness, "high", 2)


def refusing(name: str, *, times: int):
    """Refuses so many evictions of the pod."""
    left = [times]

    def refuse(effect: EvictPod) -> EvictionRefused | None:
        left[0] -= effect.name == name
        if effect.name != name or left[0] < 0:
            return None
        return EvictionRefused(effect.uid, Spared.BUDGET, "no")

    return refuse
