"""The way of a quorum's members to their nodes: begun together, retried one by one, given up only as a whole.

Capacity is assumed for all of them before the first binding is sent. A binding that fails keeps its place and is tried
again; once that is needed the places are made durable first (design rule 4), so that a restart knows of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.core.cluster import Cluster
from gangsched.core.effects import BindPod
from gangsched.core.events import BindRefused, Refused
from gangsched.core.gang import Barred, Binding, BindState, Gang
from gangsched.core.model import Pod

FIRST_RETRY_S = 0.25
LONGEST_RETRY_S = 5.0
FIRST_BAR_S = 10.0
LONGEST_BAR_S = 300.0


def begin(gang: Gang, cluster: Cluster, assignments: Sequence[tuple[Pod, str]]) -> list[BindPod]:
    """Assume all places and send all bindings."""
    effects = []
    for pod, node in assignments:
        cluster.assume(pod.uid, node)
        binding = gang.bindings[pod.uid] = Binding(pod, node)
        effects.append(_send(binding))
    return effects


def resend_due(gang: Gang, now: float) -> list[BindPod]:
    """Send again what is held and due."""
    if _must_wait(gang):
        return []
    return [
        _send(binding)
        for binding in gang.bindings.values()
        if binding.state is BindState.HELD and binding.retry_at <= now
    ]


def next_retry(gang: Gang) -> float:
    """When the next held binding is due; infinity if none is, or something else must happen first."""
    if _must_wait(gang):
        return float("inf")
    held = [binding.retry_at for binding in gang.bindings.values() if binding.state is BindState.HELD]
    return min(held, default=float("inf"))


def _must_wait(gang: Gang) -> bool:
    """Nothing is sent again before places that must be durable are, nor while the declarations contradict (rule 15)."""
    return gang.contradicted or (bool(gang.durable_asked_at) and not gang.durable)


def note_bound(gang: Gang, uid: str, node: str) -> None:
    """The server has confirmed a binding."""
    binding = gang.bindings.get(uid)
    if binding is not None and binding.node == node:
        binding.state = BindState.BOUND
        binding.complaint = ""


def note_refused(gang: Gang, cluster: Cluster, event: BindRefused, now: float) -> bool:
    """A binding did not happen though the pod is there: hold it for another try.

    A further member of a scheduled gang that the server refuses for good is let go of and barred for a while, doubling.
    Returns whether nothing is left to hope for: the server refuses every binding of the gang for good and none stands.
    """
    binding = gang.bindings.get(event.uid)
    if binding is None or binding.node != event.node:
        return False
    if event.why is Refused.FORBIDDEN and gang.run.scheduled_at:
        before = gang.barred.get(event.uid)
        times = before.times + 1 if before is not None else 1
        wait_s = min(FIRST_BAR_S * 2.0 ** min(times - 1, 10), LONGEST_BAR_S)
        gang.barred[event.uid] = Barred(now + max(wait_s, event.retry_after_s), event.message, times)
        release(gang, cluster, event.uid)
        return False
    wait_s = min(FIRST_RETRY_S * 2.0 ** min(binding.tries - 1, 10), LONGEST_RETRY_S)
    binding.state = BindState.HELD
    binding.retry_at = now + max(wait_s, event.retry_after_s)
    binding.complaint = event.message
    if event.why is not Refused.FORBIDDEN:
        return False
    stands = any(other.state is not BindState.HELD for other in gang.bindings.values())
    return not stands and not any(pod.node for pod in gang.live())


def release(gang: Gang, cluster: Cluster, uid: str) -> None:
    """Give up one member's place."""
    if gang.bindings.pop(uid, None) is not None and uid in cluster.pods:
        cluster.forget(uid)


def release_all(gang: Gang, cluster: Cluster) -> None:
    """Give up every place of the gang."""
    for uid in list(gang.bindings):
        release(gang, cluster, uid)


def reconcile(gang: Gang, cluster: Cluster) -> None:
    """Let go of bindings that the cluster has overtaken.

    A pod that shows a node has been bound, by us or by somebody else; a held place is worth nothing once its pod is
    no member any more or its node is gone.
    """
    members = {pod.uid for pod in gang.live()} if gang.bindings else set()
    for uid, binding in list(gang.bindings.items()):
        pod = gang.pods.get(uid)
        if pod is not None and pod.node:
            del gang.bindings[uid]
        elif (binding.state is BindState.HELD and (uid not in members or binding.node not in cluster.nodes)) or (
            pod is None or pod.terminal
        ):
            release(gang, cluster, uid)
        else:
            binding.pod = pod
    if not gang.flying():
        gang.durable = False
        gang.durable_asked_at = 0.0


def _send(binding: Binding) -> BindPod:
    binding.state = BindState.SENT
    binding.tries += 1
    return BindPod(binding.pod.uid, binding.pod.namespace, binding.pod.name, binding.node)
