"""Strict FIFO inside an instance group: no group overtakes an earlier one that waits for room (contract rule 7).

An instance group is a set of nodes that pods select by one label. A group that can never fit holds up no other, nor
does one that waits only for the end of its pause (`core.cluster.failures`), nor a group younger than the age from which
the order is enforced.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.queueing.lines import Lines, Rank


class Lanes:
    """The FIFO lanes: the waiting gangs of each instance group, in order."""

    def __init__(self) -> None:
        self._lines = Lines()
        self.drop, self.validate = self._lines.drop, self._lines.validate

    def file(self, gang: Gang, assessment: Assessment, rank: Rank) -> None:
        """Put a gang that wants its quorum placed into its lane; a gang that has begun is in no lane."""
        lane, want = assessment.terms.instance_group, assessment.want
        in_lane = lane and want.quorum is not None and not want.repair
        self._lines.file(gang.key, rank, ((lane,),) if in_lane else ())

    def held_up_by(
        self, key: GroupKey, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> GroupKey | None:
        """The first gang before this one in its lane that may not be overtaken; None if there is none."""
        rank = self._lines.rank(key)
        for lane in self._lines.names_of(key):
            for before, other in self._lines[lane]:
                if before == rank:
                    break
                if _holds_up(gangs[other], assessments[other], now):
                    return other
        return None

    def first(
        self, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> list[GroupKey]:
        """The gangs that are not held up: in each lane all up to and including the first that may not be overtaken."""
        found = []
        for lane in self._lines.names():
            for _, key in self._lines[lane]:
                found.append(key)
                if _holds_up(gangs[key], assessments[key], now):
                    break
        return found


def _holds_up(gang: Gang, assessment: Assessment, now: float) -> bool:
    refusal = gang.wait.refusal
    if refusal is None or refusal.never or refusal.paused:
        return False
    return now - assessment.terms.created >= assessment.terms.fifo_after_s
