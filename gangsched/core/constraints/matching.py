"""Matches pods against terms of inter-pod affinity and topology spread, and finds terms by pod and pods by term.

Source: k8s.io/kube-scheduler/framework (AffinityTerm.Matches).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from gangsched.core.objects.indexes import drop, uncount
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.selectors import matches
from gangsched.core.objects.shape import Labels, PodTerm

Item = TypeVar("Item", bound=Hashable)
_Anchor = tuple[str, str | None]
"""A label that a pod must have for a term to match it: key and value, where None stands for any value. With key "" the
value is instead the namespace that the pod must be in, None for any."""


class Matchable(Struct, frozen=True, gc=False, cache_hash=True):
    """The properties of a pod that terms match: its namespace, and those of its labels that some term uses.

    `nominated`: another scheduler has nominated the pod to a node; then all its labels are included.
    """

    namespace: str
    labels: Labels = ()
    nominated: bool = False

    def in_order(self) -> Sequence[object]:
        """The fields; labels are sorted."""
        return (self.namespace, self.labels, self.nominated)


class Noticed(Struct, frozen=True, gc=False, cache_hash=True):
    """The sight of a constraint that distinguishes pods by the terms that match them."""

    pod: Matchable

    def in_order(self) -> tuple[object, ...]:
        """The fields of the pod."""
        return tuple(self.pod.in_order())


def term_matches(term: PodTerm, pod: Matchable | Pod, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether the term matches the pod; an unknown namespace counts as one without labels."""
    if term.selector is None:
        return False
    in_scope = pod.namespace in term.namespaces or (
        term.namespace_selector is not None and matches(term.namespace_selector, namespaces.get(pod.namespace, {}))
    )
    return in_scope and matches(term.selector, dict(pod.labels))


class TermIndex(Generic[Item]):
    """An index of items by their terms, so that only terms that may match a pod are evaluated.

    `keys` counts, for each label key that the terms use, the items that use it.
    """

    __slots__ = ("_by_anchor", "keys")

    def __init__(self) -> None:
        self.keys: Counter[str] = Counter()
        self._by_anchor: dict[_Anchor, dict[Item, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_anchor)

    def enter(self, item: Item, *terms: PodTerm) -> None:
        """Add the item; `candidates` finds it for each pod that all these terms may match."""
        self.keys.update(_keys(terms))
        for anchor in anchors_of(terms[0]):
            self._by_anchor.setdefault(anchor, {})[item] = None

    def drop(self, item: Item, *terms: PodTerm) -> None:
        """Remove the item, which was entered with these terms."""
        for key in _keys(terms):
            uncount(self.keys, key)
        for anchor in anchors_of(terms[0]):
            drop(self._by_anchor, anchor, item)

    def candidates(self, pod: Matchable | Pod) -> Iterator[Item]:
        """The items whose terms may match the pod, in the order in which they were entered."""
        by_anchor = self._by_anchor
        for pair in pod.labels:
            yield from by_anchor.get(pair, ())
            yield from by_anchor.get((pair[0], None), ())
        yield from by_anchor.get(("", pod.namespace), ())
        yield from by_anchor.get(("", None), ())


def _keys(terms: Iterable[PodTerm]) -> frozenset[str]:
    return frozenset(requirement.key for term in terms for requirement in term.selector or ())


def anchors_of(term: PodTerm) -> frozenset[_Anchor]:
    """The anchors of which a pod must have one for the term to match it."""
    if term.selector is None:
        return frozenset()
    for requirement in term.selector:
        if requirement.operator == "In":
            return frozenset((requirement.key, value) for value in requirement.values)
        if requirement.operator == "Exists":
            return frozenset([(requirement.key, None)])
    if term.namespace_selector is None:
        return frozenset(("", namespace) for namespace in term.namespaces)
    return frozenset([("", None)])


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
        candidates: Numbers = {}
        for key, value in sorted(anchors, key=str):
            by_value = self._with_label(key)
            for numbers in by_value.values() if value is None else [by_value.get(value, {})]:
                self.examined += len(numbers)
                candidates |= numbers
        return candidates

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
    by_value: dict[str, Numbers] = {}
    for alike, rows in numbers.items():
        for value in [value for name, value in alike[0].labels if name == key]:
            by_value.setdefault(value, {})[alike] = rows
    return by_value
