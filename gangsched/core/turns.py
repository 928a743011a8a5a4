"""Strict FIFO inside an instance group: nobody overtakes an earlier group that waits for room (contract rule 7).

An instance group is a set of nodes that pods ask for by one label. A group that can never fit holds nobody up, and one
that is younger than the age from which the order is enforced does not yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.gang import Gang
from gangsched.core.life import Assessment
from gangsched.core.model import GroupKey

OrderKey = tuple[bool, int, float, str, str]


class Turns:
    """The groups that wait in line, by instance group, each with its place in the order."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[GroupKey, OrderKey]] = {}
        self._line_of: dict[GroupKey, str] = {}

    def file(self, gang: Gang, assessment: Assessment, order: OrderKey) -> None:
        """The gang wants its quorum placed; one that has begun waits for nobody."""
        self.drop(gang.key)
        line = assessment.terms.instance_group
        if line and assessment.want.quorum is not None and not assessment.want.repair:
            self._line_of[gang.key] = line
            self._lines.setdefault(line, {})[gang.key] = order

    def drop(self, key: GroupKey) -> None:
        """The gang waits no more."""
        line = self._line_of.pop(key, None)
        if line is not None:
            del self._lines[line][key]
            if not self._lines[line]:
                del self._lines[line]

    def held_up_by(
        self, key: GroupKey, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> GroupKey | None:
        """The first of those who wait before this gang in its line and may not be overtaken; None if it is its turn."""
        line = self._line_of.get(key)
        if line is None:
            return None
        mine = self._lines[line][key]
        before = [(order, other) for other, order in self._lines[line].items() if order < mine]
        holding = [entry for entry in before if _holds_up(gangs[entry[1]], assessments[entry[1]], now)]
        return min(holding)[1] if holding else None


def _holds_up(gang: Gang, assessment: Assessment, now: float) -> bool:
    if gang.refusal is None or gang.refusal.never:
        return False
    return now - assessment.terms.created >= assessment.terms.in_turn_after_s
