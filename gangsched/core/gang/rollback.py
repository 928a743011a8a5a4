"""Taking members back from their nodes: the undo of a quorum that cannot be completed, and onDegraded Restart.

Both evict, and never delete (contract rule 13): the Eviction API heeds PodDisruptionBudgets. An undo evicts whoever is
bound, except members that nothing would make again and members of Jobs that would count the eviction as a failure;
those are left and the group says so. A restart evicts every member that lived when it began. While evictions are on
their way nothing of the gang is planned; once only refused ones and spared members are left, an undone gang is planned
again with them, because whole is as good as wholly unbound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gangsched.core.gang import bindings, clock
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.sparing import why_spared
from gangsched.core.gang.terms import Terms
from gangsched.core.gang.wants import Need, missing_after
from gangsched.core.gang.writes import BindState, Eviction, Undo
from gangsched.core.objects.effects import Effect, EvictPod, LookUpOwner
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.results import EvictionRefused, OwnerSeen, PodEvicted, Spared
from gangsched.core.objects.retry import doubled
from gangsched.core.objects.status import GroupStatus

LONGEST_MARGIN_S = 10.0
"""An undo begins so long before the repair deadline, or a third of it if that is less, so that it ends in time."""
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 15.0
UNHEARD_S = 15.0
"""A question about a Job that was not answered is asked again after this."""
REVIEW_S = 60.0
"""So often it is found out anew why members are spared: a suspended Job may have been resumed."""
RESTART_NOTE = "The group fell below its minimum and onDegraded is Restart"


def end_restart(gang: Gang) -> None:
    """End the run of a group whose members onDegraded Restart has evicted; those there now begin another."""
    if gang.undo is None or gang.undo.restart is None:
        return
    if not targets(gang):
        old = (gang.undo.restart & gang.pods.keys()) | {pod.uid for pod in gang.pods.values() if pod.terminal}
        gang.begin_run(gang.roster.past | old)
        end(gang)


def note_partial(gang: Gang, census: Census, need: Need, *, known: bool, now: float) -> None:
    """Note since when a part of a quorum is bound and the rest is not (rule 1).

    While nobody can say how many are enough (`known` is False), what was inherited is kept in mind.
    """
    record = gang.record
    open_ = bool(record.run_start) and not record.ended and not record.scheduled_at
    gang.roster.inherit_only(gang.roster.inherited & gang.pods.keys() if open_ else ())
    gang.roster.keep(gang.pods)
    begun = gang.begun()
    vacant = gang.vacant()
    lacks = missing_after(need, Counter(role_of(binding.pod) for binding in vacant)) if vacant else need
    # Who is bound beside places that a cap has released is left there, as at their expiry.
    partial = open_ and bool(lacks) and record.capped is None and any(pod.uid in begun for pod in census.bound)
    if known and not need:
        gang.roster.inherit_only()
    gang.partial_since = (gang.partial_since or now) if partial else 0.0
    if gang.undo is not None and gang.undo.restart is None and not partial:
        gang.undo = None


def resume(gang: Gang, status: GroupStatus, now: float) -> None:
    """Go on with a restart that a former leader began: those bound now are the old members."""
    doing = (Reason.RESTARTING, Reason.EVICTION_REFUSED)
    told = any(each.type == "Degraded" and each.status and each.reason in doing for each in status.conditions)
    spec = gang.group.spec if gang.group is not None else None
    if told and gang.record.scheduled_at and spec is not None and spec.on_degraded is OnDegraded.RESTART:
        old = frozenset(pod.uid for pod in gang.live() if pod.node)
        gang.undo = Undo(now, RESTART_NOTE, old, review_at=now + REVIEW_S)


def drop_restart(gang: Gang, terms: Terms, *, known: bool) -> None:
    """Call off a restart that nobody asks for any more: by the spec, or because it is whole and nobody has left."""
    if gang.undo is None or gang.undo.restart is None:
        return
    asked = known and gang.record.scheduled_at and terms.spec.on_degraded is OnDegraded.RESTART
    begun = any(uid in gang.roster.leaving or uid not in gang.pods for uid in gang.undo.restart)
    if (known and not asked) or not (gang.short_since or begun):
        gang.undo = None


def begin_due(gang: Gang, census: Census, need: Need, terms: Terms, *, now: float, policy: Policy) -> None:
    """Undo what could not be completed in time, and restart what asks for it (rules 1, 12 and 13)."""
    if gang.undo is not None and not gang.undo.retried:
        return
    if gang.partial_since and now >= due_at(gang, policy):
        held = bindings.complaint(gang)
        why = f" ({held})" if held else ""
        undone = (
            f"{_were(len(census.bound))} bound and {need.number} more could not be within "
            f"{now - gang.partial_since:.0f}s{why}"
        )
        gang.note(undone=undone)
        _begin(gang, note=undone, now=now)
        clock.back_off(gang, now=now, policy=policy)
        gang.attempt.wait()
    elif (
        gang.short_since
        and not gang.record.late
        and terms.spec.on_degraded is OnDegraded.RESTART
        and now >= gang.short_since + policy.degraded_after_s
    ):
        _begin(gang, note=RESTART_NOTE, now=now, restart=True)


def due_at(gang: Gang, policy: Policy) -> float:
    """When a quorum that stays partly bound is undone, in epoch seconds."""
    return gang.partial_since + lasts_s(policy)


def lasts_s(policy: Policy) -> float:
    """For how long a quorum may stay partly bound before it is undone, in seconds."""
    return policy.repair_deadline_s - _margin(policy.repair_deadline_s)


def targets(gang: Gang) -> list[Pod]:
    """The members to be evicted that have not gone yet."""
    if gang.undo is None:
        return []
    if gang.undo.restart is not None:
        return [pod for pod in gang.live() if pod.uid in gang.undo.restart]
    begun = gang.begun()
    return [pod for pod in gang.live() if pod.uid in begun and (pod.node or _confirmed(gang, pod))]


def retry(gang: Gang) -> None:
    """Places were found for the rest after all: nothing more is evicted unless they fail too."""
    if gang.undo is not None:
        gang.undo.retried = True
        gang.partial_since = 0.0


def go_on_with(gang: Gang, undo: Undo) -> None:
    """Members are being evicted as this says."""
    gang.undo = undo


def end(gang: Gang) -> None:
    """Nothing is rolled back any more."""
    gang.undo = None


def forget_pod(gang: Gang, uid: str) -> None:
    """What was done to the pod goes with it."""
    if gang.undo is not None:
        gang.undo.spared.pop(uid, None)
        gang.undo.evictions.pop(uid, None)


def count_on(gang: Gang, since: float) -> None:
    """A part of a quorum has been bound since then."""
    gang.partial_since = since


def may_plan(gang: Gang, now: float) -> bool:
    """Whether places may be sought for the gang: not while members are on their way off their nodes.

    An undo that can do no more for now is no obstacle: every member left is spared, or its eviction was refused. But
    after an undo the back-off is waited out, whatever happens, so that it is not repeated all the time.
    """
    undo = gang.undo
    if gang.record.undone and now < gang.record.retry_at:
        return False
    if undo is None or undo.retried:
        return True
    if undo.restart is not None or gang.flies():
        return False
    return all(pod.uid in undo.spared or _refused(undo, pod, now) for pod in targets(gang))


def go_on(gang: Gang, now: float) -> list[Effect]:
    """What an undo in hand has to send now: nothing is evicted before every binding has been answered."""
    undo = gang.undo
    if undo is None or undo.retried:
        return []
    effects = bindings.withdraw_all(gang)
    if gang.flies():
        return effects
    if undo.review_at <= now:
        undo.spared.clear()
        undo.owners.clear()
        undo.asked.clear()
        undo.review_at = now + REVIEW_S
    for pod in targets(gang):
        effects += _evict(undo, pod, now)
    return effects


def note_answer(gang: Gang, event: PodEvicted | EvictionRefused | OwnerSeen, now: float) -> None:
    """The server has answered an eviction or a question about a Job; one that is not this gang's changes nothing."""
    if gang.undo is None:
        return
    if isinstance(event, OwnerSeen):
        if event.uid in gang.undo.asked:
            gang.undo.owners[event.uid] = event
        return
    eviction = gang.undo.evictions.get(event.uid)
    if eviction is None:
        return
    eviction.answered()
    if isinstance(event, PodEvicted):
        del gang.undo.evictions[event.uid]
        gang.roster.leave(event.uid)
        return
    wait_s = doubled(FIRST_RETRY_S, eviction.tries, longest=LONGEST_RETRY_S)
    eviction.refused(event, retry_at=now + max(wait_s, event.retry_after_s))


