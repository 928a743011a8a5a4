"""Creates PodGroups for groups without one whose reservations must survive a restart (contract rule 14).

These are groups with reservations for members that do not exist yet, and groups whose quorum is bound in part while the
rest is retried. Other groups get none, because their plan can be computed again from their pods. A group whose minimum
is unknown gets none either, because the PodGroup would keep a wrong minimum.
"""

from __future__ import annotations

from gangsched.core.declarations.terms import Terms
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.declaration import OBJECT_NAME
from gangsched.core.objects.effects import Effect, MakeGroup
from gangsched.core.objects.pod import by_age
from gangsched.core.objects.workload import Reference

AGAIN_S = 5.0
"""Time in seconds after which the request to create a PodGroup is repeated if the PodGroup has not been seen."""


def wanted(gang: Gang, terms: Terms) -> bool:
    """Whether the gang needs a PodGroup to store its reservations in.

    If none can be created, a quorum's bindings are retried without it, and reservations for members that do not exist
    are not relied on.
    """
    if gang.observed.group is not None or gang.plain or not terms.minimum_known:
        return False
    if gang.operations.placeholders():
        return True
    if OBJECT_NAME.fullmatch(gang.key.name) is None:
        return False
    is_to_be_marked = gang.record.preempted_at and not gang.operations.unmarkable
    if is_to_be_marked or (gang.operations.plan is not None and not gang.durability.unmade):
        return True
    if gang.durability.unmade or gang.record.scheduled_at:
        return False
    held = any(binding.state is BindState.HELD for binding in gang.operations.bindings.values())
    return held and bool(gang.bound())


def ask(gang: Gang, terms: Terms, now: float, *, needed: bool) -> list[Effect]:
    """Request the PodGroup that is `needed`, and repeat the request if it has not been seen for a while."""
    if not needed or gang.deserted():
        gang.operations.made_at = 0.0
        if gang.observed.group is None:
            # Members have taken the reservations that were to be written to it, so nothing waits for that write now.
            gang.durability.needless()
        return []
    if gang.operations.made_at and now < due(gang):
        return []
    gang.operations.made_at = now
    return [MakeGroup(gang.key, terms.spec, terms.workload or _declarer(gang), min(gang.live(), key=by_age).scheduler)]


def note_mark(gang: Gang, terms: Terms) -> None:
    """All members are to leave: there is nowhere to write that if there is no PodGroup and its minimum is unknown."""
    gang.operations.unmarkable |= gang.observed.group is None and not terms.minimum_known


def _declarer(gang: Gang) -> Reference:
    """The first pod that lists the gang's roles; without one, the first live pod."""
    live = sorted(gang.live(), key=by_age)
    pod = next((pod for pod in live if pod.declaration is not None and pod.declaration.roles), live[0])
    return Reference("v1", "Pod", pod.name, pod.uid)


def note_refused(gang: Gang, message: str) -> None:
    """Note that the API server has not created the PodGroup."""
    if gang.operations.made_at and gang.operations.placeholders():
        gang.operations.attempt.hear(message)
    elif gang.operations.made_at:
        gang.durability.could_not()
        gang.operations.unmarkable = True


def due(gang: Gang) -> float:
    """When to repeat the request, in epoch seconds; infinity if none was made."""
    return gang.operations.made_at + AGAIN_S if gang.operations.made_at else float("inf")
