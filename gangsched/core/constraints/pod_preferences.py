"""The score of InterPodAffinity: preferred affinity and anti-affinity to other pods, in both directions.

For each preferred term of the pod, a node gains or loses the term's weight for each pod in the node's topology domain
that the term matches. It gains or loses likewise for each preferred term of a pod there that matches the pod itself;
required affinity terms of those pods count with weight 1.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity/scoring.go, with the default arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np

from gangsched.core.constraints.constraint import Constraint, Leavers, Member, Plan, World
from gangsched.core.constraints.matching import Matchable, TermIndex, term_matches
from gangsched.core.constraints.tally import PlannedTallies, of_term
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import uncount
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm, Shape, Soft

Weighed = tuple[int, PodTerm]
"""(weight, term): each pod with the term adds the weight to the score of the pods that the term matches."""
_OF_REQUIRED = 1
_MOST = 1 << 62
_NOWHERE: IntArray = np.zeros(0, dtype=np.int64)


def _terms(shape: Shape, soft: Soft | None) -> Iterator[Weighed]:
    """The terms by which such a pod attracts or repels other pods."""
    if soft is not None:
        yield from soft.pod_terms
    for term in shape.affinity:
        yield _OF_REQUIRED, term


class PodPreferences(Constraint):
    """The terms of placed pods: `rows` counts, for each term, the pods that have it by row."""

    words = ()

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.index: TermIndex[Weighed] = TermIndex()
        self.rows: dict[Weighed, dict[int, int]] = {}

    def add(self, pod: Pod, row: int) -> None:
        """Count the pod's terms on the row."""
        for weighed in _terms(pod.shape, pod.soft):
            if weighed not in self.rows:
                self.rows[weighed] = {}
                self.index.enter(weighed, weighed[1])
            by_row = self.rows[weighed]
            by_row[row] = by_row.get(row, 0) + 1

    def remove(self, pod: Pod, row: int) -> None:
        """Stop counting the pod's terms on the row."""
        for weighed in _terms(pod.shape, pod.soft):
            uncount(self.rows[weighed], row)
            if not self.rows[weighed]:
                del self.rows[weighed]
                self.index.drop(weighed, weighed[1])

    def state(self) -> object:
        """The terms of placed pods."""
        return self.rows

    def plan(self, *, emptied: bool) -> Plan:  # noqa: ARG002 - it refuses nothing
        """The terms and the pods of a snapshot."""
        return PodPreferencesPlan(self._world, self)


