"""When a waiting group will probably start: by limits, by what others declare, and behind whom."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from gangsched.core.contention.asking import Asking
from gangsched.core.contention.forecasting import PAUSE_S
from gangsched.core.contention.outlook import HORIZON_S
from gangsched.core.objects.declaration import GroupKey, Role, Topology
from gangsched.core.objects.expected_start import Basis, ExpectedStart, Unknown
from gangsched.core.objects.faults import Omitted
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.podgroup import ForeignGroup, TimeoutPolicy
from gangsched.core.objects.policy import Policy, Reservations
from gangsched.core.objects.record import Phase, Record
from gangsched.core.objects.shape import HostPort, PodTerm, Spread
from gangsched.core.objects.status import GroupStatus
from gangsched.core.objects.workload import SERIES_OF, Series, WorkloadFacts
from gangsched.core.planning import budget
from gangsched.core.planning.field import Field
from tests.builders import group, node, pod, pods
from tests.harness import START, Harness
from tests.loops import Loop

GRACE_S = 30
JOB = Owner("Job", "work", "uid-work", "batch")
SERVICE = Owner("ReplicaSet", "web", "uid-web", "apps")
pytestmark = pytest.mark.without("restarts", "standbys", "leaderless", "disorder", why="a question is asked once")


def wanting(size: int, name: str = "g", *, pods_with: dict[str, Any] | None = None, **spec: Any) -> list[Any]:
    return [group(name, min_member=size, max_schedule_time_s=9999.0, **spec), *pods(name, size, **pods_with or {})]


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
    found = harness.machine.forecasting.all(harness.machine.called)[key]
    since = [at - START if at else 0 for at in (found.earliest, found.latest)]
    return found._replace(earliest=since[0], latest=since[1])


def test_a_group_starts_when_enough_others_reach_their_limits():
    harness = full(*(runs(f"p{at}", at, 100 * (at + 1)) for at in range(4)))
    harness.settle(*wanting(3))
    assert start(harness) == ExpectedStart(0, 300, Basis.LIMITS)


def test_nobody_waits_for_room_who_fits():
    harness = full()
    harness.settle(*wanting(3))
    assert harness.machine.forecasting.all(harness.machine.called) == {}


def test_a_promise_is_believed_for_the_earliest_start_alone():
    harness = full(runs("p0", 0, 500, expected_s=1070.0), runs("p1", 1), nodes=2)
    harness.settle(*wanting(1))
    assert start(harness) == ExpectedStart(100, 500, Basis.DECLARED)


@pytest.mark.parametrize(("owner", "why"), [(SERVICE, Unknown.ENDLESS), (None, Unknown.UNKNOWN)])
@pytest.mark.parametrize("limited", ["p0", "p2"], ids=["seen before", "seen after"])
def test_it_is_not_known_when_nothing_tells_when_others_end(owner, why, limited):
    endless = runs("p1", 1, owner=owner)
    harness = full(*sorted((runs(limited, 0, 100), endless), key=lambda each: each.name), nodes=2)
    harness.settle(*wanting(2))
    found = start(harness)
    assert (found.earliest, found.latest, found.why) == (0, 0, why)
    assert found.decides == GroupKey("default", "p1", "uid-default/p1")


def test_services_are_waited_for_last():
    harness = full(runs("p0", 0, owner=SERVICE), runs("p1", 1), nodes=2)
    harness.settle(*wanting(1))
    assert start(harness).why is Unknown.UNKNOWN


def test_the_limit_of_a_job_is_that_of_its_pods():
    harness = full(runs("p0", 0, owner=JOB), nodes=1)
    facts = WorkloadFacts("Job", ends_by=START + 50)
    harness.add(ForeignGroup(SERIES_OF, GroupKey("default", "work"), JOB.uid, 0.0, None, workload=facts))
    harness.settle(*wanting(1))
    assert start(harness) == ExpectedStart(0, 50 + GRACE_S, Basis.LIMITS)


def job(name: str, *, lasted: float | None = None, ended: float = 0.0, owner: str = "uid-nightly", **facts: Any) -> Any:
    """A Job, which has ended so many seconds from the start of the story if it has `lasted`."""
    ran = {} if lasted is None else {"began": START + ended - lasted, "succeeded_at": START + ended}
    told = WorkloadFacts("Job", owner=owner, **ran | facts)
    return ForeignGroup(SERIES_OF, GroupKey("default", name), f"uid-{name}", 0.0, None, workload=told)


def jobset(*jobs: str, owner: str = "") -> Any:
    """A JobSet that has these Jobs."""
    told = WorkloadFacts("JobSet", series=(Series("worker", jobs, 1, 1),), owner=owner)
    return ForeignGroup("jobset", GroupKey("default", "set"), "uid-set", 0.0, None, workload=told)


def cron_job(name: str) -> Any:
    told = WorkloadFacts("CronJob", owner="uid-database")
    return ForeignGroup("cronjob", GroupKey("default", name), f"uid-{name}", 0.0, None, workload=told)


def succeeded(name: str, *, lasted: float, ended: float, owner: str = "uid-nightly") -> Any:
    """A PodGroup that has succeeded so many seconds from the start of the story."""
    record = Record(phase=Phase.SUCCEEDED, scheduled_at=START + ended - lasted, run_start=START + ended - 2 * lasted)
    return group(name, status=GroupStatus(record=record, finished_at=START + ended), owner=owner)


def until_unknown(earliest: float, basis: Basis | None) -> ExpectedStart:
    """A start whose latest time is not known, because no limit tells when p0 ends."""
    return ExpectedStart(earliest, 0, basis, Unknown.UNKNOWN, GroupKey("default", "p0", "uid-default/p0"))


@pytest.mark.parametrize(
    ("former", "found"),
    [
        ([], until_unknown(0, None)),
        ([job("a", lasted=1100, ended=-10)], until_unknown(100, Basis.HISTORY)),
        (
            [job("a", lasted=1, ended=-30), job("b", lasted=1100, ended=-20), job("c", lasted=1300, ended=-10)],
            until_unknown(200, Basis.HISTORY),
        ),
        ([succeeded("a", lasted=1100, ended=-10)], until_unknown(100, Basis.HISTORY)),
        # The time from when its pods were bound tells better than that since the Job was created.
        (
            [job("a", lasted=1500, ended=-10), succeeded("b", lasted=1100, ended=-10, owner="uid-a")],
            until_unknown(100, Basis.HISTORY),
        ),
        ([job("a", lasted=1100, ended=-10, owner="uid-other")], until_unknown(0, None)),
        # What cannot be, or has no end, counts as if it had not been.
        ([job("a", lasted=1100, ended=-10), job("b", lasted=-10, ended=-5)], until_unknown(100, Basis.HISTORY)),
        # A Job of a JobSet is a part of a run.
        ([job("a", lasted=1100, ended=-10), jobset("a")], until_unknown(0, None)),
        # What a CronJob repeats is a run of that one, whoever owns it, and one of a JobSet is one of its owner.
        (
            [cron_job("nightly"), cron_job("other"), job("a", lasted=1100, ended=-10, owner="uid-other")],
            until_unknown(0, None),
        ),
        (
            [jobset(owner="uid-nightly"), succeeded("a", lasted=1100, ended=-10, owner="uid-set")],
            until_unknown(100, Basis.HISTORY),
        ),
        # It has outlasted them by far.
        ([job("a", lasted=300, ended=-10)], until_unknown(0, None)),
    ],
)
def test_what_repeats_is_expected_to_take_as_long_as_its_last_two_runs(former, found):
    harness = full(runs("p0", 0, owner=JOB), nodes=1)
    harness.add(job("work"), *former)
    harness.settle(*wanting(1))
    assert start(harness) == found


def test_what_is_declared_counts_before_former_runs_and_these_before_a_limit_that_need_not_be_used():
    harness = full(
        runs("p0", 0, 900, owner=JOB, expected_s=1070.0),
        runs("p1", 1, 900, owner=JOB),
        runs("p2", 2, 150, owner=JOB),
        nodes=3,
    )
    harness.add(job("work"), job("a", lasted=1300, ended=-10))
    for size, expected in (
        (1, ExpectedStart(100, 150, Basis.DECLARED)),
        (2, ExpectedStart(150, 900, Basis.HISTORY)),
        (3, ExpectedStart(300, 900, Basis.HISTORY)),
    ):
        harness.settle(*wanting(size))
        assert start(harness) == expected
        harness.delete_group("default/g")
        harness.delete(*(f"default/g-{at}" for at in range(size)))
        harness.settle()


def test_a_group_of_what_repeats_is_expected_to_stay_as_long_as_its_former_runs():
    harness = full(runs("p0", 0, 100), nodes=1)
    first = wanting(1, "first", pods_with={"owner": JOB}, priority=10)
    harness.settle(job("work"), job("a", lasted=400, ended=-10), *first, *wanting(1, "second"))
    assert start(harness, "first") == ExpectedStart(0, 100, Basis.LIMITS)
    found = start(harness, "second")
    assert found.earliest == pytest.approx(400, abs=1)
    assert found.basis is Basis.HISTORY


def test_a_job_without_a_group_is_expected_to_end_as_long_after_its_start_as_its_former_runs():
    """Their time includes the one for which their pods waited."""
    harness = full(runs("p0", 0, owner=JOB), nodes=1)
    harness.add(job("work", began=START - 5000), job("a", lasted=5100, ended=-10))
    harness.settle(*wanting(1))
    assert start(harness) == until_unknown(100, Basis.HISTORY)


def test_a_start_by_a_limit_does_not_rely_on_former_runs_whose_time_has_just_passed():
    harness = full(runs("p0", 0, 500, owner=JOB), nodes=1)
    harness.add(job("work"), job("a", lasted=990, ended=-10))
    harness.settle(*wanting(1))
    assert start(harness) == ExpectedStart(0, 500, Basis.LIMITS)


def test_the_basis_of_a_reservation_is_the_weaker_one_if_the_group_may_start_earlier():
    harness = Harness(Policy(reservations=Reservations(starvation_age_s=60)))
    harness.add(node("n0", cpu=1), runs("p0", 0, 900, owner=JOB), job("work"), job("a", lasted=1500, ended=-10))
    harness.wait(100, *wanting(1))
    assert harness.status("default/g").reservation is not None
    assert start(harness) == ExpectedStart(500, 900, Basis.HISTORY)


@pytest.mark.parametrize(
    ("size", "found"), [(1, ExpectedStart(0, 20, Basis.LIMITS)), (2, ExpectedStart(why=Unknown.OVERDUE))]
)
def test_what_terminates_leaves_first_unless_it_is_overdue(size, found):
    harness = full(
        runs("p0", 0, terminating=True, gone_by=START + 20),
        runs("p1", 1, terminating=True, gone_by=START - 100),
        nodes=2,
    )
    harness.settle(*wanting(size))
    assert start(harness)._replace(decides=None) == found


@pytest.mark.parametrize(
    "fields",
    [
        {"terminating": True, "gone_by": START + 20},
        {"deadline_s": 1000 + 20 - GRACE_S},
        {"owner": JOB},
    ],
    ids=["terminates", "limited", "of a Job"],
)
def test_who_should_have_ended_is_waited_for_a_minute_and_then_nobody_knows(fields):
    harness = full(runs("p0", 0, **fields), nodes=1)
    facts = WorkloadFacts("Job", ends_by=START + 20 - GRACE_S)
    harness.add(ForeignGroup(SERIES_OF, GroupKey("default", "work"), JOB.uid, 0.0, None, workload=facts))
    harness.wait(35, *wanting(1))
    soon = told(harness)
    assert soon is not None
    assert (soon.earliest, soon.basis, soon.why) == (0, Basis.LIMITS, None)
    assert 30 <= soon.latest <= 100
    harness.wait(70)
    assert told(harness) == ExpectedStart(why=Unknown.OVERDUE, decides=GroupKey("", "p0"))


@pytest.mark.parametrize("policy", TimeoutPolicy)
def test_a_group_that_fails_before_has_no_start_and_is_in_nobodys_way(policy):
    harness = full(runs("p0", 0, 300), nodes=1)
    first = group("first", min_member=1, max_schedule_time_s=60.0, timeout_policy=policy, priority=5)
    harness.add(first, *pods("first", 1, deadline_s=1000))
    harness.settle(*wanting(1))
    if policy is TimeoutPolicy.FAIL:
        assert start(harness, "first") == ExpectedStart(why=Unknown.TIME_OUT)
        assert start(harness) == ExpectedStart(0, 300, Basis.LIMITS)
    else:
        assert start(harness, "first") == ExpectedStart(0, 300, Basis.LIMITS)
        assert start(harness) == ExpectedStart(0, 1300 + GRACE_S, Basis.LIMITS)


def test_a_group_that_fails_before_its_reserved_start_has_none():
    harness = full(runs("p0", 0, 3000), nodes=1)
    failing = group("g", min_member=1, max_schedule_time_s=2000.0, timeout_policy=TimeoutPolicy.FAIL)
    harness.wait(1801, failing, *pods("g", 1))
    assert harness.status("default/g").reservation is not None
    assert start(harness) == ExpectedStart(why=Unknown.TIME_OUT)


def test_groups_ahead_have_their_places_first_and_stay_as_long_as_they_last():
    harness = full(*(runs(f"p{at}", at, 100 * (at + 1)) for at in range(4)))
    harness.add(*wanting(2, "first", priority=5))
    harness.add(*wanting(2, pods_with={"deadline_s": 60}))
    harness.settle(*wanting(2, "last"))
    assert start(harness, "first") == ExpectedStart(0, 200, Basis.LIMITS)
    assert start(harness) == ExpectedStart(0, 400, Basis.LIMITS)
    assert start(harness, "last") == ExpectedStart(0, 490, Basis.LIMITS)


def test_who_fits_first_starts_first_until_one_ahead_has_waited_for_long():
    harness = full(*(runs(f"p{at}", at, 100 * (at + 1)) for at in range(3)), nodes=3)
    harness.add(*wanting(2, "large", priority=5))
    harness.settle(*wanting(1, "small", pods_with={"deadline_s": 1000}))
    assert start(harness, "large") == ExpectedStart(0, 300, Basis.LIMITS)
    assert start(harness, "small") == ExpectedStart(0, 100, Basis.LIMITS)


def test_all_members_start_in_one_domain_if_they_must():
    harness = Harness.settled(*(node(f"n{at}", cpu=1, labels={"rack": "ab"[at % 2]}) for at in range(4)))
    harness.add(*(runs(f"p{at}", at, 100 * (at + 1)) for at in range(4)))
    harness.settle(*wanting(2, topology=Topology("rack", required=True)))
    assert start(harness) == ExpectedStart(0, 300, Basis.LIMITS)


def test_the_minima_of_roles_are_what_is_waited_for():
    harness = full(runs("p0", 0, 100), runs("p1", 1, 300), nodes=2)
    roles = (Role("a", 1), Role("b", 0))
    harness.add(group("g", min_member=1, max_schedule_time_s=9999.0, roles=roles))
    harness.settle(*pods("g", 1, role="b", created=START - 10), *pods("g", 1, role="a", first=1))
    assert start(harness).latest == 100


def test_what_more_than_amounts_decides_is_said_not_to_be_known():
    harness = Harness.settled(node("n0", cpu=1, labels={"zone": "a"}), runs("p0", 0, 100))
    harness.settle(*wanting(1, pods_with={"spread": [Spread(PodTerm("zone", ()), 1)]}))
    assert start(harness) == ExpectedStart(0, 0, None, Unknown.DEPENDS)


def test_the_latest_start_is_not_known_behind_one_that_waits_for_ever():
    harness = full(runs("p0", 0, 4000), runs("p1", 1, 5000), runs("p2", 2), nodes=3)
    harness.wait(1900, *wanting(3, "first", priority=5))
    harness.settle(*wanting(1))
    found = start(harness)
    assert (found.earliest, found.latest, found.why) == (0, 0, Unknown.AHEAD)
    assert found.decides == GroupKey("default", "first")


def test_nobody_starts_where_places_are_reserved_for_a_start_that_nobody_knows():
    harness = full(runs("p0", 0, 4000), runs("p1", 1), nodes=2)
    harness.wait(1900, *wanting(2, "first", priority=5))
    harness.settle(*wanting(1, pods_with={"deadline_s": 60}))
    assert start(harness) == ExpectedStart(why=Unknown.AHEAD, decides=GroupKey("default", "first"))
    harness.delete("default/p0")
    harness.wait(60)
    assert harness.status("default/g").phase is Phase.QUEUED


def test_all_who_are_far_back_in_the_line_are_told_that_many_are_ahead():
    with mock.patch("gangsched.core.contention.forecasting.MOST_IN_LINE", 2):
        harness = full(runs("p0", 0, 500.0), nodes=1)
        for at in range(5):
            harness.wait(1, *wanting(1, f"g{at}"))
        harness.wait(65)
        in_line = [told(harness, f"g{at}") for at in range(5)]
        assert [start is not None and start.why is Unknown.LINE for start in in_line] == [False] * 2 + [True] * 3


def test_where_others_without_limits_may_start_before_nobody_is_named_as_ahead():
    harness = full(runs("p0", 0, 100), runs("p1", 1, 200), nodes=2)
    harness.settle(*wanting(2, "large", priority=5), *wanting(1))
    assert start(harness, "large") == ExpectedStart(0, 0, None, Unknown.OTHERS)
    assert start(harness) == ExpectedStart(0, 0, None, Unknown.OTHERS)


def test_a_start_beyond_the_horizon_is_not_told():
    harness = full(runs("p0", 0, HORIZON_S + 60), nodes=1)
    harness.settle(*wanting(1))
    assert start(harness) == ExpectedStart(why=Unknown.HORIZON)


def test_a_latest_start_beyond_the_horizon_is_not_told():
    harness = full(runs("p0", 0, HORIZON_S + 60, expected_s=1070.0), nodes=1)
    harness.settle(*wanting(1))
    assert start(harness) == ExpectedStart(100, 0, Basis.DECLARED, Unknown.HORIZON)


def test_a_group_with_reserved_places_starts_by_then_even_if_that_relies_on_promises():
    """Who overstays is evicted."""
    harness = full(runs("p0", 0, expected_s=5000.0), runs("p1", 1, 3000), nodes=2)
    harness.settle(*wanting(2))
    before = start(harness)
    harness.wait(1801)
    assert (before.earliest, before.latest) == (4000 + GRACE_S, 0)
    assert start(harness) == ExpectedStart(4000 + GRACE_S, 4000 + GRACE_S, Basis.DECLARED)


def told(harness: Harness, name: str = "g") -> ExpectedStart | None:
    """What the group's status says, in seconds from the story's start."""
    found = harness.status(f"default/{name}").expected
    if found is None:
        return None
    return found._replace(
        earliest=found.earliest and found.earliest - START, latest=found.latest and found.latest - START
    )


def waits_for_three_of_four(apart_s: float) -> tuple[Harness, ExpectedStart]:
    """A group that waits for three of four pods, which end this far apart, and what it was told after a minute."""
    harness = full(*(runs(f"p{at}", at, apart_s * (at + 1)) for at in range(4)))
    harness.wait(60, *wanting(3))
    found = told(harness)
    assert found is not None
    return harness, found


def test_it_is_told_in_the_status_until_the_group_starts():
    harness = full(*(runs(f"p{at}", at, 100 * (at + 1)) for at in range(4)))
    harness.wait(5, *wanting(3))
    assert told(harness) is None
    harness.wait(60)
    found = told(harness)
    assert found is not None
    # With a margin of a minute, or of a tenth of how far away it is.
    assert found.latest == pytest.approx(360, abs=5)
    harness.delete("default/p0", "default/p1", "default/p2")
    harness.wait(5)
    assert harness.status("default/g").phase == "Scheduled"
    assert told(harness) is None


def test_what_is_told_becomes_narrower_as_the_start_comes_nearer():
    harness, first = waits_for_three_of_four(10_000)
    margins = []
    for left_s in (20_000, 10_000, 5000, 2500, 1250, 600):
        harness.wait(START + 30_000 - left_s - harness.now)
        found = told(harness)
        assert found is not None
        margins.append((found.latest - 30_000) / left_s)
    assert first.latest == pytest.approx(33_000, abs=50)
    assert all(0.04 < margin <= 0.2 for margin in margins)


def test_a_start_that_is_due_at_any_time_is_not_told_again_and_again():
    """Who overstays its promise is expected to leave now, whenever that is."""
    harness = full(runs("p0", 0, HORIZON_S, expected_s=100.0), nodes=1)
    harness.wait(60, *wanting(1))
    first = told(harness)
    assert first is not None
    harness.wait(600)
    assert told(harness) == first


def test_what_has_passed_while_it_was_found_out_is_told_as_now():
    assert ExpectedStart(1000, 1010, Basis.DECLARED).told_in("", 2000) == ExpectedStart(2000, 2000, Basis.DECLARED)


def test_it_is_told_anew_only_when_it_has_moved():
    harness, first = waits_for_three_of_four(1000)
    assert (round(first.earliest, -1), round(first.latest, -1)) == (0, 3300)
    for ends_in, moved in ((2900, False), (2500, True)):
        harness.delete("default/p2")
        harness.wait(70, runs("p2", 2, ends_in))
        assert (told(harness) != first) is moved


@pytest.mark.parametrize(("name", "decides"), [("default/p", GroupKey("", "p")), ("other/p", None)])
def test_only_what_runs_in_the_own_namespace_is_named(name, decides):
    harness = full(runs(name, 0), nodes=1)
    harness.wait(60, *wanting(1))
    assert told(harness) == ExpectedStart(why=Unknown.UNKNOWN, decides=decides)


def test_what_is_told_does_not_depend_on_where_calls_end():
    found = []
    for call in (budget.CALL, 20_000):
        with mock.patch.object(budget, "CALL", call):
            harness = full(*(runs(f"p{at}", at, 100 * (at + 1)) for at in range(8)), nodes=8)
            for at in range(6):
                harness.add(*wanting(1 + at % 3, f"g{at}", pods_with={"deadline_s": 100 * at + 60}))
            harness.wait(90)
            found.append([told(harness, f"g{at}") for at in range(6)])
    assert found[0] == found[1]
    assert None not in found[0]


def test_a_walk_that_nodes_change_under_is_begun_anew():
    with mock.patch.object(budget, "CALL", 20_000):
        harness = full(*(runs(f"p{at}", at, 1000) for at in range(4)))
        for at in range(20):
            harness.wait(1, *wanting(1, f"g{at}"))
        harness.wait(29)
        for at in range(10):
            harness.wait(1, node(f"m{at}", cpu=0))
        harness.wait(120)
        assert told(harness, "g0") is not None


@pytest.mark.faults
def test_a_fault_in_finding_it_out_disturbs_nothing_and_it_is_tried_again():
    harness = full(*(runs(f"p{at}", at, 9000) for at in range(4)))
    harness.add(*wanting(3))
    with mock.patch.object(Field, "places", side_effect=RuntimeError("broken")):
        harness.wait(60)
    [fault] = harness.machine.take_faults()
    assert isinstance(fault, Omitted)
    assert told(harness) is None
    harness.wait(PAUSE_S + 60)
    assert told(harness) is not None
    assert harness.machine.take_faults() == []


def test_a_group_that_goes_while_it_is_found_out_is_not_told_and_one_made_again_is():
    with mock.patch.object(budget, "CALL", 20_000):
        harness = full(*(runs(f"p{at}", at) for at in range(4)))
        for at in range(20):
            harness.wait(1, *wanting(1, f"g{at}"))
        harness.wait(30)
        for at in range(20):
            harness.delete(f"default/g{at}-0")
            harness.delete_group(f"default/g{at}")
        harness.wait(120)
        assert harness.machine.forecasting.told_starts.last == {}
        harness.wait(120, *wanting(1, "g0"))
        assert told(harness, "g0") is not None


@pytest.mark.parametrize("by", ["the same leader", "the next leader"])
def test_a_group_that_can_never_fit_any_more_is_told_so(by):
    harness, _ = waits_for_three_of_four(5000)
    harness.delete("default/p2", "default/p3")
    if by == "the next leader":
        harness.restart()
    harness.delete_node("n2")
    harness.delete_node("n3")
    harness.wait(120)
    assert told(harness) == ExpectedStart(why=Unknown.NEVER)


@pytest.mark.parametrize("by", ["the same leader", "the next leader"])
def test_what_was_told_is_taken_back_if_nothing_is_asked_for_any_more(by):
    harness, _ = waits_for_three_of_four(5000)
    with mock.patch.object(Asking, "of", return_value=None):
        harness.delete("default/p3")
        if by == "the next leader":
            harness.restart()
        harness.wait(120)
    assert told(harness) is None


@pytest.mark.parametrize("ends_in", [None, 300], ids=["endless", "limited"])
def test_room_that_is_not_enough_is_no_start(ends_in):
    """Amounts suffice now, and when others have ended: neither says when the port is free."""
    harness = Harness.settled(node("n0", cpu=3), runs("p0", 0, ends_in, cpu=1, host_ports=[HostPort(80)]))
    harness.settle(*wanting(1, pods_with={"host_ports": [HostPort(80)]}))
    assert start(harness) == ExpectedStart(0, 0, None, Unknown.DEPENDS)


def test_a_reserved_start_that_has_passed_is_not_told():
    harness = full(runs("p0", 0, 3000), runs("p1", 1, 2500), nodes=2)
    harness.settle(*wanting(2))
    harness.wait(1801)
    assert start(harness) == ExpectedStart(0, 3000, Basis.LIMITS)
    harness.wait(1300)
    assert start(harness).latest == 0


@pytest.mark.parametrize(
    ("begins_at", "outside_s"),
    [(200, []), (390, [0]), (520, [60])],
    ids=["told a short time before", "in time", "too late"],
)
def test_how_far_a_group_starts_from_what_it_was_told_five_minutes_before_is_measured(begins_at, outside_s):
    harness = full(runs("p0", 0, 400), nodes=1)
    harness.wait(begins_at, *wanting(1))
    harness.delete("default/p0")
    harness.wait(5)
    assert harness.status("default/g").phase == "Scheduled"
    found = harness.machine.take_measured().starts
    assert [basis for basis, _ in found] == [Basis.LIMITS] * len(outside_s)
    assert [outside for _, outside in found] == pytest.approx(outside_s, abs=2)


def test_the_start_of_a_group_with_more_members_than_it_needs_is_measured_too():
    harness = full(runs("p0", 0, 400), nodes=1)
    harness.wait(520, group("g", min_member=1, max_schedule_time_s=9999.0), *pods("g", 3))
    harness.delete("default/p0")
    harness.wait(5)
    assert harness.status("default/g").phase == "Scheduled"
    [(basis, outside_s)] = harness.machine.take_measured().starts
    assert basis == "Limits"
    assert outside_s == pytest.approx(60, abs=2)
    assert harness.machine.forecasting.waiting == set()


def test_a_group_whose_pods_fail_on_a_node_is_not_told_that_it_never_fits():
    harness = Harness.settled(node("n0", cpu=8))
    harness.add(group("g", min_member=2, max_schedule_time_s=9999.0))
    loop = Loop(harness, lambda number: pod(f"g-{number}", group="g", owner=JOB), 2)
    found = set()
    for _ in range(10):
        loop.run_for(30)
        found.add(told(harness))
    assert {each.why for each in found if each is not None} == {Unknown.DEPENDS}


@pytest.mark.faults
def test_what_was_told_is_taken_back_after_a_fault():
    harness = full(*(runs(f"p{at}", at, 9000) for at in range(4)))
    harness.wait(60, *wanting(3))
    assert told(harness) is not None
    with mock.patch.object(Field, "places", side_effect=RuntimeError("broken")):
        harness.delete("default/p3")
        harness.wait(60)
    assert told(harness) is None
    assert len(harness.machine.take_faults()) == 1
