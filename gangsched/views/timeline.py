"""The stages of one gang and when it reached them, as far as that is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from gangsched.core.gang.gang import Gang
from gangsched.core.objects.record import FINISHED


class Stage(StrEnum):
    """A stage in the life of a gang, in the order in which gangs reach them."""

    CREATED = "created"
    """The PodGroup was created, or the first member of a gang without one."""
    COMPLETE = "complete"
    """As many members as needed existed."""
    BOUND_FIRST = "first bound"
    """The first of the present members was bound, milliseconds after the decision."""
    SCHEDULED = "scheduled"
    """The minimum was bound, as the status says."""
    BOUND_LAST = "last bound"
    """The last of the present members was bound."""
    RUNNING = "running"
    """The minimum was first seen running."""
    ENDED = "ended"
    """The run succeeded or failed."""


_ORDER = list(Stage)


@dataclass(frozen=True, slots=True)
class Moment:
    """The stage was reached `at`, in epoch seconds. Times of pods are whole seconds."""

    stage: Stage
    at: float


def moments(gang: Gang, minimum: int) -> list[Moment]:
    """The known moments of the present run, in chronological order; moments at the same time are sorted by stage.

    Times of pods are those of members that still exist: a replacement counts from its own creation.
    """
    return sorted(_moments(gang, minimum), key=lambda moment: (moment.at, _ORDER.index(moment.stage)))


def _moments(gang: Gang, minimum: int) -> Iterator[Moment]:
    members = gang.live()
    created = sorted(pod.created for pod in members)
    bound = [pod.bound_at for pod in members if pod.bound_at]
    if gang.observed.group is not None or created:
        yield Moment(Stage.CREATED, gang.observed.group.created if gang.observed.group is not None else created[0])
    if 0 < minimum <= len(created):
        yield Moment(Stage.COMPLETE, created[minimum - 1])
    if bound:
        yield Moment(Stage.BOUND_FIRST, min(bound))
        yield Moment(Stage.BOUND_LAST, max(bound))
    status = gang.observed.group.status if gang.observed.group is not None else None
    if status is not None and status.scheduled_time:
        yield Moment(Stage.SCHEDULED, status.scheduled_time)
    if status is not None and status.running_time:
        yield Moment(Stage.RUNNING, status.running_time)
    if status is not None and status.finished_at and status.phase in FINISHED:
        yield Moment(Stage.ENDED, status.finished_at)
