"""The topology domains that the required anti-affinity of placed or nominated pods forbids to new pods.

Each term is evaluated on its own, against the new pod's labels, its namespace and the labels of that namespace
(`InterPodAffinity` of kube-scheduler). A pod on a node without the term's topology key forbids nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import nsmallest

from gangsched.core.constraints.matching import Matchable, TermIndex, term_matches
from gangsched.core.constraints.naming import NAMED, listed
from gangsched.core.objects.indexes import drop, uncount
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm

ForbiddenDomain = tuple[str, str]
"""(topology key, value): all nodes with this value of the label."""
TermOwner = tuple[str, str]
"""(namespace, name of the group or else of the pod) of a pod with a term."""

_NONE: frozenset[ForbiddenDomain] = frozenset()
MOST_CACHED = 4096
"""Limit for the number of cached results, one for each new pod that terms can tell apart; then all are dropped."""


def by_key(domains: Iterable[ForbiddenDomain]) -> dict[str, list[str]]:
    """The sorted values of these domains by topology key."""
    values: dict[str, list[str]] = {}
    for key, value in sorted(domains):
        values.setdefault(key, []).append(value)
    return values


class AntiAffinityIndex:
    """The terms of pods, and the domains of their nodes.

    Terms are counted by domain, so that `remove` reverts `add` exactly. A term is evaluated once, however many pods
    share it. Forbidden domains are cached for all new pods that the terms cannot tell apart. Falsy while there is no
    term; `digest` is equal while terms and domains are. The owners of terms, by UID, are as declared by their pods when
    they were added; they serve for messages only.
    """

    __slots__ = ("_domains", "_forbidden", "_owners", "digest", "terms")

    def __init__(self) -> None:
        self.terms: TermIndex[PodTerm] = TermIndex()
        self.digest = 0
        self._domains: dict[PodTerm, dict[str, int]] = {}
        self._forbidden: dict[Matchable, frozenset[ForbiddenDomain]] = {}
        self._owners: dict[PodTerm, dict[str, TermOwner]] = {}

    def __bool__(self) -> bool:
        return bool(self._domains)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AntiAffinityIndex):
            return False
        owners = {term: by_uid.keys() for term, by_uid in self._owners.items()}
        others = {term: by_uid.keys() for term, by_uid in other._owners.items()}
        return self._domains == other._domains and owners == others

    __hash__ = None  # type: ignore[assignment]

    def add(self, term: PodTerm, node_labels: Mapping[str, str], owner: Pod | None = None) -> None:
        """Count a pod with this term on a node with these labels."""
        value = node_labels.get(term.topology_key)
        if value is not None:
            self._forbidden.clear()
            values = self._domains.get(term)
            if values is None:
                values = self._enter(term)
            values[value] = values.get(value, 0) + 1
            self.digest += hash((term, value))
            if owner is not None:
                name = owner.declaration.group if owner.declaration is not None else owner.name
                self._owners.setdefault(term, {})[owner.uid] = (owner.namespace, name)

    def remove(self, term: PodTerm, node_labels: Mapping[str, str], owner: Pod | None = None) -> None:
        """Stop counting a pod with this term on a node that had these labels when it was added.

        Raises:
            KeyError: the term was never added with this domain.
        """
        value = node_labels.get(term.topology_key)
        if value is not None:
            self._forbidden.clear()
            values = self._domains[term]
            uncount(values, value)
            self.digest -= hash((term, value))
            if not values:
                del self._domains[term]
                self.terms.drop(term, term)
            if owner is not None and owner.uid in self._owners.get(term, ()):
                drop(self._owners, term, owner.uid)

    def copy(self) -> AntiAffinityIndex:
        """An independent copy."""
        copy = AntiAffinityIndex()
        for term, values in self._domains.items():
            copy._enter(term).update(values)
        copy.digest = self.digest
        copy._owners = {term: dict(owners) for term, owners in self._owners.items()}
        return copy

    def namespaces_changed(self) -> None:
        """Clear the cache after the labels of a namespace have changed."""
        self._forbidden.clear()

    def forbidden(self, newcomer: Matchable, namespaces: Mapping[str, Mapping[str, str]]) -> frozenset[ForbiddenDomain]:
        """The domains that are forbidden to this new pod; `namespaces` holds the labels of each namespace."""
        if not self._domains:
            return _NONE
        known = self._forbidden.get(newcomer)
        if known is None:
            if len(self._forbidden) >= MOST_CACHED:
                self._forbidden.clear()
            known = self._forbidden[newcomer] = frozenset(
                (term.topology_key, value)
                for term in self.terms.candidates(newcomer)
                if term_matches(term, newcomer, namespaces)
                for value in self._domains[term]
            )
        return known

    def owners(self, newcomer: Matchable, namespaces: Mapping[str, Mapping[str, str]]) -> str:
        """The owners of terms that match this new pod: a few of its own namespace by name, all others as a number."""
        matching = (term for term in self.terms.candidates(newcomer) if term_matches(term, newcomer, namespaces))
        owners = {owner for term in matching for owner in self._owners.get(term, {}).values()}
        own = [name for namespace, name in owners if namespace == newcomer.namespace]
        named = [f"{newcomer.namespace}/{name}" for name in nsmallest(NAMED, own)]
        parts = [listed(named, len(own))] if own else []
        parts += [f"{len(owners) - len(own)} of other namespaces"] if len(own) < len(owners) else []
        return " and ".join(parts)

    def _enter(self, term: PodTerm) -> dict[str, int]:
        self.terms.enter(term, term)
        return self._domains.setdefault(term, {})
