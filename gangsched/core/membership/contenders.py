"""Finds the pods that decide whose a group is, without looking at all of them at each change.

`declarations.installation.owner_of` asks for the first pod, in a fixed order, among those of one schedulerName that are
alive, else among those that are not. So one pod of each such kind tells it as much as all of them. They are found anew
only if one of them leaves or comes later in the order than before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gangsched.core.declarations.installation import ended, precedence
from gangsched.core.objects.pod import Pod

Kind = tuple[str, bool]
"""A schedulerName, and whether the pod has ended or terminates."""
Rank = tuple[Any, ...]


class Contenders:
    """The first pod of each kind among those that name one group. Changes are noted; pods that leave are not."""

    def __init__(self) -> None:
        self._known = False
        self._first: dict[Kind, tuple[Rank, Pod]] = {}
        self._kinds: dict[str, Kind] = {}

    def note(self, pod: Pod) -> None:
        """Note that the pod names the group in this form."""
        kind, rank = (pod.scheduler, ended(pod)), precedence(pod)
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
                self._contend(pod, (pod.scheduler, ended(pod)), precedence(pod))
        return [pod for _, pod in self._first.values()]

    def _contend(self, pod: Pod, kind: Kind, rank: Rank) -> None:
        old = self._first.get(kind)
        if old is None or rank <= old[0]:
            if old is not None:
                del self._kinds[old[1].uid]
            self._first[kind], self._kinds[pod.uid] = (rank, pod), kind
