"""Evicts members from their nodes: the rollback of a quorum that cannot be completed, and onDegraded Restart.

Both evict and never delete (contract rule 13). A rollback evicts all bound members except those that no controller
would recreate and those of Jobs that would count it as a failure; these are spared, and the status says so. A restart
evicts every member that was alive when it began. Meanwhile nothing of the gang is planned; once only refused evictions
and spared members are left, a gang that was rolled back is planned again with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gangsched.core.declarations.minima import Need
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang import bindings, clock
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.steps import Step, begin_run, take
from gangsched.core.gang.wants import roles_of
from gangsched.core.gang.writes import BindState, Eviction, Rollback
from gangsched.core.objects.duration import format_duration
from gangsched.core.objects.effects import Effect, EvictPod, LookUpOwner
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import EvictionRefused, OwnerSeen, PodEvicted, Spared
from gangsched.core.objects.retry import doubled
from gangsched.core.objects.wording import number_of

LONGEST_MARGIN_S = 10.0
"""A rollback begins this many seconds before the repair deadline, or a third of the deadline if that is less, so that
bindings in flight get their results and evictions are accepted in time."""
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 15.0
UNHEARD_S = 15.0
"""Time in seconds after which a look-up of a Job is repeated if it has no result."""
REVIEW_S = 60.0
"""Seconds after which the reasons for sparing members are checked again: a suspended Job may have been resumed."""
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
        take(gang, Step.ROLLED_BACK, rollback_note=note)
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
    gang.operations.rollback = Rollback(since, note, restart, review_at=now + REVIEW_S)


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
        doing.spared.pop(uid, None)
        doing.evictions.pop(uid, None)


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
    if bindings.unconfirmed_of(gang, doing.part):
        return False
    return all(pod.uid in doing.spared or _refused(doing, pod, now) for pod in targets(gang, doing))


def go_on(gang: Gang, now: float) -> list[Effect]:
    """The effects that rollbacks or a restart send now."""
    return [effect for doing in gang.operations.rollbacks() for effect in _go_on(gang, doing, now)]


def _go_on(gang: Gang, rollback: Rollback, now: float) -> list[Effect]:
    """The effects of one of them; no eviction before every binding has its result."""
    left = bindings.unconfirmed_of(gang, rollback.part)
    effects = bindings.withdraw(left)
    if left:
        return effects
    if rollback.review_at <= now:
        rollback.spared.clear()
        rollback.owners.clear()
        rollback.asked.clear()
        rollback.review_at = now + REVIEW_S
    for pod in targets(gang, rollback):
        effects += _evict(rollback, pod, now)
    return effects


def note_result(gang: Gang, event: PodEvicted | EvictionRefused | OwnerSeen, now: float) -> None:
    """Note the result of an eviction or of the look-up of a Job; results for another gang change nothing."""
    for rollback in gang.operations.rollbacks(retried=True):
        if isinstance(event, OwnerSeen):
            rollback.owners[event.uid] = event
            continue
        eviction = rollback.evictions.get(event.uid)
        if eviction is None:
            continue
        eviction.result_arrived()
        if isinstance(event, PodEvicted):
            del rollback.evictions[event.uid]
            gang.roster.leave(event.uid)
            continue
        wait_s = doubled(FIRST_RETRY_S, eviction.tries, longest=LONGEST_RETRY_S)
        eviction.refused(event, retry_at=now + max(wait_s, event.retry_after_s))


def asks_about(gang: Gang, owner: str) -> bool:
    """Whether a rollback has looked up the owner with this UID."""
    return any(owner in doing.asked for doing in gang.operations.rollbacks(retried=True))


def next_due(gang: Gang) -> float:
    """When `go_on` has something to send without an event, in epoch seconds; infinity if never."""
    return min((_next_due(gang, doing) for doing in gang.operations.rollbacks()), default=clock.NEVER)


def _next_due(gang: Gang, rollback: Rollback) -> float:
    if bindings.unconfirmed_of(gang, rollback.part):
        return clock.NEVER
    due = [rollback.review_at]
    for pod in targets(gang, rollback):
        eviction = rollback.evictions.get(pod.uid)
        if eviction is None:
            if pod.owner is not None and pod.uid not in rollback.spared:
                due.append(_look_up_at(rollback, pod.owner))
        elif not eviction.asked:
            due.append(eviction.retry_at)
    return min(due)


def spared(gang: Gang, doing: Rollback) -> list[Pod]:
    """The members that are left on their nodes for now; `doing.spared` says why."""
    return [pod for pod in targets(gang, doing) if pod.uid in doing.spared]


def refusals(gang: Gang, doing: Rollback) -> Iterator[EvictionRefused]:
    """The refusals that prevent evictions at present."""
    there = (doing.evictions[pod.uid].refused_with for pod in targets(gang, doing) if pod.uid in doing.evictions)
    return (refusal for refusal in there if refusal is not None)


def _refused(rollback: Rollback, pod: Pod, now: float) -> bool:
    """Whether the server has refused the eviction, rather than failed to respond, and no retry is due yet."""
    eviction = rollback.evictions.get(pod.uid)
    if eviction is None or eviction.asked or eviction.refused_with is None:
        return False
    return eviction.refused_with.why is not Spared.UNAVAILABLE and now < eviction.retry_at


def _evict(rollback: Rollback, pod: Pod, now: float) -> list[Effect]:
    """Evict the member or spare it, or look up the Job on which that depends."""
    eviction = rollback.evictions.get(pod.uid)
    if eviction is None:
        why = "" if rollback.restart is not None else _why_spared(pod.owner, rollback.owners)
        if why is None:
            return _look_up_job(rollback, pod, now)
        if why:
            rollback.spared[pod.uid] = why
            return []
        eviction = rollback.evictions[pod.uid] = Eviction()
    if eviction.asked or now < eviction.retry_at:
        return []
    eviction.ask()
    return [EvictPod(pod.uid, pod.namespace, pod.name)]


def _why_spared(owner: Owner | None, jobs: Mapping[str, OwnerSeen]) -> str | None:
    """Why a rollback spares members of this owner (rule 13); empty if it evicts them, None if their Job is unknown."""
    if owner is None:
        return "no controller would recreate it"
    if (owner.kind, owner.api_group) == ("Node", ""):
        return "it belongs to its node"
    if (owner.kind, owner.api_group) != ("Job", "batch"):
        return ""
    return jobs[owner.uid].why if owner.uid in jobs else None


def _look_up_job(rollback: Rollback, pod: Pod, now: float) -> list[Effect]:
    owner = pod.owner
    if owner is None or now < _look_up_at(rollback, owner):
        return []
    rollback.asked[owner.uid] = now
    return [LookUpOwner(owner.uid, pod.namespace, owner.name)]


def _look_up_at(rollback: Rollback, owner: Owner) -> float:
    """When the owner may be looked up again, in epoch seconds."""
    return rollback.asked.get(owner.uid, float("-inf")) + UNHEARD_S
