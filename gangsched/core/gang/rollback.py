"""Evicts members from their nodes: the rollback of a quorum that cannot be completed, and onDegraded Restart.

Both evict and never delete (contract rule 13). A rollback evicts all bound members except those that no controller
would recreate and those of Jobs that would count it as a failure; these are spared, and the status says so. A restart
evicts every member that was alive when it began. Meanwhile nothing of the gang is planned; once only refused evictions
and spared members are left, a gang that was rolled back is planned again with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gangsched.core.gang import bindings, clock
from gangsched.core.gang.evicting import REVIEW_S, Cause, Evictions
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.wants import roles_of
from gangsched.core.gang.writes import BindState, Rollback
from gangsched.core.objects.duration import format_duration
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import EvictionRefused, OwnerSeen, PodEvicted
from gangsched.core.objects.wording import number_of

if TYPE_CHECKING:
    from gangsched.core.gang.turn import Turn

LONGEST_MARGIN_S = 10.0
"""A rollback begins this many seconds before the repair deadline, or a third of the deadline if that is less, so that
bindings in flight get their results and evictions are accepted in time."""
RESTART_NOTE = "The group fell below its minimum and onDegraded is Restart"


def under_way(gang: Gang) -> Rollback | None:
    """The rollback or restart that is evicting members at present; None if there is none."""
    rollback = gang.operations.rollback
    return rollback if rollback is not None and not rollback.retried else None


def concerns(turn: Turn) -> bool:
    """Whether members are bound, or have been, so that the gang may be bound in part or have lost its minimum."""
    gang, record = turn.gang, turn.gang.record
    doing = gang.operations
    noted = record.damaged or record.placeholders_expired or gang.roster.inherited or doing.short_since
    return bool(turn.census.bound or record.scheduled_at or doing.partial_since or doing.rollback or noted)


def is_restarted(turn: Turn) -> bool:
    """Whether all members that onDegraded Restart evicts have left."""
    doing = turn.gang.operations.rollback
    return doing is not None and doing.restart is not None and not targets(turn.gang, doing)


def end_restart(turn: Turn) -> None:
    """End their run; the present members begin the next."""
    gang = turn.gang
    old = gang.operations.rollback.restart if gang.operations.rollback is not None else None
    pods = gang.observed.pods
    past = {uid for uid in old or () if uid in pods} | {pod.uid for pod in pods.values() if pod.terminal}
    gang.begin_run(gang.roster.past | past)
    end(gang)


def is_restart_off(turn: Turn) -> bool:
    """Whether the spec asks for the restart no longer, or the group is whole before any member has left."""
    gang, doing = turn.gang, turn.gang.operations.rollback
    if doing is None or doing.restart is None or is_preemption(doing):
        return False
    known = turn.terms.minimum_known
    asked = known and gang.record.scheduled_at and turn.terms.spec.on_degraded is OnDegraded.RESTART
    begun = any(uid in gang.roster.leaving or uid not in gang.observed.pods for uid in doing.restart)
    return (known and not asked) or not (gang.operations.short_since or begun)


def call_off(turn: Turn) -> None:
    """Evict no more."""
    end(turn.gang)


def have_inherited_left(turn: Turn) -> bool:
    """Whether members that began a quorum without this leader have gone, or the quorum is bound or over."""
    return bool(turn.gang.roster.inherited) and _inherited(turn) != turn.gang.roster.inherited


def keep_inherited(turn: Turn) -> None:
    """Forget them."""
    turn.gang.roster.inherit_only(_inherited(turn))


def _inherited(turn: Turn) -> set[str]:
    """The members with which a quorum may have begun; while the minimum is unknown, they stay noted."""
    gang, record = turn.gang, turn.gang.record
    if not record.open or record.scheduled_at or (turn.terms.minimum_known and not turn.need):
        return set()
    return gang.roster.inherited & gang.observed.pods.keys()


def is_partial_now(turn: Turn) -> bool:
    """Whether a part of the quorum has been bound and the rest is not (rule 1)."""
    return not turn.gang.operations.partial_since and _is_partial(turn)


def note_partial(turn: Turn) -> None:
    """Note since when that is so."""
    turn.gang.operations.partial_since = turn.now


def is_partial_no_longer(turn: Turn) -> bool:
    """Whether no part of a quorum is bound any more, or all of it."""
    doing = turn.gang.operations.rollback
    noted = turn.gang.operations.partial_since or (doing is not None and doing.restart is None)
    return bool(noted) and not _is_partial(turn)


def end_partial(turn: Turn) -> None:
    """The quorum is not partly bound, so that a rollback of it is over."""
    turn.gang.operations.partial_since = 0.0
    doing = turn.gang.operations.rollback
    if doing is not None and doing.restart is None:
        end(turn.gang)


def _is_partial(turn: Turn) -> bool:
    gang, record = turn.gang, turn.gang.record
    # Members that are bound beside reservations that a cap has released stay bound, as when these expire.
    if not record.open or record.scheduled_at or record.capped is not None:
        return False
    begun = gang.begun()
    if not any(pod.uid in begun for pod in turn.census.bound):
        return False
    held = turn.census.held
    return bool(turn.need.beside(roles_of(held)) if held else turn.need)


def is_quorum_overdue(turn: Turn) -> bool:
    """Whether the quorum has been partly bound for too long."""
    return under_way(turn.gang) is None and is_due(turn.gang.operations.partial_since, turn.now, turn.policy)


def begin(turn: Turn) -> None:
    """Roll the quorum back (rules 1 and 13)."""
    gang, now = turn.gang, turn.now
    held = bindings.complaint(gang)
    note = note_of(len(turn.census.bound), turn.need.number, held, now - gang.operations.partial_since)
    _begin(gang, note, now)
    gang.change(rollback_note=note)
    gang.wait.park()
    clock.back_off(gang, now=now, policy=turn.policy)


def is_restart_due(turn: Turn) -> bool:
    """Whether a group with onDegraded Restart has been below its minimum for too long, unless it leaves for another."""
    gang, since = turn.gang, turn.gang.operations.short_since
    if (
        not since
        or gang.record.preempted_at
        or turn.terms.spec.on_degraded is not OnDegraded.RESTART
        or gang.record.late
    ):
        return False
    return under_way(gang) is None and turn.now >= since + turn.policy.degraded_after_s


def begin_restart(turn: Turn) -> None:
    """Evict all of its members (rule 12)."""
    _begin(turn.gang, RESTART_NOTE, turn.now, frozenset(pod.uid for pod in turn.census.live))


def holds_beside(turn: Turn) -> bool:
    """Whether the gang has reservations while members of it are evicted."""
    return under_way(turn.gang) is not None and any(binding.state is BindState.HELD for binding in turn.census.begun)


def release_held(turn: Turn) -> None:
    """Give them up."""
    bindings.release_held(turn.gang, turn.cluster)


def note_of(bound: int, missing: int, complaint: str, after_s: float) -> str:
    """What has happened to a quorum or part that is rolled back."""
    return (
        f"{number_of(bound, 'member')} {'was' if bound == 1 else 'were'} bound, and {missing} more could not be bound "
        f"within {format_duration(round(after_s))}{f' ({complaint})' if complaint else ''}"
    )


def _begin(gang: Gang, note: str, now: float, restart: frozenset[str] | None = None) -> None:
    since = gang.operations.rollback.since if gang.operations.rollback is not None else now
    gang.operations.rollback = begun(since, note, now, restart=restart)


def is_preemption(doing: Rollback | None) -> bool:
    """Whether it evicts members for another group."""
    return doing is not None and doing.evictions.cause in (Cause.PREEMPTION, Cause.OVERDUE)


def begun(
    since: float,
    note: str,
    now: float,
    *,
    restart: frozenset[str] | None = None,
    part: frozenset[str] | None = None,
    cause: Cause | None = None,
) -> Rollback:
    """A rollback that has lasted `since` then, of a quorum or of this `part`, or a restart of these members.

    With another `cause`, these members are evicted for that.
    """
    cause = cause or (Cause.ROLLBACK if restart is None else Cause.RESTART)
    return Rollback(since, note, Evictions(cause, review_at=now + REVIEW_S), restart, part)


def is_due(since: float, now: float, policy: Policy) -> bool:
    """Whether a quorum or part that has been partly bound since then has been so for too long."""
    return bool(since) and now >= since + lasts_s(policy)


def lasts_s(policy: Policy) -> float:
    """How long a quorum may stay partly bound before it is rolled back, in seconds."""
    return policy.repair_deadline_s - min(LONGEST_MARGIN_S, policy.repair_deadline_s / 3)


def targets(gang: Gang, doing: Rollback) -> list[Pod]:
    """The members to be evicted that still exist."""
    if doing.restart is not None:
        return [pod for pod in gang.live() if pod.uid in doing.restart]
    begun = gang.begun() if doing.part is None else doing.part
    return [pod for pod in gang.bound() if pod.uid in begun]


def retry(gang: Gang) -> None:
    """Stop evicting, because nodes were found for the rest after all; evictions resume if that fails too."""
    if gang.operations.rollback is not None:
        gang.operations.rollback.retried = True
        gang.operations.partial_since = 0.0


def go_on_with(gang: Gang, rollback: Rollback | None) -> None:
    """Set the rollback or restart to carry out from now on; None for none."""
    gang.operations.rollback = rollback


def end(gang: Gang) -> None:
    """End the rollback or restart."""
    go_on_with(gang, None)


def end_whole(gang: Gang) -> None:
    """All of the quorum is bound."""
    gang.operations.partial_since = 0.0
    end(gang)


def forget_pod(gang: Gang, uid: str) -> None:
    """Forget the pod's evictions."""
    for doing in gang.operations.rollbacks(retried=True):
        doing.evictions.forget(uid)


