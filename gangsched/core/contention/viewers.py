"""For whom what is reserved counts."""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.cluster.claims import Viewer
from gangsched.core.cluster.ledger import Ledger
from gangsched.core.contention.ends import last_end
from gangsched.core.contention.surplus import leave_one_by_one
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.policy import Policy
from gangsched.core.queueing.order import OrderKey, order_key


class Viewers:
    """Says for each group that is placed who asks."""

    def __init__(
        self,
        ledger: Ledger,
        gangs: Mapping[GroupKey, Gang],
        assessments: Mapping[GroupKey, Assessment],
        foreign: Foreign,
        policy: Policy,
    ) -> None:
        self._ledger = ledger
        self._gangs = gangs
        self._assessments = assessments
        self._foreign = foreign
        self._by_promises = policy.reservations.by_promises

    def of(self, key: GroupKey, assessment: Assessment, now: float, *, above: bool = False) -> Viewer:
        """Who asks when this group is placed, or its members `above` its minimum.

        What is reserved for a group does not count for itself, and not for quorums before it in the order. But one that
        has a plan of its own does not take the room of a later plan, for which others would have left in vain. Nor does
        a repair of a group whose members leave one by one: it is not first where others leave, or it would take back
        what such a member has left. What is reserved for later counts for nobody who will have ended by then.
        """
        priority, reserved = assessment.terms.priority, self._ledger.reserved
        if not reserved:
            return Viewer(priority)
        gang = self._gangs[key]
        rank = order_key(gang, assessment)
        last = above or gang.operations.overstayed
        where_others_leave = (True, *rank[1:]) if leave_one_by_one(assessment.terms) else rank
        ranks = {holder: where_others_leave if room.start is None else rank for holder, room in reserved.items()}
        yields = [holder for holder, its in ranks.items() if not last and self._is_behind(holder, its)]
        own = gang.operations.plan
        hidden = frozenset(holder for holder in yields if self._is_older(holder, own)) | (reserved.keys() & {key})
        later = {holder: room.start for holder, room in reserved.items() if room.start is not None}
        seen = later.keys() - hidden
        if seen:
            end = self._end(gang, assessment, now)
            seen -= {holder for holder, start in later.items() if end <= start < NEVER}
        return Viewer(priority, hidden.difference(later), frozenset(seen))

    def reserved_until(self, viewer: Viewer) -> tuple[Viewer, float]:
        """The same without regard to what is reserved for later, and the first time at which any of that is needed.

        It is infinity if nobody knows the time, or nothing is reserved so that counts for this one.
        """
        reserved = self._ledger.reserved
        starts = (reserved[key].start for key in viewer.later if key in reserved)
        earliest = min((start for start in starts if start is not None), default=NEVER)
        return Viewer(viewer.priority, viewer.hidden), earliest

    def _end(self, gang: Gang, assessment: Assessment, now: float) -> float:
        """When all will have ended that the group wants to be bound now."""
        members = assessment.want.members()
        return last_end(members, gang, self._foreign, now, by_promises=self._by_promises)

    def _is_older(self, holder: GroupKey, own: Plan | None) -> bool:
        """Whether this group's plan is not later than one's own, which may count on the same room."""
        gang = self._gangs.get(holder)
        plan = gang.operations.plan if gang is not None else None
        return own is None or own.former or plan is None or plan.opened_at <= own.opened_at

    def _is_behind(self, holder: GroupKey, rank: OrderKey) -> bool:
        gang, assessment = self._gangs.get(holder), self._assessments.get(holder)
        return gang is None or assessment is None or rank < order_key(gang, assessment)
