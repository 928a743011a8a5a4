"""How many pods match a term on each node: what inter-pod affinity and topology spread ask of the pods that are there.

The cluster's `Tallies` count for the questions that were asked lately, and follow the pods from then on. A plan's
`PlannedTallies` begin with those counts and follow the members placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from gangsched.core.constraints.column import uncount
from gangsched.core.constraints.matching import Matchable, TermIndex, term_matches
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm

MOST_KEPT = 4096
"""So many questions are kept up to date; the one asked longest ago is dropped first."""
Placed = Callable[[], Iterable[tuple[Pod, int]]]
"""The pods that count on a known node, each with its row."""


class Question(Struct, frozen=True, gc=False, cache_hash=True):
    """Pods that match all the `terms`, whose topology keys do not matter; `staying`: without those that terminate."""

    terms: tuple[PodTerm, ...]
    staying: bool = False

    def matches(self, pod: Matchable | Pod, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether the pod counts if it stays."""
        return all(term_matches(term, pod, namespaces) for term in self.terms)


class Tallies:
    """The number of pods by question and row.

    `forgetful`: questions were dropped, so that not every change that may matter to someone is noticed any more.
    """

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]], placed: Placed) -> None:
        self.forgetful = False
        self.namespaces = namespaces
        self._placed = placed
        self._index: TermIndex[Question] = TermIndex()
        self._counts: dict[Question, dict[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def of(self, question: Question) -> Mapping[int, int]:
        """The number of pods by row, without zeros; read-only."""
        known = self._counts.pop(question, None)
        if known is None:
            if len(self._counts) >= MOST_KEPT:
                self._drop(next(iter(self._counts)))
            self._index.enter(question, *question.terms)
            known = self._counted(question)
        self._counts[question] = known
        return known

    def add(self, pod: Pod, row: int) -> bool:
        """Count the pod on the row. Returns whether that may matter to a member that asked."""
        found = False
        for question in self._asking(pod):
            rows = self._counts[question]
            rows[row] = rows.get(row, 0) + 1
            found = True
        return found or self.forgetful

    def remove(self, pod: Pod, row: int) -> bool:
        """Stop counting the pod, which was added before. Returns whether that may matter to a member that asked."""
        found = False
        for question in self._asking(pod):
            uncount(self._counts[question], row)
            found = True
        return found or self.forgetful

    def namespaces_changed(self) -> None:
        """A namespace has other labels: count again."""
        for question in self._counts:
            self._counts[question] = self._counted(question)

    def contradictions(self) -> list[str]:
        """A sentence for each question whose counts are not those of the pods."""
        return [
            f"pods are miscounted for {question}"
            for question, rows in self._counts.items()
            if rows != self._counted(question)
        ]

    def _asking(self, pod: Pod) -> Iterator[Question]:
        if not self._counts:
            return
        for question in self._index.candidates(pod.labels):
            if not (question.staying and pod.terminating) and question.matches(pod, self.namespaces):
                yield question

    def _counted(self, question: Question) -> dict[int, int]:
        rows: dict[int, int] = {}
        for pod, row in self._placed():
            if not (question.staying and pod.terminating) and question.matches(pod, self.namespaces):
                rows[row] = rows.get(row, 0) + 1
        return rows

    def _drop(self, question: Question) -> None:
        del self._counts[question]
        self._index.drop(question, *question.terms)
        self.forgetful = True


class PlannedTallies:
    """The numbers on one snapshot, of `size` rows; on an `emptied` one no pod is there at first.

    A question is asked before members that may match it are placed, unless the cluster counts them by then. Nominated
    pods are counted apart: kube-scheduler lets them keep others from their own node and looks at them nowhere else.
    `digest` is equal while the answers to the questions asked are.
    """

    def __init__(self, tallies: Tallies, size: int, *, emptied: bool) -> None:
        self._tallies = tallies
        self._size = size
        self._emptied = emptied
        self._index: TermIndex[Question] = TermIndex()
        self._counts: dict[Question, IntArray] = {}
        self._matching: dict[Matchable, tuple[Question, ...]] = {}
        self._nominated: dict[Matchable, dict[int, int]] = {}
        self.digest = 0

    def __bool__(self) -> bool:
        return bool(self._counts)

    def of(self, question: Question) -> IntArray:
        """The number of pods on each row; read-only."""
        known = self._counts.get(question)
        if known is None:
            known = self._counts[question] = np.zeros(self._size, dtype=np.int64)
            self._index.enter(question, *question.terms)
            self._matching.clear()
            rows = {} if self._emptied else self._tallies.of(question)
            known[list(rows)] = list(rows.values())
            self.digest += _digest(question, np.flatnonzero(known), known[known != 0])
        return known

    @property
    def keys(self) -> Collection[str]:
        """The labels that the questions look at."""
        return self._index.keys

    def matched(self, pod: Matchable) -> Sequence[Question]:
        """The questions that the pod matches."""
        known = self._matching.get(pod)
        if known is None:
            namespaces = self._tallies.namespaces
            known = self._matching[pod] = tuple(
                question for question in self._index.candidates(pod.labels) if question.matches(pod, namespaces)
            )
        return known

    def place(self, pod: Matchable, rows: IntArray, counts: IntArray) -> Sequence[Question]:
        """Count so many such pods on these rows, or uncount them where negative. Returns the questions they match."""
        matched = self.matched(pod)
        if pod.nominated:
            there = self._nominated.setdefault(pod, {})
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
                there[row] = there.get(row, 0) + count
        for question in matched:
            if not pod.nominated:
                self._counts[question][rows] += counts
            self.digest += _digest(question, rows, counts)
        return matched

    def nominated(self, question: Question) -> Mapping[int, int]:
        """How many matching pods are nominated to each row."""
        found: Counter[int] = Counter()
        for pod, rows in self._nominated.items():
            if question.matches(pod, self._tallies.namespaces):
                found.update(rows)
        return +found


def _digest(question: Question, rows: IntArray, counts: IntArray) -> int:
    return sum(hash((question, row)) * count for row, count in zip(rows.tolist(), counts.tolist(), strict=True))
