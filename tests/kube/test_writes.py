from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.api.conversion import made_group
from gangsched.core.objects.declaration import GroupKey, Role
from gangsched.core.objects.effects import DeleteGroup, EmitEvent, MakeGroup, PatchPodCondition, PatchStatus
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.record import Phase, Record
from gangsched.core.objects.results import GroupNotMade, StatusRefused, StatusWritten
from gangsched.core.objects.status import GroupStatus, Reservation
from gangsched.core.objects.workload import Reference
from gangsched.kube.writing.event_writes import emit_event
from gangsched.kube.writing.pod_conditions import patch_condition
from gangsched.kube.writing.podgroup_writes import delete_group, make_group
from gangsched.kube.writing.statuses import patch_status
from gangsched.kube.writing.write_results import Outcome, WriteResult
from tests.kube.fake_api import Answer as Reply
from tests.kube.fake_api import FakeApi, body, serving, status

POD_PATH = "/api/v1/namespaces/team/pods/a-0"
STATUS_PATH = "/apis/gangsched.io/v1alpha1/namespaces/team/podgroups/g/status"
GROUPS_PATH = "/apis/gangsched.io/v1alpha1/namespaces/team/podgroups"
EVENTS_PATH = "/apis/events.k8s.io/v1/namespaces/team/events"
STATUS = PatchStatus(key=GroupKey("team", "g"), uid="g1", status=GroupStatus(Record(phase=Phase.QUEUED), members=3))
DRIVER = Reference("v1", "Pod", "driver", "d1")
MAKE = MakeGroup(GroupKey("team", "g"), GroupSpec(min_member=5, roles=(Role("driver", 1),)), DRIVER)
CONDITION = PatchPodCondition(uid="u1", namespace="team", name="a-0", reason="GangIncomplete", message="1 more")
EVENT = EmitEvent(
    kind="PodGroup", namespace="team", name="g", uid="g1", type="Normal", reason="Scheduled", action="Bind", note="n"
)


async def sent(effect: MakeGroup | PatchStatus | PatchPodCondition, answer: Reply) -> tuple[WriteResult, FakeApi]:
    """The result of the write that gets this answer, and the server."""
    api = FakeApi()
    async with serving(api) as session:
        match effect:
            case MakeGroup():
                api.answer("POST", GROUPS_PATH, answer)
                return await make_group(session, effect), api
            case PatchStatus():
                api.answer("PATCH", STATUS_PATH, answer)
                return await patch_status(session, effect), api
            case PatchPodCondition():
                api.answer("PATCH", f"{POD_PATH}/status", answer)
                return await patch_condition(session, effect), api


@pytest.mark.parametrize(("code", "outcome"), [(201, Outcome.WRITTEN), (409, Outcome.STALE)])
async def test_a_group_is_made_and_its_being_there_left_to_the_watch(code: int, outcome: Outcome) -> None:
    """The watch may have shown its deletion before the result arrived, or another group has the name."""
    found, api = await sent(MAKE, status(code, "it is there"))
    assert found == WriteResult(outcome)
    assert api.asked[0].body == made_group(MAKE.key, MAKE.spec, DRIVER)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (200, Outcome.WRITTEN),
        (404, Outcome.GONE),
        (409, Outcome.STALE),
        (403, Outcome.REFUSED),
        (429, Outcome.UNAVAILABLE),
        (500, Outcome.UNAVAILABLE),
    ],
)
async def test_a_group_is_deleted_only_if_it_is_the_same_and_unchanged(code: int, outcome: Outcome) -> None:
    api = FakeApi.answering("DELETE", f"{GROUPS_PATH}/g", status(code, "because"))
    async with serving(api) as session:
        found = await delete_group(session, DeleteGroup(GroupKey("team", "g"), "g1", "77"))
    assert found.result == outcome
    assert api.asked[0].body["preconditions"] == {"uid": "g1", "resourceVersion": "77"}


@pytest.mark.parametrize("code", [403, 422, 429, 500])
async def test_a_group_that_is_not_made_says_why(code: int) -> None:
    found, _ = await sent(MAKE, status(code, "because"))
    assert isinstance(found.event, GroupNotMade)
    assert found.event.key == MAKE.key
    assert "the PodGroup g, which must record its reservation, was not created" in found.event.message
    assert found.event.message.endswith("because")


async def test_a_whole_status_is_written_on_condition_of_the_uid() -> None:
    found, api = await sent(STATUS, body({"metadata": {"uid": "g1", "resourceVersion": "77"}}))
    assert found == WriteResult(Outcome.WRITTEN, StatusWritten(STATUS.key, "77"))
    [asked] = api.asked
    assert asked.headers["Content-Type"] == "application/json-patch+json"
    test, add = asked.body
    assert test == {"op": "test", "path": "/metadata/uid", "value": "g1"}
    assert (add["op"], add["path"]) == ("add", "/status")
    assert add["value"]["phase"] == "Queued"
    assert "reservation" not in add["value"]


