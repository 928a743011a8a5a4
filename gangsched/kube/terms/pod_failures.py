"""How a pod failed: rejected by its kubelet, or ended by its containers."""

from __future__ import annotations

from gangsched.api.times import parse_if_set
from gangsched.core.objects.pod import Failure
from gangsched.core.objects.wording import printable
from gangsched.kube import wire

LONGEST_SAID = 300
"""Maximum number of characters that are quoted of what the kubelet says."""
_REJECTED = "Pod was rejected: "
_REJECTIONS = frozenset(
    {
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "NodeUnschedulable",
        "SMTAlignmentError",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
    }
)


def is_rejection(status: wire.PodStatus) -> bool:
    """Whether the failed pod was rejected by the kubelet: `rejectPod` in pkg/kubelet/kubelet.go, and its reasons."""
    reason, message = status.reason or "", status.message or ""
    return reason.startswith("OutOf") or reason in _REJECTIONS or message.startswith(_REJECTED)


def failure(status: wire.PodStatus) -> Failure | None:
    """How the pod failed; None if it does not say how long its containers ran.

    What containers leave as their termination message is not quoted: it may be anything.
    """
    parts = [part for part in (status.reason, (status.message or "").removeprefix(_REJECTED)) if part]
    if is_rejection(status):
        return Failure(printable(": ".join(parts), limit=LONGEST_SAID))
    statuses = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    ended = [
        (container.name, container.state.terminated)
        for container in statuses
        if container.state and container.state.terminated
    ]
    times = [(parse_if_set(state.started_at), parse_if_set(state.finished_at)) for _, state in ended]
    began, at = (
        min((start for start, _ in times if start > 0), default=0.0),
        max((end for _, end in times), default=0.0),
    )
    if at <= 0:
        return None
    name, last = next(((name, state) for name, state in ended if state.exit_code), ended[-1])
    parts.append(f"container {name}: {last.reason or 'Error'}, exit code {last.exit_code}")
    return Failure(printable(": ".join(parts), limit=LONGEST_SAID), at=at, ran_s=max(0.0, at - (began or at)))
