"""The CustomResourceDefinition on a real API server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gangsched.api.conversion import group_from_object
from gangsched.api.status_conversion import status_to_object
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Capped, Minima, Phase, Record
from gangsched.core.objects.status import PREEMPTION, Condition, GroupStatus, Place, Reservation
from testbed.api import ApiError, Json
from testbed.control_plane import ControlPlane
from tests.api.manifests import ACCEPTED, FULL, MINIMAL, REFUSED, manifest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))

RECORD = Record(
    phase=Phase.RESERVED,
    run_start=1_789_999_999.0,
    clock_start=1_790_000_000.000001,
    scheduled_at=1_790_000_059.999999,
    quorum=Minima(4, (("worker", 3),)),
    quorum_done=(("worker", 1),),
    satisfied=Minima(4, (("worker", 3),)),
    timeouts=6,
    level=5,
    retry_at=1_790_000_100.5,
    rollback_note="3 members were bound",
    succeeded=(("", 1), ("worker", 1)),
    failed=3,
    led=True,
    placeholders_expired=True,
    held_since=1_790_000_001.0,
    capped=Capped(Reason.HOLD_LIMIT, "too long", until=1_790_000_090.0),
    caps=2,
    settled_at=1_790_000_002.0,
    prebinding_at=1_790_000_003.5,
    prebinding_clock=1_790_000_000.000001,
    preempted_at=1_790_000_004.5,
    preempted_by="Priority",
    preemptions=2,
)
STATUS = GroupStatus(
    RECORD,
    conditions=(
        Condition(
            type="Scheduled",
            status=False,
            reason="GangIncomplete",
            message="4 of 5 members exist: 1 more is needed.",
            since=1_790_000_000.0,
            generation=3,
        ),
        Condition(type="Degraded", status=False, reason="Healthy", message="", since=1_790_000_001.0, generation=3),
    ),
    members=5,
    bound=1,
    running=1,
    reservation=Reservation(
        expires=1_790_000_060.123457,
        placements=(
            Place(
                node="node-1",
                role="worker",
                count=3,
                pods=("a-0", "a-1"),
                requests=(("cpu", 1500), ("memory", 2**34), ("nvidia.com/gpu", 1)),
            ),
            Place(node="node-2", role="", count=1, pods=(), requests=()),
        ),
        kind=PREEMPTION,
    ),
    attempts=7,
    source="gangsched",
)


@pytest.fixture
def path(with_crd: ControlPlane, namespace: str) -> str:  # noqa: ARG001 - the PodGroups need the CRD
    """The collection path of the PodGroups in the test's namespace."""
    return f"/apis/gangsched.io/v1alpha1/namespaces/{namespace}/podgroups"


@pytest.fixture
def created(with_crd: ControlPlane) -> Callable[[Json], Json]:
    """A PodGroup as the API server would store it."""
    path = "/apis/gangsched.io/v1alpha1/namespaces/default/podgroups?dryRun=All"
    return lambda body: with_crd.api.post(path, body)


@pytest.mark.parametrize("refusal", REFUSED, ids=lambda refusal: refusal.case)
def test_the_api_server_refuses_and_names_field_and_remedy(created, refusal):
    with pytest.raises(ApiError) as caught:
        created(refusal.manifest)
    assert caught.value.status == 422
    for fragment in refusal.server:
        assert fragment in caught.value.message


@pytest.mark.parametrize(("_case", "accepted"), ACCEPTED, ids=[case for case, _ in ACCEPTED])
def test_the_api_server_accepts(created, _case, accepted):
    assert group_from_object(created(accepted)).error == ""


def test_a_generated_name_is_cut_to_what_a_label_holds(created):
    body = manifest({"minMember": 1})
    body["metadata"] = {"generateName": "a" * 200}
    assert len(created(body)["metadata"]["name"]) == 63


