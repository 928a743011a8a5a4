"""Messages for a group without live members whose last run has neither succeeded nor failed."""

from __future__ import annotations

from gangsched.core.gang.gang import Gang
from gangsched.core.objects.record import Outcome
from gangsched.core.objects.wording import counted

NAMES_SHOWN = 3
"""Number of schedulerNames that one message or write names, because anyone may create pods with any number of them."""


def schedulers(gang: Gang) -> list[str]:
    """The schedulerNames of pods that name the group and do not count, at most NAMES_SHOWN of them."""
    return sorted({pod.scheduler for pod in gang.observed.foreign_pods.values()})[:NAMES_SHOWN]


def suspended(gang: Gang) -> str:
    """Which workload wants no pods, and how to resume it."""
    idle = gang.observed.idle
    if idle is None:
        return ""
    how = "resume it" if idle.suspended else "scale it up"
    return f"No member is left, because the {idle.called} {idle.why}: {how} to begin the next run."


def no_members(gang: Gang) -> str:
    """Why the group has no members: those of its last run are gone, or there has been no run."""
    if gang.record.outcome is Outcome.UNDECIDED:
        ended = "have ended or " if gang.record.successes or gang.record.failed else ""
        return f"All members {ended}were deleted, so this run is over: the next one begins with the next member."
    foreign_pods = gang.observed.foreign_pods
    if not foreign_pods:
        return "No pod names this PodGroup yet: label pods gangsched.io/pod-group and set schedulerName."
    names = ", ".join(schedulers(gang))
    return (
        f"{counted(len(foreign_pods), 'pod', 'names', 'name')} this PodGroup with a schedulerName that gangsched "
        f"does not serve ({names}): correct their schedulerName."
    )
