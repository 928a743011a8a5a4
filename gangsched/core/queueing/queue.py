"""Who waits, in which order, and who of them is tried now.

A gang that was refused is parked: it costs nothing until something happens that could help it. What could help is room
or an obstacle gone on a node (`Cluster.relief`; `core.queueing.parking` knows whom), a change of its own spec or
members, or the end of a back-off; the latter two clear `gang.attempt.parked` themselves.

A call of `Machine.handle` tries as many gangs as its budget allows, in the order of contract rule 6, newly arrived ones
among them; the others stay where they are for the next call. Whoever has waited for more than PATIENCE calls is tried
first, the longest waiting first, with up to half of the budget. So a gang is tried at the latest after PATIENCE + n + 1
calls, n being the gangs and buckets of parked gangs that waited already when it began to wait to be tried.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import takewhile

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.capacity import Capacity
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.snapshot import Snapshot
from gangsched.core.queueing.lanes import OrderKey, Turns
from gangsched.core.queueing.parking import Bucket, Entry, Parked, Rank

PATIENCE = 64
"""For so many calls a gang waits behind more urgent ones that keep coming."""


def order_key(gang: Gang, assessment: Assessment) -> OrderKey:
    """Repairs first, then priority, then age, then namespace/name (contract rule 6)."""
    terms = assessment.terms
    return (not assessment.want.repair, -terms.priority, terms.created, gang.key.namespace, gang.key.name)


class Queue:
    """The gangs that want something of a pass: active ones are to be tried, parked ones wait to be woken."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._rank: dict[GroupKey, Rank] = {}
        self._active: list[Entry] = []
        self._since: dict[GroupKey, int] = {}
        self._parked: set[GroupKey] = set()
        self._refused = Parked()
        self._first: list[tuple[OrderKey, GroupKey]] = []
        self._first_in: dict[str, list[tuple[OrderKey, GroupKey]]] = {}
        self.turns = Turns()
        self._held_up: set[GroupKey] = set()
        self._calls = 0
        self._open: dict[Hashable, tuple[int, Bucket]] = {}

    def __contains__(self, key: GroupKey) -> bool:
        """Whether the gang wants something of a pass."""
        return key in self._rank

    def __len__(self) -> int:
        """How many gangs want something of a pass."""
        return len(self._rank)

    @property
    def parked(self) -> int:
        """How many of them wait to be woken."""
        return len(self._parked)

    def wants_first(self, key: GroupKey) -> bool:
        """Whether the gang wants more of a pass than members above its minimum."""
        return key in self._rank and not self._rank[key][0]

    # Filing

    def file(self, gang: Gang, assessment: Assessment) -> None:
        """Put the gang where it belongs."""
        key, want = gang.key, assessment.want
        if not want:
            self.drop(key)
            return
        if key in self._parked and not gang.attempt.parked:
            # What has unparked it may help whoever was refused: nobody else would wake them now.
            gang.attempt.forget_members()
        order = order_key(gang, assessment)
        rank = (want.quorum is None and not want.repairs and not want.moves, order)
        self._place(key, rank, parked=gang.attempt.parked)
        self.turns.file(gang, assessment, order)
        if gang.attempt.parked:
            self._refused.file(gang, rank, self._capacity)
        else:
            self._refused.drop(key)
        if gang.attempt.parked and gang.attempt.held_up_by is not None:
            self._held_up.add(key)
        else:
            self._held_up.discard(key)

    def drop(self, key: GroupKey) -> None:
        """The gang wants nothing any more."""
        rank = self._rank.pop(key, None)
        if rank is None:
            return
        self._unlist(key, rank)
        self._refused.drop(key)
        self.turns.drop(key)
        self._held_up.discard(key)

    def _place(self, key: GroupKey, rank: Rank, *, parked: bool) -> None:
        before = self._rank.get(key)
        if before == rank and parked == (key in self._parked):
            return
        if before is not None:
            self._unlist(key, before)
        self._rank[key] = rank
        if parked:
            self._parked.add(key)
        else:
            insort(self._active, (rank, key))
            self._since[key] = self._calls
        if not rank[0]:
            for line in self._lines(key):
                insort(line, (rank[1], key))

    def _unlist(self, key: GroupKey, rank: Rank) -> None:
        if key in self._parked:
            self._parked.discard(key)
        else:
            del self._active[bisect_left(self._active, (rank, key))]
            del self._since[key]
        if not rank[0]:
            for line in self._lines(key):
                del line[bisect_left(line, (rank[1], key))]
            if not self._first_in.get(key.namespace, True):
                del self._first_in[key.namespace]

    def _lines(self, key: GroupKey) -> list[list[tuple[OrderKey, GroupKey]]]:
        """Where the gang is listed for those who ask who is ahead of them."""
        return [self._first] if key.pod_uid else [self._first, self._first_in.setdefault(key.namespace, [])]

    # Who is ahead

    def before(self, key: GroupKey) -> list[GroupKey]:
        """The gangs whose quorum or repair is tried before this one's, in order."""
        return [other for _, other in self._first[: self._place_of(key, self._first)]]

    def ahead(self, key: GroupKey, *, most: int) -> tuple[list[GroupKey], int]:
        """As `before`, but only the first groups of its own namespace and how many gangs there are in all."""
        own = self._first_in.get(key.namespace, [])
        return [other for _, other in own[: min(most, self._place_of(key, own))]], self._place_of(key, self._first)

    def _place_of(self, key: GroupKey, line: list[tuple[OrderKey, GroupKey]]) -> int:
        return bisect_left(line, (self._rank[key][1], key)) if self.wants_first(key) else 0

    # Trying

    def wake(self, cluster: Cluster) -> None:
        """See what has become better."""
        relief = cluster.take_relief()
        if relief or relief.domains:
            self._refused.relieve(relief, self._capacity)

    def wake_whose_turn_it_is(
        self, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> None:
        """Move gangs that waited for an earlier one of their instance group to the active ones, if it is their turn."""
        if not self._held_up:
            return
        for key in self.turns.whose_turn_it_is(gangs, assessments, now):
            if key in self._held_up:
                gangs[key].attempt.try_again()
                gangs[key].attempt.in_line(None)
                self.file(gangs[key], assessments[key])

    @property
    def moves(self) -> bool:
        """Whether anybody is active, or anything has become better for those who are parked."""
        return bool(self._active) or self._refused.moves

    def begin_call(self, snapshot: Snapshot) -> None:
        """Find out who may be tried in this call."""
        self._calls += 1
        opened = {bucket.asked: bucket for bucket in self._refused.opened(snapshot)}
        # Since when, of one that was open before: the bucket itself may have been emptied and made again since.
        since = {asked: call for asked, (call, _) in self._open.items()}
        self._open = {asked: (since.get(asked, self._calls), bucket) for asked, bucket in opened.items()}

    @property
    def waits(self) -> bool:
        """Whether anybody is to be tried."""
        return bool(self._active) or any(bucket.waiting for _, bucket in self._open.values())

    def overdue(self) -> list[Candidate]:
        """Who has waited for more than PATIENCE calls, the longest waiting first, and in order if equally long."""
        limit = self._calls - PATIENCE
        active = takewhile(lambda each: each[1] < limit, self._since.items())
        found = [(since, Candidate(self._rank[key], key)) for key, since in active]
        found += [(since, _first_of(bucket)) for since, bucket in self._open.values() if since < limit]
        return [candidate for _, candidate in sorted(found)]

    def round(self) -> Round:
        """All who are to be tried, in order."""
        return Round(self._active, [_first_of(bucket) for _, bucket in self._open.values()])

    def candidates(self, round_: Round, budget: Budget) -> Iterator[Candidate]:
        """Who is to be tried, for as long as the budget lasts: whoever is overdue with up to half of it."""
        half = budget.left // 2
        for candidate in self.overdue():
            if budget.left <= half:
                break
            yield candidate
        while budget and (following := round_.next()) is not None:
            yield following

    def worth_a_try(self, candidate: Candidate, snapshot: Snapshot) -> bool:
        """Whether the gang is active, or room is left for it on this snapshot."""
        if candidate.bucket is None or self._refused.promising(candidate.bucket, snapshot):
            return True
        self._open.pop(candidate.bucket.asked, None)
        return False

    def next_of(self, candidate: Candidate, gang: Gang) -> Candidate | None:
        """Who is to be tried next of the bucket of a gang that has been tried; nobody if it was refused as before."""
        bucket = candidate.bucket
        if bucket is None or not gang.attempt.parked:
            return candidate.next()
        if bucket.asked == gang.key:
            self._refused.settle(bucket)
            self._open.pop(bucket.asked, None)
        refusals = (gang.attempt.refusal, *gang.attempt.refused_members.values())
        if any(each is not None and each.asked == bucket.asked for each in refusals):
            return None
        return candidate.next()

    def note(self, refusal: Refusal, snapshot: Snapshot) -> None:
        """Somebody was refused just now, on this snapshot."""
        self._refused.note(refusal, snapshot)
        self._open.pop(refusal.asked, None)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A gang that is to be tried: an active one, or the one `at` this position of a bucket of parked ones."""

    rank: Rank
    key: GroupKey
    at: int = 0
    bucket: Bucket | None = field(default=None, compare=False)

    def next(self) -> Candidate | None:
        """The gang behind it in its bucket."""
        if self.bucket is None or self.at + 1 >= len(self.bucket.waiting):
            return None
        return Candidate(*self.bucket.waiting[self.at + 1], self.at + 1, self.bucket)


def _first_of(bucket: Bucket) -> Candidate:
    return Candidate(*bucket.waiting[0], 0, bucket)


class Round:
    """Candidates in order; who comes back, or next in a bucket, takes its place among them."""

    def __init__(self, active: Sequence[Entry], opened: list[Candidate]) -> None:
        self._active = iter(active)
        self._heap = opened
        heapify(self._heap)
        self._push_active()

    def add(self, candidate: Candidate | None) -> None:
        """This one is to be tried as well."""
        if candidate is not None:
            heappush(self._heap, candidate)

    def next(self) -> Candidate | None:
        """The next one in order; None if there is none left."""
        if not self._heap:
            return None
        candidate = heappop(self._heap)
        if candidate is self._last:
            self._push_active()
        return candidate

    def _push_active(self) -> None:
        entry = next(self._active, None)
        self._last = None if entry is None else Candidate(*entry)
        self.add(self._last)
