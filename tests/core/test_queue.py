from __future__ import annotations

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pause import OPEN
from gangsched.core.objects.shape import Shape
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.refusal import Refusal
from gangsched.core.queueing import queue as module
from gangsched.core.queueing.parking import Bucket, Parked
from gangsched.core.queueing.queue import Queue
from gangsched.core.status.ahead import Ahead

RANK = (False, (True, 0, 0.0, "default", "a"))


def refused(asked: str) -> Refusal:
    """That there was no room for one member that asked for this."""
    [failing] = classes = (MemberClass(Shape()),)
    return Refusal(
        asked=(asked,),
        wanted=1,
        fits=0,
        nodes=1,
        never=False,
        failing=failing,
        classes=classes,
        missing={failing: 1},
        gaps=(),
        short=(),
    )


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


def test_what_refused_the_quorum_of_a_gang_that_wants_other_members_now_wakes_it_only_before_these_were_tried():
    """Regression: its bucket stayed open, as its quorum is not tried, and a call was due at once for ever."""
    cluster = Cluster()
    parked, gang = Parked(), Gang(GroupKey("default", "a"))
    of_quorum, of_member = refused("quorum"), refused("member")
    gang.wait.refuse(of_quorum)
    parked.file(gang, (True, RANK[1]), cluster.capacity)
    assert [bucket.asked for bucket in parked.buckets_of(gang.key)] == [of_quorum.asked]
    gang.wait.refuse_members({"a-1": of_member}, OPEN, since=0)
    parked.file(gang, (True, RANK[1]), cluster.capacity)
    assert [bucket.asked for bucket in parked.buckets_of(gang.key)] == [of_member.asked]
    parked.file(gang, RANK, cluster.capacity)
    assert {bucket.asked for bucket in parked.buckets_of(gang.key)} == {of_quorum.asked, of_member.asked}
