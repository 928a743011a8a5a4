"""Events on a gang: once for each thing that there is to say."""

from __future__ import annotations

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.objects.effects import Effect, EmitEvent
from gangsched.core.objects.pod import Pod, member_order
from gangsched.core.objects.reasons import Reason
from gangsched.core.status.conditions import (
    UNTOLD_REASONS,
)


def emit(gang: Gang, assessment: Assessment, reason: Reason, note: str) -> list[Effect]:
    """The Event on the PodGroup, else on the oldest member; none if there is neither."""
    regarding = _regarding(gang, assessment)
    if regarding is None:
        return []
    kind, name, uid = regarding
    return [
        EmitEvent(
            kind=kind,
            namespace=gang.key.namespace,
            name=name,
            uid=uid,
            type="Normal" if reason in UNTOLD_REASONS else "Warning",
            reason=reason,
            action="Scheduling",
            note=note,
        )
    ]


def is_heard(assessment: Assessment, reason: Reason) -> bool:
    """Whether waiting members say this reason already: it was told before a restart."""
    return any(pod.told_reason == reason for pod in assessment.census.waiting)


def _regarding(gang: Gang, assessment: Assessment) -> tuple[str, str, str] | None:
    if gang.group is not None:
        return "PodGroup", gang.key.name, gang.group.uid
    live = assessment.census.live
    oldest = min(live, key=member_order, default=None)
    return ("Pod", oldest.name, oldest.uid) if oldest is not None else None


def new_strangers(gang: Gang) -> list[Pod]:
    """Pods of other schedulers that name the group and were not told that they are no members."""
    return [pod for uid, pod in gang.strangers.items() if uid not in gang.told.strangers]


def has_new_owners(gang: Gang) -> bool:
    """Whether an owner claims the gang beside another, and was not told of."""
    return not gang.claims.keys() <= gang.told.named_owners
