"""Binds the members of a quorum: begun together, retried one by one, given up only as a whole.

Capacity is assumed for all members before the first binding is sent. A binding that fails keeps its reservation and is
retried; before the first retry the reservations are made durable (design rule 4), so that they survive a restart. A
binding that the API server refuses for good is given up, and the member is placed again, on another node if there is
one. A member that was refused wherever it was tried, while others were bound, goes first and alone the next time.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import TRIES_ON_A_NODE, Tries
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import Barred, Binding, BindState, PendingPrebinding
from gangsched.core.objects.duration import doubled
from gangsched.core.objects.effects import BindPod, Effect, WithdrawBinding
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding
from gangsched.core.objects.results import BindRefused, Refused

if TYPE_CHECKING:
    from gangsched.core.gang.turn import Turn

FIRST_RETRY_S = 0.25
LONGEST_RETRY_S = 5.0
FIRST_BAR_S = 10.0
LONGEST_BAR_S = 300.0
_NONE: Mapping[str, Sequence[Prebinding]] = {}
_HELD = BindState.HELD
FOR_GOOD = frozenset({Refused.FORBIDDEN, Refused.DENIED})


def begin(
    gang: Gang,
    cluster: Cluster,
    assignments: Sequence[tuple[Pod, str]],
    *,
    held: bool = False,
    above: bool = False,
    prebindings: Mapping[str, Sequence[Prebinding]] = _NONE,
) -> list[BindPod]:
    """Reserve all nodes and, unless they are only to be `held`, send all bindings, or only the first of a vanguard.

    No binding is sent beside placeholders or while the PodGroup shows an earlier run, where the reservations must be
    durable first, nor before the member's pre-bindings hold (`prebindings`, by the member's UID). No member waits for
    members `above` the minimum; these wait, like all others, for those that go first and, until the gang is scheduled,
    for the pre-bindings of its quorum.
    """
    begun = []
    gang.operations.prepares |= bool(prebindings)
    under_way = gang.operations.bindings.values() if prebindings else ()
    known = {pending.prebinding: pending for binding in under_way for pending in binding.pending}
    for pod, node in assignments:
        if not pod.name:
            cluster.set_pod(pod)
            gang.operations.placeholders_made += 1
        asked = tuple(prebindings.get(pod.uid, ()))
        cluster.assume(pod.uid, node, asked)
        # Members that need the same write wait for one that is sent once.
        pending = tuple([known.setdefault(write, PendingPrebinding(write)) for write in asked]) if asked else ()
        binding = Binding(pod, node, placeholder=not pod.name, pending=pending, above=above)
        gang.operations.bindings[pod.uid] = binding
        begun.append(binding)
    if held or gang.operations.placeholders() or gang.shows_another_run():
        return []
    ahead = _ahead(gang)
    return [binding.send() for binding in _prepared(gang, begun) if ahead is None or binding is ahead]


def _prepared(gang: Gang, begun: list[Binding]) -> list[Binding]:
    """Those of these bindings that wait for no pre-binding; none of a quorum or part before all members are ready."""
    under_way = gang.operations.bindings.values() if gang.operations.prepares else ()
    awaiting = [binding for binding in under_way if binding.pending and binding.awaits]
    if not awaiting and not gang.record.prebinding_at:
        return begun
    if not gang.binds_singly() and (gang.record.prebinding_at or not all(binding.above for binding in awaiting)):
        return []
    waits = {
        uid
        for part in gang.operations.parts
        if any(binding.awaits for binding in unconfirmed_of(gang, part.members))
        for uid in part.members
    }
    return [binding for binding in begun if binding.awaits is None and binding.pod.uid not in waits]


def resend_due(gang: Gang, now: float) -> tuple[list[BindPod], float]:
    """Send the held bindings whose retry is due; none while the declarations contradict each other (rule 15).

    Bindings whose reservations must become durable first are left out. While a binding that goes first is not
    confirmed, no other is sent. Returns those sent, and when the next one is due, in epoch seconds; infinity if none is
    due by time alone.
    """
    ahead, no_retry = _ahead(gang), float("inf")
    held = [
        binding
        for binding in (gang.operations.bindings.values() if ahead is None else [ahead])
        if binding.state is _HELD and not binding.placeholder and gang.durability.covers(binding.pod.uid)
    ]
    if not held or gang.operations.contradicted:
        return [], no_retry
    held = _prepared(gang, held)
    sent = [binding.send() for binding in held if binding.retry_at <= now]
    return sent, min((binding.retry_at for binding in held if binding.retry_at > now), default=no_retry)


def _ahead(gang: Gang) -> Binding | None:
    """The unconfirmed binding that all others wait for."""
    for uid in gang.operations.attempt.vanguard:
        binding = gang.operations.bindings.get(uid)
        if binding is not None and binding.state is not BindState.BOUND:
            return binding
    return None


def unsecured(gang: Gang) -> bool:
    """Whether the gang has reservations that must be durable and are not yet."""
    if not gang.durability.asked_at:
        return False
    plan = gang.operations.plan
    reserved = [pod for pod, _ in plan.places] if plan is not None else []
    pods = [*(binding.pod for binding in gang.operations.unconfirmed()), *reserved]
    return not all(gang.durability.covers(pod.uid) for pod in pods)


def note_bound(gang: Gang, cluster: Cluster, uid: str, node: str) -> None:
    """Note a confirmed binding.

    If it was withdrawn, it takes room on which others may rely, so the node is rechecked.
    """
    gang.operations.attempt.begin_count()
    binding = gang.operations.bindings.get(uid)
    if binding is not None and binding.node == node:
        if binding.withdrawn:
            cluster.worsen(node)
        binding.confirmed()


def note_refused(gang: Gang, cluster: Cluster, event: BindRefused, now: float, tries: Tries) -> bool:
    """A binding failed although the pod exists: hold it for a retry.

    A withdrawn binding is given up whatever the result, because its node is no longer good. If the API server refuses a
    single member of a scheduled gang for good, the member's binding is given up and the member is barred for a while,
    which doubles each time. `tries` says how often the member was refused for good on this node, and on how many nodes.
    Returns whether no hope is left: the server has refused a binding for good, and no member of the quorum, or of the
    part that is bound together, is bound or in flight.
    """
    binding = gang.operations.bindings.get(event.uid)
    if binding is None or binding.node != event.node:
        return False
    if binding.withdrawn or event.why is Refused.WITHDRAWN:
        release(gang, cluster, event.uid)
        return False
    part = gang.operations.part_of(event.uid)
    if event.why in FOR_GOOD and gang.record.scheduled_at and part is None:
        told = f"The API server refused its binding, which is retried later: {event.message}"
        bar(gang, event.uid, told, now, longer_s=event.retry_after_s)
        release(gang, cluster, event.uid)
        return False
    wait_s = doubled(FIRST_RETRY_S, binding.tries, longest=LONGEST_RETRY_S)
    binding.failed(event.message, retry_at=now + max(wait_s, event.retry_after_s))
    if event.why not in FOR_GOOD:
        return False
    inside = None if part is None else part.members
    if _are_all_held(gang, inside) and not _is_any_on_node(gang, inside):
        return True
    if (tries.nodes > 1 or tries.here > TRIES_ON_A_NODE) and _is_any_bound(gang, inside):
        gang.operations.doubted.add(event.uid)
    if tries.here == TRIES_ON_A_NODE:
        if part is None:
            gang.operations.attempt.hear(event.message)
        else:
            part.complaint = event.message
        release(gang, cluster, event.uid)
    return False


def _are_all_held(gang: Gang, part: Container[str] | None) -> bool:
    # From the last one: thousands of answers arrive in about the order in which the bindings were sent.
    latest_first = reversed(gang.operations.bindings.items())
    return all(binding.state is BindState.HELD for uid, binding in latest_first if part is None or uid in part)


def _is_any_on_node(gang: Gang, part: Container[str] | None) -> bool:
    pods = gang.observed.pods.values() if gang.observed.traits.bound else ()
    return any(pod.node and (part is None or pod.uid in part) and gang.lives(pod) for pod in pods)


def _is_any_bound(gang: Gang, part: Container[str] | None) -> bool:
    # None is after all were refused and planned again, unless one was accepted, which begins a new count.
    items = gang.operations.bindings.items() if part is not None or not gang.operations.attempt.replanned else ()
    confirmed = any(binding.state is BindState.BOUND for uid, binding in items if part is None or uid in part)
    return confirmed or _is_any_on_node(gang, part)


def bar(gang: Gang, uid: str, message: str, now: float, *, longer_s: float = 0.0) -> None:
    """Bar the member for a while, which doubles each time, or for `longer_s` seconds if that is longer.

    `message` says why, for the member's condition.
    """
    before = gang.operations.barred.get(uid)
    times = before.times + 1 if before is not None else 1
    wait_s = doubled(FIRST_BAR_S, times, longest=LONGEST_BAR_S)
    gang.operations.barred[uid] = Barred(now + max(wait_s, longer_s), message, times)


def take_out(gang: Gang, uid: str) -> None:
    """Remove the binding of a pod that is no member any more; its place on the node is none of the gang's concern."""
    gang.durability.release(uid)
    binding = gang.operations.bindings.pop(uid, None)
    if binding is not None and binding.state is BindState.HELD:
        gang.wait.try_again()