def next_due(gang: Gang) -> float:
    """When `go_on` has something to send though nothing happens; infinity if only answers can bring it on."""
    undo = gang.undo
    if undo is None or undo.retried or gang.flies():
        return clock.NEVER
    due = [undo.review_at]
    for pod in targets(gang):
        eviction = undo.evictions.get(pod.uid)
        if eviction is not None and not eviction.asked:
            due.append(eviction.retry_at)
        elif eviction is None and pod.owner is not None and pod.uid not in undo.spared:
            due.append(undo.asked.get(pod.owner.uid, float("-inf")) + UNHEARD_S)
    return min(due)


def spared(gang: Gang) -> list[Pod]:
    """The members that are left where they are for now; `gang.undo.spared` says why."""
    return [pod for pod in targets(gang) if gang.undo is not None and pod.uid in gang.undo.spared]


def refusals(gang: Gang) -> Iterator[EvictionRefused]:
    """The refusals that keep members from being evicted at present."""
    undo = gang.undo
    if undo is not None:
        for pod in targets(gang):
            eviction = undo.evictions.get(pod.uid)
            if eviction is not None and eviction.refused_with is not None:
                yield eviction.refused_with


def _confirmed(gang: Gang, pod: Pod) -> bool:
    binding = gang.bindings.get(pod.uid)
    return binding is not None and binding.state is BindState.BOUND


