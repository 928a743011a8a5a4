"""The ways in which a plan ends, each a row of `ENDINGS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import rollback
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.gang.wants import as_a_whole
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.record import Outcome


class Look(NamedTuple):
    """A plan as it stands: its group, and what else its end depends on.

    Evictions of the `refused` units fail. Some `stay` that were to leave in any case. `is_foreign` tells pods of other
    schedulers.
    """

    gang: Gang
    assessment: Assessment | None
    plan: Plan
    cluster: Cluster
    refused: Sequence[str]
    stay: bool
    is_foreign: Callable[[Pod], bool]
    now: float

    @property
    def left(self) -> bool:
        """Whether none of those that leave is on a node any more, and none of their devices is kept for them."""
        claims, leaving = self.cluster.ledger.claims, self.plan.leaving
        if any(uid in claims and claims[uid].counts for uid in leaving):
            return False
        kept = filter(None, map(self.cluster.devices.claim, self.plan.claims))
        return not any(claim.allocation is not None and leaving.issuperset(claim.reserved) for claim in kept)


class Ending(NamedTuple):
    """A way in which a plan ends: once `fact` is true, or, without one, when it is told to.

    It `pauses` the group's next plan, or `passes` over those who could not leave.
    """

    name: str
    fact: Callable[[Look], bool] = lambda _: False
    pauses: bool = False
    passes: bool = False


def _is_started(look: Look) -> bool:
    # A group that was scheduled before, or in the same call, has a larger minimum now.
    return look.gang.operations.has_unconfirmed() or look.gang.record.scheduled_at > look.plan.opened_at


def _is_gone(look: Look) -> bool:
    gang, assessment = look.gang, look.assessment
    if assessment is None or gang.deserted():
        return True
    # While its evictions have no answer it wants nothing, and if they are refused the same as before.
    nothing = rollback.under_way(gang) is None and as_a_whole(gang, assessment.terms, assessment.want) is None
    return gang.record.outcome is Outcome.OUT_OF_TIME or not assessment.complete or nothing


def _has_changed(look: Look) -> bool:
    asked, refusal = look.gang.wait.asked, look.gang.wait.refusal
    if look.stay or not look.plan.allowed or (refusal is not None and refusal.never):
        return True
    return asked is not look.plan.asked and asked != look.plan.asked


def _has_lost_a_node(look: Look) -> bool:
    return look.now >= look.plan.lost_at


def _is_refused(look: Look) -> bool:
    return bool(look.refused)


def _is_without_room(look: Look) -> bool:
    # Where a node may be back soon it has not had its turn yet.
    waits = look.plan.former or look.plan.lost_at < NEVER or not look.gang.wait.parked
    return not waits and (not look.plan.covered or (look.plan.tried_when_left and look.left))


def _has_lost_its_room(look: Look) -> bool:
    """Another scheduler has taken it; otherwise a group before this one in the order has."""
    return _is_without_room(look) and bool(
        foreign_on(look.plan.places, look.cluster, look.is_foreign) - look.plan.beside
    )


def foreign_on(places: Sequence[tuple[Pod, str]], cluster: Cluster, is_foreign: Callable[[Pod], bool]) -> set[str]:
    """The pods of other schedulers, by UID, that are on the nodes of these places."""
    nodes = {node for _, node in places}
    pods = [claim.pod for node in nodes for claim in cluster.on_node.get(node, {}).values()]
    return {pod.uid for pod in pods if is_foreign(pod)}


def _has_expired(look: Look) -> bool:
    return look.now >= look.plan.expires


STARTED, REFUSED, ROOM_LOST, _GONE = "Started", "Refused", "RoomLost", "Gone"
FINAL = frozenset({STARTED, _GONE})
"""After these the group waits for nothing more."""
CHANGED = Ending("Changed", _has_changed)
"""Also if the plan turns out to be wrong before anybody is evicted."""
MOVED = Ending("Moved")
"""The group has another plan by which it starts earlier."""
YIELDED = Ending("Yielded")
"""A group before this one reserves nodes that it needs, or none may reserve any."""
UNKEPT = Ending("Unkept", passes=True)
"""Who has lasted longer than declared may not be evicted at present."""
OVERTAKEN = Ending("Overtaken", _is_without_room)
"""Also if a group before this one has taken room that was reserved."""
ENDINGS = (
    Ending(STARTED, _is_started),
    Ending(_GONE, _is_gone),
    CHANGED,
    Ending("NodeLost", _has_lost_a_node),
    Ending(REFUSED, _is_refused, passes=True),
    Ending(ROOM_LOST, _has_lost_its_room, pauses=True),
    OVERTAKEN,
    Ending("Expired", _has_expired, pauses=True, passes=True),
)
"""The endings in order of precedence."""
LOST = frozenset({ending.name for ending in ENDINGS} - FINAL) | {UNKEPT.name}
"""How places are lost that the group still waits for and would have kept; `MOVED` and `YIELDED` are not."""