def carry_over(gang: Gang, binding: Binding) -> None:
    """Add the binding, already in flight, of a pod that has just become a member of this gang."""
    gang.operations.bindings[binding.pod.uid] = binding
    gang.operations.prepares |= bool(binding.pending)
    if binding.state is BindState.BOUND:
        gang.operations.attempt.begin_count()


def may_be_tried(gang: Gang, members: list[Pod]) -> list[Pod]:
    """The members whose binding may be tried, with doubted ones last, because the others may suffice."""
    if gang.operations.barred:
        members = list(filter(gang.operations.may_try, members))
    if gang.operations.doubted:
        members.sort(key=lambda pod: pod.uid in gang.operations.doubted)
    return members


def is_bar_over(turn: Turn) -> bool:
    """Whether a member was barred until now."""
    barred = turn.gang.operations.barred
    return bool(barred) and any(0 < bar.until <= turn.now for bar in barred.values())


def lift_bars(turn: Turn) -> None:
    """Try such members again."""
    gang = turn.gang
    for uid, barred in gang.operations.barred.items():
        if barred.until <= turn.now:
            gang.operations.barred[uid] = replace(barred, until=0.0)
    gang.wait.try_again()


def release(gang: Gang, cluster: Cluster, uid: str) -> None:
    """Give up one member's reservation; the gang is planned again, even if it is parked for its other members.

    A pod that is no member any more has taken its place with it, or left it behind; it may be another gang's by now.
    """
    gang.durability.release(uid)
    binding = gang.operations.bindings.pop(uid, None)
    if binding is None:
        return
    gang.wait.try_again()
    if binding.placeholder:
        cluster.remove_pod(uid)
    elif uid in gang.observed.pods:
        cluster.forget(uid)


