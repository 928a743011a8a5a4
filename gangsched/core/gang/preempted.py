"""Members that leave for another group: all members of this one, or single ones above its minimum.

That all are to leave is written to the PodGroup's status before the first of them is evicted, so that whoever leads
finishes it: no part of a gang is left. Nobody is spared (contract rule 13). A single member, or a pod without a group,
leaves nothing behind that would have to be finished, so nothing is written about it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from gangsched.core.gang import rollback
from gangsched.core.gang.evicting import Cause
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import OBJECT_NAME, GroupKey

if TYPE_CHECKING:
    from gangsched.core.gang.turn import Turn

PRIORITY, OVERDUE = "Priority", Cause.OVERDUE.value
"""The causes of a preemption as the status names them: a group of higher priority, or a run time that was declared."""
REFUSED_S = 65.0
"""A group stays after so many seconds in which nobody of it could be evicted: a little longer than a plan waits."""
LONGEST_REFUSED_S = 600.0
"""Some of a group have been evicted: so many seconds are tried to evict the rest, before the group is made whole."""
NOTE = "The nodes of the group are needed by another group, and all of its members leave together"


def concern(turn: Turn) -> bool:
    """Whether members leave for another group, or are to."""
    return bool(turn.gang.record.preempted_at) or turn.gang.operations.parting is not None


def mark(gang: Gang, now: float, holder: GroupKey, cause: str) -> None:
    """All members are to leave for this group; that they are is written to the status first."""
    gang.operations.leave_for(holder)
    gang.change(preempted_at=now, preempted_by=cause, preemptions=gang.record.preemptions + 1)


def spare(gang: Gang) -> None:
    """The members stay after all, of whom none was evicted yet."""
    gang.change(preempted_at=0.0, preempted_by="", preemptions=max(0, gang.record.preemptions - 1))


def are_all_there(gang: Gang) -> bool:
    """Whether members are being evicted for another group, and no eviction was accepted yet."""
    doing = gang.operations.rollback
    if doing is None or doing.restart is None or not rollback.is_preemption(doing):
        return False
    return doing.restart <= {pod.uid for pod in gang.live()}


def is_untouched(gang: Gang) -> bool:
    """Whether members are being evicted for another group, of whom all are still there and none is about to leave."""
    doing = gang.operations.rollback
    return doing is not None and are_all_there(gang) and not any(map(doing.evictions.is_asked, doing.restart or ()))


def is_refused(turn: Turn) -> bool:
    """Whether the API server has refused to evict the members that are left for so long that no plan counts on them.

    A disruption budget may allow some of a gang to be evicted, and no more before it is whole again, which it cannot be
    while it is to leave.
    """
    gang, doing = turn.gang, turn.gang.operations.rollback
    if doing is None or turn.now < given_up_at(gang):
        return False
    left = rollback.targets(gang, doing)
    return bool(left) and doing.evictions.can_do_no_more(left, turn.now)


def given_up_at(gang: Gang) -> float:
    """From when on, in epoch seconds, the gang stays if its members cannot be evicted; infinity if none leaves."""
    doing = gang.operations.rollback
    if doing is None or not rollback.is_preemption(doing):
        return float("inf")
    return doing.since + (REFUSED_S if is_untouched(gang) else LONGEST_REFUSED_S)


def stay(turn: Turn) -> None:
    """Evict no more: whoever is left stays, and the gang is made whole again."""
    rollback.end(turn.gang)
    turn.gang.change(preempted_at=0.0, preempted_by="")


def is_awaited(gang: Gang) -> bool:
    """Whether all members are to leave and none is evicted before that is written."""
    return bool(gang.record.preempted_at) and not rollback.is_preemption(gang.operations.rollback)


def is_overdue(gang: Gang) -> bool:
    """Whether its members leave, or have last left, because they have overstayed; it is known until they are placed."""
    return gang.record.preempted_by == OVERDUE


def leaves(gang: Gang, uid: str) -> bool:
    """Whether the member leaves for another group, or is to."""
    parting = gang.operations.parting
    return bool(gang.record.preempted_at) or (parting is not None and parting.part is not None and uid in parting.part)


def is_to_leave(turn: Turn) -> bool:
    """Whether it is written that all members are to leave, and their evictions have not begun."""
    gang = turn.gang
    return is_awaited(gang) and not gang.operations.awaits_plan and bool(turn.census.bound) and is_marked(gang)


def is_marked(gang: Gang) -> bool:
    """Whether the status says that all members are to leave, or there is no PodGroup that could say so."""
    if gang.observed.group is not None:
        return gang.written.marked == gang.record.preempted_at
    return gang.plain or gang.operations.unmarkable or OBJECT_NAME.fullmatch(gang.key.name) is None


def leave(turn: Turn) -> None:
    """Evict all members that are bound; others have come since."""
    gang = turn.gang
    cause = Cause.OVERDUE if is_overdue(gang) else Cause.PREEMPTION
    members = frozenset(pod.uid for pod in turn.census.bound)
    rollback.go_on_with(gang, rollback.begun(turn.now, NOTE, turn.now, restart=members, cause=cause))


def is_over(turn: Turn) -> bool:
    """Whether all members are to leave and none is on a node any more."""
    return is_awaited(turn.gang) and not turn.census.bound and not turn.census.begun


def end(turn: Turn) -> None:
    """They have left; why is kept until they are placed again."""
    turn.gang.change(preempted_at=0.0)


def part_with(gang: Gang, uids: Collection[str], now: float) -> None:
    """These members above the minimum leave, or the pod that is no group's."""
    before = gang.operations.parting
    leaving = before.part if before is not None and before.part is not None else frozenset()
    gang.operations.parting = rollback.begun(now, NOTE, now, part=leaving | frozenset(uids), cause=Cause.PREEMPTION)


def keep_all_but(gang: Gang, wanted: Collection[str]) -> bool:
    """Whether any but the `wanted` members stays after all: its eviction is neither accepted nor on its way."""
    parting = gang.operations.parting
    if parting is None or parting.part is None:
        return False
    unasked = {pod.uid for pod in gang.live() if not parting.evictions.is_asked(pod.uid)}
    staying = parting.part & unasked.difference(wanted)
    parting.part -= staying
    return bool(staying)


def have_parted(turn: Turn) -> bool:
    """Whether single members were to leave and none of them is on a node any more."""
    parting = turn.gang.operations.parting
    return parting is not None and not rollback.targets(turn.gang, parting)


def end_parting(turn: Turn) -> None:
    """They have left."""
    turn.gang.operations.parting = None
