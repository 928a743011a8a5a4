"""InterPodAffinity: required affinity and anti-affinity of members, and required anti-affinity of placed pods.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity. A member whose affinity terms no pod matches
may be the first of its kind if it matches them itself; further members must then share its domain.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import groupby, starmap
from operator import attrgetter

import numpy as np

from gangsched.core.constraints.anti_affinity import AntiAffinityIndex, ForbiddenDomain, by_key
from gangsched.core.constraints.constraint import Constraint, Happening, Leavers, Member, Plan, Words, World
from gangsched.core.constraints.matching import Matchable, Noticed, term_matches
from gangsched.core.constraints.naming import pod_terms
from gangsched.core.constraints.tally import PlannedTallies, Question, of_all, of_term
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import PodTerm, Shape

_MOST = 1 << 31
_KEY = attrgetter("topology_key")


class AffinitySight(Noticed, frozen=True, gc=False, cache_hash=True):
    """The namespace and labels by which terms match the pod."""


class InterPodAffinity(Constraint):
    """The filter of this name."""

    proves = True
    words = (
        Words(
            NodeReason.POD_AFFINITY,
            "without the pods that the required pod affinity asks for in the same {resource}",
            "pods that match the required pod affinity, with room for the members beside them: missing on {nodes}",
        ),
        Words(
            NodeReason.POD_ANTI_AFFINITY,
            "with pods there that the required pod anti-affinity excludes from the same {resource}",
            "the end of pods that the members' own anti-affinity excludes, or more domains: {nodes} excluded",
        ),
        Words(
            NodeReason.ANTI_AFFINITY,
            "closed by the anti-affinity of pods in the same {resource}",
            "the end of pods whose anti-affinity closes {nodes} in the same {resource}",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._index = AntiAffinityIndex()

    def add(self, pod: Pod, row: int) -> None:
        """Apply the pod's anti-affinity terms to the domains of the row."""
        for term in pod.shape.anti_affinity:
            self._index.add(term, self._world.nodes.labels(row), pod)

    def remove(self, pod: Pod, row: int) -> None:
        """Stop applying the pod's terms there."""
        for term in pod.shape.anti_affinity:
            self._index.remove(term, self._world.nodes.labels(row), pod)

    def labels_changed(self) -> None:
        """Drop cached results, because terms may match other pods now."""
        self._index.namespaces_changed()

    def opens_elsewhere(self, happening: Happening, pod: Pod | None = None) -> bool:
        """Pods with anti-affinity close whole domains, and labels decide which pods their terms match."""
        if happening is Happening.POD_LEFT:
            return pod is not None and bool(pod.shape.anti_affinity)
        return bool(self._index)

    def state(self) -> object:
        """The anti-affinity terms of placed pods."""
        return self._index

    def plan(self, *, emptied: bool) -> Plan:
        """The terms and the pods of a snapshot."""
        return AffinityPlan(self._world, AntiAffinityIndex() if emptied else self._index, emptied=emptied)


