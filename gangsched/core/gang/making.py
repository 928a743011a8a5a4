"""PodGroups that the operator makes: for groups without one of whose places a restart must know (contract rule 14).

These are groups that hold places for members to come, and quorums of which a part is bound while the rest is tried
again. All others have none: what they need is planned anew from their pods. Nor is one made while nobody can say the
group's minimum: it would go on saying a wrong one.
"""

from __future__ import annotations

import re

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.runs import UNKNOWN_MINIMUM
from gangsched.core.gang.terms import Hindrance, Terms
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.effects import Effect, MakeGroup
from gangsched.core.objects.pod import member_order

AGAIN_S = 5.0
"""The making of a PodGroup that has not been seen is asked for again after this."""
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""The names that a PodGroup can have."""


def wanted(gang: Gang, hindrance: Hindrance | None) -> bool:
    """Whether the gang needs a PodGroup for its places to stand in.

    Where none could be made, a quorum's bindings are tried again without; places for members to come are not relied on.
    """
    if gang.group is not None or gang.plain or (hindrance is not None and hindrance.reason in UNKNOWN_MINIMUM):
        return False
    if gang.vacant():
        return True
    if gang.durability.unmade or gang.record.scheduled_at or OBJECT_NAME.fullmatch(gang.key.name) is None:
        return False
    held = any(binding.state is BindState.HELD for binding in gang.bindings.values())
    return held and any(pod.node for pod in gang.live())


def ask(gang: Gang, terms: Terms, hindrance: Hindrance | None, now: float) -> list[Effect]:
    """Have it made, again if it has not been seen for a while."""
    if not wanted(gang, hindrance) or gang.deserted():
        gang.made_at = 0.0
        if gang.group is None:
            # Members have taken the places that were to stand in it: nothing waits for that any more.
            gang.durability.needless()
        return []
    if gang.made_at and now < gang.made_at + AGAIN_S:
        return []
    live = sorted(gang.live(), key=member_order)
    owner = next((pod for pod in live if pod.declaration is not None and pod.declaration.roles), live[0])
    gang.made_at = now
    return [MakeGroup(gang.key, terms.spec, owner.name, owner.uid)]


def note_refused(gang: Gang, message: str) -> None:
    """The API server has not made it."""
    if not gang.made_at:
        return
    if gang.vacant():
        gang.attempt.heard(message)
        return
    gang.durability.could_not()


def due(gang: Gang) -> float:
    """When it is asked for again, in epoch seconds; infinity if it is not."""
    return gang.made_at + AGAIN_S if gang.made_at else float("inf")
