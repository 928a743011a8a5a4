from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.api.conversion import group_from_object
from gangsched.api.podgroup_status import PodGroupStatus
from gangsched.api.status_conversion import status_from_object, status_to_object
from gangsched.config.workload_registry import WORKLOADS
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.expected_start import ExpectedStart
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import ENDS, Capped, Minima, Outcome, Phase, Record
from gangsched.core.objects.status import (
    LONGEST_HELP,
    LONGEST_SHARED,
    MOST_DEMANDS,
    MOST_FITTING,
    MOST_HELPS,
    PREEMPTION,
    TIME,
    Condition,
    Demand,
    Fitting,
    GroupStatus,
    Place,
    Reservation,
)
from gangsched.core.objects.workload import Workload
from tests.api.manifests import MINIMAL

counts = st.integers(0, 2**31 - 1)
seconds = st.integers(1, 4_000_000_000)
moments = st.integers(1, 4_000_000_000_000_000).map(lambda micros: micros / 1_000_000)
names = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
requests = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods"]), st.integers(1, 2**62))
places = st.builds(
    Place,
    node=names,
    role=st.just("") | names,
    count=counts,
    pods=st.lists(names, max_size=4).map(tuple),
    requests=requests.map(lambda amounts: tuple(sorted(amounts.items()))),
)
conditions = st.builds(
    Condition,
    type=st.sampled_from(["Scheduled", "Degraded"]),
    status=st.booleans(),
    reason=st.sampled_from([*map(str, Reason)]),
    message=st.text(max_size=100),
    since=seconds.map(float),
    generation=st.integers(0, 2**53),
)
fittings = st.builds(
    Fitting,
    members=counts,
    nodes=counts,
    shared=st.dictionaries(names, names, max_size=3).map(lambda shared: tuple(sorted(shared.items()))),
)
demands = st.builds(
    Demand,
    count=st.integers(1, 2**31 - 1),
    requests=requests.map(lambda amounts: tuple(sorted(amounts.items()))),
    domain=st.just("") | names,
)
by_role = st.dictionaries(st.just("") | names, counts, max_size=4).map(lambda counted: tuple(sorted(counted.items())))
minima = st.builds(Minima, total=counts, roles=by_role)
capped = st.builds(
    Capped,
    reason=st.sampled_from([Reason.HOLD_LIMIT, Reason.NAMESPACE_LIMIT]),
    note=st.text(max_size=100),
    until=st.just(0.0) | moments,
)


workloads = st.builds(
    Workload,
    kind=st.sampled_from(sorted(WORKLOADS)),
    name=st.text("abc", min_size=1, max_size=253),
    declaration=st.none(),
    uid=st.text("abc", max_size=36),
)


@st.composite
def records(draw):
    """Records as the engine makes them: a contradictory record cannot be written."""
    scheduled_at = draw(st.just(0.0) | moments)
    outcome = draw(st.sampled_from([Outcome.NONE, *(ENDS if scheduled_at else [])]))
    living = st.sampled_from([phase for phase in Phase if phase not in (Phase.SUCCEEDED, Phase.FAILED)])
    clock_start = draw(st.just(0.0) | seconds.map(float))
    cap = draw(st.none() | capped)
    if cap is not None and draw(st.booleans()):
        ran_s = draw(st.integers(0, 10_000))
        cap = replace(cap, paused_at=draw(st.integers(20_000, 4_000_000_000).map(float)), ran_s=float(ran_s))
        clock_start = 0.0
    if not scheduled_at and draw(st.booleans()):
        outcome = Outcome.OUT_OF_TIME
    ended = {Outcome.SUCCEEDED: Phase.SUCCEEDED, Outcome.FAILED: Phase.FAILED, Outcome.OUT_OF_TIME: Phase.FAILED}
    preempted_at = draw(st.just(0.0) | moments)
    return Record(
        phase=ended.get(outcome) or draw(living),
        run_start=draw(moments),
        outcome=outcome,
        scheduled_at=scheduled_at,
        late=bool(scheduled_at) and draw(st.booleans()),
        clock_start=clock_start,
        quorum=draw(st.none() | minima),
        quorum_done=draw(by_role),
        satisfied=draw(minima),
        timeouts=draw(counts),
        level=draw(counts),
        retry_at=draw(st.just(0.0) | moments),
        rollback_note=draw(st.text(max_size=100)),
        succeeded=draw(by_role.map(lambda counted: tuple(each for each in counted if each[1]))),
        failed=draw(counts),
        running_at=draw(st.just(0.0) | moments),
        led=draw(st.booleans()),
        damaged=draw(st.booleans()),
        workload=draw(st.none() | workloads),
        placeholders_expired=draw(st.booleans()),
        held_since=draw(st.just(0.0) | moments),
        capped=cap,
        caps=draw(counts),
        settled_at=draw(st.just(0.0) | moments),
        prebinding_at=draw(st.just(0.0) | moments),
        prebinding_clock=draw(st.just(0.0) | moments),
        preempted_at=preempted_at,
        preempted_by=draw(st.sampled_from(["Priority", "Share"])) if preempted_at else "",
        preemptions=draw(counts),
    )


