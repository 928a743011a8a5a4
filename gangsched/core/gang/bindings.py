"""The way of a quorum's members to their nodes: begun together, retried one by one, given up only as a whole.

Capacity is assumed for all of them before the first binding is sent. A binding that fails keeps its place and is tried
again; once that is needed the places are made durable first (design rule 4), so that a restart knows of them. One that
the server refuses for good is given up, and the member is placed anew, on another node if there is one. A member that
was refused wherever it was tried, while others were bound, goes first and alone the next time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gangsched.core.cluster.avoidance import TRIES_ON_A_NODE, Tries
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import Barred, Binding, BindState
from gangsched.core.objects.effects import BindPod, Effect, WithdrawBinding
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.core.objects.retry import doubled

FIRST_RETRY_S = 0.25
LONGEST_RETRY_S = 5.0
FIRST_BAR_S = 10.0
LONGEST_BAR_S = 300.0
FOR_GOOD = frozenset({Refused.FORBIDDEN, Refused.DENIED})


def begin(gang: Gang, cluster: Cluster, assignments: Sequence[tuple[Pod, str]], *, held: bool = False) -> list[BindPod]:
    """Assume all places and, unless they are to be `held`, send all bindings; of a vanguard only the first.

    None is sent beside places for members to come, which must be durable first.
    """
    begun = []
    for pod, node in assignments:
        if not pod.name:
            cluster.set_pod(pod)
            gang.vacancies += 1
        cluster.assume(pod.uid, node)
        binding = gang.bindings[pod.uid] = Binding(pod, node, vacant=not pod.name)
        begun.append(binding)
    if held or gang.vacant():
        return []
    ahead = _ahead(gang)
    return [_send(binding) for binding in begun if ahead is None or binding is ahead]


def resend_due(gang: Gang, now: float) -> list[BindPod]:
    """Send again what is held and due."""
    return [_send(binding) for binding in _to_send_again(gang) if binding.retry_at <= now]


def next_retry(gang: Gang) -> float:
    """When the next held binding is due; infinity if none is, or something else must happen first."""
    return min((binding.retry_at for binding in _to_send_again(gang)), default=float("inf"))


def _to_send_again(gang: Gang) -> list[Binding]:
    """What is held, but for places that must be durable first; nothing while the declarations contradict (rule 15).

    While one that goes first is not confirmed, no other.
    """
    if gang.contradicted:
        return []
    held = BindState.HELD
    ahead = _ahead(gang)
    return [
        binding
        for uid, binding in (gang.bindings if ahead is None else {ahead.pod.uid: ahead}).items()
        if binding.state is held and not binding.vacant and gang.durability.covers(uid)
    ]


def _ahead(gang: Gang) -> Binding | None:
    """The binding that all others wait for."""
    there = (gang.bindings[uid] for uid in gang.attempt.vanguard if uid in gang.bindings)
    return next((binding for binding in there if binding.state is not BindState.BOUND), None)


def unsecured(gang: Gang) -> bool:
    """Whether the gang has places that must be durable and are not yet."""
    return bool(gang.durability.asked_at) and not all(gang.durability.covers(each.pod.uid) for each in gang.flying())


def note_bound(gang: Gang, cluster: Cluster, uid: str, node: str) -> None:
    """The server has confirmed a binding. One that was to be withdrawn takes room that others were left to rely on."""
    gang.attempt.begin_count()
    binding = gang.bindings.get(uid)
    if binding is not None and binding.node == node:
        if binding.withdrawn:
            cluster.worsen(node)
        binding.confirmed()


def note_refused(gang: Gang, cluster: Cluster, event: BindRefused, now: float, tries: Tries) -> bool:
    """A binding did not happen though the pod is there: hold it for another try.

    One that was to be withdrawn is let go of, for its place is good no more, whatever the answer says. A further member
    of a scheduled gang that the server refuses for good is let go of and barred for a while, doubling. `tries` says how
    often the member was refused for good on this node, and on how many.
    Returns whether nothing is left to hope for: the server refuses every binding of the gang for good and none stands.
    """
    binding = gang.bindings.get(event.uid)
    if binding is None or binding.node != event.node:
        return False
    if binding.withdrawn or event.why is Refused.WITHDRAWN:
        release(gang, cluster, event.uid)
        return False
    if event.why in FOR_GOOD and gang.record.scheduled_at:
        before = gang.barred.get(event.uid)
        times = before.times + 1 if before is not None else 1
        wait_s = doubled(FIRST_BAR_S, times, longest=LONGEST_BAR_S)
        gang.barred[event.uid] = Barred(now + max(wait_s, event.retry_after_s), event.message, times)
        release(gang, cluster, event.uid)
        return False
    wait_s = doubled(FIRST_RETRY_S, binding.tries, longest=LONGEST_RETRY_S)
    binding.failed(event.message, retry_at=now + max(wait_s, event.retry_after_s))
    if event.why not in FOR_GOOD:
        return False
    stands = any(other.state is not BindState.HELD for other in gang.bindings.values())
    if not stands and not any(pod.node for pod in gang.live()):
        return True
    if (tries.nodes > 1 or tries.here > TRIES_ON_A_NODE) and _partly_bound(gang):
        gang.doubted.add(event.uid)
    if tries.here == TRIES_ON_A_NODE:
        gang.attempt.heard(event.message)
        release(gang, cluster, event.uid)
    return False


def _partly_bound(gang: Gang) -> bool:
    bound = any(binding.state is BindState.BOUND for binding in gang.bindings.values())
    return bound or any(pod.node for pod in gang.live())


def take_out(gang: Gang, cluster: Cluster, uid: str) -> Binding | None:
    """The member leaves the gang. Returns its binding if that can no longer be called back."""
    binding = gang.bindings.get(uid)
    if binding is None or binding.state is BindState.HELD:
        release(gang, cluster, uid)
        return None
    del gang.bindings[uid]
    pod = cluster.pods.get(uid)
    return None if pod is not None and pod.node else binding


def carry_over(gang: Gang, binding: Binding) -> None:
    """A member has come whose binding is with the API server already."""
    gang.bindings[binding.pod.uid] = binding


def not_barred(gang: Gang, members: list[Pod], now: float) -> list[Pod]:
    """Those whose binding may be tried; a bar that has ended is a reason to try the gang again."""
    if not gang.barred:
        return members
    there = {pod.uid for pod in gang.live() if not pod.node}
    gang.barred = {uid: barred for uid, barred in gang.barred.items() if uid in there}
    for uid, barred in gang.barred.items():
        if 0 < barred.until <= now:
            gang.barred[uid] = replace(barred, until=0.0)
            gang.attempt.try_again()
    return list(filter(gang.may_try, members))


def doubted_last(gang: Gang, members: list[Pod]) -> list[Pod]:
    """The members in their order, but last those whose binding is refused wherever it is tried: others may suffice."""
    if gang.doubted:
        gang.doubted &= gang.pods.keys()
        members.sort(key=lambda pod: pod.uid in gang.doubted)
    return members


def release(gang: Gang, cluster: Cluster, uid: str) -> None:
    """Give up one member's place; the gang, even if it is parked for its further members, is to be planned again."""
    gang.durability.release(uid)
    binding = gang.bindings.pop(uid, None)
    if binding is None:
        return
    gang.attempt.try_again()
    if binding.vacant:
        cluster.remove_pod(uid)
    elif uid in cluster.pods:
        cluster.forget(uid)


