"""Whether the lists of who waits agree with each other, and hold nobody that does not wait any more."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator

from gangsched.core.cluster.capacity import Capacity
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.queueing.admission import Admission
from gangsched.core.queueing.deadlines import Deadlines
from gangsched.core.queueing.lanes import OrderKey, Turns
from gangsched.core.queueing.parking import Bucket, Entry, Parked
from gangsched.core.queueing.queue import Queue


def of_queue(queue: Queue, alive: Collection[GroupKey]) -> Iterator[str]:
    """Contradictions, in a sentence each."""
    rank, parked = queue._rank, queue._parked
    yield from _unless_among("the queue", rank, alive)
    yield from _unless_among("the parked", parked, rank)
    yield from _unless_among("those held up", queue._held_up, parked)
    active = sorted((rank[key], key) for key in rank.keys() - parked)
    if queue._active != active or queue._since.keys() != {key for _, key in active}:
        yield "the active gangs are not those that wait and are not parked"
    if list(queue._since.values()) != sorted(queue._since.values()):
        yield "the active gangs are not in the order in which they came"
    first = sorted((order, key) for key, (above, order) in rank.items() if not above)
    by_namespace: dict[str, list[tuple[OrderKey, GroupKey]]] = {}
    for order, key in first:
        if not key.pod_uid:
            by_namespace.setdefault(key.namespace, []).append((order, key))
    if queue._first != first or queue._first_in != by_namespace:
        yield "the lists of who is ahead are not those of who waits"
    yield from _of_turns(queue.turns, rank)
    yield from _of_parked(queue._refused, parked, queue._capacity)


def _of_turns(turns: Turns, waiting: Collection[GroupKey]) -> Iterator[str]:
    yield from _unless_among("the lanes", turns._place_of, waiting)
    lines: dict[str, list[tuple[OrderKey, GroupKey]]] = {}
    for key, (line, order) in turns._place_of.items():
        lines.setdefault(line, []).append((order, key))
    if turns._lines != {line: sorted(entries) for line, entries in lines.items()}:
        yield "the lanes are not those of their gangs"


def _of_parked(parked: Parked, keys: Collection[GroupKey], capacity: Capacity) -> Iterator[str]:
    if parked._asked_by.keys() != set(keys):
        yield "the gangs in buckets are not those that are parked"
    waiting: dict[Hashable, list[Entry]] = {asked: [] for asked in parked._noted if asked in parked.buckets}
    for key, (rank, several) in parked._asked_by.items():
        for asked in several:
            waiting.setdefault(asked, []).append((rank, key))
    if {asked: bucket.waiting for asked, bucket in parked.buckets.items()} != {
        asked: sorted(entries) for asked, entries in waiting.items()
    }:
        yield "the buckets do not hold who asked for what they lack"
    owner: list[Bucket | None] = [None] * len(parked._owner)
    for bucket in parked.buckets.values():
        for at in bucket.lacks:
            owner[at] = bucket
    free = [at for at, bucket in enumerate(owner) if bucket is None]
    owned = [bucket is not None for bucket in owner]
    if any(one is not other for one, other in zip(owner, parked._owner, strict=True)) or sorted(parked._vacant) != free:
        yield "the positions of buckets are not those that they have"
    elif parked._owned[: len(owner)].tolist() != owned or parked._forced[free].any():
        yield "positions without a bucket may open"
    for resource, positions in parked._unknown.items():
        if not positions or not all(owned[at] for at in positions):
            yield f"{resource}: nobody who is parked lacks it"
    if any(row >= len(capacity.names) for row in parked._fresh):
        yield "a row is fresh that does not exist"


def of_admission(admission: Admission, alive: Collection[GroupKey]) -> Iterator[str]:
    """Contradictions, in a sentence each."""
    inside = {key for keys in admission._inside.values() for key in keys}
    outside = {key: rank for ranks in admission._outside.values() for key, rank in ranks.items()}
    yield from _unless_among("those admitted", inside, alive)
    yield from _unless_among("those outside", outside, alive)
    yield from _unless_among("those resting", [key for keys in admission._resting.values() for key in keys], inside)
    yield from _unless_among("the newcomers", admission._newcomers, outside)
    if inside & outside.keys():
        yield "a gang is admitted and outside"
    if any(len(keys) > admission._most for keys in admission._inside.values()):
        yield "more are admitted than may be"
    if admission._order.keys() != admission._outside.keys() or any(
        not {(rank, key) for key, rank in ranks.items()} <= set(admission._order[namespace])
        for namespace, ranks in admission._outside.items()
    ):
        yield "somebody outside is not in the order"
    for known in (admission._inside, admission._outside, admission._resting):
        yield from (f"{namespace}: nobody of the namespace is left" for namespace, keys in known.items() if not keys)


def of_deadlines(deadlines: Deadlines, alive: Collection[GroupKey]) -> Iterator[str]:
    """Contradictions, in a sentence each. A key with a UID that is no gang's may be an object's of another kind."""
    yield from _unless_among("the deadlines", [key for key in deadlines._at if not key.pod_uid], alive)
    if not {(at, key) for key, at in deadlines._at.items()} <= set(deadlines._heap):
        yield "a deadline does not come up"


def _unless_among(what: str, keys: Iterable[GroupKey], alive: Collection[GroupKey]) -> Iterator[str]:
    gone = [str(key) for key in keys if key not in alive]
    if gone:
        yield f"{', '.join(gone)}: among {what} though gone"
