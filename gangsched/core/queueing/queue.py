"""The queue: which gangs wait, in which order, and which of them are tried now.

A gang that was refused is parked: it costs nothing until something happens that could help it. That is more room or one
obstacle less on a node (`Cluster.relief`; `core.queueing.parking` finds the gangs it helps), a change of its own spec
or members, or the end of a back-off; the latter two clear `gang.wait.parked` themselves.

A call of `Machine.handle` tries as many gangs as its budget allows, in the order of contract rule 6, new gangs
included; the others keep their position for the next call. No gang is tried before every gang that may be ahead of it
has been reconciled (`Dirty.first`). Only gangs that have waited for more than PATIENCE calls, while more urgent ones
kept arriving, are tried before that: the longest waiting first, with up to half of the budget, and once all gangs that
were to be reconciled when they began to wait have been. So a gang is tried after at most PATIENCE + n + 1 calls, where
n is the number of gangs and buckets of parked gangs that were already waiting, to be tried or to be reconciled, when it
began to wait to be tried.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import takewhile
from typing import Protocol

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Viewer
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.inventory.capacity import Capacity
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.refusal import Refusal
from gangsched.core.queueing.lines import Entry, Lanes, Lines, Name, Rank
from gangsched.core.queueing.order import PATIENCE, order_key
from gangsched.core.queueing.parking import Bucket, Parked

_ACTIVE: Name = ("active",)
_HELD_UP: Name = ("held up",)


class Follower(Protocol):
    """Follows which gangs want something from a cycle, and with which rank."""

    def file(self, gang: Gang, rank: Rank) -> None:
        """The gang has this rank now."""

    def drop(self, key: GroupKey) -> None:
        """The gang wants nothing any more."""


class Queue:
    """The gangs that want something from a cycle: active ones are to be tried, parked ones wait to be woken.

    `lanes` are the FIFO lanes of instance groups. The `follower` is told of each change.
    """

    def __init__(self, capacity: Capacity, follower: Follower) -> None:
        self._follower = follower
        self.lanes = Lanes()
        self._capacity = capacity
        self._lines = Lines()
        self._since: dict[GroupKey, int] = {}
        self._refused = Parked()
        self._calls = 0
        self._open: dict[Hashable, tuple[int, Bucket]] = {}
        self._round = Round()

    def __contains__(self, key: object) -> bool:
        """Whether the gang wants something from a cycle."""
        return key in self._lines

    def __len__(self) -> int:
        """Number of gangs that want something from a cycle."""
        return len(self._lines)

    @property
    def parked(self) -> int:
        """Number of these gangs that wait to be woken."""
        return len(self._lines) - len(self._since)

    @property
    def reliefs(self) -> int:
        """Number of improvements on nodes that were applied."""
        return self._refused.reliefs

    def wants_first(self, key: GroupKey) -> bool:
        """Whether the gang wants more from a cycle than members above its minimum."""
        rank = self._lines.rank(key)
        return rank is not None and not rank[0]

    # Filing

    def file(self, gang: Gang, assessment: Assessment) -> None:
        """Put the gang into the lists where it belongs now."""
        key, want, parked = gang.key, assessment.want, gang.wait.parked
        if not want:
            self.drop(key)
            return
        before, active = self._lines.rank(key), key in self._since
        if before is not None and not active and not parked:
            # What unparked it may also help its refused single members, which nothing else would wake now.
            gang.wait.forget_members()
        rank = (not (want.quorum or want.repairs or want.lost or want.moves), order_key(gang, assessment))
        if before != rank or active == parked:
            self._since.pop(key, None)
            if not parked:
                self._since[key] = self._calls
                self._round.filed(rank, key)
        names = [] if parked else [_ACTIVE]
        if parked and gang.wait.behind is not None:
            names.append(_HELD_UP)
        self._follower.file(gang, rank)
        self._lines.file(key, rank, names)
        self.lanes.line_up(gang, assessment, rank)
        if parked:
            self._refused.file(gang, rank, self._capacity)
        else:
            self._refused.drop(key)

    def drop(self, key: GroupKey) -> None:
        """Remove a gang that wants nothing any more."""
        if key in self._lines:
            for part in (self._lines, self._refused, self.lanes, self._follower):
                part.drop(key)
            self._since.pop(key, None)

    # Trying

    def wake(self, cluster: Cluster) -> None:
        """Apply what has improved on nodes since the last call."""
        relief = cluster.relief.take()
        if relief or relief.domains:
            self._refused.relieve(relief, self._capacity)

    def wake_first_in_lane(
        self, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> None:
        """Activate gangs that waited for an earlier one of their instance group and are no longer held up."""
        if _HELD_UP not in self._lines.lists:
            return
        for key in self.lanes.first(gangs, assessments, now):
            if _HELD_UP in self._lines.names_of(key):
                gangs[key].wait.try_again()
                gangs[key].wait.stand_behind(None)
                self.file(gangs[key], assessments[key])

    @property
    def moves(self) -> bool:
        """Whether a gang is active, or anything has improved for parked ones."""
        return bool(self._since) or self._refused.moves

    def begin_call(self) -> int:
        """Count a call of the machine. Returns its number."""
        self._calls += 1
        self._round = Round()
        return self._calls

    def is_overdue(self, since: float) -> bool:
        """Whether what began to wait in this call has waited for more than PATIENCE calls."""
        return since < self._calls - PATIENCE

    def open(self, snapshot: Snapshot) -> None:
        """Find the parked gangs that may be tried in this call."""
        opened = {bucket.asked: bucket for bucket in self._refused.opened(snapshot)}
        # A bucket that was open keeps its call number, even if it was emptied and created again in between.
        since = {asked: call for asked, (call, _) in self._open.items()}
        self._open = {asked: (since.get(asked, self._calls), bucket) for asked, bucket in opened.items()}
        self._round.open(opened.values())

    @property
    def waits(self) -> bool:
        """Whether a gang is to be tried."""
        return bool(self._since) or any(bucket.waiting for _, bucket in self._open.values())

    def overdue(self, unreconciled_since: float = float("inf")) -> list[Candidate]:
        """The gangs that have waited for more than PATIENCE calls, the longest waiting first, then in order.

        Only gangs that began to wait before call `unreconciled_since`, since which another gang is to be reconciled.
        """
        if not (self._since or self._open):
            return []
        limit = min(self._calls - PATIENCE, unreconciled_since)
        overdue = takewhile(lambda entry: entry[1] < limit, self._since.items())
        late = [(since, Candidate(rank, key)) for key, since in overdue if (rank := self._lines.rank(key)) is not None]
        opened = [(since, bucket) for since, bucket in self._open.values() if since < limit and bucket.waiting]
        late += [(since, _first_of(bucket)) for since, bucket in opened]
        return [candidate for _, candidate in sorted(late)]

    def next(self) -> Candidate | None:
        """The next gang to try, in order, of those that were not passed in this call; None if none is left."""
        return self._round.first(self._lines.lists.get(_ACTIVE, ()))

    def moved(self, key: GroupKey) -> None:
        """Try a parked gang that may be tried in this call where it stands now, if it has come to be first."""
        for bucket in self._refused.buckets_of(key):
            if bucket.asked in self._open and bucket.waiting[0][1] == key:
                self._round.add(_first_of(bucket))

    def seeing(self, holder: GroupKey) -> list[GroupKey]:
        """The parked gangs that were refused as ones for which what is reserved for this group, for later, counts."""
        refused = ((bucket.asked[-1], bucket.waiting) for bucket in self._refused.buckets.values())
        return [key for who, they in refused if isinstance(who, Viewer) and holder in who.later for _, key in they]

    def stands(self, candidate: Candidate) -> bool:
        """Whether the gang still waits where it did when it became a candidate."""
        rank, parked = self._lines.rank(candidate.key), candidate.key not in self._since
        return rank is not None and rank[1] == candidate.rank[1] and (candidate.bucket is None or parked)

    def passed(self, candidate: Candidate) -> None:
        """Go on behind this gang; if it is in a bucket, with the next gang of that."""
        self._round.advance(candidate, candidate.next())

    def follow(self, candidate: Candidate) -> None:
        """Try to place members above the minimum of this gang after everything else."""
        self._round.add(Candidate((True, candidate.rank[1]), candidate.key))

    def worth_a_try(self, candidate: Candidate, gang: Gang, snapshot: Snapshot) -> bool:
        """Whether this snapshot has room left for a gang in a bucket, or it may be untrue that it never fits.

        If not, it is passed; and so are those behind it in its bucket if what is reserved counts for them as for it.
        """
        bucket = candidate.bucket
        if bucket is None or candidate.key in bucket.never or self._refused.promising(bucket, snapshot):
            return True
        alone = bucket.asked[-1] != snapshot.viewer and bucket.waiting[0] != bucket.waiting[-1]
        following = candidate.next() if alone else None
        if following is None:
            self._refused.shut(bucket)
            self._open.pop(bucket.asked, None)
        if alone:
            self._refused.see(gang, candidate.rank, bucket, snapshot)
        self._round.advance(candidate, following)
        return False

    def tried(self, candidate: Candidate, gang: Gang) -> None:
        """Go on behind this gang, which was tried, and in its bucket with the next one for which it may end otherwise.

        If the tried gang was refused for the same again, that is the next one that was told that it never fits, unless
        that is still so.
        """
        self._round.advance(candidate, self._next_of(candidate, gang))

    def _next_of(self, candidate: Candidate, gang: Gang) -> Candidate | None:
        bucket = candidate.bucket
        if bucket is None or not gang.wait.parked:
            return candidate.next()
        if bucket.asked == gang.key:
            self._refused.settle(bucket)
            self._open.pop(bucket.asked, None)
        refusals = (gang.wait.refusal, *gang.wait.refused_members.values())
        same = next((refusal for refusal in refusals if refusal is not None and refusal.asked == bucket.asked), None)
        following = candidate.next()
        if same is None:
            return following
        if same.never or not bucket.never:
            return None
        while following is not None and following.key not in bucket.never:
            following = following.next()
        return following

    def note(self, refusal: Refusal, snapshot: Snapshot) -> None:
        """Note that a gang was refused on this snapshot."""
        self._refused.note(refusal, snapshot)
        self._open.pop(refusal.asked, None)

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        yield from self._lines.validate("the queue", alive)
        yield from self.lanes.validate("the lanes", self._lines)
        since = self._since
        if since.keys() != {key for _, key in self._lines.lists.get(_ACTIVE, ())} or list(since.values()) != sorted(
            since.values()
        ):
            yield "the active gangs differ from the waiting gangs that are not parked, or are out of order"
        yield from self._refused.validate([key for key in self._lines if key not in since], self._capacity)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A gang that is to be tried: an active one or, in a `bucket`, a parked one."""

    rank: Rank
    key: GroupKey
    bucket: Bucket | None = field(default=None, compare=False)

    def next(self) -> Candidate | None:
        """The candidate for the next gang in its bucket; None if there is none."""
        if self.bucket is None:
            return None
        at = bisect_right(self.bucket.waiting, (self.rank, self.key))
        return Candidate(*self.bucket.waiting[at], self.bucket) if at < len(self.bucket.waiting) else None


