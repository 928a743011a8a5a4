"""When a waiting group will probably start, as an interval, and what that relies on."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from gangsched.core.objects.declaration import GroupKey

_A_TENTH = 0.1
_MARGIN_S = 60.0


class Basis(StrEnum):
    """What an expected start relies on: the weakest of what it needs."""

    ROOM = "Room"
    """There is room already, once those ahead have theirs."""
    VICTIMS = "Victims"
    """Others are evicted for the group."""
    LIMITS = "Limits"
    """Others are ended by then, or earlier: by limits, or because they terminate."""
    DECLARED = "Declared"
    """Others have declared to end by then."""
    HISTORY = "History"
    """The last runs of others' owners took that long."""


class Unknown(StrEnum):
    """Why the start is not known."""

    ENDLESS = "Endless"
    """Services have to make room, which run until somebody scales them down."""
    UNKNOWN = "Unknown"
    """Pods have to end that have neither a limit nor a declared run time."""
    OVERDUE = "Overdue"
    """Pods have to end that should have ended already."""
    AHEAD = "Ahead"
    """It depends on a group ahead, which may wait for ever."""
    OTHERS = "Others"
    """Other waiting groups may take its room before, ahead of it or not, and nothing tells when they end."""
    LINE = "Line"
    """Too many groups are ahead."""
    DEPENDS = "Depends"
    """More than free amounts decides where its members may be: other pods, ports, devices, parts, or room that is kept
    for others."""
    TIME_OUT = "TimeOut"
    """Its maxScheduleTime is over before, and it fails then."""
    HORIZON = "Horizon"
    """It is too far away."""
    NEVER = "Never"
    """It does not fit even once everything has ended."""


class ExpectedStart(NamedTuple):
    """Between `earliest` and `latest`, in epoch seconds; 0.0 for one that is not known, and `why`.

    Without an `earliest` it may start at any time until the `latest`, as others have limits that they need not use.

    `decides` is the gang, or the pod, that has to end last of those whose end nothing tells, or that is ahead;
    without a namespace in the status of a group, which names only what is in its own.
    """

    earliest: float = 0.0
    latest: float = 0.0
    basis: Basis | None = None
    why: Unknown | None = None
    decides: GroupKey | None = None

    def has_moved(self, former: ExpectedStart | None, now: float) -> bool:
        """Whether it differs by more than half of its margin from the one that was told.

        So what is told becomes narrower as the start comes nearer, and keeps half of the margin in any case. An
        earliest start that has passed is one at any time from now on.
        """
        if former is None or self[2:] != former[2:]:
            return True
        earliest = former.earliest and max(now, former.earliest)
        return any(
            bool(new) != bool(old) or 2 * abs(new - old) > _margin(new - now)
            for new, old in ((self.earliest, earliest), (self.latest, former.latest))
        )

    def told_in(self, namespace: str, now: float) -> ExpectedStart:
        """The same in whole seconds, with a margin on both sides, naming only what is in this namespace."""
        earliest, latest, decides = self.earliest, self.latest, self.decides
        if earliest:
            earliest = max(now, earliest - _margin(earliest - now))
        if latest:
            latest = max(now, latest + _margin(latest - now))
        if decides is not None:
            decides = GroupKey("", decides.name) if decides.namespace == namespace else None
        return self._replace(earliest=float(round(earliest)), latest=float(round(latest)), decides=decides)


def _margin(away_s: float) -> float:
    return max(_MARGIN_S, _A_TENTH * away_s)
