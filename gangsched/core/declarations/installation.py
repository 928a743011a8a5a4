"""Decides which installation of gangsched owns a group, where several with different schedulerNames share a cluster.

Every installation computes the same answer from what all of them see, without asking another one. The schedulerName of
the group's pods decides. If no pod decides, the PodGroup does: by its annotation, else by the installation that wrote
its status last; if neither is set, the default name owns the group. If pods carry several names, the annotation's name
wins if it is among them, else the name of pods that have a node, else the name of the pod that was created first.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from gangsched.core.objects.pod import Pod, by_age
from gangsched.core.objects.policy import DEFAULT_NAME

KUBE_SCHEDULER = "default-scheduler"
"""The schedulerName of a pod whose manifest sets none; it does not count towards the owner unless this installation
serves it."""
KNOWN_OTHERS = frozenset(
    {
        "kai-scheduler",
        "koord-scheduler",
        "scheduler-plugins-scheduler",
        "spark-scheduler",
        "volcano",
        "yunikorn",
    }
)
"""Usual names of other schedulers: if there are pods with any other name, pods with these names do not count."""


def owner_of(pods: Iterable[Pod], *, annotated: str, kept_by: str, ours: Container[str]) -> str:
    """The schedulerName of the installation that owns the group of these `pods`, which may carry any scheduler name.

    `annotated` is what the PodGroup's annotation says, `kept_by` the installation that wrote its status last; each is
    empty if there is none. `ours` are the names that this installation serves.
    """
    naming = [pod for pod in pods if pod.scheduler != KUBE_SCHEDULER or KUBE_SCHEDULER in ours]
    alive = [pod for pod in naming if not ended(pod)] or naming
    chosen = [pod for pod in alive if pod.scheduler not in KNOWN_OTHERS] or alive
    names = {pod.scheduler for pod in chosen}
    if not names:
        return annotated or kept_by or DEFAULT_NAME
    if annotated in names:
        return annotated
    return min(chosen, key=precedence).scheduler


def ended(pod: Pod) -> bool:
    """Whether the pod decides only if no other one does, because it has ended or terminates."""
    return pod.terminating or pod.terminal


def precedence(pod: Pod) -> tuple[Any, ...]:
    """The order in which pods decide: those with a node first, then by age."""
    return (not pod.node, *by_age(pod), pod.uid)
