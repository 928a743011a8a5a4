from __future__ import annotations

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.queueing import queue as module
from gangsched.core.queueing.parking import Bucket
from gangsched.core.queueing.queue import Queue
from gangsched.core.status.ahead import Ahead

RANK = (False, (True, 0, 0.0, "default", "a"))


def test_a_bucket_that_was_emptied_and_made_again_between_two_calls_is_tried_as_it_is_now(monkeypatch):
    """One call ends before the bucket is tried; then its gangs are deleted, and others make the same requests."""
    cluster = Cluster()
    queue, snapshot = Queue(cluster.capacity, Ahead()), Snapshot(cluster)
    key = GroupKey("default", "a")
    first, second = (Bucket(("asked",), [], [], within_domain=False, vague=False) for _ in range(2))
    first.waiting.append((RANK, key))
    opened = [[first], [second]]
    monkeypatch.setattr(queue._refused, "opened", lambda _: opened.pop(0))  # noqa: SLF001 - what wakes them is its matter
    queue.begin_call()
    queue.open(snapshot)
    assert queue.waits
    first.waiting.clear()
    second.waiting.append((RANK, key))
    queue.begin_call()
    queue.open(snapshot)
    following = queue.next()
    assert following is not None
    assert (following.key, following.bucket) == (key, second)


def test_of_those_that_have_waited_equally_long_the_more_urgent_is_tried_first(monkeypatch):
    """Regression: the bucket's position decided, which could be that of an earlier, emptied bucket."""
    monkeypatch.setattr(module, "PATIENCE", 0)
    cluster = Cluster()
    queue, snapshot = Queue(cluster.capacity, Ahead()), Snapshot(cluster)
    urgent, other = (Bucket((name,), [], [], within_domain=False, vague=False) for name in ("urgent", "other"))
    urgent.waiting.append(((False, (True, -5, 0.0, "default", "z")), GroupKey("default", "z")))
    other.waiting.append((RANK, GroupKey("default", "a")))
    monkeypatch.setattr(queue._refused, "opened", lambda _: [other, urgent])  # noqa: SLF001 - what wakes them is its matter
    queue.begin_call()
    queue.open(snapshot)
    queue.begin_call()
    queue.open(snapshot)
    assert [candidate.key.name for candidate in queue.overdue()] == ["z", "a"]