class AffinityPlan(Plan):
    """The terms and the pods of a snapshot.

    `_index` holds the terms of the cluster's pods that have not left, `_known` those of all of them, by which members
    are seen, and `_own` those of members placed here; it is `selective` once there are any terms. `_closed` caches the
    rows that terms close to a pod, `_keys` the topology keys of each question (None for affinity terms).
    """

    about = frozenset({AffinitySight, "affinity", "anti_affinity"})
    selective: bool = False

    def __init__(self, world: World, index: AntiAffinityIndex, *, emptied: bool) -> None:
        self.selective = bool(index)
        self._nodes = world.nodes
        self._namespaces = world.namespaces
        self._known = self._index = index
        self._own = AntiAffinityIndex()
        self._emptied = emptied
        self._size = len(world.stock.names)
        self._tallies = PlannedTallies(world.tallies, emptied=emptied)
        self._closed: dict[Matchable, Mask] = {}
        self._keys: dict[Question, set[str] | None] = {}

    def expect(self, shapes: Collection[Shape]) -> None:
        """Count pods for the terms of these shapes."""
        for shape in shapes:
            for term in shape.anti_affinity:
                keys = self._keys.setdefault(of_term(term), set())
                if keys is not None:
                    keys.add(term.topology_key)
            if shape.affinity:
                self._keys[of_all(shape.affinity)] = None
        self._tallies.ask(self._keys)
        self.selective |= bool(self._keys)

    def sees(self, pod: Pod) -> AffinitySight | None:
        """The namespace and labels by which terms match the pod; None if none matches it."""
        asked = (self._tallies.keys, self._known.terms.keys, self._own.terms.keys)
        known = Matchable(pod.namespace, tuple([pair for pair in pod.labels if any(pair[0] in keys for keys in asked)]))
        if self._tallies.matched(known) or self._forbidden(known) or self._known.forbidden(known, self._namespaces):
            return AffinitySight(known)
        return None

    def sees_nominated(self, pod: Pod) -> AffinitySight:
        """The namespace and all labels of the pod."""
        return AffinitySight(Matchable(pod.namespace, pod.labels, nominated=True))

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows that are closed neither by the terms of placed pods nor by the members' own."""
        closed = [where for _, _, where in self._refusing(member, rows)]
        return ~np.logical_or.reduce(closed) if closed else None

    def room(self, member: Member, rows: IntArray) -> IntArray | None:
        """One where members of the class exclude each other."""
        keys = [term.topology_key for term in member.shape.anti_affinity if of_term(term) in self._matched(member)]
        if not keys:
            return None
        labelled = np.logical_or.reduce([self._nodes.by_label(key).any(rows) for key in keys])
        return np.where(labelled, 1, _MOST)

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:
        """Apply the members' terms to the domains of these rows, and count the members for terms that match them.

        Where `counts` are negative, that is reverted.
        """
        seen, terms = member.sight(AffinitySight), member.shape.anti_affinity
        keys = {term.topology_key for term in terms}
        if terms:
            self.selective = True
            self._apply(terms, rows, counts)
        everywhere = False
        for question in self._tallies.place(seen.pod, rows, counts) if seen is not None else ():
            asked = self._keys[question]
            everywhere |= asked is None
            keys |= asked or set()
        if not (keys or everywhere):
            return None
        return rows if not everywhere and all(map(self._nodes.tells_apart, keys)) else np.arange(self._size)

    def settle(self, leavers: Leavers) -> None:
        """The cluster counts the pods no more."""
        self._tallies.settle(leavers.pods)

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """The rows closed by each kind of term, with the domains, and the pods that the terms match or belong to."""
        seen, shape = member.sight(AffinitySight), member.shape
        forbidden = self._forbidden(seen.pod) if seen is not None else frozenset()
        for reason, keys, where in self._refusing(member, rows):
            domains = {key: self._nodes.values(key, rows[where]) for key in keys} or by_key(forbidden)
            terms = [term for term in shape.anti_affinity if term.topology_key in keys]
            who = pod_terms(shape.affinity if reason == NodeReason.POD_AFFINITY else terms)
            if seen is not None and not keys:
                who = self._index.owners(seen.pod, self._namespaces) or "members of the gang itself"
            yield reason, f"{', '.join(starmap(self._nodes.described, sorted(domains.items())))}: {who}", where

    def digest(self, rows: IntArray) -> Hashable:  # noqa: ARG002 - pods elsewhere matter as much
        """A digest of the places of pods that terms match, and of the domains that terms apply to."""
        return self._tallies.digest, self._index.digest, self._own.digest

    def couples(self, member: Member, other: Member) -> bool:
        """Whether the terms of either match the other, except terms whose domains are single nodes."""
        if self._joins(member, other):
            return not (member is other and self._is_met(member.shape))
        keys = {*self._excluding(member, other), *self._excluding(other, member)}
        return not all(self._nodes.tells_apart(key) for key in keys)

    def helps(self, member: Member, other: Member) -> bool:
        """Whether the affinity of the `other` asks for pods like the member."""
        return member is not other and self._joins(member, other)

    def excludes(self, member: Member, other: Member) -> bool:
        """Whether the anti-affinity of either matches the other."""
        return any(self._excluding(member, other)) or any(self._excluding(other, member))

    def is_left_alone(self, member: Member) -> bool:
        """Whether the member's affinity asks for pods that do not exist, so that no node takes it until they do."""
        terms = member.shape.affinity
        return bool(terms) and not self._joins(member, member) and not self._is_met(member.shape)

    def bond(self, member: Member) -> str:
        """The topology key with most domains among the affinity terms, if these match the members but no placed pod."""
        terms = member.shape.affinity
        if self._emptied or not terms or not self._joins(member, member) or self._is_met(member.shape):
            return ""
        return max((term.topology_key for term in terms), key=lambda key: (self._nodes.by_label(key).count, key))

    # Inside

    def _matched(self, member: Member) -> Sequence[Question]:
        """The questions that members of the class match."""
        seen = member.sight(AffinitySight)
        return self._tallies.matched(seen.pod) if seen is not None else ()

    def _joins(self, member: Member, other: Member) -> bool:
        return bool(other.shape.affinity) and of_all(other.shape.affinity) in self._matched(member)

    def _excluding(self, member: Member, other: Member) -> Iterator[str]:
        """The topology keys of the member's anti-affinity terms that match the other."""
        for term in member.shape.anti_affinity:
            if of_term(term) in self._matched(other):
                yield term.topology_key

    def _is_met(self, shape: Shape) -> bool:
        """Whether a pod matches all affinity terms on a node that has the label of one."""
        rows = self._tallies.of(of_all(shape.affinity)).rows
        return any(self._nodes.by_label(term.topology_key).any(rows).any() for term in shape.affinity)

    def _refusing(self, member: Member, rows: IntArray) -> Iterator[tuple[str, Sequence[str], Mask]]:
        """Each reason, the topology keys of the member's terms that cause it, and the rows where it holds."""
        shape, seen = member.shape, member.sight(AffinitySight)
        if shape.affinity:
            yield NodeReason.POD_AFFINITY, list(map(_KEY, shape.affinity)), ~self._near(member, rows)
        excluded: Mask = np.zeros(len(rows), dtype=np.bool_)
        for key, terms in groupby(sorted(shape.anti_affinity, key=_KEY), _KEY):
            closed: Mask = np.zeros(len(rows), dtype=np.bool_)
            for term in terms:
                closed |= self._nodes.beside(rows, key, self._tallies.of(of_term(term)).rows)
                heirs = np.isin(rows, list(self._tallies.nominated(of_term(term))))
                closed |= heirs & self._nodes.by_label(key).any(rows)
            yield NodeReason.POD_ANTI_AFFINITY, [key], closed
            excluded |= closed
        if seen is not None and (self._index or self._own):
            yield NodeReason.ANTI_AFFINITY, (), self._closed_to(seen.pod)[rows] & ~excluded

    def _near(self, member: Member, rows: IntArray) -> Mask:
        """The rows in domains of pods that match the affinity terms; if emptied, all with the keys: pods may come."""
        terms = member.shape.affinity
        near: Mask = np.ones(len(rows), dtype=np.bool_)
        for term in terms:
            near &= self._nodes.by_label(term.topology_key).any(rows) | (self._emptied & self._nodes.unsettled(rows))
        if self._emptied or (self._joins(member, member) and not self._is_met(member.shape)):
            return near
        matching = self._tallies.of(of_all(terms)).rows
        for term in terms:
            near &= self._nodes.beside(rows, term.topology_key, matching)
        return near

    def _forbidden(self, pod: Matchable) -> frozenset[ForbiddenDomain]:
        """The domains that the terms of placed pods and members forbid to the pod."""
        return self._index.forbidden(pod, self._namespaces) | self._own.forbidden(pod, self._namespaces)

    def _closed_to(self, pod: Matchable) -> Mask:
        """The rows of the domains that the terms of placed pods and members close to the pod."""
        known = self._closed.get(pod)
        if known is None:
            rows = np.arange(self._size)
            known = self._closed[pod] = np.zeros(self._size, dtype=np.bool_)
            for key, values in by_key(self._forbidden(pod)).items():
                known |= self._nodes.by_label(key).among(values, rows)
        return known

    def recount(self, leavers: Leavers, sign: int) -> IntArray | None:
        """Count these pods of the cluster again (1), or no longer (-1)."""
        changed = self._tallies.recount(leavers.pods, sign)
        for alike in leavers.alike:
            for term in alike.shape.anti_affinity:
                if self._index is self._known:
                    self._index = self._known.copy()
                for pod, row in zip(alike.pods, alike.rows.tolist(), strict=True):
                    change = self._index.add if sign > 0 else self._index.remove
                    change(term, self._nodes.labels(row), pod)
                self._closed.clear()
                changed = True
        return np.arange(self._size) if changed else None

    def _apply(self, terms: tuple[PodTerm, ...], rows: IntArray, counts: IntArray) -> None:
        """Count the terms of the members on these rows, or uncount them where negative."""
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            labels = self._nodes.labels(row)
            for term in terms * abs(count):
                if count > 0:
                    self._own.add(term, labels)
                else:
                    self._own.remove(term, labels)
        if (counts < 0).any():
            self._closed.clear()
            return
        every = np.arange(self._size)
        for term in terms:
            closed = None
            for pod, known in self._closed.items():
                if term_matches(term, pod, self._namespaces):
                    if closed is None:
                        closed = self._nodes.beside(every, term.topology_key, rows)
                    np.logical_or(known, closed, out=known)