@given(records())
def test_a_record_survives_the_status_in_which_it_stands(record):
    assert status_from_object(status_to_object(GroupStatus(record))["status"]).record == record


statuses = st.builds(
    GroupStatus,
    record=st.none() | records(),
    conditions=st.lists(conditions, max_size=2, unique_by=lambda condition: condition.type).map(tuple),
    members=counts,
    bound=counts,
    running=counts,
    reservation=st.none()
    | st.builds(
        Reservation,
        expires=moments,
        placements=st.lists(places, max_size=4).map(tuple),
        kind=st.sampled_from(["", PREEMPTION, TIME]),
        start=st.just(0.0) | moments,
    ),
    attempts=counts,
    source=st.just("") | names,
    demand=st.lists(demands, max_size=4).map(tuple),
    fitting=st.lists(fittings, max_size=MOST_FITTING).map(tuple),
    helps=st.lists(st.text(max_size=LONGEST_HELP), max_size=MOST_HELPS).map(tuple),
)


@given(statuses)
def test_a_status_survives_its_object(status):
    assert group_from_object({**MINIMAL, **status_to_object(status)}).status == status


def test_every_field_can_be_written():
    condition = Condition(type="Scheduled", status=True, reason="Scheduled", message="", since=1.0)
    status = GroupStatus(
        Record(
            scheduled_at=3.0,
            running_at=4.0,
            capped=Capped(Reason.HOLD_LIMIT, "", paused_at=2.0, ran_s=1.0),
            preempted_at=6.0,
            preempted_by="Priority",
            preemptions=1,
        ),
        conditions=(condition,),
        reservation=Reservation(expires=1.0, placements=()),
        source="PodGroup",
        scheduler="other",
        finished_at=5.0,
        demand=(Demand(count=1, requests=()),),
        fitting=(Fitting(1, 1),),
        helps=("less",),
        expected=ExpectedStart(earliest=7.0),
    )
    written = status_to_object(status)["status"]
    assert written.keys() == {field.alias for field in PodGroupStatus.model_fields.values()}


def test_words_of_an_expected_start_that_only_a_newer_version_knows_are_left_out():
    stored = {"expectedStart": {"earliest": "1970-01-01T00:00:07Z", "basis": "Stars", "decides": "p"}}
    assert status_from_object(stored).expected == ExpectedStart(7.0, decides=GroupKey("", "p"))