def _first_of(bucket: Bucket) -> Candidate:
    return Candidate(*bucket.waiting[0], bucket)


class Round:
    """Where a call stands in the order: active gangs behind the last one, and a heap of all other candidates."""

    def __init__(self) -> None:
        self._behind: Entry | None = None
        self._active: Candidate | None = None
        self._heap: list[Candidate] = []

    def open(self, buckets: Iterable[Bucket]) -> None:
        """Try the gangs in these buckets, and in no others, from the first one on."""
        self._heap = [candidate for candidate in self._heap if candidate.bucket is None]
        self._heap += (_first_of(bucket) for bucket in buckets if bucket.waiting)
        heapify(self._heap)

    def add(self, candidate: Candidate) -> None:
        """Try this gang too."""
        heappush(self._heap, candidate)

    def filed(self, rank: Rank, key: GroupKey) -> None:
        """A gang has become active; it is tried even if the call has passed its rank already."""
        if self._behind is not None and (rank, key) <= self._behind:
            self.add(Candidate(rank, key))

    def first(self, active: Sequence[Entry]) -> Candidate | None:
        """The first candidate, which stays until it is taken; None if there is none."""
        at = 0 if self._behind is None else bisect_right(active, self._behind)
        self._active = Candidate(*active[at]) if at < len(active) else None
        other = self._heap[0] if self._heap else None
        if self._active is None or (other is not None and other <= self._active):
            return other
        return self._active

    def advance(self, candidate: Candidate, following: Candidate | None) -> None:
        """Remove a candidate that was tried or passed, and go on with the `following` one of its bucket, if any."""
        if self._heap and self._heap[0] is candidate:
            heappop(self._heap)
        elif self._active is candidate:
            self._behind = (candidate.rank, candidate.key)
        if following is not None:
            self.add(following)
