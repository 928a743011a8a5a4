"""Applies to a gang what was stored about it since it was last brought up to date (`core.gang.mail`)."""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.core.cluster.avoidance import Tries
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import (
    bindings,
    clock,
    making,
    parts,
    placeholders,
    prebinding,
    recovery,
    rollback,
    runs,
    unrecorded,
)
from gangsched.core.gang.gang import Gang, forget_written
from gangsched.core.gang.mail import (
    Answered,
    ClaimsChanged,
    Context,
    Declared,
    Entered,
    Former,
    Joined,
    Left,
    News,
    NodeShown,
    Redeclared,
    Renewed,
    TermsChanged,
    TermsShown,
)
from gangsched.core.gang.writes import Binding, BindState
from gangsched.core.objects import results
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Minima
from gangsched.core.objects.results import BindRefused, Refused

STALE_RETRY_S = 0.25
"""Delay in seconds before a status write that lost a race is retried; by then the newer object has usually arrived."""
FAILED_RETRY_S = 5.0
"""Delay in seconds before a status write that failed for another reason is retried."""
MOST_REPLANNED = 10
"""How often a gang all of whose bindings were refused is planned again at once on other nodes; then it backs off."""
_UNSEEN = frozenset({Reason.POD_GROUP_UNREADABLE, Reason.OWNER_UNKNOWN})
"""The reasons of gangs whose terms could not be read."""


def take_in(gang: Gang, context: Context) -> None:
    """Apply all news of the gang, in order. A gang that is entered starts anew, so that earlier news do not matter."""
    news = gang.inbox.take_all()
    entered = max((at for at, item in enumerate(news) if isinstance(item, Entered)), default=0)
    news = news[entered:]
    # A record was written while these were still there.
    left = [item.pod for item in news if isinstance(item, Left) and item.gone]
    for item in news:
        gang.tell(context.now, item.told)
        _apply(gang, item, left, context)


def hear(gang: Gang, context: Context) -> None:
    """Apply only what a gang whose logic has failed still does: write its status and evict (`core.containment`)."""
    for news in gang.inbox.take_all():
        match news:
            case Left(pod):
                _left(gang, pod, gone=False)
            case Declared(old, new) if old is None or new is None or old.uid != new.uid:
                forget_written(gang)
            case Answered(results.PodBound() | BindRefused()):
                pass
            case Answered(result, tries):
                _answered(gang, result, tries, context)
    gang.roster.keep(gang.observed.pods)


def settle_stored(gang: Gang, cluster: Cluster) -> None:
    """Make the bindings on their way, and no others, the gang's bindings, and forget what was written of other pods."""
    for uid in [*gang.operations.bindings]:
        if uid not in gang.observed.pods:
            bindings.take_out(gang, uid)
        elif cluster.flights.of(uid) is None:
            bindings.release(gang, cluster, uid)
    _adopt_all(gang, cluster)


def _apply(gang: Gang, news: News, left: Sequence[Pod], context: Context) -> None:
    cluster = context.cluster
    match news:
        case NodeShown(uid, node):
            if uid in gang.operations.bindings:
                bindings.note_bound(gang, cluster, uid, node)
            else:
                # A group with members bound by another scheduler may be partly bound.
                gang.roster.inherit(uid)
        case Answered(result, tries):
            _answered(gang, result, tries, context)
        case Renewed():
            if gang.record.open:
                gang.roster.note_emptied()
        case Left(pod, gone):
            _left(gang, pod, gone=gone)
        case Joined(pod, former, role):
            _joined(gang, pod, former, role, context)
        case Declared(old, new):
            _declared(gang, old, new, left, context)
        case Redeclared() | TermsChanged() | TermsShown():
            _terms_changed(gang, news, context)
        case ClaimsChanged():
            gang.wait.try_all_again()
        case Entered():
            _enter(gang, left, context)


# Restarts


def _enter(gang: Gang, left: Sequence[Pod], context: Context) -> None:
    """Restore the gang from its PodGroup's status, infer the rest, and count bindings on their way."""
    # A standby does not examine members that are bound meanwhile, so find those that began a quorum again.
    gang.roster.inherit_only()
    recovery.resume(gang, left, context)
    if gang.plain:
        recovery.resume_plan_of_pod(gang, context)
    unrecorded.find_begun(gang, context)
    _adopt_all(gang, context.cluster)


