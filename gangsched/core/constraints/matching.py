"""Matches pods against terms of inter-pod affinity and topology spread, and indexes the terms that may match a pod.

Source: k8s.io/kube-scheduler/framework (AffinityTerm.Matches).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
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
