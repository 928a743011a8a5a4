"""PodGroups that gangsched makes: for groups without one whose reservations a restart must know (contract rule 14).

These are groups that hold reservations for members that do not exist, and quorums of which a part is bound while the
rest is retried. All others get none: what they need is planned again from their pods. Nor is one made while the group's
minimum is unknown, because it would go on saying a wrong one.
"""

from __future__ import annotations

import re

from gangsched.core.declarations.terms import Terms
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.effects import Effect, MakeGroup
from gangsched.core.objects.pod import member_order
from gangsched.core.objects.workload import Reference

AGAIN_S = 5.0
"""The request for a PodGroup that has not been seen is repeated after this."""
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""The names that a PodGroup can have."""


def wanted(gang: Gang, terms: Terms) -> bool:
    """Whether the gang needs a PodGroup to write its reservations to.

    Where none can be made, a quorum's bindings are retried without it; reservations for members that do not exist are
    not relied on.
    """
    if gang.observed.group is not None or gang.plain or not terms.minimum_known:
        return False
    if gang.operations.vacant():
        return True
    if gang.durability.unmade or gang.record.scheduled_at or OBJECT_NAME.fullmatch(gang.key.name) is None:
        return False
    held = any(binding.state is BindState.HELD for binding in gang.operations.bindings.values())
    return held and any(pod.node for pod in gang.live())


def ask(gang: Gang, terms: Terms, now: float) -> list[Effect]:
    """Have the PodGroup made, and ask again if it has not been seen for a while."""
    if not wanted(gang, terms) or gang.deserted():
        gang.operations.made_at = 0.0
        if gang.observed.group is None:
            # Members have taken the reservations that were to be written to it: nothing waits for that any more.
            gang.durability.needless()
        return []
    if gang.operations.made_at and now < due(gang):
        return []
    gang.operations.made_at = now
    first = min(gang.live(), key=member_order)
    return [MakeGroup(gang.key, terms.spec, terms.workload or _declarer(gang), first.scheduler)]


def _declarer(gang: Gang) -> Reference:
    """The pod that declares the gang, the first of those that do."""
    live = sorted(gang.live(), key=member_order)
    pod = next((pod for pod in live if pod.declaration is not None and pod.declaration.roles), live[0])
    return Reference("v1", "Pod", pod.name, pod.uid)


def note_refused(gang: Gang, message: str) -> None:
    """The API server has not made the PodGroup."""
    if gang.operations.made_at and gang.operations.vacant():
        gang.attempt.heard(message)
    elif gang.operations.made_at:
        gang.durability.could_not()


def due(gang: Gang) -> float:
    """When the request is repeated, in epoch seconds; infinity if there is none."""
    return gang.operations.made_at + AGAIN_S if gang.operations.made_at else float("inf")
