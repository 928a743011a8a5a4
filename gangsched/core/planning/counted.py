"""The room for an ask by sums alone, once some units have left: arithmetic on arrays, without a snapshot.

Counted room is what nodes offer that accept the members regardless of the pods there. There is never more, so what the
sums exclude is impossible. Where all members are alike and nothing but amounts decides, there is exactly as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gangsched.core.constraints.matching import term_matches
from gangsched.core.constraints.node_resources import Vector
from gangsched.core.constraints.topology_spread import SpreadPlan, SpreadSight
from gangsched.core.objects.arrays import Floats, IntArray, Mask
from gangsched.core.objects.shape import PODS, HostPort, Labels, PodTerm
from gangsched.core.planning import budget as units
from gangsched.core.planning import topology
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import depends
from gangsched.core.planning.filling import classify
from gangsched.core.planning.removable import MOST, Removable
from gangsched.core.planning.search import Slots


class Kind(NamedTuple):
    """Members that are counted together: what one requests, by column, their number, and the rows that accept them.

    They are of the `only` class, if there is one, and use these host `ports`. A row takes `most` of them, whatever it
    has left.
    """

    requests: IntArray
    number: int
    accepting: Mask
    only: MemberClass | None
    ports: tuple[HostPort, ...]
    most: IntArray


_MOST_CLASSES = 16
"""Of so many classes each is counted for itself; more count as one whose members request the least that any does."""


class Counted:
    """The sums for one ask on one snapshot. Rows are those of the snapshot, columns those that members request.

    `resources` are the names of the columns. `free` is what is free now, `most` what nodes have in all, `freed` what
    each pair of `removable` frees. `open` are the rows that accept members, `domains` their domains by row where all
    members must be in one (-1: no such row). `kinds` are the classes of members, `rooms` the room of each now, by row;
    `number` members are needed. `lacking` are the columns that are short, by which lost work is measured. `faithful`:
    the sums are exact; `selective`: whoever stays may close a row, by host ports alone if `by_ports`. `spread_alone`:
    only amounts and where other members are decide.
    """

    def __init__(self, snapshot: Snapshot, ask: Ask, removable: Removable, now: float) -> None:
        self._now = now
        self.removable = removable
        self.number = Slots.of(ask.need, {role: need for role, need in ask.role_needs.items() if need > 0}).number
        classes = Counter(classify(snapshot, ask.members, ask.pause.nodes).values())
        vectors = {member: snapshot.resources.vector(member.shape) for member in classes}
        known = {member: vector for member, vector in vectors.items() if vector is not None}
        self._columns = sorted({column for vector in known.values() for column in vector.columns.tolist()})
        names = {snapshot.resources.column(name): name for name in _names(known)}
        self.resources = [names[column] for column in self._columns]
        self.kinds = _kinds(snapshot, ask, known, classes, self._columns)
        accepting: Mask = np.logical_or.reduce([kind.accepting for kind in self.kinds], axis=0, initial=False)
        self.domains = _domains(snapshot, ask, np.broadcast_to(accepting, snapshot.size))
        self.open: Mask = self.domains >= 0
        depending = any(map(depends, classes))
        self.spread_alone = depending and self._is_spread_alone(snapshot, classes)
        if self.spread_alone:
            self.kinds = [_spread(snapshot, kind, len(ask.members)) for kind in self.kinds]
        most = [np.minimum(np.where(self.open, kind.most, 0), self.number) for kind in self.kinds]
        self.kinds = [kind._replace(most=limit) for kind, limit in zip(self.kinds, most, strict=True)]
        exact = snapshot.free[:, self._columns]
        self.free: IntArray = np.clip(exact, -MOST, MOST)
        offered = snapshot.cluster.capacity.allocatable[: snapshot.size, self._columns]
        self.most: IntArray = np.clip(offered, 0, MOST)
        self._totals = offered.astype(np.float64).sum(axis=0)
        self.freed = removable.amounts(self.resources)
        self.lacking = self._lacking()
        every = np.arange(snapshot.size)
        self.rooms = [self.room(kind, every, self.free) for kind in self.kinds]
        self.selective = not self.spread_alone and (depending or self._is_limited(snapshot, known))
        self.by_ports = len(self.kinds) == 1 and bool(self.kinds[0].ports) and not depending
        plain = ask.only_counts or (ask.topology is not None and not (ask.choices or ask.levels or ask.role_needs))
        self.faithful = plain and len(classes) == len(known) == 1 and not (depending or self.selective)
        self.faithful &= ask.start is None
        self.faithful &= bool((self.free == exact).all()) and not any(
            resource in snapshot.resources.delegated for member in known for resource, _ in member.shape.requests
        )
        snapshot.budget.charge((units.CLASS + snapshot.size) * len(known) + len(self.freed) // 4)

    @cached_property
    def costs(self) -> Floats:
        """The work lost with each unit, without those that it takes along."""
        lacking = zip(self.resources, self._totals.tolist(), self.lacking.tolist(), strict=True)
        return self.removable.costs({name: total for name, total, lacks in lacking if lacks}, self._now)

    @cached_property
    def bare(self) -> list[IntArray]:
        """The room of each kind by row while nobody leaves, by the sums alone."""
        every, left = np.arange(len(self.free)), self.left_with(np.zeros_like(self.free))
        return [self.room(kind, every, left) for kind in self.kinds]

    @cached_property
    def users(self) -> IntArray:
        """For each pair and kind 1 if the pair uses a host port of the kind, so that none fits beside it; else 0."""
        users: IntArray = np.zeros((len(self.freed), len(self.kinds)), dtype=np.int64)
        for at, kind in enumerate(self.kinds):
            if kind.ports:
                users[:, at] = self.removable.pairs_on(kind.ports)
        return users

    @cached_property
    def worth(self) -> Floats:
        """For how much of one member each pair frees enough of what is lacking."""
        mean = np.mean([kind.requests for kind in self.kinds], axis=0)
        asked = np.flatnonzero((mean > 0) & self.lacking)
        worth: Floats = (self.freed[:, asked] / mean[asked]).max(axis=1, initial=0.0)
        return worth

    def room(self, kind: Kind, rows: IntArray, left: IntArray) -> IntArray:
        """How many members of the kind each of these rows takes once it has so much left, by the sums."""
        room: IntArray = kind.most.take(rows)
        for column in np.flatnonzero(kind.requests).tolist():
            np.minimum(room, np.maximum(left[:, column], 0) // kind.requests[column], out=room)
        return room

    def left_with(self, more: IntArray) -> IntArray:
        """What is left on each row once so much more is free there; never more than the nodes have."""
        left: IntArray = np.minimum(self.free + more, self.most)
        return left

    def within(self, rows: IntArray, left: IntArray) -> IntArray:
        """These amounts on these rows; never more than the nodes have."""
        # Much faster than an index.
        amounts: IntArray = np.minimum(left, self.most.take(rows, axis=0))
        return amounts

    def without(self, away: Mask) -> IntArray:
        """What is left on each row once these units have left."""
        pairs = np.flatnonzero(away[self.removable.owners])
        return self.left_after(self.removable.rows[pairs], self.freed.take(pairs, axis=0))

    def left_after(self, rows: IntArray, freed: IntArray) -> IntArray:
        """What is left on each row once these amounts are free on these rows; a row may occur several times."""
        more = [np.bincount(rows, column, minlength=len(self.free)) for column in freed.T]
        return self.left_with(np.array(more, dtype=np.int64).reshape(len(more), len(self.free)).T)

    def placed(self, rooms: Sequence[IntArray]) -> IntArray:
        """How many members each domain takes at most, if each class has these rooms by row."""
        number = int(self.domains.max(initial=-1)) + 1
        totals: IntArray = np.zeros(number, dtype=np.int64)
        for kind, room in zip(self.kinds, rooms, strict=True):
            takes = np.bincount(self.domains[self.open], room[self.open], minlength=number).astype(np.int64)
            totals += np.minimum(takes, kind.number)
        return totals

    def has_room(self, away: Mask, domain: int) -> bool:
        """Whether the domain has room for the members by the sums once these units have left."""
        return bool(self.placed(self.rooms_without(away))[domain] >= self.number)

    def rooms_without(self, away: Mask) -> list[IntArray]:
        """The room of each kind by row once these units have left."""
        left, every = self.without(away), np.arange(len(self.free))
        return [self.room(kind, every, left) for kind in self.kinds]

    def could(self, away: Mask) -> bool:
        """Whether the sums do not exclude that the ask is placed once these units have left."""
        return bool(self.kinds) and self.could_with(self.without(away))

    def could_with(self, left: IntArray) -> bool:
        """The same once so much is left on each row."""
        if not self.kinds:
            return False
        every = np.arange(len(self.free))
        placed = self.placed([self.room(kind, every, left) for kind in self.kinds])
        if not (placed >= self.number).any() or len(self.kinds) == 1:
            return bool((placed >= self.number).any())
        totals = np.maximum(left[self.open], 0).astype(np.float64).sum(axis=0) * (1 + 1e-9)
        return bool((totals >= self.least()).all())

    def measured(self, snapshot: Snapshot) -> list[IntArray]:
        """How many members of each kind each row takes on the snapshot at most, whatever the sums say."""
        every: IntArray = np.full(snapshot.size, self.number)
        return [every if kind.only is None else np.minimum(snapshot.caps(kind.only), every) for kind in self.kinds]

    def least(self) -> Floats:
        """What the members that request least of it request of each resource, as many as are needed."""
        requests = np.repeat([kind.requests for kind in self.kinds], [kind.number for kind in self.kinds], axis=0)
        least: Floats = np.sort(requests, axis=0)[: self.number].astype(np.float64).sum(axis=0)
        return least

    def _lacking(self) -> Mask:
        """The columns of which less is free than needed on the rows that accept members; of all that are requested, if
        there is enough of each.
        """
        lacking: Mask = np.ones(len(self._columns), dtype=np.bool_)
        if self.kinds:
            lacking = np.maximum(self.free[self.open], 0).astype(np.float64).sum(axis=0) < self.least()
        if not lacking.any():
            lacking[:] = [name != PODS for name in self.resources]
        return lacking if lacking.any() else ~lacking

    def _is_spread_alone(self, snapshot: Snapshot, classes: Collection[MemberClass]) -> bool:
        """Whether nothing but amounts and spread decides, and no pod of a unit counts for the spread: so whoever stays
        only takes room.
        """
        dependent = [member for member in classes if depends(member)]
        if any(member.shape.affinity or member.shape.anti_affinity or member.shape.disks for member in dependent):
            return False
        if any(not isinstance(sight, SpreadSight) for member in dependent for sight in member.seen):
            return False
        terms = [spread.term for member in dependent for spread in member.shape.spread]
        return not matched(self.removable, terms, snapshot).any()

    def _is_limited(self, snapshot: Snapshot, known: Collection[MemberClass]) -> bool:
        """Whether a row takes fewer members now than the sums say; the rooms are then those that it takes."""
        if len(known) != len(self.kinds):
            return True
        limited = False
        for at, member in enumerate(known):
            now = np.where(self.open, np.minimum(snapshot.caps(member), self.number), 0)
            limited |= bool((now < self.rooms[at]).any())
            self.rooms[at] = np.minimum(now, self.rooms[at])
        return limited


def matched(removable: Removable, terms: Collection[PodTerm], snapshot: Snapshot) -> Mask:
    """The units with a pod that one of these terms is about."""
    terms = {*terms}
    known: dict[tuple[str, Labels], bool] = {}
    matching: Mask = np.zeros(len(removable.units), dtype=np.bool_)
    for at, unit in enumerate(removable.units if terms else ()):
        for claim in unit.claims:
            kind = claim.pod.namespace, claim.pod.labels
            if kind not in known:
                known[kind] = any(term_matches(term, claim.pod, snapshot.cluster.namespaces) for term in terms)
            matching[at] |= known[kind]
        snapshot.budget.charge(units.MATCH * len(unit.claims))
    return matching


def _names(classes: Collection[MemberClass]) -> list[str]:
    return sorted({PODS, *(resource for member in classes for resource, _ in member.shape.requests)})


def _kinds(
    snapshot: Snapshot,
    ask: Ask,
    known: Mapping[MemberClass, Vector],
    classes: Counter[MemberClass],
    columns: Sequence[int],
) -> list[Kind]:
    """The classes that are counted, each for itself or all as one."""
    avoided = [row for node in ask.pause.nodes if (row := snapshot.cluster.capacity.rows.get(node)) is not None]
    kinds = []
    for member, vector in known.items():
        requests: IntArray = np.zeros(len(columns), dtype=np.int64)
        requests[np.searchsorted(columns, vector.columns)] = np.minimum(vector.amounts, MOST)
        accepting = snapshot.cluster.accepting(member)[: snapshot.size].copy()
        accepting[avoided] = False
        # Two members with one host port do not share a node.
        ports, most = member.shape.host_ports, np.where(accepting, len(ask.members), 0)
        most = np.minimum(most, 1) if member.shape.host_ports else most
        kinds.append(Kind(requests, classes[member], accepting, member, ports, most))
    if len(kinds) <= _MOST_CLASSES:
        return kinds
    least: IntArray = np.min([kind.requests for kind in kinds], axis=0)
    accepting = np.logical_or.reduce([kind.accepting for kind in kinds])
    most = np.where(accepting, len(ask.members), 0)
    return [Kind(least, sum(kind.number for kind in kinds), accepting, None, (), most)]


def _spread(snapshot: Snapshot, kind: Kind, number: int) -> Kind:
    """The same if so many members are spread and no other pod that counts comes or goes."""
    plan = next((plan for plan in snapshot.plans if isinstance(plan, SpreadPlan)), None)
    if kind.only is None or plan is None:
        return kind
    return kind._replace(most=np.minimum(kind.most, plan.at_most(kind.only, number)))


def _domains(snapshot: Snapshot, ask: Ask, accepting: Mask) -> IntArray:
    """The domain in which each row is for members that must all be in one; one for all rows without that."""
    domains: IntArray = np.zeros(snapshot.size, dtype=np.int64)
    if ask.topology is not None and ask.topology.required:
        domains = snapshot.cluster.labels.domains(ask.topology.key).of_row[: snapshot.size].copy()
        home = topology.home(snapshot, ask.topology, ask.own)
        if home is not None:
            domains[~snapshot.inside(((ask.topology.key, home),))] = -1
    domains[~accepting] = -1
    return domains
