"""Decides which installation of gangsched owns a group, where several with different schedulerNames share a cluster.

Every installation computes the same answer from what all of them see, without asking another one. The schedulerName of
the group's pods decides. If no pod decides, the PodGroup does: by its annotation, else by the installation that wrote
its status last; if neither is set, the default name owns the group. If pods carry several names, the annotation's name
wins if it is among them, else the name of pods that have a node, else the name of the pod that was created first.

So `owner_of` asks for the first pod, in a fixed order, among those of one schedulerName that are alive, else among
those that are not. One pod of each such kind tells it as much as all of them: `Contenders` finds these, anew only if
one of them leaves or comes later in the order than before.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
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
    alive = [pod for pod in naming if not _ended(pod)] or naming
    chosen = [pod for pod in alive if pod.scheduler not in KNOWN_OTHERS] or alive
    names = {pod.scheduler for pod in chosen}
    if not names:
        return annotated or kept_by or DEFAULT_NAME
    if annotated in names:
        return annotated
    return min(chosen, key=_precedence).scheduler


def _ended(pod: Pod) -> bool:
    """Whether the pod decides only if no other one does, because it has ended or terminates."""
    return pod.terminating or pod.terminal


def _precedence(pod: Pod) -> tuple[Any, ...]:
    """The order in which pods decide: those with a node first, then by age."""
    return (not pod.node, *by_age(pod), pod.uid)


Kind = tuple[str, bool]
"""A schedulerName, and whether the pod has ended or terminates."""


class Contenders:
    """The first pod of each kind among those that name one group. Changes are noted; pods that leave are not."""

    def __init__(self) -> None:
        self._known = False
        self._first: dict[Kind, tuple[tuple[Any, ...], Pod]] = {}
        self._kinds: dict[str, Kind] = {}

    def note(self, pod: Pod) -> None:
        """Note that the pod names the group in this form."""
        kind, rank = (pod.scheduler, _ended(pod)), _precedence(pod)
        before = self._kinds.get(pod.uid)
        if before is not None and (before != kind or self._first[kind][0] < rank):
            self._known = False
        elif self._known:
            self._contend(pod, kind, rank)

    def first(self, pods: Callable[[], Iterable[Pod]], *, names: Callable[[str], bool]) -> list[Pod]:
        """The first pod of each kind among all `pods`; `names` says whether the pod of a UID still names the group."""
        if not self._known or not all(map(names, self._kinds)):
            self._first, self._kinds, self._known = {}, {}, True
            for pod in pods():
                self._contend(pod, (pod.scheduler, _ended(pod)), _precedence(pod))
        return [pod for _, pod in self._first.values()]

    def _contend(self, pod: Pod, kind: Kind, rank: tuple[Any, ...]) -> None:
        old = self._first.get(kind)
        if old is None or rank <= old[0]:
            if old is not None:
                del self._kinds[old[1].uid]
            self._first[kind], self._kinds[pod.uid] = (rank, pod), kind
