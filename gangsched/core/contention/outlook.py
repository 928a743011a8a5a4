"""The expected start of each group, from what was played forward.

The latest start counts on limits alone. For the earliest one others end when they have declared to, or else after as
long as the last runs of their owners; who only has a limit may end at any time. Each is played forward
(`core.planning.forecast`): everybody starts who fits, until somebody who has waited for long holds what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gangsched.core.contention.ends import ENDLESS, UNKNOWN
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.plan import Plan
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.expected_start import Basis, ExpectedStart, Unknown
from gangsched.core.planning.forecast import Forecast

_BASES = (Basis.LIMITS, Basis.DECLARED, Basis.HISTORY)
"""What a start relies on, by the doubt about the ends that it needs (`core.contention.ends.expected_end`)."""
HORIZON_S = 7 * 24 * 3600.0
"""A start later than this from now is not told."""
AT_ONCE_S = 1.0
"""A start so soon is not told as one."""
MOST_IN_LINE = 1000
"""Of so many groups, the first in the order, it is found out when they start."""


class Outlook(NamedTuple):
    """What was played forward, by what others are `expected` to do, and by what is `certain`.

    `owner` names the gang or pod with this end, by its index, and says whether it is overdue. `could`: whether the
    group fits on empty nodes.
    """

    expected: Forecast
    certain: Forecast
    owner: Callable[[int], tuple[GroupKey, bool]]
    could: Callable[[GroupKey], bool]
    now: float

    def of(self, key: GroupKey, plan: Plan | None, *, depends: bool, refused: bool) -> ExpectedStart:
        """The expected start of the group, which has this plan. `depends`: it may be later than amounts tell.

        If it was `refused` where amounts suffice, something else decides.
        """
        at_once = self.certain.starts.get(key)
        # Where others should have ended by now, who are still there, there is none.
        has_room = at_once is not None and at_once.at <= self.now and at_once.last < 0
        start = ExpectedStart(why=Unknown.DEPENDS)
        if not (has_room and refused):
            start = self._without_plan(key, depends=depends, has_room=has_room)
        latest = 0.0 if plan is None else plan.expires if plan.start is None else plan.start
        if plan is None or latest == NEVER or latest <= self.now or key in self.certain.given_up:
            # No others are to leave, or they should have left already, or it waits no longer then.
            return start
        if latest > self.now + HORIZON_S:
            return ExpectedStart(start.earliest, 0.0, start.basis if start.earliest else None, Unknown.HORIZON)
        if plan.start is None:
            return ExpectedStart(0.0, latest, Basis.VICTIMS)
        basis = Basis.DECLARED if plan.promises else Basis.LIMITS
        if start.basis in _BASES and 0 < start.earliest < latest:
            basis = max(basis, start.basis, key=_BASES.index)
        return ExpectedStart(min(start.earliest, latest), latest, basis)

    def _without_plan(self, key: GroupKey, *, depends: bool, has_room: bool) -> ExpectedStart:
        first = self.expected.starts.get(key)
        if first is None or first.at >= UNKNOWN:
            unknown = ExpectedStart(0.0, 0.0, None, *self._unknown(key, self.expected))
            return unknown._replace(why=Unknown.DEPENDS) if depends and unknown.why is Unknown.NEVER else unknown
        if first.at > self.now + HORIZON_S:
            return ExpectedStart(why=Unknown.HORIZON)
        latest, why, decides = self._latest(key)
        if depends:
            latest, why, decides = 0.0, Unknown.DEPENDS, None
        if has_room:
            return ExpectedStart(0.0, latest, Basis.ROOM, why, decides)
        # Those that have nothing but a limit may end at any time, one after the other.
        earliest = first.at if first.at > self.now + AT_ONCE_S else 0.0
        basis = _BASES[first.doubt] if earliest else Basis.LIMITS if latest else None
        return ExpectedStart(earliest, max(earliest, latest) if latest else 0.0, basis, why, decides)

    def _latest(self, key: GroupKey) -> tuple[float, Unknown | None, GroupKey | None]:
        last = self.certain.starts.get(key)
        if last is None or last.at >= UNKNOWN:
            return (0.0, *self._unknown(key, self.certain))
        return (0.0, Unknown.HORIZON, None) if last.at > self.now + HORIZON_S else (last.at, None, None)

    def _unknown(self, key: GroupKey, played: Forecast) -> tuple[Unknown, GroupKey | None]:
        if key in played.given_up:
            return Unknown.TIME_OUT, None
        start, ahead = played.starts.get(key), played.behind.get(key)
        if start is None and ahead is None and not self.could(key):
            return Unknown.NEVER, None
        if ahead is not None:
            return Unknown.AHEAD, ahead if isinstance(ahead, GroupKey) else None
        if start is None:
            return Unknown.OTHERS, None
        decides, overdue = self.owner(start.last) if start.last >= 0 else (None, False)
        why = Unknown.OVERDUE if overdue else Unknown.ENDLESS if start.at >= ENDLESS else Unknown.UNKNOWN
        return why, decides
