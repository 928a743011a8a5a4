"""Finds the pods that decide whose a group is, at a cost that does not grow with the group.

`declarations.installation.owner_of` asks for the first pod, in a fixed order, among those of one schedulerName that are
alive, else among those that are not. So one pod of each such kind tells it as much as all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush

from gangsched.core.declarations.installation import ended, precedence
from gangsched.core.objects.pod import Pod

_SLACK = 64
Kind = tuple[str, bool]
"""A schedulerName, and whether the pod has ended or terminates."""
Rank = tuple[object, ...]


class Contenders:
    """The pods that name one group: a heap for each kind, whose outdated entries are skipped.

    Pods that leave are not reported; `first` asks which are still there.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._known: dict[str, tuple[Kind, Rank]] = {}
        self._heaps: dict[Kind, list[tuple[Rank, str]]] = {}
        for pod in pods:
            self.note(pod)

    def note(self, pod: Pod) -> None:
        """Note that the pod names the group in this form."""
        kind, rank = (pod.scheduler, ended(pod)), precedence(pod)
        if self._known.get(pod.uid) != (kind, rank):
            self._known[pod.uid] = (kind, rank)
            heappush(self._heaps.setdefault(kind, []), (rank, pod.uid))

    def outgrown(self, number: int) -> bool:
        """Whether most of what is kept is of pods that have left, if `number` pods name the group now."""
        return sum(map(len, self._heaps.values())) > 4 * number + _SLACK

    def first(self, find: Callable[[str], Pod | None]) -> Iterator[Pod]:
        """The first pod of each kind; `find` returns the pod of a UID if it names the group."""
        for kind, heap in [*self._heaps.items()]:
            while heap:
                rank, uid = heap[0]
                pod = find(uid)
                if pod is not None and self._known.get(uid) == (kind, rank):
                    yield pod
                    break
                heappop(heap)
                if pod is None:
                    self._known.pop(uid, None)
            else:
                del self._heaps[kind]
