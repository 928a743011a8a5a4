"""What a gang does at a moment, in one word, for a chart of its past."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import FINISHED, Phase
from gangsched.views.group_row import GroupRow
from gangsched.views.timeline import Stage


class Activity(StrEnum):
    """What a gang does, or what was done to it."""

    WAITING = "waiting"
    BINDING = "binding"
    STARTING = "starting"
    """The minimum is bound and does not run yet."""
    RUNNING = "running"
    DEGRADED = "degraded"
    """It has lost members that it needs."""
    ROLLED_BACK = "rolled back"
    """Its binding was undone."""
    PREEMPTED = "preempted"
    """It waits because its members left for another group."""
    ENDED = "ended"


_BY_PHASE: dict[str, Activity] = {
    Phase.BINDING: Activity.BINDING,
    Phase.SCHEDULED: Activity.STARTING,
    Phase.RUNNING: Activity.RUNNING,
    Phase.DEGRADED: Activity.DEGRADED,
    **dict.fromkeys(FINISHED, Activity.ENDED),
}
_BY_STAGE = {
    Stage.CREATED: Activity.WAITING,
    Stage.BOUND_FIRST: Activity.BINDING,
    Stage.SCHEDULED: Activity.STARTING,
    Stage.RUNNING: Activity.RUNNING,
}
_UNDONE = (Reason.BINDING_UNDONE, Reason.PARTLY_BOUND)
Step = tuple[Activity, float]
"""An activity, and when it began, in epoch seconds."""


def activity(row: GroupRow) -> Activity:
    """What the gang does now."""
    if row.reason == Reason.PREEMPTED:
        return Activity.PREEMPTED
    if row.reason in _UNDONE:
        return Activity.ROLLED_BACK
    return _BY_PHASE.get(row.phase, Activity.WAITING)


def recorded(row: GroupRow) -> Sequence[Step]:
    """What it did before anyone looked, as far as its present run shows."""
    steps: list[Step] = []
    for moment in row.moments:
        begun = _BY_STAGE.get(moment.stage)
        if begun is not None and begun not in (step[0] for step in steps):
            steps.append((begun, moment.at))
    return steps