def release_all(gang: Gang, cluster: Cluster) -> None:
    """Give up every place of the gang."""
    for uid in list(gang.bindings):
        release(gang, cluster, uid)
    gang.durability.needless()


def release_held(gang: Gang, cluster: Cluster) -> bool:
    """Give up the places whose bindings are not on their way. Returns whether there were any."""
    held = [uid for uid, binding in gang.bindings.items() if binding.state is BindState.HELD]
    for uid in held:
        release(gang, cluster, uid)
    return bool(held)


def let_go(gang: Gang, cluster: Cluster, binding: Binding) -> list[Effect]:
    """Give up a place that is no longer good: what waits to be sent is withdrawn.

    What has been sent cannot be called back, and the kubelet may refuse its pod.
    """
    if binding.state is BindState.HELD:
        release(gang, cluster, binding.pod.uid)
    return _withdraw([binding])


def withdraw_all(gang: Gang) -> list[Effect]:
    """Ask that no binding of the gang be sent any more."""
    return _withdraw(gang.bindings.values())


def complaint(gang: Gang) -> str:
    """What the API server said of a binding that it refused; empty if it refused none."""
    return next((binding.complaint for binding in gang.flying() if binding.complaint), gang.attempt.server_said)


def _withdraw(several: Iterable[Binding]) -> list[Effect]:
    effects: list[Effect] = []
    for binding in several:
        if binding.state is BindState.SENT and not binding.withdrawn:
            binding.withdraw()
            effects.append(WithdrawBinding(binding.pod.uid, binding.node))
    return effects


def reconcile(gang: Gang, cluster: Cluster) -> None:
    """Let go of bindings that the cluster has overtaken.

    A pod that shows a node has been bound, by us or by somebody else; a held place is worth nothing once its pod is
    no member any more or its node is gone.
    """
    held = BindState.HELD
    for uid, binding in list(gang.bindings.items()):
        pod = gang.pods.get(uid)
        if pod is binding.pod and binding.state is not held:
            continue  # nothing has changed of it since it was sent
        if binding.vacant:
            if binding.node not in cluster.nodes:
                release(gang, cluster, uid)
        elif pod is not None and pod.node:
            del gang.bindings[uid]
        elif (pod is None or pod.terminal) or (
            binding.state is BindState.HELD and not (gang.lives(pod) and binding.node in cluster.nodes)
        ):
            release(gang, cluster, uid)
        else:
            binding.renew(pod)
    if not gang.flies():
        gang.durability.end()


def _send(binding: Binding) -> BindPod:
    binding.sent()
    return BindPod(binding.pod.uid, binding.pod.namespace, binding.pod.name, binding.node)


def going_first(gang: Gang, avoided: frozenset[str], assignments: Sequence[tuple[Pod, str]]) -> Sequence[str]:
    """The members, by UID, whose bindings are sent before those of the others: what they may fail by fails early.

    Those that were refused wherever they were tried, or else one on each node that is avoided.
    """
    if not (gang.doubted or avoided):
        return ()
    doubted = [pod.uid for pod, _ in assignments if pod.uid in gang.doubted]
    return doubted or list({node: pod.uid for pod, node in assignments if node in avoided and pod.name}.values())
