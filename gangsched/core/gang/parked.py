"""A gang that is parked because its logic has failed: until when, and what ends that sooner."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.wants import role_minima
from gangsched.core.gang.writes import Undo
from gangsched.core.objects.faults import Step


@dataclass(slots=True)
class Parked:
    """A gang that is parked: until when, by its so-manieth fault in a row, and which.

    `minimum` and `role_minima` are what its quorum needs, 0 where nobody can say. `spec` and `members` are what may
    change. `undo` is the rollback of a quorum of which only a part is bound, since `partial_since`. `told`: its Event
    was emitted. `failed` names what of this module has failed over it too, and is not done for it any more.
    """

    until: float
    times: int
    step: Step
    error: str
    soonest: float
    minimum: int
    role_minima: Mapping[str, int]
    spec: Hashable
    members: Hashable = ()
    scheduled: bool = False
    partial_since: float = 0.0
    undo: Undo | None = None
    told: bool = False
    failed: frozenset[str] = frozenset()


def quorum_of(gang: Gang) -> tuple[int, Mapping[str, int]]:
    """How many members its quorum needs, in all and by role, as far as it can be said without its logic."""
    if gang.record.quorum is not None:
        return gang.record.quorum.total, dict(gang.record.quorum.roles)
    if gang.group is not None and gang.group.spec is not None:
        return gang.group.spec.minimum, role_minima(gang.group.spec)
    says = [pod.declaration for pod in gang.pods.values() if pod.declaration is not None]
    return max((say.min_member or 0 for say in says), default=0), {}


def spec_of(gang: Gang) -> Hashable:
    """What the gang's PodGroup asks for, to be compared."""
    return None if gang.group is None else (gang.group.uid, gang.group.spec, gang.group.error)


def members_of(gang: Gang) -> Hashable:
    """The gang's members as far as they decide, to be compared."""
    return frozenset((pod.uid, pod.shape, pod.declaration, pod.labels) for pod in gang.live())
