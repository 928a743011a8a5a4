"""The judge of preemption finds what it is to find: each story is a machine that does something wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import EvictPod, PatchStatus
from gangsched.core.objects.events import GroupSeen, PodSeen
from gangsched.core.objects.policy import Policy, Preemption
from gangsched.core.objects.status import PREEMPTION, Place, Reservation
from tests.builders import node
from tests.plan_worlds import Playing
from tests.preempting import alone, gang


def there(*things, asked: int = 2) -> Playing:
    """Two nodes of two CPUs with these things on them, and a group that asks for so many CPUs of one node."""
    harness = Playing(Policy(preemption=Preemption(enabled=False)))
    harness.put_class("high", 100)
    harness.put_class("low", 10)
    harness.settle(node("n1", cpu=2), node("n2", cpu=2), *things)
    harness.settle(*gang("h", 1, priority_class="high", pods_with={"cpu": asked}))
    return harness


def preempt(harness: Playing, *names: str, reserved: bool = True, holder: str = "h") -> None:
    """Act as a machine that reserves a node for the group and evicts these."""
    held = Reservation(0.0, (Place("n1", "", 1, (f"{holder}-0",), ()),), PREEMPTION)
    found = harness.group(f"default/{holder}")
    effect = PatchStatus(found.key, found.uid, replace(found.status, reservation=held))
    if reserved:
        harness.judge.decided([effect])
        harness.groups[found.key] = replace(found, status=effect.status)
    evictions = [EvictPod(harness.pod(f"default/{name}").uid, "default", name, PREEMPTION) for name in names]
    harness.judge.decided(evictions)
    harness.judge.rest()


def mark(harness: Playing) -> None:
    """Note in the status of `low` that it is to leave."""
    found = harness.group("default/low")
    record = found.status.record
    assert record is not None
    status = replace(found.status, record=replace(record, preempted_at=harness.now))
    harness.groups[found.key] = replace(found, status=status)
    harness.judge.hear([GroupSeen(harness.groups[found.key])])


def on(where: str, *names: str, **fields) -> list:
    return [alone(name, node=where, **fields) for name in names]


def low(number: int, least: int) -> list:
    """Members of a group on the first node."""
    return [*gang("low", number, least=least, priority_class="low", pods_with={"node": "n1"})]


FULL: Sequence = on("n2", "full", cpu=2, priority=100)


def test_who_must_leave_may():
    harness = there(*FULL, *on("n1", "a", "b"))
    preempt(harness, "a", "b")
    assert harness.judge.found["minimal"] == 2
    assert harness.judge.found["level"] == 1


@pytest.mark.parametrize(
    ("things", "asked", "evicted", "said"),
    [
        pytest.param(on("n1", "a", "b", priority=100), 2, ["a", "b"], "higher priority", id="equal priority"),
        pytest.param(on("n1", "a", "b"), 2, ["a"], "in vain", id="too few"),
        pytest.param(on("n1", "a", "b"), 1, ["a", "b"], "need not leave", id="too many"),
        pytest.param(low(2, 2), 2, ["low-0", "low-1"], "without a mark", id="a gang without a mark"),
    ],
)
def test_what_is_wrong_at_an_eviction_is_found(things, asked, evicted, said):
    harness = there(*FULL, *things, asked=asked)
    with pytest.raises(AssertionError, match=said):
        preempt(harness, *evicted)


def test_an_eviction_before_the_reservation_is_written_is_found():
    harness = there(*FULL, *on("n1", "a", "b"))
    with pytest.raises(AssertionError, match="before a reservation"):
        preempt(harness, "a", "b", reserved=False)


def test_a_higher_level_than_is_needed_is_found():
    harness = there(*on("n1", "a", "b", priority=20), *on("n2", "c", "d", priority=10))
    with pytest.raises(AssertionError, match="priority 20 need not leave"):
        preempt(harness, "a", "b")


def test_a_budget_that_two_exceed_together_is_found():
    harness = there(*FULL, *on("n1", "a", "b", ready=True))
    harness.settle(DisruptionBudget("default", "all", (), allowed=1))
    with pytest.raises(AssertionError, match="2 leave of the budget"):
        preempt(harness, "a", "b")


def test_a_group_that_is_left_in_part_is_found():
    harness = there(*FULL, *low(2, 2), asked=1)
    mark(harness)
    with pytest.raises(AssertionError, match="left with 1 of 2"):
        preempt(harness, "low-0")


def test_room_that_is_reserved_and_given_to_a_later_pod_is_found():
    harness = there(*FULL, *on("n1", "a", "b"))
    preempt(harness, "a", "b")
    harness.judge.hear(PodSeen(each) for each in on("n1", "c", bound_at=harness.now))
    harness.judge.rest()
    harness.now += 3
    with pytest.raises(AssertionError, match="too much for default/h"):
        harness.judge.rest()


def test_a_group_for_which_others_have_left_and_that_is_not_bound_is_found():
    harness = there(*FULL, *on("n1", "a", "b"))
    preempt(harness, "a", "b")
    harness.delete("default/a", "default/b")
    harness.judge.hear(harness.inbox)
    with pytest.raises(AssertionError, match="left in vain"):
        harness.judge.end()


def test_a_group_that_waits_though_others_could_leave_is_found():
    harness = there(*FULL, *on("n1", "a", "b"))
    harness.policy = replace(harness.policy, preemption=Preemption())
    with pytest.raises(AssertionError, match="waits though others could leave"):
        harness.judge.end()