async def test_a_reservation_is_written_on_condition_of_its_version() -> None:
    reserved = GroupStatus(reservation=Reservation(expires=60.0, placements=()))
    conditional = PatchStatus(key=STATUS.key, uid="g1", status=reserved, resource_version="77")
    written, api = await sent(conditional, body({"metadata": {"uid": "g1", "resourceVersion": "78"}}))
    assert written.event == StatusWritten(STATUS.key, "78", reserved=True)
    assert api.asked[0].body[1] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "77"}


async def test_a_status_that_was_meant_for_a_namesake_is_told_as_gone() -> None:
    answer = status(422, "the server rejected our request due to an error in our request", reason="Invalid")
    found, _ = await sent(STATUS, answer)
    assert found.result is Outcome.GONE


@pytest.mark.parametrize(
    ("code", "version", "outcome"),
    [
        (404, "", Outcome.GONE),
        (409, "5", Outcome.STALE),
        (409, "", Outcome.UNAVAILABLE),
        (401, "", Outcome.UNAVAILABLE),
        (429, "", Outcome.UNAVAILABLE),
        (500, "5", Outcome.UNAVAILABLE),
        (403, "", Outcome.REFUSED),
        (422, "5", Outcome.REFUSED),
    ],
)
async def test_a_status_that_is_not_written_is_sorted_by_what_helps(code: int, version: str, outcome: Outcome) -> None:
    effect = PatchStatus(key=STATUS.key, uid="g1", status=STATUS.status, resource_version=version)
    found, _ = await sent(effect, status(code, "because", headers={"Retry-After": "4"}))
    assert found.result is outcome
    assert found.message.endswith("because") or outcome in (Outcome.GONE, Outcome.STALE)
    assert found.event == StatusRefused(STATUS.key, stale=outcome is Outcome.STALE)
    assert found.retry_after_s == (4.0 if outcome is Outcome.UNAVAILABLE else 0.0)


async def test_an_answer_without_a_lasting_object_is_no_write() -> None:
    found, _ = await sent(STATUS, body("what?"))
    assert found.result is Outcome.UNAVAILABLE


async def test_a_condition_is_merged_by_type_into_the_very_pod() -> None:
    found, api = await sent(CONDITION, body({}))
    assert found.result is Outcome.WRITTEN
    [asked] = api.asked
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert asked.body == {
        "metadata": {"uid": "u1"},
        "status": {
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "GangIncomplete", "message": "1 more"}]
        },
    }


async def test_a_condition_that_becomes_false_says_since_when() -> None:
    _, api = await sent(replace(CONDITION, since=1_000_000.5), body({}))
    [condition] = api.asked[0].body["status"]["conditions"]
    assert condition["lastTransitionTime"] == "1970-01-12T13:46:40Z"


async def test_a_message_that_quotes_something_long_is_cut() -> None:
    _, api = await sent(replace(CONDITION, message="x" * 300_000), body({}))
    [condition] = api.asked[0].body["status"]["conditions"]
    assert len(condition["message"].encode()) <= 4096
    assert condition["message"].endswith("…")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (status(404), Outcome.GONE),
        (status(422, 'Pod "a-0" is invalid: metadata.uid: Invalid value: "u1": field is immutable'), Outcome.GONE),
        (status(422, "status.conditions: odd"), Outcome.REFUSED),
        (status(409), Outcome.UNAVAILABLE),
        (status(403), Outcome.REFUSED),
        (status(500), Outcome.UNAVAILABLE),
    ],
)
async def test_a_condition_that_is_not_written_is_sorted_by_what_helps(answer: Any, outcome: Outcome) -> None:
    found, _ = await sent(CONDITION, answer)
    assert found.result is outcome


async def test_an_event_is_created_in_the_namespace_of_its_object() -> None:
    api = FakeApi.answering("POST", EVENTS_PATH, status(201))
    async with serving(api) as session:
        assert await emit_event(session, EVENT, now=lambda: 0.5, reporting_instance="i") == WriteResult(Outcome.WRITTEN)
    [asked] = api.asked
    name = asked.body["metadata"].pop("name")
    assert name.startswith("g.")
    assert asked.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "team"},
        "eventTime": "1970-01-01T00:00:00.500000Z",
        "reportingController": "gangsched.io/scheduler",
        "reportingInstance": "i",
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Bind",
        "regarding": {
            "apiVersion": "gangsched.io/v1alpha1",
            "kind": "PodGroup",
            "namespace": "team",
            "name": "g",
            "uid": "g1",
        },
        "note": "n",
    }


async def test_an_event_in_a_namespace_that_is_gone_is_told_as_gone() -> None:
    api = FakeApi.answering("POST", EVENTS_PATH, status(404))
    async with serving(api) as session:
        assert (await emit_event(session, EVENT, now=lambda: 0.0, reporting_instance="i")).result is Outcome.GONE