def _refused(undo: Undo, pod: Pod, now: float) -> bool:
    """Whether the eviction was refused, not for want of an answer, and is not tried again just now."""
    eviction = undo.evictions.get(pod.uid)
    if eviction is None or eviction.asked or eviction.refused_with is None:
        return False
    return eviction.refused_with.why is not Spared.UNAVAILABLE and now < eviction.retry_at


def _evict(undo: Undo, pod: Pod, now: float) -> list[Effect]:
    eviction = undo.evictions.get(pod.uid)
    if eviction is None:
        why = "" if undo.restart is not None else why_spared(pod, undo.owners)
        if why is None:
            return _ask(undo, pod, now)
        if why:
            undo.spared[pod.uid] = why
            return []
        eviction = undo.evictions[pod.uid] = Eviction()
    if eviction.asked or now < eviction.retry_at:
        return []
    eviction.ask()
    return [EvictPod(pod.uid, pod.namespace, pod.name)]


def _ask(undo: Undo, pod: Pod, now: float) -> list[Effect]:
    owner = pod.owner
    if owner is None or now < undo.asked.get(owner.uid, float("-inf")) + UNHEARD_S:
        return []
    undo.asked[owner.uid] = now
    return [LookUpOwner(owner.uid, pod.namespace, owner.name)]


def _margin(deadline_s: float) -> float:
    """How long before the repair deadline an undo begins: time for bindings in flight to answer and for evictions."""
    return min(LONGEST_MARGIN_S, deadline_s / 3)


def _begin(gang: Gang, *, note: str, now: float, restart: bool = False) -> None:
    since = gang.undo.since if gang.undo is not None else now
    members = frozenset(pod.uid for pod in gang.live()) if restart else None
    gang.undo = Undo(since, note, members, review_at=now + REVIEW_S)


def _were(members: int) -> str:
    return "1 member was" if members == 1 else f"{members} members were"