class PodPreferencesPlan(Plan):
    """The terms and the pods of a snapshot.

    `_own` counts by row the pods with each term in use here. An entry starts as a copy of the cluster's count, less the
    pods that have left (`_gone`). It is made in advance for all terms of members to be placed, so no placed member is
    missed; for any other term it is made when a class that the term matches is scored.
    """

    about = frozenset({"affinity", "soft", "known"})
    weight = 2

    def __init__(self, world: World, known: PodPreferences) -> None:
        self._nodes = world.nodes
        self._namespaces = world.namespaces
        self._known = known
        self._tallies = PlannedTallies(world.preferred, emptied=False)
        self._index: TermIndex[Weighed] = TermIndex()
        self._own: dict[Weighed, dict[int, int]] = {}
        self._gone: Counter[tuple[Weighed, int]] = Counter()

    def expect(self, shapes: Collection[Shape]) -> None:
        """Count the required affinity terms of these shapes, because they attract other pods too."""
        for shape in shapes:
            for weighed in _terms(shape, None):
                self._ask(weighed)

    def expect_preferences(self, soft: Soft) -> None:
        """Count the pods that the preferred terms match, and the pods that have these terms."""
        self._tallies.ask(of_term(term) for _, term in soft.pod_terms)
        for weighed in soft.pod_terms:
            self._ask(weighed)

    @property
    def keys(self) -> Collection[str] | None:
        """The label keys of all terms."""
        if not (self._index or self._tallies or self._present):
            return None
        return self._index.keys.keys() | self._known.index.keys.keys() | set(self._tallies.keys)

    def notices(self, pod: Matchable) -> bool:
        """Whether a term matches the pod."""
        return bool(self._tallies.matched(pod)) or any(True for _ in self._matching(pod))

    def prefers(self, member: Member) -> bool:
        """Whether the members have preferred terms, or terms of other pods match them."""
        own = member.soft is not None and bool(member.soft.pod_terms)
        return own or (member.known is not None and any(True for _ in self._matching(member.known)))

    def score(self, member: Member, rows: IntArray) -> IntArray:
        """The sum of all weights, scaled from the smallest sum (0) to the largest (100)."""
        sums: IntArray = np.zeros(len(rows), dtype=np.int64)
        for weight, term in member.soft.pod_terms if member.soft is not None else ():
            tally = self._tallies.of(of_term(term))
            sums += weight * self._in_domains(term.topology_key, tally.rows, tally.counts, rows)
        for weight, term in list(self._matching(member.known)) if member.known is not None else ():
            by_row = self._ask((weight, term))
            at = np.fromiter(by_row, dtype=np.int64, count=len(by_row))
            counts = np.fromiter(by_row.values(), dtype=np.int64, count=len(by_row))
            sums += weight * self._in_domains(term.topology_key, at, counts, rows)
        sums -= sums.min(initial=_MOST)
        scores: IntArray = (100 * (sums / max(1, int(sums.max(initial=0))))).astype(np.int64)
        return scores

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:
        """Count the members for the terms that match them, and count their own terms on these rows."""
        if not (self._own or self._tallies):
            return None
        changed = member.known is not None and bool(self._tallies.place(member.known, rows, counts))
        for weighed in _terms(member.shape, member.soft):
            by_row = self._own.get(weighed)
            if by_row is not None:
                changed = True
                for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
                    by_row[row] = by_row.get(row, 0) + count
        return _NOWHERE if changed else None

    def settle(self, leavers: Leavers) -> None:
        """The cluster counts the pods and their terms no more."""
        self._tallies.settle(leavers.pods)
        for pod, row in leavers.choosy:
            for weighed in _terms(pod.shape, pod.soft):
                self._gone[weighed, row] -= 1

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:  # noqa: ARG002
        """It refuses nothing."""
        return iter(())

    def changes_scores(self, member: Member) -> bool:
        """Whether the terms of one member match the others of its class."""
        if member.known is None:
            return False
        return any(term_matches(term, member.known, self._namespaces) for _, term in _terms(member.shape, member.soft))

    # Inside

    def recount(self, leavers: Leavers, sign: int) -> IntArray | None:
        """Count the pods and their terms again (1), or no longer (-1)."""
        changed = self._tallies.recount(leavers.pods, sign)
        for pod, row in leavers.choosy:
            for weighed in _terms(pod.shape, pod.soft):
                changed = True
                self._gone[weighed, row] -= sign
                by_row = self._own.get(weighed)
                if by_row is not None:
                    by_row[row] = by_row.get(row, 0) + sign
        return _NOWHERE if changed else None

    @property
    def _present(self) -> bool:
        return bool(self._known.index)

    def _ask(self, weighed: Weighed) -> dict[int, int]:
        """The number of pods with the term by row, counted here from now on."""
        by_row = self._own.get(weighed)
        if by_row is None:
            by_row = self._own[weighed] = dict(self._known.rows.get(weighed, ()))
            for (gone, row), number in self._gone.items():
                if gone == weighed:
                    by_row[row] = by_row.get(row, 0) - number
            self._index.enter(weighed, weighed[1])
        return by_row

    def _matching(self, pod: Matchable) -> Iterator[Weighed]:
        """The terms that match the pod, each once."""
        matching = dict.fromkeys(self._index.candidates(pod))
        if self._present:
            matching.update(dict.fromkeys(self._known.index.candidates(pod)))
        for weighed in matching:
            if term_matches(weighed[1], pod, self._namespaces):
                yield weighed

    def _in_domains(self, key: str, at: IntArray, counts: IntArray, rows: IntArray) -> IntArray:
        """For each of the `rows`, the number of pods, among `counts` on the rows `at`, in its topology domain."""
        column = self._nodes.by_label(key)
        # The last element stands for rows without the label.
        numbers = column.numbers(at)
        sums = np.bincount(numbers[numbers >= 0], weights=counts[numbers >= 0], minlength=column.count + 1)
        totals: IntArray = sums.astype(np.int64)[column.numbers(rows)]
        return totals
