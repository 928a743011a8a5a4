"""Contract rule 6 with more gangs than one call has time for: nothing is bound before what is ahead of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from gangsched.core import upkeep
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import (
    Event,
    ForeignGroupSeen,
    GroupSeen,
    NodeSeen,
    PodSeen,
    PriorityClassesReplaced,
    PriorityClassSeen,
    Synced,
    TimePassed,
)
from gangsched.core.objects.policy import FifoRules, NamespaceLimits, Policy
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.planning import budget as units
from tests.builders import foreign_group, group, node, pod
from tests.effort import examples

MOST_BEYOND = 120_000
"""A call may exceed its budget by the work on one gang, and by one evaluation of its members on all nodes."""
CLASSES = {"high": PriorityClass(7), "low": PriorityClass(-3)}
LANE = {"resource_channel": "batch"}


@dataclass(frozen=True)
class Contender:
    """A complete gang of `size` pods of one CPU, its place in the order, and the events by which it appears."""

    name: str
    turn: tuple[float, ...]
    size: int
    events: tuple[Event, ...]


def contender(at: int, draw: Random, *, lane: bool) -> Contender:
    """A gang declared in one of the ways in which its priority and its age reach the machine."""
    name, size = f"g{at:04}", draw.randint(1, 3)
    priority, created = draw.randint(-2, 4), float(draw.randint(1, 9))
    selector = LANE if lane else {}
    fields: dict[str, Any] = {"created": created + draw.randint(0, 2), "node_selector": selector}
    how = draw.choice(("spec", "class", "members", "pods", "foreign", "added"))
    if how == "class":
        chosen = draw.choice(sorted(CLASSES))
        priority = CLASSES[chosen].value
        declared: list[Event] = [GroupSeen(group(name, min_member=size, created=created, priority_class=chosen))]
    elif how == "foreign":
        declared = [
            ForeignGroupSeen(foreign_group("volcano", name, min_member=size, created=created, priority=priority))
        ]
        fields["declaration"] = Declaration(group=name, objects=("volcano",), source="volcano")
    elif how == "added":
        # An automatic gang of a workload whose controller has added a native group that states the priority.
        native = foreign_group("native", f"{name}-added", min_member=size, created=created, priority=priority)
        declared = [
            ForeignGroupSeen(structs.replace(native, made_for=f"uid-{name}")),
            ForeignGroupSeen(foreign_group("job", name, min_member=size, created=created)),
        ]
        fields["declaration"] = Declaration(
            group=name, objects=("job",), object_name=name, source="job", passed_over=f"{name}-added"
        )
    elif how == "pods":
        declared = []
        fields |= {"declaration": Declaration(group=name, min_member=size), "created": created, "priority": priority}
    else:
        own: dict[str, Any] = {"priority": priority} if how == "spec" else {}
        declared = [GroupSeen(group(name, min_member=size, created=created, **own))]
        fields |= {} if how == "spec" else {"priority": priority}
    members = [PodSeen(pod(f"{name}-{number}", group=name, **fields)) for number in range(size)]
    return Contender(
        name, (-priority, created), size, (*declared, *members) if how == "added" else (*members, *declared)
    )


class Contest:
    """A machine to which contenders appear; each binding is compared with what was known when it was decided."""

    def __init__(self, room: int, *, lane: bool) -> None:
        policy = Policy(
            default_max_schedule_time_s=1e6,
            namespace_limits=NamespaceLimits(waiting_groups=10_000),
            fifo=FifoRules(groups=frozenset(LANE.values())) if lane else FifoRules(),
        )
        self.machine, self.room, self.free, self.lane = Machine(policy), room, room, lane
        self.waiting: dict[str, Contender] = {}
        self.node = NodeSeen(node(cpu=room, pods=room + 1, labels=LANE))
        self.call(self.node, PriorityClassesReplaced(tuple(CLASSES.items())))

    def call(self, *events: Event) -> None:
        """One call of the machine, whose bindings are judged and come back with the next one."""
        effects = self.machine.handle(events or (TimePassed(),), 100.0)
        assert self.machine.take_measured().budget <= 1.0 + MOST_BEYOND / units.CALL
        names = [effect.name.rpartition("-")[0] for effect in effects if isinstance(effect, BindPod)]
        for name in dict.fromkeys(names):
            bound = self.waiting.pop(name)
            ahead = [each for each in self.waiting.values() if (each.turn, each.name) < (bound.turn, name)]
            # In a lane, only a gang that can never fit may be overtaken (rule 7).
            overtaken = [each.name for each in ahead if each.size <= (self.room if self.lane else self.free)]
            assert not overtaken, f"{name} is bound before {overtaken[:3]}"
            assert names.count(name) == bound.size
            self.free -= bound.size

    def appear(self, contenders: Sequence[Contender], *more: Event) -> None:
        self.waiting |= {each.name: each for each in contenders}
        self.call(*(event for each in contenders for event in each.events), *more)

    def rest(self) -> None:
        for _ in range(5000):
            due = self.machine.next_deadline()
            if due is None or due > 100.0:
                break
            self.call()
        else:
            raise AssertionError("the machine does not come to rest")
        assert self.machine.validate() == []
        assert self.lane or not [each.name for each in self.waiting.values() if each.size <= self.free]


def batches(contenders: list[Contender], draw: Random) -> Iterator[list[Contender]]:
    at = 0
    while at < len(contenders):
        size = draw.choice((1, 7, 60, len(contenders)))
        yield contenders[at : at + size]
        at += size


def contest(number: int, how: str, draw: Random, *, lane: bool = False) -> None:
    contenders = [contender(at, draw, lane=lane) for at in range(number)]
    draw.shuffle(contenders)
    held = Contest(draw.randint(1, 2 * number), lane=lane)
    if how == "list":
        held.appear(contenders, Synced())
    elif how == "leader":
        # A standby has seen everything, and decides from the moment it leads.
        for batch in batches(contenders, draw):
            held.appear(batch)
        held.call(Synced())
    else:
        held.call(Synced())
        for batch in batches(contenders, draw):
            held.appear(batch)
    held.rest()


@given(
    st.integers(1, 120),
    st.sampled_from(("list", "leader", "batches")),
    st.booleans(),
    st.randoms(use_true_random=False),
)
@settings(max_examples=examples(60))
def test_what_is_bound_is_the_prefix_of_the_order_that_fits(number, how, small, draw):
    with mock.patch.object(units, "CALL", 12 * units.GANG if small else units.CALL):
        contest(number, how, draw)


@given(st.integers(1, 80), st.sampled_from(("list", "leader", "batches")), st.randoms(use_true_random=False))
@settings(max_examples=examples(30))
def test_in_a_fifo_lane_nothing_overtakes_what_is_not_looked_at_yet(number, how, draw):
    with mock.patch.object(units, "CALL", 12 * units.GANG):
        contest(number, how, draw, lane=True)


@given(st.integers(2, 60), st.sampled_from((0, 1, 2, upkeep.LARGE)), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=examples(40))
def test_a_gang_counts_from_the_moment_in_which_it_is_complete_whatever_came_last_and_however_large_it_is(
    number, large, lane, draw
):
    """Regression: a large gang was put off if it had just been reconciled, also when it had become complete since."""
    contenders = [contender(at, draw, lane=lane) for at in range(number)]
    with mock.patch.object(upkeep, "LARGE", large), mock.patch.object(units, "CALL", 12 * units.GANG):
        held = Contest(draw.randint(1, 2 * number), lane=lane)
        held.call(Synced())
        left = [(each, [*each.events]) for each in contenders]
        while left:
            batch: list[Event] = []
            for _ in range(draw.choice((1, 5, 20, 60))):
                if left:
                    each, events = left[at := draw.randrange(len(left))]
                    batch.append(events.pop(0))
                    if not events:
                        held.waiting[each.name] = each
                        del left[at]
            held.call(*batch)
        held.rest()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["list", "leader", "batches"])
def test_the_order_holds_for_gangs_that_take_many_calls(how):
    contest(600, how, Random(how))


def test_of_61_complete_gangs_with_room_for_ten_the_most_important_one_is_bound_though_it_is_listed_last():
    """Regression: the first 48 were looked at, and bound, before the others had been looked at."""
    priorities = {f"g{at:02}": 1000 if at == 60 else 0 for at in range(61)}
    members = [PodSeen(pod(f"{name}-0", group=name)) for name in priorities]
    groups = [GroupSeen(group(name, min_member=1, priority=each)) for name, each in priorities.items()]
    held = Contest(10, lane=False)
    held.appear([Contender(name, (-each,), 1, ()) for name, each in priorities.items()], *members, *groups, Synced())
    held.rest()
    assert "g60" not in held.waiting


def test_a_priority_class_that_comes_late_counts_for_gangs_that_nobody_has_looked_at_yet():
    """Regression: their places in the order had been found without it, and were not found anew."""
    names = [f"g{at:02}" for at in range(61)]
    groups = [group(name, min_member=1, priority_class="late" if name == "g60" else "") for name in names]
    held = Contest(0, lane=False)
    held.free = 10
    held.call(Synced())
    with mock.patch.object(units, "CALL", 12 * units.GANG):
        members = [PodSeen(pod(f"{name}-0", group=name)) for name in names]
        held.machine.handle([*map(GroupSeen, groups), *members], 100.0)
        held.waiting = {name: Contender(name, (-1000 * (name == "g60"),), 1, ()) for name in names}
        held.call(PriorityClassSeen("late", PriorityClass(1000)), NodeSeen(node(cpu=10, pods=11)))
        held.rest()
    assert "g60" not in held.waiting
