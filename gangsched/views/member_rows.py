"""The members of a gang, a row for each: where they are, and why they do not run yet."""

from __future__ import annotations

from typing import NamedTuple

from gangsched.core.objects.pod import Pod, PodPhase

_GATED, _NOT_READY = "SchedulingGated", "NotReady"


class Member(NamedTuple):
    """A pod of a gang. `node` is empty before it is bound.

    `phase` is that of the pod, Terminating if it is being deleted, or Starting if a container has yet to start, perhaps
    again. `why` is why it does not start, is not ready, has failed, or has no node: the reason of a container that
    waits, or of the pod's condition. Empty if nothing is wrong.
    """

    name: str
    node: str
    phase: str
    why: str


def runs(pod: Pod) -> bool:
    """Whether the pod runs, and none of its containers waits to be started, perhaps again."""
    return pod.phase is PodPhase.RUNNING and not pod.lifetime.not_started


def member(pod: Pod) -> Member:
    """The row of this pod."""
    waits = pod.lifetime.not_started
    if pod.terminating:
        return Member(pod.name, pod.node, "Terminating", waits)
    if pod.terminal:
        return Member(pod.name, pod.node, pod.phase.value, pod.failure.message if pod.failure is not None else "")
    if not pod.node:
        return Member(pod.name, "", pod.phase.value, _GATED if pod.gated else pod.condition_reason)
    if not runs(pod):
        return Member(pod.name, pod.node, "Starting", waits)
    return Member(pod.name, pod.node, pod.phase.value, "" if pod.lifetime.ready else _NOT_READY)
