"""Required anti-affinity of placed or nominated pods: the topology domains that it forbids to newcomers.

Each term of such a pod is judged on its own, against the newcomer's labels, namespace and namespace's labels
(`InterPodAffinity` of kube-scheduler). A pod on a node without the term's topology key forbids nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gangsched.core.constraints.column import uncount
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.selectors import matches
from gangsched.core.objects.shape import Labels, PodTerm

Domain = tuple[str, str]
"""A topology key and a node label's value of it: all nodes with that label."""

_Anchor = tuple[str, str | None]
"""A label that a newcomer must have for a term to match it: key and value, None for any; key "": none is needed."""

_NONE: frozenset[Domain] = frozenset()
MOST_KEPT = 4096
"""Results are cached for so many newcomers that terms can tell apart; then the cache is cleared."""


class AntiAffinityIndex:
    """The terms of pods, and the domains of their nodes.

    Terms are counted by domain, so that `remove` reverts `add` exactly, and judged once however many pods share them.
    What they forbid is cached for all newcomers whose labels they cannot tell apart. Falsy while there is no term.
    """

    __slots__ = ("_domains", "_forbidden", "_found_by", "_keys")

    def __init__(self) -> None:
        self._domains: dict[PodTerm, dict[str, int]] = {}
        self._found_by: dict[_Anchor, dict[PodTerm, None]] = {}
        self._keys: Counter[str] = Counter()
        self._forbidden: dict[tuple[str, Labels], frozenset[Domain]] = {}

    def __bool__(self) -> bool:
        return bool(self._domains)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AntiAffinityIndex) and self._domains == other._domains

    __hash__ = None  # type: ignore[assignment]

    def add(self, term: PodTerm, node_labels: Mapping[str, str]) -> None:
        """Count a pod with this term on a node with these labels."""
        value = node_labels.get(term.topology_key)
        if value is not None:
            self._forbidden.clear()
            values = self._domains.get(term) or self._enter(term)
            values[value] = values.get(value, 0) + 1

    def remove(self, term: PodTerm, node_labels: Mapping[str, str]) -> None:
        """Stop counting a pod with this term on a node that had these labels when it was added.

        Raises:
            KeyError: the term was never added with this domain.
        """
        value = node_labels.get(term.topology_key)
        if value is not None:
            self._forbidden.clear()
            values = self._domains[term]
            uncount(values, value)
            if not values:
                self._drop(term)

    def copy(self) -> AntiAffinityIndex:
        """An independent copy."""
        copy = AntiAffinityIndex()
        for term, values in self._domains.items():
            copy._enter(term).update(values)
        return copy

    def namespaces_changed(self) -> None:
        """Clear the cache: a namespace has other labels."""
        self._forbidden.clear()

    def forbidden(self, pod: Pod, namespace_labels: Mapping[str, str]) -> frozenset[Domain]:
        """The domains that are forbidden to this newcomer; its namespace has these labels."""
        if not self._domains:
            return _NONE
        alike = (pod.namespace, tuple(pair for pair in pod.labels if pair[0] in self._keys))
        known = self._forbidden.get(alike)
        if known is None:
            if len(self._forbidden) >= MOST_KEPT:
                self._forbidden.clear()
            known = self._forbidden[alike] = self._judged(*alike, namespace_labels)
        return known

    def _judged(self, namespace: str, pairs: Labels, namespace_labels: Mapping[str, str]) -> frozenset[Domain]:
        labels = dict(pairs)
        return frozenset(
            (term.topology_key, value)
            for anchor in (*pairs, *((key, None) for key in labels), ("", None))
            for term in self._found_by.get(anchor, ())
            if term_matches(term, namespace=namespace, labels=labels, namespace_labels=namespace_labels)
            for value in self._domains[term]
        )

    def _enter(self, term: PodTerm) -> dict[str, int]:
        self._keys.update(_keys(term))
        for anchor in _anchors(term):
            self._found_by.setdefault(anchor, {})[term] = None
        return self._domains.setdefault(term, {})

    def _drop(self, term: PodTerm) -> None:
        del self._domains[term]
        for key in _keys(term):
            uncount(self._keys, key)
        for anchor in _anchors(term):
            terms = self._found_by[anchor]
            del terms[term]
            if not terms:
                del self._found_by[anchor]


def term_matches(
    term: PodTerm, *, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
) -> bool:
    """Whether the term matches a pod with these labels in this namespace (its labels are empty if it is unknown)."""
    if term.selector is None:
        return False
    in_scope = namespace in term.namespaces or (
        term.namespace_selector is not None and matches(term.namespace_selector, namespace_labels)
    )
    return in_scope and matches(term.selector, labels)


def _keys(term: PodTerm) -> frozenset[str]:
    return frozenset(requirement.key for requirement in term.selector or ())


def _anchors(term: PodTerm) -> frozenset[_Anchor]:
    """The index entries of the term, so that only terms that may match a newcomer are judged."""
    if term.selector is None:
        return frozenset()
    for requirement in term.selector:
        if requirement.operator == "In":
            return frozenset((requirement.key, value) for value in requirement.values)
        if requirement.operator == "Exists":
            return frozenset([(requirement.key, None)])
    return frozenset([("", None)])