def _adopt_all(gang: Gang, cluster: Cluster) -> None:
    """Count the bindings of all members that are on their way, and forget what was written of other pods."""
    gang.written.keep({*gang.observed.pods, *gang.observed.foreign_pods})
    for pod in gang.observed.pods.values():
        _adopt(gang, pod, cluster)


def _adopt(gang: Gang, pod: Pod, cluster: Cluster, *, withdrawn: bool = False) -> bool:
    """Count the binding of the pod that is on its way, if there is one. Returns whether there is."""
    flight = cluster.flights.of(pod.uid)
    if flight is None or pod.node:
        return False
    bindings.release(gang, cluster, pod.uid)
    state = BindState.BOUND if flight.confirmed else BindState.SENT
    bindings.carry_over(gang, Binding(pod, flight.node, state=state, tries=1, withdrawn=withdrawn))
    if cluster.node_of(pod.uid) != flight.node:
        cluster.assume(pod.uid, flight.node)
    # The pod belongs to a quorum that was begun, although nothing else says so.
    gang.roster.inherit(pod.uid)
    return True


# Members


def _left(gang: Gang, pod: Pod, *, gone: bool) -> None:
    """Forget a pod; the place of its binding was given up, or the pod takes it with it."""
    if gone:
        runs.note_ended(gang, pod)
    gang.roster.forget(pod.uid)
    gang.written.forget_pod(pod.uid)
    rollback.forget_pod(gang, pod.uid)
    bindings.take_out(gang, pod.uid)


def former_of(gang: Gang, uid: str) -> Former:
    """What is under way in the gang of this member, which is about to leave for another one."""
    part = gang.operations.part_of(uid)
    needs = dict(part.needs) if part is not None else {}
    binding = gang.operations.bindings.get(uid)
    withdrawn = binding is not None and binding.withdrawn
    return Former(gang.key.name, gang.record.quorum, needs, gang.operations.partial_since, withdrawn)


def _joined(gang: Gang, pod: Pod, former: Former, role: str, context: Context) -> None:
    """Continue what was begun with a member in its former gang, of which this one is a part or has become one."""
    together = dict(former.quorum.roles) if former.quorum is not None else former.needs
    if role and gang.key.name == role and role in together:
        # A tree began it with this member, whose own group is no part of the tree any more (rule 10).
        if gang.record.quorum is None and not gang.record.scheduled_at:
            gang.begin_quorum(Minima(together[role]))
        if pod.node:
            gang.roster.inherit(pod.uid)
    in_flight = _adopt(gang, pod, context.cluster, withdrawn=former.withdrawn)
    role = role_of(pod)
    if (pod.node or in_flight) and former.named == role and former.quorum is not None:
        # Its own group has become a part of a tree.
        gang.roster.inherit(pod.uid)
        if gang.record.scheduled_at:
            parts.begin(gang, [pod], needs={role: former.quorum.total}, since=former.partial_since)


# PodGroups


def _declared(gang: Gang, old: Group | None, new: Group | None, left: Sequence[Pod], context: Context) -> None:
    gang.allow_reconcile()
    if old is not None and (new is None or new.uid != old.uid):
        _undeclared(gang, old, context.cluster)
        old = None
    if new is None:
        return
    if old is None:
        forget_written(gang)
        recovery.resume(gang, left, context)
        if new.status.record is None:
            unrecorded.date_begun(gang)
    elif (old.spec, old.error) != (new.spec, new.error):
        clock.reset_back_off(gang)
        if old.spec and new.spec and old.spec.where != new.spec.where and not gang.record.scheduled_at:
            _give_up_unbegun(gang, context.cluster)
    if gang.written.overwritten_in(new.status):
        gang.written.stands(new.status)


def _terms_changed(gang: Gang, news: Redeclared | TermsChanged | TermsShown, context: Context) -> None:
    """Another system's object says something else, or can be read again."""
    match news:
        case Redeclared(over):
            # A user's PodGroup takes precedence over other systems' objects; one that gangsched made only repeats them.
            if gang.observed.group is None or gang.observed.group.made:
                if over:
                    gang.forget_run()
                forget_written(gang)
        case TermsChanged():
            clock.reset_back_off(gang)
        case TermsShown():
            if gang.reason in _UNSEEN and not (gang.record.scheduled_at or gang.begun()):
                unrecorded.find_begun(gang, context)
            return
    # It may be complete by what the object says now, and is looked at before others are planned.
    gang.allow_reconcile()


