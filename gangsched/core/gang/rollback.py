"""Evicts members from their nodes: the rollback of a quorum that cannot be completed, and onDegraded Restart.

Both evict and never delete (contract rule 13). A rollback evicts all bound members except those that no controller
would recreate and those of Jobs that would count it as a failure; these are spared, and the status says so. A restart
evicts every member that was alive when it began. Meanwhile nothing of the gang is planned; once only refused evictions
and spared members are left, a gang that was rolled back is planned again with them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.core.declarations.minima import Need
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang import bindings, clock
from gangsched.core.gang.evicting import REVIEW_S, Cause, Evictions
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.steps import Step, apply, begin_run
from gangsched.core.gang.wants import roles_of
from gangsched.core.gang.writes import BindState, Rollback
from gangsched.core.objects.duration import format_duration
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import EvictionRefused, OwnerSeen, PodEvicted
from gangsched.core.objects.wording import number_of

LONGEST_MARGIN_S = 10.0
"""A rollback begins this many seconds before the repair deadline, or a third of the deadline if that is less, so that
bindings in flight get their results and evictions are accepted in time."""
RESTART_NOTE = "The group fell below its minimum and onDegraded is Restart"


def under_way(gang: Gang) -> Rollback | None:
    """The rollback or restart that is evicting members at present; None if there is none."""
    rollback = gang.operations.rollback
    return rollback if rollback is not None and not rollback.retried else None


def end_restart(gang: Gang) -> None:
    """End the run of a group whose old members onDegraded Restart has evicted; the present ones begin the next."""
    rollback = gang.operations.rollback
    if rollback is None or rollback.restart is None or targets(gang, rollback):
        return
    old = (rollback.restart & gang.observed.pods.keys()) | {
        pod.uid for pod in gang.observed.pods.values() if pod.terminal
    }
    begin_run(gang, gang.roster.past | old)
    end(gang)


def note_partial(gang: Gang, census: Census, need: Need, terms: Terms, now: float) -> None:
    """Note since when a part of a quorum has been bound while the rest is not (rule 1).

    While the minimum is unknown, inherited members stay noted.
    """
    record = gang.record
    open_ = bool(record.run_start) and not record.ended and not record.scheduled_at
    gang.roster.inherit_only(gang.roster.inherited & gang.observed.pods.keys() if open_ else ())
    gang.roster.keep(gang.observed.pods)
    begun, held = gang.begun(), gang.operations.placeholders()
    lacks = need.beside(roles_of(held)) if held else need
    # Members that are bound beside reservations that a cap has released stay bound, as when these expire.
    partial = open_ and bool(lacks) and record.capped is None and any(pod.uid in begun for pod in census.bound)
    if terms.minimum_known and not need:
        gang.roster.inherit_only()
    gang.operations.partial_since = (gang.operations.partial_since or now) if partial else 0.0
    if gang.operations.rollback is not None and gang.operations.rollback.restart is None and not partial:
        end(gang)


def drop_restart(gang: Gang, terms: Terms) -> None:
    """Call off a restart that the spec no longer asks for, or whose group is whole before any member has left."""
    if gang.operations.rollback is None or gang.operations.rollback.restart is None:
        return
    known = terms.minimum_known
    asked = known and gang.record.scheduled_at and terms.spec.on_degraded is OnDegraded.RESTART
    begun = any(uid in gang.roster.leaving or uid not in gang.observed.pods for uid in gang.operations.rollback.restart)
    if (known and not asked) or not (gang.observed.short_since or begun):
        end(gang)


def begin_due(gang: Gang, census: Census, need: Need, terms: Terms, *, now: float, policy: Policy) -> None:
    """Roll back a quorum that could not be completed in time; begin a restart that is due (rules 1, 12 and 13)."""
    if under_way(gang) is not None:
        return
    restarts = terms.spec.on_degraded is OnDegraded.RESTART and not gang.record.late
    if is_due(gang.operations.partial_since, now, policy):
        held = bindings.complaint(gang)
        note = note_of(len(census.bound), need.number, held, now - gang.operations.partial_since)
        _begin(gang, note, now)
        apply(gang, Step.ROLLED_BACK, rollback_note=note)
        clock.back_off(gang, now=now, policy=policy)
    elif restarts and gang.observed.short_since and now >= gang.observed.short_since + policy.degraded_after_s:
        _begin(gang, RESTART_NOTE, now, frozenset(pod.uid for pod in gang.live()))


def note_of(bound: int, missing: int, complaint: str, after_s: float) -> str:
    """What has happened to a quorum or part that is rolled back."""
    return (
        f"{number_of(bound, 'member')} {'was' if bound == 1 else 'were'} bound, and {missing} more could not be bound "
        f"within {format_duration(round(after_s))}{f' ({complaint})' if complaint else ''}"
    )


def _begin(gang: Gang, note: str, now: float, restart: frozenset[str] | None = None) -> None:
    since = gang.operations.rollback.since if gang.operations.rollback is not None else now
    gang.operations.rollback = begun(since, note, now, restart=restart)


def begun(
    since: float, note: str, now: float, *, restart: frozenset[str] | None = None, part: frozenset[str] | None = None
) -> Rollback:
    """A rollback that has lasted `since` then, of a quorum or of this `part`, or a restart of these members."""
    cause = Cause.ROLLBACK if restart is None else Cause.RESTART
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
    confirmed = {uid for uid, binding in gang.operations.bindings.items() if binding.state is BindState.BOUND}
    return [pod for pod in gang.live() if pod.uid in begun and (pod.node or pod.uid in confirmed)]


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


def forget_pod(gang: Gang, uid: str) -> None:
    """Forget the pod's evictions."""
    for doing in gang.operations.rollbacks(retried=True):
        doing.evictions.forget(uid)


def count_on(gang: Gang, since: float) -> None:
    """Note that a part of a quorum has been bound since then, in epoch seconds."""
    gang.operations.partial_since = since


def may_plan(gang: Gang, now: float) -> bool:
    """Whether the gang may be planned: not while members are being evicted.

    A rollback that can do no more for now, because every remaining member is spared or its eviction was refused, does
    not prevent planning. But the back-off after a rollback always runs to its end, so that rollbacks do not follow each
    other.
    """
    if gang.record.rollback_note and now < gang.record.retry_at:
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