def test_times_and_amounts_are_written_as_kubernetes_writes_them():
    """Clock times carry microseconds, and conditions seconds."""
    requests = (("cpu", 1500), ("memory", 1024))
    place = Place(node="n", role="worker", count=2, pods=("a-0",), requests=requests)
    status = GroupStatus(
        Record(clock_start=1_767_225_600.25, preempted_at=1.5, preempted_by="Priority", preemptions=2),
        conditions=(Condition(type="Scheduled", status=True, reason="Scheduled", message="", since=1_767_225_600.9),),
        reservation=Reservation(expires=1.0, placements=(place,), kind=PREEMPTION),
        demand=(Demand(count=2, requests=requests, domain="a"), Demand(count=1, requests=())),
    )
    body = status_to_object(status)["status"]
    written = {"cpu": "1500m", "memory": "1024"}
    assert body["scheduleStartTime"] == "2026-01-01T00:00:00.250000Z"
    assert body["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert body["preempted"] == {"at": "1970-01-01T00:00:01.500000Z", "cause": "Priority"}
    assert body["reservation"] == {
        "expires": "1970-01-01T00:00:01.000000Z",
        "placements": [{"node": "n", "role": "worker", "count": 2, "pods": ["a-0"], "requests": written}],
        "kind": "Preemption",
    }
    assert body["demand"] == [{"count": 2, "requests": written, "domain": "a"}, {"count": 1, "requests": {}}]


def test_what_is_not_so_is_left_out():
    assert status_to_object(GroupStatus())["status"] == {
        "conditions": [],
        "members": 0,
        "bound": 0,
        "running": 0,
        "succeeded": 0,
        "failed": 0,
        "minimum": 0,
        "attempts": 0,
    }


@pytest.mark.parametrize(
    "demand", [{"count": 0}, {"requests": {}}, {"count": 1, "requests": {"cpu": "much"}}, {"count": 1, "domain": 5}]
)
def test_a_demand_that_cannot_be_read_is_no_status(demand):
    assert status_from_object({"phase": "Queued", "demand": [demand]}) == GroupStatus()


def test_no_more_demands_are_read_than_are_written():
    most = [{"count": 1}] * MOST_DEMANDS
    assert len(status_from_object({"demand": most}).demand) == MOST_DEMANDS
    assert status_from_object({"demand": [*most, {"count": 1}]}) == GroupStatus()


def test_a_field_that_a_newer_version_wrote_is_passed_over():
    assert status_from_object({"phase": "Running", "forecast": "soon"}) == GroupStatus(Record(phase=Phase.RUNNING))


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Sleeping", "bound": 1},
        {"bound": "1"},
        {"bound": -1},
        {"scheduledTime": "yesterday", "bound": 1},
        {"scheduledTime": "2026-01-01T00:00:00", "bound": 1},
        {"reservation": {}, "bound": 1},
        {"reservation": {"expires": "2026-01-01T00:00:00Z", "placements": [{"node": "n"}]}, "bound": 1},
        {
            "reservation": {
                "expires": "2026-01-01T00:00:00Z",
                "placements": [{"node": "n", "count": 1, "requests": {"cpu": "much"}}],
            },
            "bound": 1,
        },
        {"conditions": [{"type": "Scheduled"}], "bound": 1},
        {"preempted": {"at": "2026-01-01T00:00:00Z"}, "bound": 1},
        {"preempted": {"at": "now", "cause": "Priority"}, "bound": 1},
        {"preemptions": 0, "bound": 1},
    ],
)
def test_nothing_is_taken_from_a_status_that_cannot_be_read(status):
    assert status_from_object(status) == GroupStatus()


@pytest.mark.parametrize(
    ("status", "record"),
    [
        pytest.param(
            {"phase": "Running", "minimum": 2, "succeeded": 1, "scheduledTime": "1970-01-01T00:00:09Z"},
            Record(
                phase=Phase.RUNNING,
                run_start=9.0,
                scheduled_at=9.0,
                satisfied=Minima(2),
                succeeded=(("", 1),),
                failed=0,
            ),
            id="scheduled",
        ),
        pytest.param(
            {"phase": "Queued", "scheduleStartTime": "1970-01-01T00:00:07Z"},
            Record(phase=Phase.QUEUED, run_start=7.0, clock_start=7.0),
            id="waiting",
        ),
        pytest.param(
            {"phase": "Succeeded", "scheduledTime": "1970-01-01T00:00:09Z"},
            Record(phase=Phase.SUCCEEDED, run_start=9.0, scheduled_at=9.0, outcome=Outcome.SUCCEEDED),
            id="succeeded",
        ),
        pytest.param(
            {"phase": "Failed", "scheduledTime": "1970-01-01T00:00:09Z"},
            Record(phase=Phase.FAILED, run_start=9.0, scheduled_at=9.0, outcome=Outcome.FAILED),
            id="failed",
        ),
        pytest.param(
            {"phase": "Failed"}, Record(phase=Phase.FAILED, outcome=Outcome.OUT_OF_TIME), id="failed by its clock"
        ),
    ],
)
def test_a_status_of_a_version_without_the_record_is_read_as_far_as_it_goes(status, record):
    assert status_from_object(status).record == record


def test_more_roles_than_the_schema_allows_are_added_up_under_no_role():
    """Pods may name any number of roles unknown to their group; the API server would refuse the whole status."""
    counts = tuple((f"r{number:03}", 1) for number in range(200))
    written = status_to_object(GroupStatus(Record(succeeded=counts)))["status"]
    assert len(written["record"]["roleSuccesses"]) == 128
    assert status_from_object(written).succeeded == 200


@pytest.mark.parametrize(
    "status",
    [
        {"fitting": [{"members": 1, "nodes": 1}] * (MOST_FITTING + 1)},
        {"fitting": [{"members": 1, "nodes": 1, "shared": {"a": "x" * (LONGEST_SHARED + 1)}}]},
        {"fitting": [{"members": 1, "nodes": 1, "shared": dict.fromkeys("abcd", "")}]},
        {"helps": ["x"] * (MOST_HELPS + 1)},
        {"helps": ["x" * (LONGEST_HELP + 1)]},
    ],
)
def test_where_members_fit_and_what_would_help_are_bounded(status):
    assert status_from_object({"phase": "Queued", **status}) == GroupStatus()
