"""The pods that count on known nodes, by those of their labels by which terms choose them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from gangsched.core.constraints.matching import Matchable, anchors_of
from gangsched.core.objects.indexes import uncount
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm

Placed = Callable[[], Iterable[tuple[Pod, int]]]
"""A function that returns the pods that count on known nodes, each with its row."""
Alike = tuple[Matchable, bool]
"""What terms match of a pod, and whether it is terminating."""
Numbers = dict[Alike, dict[int, int]]
"""The number of such pods by row, without zeros."""


class LabelledPods:
    """The pods by label, for each label key by which terms have chosen; alike pods are counted together.

    `examined` counts the pods that were examined.
    """

    def __init__(self, placed: Placed) -> None:
        self.examined = 0
        self._placed = placed
        self._by_key: dict[str, dict[str, Numbers]] = {}

    def add(self, pod: Pod, row: int) -> None:
        """The pod counts on the row."""
        for key, value in pod.labels if self._by_key else ():
            if key in self._by_key:
                _count(self._by_key[key].setdefault(value, {}), pod, row)

    def remove(self, pod: Pod, row: int) -> None:
        """A pod that was added before counts no more."""
        for key, value in pod.labels if self._by_key else ():
            if key in self._by_key:
                numbers, alike = self._by_key[key][value], _alike(pod)
                uncount(numbers[alike], row)
                if not numbers[alike]:
                    del numbers[alike]
                if not numbers:
                    del self._by_key[key][value]

    def candidates(self, terms: Iterable[PodTerm]) -> Mapping[Alike, Mapping[int, int]]:
        """All pods that one of the terms may match, perhaps among others.

        Only if a term requires a label with a key by which none has chosen yet, or no label, all pods are examined.
        """
        anchors = {anchor for term in terms for anchor in anchors_of(term)}
        if any(not key for key, _ in anchors):
            return self._all()
        found: Numbers = {}
        for key, value in sorted(anchors, key=str):
            by_value = self._with_label(key)
            for numbers in by_value.values() if value is None else [by_value.get(value, {})]:
                self.examined += len(numbers)
                found |= numbers
        return found

    def keep(self, keys: Container[str]) -> None:
        """Forget the pods by all label keys but these."""
        for key in [key for key in self._by_key if key not in keys]:
            del self._by_key[key]

    def contradictions(self, keys: Container[str]) -> Iterator[str]:
        """A sentence for each label key whose pods are not as kept, or that is not one of these."""
        for key, by_value in self._by_key.items():
            if key not in keys:
                yield f"pods are known by the label {key}, by which none are chosen"
            if by_value != _by_value(key, self._all()):
                yield f"pods are not known by their label {key}"

    def _with_label(self, key: str) -> Mapping[str, Numbers]:
        if key not in self._by_key:
            self._by_key[key] = _by_value(key, self._all())
        return self._by_key[key]

    def _all(self) -> Numbers:
        numbers: Numbers = {}
        for pod, row in self._placed():
            self.examined += 1
            _count(numbers, pod, row)
        return numbers


def _alike(pod: Pod) -> Alike:
    return Matchable(pod.namespace, pod.labels), pod.terminating


def _count(numbers: Numbers, pod: Pod, row: int) -> None:
    rows = numbers.setdefault(_alike(pod), {})
    rows[row] = rows.get(row, 0) + 1


def _by_value(key: str, numbers: Numbers) -> dict[str, Numbers]:
    found: dict[str, Numbers] = {}
    for alike, rows in numbers.items():
        for value in [value for name, value in alike[0].labels if name == key]:
            found.setdefault(value, {})[alike] = rows
    return found
