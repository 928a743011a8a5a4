"""What becomes of a plan whose nodes stop accepting its members: cordoned, tainted, or not ready for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import PatchStatus
from gangsched.core.objects.results import StatusRefused
from gangsched.core.objects.shape import Requirement
from tests.builders import node, pod
from tests.harness import Harness
from tests.preempting import alone, cluster, end, evicted, gang, holder, is_whole, names, victims

BACK_S = 30
"""A node that is not ready may be back within so many seconds."""
FLAP_S = 5
YOUNG, OLD = names("young", range(4)), names("old", range(4))
CLOSED: dict[str, dict[str, Any]] = {
    "cordoned": {"unschedulable": True},
    "tainted": {"taints": ["maintenance:NoSchedule"]},
    "relabelled": {"labels": {"disk": "hdd"}},
}
NOT_READY: dict[str, Any] = {
    "taints": ["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]
}
UNREACHABLE: dict[str, Any] = {"taints": ["node.kubernetes.io/unreachable:NoExecute"]}
ASKED: dict[str, Any] = {"pods_with": {"node_selector": {"disk": "ssd"}}}


def becomes(harness: Harness, name: str = "n1", **fields: Any) -> None:
    """The node has these properties, and otherwise those of the beginning."""
    harness.settle(node(name, **{"cpu": 4, "labels": {"disk": "ssd"}, **fields}))


def two_nodes(**young_with: Any) -> Harness:
    """Those on n1 are younger than those on n2, so they leave first."""
    harness = cluster()
    becomes(harness, "n2")
    harness.settle(*gang("old", 4))
    harness.wait(1000)
    becomes(harness)
    harness.settle(*gang("young", 4, **young_with))
    return harness


def unmarked(name: str) -> Callable[[PatchStatus], StatusRefused | None]:
    """Refuse to write the status of this group."""
    return lambda effect: StatusRefused(effect.key, stale=False) if effect.key.name == name else None


def in_two_batches() -> Harness:
    """Of two pods on n1 the one under a budget leaves first, and the other once that is seen, 20 s later."""
    budget = DisruptionBudget("default", "all", (Requirement("app", "In", ("a",)),), allowed=1)
    harness = cluster(budget)
    becomes(harness, "n2")
    harness.settle(alone("old", cpu=4, priority=10))
    becomes(harness)
    harness.settle(alone("first", cpu=2, labels={"app": "a"}, ready=True), alone("second", cpu=2))
    harness.eviction_is_shown_after_s = lambda _: 20.0
    assert victims(harness, *holder(4, **ASKED)) == ["first"]
    return harness


class TestANodeThatAcceptsThemNoLonger:
    @pytest.mark.parametrize("closed", CLOSED.values(), ids=CLOSED)
    def test_before_the_first_eviction_others_leave_instead(self, closed):
        harness = two_nodes()
        harness.refuse_status = unmarked("young")
        assert victims(harness, *holder(4, **ASKED)) == []
        becomes(harness, **closed)
        harness.refuse_status = lambda _: None
        harness.wait(5)
        assert evicted(harness) == OLD
        end(harness)
        assert is_whole(harness, "high", 4)
        assert is_whole(harness, "young", 4)

    @pytest.mark.without("restarts", "standbys", why="a new leader lists that the first terminates")
    def test_between_two_batches_the_second_stays(self):
        harness = in_two_batches()
        becomes(harness, unschedulable=True)
        harness.wait(60)
        assert evicted(harness) == ["first", "old"]

    @pytest.mark.parametrize("grace_s", [30, 3600])
    @pytest.mark.parametrize("closed", CLOSED.values(), ids=CLOSED)
    def test_after_all_evictions_others_leave_at_once_however_long_those_take(self, closed, grace_s):
        harness = two_nodes(pods_with={"grace_s": grace_s})
        assert victims(harness, *holder(4, **ASKED)) == YOUNG
        becomes(harness, **closed)
        harness.wait(5)
        assert evicted(harness) == OLD + YOUNG
        harness.delete(*harness.bound("default/old-"))
        harness.wait(5)
        assert is_whole(harness, "high", 4)

    def test_one_that_is_too_small_by_now_is_lost_too(self, monkeypatch):
        monkeypatch.setattr(Harness, "check_capacity", lambda _: None)
        harness = two_nodes()
        assert victims(harness, *holder(4, **ASKED)) == YOUNG
        becomes(harness, cpu=3)
        harness.wait(5)
        assert evicted(harness) == OLD + YOUNG

    def test_one_that_is_too_small_beside_those_who_stay_is_lost_too(self, monkeypatch):
        """Regression: the others went on to leave, and only then the group asked for another node."""
        monkeypatch.setattr(Harness, "check_capacity", lambda _: None)
        harness = two_nodes()
        becomes(harness, cpu=6)
        harness.settle(alone("stays", node="n1", cpu=2, priority=200))
        assert victims(harness, *holder(4, **ASKED)) == YOUNG
        becomes(harness, cpu=5)
        harness.wait(5)
        assert evicted(harness) == OLD + YOUNG
        end(harness)
        assert is_whole(harness, "high", 4)

    def test_without_anybody_else_the_group_is_told_that_it_waits_for_room_and_has_it_once_the_node_is_back(self):
        harness = cluster(node("n1", cpu=4), *gang("low", 4))
        assert len(victims(harness, *holder(4))) == 4
        harness.settle(node("n1", cpu=4, unschedulable=True))
        harness.wait(BACK_S)
        assert harness.condition("default/high").reason == "Unschedulable"
        harness.end_terminating()
        harness.wait(5)
        assert not harness.bound("default/high-")
        harness.wait(5, node("n1", cpu=4))
        assert is_whole(harness, "high", 4)

    def test_that_one_of_its_members_is_accepted_still_is_not_enough(self):
        harness = cluster(node("n1", cpu=2), *gang("low", 2))
        harness.wait(5, *holder(2)[:2], pod("high-1", group="high", priority=100, tolerations=["maintenance"]))
        assert evicted(harness) == ["low-0", "low-1"]
        harness.settle(node("n1", cpu=2, **CLOSED["tainted"]))
        harness.wait(5)
        assert harness.machine.plans == {}


class TestANodeThatIsNotReadyForAWhile:
    @pytest.mark.parametrize("closed", [NOT_READY, UNREACHABLE])
    def test_costs_nobody_else_his_place(self, closed):
        harness = two_nodes()
        assert victims(harness, *holder(4, **ASKED)) == YOUNG
        becomes(harness, **closed)
        harness.wait(FLAP_S)
        becomes(harness)
        end(harness)
        assert evicted(harness) == YOUNG
        assert is_whole(harness, "high", 4)

    def test_costs_nobody_else_his_place_if_all_have_left_meanwhile(self):
        """A kubelet that begins anew reports all at once what has ended."""
        harness = two_nodes()
        assert victims(harness, *holder(4, **ASKED)) == YOUNG
        becomes(harness, **NOT_READY)
        end(harness, wait_s=FLAP_S)
        assert not harness.bound("default/high-")
        becomes(harness)
        harness.wait(1)
        assert evicted(harness) == YOUNG
        assert is_whole(harness, "high", 4)

    @pytest.mark.parametrize("back", [True, False])
    def test_counts_if_its_device_plug_in_begins_anew(self, back):
        """Meanwhile it has no GPU, and those who leave are gone."""
        harness, ill = cluster(), replace(node("n1"), awaited=("nvidia.com/gpu",))
        harness.settle(node("n2", gpu=4), *gang("old", 4, pods_with={"gpu": 1}))
        harness.wait(1000)
        harness.settle(node("n1", gpu=4), *gang("young", 4, pods_with={"gpu": 1}))
        assert victims(harness, *holder(4, pods_with={"gpu": 1})) == YOUNG
        harness.end_terminating()
        harness.wait(BACK_S - 5, ill)
        assert evicted(harness) == YOUNG
        harness.wait(10, *([node("n1", gpu=4)] if back else []))
        assert evicted(harness) == (YOUNG if back else OLD + YOUNG)
        end(harness)
        assert is_whole(harness, "high", 4)

    def test_again_and_again_costs_nobody_else_his_place(self):
        harness = two_nodes(pods_with={"grace_s": 600})
        assert victims(harness, *holder(4, **ASKED)) == YOUNG
        for _ in range(10):
            becomes(harness, **NOT_READY)
            harness.wait(BACK_S - 10)
            becomes(harness)
            harness.wait(10)
        assert evicted(harness) == YOUNG

    @pytest.mark.without("restarts", "standbys", why="a new leader evicts a group that is marked")
    def test_keeps_those_who_were_not_evicted_yet_until_it_is_back(self):
        harness = two_nodes()
        harness.refuse_status = unmarked("young")
        assert victims(harness, *holder(4, **ASKED)) == []
        becomes(harness, **NOT_READY)
        harness.refuse_status = lambda _: None
        harness.wait(BACK_S - 10)
        assert evicted(harness) == []
        becomes(harness)
        harness.wait(5)
        assert evicted(harness) == YOUNG

    @pytest.mark.without("restarts", "standbys", why="a new leader lists that the first terminates")
    def test_keeps_the_second_batch_until_it_is_back(self):
        harness = in_two_batches()
        becomes(harness, **NOT_READY)
        harness.wait(25)
        assert evicted(harness) == ["first"]
        becomes(harness)
        harness.wait(5)
        assert evicted(harness) == ["first", "second"]

    def test_is_lost_if_it_does_not_come_back(self):
        harness = two_nodes(pods_with={"grace_s": 3600})
        assert victims(harness, *holder(4, **ASKED)) == YOUNG
        becomes(harness, **UNREACHABLE)
        harness.wait(BACK_S - 2)
        assert evicted(harness) == YOUNG
        harness.wait(4)
        assert evicted(harness) == OLD + YOUNG

    def test_is_lost_at_once_if_it_is_cordoned_once_it_is_ready(self):
        harness = two_nodes()
        assert victims(harness, *holder(4, **ASKED)) == YOUNG
        becomes(harness, **NOT_READY)
        harness.wait(FLAP_S)
        becomes(harness, unschedulable=True)
        harness.wait(1)
        assert evicted(harness) == OLD + YOUNG


@pytest.mark.without("all", why="the story replaces the leader itself")
@pytest.mark.parametrize("back", [True, False])
def test_a_new_leader_waits_for_a_node_that_is_not_ready(back):
    harness = two_nodes(pods_with={"grace_s": 3600})
    assert victims(harness, *holder(4, **ASKED)) == YOUNG
    becomes(harness, **UNREACHABLE)
    harness.restart()
    harness.wait(BACK_S - 2)
    assert evicted(harness) == YOUNG
    if back:
        becomes(harness)
    harness.wait(5)
    assert evicted(harness) == (YOUNG if back else OLD + YOUNG)
