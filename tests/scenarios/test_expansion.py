"""What an autoscaler reads: status.demand while a group waits for room, and Unschedulable only where a
node would help.
"""

from __future__ import annotations

from typing import Any

from gangsched.core.objects.effects import PatchStatus
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.status import Demand
from gangsched.core.planning.expansion import HOSTNAME
from tests.builders import amounts, group, node, pod, pods
from tests.harness import Harness


def each(count: int, domain: str = "", **requests: str) -> Demand:
    return Demand(count=count, requests=amounts(requests), domain=domain)


def waiting(count: int = 4, *, cpu: str = "1", policy: Policy | None = None, **spec) -> Harness:
    """A group of this many members of 1 CPU beside one node, a second later."""
    harness = Harness(policy)
    harness.wait(1, node("n1", cpu=cpu), group("a", **({"min_member": count} | spec)), *pods("a", count))
    return harness


def demand(harness: Harness) -> tuple[Demand, ...]:
    return harness.status("default/a").demand


def told(harness: Harness, name: str = "a-0") -> str:
    return harness.pod(f"default/{name}").condition_reason


def test_a_refused_group_demands_what_does_not_fit_and_is_bound_once_that_is_there():
    harness = waiting()
    assert demand(harness) == (each(3, cpu="1"),)
    assert harness.condition("default/a").reason == "NeverFits"
    assert told(harness) == "Unschedulable"
    for number in range(3):
        assert not harness.bound()
        harness.settle(node(f"new-{number}", cpu=1, memory=0, pods=1))
    assert len(harness.bound()) == 4
    assert demand(harness) == ()


def test_its_numbers_change_at_most_every_thirty_seconds_together_with_the_message():
    harness = waiting(max_schedule_time_s=9999.0)
    for number in range(20):
        harness.wait(5, node("n1", cpu=number % 3))
    times = [at for events, at, effects in harness.history for effect in effects if isinstance(effect, PatchStatus)]
    assert len(times) <= 1 + 100 // 30
    harness.wait(31, node("n1", cpu=2))
    assert demand(harness) == (each(2, cpu="1"),)
    assert "Only 2 of 4" in harness.condition("default/a").message


NAMED: dict[str, Any] = {"node_selector": {HOSTNAME: "n9"}}


class TestNodesByName:
    def test_members_that_no_new_node_could_help_are_not_called_unschedulable(self):
        harness = Harness.waited(1, node("n1"), group("a", min_member=2), pod("a-0"), pod("a-1", **NAMED))
        assert harness.condition("default/a").reason == "NeverFits"
        assert "a new node would not help" in harness.condition("default/a").message
        assert (told(harness, "a-0"), told(harness, "a-1")) == ("NeverFits", "NeverFits")
        assert demand(harness) == ()
        harness.wait(120)
        assert told(harness) == "NeverFits"
        harness.wait(1, node("n9", labels={HOSTNAME: "n9"}))
        assert len(harness.bound()) == 2
