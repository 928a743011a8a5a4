"""Strict FIFO inside an instance group: nobody overtakes an earlier group that waits for room (contract rule 7).

An instance group is a set of nodes that pods ask for by one label. A group that can never fit holds nobody up, and one
that is younger than the age from which the order is enforced does not yet.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.objects.declaration import GroupKey

OrderKey = tuple[bool, int, float, str, str]


class Turns:
    """The groups that wait in line, by instance group, each with its place in the order."""

    def __init__(self) -> None:
        self._lines: dict[str, list[tuple[OrderKey, GroupKey]]] = {}
        self._place_of: dict[GroupKey, tuple[str, OrderKey]] = {}

    def file(self, gang: Gang, assessment: Assessment, order: OrderKey) -> None:
        """The gang wants its quorum placed; one that has begun waits for nobody."""
        self.drop(gang.key)
        line = assessment.terms.instance_group
        if line and assessment.want.quorum is not None and not assessment.want.repair:
            self._place_of[gang.key] = (line, order)
            insort(self._lines.setdefault(line, []), (order, gang.key))

    def drop(self, key: GroupKey) -> None:
        """The gang waits no more."""
        place = self._place_of.pop(key, None)
        if place is not None:
            line, order = place
            waiting = self._lines[line]
            del waiting[bisect_left(waiting, (order, key))]
            if not waiting:
                del self._lines[line]

    def held_up_by(
        self, key: GroupKey, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> GroupKey | None:
        """The first of those who wait before this gang in its line and may not be overtaken; None if it is its turn."""
        place = self._place_of.get(key)
        if place is None:
            return None
        line, order = place
        for before, other in self._lines[line]:
            if before >= order:
                break
            if _holds_up(gangs[other], assessments[other], now):
                return other
        return None

    def whose_turn_it_is(
        self, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> list[GroupKey]:
        """Who waits for nobody in its line: all up to the first that may not be overtaken."""
        found = []
        for line in self._lines.values():
            for _, key in line:
                found.append(key)
                if _holds_up(gangs[key], assessments[key], now):
                    break
        return found


def _holds_up(gang: Gang, assessment: Assessment, now: float) -> bool:
    if gang.attempt.refusal is None or gang.attempt.refusal.never:
        return False
    return now - assessment.terms.created >= assessment.terms.in_turn_after_s
