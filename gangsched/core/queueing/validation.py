"""Whether the lists of who waits agree with each other, and hold nobody that does not wait any more."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Iterator

from gangsched.core.cluster.capacity import Capacity
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.queueing.admission import Admission
from gangsched.core.queueing.deadlines import Deadlines
from gangsched.core.queueing.lines import Entry
from gangsched.core.queueing.parking import Bucket, Parked
from gangsched.core.queueing.queue import Queue


def of_queue(queue: Queue, alive: Collection[GroupKey]) -> Iterator[str]:
    """Contradictions, each as a sentence."""
    lines, since = queue._lines, queue._since
    yield from lines.validate("the queue", alive)
    yield from queue.lanes.validate("the lanes", lines)
    if since.keys() != {key for _, key in lines[("active",)]} or list(since.values()) != sorted(since.values()):
        yield "the active gangs are not those that wait and are not parked, in the order in which they came"
    yield from _of_parked(queue._refused, [key for key in lines if key not in since], queue._capacity)


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
    elif parked._lacked["owned"][: len(owner)].tolist() != owned or parked._lacked["forced"][free].any():
        yield "positions without a bucket may open"
    for resource, positions in parked._unknown.items():
        if not positions or not all(owned[at] for at in positions):
            yield f"{resource}: nobody who is parked lacks it"
    if any(row >= len(capacity.names) for row in parked._fresh):
        yield "a row is fresh that does not exist"


def of_admission(admission: Admission, alive: Collection[GroupKey]) -> Iterator[str]:
    """Contradictions, each as a sentence."""
    inside = {key for keys in admission._inside.values() for key in keys}
    backing_off = [key for keys in admission._backing_off.values() for key in keys]
    yield from _unless_among("those admitted", inside, alive)
    yield from admission._outside.validate("those outside", alive)
    yield from _unless_among("those inside that back off", backing_off, inside)
    yield from _unless_among("the newcomers", admission._newcomers, admission._outside)
    if any(key in admission._outside for key in inside):
        yield "a gang is admitted and outside"
    if any(len(keys) > admission._most for keys in admission._inside.values()):
        yield "more are admitted than may be"
    for known in (admission._inside, admission._backing_off):
        yield from (f"{namespace}: no gang of the namespace is left" for namespace, keys in known.items() if not keys)


def of_deadlines(deadlines: Deadlines, alive: Collection[GroupKey]) -> Iterator[str]:
    """Contradictions, in a sentence each. A key with a UID that is no gang's may be an object's of another kind."""
    yield from _unless_among("the deadlines", [key for key in deadlines._at if not key.pod_uid], alive)
    if not {(at, key) for key, at in deadlines._at.items()} <= set(deadlines._heap):
        yield "a deadline does not come up"


def _unless_among(what: str, keys: Iterable[GroupKey], alive: Container[GroupKey]) -> Iterator[str]:
    gone = [str(key) for key in keys if key not in alive]
    if gone:
        yield f"{', '.join(gone)}: among {what} though gone"
