"""Evictions for a plan that the API server refuses."""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.contention.loose import Loose
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.results import EvictionRefused, Spared

REFUSED_S = 60.0
"""A plan ends once the API server has refused one of its evictions for so many seconds, or at once if for good."""


class Refusals:
    """Reads what the API server has said to the gangs that leave, and to pods without a gang (`loose`)."""

    def __init__(self, gangs: Mapping[GroupKey, Gang], loose: Loose) -> None:
        self._gangs = gangs
        self._loose = loose

    def of(self, plan: Plan) -> dict[str, EvictionRefused]:
        """Why the API server has last refused to evict pods that leave for the plan, by UID."""
        refusals = self._loose.refused()
        for gang in (self._gangs[key] for key in (*plan.whole, *plan.single) if key in self._gangs):
            for operation in filter(None, (gang.operations.parting, gang.operations.rollback)):
                refusals |= operation.evictions.refused()
        return {uid: refusal for uid, refusal in refusals.items() if uid in plan.leaving}

    def why(self, plan: Plan) -> str:
        """What the API server has said about an eviction; empty if it refuses none."""
        refusals = self.of(plan)
        return refusals[min(refusals)].message if refusals else ""


def failed(plan: Plan, refusals: Mapping[str, EvictionRefused], since: Mapping[str, float], now: float) -> list[str]:
    """Units of which an eviction is refused for good, or has been since then, by UID, which is too long."""
    uids = {uid for uid, answer in refusals.items() if answer.why is Spared.FORBIDDEN or now >= since[uid] + REFUSED_S}
    return [name for name, pods in plan.units.items() if not uids.isdisjoint(pods)] if uids else []
