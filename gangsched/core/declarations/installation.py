"""Whose a group is where installations of gangsched with different schedulerNames share a cluster.

Every installation finds the same answer from what all of them see, without asking another: the schedulerName that the
group's pods carry decides. Only if no pod decides, what the PodGroup says does: its annotation, else whose members it
had last, else the default name. If pods carry several names, the one of the annotation counts if it is among them, else
the name of pods that have a node, else that of the pod that was created first.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from gangsched.core.objects.pod import Pod, member_order
from gangsched.core.objects.policy import DEFAULT_NAME

KUBE_SCHEDULER = "default-scheduler"
"""What a pod carries whose schedulerName was forgotten: it makes a group nobody's unless this name is served."""
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
"""Names that other schedulers usually have: beside pods of these, pods of any other name decide."""


def owner_of(pods: Iterable[Pod], *, annotated: str, kept_by: str, ours: Container[str]) -> str:
    """The schedulerName whose installation has the group that these `pods` of any scheduler name.

    `annotated` is what the PodGroup's annotation says, `kept_by` the installation that wrote its status last; both are
    empty if there is none. `ours` are the names that are served here.
    """
    naming = [pod for pod in pods if pod.scheduler != KUBE_SCHEDULER or KUBE_SCHEDULER in ours]
    alive = [pod for pod in naming if not (pod.terminating or pod.terminal)] or naming
    chosen = [pod for pod in alive if pod.scheduler not in KNOWN_OTHERS] or alive
    names = {pod.scheduler for pod in chosen}
    if not names:
        return annotated or kept_by or DEFAULT_NAME
    if annotated in names:
        return annotated
    return min(chosen, key=lambda pod: (not pod.node, *member_order(pod), pod.uid)).scheduler