def release_all(gang: Gang, cluster: Cluster) -> None:
    """Give up every reservation of the gang."""
    for uid in list(gang.operations.bindings):
        release(gang, cluster, uid)
    gang.durability.needless()


def give_up(gang: Gang, cluster: Cluster) -> None:
    """Release all reservations, and forget why single members were refused beside them."""
    release_all(gang, cluster)
    gang.wait.forget_members()


def release_held(gang: Gang, cluster: Cluster, part: Container[str] | None = None) -> None:
    """Give up the reservations, of this part of the gang if one is given, whose bindings are not in flight."""
    for binding in unconfirmed_of(gang, part):
        if binding.state is BindState.HELD:
            release(gang, cluster, binding.pod.uid)


def let_go(gang: Gang, cluster: Cluster, binding: Binding) -> list[Effect]:
    """Give up a reservation on a node that is no longer good; withdraw its binding if that waits to be sent.

    A binding that was sent cannot be recalled, and the kubelet may refuse its pod.
    """
    if binding.state is BindState.HELD:
        release(gang, cluster, binding.pod.uid)
    return withdraw([binding])


def complaint(gang: Gang, part: Container[str] | None = None) -> str:
    """What the API server said about a binding, of this part of the gang if one is given, that it refused."""
    begun = gang.operations.bindings.items()
    complaints = (binding.complaint for uid, binding in begun if binding.complaint and (part is None or uid in part))
    return next(complaints, gang.operations.attempt.server_said if part is None else "")


def unconfirmed_of(gang: Gang, part: Container[str] | None) -> list[Binding]:
    """The bindings of the gang, or of the members of this part of it, that the API server has not confirmed yet."""
    unconfirmed = gang.operations.unconfirmed()
    return unconfirmed if part is None else [binding for binding in unconfirmed if binding.pod.uid in part]


def withdraw(bindings: Iterable[Binding]) -> list[Effect]:
    """Withdraw these bindings, so that those not sent yet are never sent."""
    effects: list[Effect] = []
    for binding in bindings:
        if binding.state is BindState.SENT and not binding.withdrawn:
            binding.withdraw()
            effects.append(WithdrawBinding(binding.pod.uid, binding.node))
    return effects


def reconcile(gang: Gang, cluster: Cluster) -> None:
    """Give up bindings that the cluster has overtaken.

    A pod that shows a node has been bound, by gangsched or by another scheduler. A reservation is useless once its pod
    is no longer a member or its node is gone.
    """
    for uid, binding in list(gang.operations.bindings.items()):
        pod, held = gang.observed.pods.get(uid), binding.state is BindState.HELD
        if pod is binding.pod and not held:
            continue  # the pod has not changed since its binding was sent
        if pod is not None and pod.node:
            del gang.operations.bindings[uid]
        elif held and binding.node not in cluster.nodes:
            release(gang, cluster, uid)
        elif pod is not None and not pod.terminal and (not held or gang.lives(pod)):
            binding.renew(pod)
        elif not binding.placeholder:
            release(gang, cluster, uid)
    if gang.operations.plan is None and not gang.operations.has_unconfirmed():
        gang.durability.end()
    if gang.operations.barred:
        waiting = {pod.uid for pod in gang.live() if not pod.node}
        gang.operations.barred = {uid: barred for uid, barred in gang.operations.barred.items() if uid in waiting}
    gang.operations.doubted &= gang.observed.pods.keys()


def going_first(gang: Gang, avoided: frozenset[str], assignments: Sequence[tuple[Pod, str]]) -> Sequence[str]:
    """The members, by UID, whose bindings are sent before the others', so that likely failures happen early.

    These are the doubted members of this plan, or else one member on each node that is avoided.
    """
    if not (gang.operations.doubted or avoided):
        return ()
    doubted = [pod.uid for pod, _ in assignments if pod.uid in gang.operations.doubted]
    return doubted or list({node: pod.uid for pod, node in assignments if node in avoided and pod.name}.values())
