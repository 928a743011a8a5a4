"""Who waits, in which order, and what wakes those that are parked.

A gang that was refused is parked: it costs nothing until something happens that could help it. What could help is room
or an obstacle gone on a node (`Cluster.relief`) that now takes at least one of its members, a change of its own spec or
members, or the end of a back-off; the latter two clear `gang.parked` themselves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from gangsched.core.cluster import Cluster
from gangsched.core.gang import Gang
from gangsched.core.life import Assessment
from gangsched.core.model import GroupKey
from gangsched.core.refusal import Refusal
from gangsched.core.snapshot import MemberClass, Snapshot
from gangsched.core.turns import OrderKey, Turns


def order_key(gang: Gang, assessment: Assessment) -> OrderKey:
    """Repairs first, then priority, then age, then namespace/name (contract rule 6)."""
    terms = assessment.terms
    return (not assessment.want.repair, -terms.priority, terms.created, gang.key.namespace, gang.key.name)


class Queue:
    """The gangs that want something of a pass: `active` are tried in the next one, `parked` wait to be woken."""

    def __init__(self) -> None:
        self.active: dict[GroupKey, OrderKey] = {}
        self.parked: dict[GroupKey, OrderKey] = {}
        self._first: dict[GroupKey, OrderKey] = {}
        self._sorted: list[tuple[OrderKey, GroupKey]] | None = None
        self._ranked_in: dict[str, list[tuple[OrderKey, GroupKey]]] = {}
        self.turns = Turns()
        self._held_up: set[GroupKey] = set()

    def __contains__(self, key: GroupKey) -> bool:
        """Whether the gang wants something of a pass."""
        return key in self.active or key in self.parked

    def file(self, gang: Gang, assessment: Assessment) -> None:
        """Put the gang where it belongs."""
        self.drop(gang.key)
        want = assessment.want
        if not want:
            return
        order = order_key(gang, assessment)
        (self.parked if gang.parked else self.active)[gang.key] = order
        self.turns.file(gang, assessment, order)
        if gang.parked and gang.held_up_by is not None:
            self._held_up.add(gang.key)
        if want.quorum is not None or want.repairs:
            self._first[gang.key] = order
            self._sorted = None

    def drop(self, key: GroupKey) -> None:
        """The gang wants nothing any more."""
        self.active.pop(key, None)
        self.parked.pop(key, None)
        self.turns.drop(key)
        self._held_up.discard(key)
        if self._first.pop(key, None) is not None:
            self._sorted = None

    def in_order(self) -> list[GroupKey]:
        """The active gangs in the order in which they are tried."""
        return sorted(self.active, key=self.active.__getitem__)

    def before(self, key: GroupKey) -> list[GroupKey]:
        """The gangs whose quorum or repair is tried before this one's, in order."""
        mine = self._first.get(key)
        return [] if mine is None else [other for _, other in self._ranked[: bisect_left(self._ranked, (mine, key))]]

    def ahead(self, key: GroupKey, *, most: int) -> tuple[list[GroupKey], int]:
        """As `before`, but only the first groups of its own namespace and how many gangs there are in all."""
        mine = self._first.get(key)
        if mine is None:
            return [], 0
        number = bisect_left(self._ranked, (mine, key))
        own = self._ranked_in.get(key.namespace, [])
        return [other for _, other in own[: min(most, bisect_left(own, (mine, key)))]], number

    @property
    def _ranked(self) -> list[tuple[OrderKey, GroupKey]]:
        if self._sorted is None:
            self._sorted = sorted((order, other) for other, order in self._first.items())
            self._ranked_in = {}
            for entry in self._sorted:
                if not entry[1].pod_uid:
                    self._ranked_in.setdefault(entry[1].namespace, []).append(entry)
        return self._sorted

    def wake_whose_turn_it_is(
        self, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> None:
        """Move gangs that waited for an earlier one of their instance group to the active ones, if it is their turn."""
        if not self._held_up:
            return
        for key in self.turns.whose_turn_it_is(gangs, assessments, now):
            if key in self._held_up:
                self._held_up.discard(key)
                gangs[key].parked = False
                gangs[key].held_up_by = None
                self.active[key] = self.parked.pop(key)

    def wake(self, gangs: dict[GroupKey, Gang], cluster: Cluster) -> None:
        """Move parked gangs that what has just become better could help to the active ones."""
        relief = cluster.take_relief()
        if not relief or not self.parked:
            return
        snapshot = Snapshot(cluster)
        fits: dict[MemberClass, bool] = {}
        for key in list(self.parked):
            gang = gangs[key]
            for member in _refused_classes(gang):
                if member not in fits:
                    fits[member] = any(snapshot.fits(member, row) for row in relief.rows)
                moved = relief.domains and _looked_at_a_domain(gang)
                if fits[member] or moved or (relief.everywhere and member.forbidden):
                    gang.parked = False
                    gang.refused_members = {}
                    self._held_up.discard(key)
                    self.active[key] = self.parked.pop(key)
                    break


def _looked_at_a_domain(gang: Gang) -> bool:
    """Whether the gang was refused because its members must be in one topology domain, whoever asks for that."""
    return any(refusal.domain is not None for refusal in _refusals(gang))


def _refused_classes(gang: Gang) -> Iterable[MemberClass]:
    for refusal in _refusals(gang):
        yield from refusal.classes


def _refusals(gang: Gang) -> Iterable[Refusal]:
    if gang.refusal is not None:
        yield gang.refusal
    yield from gang.refused_members.values()
