"""What kubelets do with our pods: admit and run them, reject them, or report that they failed at once."""

from __future__ import annotations

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.failures import failed_at_once, failed_when
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.installations import group_of
from gangsched.core.objects.pod import Pod, PodPhase


def note(avoidance: Avoidance, old: Pod | None, pod: Pod) -> None:
    """Note the present form of one of our pods, which had the form `old` before; None if it has just been listed."""
    if old is not None and old.phase is pod.phase:
        return
    if failed_at_once(pod):
        avoidance.failures.failed(pod, None if old is not None else failed_when(pod))
    elif pod.phase is PodPhase.RUNNING:
        avoidance.failures.started(pod, None if old is not None else pod.bound_at)
    if old is None:
        return
    if pod.phase is PodPhase.RUNNING:
        avoidance.ran(pod.node)
    elif pod.rejected:
        message = f"the kubelet did not admit pod {pod.namespace}/{pod.name}"
        avoidance.refused(group_of(pod), pod.uid, pod.node, message, by_kubelet=True)


def renews(cluster: Cluster, gang: Gang | None, pod: Pod) -> bool:
    """Whether the pod of this gang, if of any, is known in this form but for its lifetime, which is then noted."""
    known = cluster.pods.get(pod.uid)
    if known is None or known.differs(pod):
        return False
    if known != pod:
        cluster.set_pod(pod)
        if gang is not None:
            gang.observed.note_pod(pod, foreign=pod.uid in gang.observed.foreign_pods)
    return True