def test_the_api_server_keeps_the_whole_of_a_full_spec_and_fills_in_defaults(created):
    roles = [{"name": "a", "template": {"tolerations": [{"key": "k"}]}}]
    spec = {"minMember": 1, "roles": roles, "placement": {"topology": {"key": "zone"}}}
    assert created(FULL)["spec"] == FULL["spec"]
    assert created(manifest(spec))["spec"] == {
        "minMember": 1,
        "timeoutPolicy": "Retry",
        "roles": [{"name": "a", "minMember": 0, "template": {"tolerations": [{"key": "k", "operator": "Equal"}]}}],
        "placement": {"strategy": "Pack", "topology": {"key": "zone", "mode": "Required"}},
        "onDegraded": "Repair",
    }


def test_min_member_can_be_changed(control_plane, path):
    control_plane.api.post(path, MINIMAL)
    changed = control_plane.api.merge(f"{path}/a", {"spec": {"minMember": 5}})
    assert (changed["spec"]["minMember"], changed["metadata"]["generation"]) == (5, 2)
    with pytest.raises(ApiError, match="raise maxMember or lower minMember"):
        control_plane.api.merge(f"{path}/a", {"spec": {"maxMember": 4}})


def test_status_is_written_through_its_subresource_only(control_plane, path):
    made = control_plane.api.post(path, {**MINIMAL, "status": {"phase": "Running"}})
    assert "status" not in made
    ignored = control_plane.api.merge(f"{path}/a", {"status": {"phase": "Running"}})
    assert "status" not in ignored
    written = control_plane.api.merge(f"{path}/a/status", {"status": {"phase": "Running"}, "spec": {"minMember": 9}})
    assert (written["status"]["phase"], written["spec"]["minMember"]) == ("Running", 1)
    assert written["metadata"]["generation"] == 1


def test_a_full_status_comes_back_as_it_was_written(control_plane, path):
    control_plane.api.post(path, MINIMAL)
    control_plane.api.merge(f"{path}/a/status", status_to_object(STATUS))
    assert group_from_object(control_plane.api.get(f"{path}/a")).status == STATUS


def test_a_reservation_for_ten_thousand_pods_is_accepted(control_plane, path):
    pods = tuple(f"a-long-name-of-a-stateful-set-{i}" for i in range(10_000))
    places = tuple(
        Place(node=f"node-{i}", role="worker", count=2, pods=pods[2 * i : 2 * i + 2], requests=(("cpu", 100),))
        for i in range(5_000)
    )
    status = GroupStatus(
        Record(phase=Phase.RESERVED), reservation=Reservation(expires=1_790_000_000.0, placements=places)
    )
    control_plane.api.post(path, MINIMAL)
    control_plane.api.merge(f"{path}/a/status", status_to_object(status))
    assert group_from_object(control_plane.api.get(f"{path}/a")).status == status


def test_kubectl_get_shows_the_columns_whatever_the_kind_is_called(control_plane, path, namespace):
    control_plane.api.post(path, MINIMAL)
    control_plane.api.merge(f"{path}/a/status", status_to_object(STATUS))
    for resource in ("pg", "gpg", "podgroup", "podgroups.gangsched.io", "gangsched"):
        head, row = control_plane.kubectl("get", resource, "-n", namespace).splitlines()
        assert head.split() == ["NAME", "PHASE", "MIN", "MEMBERS", "BOUND", "REASON", "AGE"]
        assert row.split()[1:-1] == ["Reserved", "1", "5", "1", "GangIncomplete"]


def test_kubectl_explain_tells_unit_and_default(with_crd):
    told = with_crd.kubectl("explain", "podgroups.gangsched.io.spec.maxScheduleTime")
    assert "from 1s to 168h" in " ".join(told.split())
    assert "defaultMaxScheduleTime" in told


def test_the_api_server_finds_nothing_wrong_with_the_schema(with_crd):
    crd = with_crd.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.gangsched.io")
    conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_the_examples_are_valid(with_crd, namespace):
    files = [f"--filename={example}" for example in EXAMPLES]
    with_crd.kubectl("apply", "--dry-run=server", "--validate=strict", "--namespace", namespace, *files)