def _undeclared(gang: Gang, group: Group, cluster: Cluster) -> None:
    """The PodGroup is gone. Its run ends unless its pods declare it; bound members stay (rule 10)."""
    # A PodGroup that gangsched made only repeats what the pods declare.
    says = (pod.declaration for pod in gang.live() if pod.declaration is not None)
    goes_on = group.made and bool(gang.record.scheduled_at) and any(declaration.complete for declaration in says)
    if gang.operations.placeholders():
        # A quorum with placeholders cannot become whole without them: its bound members stay (rule 10).
        placeholders.release(gang, cluster)
        gang.drop_quorum()
        gang.roster.inherit_only()
    if not goes_on:
        _give_up_unbegun(gang, cluster)
        gang.forget_run()
    doing = gang.operations.rollback
    if doing is not None and doing.restart is not None and not rollback.is_preemption(doing):
        rollback.end(gang)
    gang.durability.drop()
    forget_written(gang)


def _give_up_unbegun(gang: Gang, cluster: Cluster) -> None:
    """Give up what is reserved, unless what is bound in part or on its way is to be finished (rule 10)."""
    known, parts_there = gang.operations.bindings, gang.operations.parts
    sent = {uid for uid, binding in known.items() if binding.state is not BindState.HELD}
    if gang.record.quorum is None or not (gang.bound() or sent):
        begun = {uid for part in parts_there if part.partial_since or part.members & sent for uid in part.members}
        bindings.release_held(gang, cluster, known.keys() - begun)
        gang.drop_quorum()


# Results


def _answered(gang: Gang, result: results.Result, tries: Tries, context: Context) -> None:
    cluster, now = context.cluster, context.now
    match result:
        case results.PodBound(uid, node):
            bindings.note_bound(gang, cluster, uid, node)
        case BindRefused():
            _refused(gang, result, tries, context)
        case results.StatusRefused():
            gang.written.refused(write_again_at=now + (STALE_RETRY_S if result.stale else FAILED_RETRY_S))
        case results.StatusWritten():
            if result.reserved and gang.written.awaited is not None:
                # A member that is to be bound elsewhere meanwhile is not secured by what was written.
                held = {(uid, binding.node) for uid, binding in gang.operations.bindings.items()}
                if gang.operations.plan is not None:
                    held |= {(pod.uid, node) for pod, node in gang.operations.plan.places}
                gang.durability.written(uid for uid, _ in gang.written.take_awaited() & held)
        case results.PrebindRefused():
            prebinding.note_refused(gang, result, now)
        case results.GroupNotMade():
            making.note_refused(gang, result.message)
        case results.OwnerSeen() | results.PodEvicted() | results.EvictionRefused():
            rollback.note_result(gang, result, now)


def _refused(gang: Gang, event: BindRefused, tries: Tries, context: Context) -> None:
    cluster, policy, now = context.cluster, context.policy, context.now
    if event.why in (Refused.GONE, Refused.CONFLICT):
        if event.uid in gang.operations.bindings and gang.operations.bindings[event.uid].node == event.node:
            bindings.release(gang, cluster, event.uid)
        return
    part = gang.operations.part_of(event.uid)
    if not bindings.note_refused(gang, cluster, event, now, tries):
        return
    if part is None:
        _all_refused(gang, event, context)
    else:
        note = f"The API server refused all of its bindings: {event.message}"
        parts.give_up(gang, cluster, part, note, now=now, policy=policy)


def _all_refused(gang: Gang, event: BindRefused, context: Context) -> None:
    """No binding of the gang stands: plan it again on other nodes at once, if the fault may be the node's.

    The gang backs off if one member has been refused wherever it was tried. It also backs off if there is no other
    node, which the scheduling cycle finds out.
    """
    bindings.give_up(gang, context.cluster)
    gang.operations.attempt.hear(event.message)
    may_be_the_node = event.why is Refused.FORBIDDEN and event.uid not in gang.operations.doubted
    if may_be_the_node and gang.operations.attempt.replanned < MOST_REPLANNED:
        gang.operations.attempt.plan_elsewhere()
        return
    gang.operations.attempt.begin_count()
    gang.wait.park()
    clock.back_off(gang, now=context.now, policy=context.policy)
