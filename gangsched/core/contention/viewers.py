"""For whom what is reserved counts."""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.cluster.claims import Viewer
from gangsched.core.cluster.ledger import Ledger
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.queueing.order import OrderKey, order_key


class Viewers:
    """Says for each group that is placed who asks."""

    def __init__(
        self, ledger: Ledger, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment]
    ) -> None:
        self._ledger = ledger
        self._gangs = gangs
        self._assessments = assessments

    def of(self, key: GroupKey, assessment: Assessment, *, above: bool = False) -> Viewer:
        """Who asks when this group is placed, or its members `above` its minimum.

        What is reserved for a group does not count for itself, and not for quorums before it in the order. But one that
        has a plan of its own does not take the room of a later plan, for which others would have left in vain.
        """
        priority, reserved = assessment.terms.priority, self._ledger.reserved
        if not reserved:
            return Viewer(priority)
        gang = self._gangs[key]
        rank = order_key(gang, assessment)
        yields = [each for each in reserved if not above and self._is_behind(each, rank)]
        own = gang.operations.plan
        return Viewer(
            priority, frozenset(each for each in yields if self._is_older(each, own)) | (reserved.keys() & {key})
        )

    def _is_older(self, holder: GroupKey, own: Plan | None) -> bool:
        """Whether this group's plan is not later than one's own, which may count on the same room."""
        gang = self._gangs.get(holder)
        plan = gang.operations.plan if gang is not None else None
        return own is None or own.former or plan is None or plan.opened_at <= own.opened_at

    def _is_behind(self, holder: GroupKey, rank: OrderKey) -> bool:
        gang, assessment = self._gangs.get(holder), self._assessments.get(holder)
        return gang is None or assessment is None or rank < order_key(gang, assessment)
