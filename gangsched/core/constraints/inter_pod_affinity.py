"""InterPodAffinity: required anti-affinity of placed pods keeps matching pods out of topology domains.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity. Members that have required terms themselves
are refused by name (`Shape.unsupported`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gangsched.core.constraints.anti_affinity import MOST_KEPT, AntiAffinityIndex, Domain
from gangsched.core.constraints.constraint import Constraint, Happening, Member, Plan, Words, World
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import PodTerm


@dataclass(frozen=True, slots=True)
class Seen:
    """The domains closed to a pod, and the terms by which it closes domains to others.

    `by_key` holds the same domains by topology key.
    """

    forbidden: frozenset[Domain]
    terms: tuple[PodTerm, ...]
    by_key: Mapping[str, frozenset[str]] = field(compare=False)

    def in_order(self) -> Sequence[object]:
        """Domains and terms, sorted."""
        return (sorted(self.forbidden), repr(self.terms))


class InterPodAffinity(Constraint):
    """The filter of this name."""

    words = (
        Words(
            NodeReason.ANTI_AFFINITY,
            "closed by the anti-affinity of a pod there",
            "the end of pods whose anti-affinity closes nodes: {nodes} closed",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._index = AntiAffinityIndex()
        self._seen: dict[tuple[frozenset[Domain], tuple[PodTerm, ...]], Seen] = {}

    def add(self, pod: Pod, row: int) -> None:
        """Its terms apply to the domains of the row."""
        for term in pod.anti_affinity:
            self._index.add(term, self._world.nodes.labels(row))

    def remove(self, pod: Pod, row: int) -> None:
        """Its terms no longer apply there."""
        for term in pod.anti_affinity:
            self._index.remove(term, self._world.nodes.labels(row))

    def labels_changed(self) -> None:
        """Terms may match other pods now."""
        self._index.namespaces_changed()

    def opens_elsewhere(self, happening: Happening, pod: Pod | None = None) -> bool:
        """A pod with such a term closes more than its node, and which pods it matches depends on labels."""
        if happening is Happening.POD_LEFT:
            return pod is not None and bool(pod.anti_affinity)
        return bool(self._index)

    def told(self) -> object:
        """The terms."""
        return self._index

    def plan(self, *, emptied: bool) -> Plan:
        """The terms of a snapshot."""
        return _Plan(self._world, AntiAffinityIndex() if emptied else self._index, self._sight)

    def _sight(self, forbidden: frozenset[Domain], terms: tuple[PodTerm, ...]) -> Seen:
        """One object for all equal pods: the sets may be large, and classes are compared by them."""
        known = self._seen.get((forbidden, terms))
        if known is None:
            by_key: dict[str, set[str]] = {}
            for key, value in forbidden:
                by_key.setdefault(key, set()).add(value)
            known = Seen(forbidden, terms, {key: frozenset(values) for key, values in by_key.items()})
            if len(self._seen) >= MOST_KEPT:
                self._seen.clear()
            self._seen[forbidden, terms] = known
        return known


class _Plan(Plan):
    """The cluster's index, and from the first change on a copy of it."""

    def __init__(
        self, world: World, index: AntiAffinityIndex, sight: Callable[[frozenset[Domain], tuple[PodTerm, ...]], Seen]
    ) -> None:
        self._world = world
        self._index = index
        self._sight = sight
        self._copied = False

    @property
    def selective(self) -> bool:
        """Whether there are any terms."""
        return bool(self._index)

    def sees(self, pod: Pod) -> Seen | None:
        """What is closed to the pod now, and its own terms."""
        forbidden = self._index.forbidden(pod, self._world.namespaces.get(pod.namespace, {}))
        return self._sight(forbidden, pod.anti_affinity) if forbidden or pod.anti_affinity else None

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows in none of the closed domains."""
        seen = member.sight(Seen)
        if seen is None or not seen.forbidden:
            return None
        closed: Mask = np.zeros(len(rows), dtype=np.bool_)
        for key, values in seen.by_key.items():
            closed |= self._world.nodes.by_label(key).among(values, rows)
        return ~closed

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> None:
        """Their terms apply to the domains of these rows; classes that are created from now on see them."""
        for term, labels in self._terms(member, rows, counts):
            self._index.add(term, labels)

    def give_back(self, member: Member, rows: IntArray, counts: IntArray) -> None:
        """Their terms no longer apply there."""
        for term, labels in self._terms(member, rows, counts):
            self._index.remove(term, labels)

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """Which domains are closed."""
        mask = self.mask(member, rows)
        if mask is not None:
            yield NodeReason.ANTI_AFFINITY, "", ~mask

    def _terms(self, member: Member, rows: IntArray, counts: IntArray) -> Iterator[tuple[PodTerm, Mapping[str, str]]]:
        seen = member.sight(Seen)
        if seen is None or not seen.terms:
            return
        if not self._copied:
            self._index, self._copied = self._index.copy(), True
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            for term in seen.terms * count:
                yield term, self._world.nodes.labels(row)
