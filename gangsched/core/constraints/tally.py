"""Counts the pods that match a term on each node, for inter-pod affinity and topology spread.

The cluster's `Tallies` keep counts for recent questions, updated with every change of pods. A plan's `PlannedTallies`
start from those counts and follow the members placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.constraints.matching import LabelledPods, Matchable, Placed, TermIndex, term_matches
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.indexes import count, uncount
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm, Shape, Spread

MOST_CACHED = 4096
"""Limit for the number of questions that are kept up to date; the least recently asked is dropped first."""


class Question(Struct, frozen=True, gc=False, cache_hash=True):
    """Which pods match all the `terms`, ignoring topology keys? `staying` excludes terminating pods."""

    terms: tuple[PodTerm, ...]
    staying: bool = False

    def matches(self, pod: Matchable | Pod, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether the pod matches, whether or not it is terminating."""
        return all(term_matches(term, pod, namespaces) for term in self.terms)


@lru_cache(maxsize=MOST_CACHED)
def of_term(term: PodTerm) -> Question:
    """The question which pods match the term."""
    return Question((replace(term, topology_key=""),))


@lru_cache(maxsize=MOST_CACHED)
def of_all(terms: tuple[PodTerm, ...]) -> Question:
    """The question which pods match all the terms."""
    return Question(tuple(replace(term, topology_key="") for term in terms))


@lru_cache(maxsize=MOST_CACHED)
def of_spread(spread: Spread) -> Question:
    """The question which pods the spread constraint counts."""
    return Question((replace(spread.term, topology_key=""),), staying=True)


@lru_cache(maxsize=MOST_CACHED)
def asked_by(shape: Shape) -> frozenset[Question]:
    """All questions that follow from the required terms of a shape."""
    of_affinity = [of_all(shape.affinity)] if shape.affinity else []
    return frozenset([*map(of_spread, shape.spread), *map(of_term, shape.anti_affinity), *of_affinity])


class Tally(NamedTuple):
    """The rows with pods that match a question, and the number of these pods on each."""

    rows: IntArray
    counts: IntArray


class Tallies:
    """The `counts` of matching pods by question and row; those of `_stale` questions are found anew once one is asked.

    `forgetful`: questions were dropped, so `add` and `remove` may no longer report a question that a parked gang has.
    """

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]], placed: Placed) -> None:
        self.forgetful = False
        self.namespaces = namespaces
        self._matched = 0
        self._pods = LabelledPods(placed)
        self._index: TermIndex[Question] = TermIndex()
        self.counts: dict[Question, dict[int, int]] = {}
        self._stale: set[Question] = set()

    @property
    def examined(self) -> int:
        """Number of the pods and terms that were examined for new questions."""
        return self._matched + self._pods.examined

    def of(self, questions: Iterable[Question]) -> Mapping[Question, Mapping[int, int]]:
        """For each of the questions, the number of matching pods by row, without zeros; read-only.

        The pods that may match are examined once, however many of the questions are new.
        """
        questions = [*questions]
        if not self._stale.isdisjoint(questions):
            self.counts |= self._counted(self._stale)
            self._stale.clear()
        cached = {question: self.counts.pop(question, None) for question in questions}
        new = self._counted([question for question, rows in cached.items() if rows is None])
        known = {question: new[question] if rows is None else rows for question, rows in cached.items()}
        for question in new:
            self._index.enter(question, *question.terms)
        self.counts |= known
        while len(self.counts) > MOST_CACHED:
            self._drop(next(iter(self.counts)))
        return known

    def add(self, pod: Pod, row: int) -> Sequence[Question]:
        """Count the pod on the row. Returns the questions that it counts for."""
        self._pods.add(pod, row)
        if not self.counts:
            return ()
        asking = list(self._asking(pod))
        for question in asking:
            if question not in self._stale:
                rows = self.counts[question]
                rows[row] = rows.get(row, 0) + 1
        return asking

    def remove(self, pod: Pod, row: int) -> Sequence[Question]:
        """Stop counting a pod that was added before. Returns the questions that it counted for."""
        self._pods.remove(pod, row)
        if not self.counts:
            return ()
        asking = list(self._asking(pod))
        for question in asking:
            if question not in self._stale:
                uncount(self.counts[question], row)
        return asking

    def namespaces_changed(self) -> None:
        """Recount the questions that use namespace labels once they are asked: those of a namespace have changed."""
        self._stale.update(
            question for question in self.counts if any(term.namespace_selector for term in question.terms)
        )

    def contradictions(self) -> list[str]:
        """A sentence for each question whose counts differ from the pods."""
        counted = self._counted(self.counts)
        known = self.counts.items()
        wrong = [question for question, rows in known if question not in self._stale and rows != counted[question]]
        return [f"pods are miscounted for {question}" for question in wrong] + [
            *self._pods.contradictions(self._index.keys)
        ]

    def _asking(self, pod: Pod) -> Iterator[Question]:
        """The questions for which the pod counts."""
        for question in self._index.candidates(pod):
            if not (question.staying and pod.terminating) and question.matches(pod, self.namespaces):
                yield question

    def _counted(self, questions: Collection[Question]) -> dict[Question, dict[int, int]]:
        index: TermIndex[Question] = TermIndex()
        counts: dict[Question, dict[int, int]] = {question: {} for question in questions}
        for question in questions:
            index.enter(question, *question.terms)
        pods = self._pods.candidates(question.terms[0] for question in questions)
        for (known, terminating), rows in pods.items():
            for question in index.candidates(known):
                self._matched += 1
                if not (question.staying and terminating) and question.matches(known, self.namespaces):
                    counted = counts[question]
                    for row, number in rows.items():
                        counted[row] = counted.get(row, 0) + number
        return counts

    def _drop(self, question: Question) -> None:
        del self.counts[question]
        self._stale.discard(question)
        self._index.drop(question, *question.terms)
        self._pods.keep(self._index.keys)
        self.forgetful = True


