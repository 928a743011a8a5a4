"""Others leave for the replacements of lost members, all of which are placed together or none."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.results import BindRefused, Refused
from tests.builders import node, pods
from tests.harness import Harness
from tests.preempting import SET, alone, cluster, end, evicted, holder, is_whole, names, record, victims


def short(lost: int, *fillers: str, size: int = 4, **spec: Any) -> Harness:
    """A gang of priority 100 that has lost members, whose room others have taken."""
    harness = cluster(node(cpu=size), *holder(size, **spec))
    harness.delete(*(f"default/high-{at}" for at in range(lost)))
    harness.wait(40)
    harness.wait(20, *(alone(name) for name in fillers))
    assert harness.bound() == sorted(f"default/{name}" for name in (*fillers, *names("high", range(lost, size))))
    return harness


def again(first: int, count: int) -> list[Pod]:
    """Members of the gang that a controller has created again."""
    return pods("high", count, first=first, owner=SET)


def test_those_that_could_not_be_placed_together_are_placed_together_once_others_have_left():
    harness = short(2, "a")
    harness.wait(1, alone("b", priority=500))
    assert victims(harness, *again(4, 2)) == []
    harness.delete("default/b")
    harness.wait(2)
    assert is_whole(harness, "high", 3)
    assert evicted(harness) == ["a"]
    end(harness)
    assert is_whole(harness, "high", 4)


def test_nobody_leaves_if_only_one_of_two_could_be_replaced():
    harness = short(2, "a")
    harness.wait(1, alone("b", priority=500))
    assert victims(harness, *again(4, 2), wait_s=60) == []
    assert len(harness.bound("default/high-")) == 2


def test_a_replacement_that_comes_while_others_leave_for_the_first_is_planned_with_it():
    harness = short(2, "a", "b")
    assert victims(harness, *again(4, 1)) == ["a"]
    assert victims(harness, *again(5, 1)) == ["b"]
    end(harness)
    assert is_whole(harness, "high", 4)


def test_a_place_is_reserved_for_each_replacement_until_all_victims_have_left():
    harness = short(2, "a", "b")
    victims(harness, *again(4, 2))
    harness.delete("default/a")
    harness.wait(5, alone("c"))
    assert len(harness.bound("default/high-")) == 2
    assert "default/c" not in harness.bound()
    end(harness)
    assert is_whole(harness, "high", 4)


def test_each_waiting_member_and_the_group_say_that_others_leave():
    harness = short(1, "a")
    victims(harness, *again(4, 1))
    waiting = harness.pod("default/high-4")
    assert (waiting.condition_reason, waiting.nominated_node) == (Reason.WAITS_FOR_VICTIMS, "n1")
    assert len(harness.events(Reason.WAITS_FOR_VICTIMS)) == 1
    assert harness.condition("default/high").status
    assert record(harness, "high").scheduled_at


def test_a_gang_that_is_not_repaired_preempts_nobody():
    harness = short(1, "a", on_degraded=OnDegraded.IGNORE)
    assert victims(harness, *again(4, 1), wait_s=60) == []


def test_the_delay_counts_from_when_the_gang_became_short():
    harness = cluster(node(cpu=4), *holder(4), delay_s=100)
    harness.wait(200)
    harness.delete("default/high-0")
    harness.wait(40)
    harness.wait(2, alone("a"))
    assert victims(harness, *again(4, 1), wait_s=40) == []
    harness.wait(20)
    assert evicted(harness) == ["a"]


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know that bindings were refused")
def test_a_replacement_that_the_server_refuses_to_bind_takes_no_other_with_it():
    harness = short(2, "a", "b")
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "no") if effect.name == "high-5" else None
    )
    victims(harness, *again(4, 2))
    end(harness, wait_s=120)
    assert "default/high-4" in harness.bound()
    assert evicted(harness) == ["a", "b"]


@pytest.mark.parametrize("lost", [1, 2])
def test_members_lost_again_after_a_repair_are_replaced_again(lost):
    harness = short(lost, *"ab"[:lost])
    assert victims(harness, *again(4, lost)) == [*"ab"[:lost]]
    end(harness)
    assert is_whole(harness, "high", 4)
    harness.delete(*(f"default/high-{at}" for at in range(4, 4 + lost)))
    harness.wait(40)
    harness.wait(20, *(alone(name) for name in "cd"[:lost]))
    assert victims(harness, *again(6, lost)) == [*"cd"[:lost]]
    end(harness)
    assert is_whole(harness, "high", 4)
    assert not harness.status("default/high").reservation


@pytest.mark.parametrize("slow", [False, True])
def test_while_some_of_the_replacements_are_being_bound_nobody_else_is_asked_to_leave(slow):
    """Regression: a plan was opened, and ended as started at once, again and again, each with a write of the status."""
    harness = short(2, "a")
    harness.withhold = lambda _: slow
    if not slow:
        harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "503")
    harness.wait(30, *again(4, 2))
    assert sum(harness.machine.stats().ended.values()) <= 1
    harness.refuse_bind, harness.withhold = (lambda _: None), (lambda _: False)
    harness.send_withheld()
    harness.wait(60)
    end(harness, wait_s=30)
    assert evicted(harness) == ["a"]
    assert is_whole(harness, "high", 4)
