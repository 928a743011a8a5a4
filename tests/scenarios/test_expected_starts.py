"""When a waiting group will probably start: by limits, by what others declare, and behind whom."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.contention.expectation import HORIZON_S, Basis, ExpectedStart, Unknown
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.workload import SERIES_OF, WorkloadFacts
from tests.builders import group, node, pod, pods
from tests.harness import START, Harness

GRACE_S = 30
JOB = Owner("Job", "work", "uid-work", "batch")
SERVICE = Owner("ReplicaSet", "web", "uid-web", "apps")
pytestmark = pytest.mark.without("restarts", "standbys", "leaderless", "disorder", why="a question is asked once")


def wanting(size: int, name: str = "g", **spec: Any) -> list[Any]:
    return [group(name, min_member=size, max_schedule_time_s=9999.0, **spec), *pods(name, size)]


def full(*running: Any, nodes: int = 4) -> Harness:
    """Nodes of one CPU, on which these run."""
    return Harness.settled(*(node(f"n{at}", cpu=1) for at in range(nodes)), *running)


def runs(name: str, node_number: int, ends_in: float | None = None, **fields: Any) -> Any:
    """A bound pod that its limit ends so many seconds from the start of the story."""
    deadline_s = None if ends_in is None else int(1000 + ends_in - GRACE_S)
    times = {"bound_at": START - 1000, "start": START - 1000, "deadline_s": deadline_s}
    return pod(name, **{"group": "", "node": f"n{node_number}", **times, **fields})


def start(harness: Harness, name: str = "g") -> ExpectedStart:
    """When the group will start, in seconds from the story's start; 0 for unknown."""
    key = GroupKey("default", name)
    ahead = harness.machine.ahead.before(key, lambda _: True)
    found = harness.machine.expected_start_of(key, ahead)
    assert found is not None
    since = [at - START if at else 0 for at in (found.earliest, found.latest)]
    return found._replace(earliest=since[0], latest=since[1])


def test_a_group_starts_when_enough_others_reach_their_limits():
    harness = full(*(runs(f"p{at}", at, 100 * (at + 1)) for at in range(4)))
    harness.add(*wanting(3))
    harness.settle()
    assert start(harness) == ExpectedStart(300, 300, Basis.LIMITS)


def test_nobody_waits_for_room_who_fits():
    harness = full()
    harness.add(*wanting(3))
    harness.settle()
    assert harness.machine.expected_start_of(GroupKey("default", "g"), ()) is None


def test_a_promise_is_believed_for_the_earliest_start_alone():
    harness = full(runs("p0", 0, 500, expected_s=1070.0), runs("p1", 1, 200), nodes=2)
    harness.add(*wanting(1))
    harness.settle()
    assert start(harness) == ExpectedStart(100, 200, Basis.DECLARED)


def test_a_group_that_declares_its_run_time_counts_it_from_when_it_was_scheduled():
    harness = full(nodes=2)
    harness.add(*wanting(2, "running", expected_s=600.0))
    harness.settle()
    harness.add(*wanting(1))
    harness.settle()
    found = start(harness)
    assert found.earliest == pytest.approx(600 + GRACE_S, abs=1)
    assert (found.latest, found.why) == (0, Unknown.UNKNOWN)
    assert found.decides == GroupKey("default", "running")


@pytest.mark.parametrize(("owner", "why"), [(SERVICE, Unknown.ENDLESS), (None, Unknown.UNKNOWN)])
def test_it_is_not_known_when_nothing_tells_when_others_end(owner, why):
    harness = full(runs("p0", 0, 100), runs("p1", 1, owner=owner), nodes=2)
    harness.add(*wanting(2))
    harness.settle()
    found = start(harness)
    assert (found.earliest, found.latest, found.why) == (0, 0, why)
    assert found.decides == GroupKey("default", "p1", "uid-default/p1")


def test_services_are_waited_for_last():
    harness = full(runs("p0", 0, owner=SERVICE), runs("p1", 1), nodes=2)
    harness.add(*wanting(1))
    harness.settle()
    assert start(harness).why is Unknown.UNKNOWN


def test_the_limit_of_a_job_is_that_of_its_pods():
    harness = full(runs("p0", 0, owner=JOB), nodes=1)
    facts = WorkloadFacts("Job", ends_by=START + 50)
    harness.add(ForeignGroup(SERIES_OF, GroupKey("default", "work"), JOB.uid, 0.0, None, workload=facts))
    harness.add(*wanting(1))
    harness.settle()
    assert start(harness) == ExpectedStart(50 + GRACE_S, 50 + GRACE_S, Basis.LIMITS)


def test_what_terminates_leaves_first_unless_it_is_overdue():
    harness = full(
        runs("p0", 0, terminating=True, gone_by=START + 20),
        runs("p1", 1, terminating=True, gone_by=START - 100),
        nodes=2,
    )
    harness.add(*wanting(1))
    harness.settle()
    assert start(harness) == ExpectedStart(20, 20, Basis.LIMITS)
    harness.add(*wanting(2, "both"))
    harness.settle()
    assert start(harness, "both").why is Unknown.UNKNOWN


def test_groups_ahead_have_their_places_first():
    harness = full(*(runs(f"p{at}", at, 100 * (at + 1)) for at in range(4)))
    harness.add(*wanting(2, "first", priority=5))
    harness.add(*wanting(2))
    harness.settle()
    assert start(harness, "first") == ExpectedStart(200, 200, Basis.LIMITS)
    assert start(harness) == ExpectedStart(200, 400, Basis.LIMITS)


def test_the_latest_start_is_not_known_behind_one_that_waits_for_ever():
    harness = full(runs("p0", 0, 100), runs("p1", 1, 200), runs("p2", 2), nodes=3)
    harness.add(*wanting(3, "first", priority=5))
    harness.add(*wanting(1))
    harness.settle()
    found = start(harness)
    assert (found.earliest, found.latest, found.why) == (100, 0, Unknown.AHEAD)
    assert found.decides == GroupKey("default", "first")


def test_a_start_beyond_the_horizon_is_not_told():
    harness = full(runs("p0", 0, HORIZON_S + 60), nodes=1)
    harness.add(*wanting(1))
    harness.settle()
    assert start(harness) == ExpectedStart(why=Unknown.HORIZON)


def test_a_latest_start_beyond_the_horizon_is_not_told():
    harness = full(runs("p0", 0, HORIZON_S + 60, expected_s=1070.0), nodes=1)
    harness.add(*wanting(1))
    harness.settle()
    assert start(harness) == ExpectedStart(100, 0, Basis.DECLARED, Unknown.HORIZON)


def test_the_question_changes_nothing():
    harness = full(*(runs(f"p{at}", at, 100 * (at + 1)) for at in range(4)))
    harness.add(*wanting(2, "first", priority=5))
    harness.add(*wanting(2))
    harness.settle()
    before = start(harness)
    assert harness.machine.validate() == []
    assert start(harness) == before


def test_a_group_with_reserved_places_starts_by_then_even_if_that_relies_on_promises():
    """Who overstays is evicted."""
    harness = full(runs("p0", 0, expected_s=5000.0), runs("p1", 1, 3000), nodes=2)
    harness.add(*wanting(2))
    harness.settle()
    before = start(harness)
    harness.wait(1801)
    assert (before.earliest, before.latest) == (4000 + GRACE_S, 0)
    assert start(harness) == ExpectedStart(4000 + GRACE_S, 4000 + GRACE_S, Basis.DECLARED)