class PlannedTallies:
    """The counts on one snapshot; an `emptied` one starts without pods.

    A question must be asked before members that may match it are placed, unless the cluster counts them by then. Pods
    of the cluster that leave are subtracted from all questions, whenever these are asked.
    Nominated pods are counted separately: in kube-scheduler they keep other pods from their own node only. `digest` is
    equal while the counts of all asked questions are.
    """

    def __init__(self, tallies: Tallies, *, emptied: bool) -> None:
        self._tallies = tallies
        self._emptied = emptied
        self._counts: dict[Question, dict[int, int]] = {}
        self._arrays: dict[Question, Tally] = {}
        self._matching: dict[Matchable, tuple[Question, ...]] = {}
        # As they were placed: they are many, and seldom asked about.
        self._nominated: list[tuple[Matchable, IntArray, IntArray]] = []
        self._left: list[tuple[Sequence[tuple[Pod, int]], int]] = []
        self._gone: Counter[tuple[Matchable, bool, int]] = Counter()
        self.digest = 0

    @cached_property
    def _index(self) -> TermIndex[Question]:
        # Most snapshots ask nothing about pods on other nodes.
        return TermIndex()

    def __bool__(self) -> bool:
        return bool(self._counts)

    def ask(self, questions: Iterable[Question]) -> None:
        """Keep counts for these questions from now on."""
        new = [question for question in dict.fromkeys(questions) if question not in self._counts]
        if not new:
            return
        self._matching.clear()
        known = {} if self._emptied else self._tallies.of(new)
        for question in new:
            self._index.enter(question, *question.terms)
            self._counts[question] = dict(known.get(question, ()))
            self._subtract(question)
            self.digest += _digest(question, self._counts[question].items())

    def of(self, question: Question) -> Tally:
        """The counts of a question that was asked before."""
        known = self._arrays.get(question)
        if known is None:
            counts = self._counts[question]
            rows = np.fromiter(counts, dtype=np.int64, count=len(counts))
            known = Tally(rows, np.fromiter(counts.values(), dtype=np.int64, count=len(counts)))
            self._arrays[question] = known
        return known

    @property
    def keys(self) -> Collection[str]:
        """The label keys that the questions use."""
        return self._index.keys

    def matched(self, pod: Matchable) -> Sequence[Question]:
        """The questions that the pod matches."""
        known = self._matching.get(pod)
        if known is None:
            namespaces = self._tallies.namespaces
            known = self._matching[pod] = tuple(
                question for question in self._index.candidates(pod) if question.matches(pod, namespaces)
            )
        return known

    def place(self, pod: Matchable, rows: IntArray, counts: IntArray) -> Sequence[Question]:
        """Count `counts` such pods on these rows, or uncount them where negative. Returns the questions they match."""
        matched = self.matched(pod)
        if pod.nominated:
            self._nominated.append((pod, rows, counts))
        more = list(zip(rows.tolist(), counts.tolist(), strict=True)) if matched else []
        for by_row in (self._counts[question] for question in matched if not pod.nominated):
            for row, number in more:
                count(by_row, row, number)
        for question in matched:
            self._arrays.pop(question, None)
            self.digest += _digest(question, more)
        return matched

    def recount(self, pods: Sequence[tuple[Pod, int]], sign: int) -> bool:
        """Count these pods of the cluster again (1), or no longer (-1). Returns whether that changes a count."""
        if self._left and self._left[-1] == (pods, -sign):
            self._left.pop()
        else:
            self._left.append((pods, sign))
        changed = False
        for pod, row in pods if self._counts else ():
            for question in self._index.candidates(pod):
                if not (question.staying and pod.terminating) and question.matches(pod, self._tallies.namespaces):
                    changed = True
                    self._add(question, row, sign)
        return changed

    def settle(self, pods: Sequence[tuple[Pod, int]]) -> None:
        """The cluster counts these pods, which have left, no more."""
        self._left.append((pods, 1))
        self._fold()

    def _fold(self) -> None:
        """Count the pods that have left and have not stayed after all."""
        for pods, sign in self._left:
            for pod, row in pods:
                self._gone[Matchable(pod.namespace, pod.labels), pod.terminating, row] -= sign
        self._left.clear()

    def _subtract(self, question: Question) -> None:
        """Subtract the pods that have left from a count of the cluster."""
        self._fold()
        counts = self._counts[question]
        for (known, terminating, row), number in self._gone.items():
            if not (question.staying and terminating) and question.matches(known, self._tallies.namespaces):
                count(counts, row, -number)

    def _add(self, question: Question, row: int, number: int) -> None:
        count(self._counts[question], row, number)
        self._arrays.pop(question, None)
        self.digest += _digest(question, [(row, number)])

    def nominated(self, question: Question) -> Mapping[int, int]:
        """The number of matching nominated pods by row."""
        numbers: Counter[int] = Counter()
        for pod, rows, counts in self._nominated:
            if question.matches(pod, self._tallies.namespaces):
                numbers.update(dict(zip(rows.tolist(), counts.tolist(), strict=True)))
        return +numbers


def _digest(question: Question, counts: Iterable[tuple[int, int]]) -> int:
    return sum(hash((question, row)) * number for row, number in counts)
