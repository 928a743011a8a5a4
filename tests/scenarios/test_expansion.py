"""What an autoscaler reads: status.demand while a group waits for room, and Unschedulable only where a
node would help.
"""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.declaration import Role, Topology
from gangsched.core.objects.effects import PatchPodCondition, PatchStatus
from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.status import Demand
from gangsched.core.planning.expansion import HOSTNAME
from tests.builders import amounts, group, node, pod, pods, shape
from tests.harness import Harness


def each(count: int, domain: str = "", **requests: str) -> Demand:
    return Demand(count=count, requests=amounts(requests), domain=domain)


def waiting(count: int = 4, *, cpu: str = "1", policy: Policy | None = None, **spec) -> Harness:
    """A group of this many members of 1 CPU beside one node, a second later."""
    harness = Harness(policy)
    harness.add(node("n1", cpu=cpu), group("a", **({"min_member": count} | spec)), *pods("a", count))
    harness.wait(1)
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
        harness.add(node(f"new-{number}", cpu=1, memory=0, pods=1))
        harness.settle()
    assert len(harness.bound()) == 4
    assert demand(harness) == ()


@pytest.mark.without("leaderless", why="asserts exact times")
def test_a_group_that_times_out_goes_on_demanding_and_one_that_has_failed_does_not():
    for policy, left in ((TimeoutPolicy.RETRY, (each(3, cpu="1"),)), (TimeoutPolicy.FAIL, ())):
        harness = waiting(max_schedule_time_s=5.0, timeout_policy=policy)
        harness.wait(6)
        assert harness.status("default/a").phase in ("TimedOut", "Failed")
        assert demand(harness) == left


def test_a_group_that_becomes_incomplete_or_contradicts_itself_demands_nothing():
    harness = waiting()
    harness.delete("default/a-3")
    harness.wait(2)
    assert harness.condition("default/a").reason == "GangIncomplete"
    assert demand(harness) == ()
    harness.add(*pods("a", 1, first=3))
    harness.wait(2)
    assert demand(harness) == (each(3, cpu="1"),)
    harness.change_spec("default/a", strategy="acme.example/best")
    harness.wait(2)
    assert harness.condition("default/a").reason == "StrategyUnknown"
    assert demand(harness) == ()


def test_its_numbers_change_at_most_every_thirty_seconds_together_with_the_message():
    harness = waiting(max_schedule_time_s=9999.0)
    for number in range(20):
        harness.add(node("n1", cpu=number % 3))
        harness.wait(5)
    times = [at for events, at, effects in harness.history for effect in effects if isinstance(effect, PatchStatus)]
    assert len(times) <= 1 + 100 // 30
    harness.add(node("n1", cpu=2))
    harness.wait(31)
    assert demand(harness) == (each(2, cpu="1"),)
    assert "Only 2 of 4" in harness.condition("default/a").message


def test_the_nodes_must_be_in_the_domain_that_the_group_would_go_to():
    harness = Harness.of(*(node(zone, cpu=cpu, labels={"zone": zone}) for zone, cpu in (("a", 1), ("b", 2))))
    harness.add(group("a", min_member=3, topology=Topology(key="zone")), *pods("a", 3))
    harness.wait(1)
    [entry] = demand(harness)
    assert entry == each(1, "b", cpu="1")
    harness.add(node("elsewhere", cpu=1, labels={"zone": "a"}))
    harness.settle()
    assert harness.bound() == []
    harness.add(node("new", cpu=1, labels={"zone": "b"}))
    harness.settle()
    assert len(harness.bound()) == 3


def test_members_that_do_not_exist_yet_are_demanded_by_their_template():
    harness = Harness()
    roles = (Role("driver", 1), Role("executor", 4, template=shape(2)))
    harness.add(node("n1", cpu=3), group("a", min_member=5, roles=roles), pod("driver", role="driver"))
    harness.wait(1)
    assert harness.bound() == []
    assert demand(harness) == (each(3, cpu="2"),)
    harness.add(*(node(f"new-{number}", cpu=2, memory=0, pods=1) for number in range(3)))
    harness.wait(1)
    assert harness.bound() == ["default/driver"]
    assert demand(harness) == ()


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
        harness.add(node("n9", labels={HOSTNAME: "n9"}))
        harness.wait(1)
        assert len(harness.bound()) == 2

    def test_a_pod_is_told_once_also_after_a_restart(self):
        harness = Harness.waited(1, node("n1"), pod("plain", group="", **NAMED))
        harness.restart()
        harness.wait(100)
        assert len(harness.events("NeverFits")) == 1
        assert told(harness, "plain") == "NeverFits"
        assert not any(isinstance(effect, PatchPodCondition) for _, _, effects in harness.history for effect in effects)
