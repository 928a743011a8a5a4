"""Gangs that were refused, and how much room must be freed before one of them is worth another try.

Gangs that asked for the same with the same priority share one bucket, in order. What keeps the first of them out keeps
out all of them, so only the first is tried, and the next one once the first is placed. (The priority matters because
nominated pods leave different room for each.) For each class that a bucket lacks, `Parked` counts how many members
could have found room since the last refusal: on rows that have improved since then (`fresh` rows, counted again as they
fill) and on rows that were fresh before. The count is never less than what was really freed, so that no gang is
forgotten; a bucket is open while the count is at least what was missing. This is arithmetic on all buckets at once, so
that thousands of gangs that nothing helps cost almost nothing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gangsched.core.cluster.changes import Relief
from gangsched.core.constraints.tally import asked_by
from gangsched.core.gang.gang import Gang
from gangsched.core.inventory.capacity import Capacity
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.quantity import MAX_AMOUNT
from gangsched.core.objects.shape import PODS, Shape
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MOST, MemberClass
from gangsched.core.planning.refusal import Refusal
from gangsched.core.queueing.lines import Entry, Rank

FEW = 8
"""Largest number of fresh rows that are counted one by one; beyond it, only the sum of what is free is compared."""
MOST_ASKED = 16
"""A gang with members refused for more different requests than this is tried whenever anything is freed."""
MOST_CLASSES = 64
"""A gang whose refused quorum has more different classes than this is tried whenever anything is freed."""
RENEWED = 32
"""At most this many buckets are tried though too little was freed, to keep what their messages say right."""
_MOVED = 1_200
"""Cost, in units of the budget, of moving a gang to another bucket."""
_LACKED = np.dtype([("lack", "i8"), ("before", "i8"), ("since", "i8"), ("shut", "?"), ("forced", "?")], align=True)
"""A class that a bucket lacks: `lack` members (0 without a bucket). `before`: how many fit on rows that are no longer
fresh; `since`: the relief after which fresh rows count; the bucket may not (`shut`) or must (`forced`) be tried."""


class Bucket(Struct):
    """Gangs that asked for the same, in order, and the array positions of the classes that they lack.

    `vague`: too many classes; one that requests nothing stands for all. `never`: those told that they never fit.
    """

    asked: tuple[Hashable, ...]
    lacks: list[int]
    members: list[MemberClass]
    within_domain: bool
    vague: bool
    never: set[GroupKey] = field(default_factory=set)
    waiting: list[Entry] = field(default_factory=list)


class Parked:
    """The buckets; the arrays hold one element for each class that a bucket lacks.

    `reliefs` counts the improvements on nodes.
    """

    def __init__(self) -> None:
        self.buckets: dict[Hashable, Bucket] = {}
        self._asked_by: dict[GroupKey, tuple[Rank, tuple[Hashable, ...]]] = {}
        self._owner: list[Bucket | None] = []
        self._vacant: list[int] = []
        self._unknown: dict[str, set[int]] = {}
        self._noted: list[Hashable] = []
        self._fresh: dict[int, int] = {}
        self.reliefs = 0
        self._amounts: IntArray = np.zeros((16, 4), dtype=np.int64)
        self._lacked: npt.NDArray[np.void] = np.zeros(16, dtype=_LACKED)

    # Waiting gangs

    def file(self, gang: Gang, rank: Rank, capacity: Capacity) -> None:
        """Park the gang under the last refusals of what it still wants."""
        # The quorum of one that wants only members above its minimum is not tried, and would keep its bucket open.
        of_quorum = None if rank[0] and gang.wait.refused_members else gang.wait.refusal
        known = {id(refusal): refusal for refusal in (of_quorum, *gang.wait.refused_members.values())}
        by_asked = {refusal.asked: refusal for refusal in known.values() if refusal is not None}
        if len(by_asked) > MOST_ASKED:
            by_asked = {gang.key: next(iter(by_asked.values()))}
        filed = (rank, tuple(by_asked))  # ordered: positions are freed in this order and reused by later buckets
        if self._asked_by.get(gang.key) != filed:
            # The buckets noted for single members are forgotten by now if the search has taken many calls.
            since = gang.wait.refused_since if of_quorum is None else 0
            for asked, refusal in by_asked.items():
                insort(self._bucket(asked, refusal, capacity, since).waiting, (rank, gang.key))
            # Dropped only now, so that a bucket in which the gang stays never becomes empty.
            self.drop(gang.key)
            self._asked_by[gang.key] = filed
        for asked, refusal in by_asked.items():
            if refusal.never:
                self.buckets[asked].never.add(gang.key)
            else:
                self.buckets[asked].never.discard(gang.key)

    def drop(self, key: GroupKey) -> None:
        """Remove a gang that is not parked any more."""
        if key not in self._asked_by:
            return
        rank, asks = self._asked_by.pop(key)
        for asked in asks:
            bucket = self.buckets[asked]
            del bucket.waiting[bisect_left(bucket.waiting, (rank, key))]
            bucket.never.discard(key)
            self._forget_if_empty(asked)

    def buckets_of(self, key: GroupKey) -> list[Bucket]:
        """The buckets in which the gang waits."""
        return [self.buckets[asked] for asked in self._asked_by[key][1]] if key in self._asked_by else []

    def _forget_if_empty(self, asked: Hashable) -> None:
        bucket = self.buckets.get(asked)
        if bucket is not None and not bucket.waiting:
            del self.buckets[asked]
            asked_for = {resource for member in bucket.members for resource, _ in member.shape.requests}
            for resource in asked_for & self._unknown.keys():
                self._unknown[resource].difference_update(bucket.lacks)
                if not self._unknown[resource]:
                    del self._unknown[resource]
            for at in bucket.lacks:
                self._owner[at] = None
            self._lacked[bucket.lacks] = 0
            self._vacant += bucket.lacks

    # What is missing

    def note(self, refusal: Refusal, snapshot: Snapshot) -> None:
        """Note what was missing on this snapshot: gangs that asked for it wait until as much is freed again."""
        bucket = self._bucket(refusal.asked, refusal, snapshot.cluster.capacity, self.reliefs)
        self._noted.append(refusal.asked)
        # If members depend on other pods, room for one may open room for others. A start waits for a sum of resources.
        exact = len(bucket.members) == 1 and not (bucket.within_domain or refusal.start is not None or refusal.by_parts)
        exact = exact and not bucket.members[0].shape.depends_on_pods
        self.settle(bucket, lack=max(1, refusal.wanted - refusal.fits) if exact else 1)

    def settle(self, bucket: Bucket, *, lack: int = 1) -> None:
        """Close the bucket until something is freed for `lack` members of a class that it lacks."""
        self._lacked[bucket.lacks] = (lack, 0, self.reliefs, False, False)

    def relieve(self, relief: Relief, capacity: Capacity) -> None:
        """Apply an improvement on nodes."""
        self.reliefs += 1
        if any(before <= self.reliefs - FEW for before in self._fresh.values()):  # too many to track separately
            self._clear(capacity.free)
        self._fresh |= dict.fromkeys(relief.rows, self.reliefs)
        for name in [name for name in self._unknown if capacity.column(name) is not None]:
            for at in sorted(self._unknown.pop(name)):
                self._encode(at, capacity)
        doubts = relief.doubts and sum(bool(bucket.never) for bucket in self.buckets.values()) <= RENEWED
        for bucket in self.buckets.values() if relief.beyond_rows or doubts else ():
            for at, member in zip(bucket.lacks, bucket.members, strict=True):
                pods = member.shape.depends_on_pods
                closed = (relief.everywhere and (pods or bool(member.seen))) or (relief.all_asked and pods)
                closed |= (bucket.vague and relief.beyond_rows) or not relief.asked.isdisjoint(asked_by(member.shape))
                if closed or (relief.domains and bucket.within_domain) or (doubts and bucket.never):
                    self._lacked["forced"][at] = True
        if relief:
            self._lacked["shut"] = False

    @property
    def moves(self) -> bool:
        """Whether anything has improved for which not all gangs have been tried yet."""
        if not self.buckets or self._fresh:
            return bool(self.buckets)
        lacked = self._lacked[: len(self._owner)]
        gained = (lacked["lack"] > 0) & (lacked["before"] >= lacked["lack"]) & ~lacked["shut"]
        return bool((gained | lacked["forced"]).any())

    def opened(self, snapshot: Snapshot) -> list[Bucket]:
        """The buckets whose first gang is worth a try now."""
        for asked in self._noted:
            self._forget_if_empty(asked)
        self._noted.clear()
        if not self.moves:
            return []
        size = len(self._owner)
        lacked = self._lacked[:size]
        gained = lacked["before"] + self._room(np.arange(size), snapshot.free)
        snapshot.budget.charge(size * min(len(self._fresh), FEW))
        may, enough = (lacked["lack"] > 0) & ~lacked["shut"], gained >= lacked["lack"]
        positions = np.flatnonzero(may & (enough | lacked["forced"])).tolist()
        partly = np.flatnonzero(may & (gained >= 1) & ~enough).tolist()
        if len(partly) <= RENEWED:
            positions += partly  # refused again, which brings their messages up to date
        if not positions:
            self._clear(snapshot.free)
        return [*{id(bucket): bucket for at in positions if (bucket := self._owner[at]) is not None}.values()]

    def see(self, gang: Gang, rank: Rank, bucket: Bucket, snapshot: Snapshot) -> None:
        """Move the gang out of a bucket that has no room left for it, as it sees something else by now."""
        asked = (*bucket.asked[:-1], snapshot.viewer)
        is_new = asked not in self.buckets
        gang.wait.see(bucket.asked, snapshot.viewer)
        self.file(gang, rank, snapshot.cluster.capacity)
        if is_new:
            self.settle(self.buckets[asked])
        snapshot.budget.charge(_MOVED)

    def shut(self, bucket: Bucket) -> None:
        """Close the bucket until something is freed again, as much as it lacks counting what is there already."""
        self._lacked["shut"][bucket.lacks] = True

    def promising(self, bucket: Bucket, snapshot: Snapshot) -> bool:
        """Whether room is left that could help the bucket."""
        lacks = np.array(bucket.lacks, dtype=np.int64)
        lacked = self._lacked[lacks]
        if lacked["forced"].any():
            return True
        enough = (lacked["before"] + self._room(lacks, snapshot.free) >= 1) & ~lacked["shut"]
        if enough.any() and (lacked["before"] < lacked["lack"]).all() and len(self._fresh) <= FEW:
            # Members that depend on other pods may fit once other members are placed.
            pairs = product(bucket.members, self._fresh)
            enough[:] = any(member.shape.depends_on_pods or snapshot.fits(member, row) for member, row in pairs)
        return bool(enough.any())

    def _clear(self, free: IntArray) -> None:
        """Make no row fresh any more, but keep the sum of the room that they had."""
        size = len(self._owner)
        self._lacked["before"][:size] += self._room(np.arange(size), free)
        self._fresh.clear()

    def _room(self, lacks: IntArray, free: IntArray) -> IntArray:
        """Number of members of each of these classes that fit on rows that became fresh after the class was refused."""
        by_relief: dict[int, list[int]] = {}
        for row, relief in self._fresh.items():
            if row < len(free):
                by_relief.setdefault(relief, []).append(row)
        room: IntArray = np.zeros(len(lacks), dtype=np.int64)
        for relief, rows in by_relief.items():
            room += np.where(self._lacked["since"][lacks] < relief, self._room_on(rows, lacks, free), 0)
        return room

    def _room_on(self, rows: list[int], lacks: IntArray, free: IntArray) -> IntArray:
        """Upper bound on the members of each of these classes that fit on these rows."""
        width = min(self._amounts.shape[1], free.shape[1])
        amounts = self._amounts[lacks]
        asked = amounts[:, :width]
        room: IntArray = np.zeros(len(lacks), dtype=np.int64)
        left = free[rows][:, :width]
        divisors = np.maximum(asked, 1)
        if len(rows) <= FEW:
            for of_row in left:
                room += np.clip(np.where(asked > 0, of_row // divisors, MOST).min(axis=1), 0, MOST)
        else:
            # As floats: a sum over many nodes may exceed an int64, and adding 1 makes up for rounding errors.
            sums = np.maximum(left, 0).astype(np.float64).sum(axis=0)
            room = np.clip(np.where(asked > 0, sums / divisors + 1, MOST).min(axis=1), 0, MOST).astype(np.int64)
            room[(left.max(axis=0) < asked).any(axis=1)] = 0
        room[(amounts[:, width:] > 0).any(axis=1)] = 0
        return room

    # Internals

    def _bucket(self, asked: tuple[Hashable, ...], refusal: Refusal, capacity: Capacity, since: int) -> Bucket:
        bucket = self.buckets.get(asked)
        if bucket is None:
            members = list(refusal.classes)
            vague = asked != refusal.asked or len(members) > MOST_CLASSES
            if vague:
                members = [MemberClass(Shape())]
            bucket = self.buckets[asked] = Bucket(asked, [], members, bool(refusal.within) or refusal.by_parts, vague)
            for _ in members:
                at = self._vacant.pop() if self._vacant else self._grown()
                bucket.lacks.append(at)
                self._owner[at] = bucket
                self._lacked[at] = (1, 0, since, False, False)
                self._encode(at, capacity)
        return bucket

    def _encode(self, at: int, capacity: Capacity) -> None:
        """Store the requests of a member of the class, or that no node has a resource that it requests."""
        bucket = self._owner[at]
        if bucket is None:
            return
        shape = bucket.members[bucket.lacks.index(at)].shape
        self._amounts[at] = 0
        for resource, amount in (*capacity.counted(shape.requests), (PODS, 1)):
            column = capacity.column(resource)
            if column is None:
                self._unknown.setdefault(resource, set()).add(at)
                self._amounts[at, 0] = MAX_AMOUNT
                return
            if column >= self._amounts.shape[1]:
                self._amounts = np.pad(self._amounts, ((0, 0), (0, column)))
            self._amounts[at, column] = min(amount, MAX_AMOUNT)

    def _grown(self) -> int:
        at = len(self._owner)
        self._owner.append(None)
        if at >= len(self._lacked):
            self._amounts = np.pad(self._amounts, ((0, at), (0, 0)))
            self._lacked = np.concatenate([self._lacked, np.zeros_like(self._lacked)])
        return at

    def validate(self, keys: Collection[GroupKey], capacity: Capacity) -> Iterator[str]:
        """Contradictions, each as a sentence; `keys` are the gangs that should be parked."""
        if self._asked_by.keys() != set(keys):
            yield "the gangs in buckets differ from the parked ones"
        waiting: dict[Hashable, list[Entry]] = {asked: [] for asked in self._noted if asked in self.buckets}
        for key, (rank, asks) in self._asked_by.items():
            for asked in asks:
                waiting.setdefault(asked, []).append((rank, key))
        if {asked: bucket.waiting for asked, bucket in self.buckets.items()} != {
            asked: sorted(entries) for asked, entries in waiting.items()
        }:
            yield "the buckets do not hold the gangs that asked for what they lack"
        owner: list[Bucket | None] = [None] * len(self._owner)
        for bucket in self.buckets.values():
            for at in bucket.lacks:
                owner[at] = bucket
        free = [at for at, bucket in enumerate(owner) if bucket is None]
        owned = [bucket is not None for bucket in owner]
        if any(one is not other for one, other in zip(owner, self._owner, strict=True)) or sorted(self._vacant) != free:
            yield "the index of positions differs from the positions of the buckets"
        elif (self._lacked["lack"][: len(owner)] > 0).tolist() != owned or self._lacked["forced"][free].any():
            yield "positions without a bucket may open"
        for resource, positions in self._unknown.items():
            if not positions or not all(owned[at] for at in positions):
                yield f"{resource}: no parked gang lacks it"
        if any(row >= len(capacity.names) for row in self._fresh):
            yield "a fresh row does not exist"
