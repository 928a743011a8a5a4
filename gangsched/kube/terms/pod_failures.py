"""How a pod failed: rejected by its kubelet, or ended by its containers."""

from __future__ import annotations

from gangsched.api.times import parse_time
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
    said = [part for part in (status.reason, (status.message or "").removeprefix(_REJECTED)) if part]
    if is_rejection(status):
        return Failure(printable(": ".join(said), limit=LONGEST_SAID))
    statuses = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    ended = [(each.name, each.state.terminated) for each in statuses if each.state and each.state.terminated]
    times = [(_moment(each.started_at), _moment(each.finished_at)) for _, each in ended]
    began, at = min((each for each, _ in times if each), default=0.0), max((each for _, each in times), default=0.0)
    if not at:
        return None
    name, last = next(((name, each) for name, each in ended if each.exit_code), ended[-1])
    said.append(f"container {name}: {last.reason or 'Error'}, exit code {last.exit_code}")
    return Failure(printable(": ".join(said), limit=LONGEST_SAID), at=at, ran_s=max(0.0, at - (began or at)))


def _moment(text: str | None) -> float:
    """The time in epoch seconds; 0.0 if it is missing, unreadable or the zero time."""
    try:
        return max(0.0, parse_time(text or ""))
    except ValueError:
        return 0.0