def count_on(gang: Gang, since: float) -> None:
    """Note that a part of a quorum has been bound since then, in epoch seconds."""
    gang.operations.partial_since = since


def may_plan(gang: Gang, now: float) -> bool:
    """Whether the gang may be planned: not while all of its members are being evicted, or are to be.

    A rollback that can do no more for now, because every remaining member is spared or its eviction was refused, does
    not prevent planning. But the back-off after a rollback always runs to its end, so that rollbacks do not follow each
    other.
    """
    if gang.record.preempted_at or (gang.record.rollback_note and now < gang.record.retry_at):
        return False
    rollback = under_way(gang)
    if rollback is None:
        return True
    return rollback.restart is None and can_do_no_more(gang, rollback, now)


def can_do_no_more(gang: Gang, doing: Rollback, now: float) -> bool:
    """Whether the rollback has evicted all that it can for now."""
    return not bindings.unconfirmed_of(gang, doing.part) and doing.evictions.can_do_no_more(targets(gang, doing), now)


def go_on(gang: Gang, now: float) -> list[Effect]:
    """The effects that rollbacks or a restart send now."""
    return [effect for doing in gang.operations.rollbacks() for effect in _go_on(gang, doing, now)]


def _go_on(gang: Gang, doing: Rollback, now: float) -> list[Effect]:
    """The effects of one of them; no eviction before every binding has its result."""
    left = bindings.unconfirmed_of(gang, doing.part)
    return bindings.withdraw(left) if left else doing.evictions.go_on(targets(gang, doing), now)


def note_result(gang: Gang, event: PodEvicted | EvictionRefused | OwnerSeen, now: float) -> None:
    """Note the result of an eviction or of the look-up of a Job; results for another gang change nothing."""
    for doing in gang.operations.rollbacks(retried=True):
        if doing.evictions.note(event, now):
            gang.roster.leave(event.uid)


def asks_about(gang: Gang, owner: str) -> bool:
    """Whether a rollback has looked up the owner with this UID."""
    return any(doing.evictions.asks_about(owner) for doing in gang.operations.rollbacks(retried=True))


def next_due(gang: Gang) -> float:
    """When `go_on` has something to send without an event, in epoch seconds; infinity if never."""
    return min(
        (
            doing.evictions.next_due(targets(gang, doing))
            for doing in gang.operations.rollbacks()
            if not bindings.unconfirmed_of(gang, doing.part)
        ),
        default=clock.NEVER,
    )


def spared(gang: Gang, doing: Rollback) -> list[Pod]:
    """The members that are left on their nodes for now."""
    return doing.evictions.left(targets(gang, doing))


def refusals(gang: Gang, doing: Rollback) -> Sequence[EvictionRefused]:
    """The refusals that prevent evictions at present."""
    return doing.evictions.refusals(targets(gang, doing))
