"""When a waiting group will probably start, found out when somebody asks.

Others end at their limits or, where they declare it, earlier. The group starts no later than it would if everybody used
all of their time and all groups ahead of it, once they have started, stayed; and no earlier than it would if nobody was
ahead of it and promises came true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.asking import Asking
from gangsched.core.contention.ends import ENDLESS, UNKNOWN, End, end_of
from gangsched.core.contention.viewers import Viewers
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.earliest import Departure, Earliest, Later
from gangsched.core.planning.placement import place

MOST_AHEAD = 64
"""Behind more groups than these, the latest start is not found out."""
HORIZON_S = 7 * 24 * 3600.0
"""A start later than this from now is not told."""
_ALL = 1 << 50


class Basis(StrEnum):
    """What an expected start relies on: the weakest of what it needs."""

    ROOM = "Room"
    """There is room already, once those ahead have theirs."""
    LIMITS = "Limits"
    """Others are ended by then: by limits, or because they terminate."""
    DECLARED = "Declared"
    """Others have declared to end by then."""


class Unknown(StrEnum):
    """Why the start is not known."""

    ENDLESS = "Endless"
    """Services have to make room, which run until somebody scales them down."""
    UNKNOWN = "Unknown"
    """Pods have to end that have neither a limit nor a declared run time."""
    AHEAD = "Ahead"
    """Too many groups are ahead, or one of them may wait for ever."""
    HORIZON = "Horizon"
    """It is too far away."""
    NEVER = "Never"
    """It does not fit even once everything has ended."""


class ExpectedStart(NamedTuple):
    """Between `earliest` and `latest`, in epoch seconds; 0.0 for one that is not known, and `why`.

    `decides` is the gang, or the pod, that has to end last of those whose end nothing tells.
    """

    earliest: float = 0.0
    latest: float = 0.0
    basis: Basis | None = None
    why: Unknown | None = None
    decides: GroupKey | None = None


class Expectations:
    """Answers for single groups. Nothing is changed, and a question costs whole searches."""

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: Mapping[GroupKey, Assessment],
        asking: Asking,
        viewers: Viewers,
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._asking = asking
        self._viewers = viewers

    def of(self, gang: Gang, ahead: Sequence[GroupKey], now: float) -> ExpectedStart | None:
        """When the group will start, behind those `ahead`; None if it does not wait for room, or nobody could tell."""
        ask = self._asking.of(gang, self._assessments[gang.key])
        if ask is None:
            return None
        ends = [(claim, self._end_of(claim, now)) for claim in self._cluster.ledger.claims.values() if claim.counts]
        promised = [Departure(end.promised, claim) for claim, end in ends]
        certain = [Departure(end.certain, claim) for claim, end in ends]
        first = _searched(ask, self._snapshot(gang, now), promised, now)
        if first.placement is None:
            return ExpectedStart(why=Unknown.NEVER)
        by_uid = {claim.pod.uid: end for claim, end in ends}
        if first.start >= UNKNOWN:
            return ExpectedStart(why=_unknown(first.start), decides=self._decisive(first))
        if first.start > now + HORIZON_S:
            return ExpectedStart(why=Unknown.HORIZON)
        latest, why, decides = self._latest(gang, ask, ahead, certain, now)
        return ExpectedStart(first.start, latest, _basis(first, by_uid), why, decides)

    def _end_of(self, claim: Claim, now: float) -> End:
        pod, members = claim.pod, self._members
        return end_of(pod, members.gang_of(pod.uid), members.foreign, now, ours=members.ours(pod))

    def _snapshot(self, gang: Gang, now: float) -> Snapshot:
        """The cluster without regard to what is reserved for later: those who have it are placed like others ahead."""
        snapshot = self._asking.snapshot(gang, (), Budget(_ALL), now)[0]
        if snapshot.viewer is not None:
            snapshot.stand_for(self._viewers.reserved_until(snapshot.viewer)[0])
        return snapshot

    def _latest(
        self, gang: Gang, ask: Ask, ahead: Sequence[GroupKey], departures: Sequence[Departure], now: float
    ) -> tuple[float, Unknown | None, GroupKey | None]:
        """The latest start, after those ahead have been placed one by one where and when they fit first, and stayed.

        With places that are reserved for it and nobody ahead, it starts when these are free.
        """
        plan = gang.operations.plan
        if not ahead and plan is not None and plan.start is not None and plan.start < NEVER:
            return plan.start, None, None
        if len(ahead) > MOST_AHEAD:
            return 0.0, Unknown.AHEAD, None
        snapshot = self._snapshot(gang, now)
        for key in ahead:
            other = self._members.gangs.get(key)
            before = self._asking.of(other, self._assessments[key]) if other is not None else None
            if before is not None and not _settle(snapshot, before, departures, now):
                return 0.0, Unknown.AHEAD, key
        found = _searched(ask, snapshot, departures, now)
        if found.placement is None:
            return 0.0, Unknown.AHEAD, None
        if found.start >= UNKNOWN:
            return 0.0, _unknown(found.start), self._decisive(found)
        if found.start > now + HORIZON_S:
            return 0.0, Unknown.HORIZON, None
        return found.start, None, None

    def _decisive(self, found: Later) -> GroupKey | None:
        """The gang, or the pod without one, that ends last."""
        last = max(found.leaving, key=lambda each: each.end, default=None)
        if last is None:
            return None
        pod = last.claim.pod
        gang = self._members.gang_of(pod.uid)
        return gang.key if gang is not None and not gang.plain else GroupKey(pod.namespace, pod.name, pod.uid)


def _searched(ask: Ask, snapshot: Snapshot, departures: Sequence[Departure], now: float) -> Later:
    search = Earliest(ask, departures, now)
    while (found := search.go_on(snapshot)) is None:
        continue
    return found


def _settle(snapshot: Snapshot, ask: Ask, departures: Sequence[Departure], now: float) -> bool:
    """Place the ask as early as it fits, and let it stay. Returns whether it is known when."""
    found = _searched(ask, snapshot, departures, now)
    if found.placement is None or found.start >= UNKNOWN:
        return False
    gone = [each.claim for each in departures if each.end <= found.start]
    snapshot.leave(gone)
    place(snapshot, ask)
    snapshot.stay(gone)
    return True


def _unknown(end: float) -> Unknown:
    return Unknown.ENDLESS if end >= ENDLESS else Unknown.UNKNOWN


def _basis(found: Later, ends: Mapping[str, End]) -> Basis:
    if not found.leaving:
        return Basis.ROOM
    declared = any(end.promised < end.certain for end in (ends[each.claim.pod.uid] for each in found.leaving))
    return Basis.DECLARED if declared else Basis.LIMITS
