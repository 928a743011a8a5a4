from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.api.conversion import made_group
from gangsched.core.objects.declaration import GroupKey, Role
from gangsched.core.objects.effects import (
    BindPod,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
)
from gangsched.core.objects.events import GroupSeen
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.record import Phase, Record
from gangsched.core.objects.results import BindRefused, EvictionRefused, GroupNotMade, Refused, Spared
from gangsched.core.objects.status import GroupStatus
from gangsched.kube.credentials import Connection
from gangsched.kube.owners import Unanswered
from gangsched.kube.session import ApiSession
from gangsched.kube.writes import Answer, ApiWrites, Outcome, emit_event, make_group, patch_condition, patch_status
from tests.kube.fake_api import FakeApi, body, serving, status

POD_PATH = "/api/v1/namespaces/team/pods/a-0"
STATUS_PATH = "/apis/gangsched.io/v1alpha1/namespaces/team/podgroups/g/status"
GROUPS_PATH = "/apis/gangsched.io/v1alpha1/namespaces/team/podgroups"
EVENTS_PATH = "/apis/events.k8s.io/v1/namespaces/team/events"
BIND = BindPod(uid="u1", namespace="team", name="a-0", node="n1")
STATUS = PatchStatus(key=GroupKey("team", "g"), uid="g1", status=GroupStatus(Record(phase=Phase.QUEUED), members=3))
MAKE = MakeGroup(GroupKey("team", "g"), GroupSpec(min_member=5, roles=(Role("driver", 1),)), "driver", "d1")
CONDITION = PatchPodCondition(uid="u1", namespace="team", name="a-0", reason="GangIncomplete", message="1 more")
EVENT = EmitEvent(
    kind="PodGroup", namespace="team", name="g", uid="g1", type="Normal", reason="Scheduled", action="Bind", note="n"
)


async def nobody_listening() -> ApiSession:
    async def authorization() -> str | None:
        return None

    return ApiSession(Connection(server="http://127.0.0.1:9", authorization=authorization))


async def test_a_server_that_is_not_there_makes_every_write_unavailable() -> None:
    session = await nobody_listening()
    writes = ApiWrites(session=session, instance="i")
    bound = await writes.bind(BIND)
    evicted = await writes.evict(EvictPod(uid="u1", namespace="team", name="a-0"))
    owner = await writes.look_up_owner(LookUpOwner(uid="j1", namespace="team", name="job"))
    made = await writes.make_group(MAKE)
    answers = [await writes.patch_status(STATUS), await writes.patch_condition(CONDITION), await writes.emit(EVENT)]
    await session.close()
    assert isinstance(bound, BindRefused)
    assert bound.why is Refused.UNAVAILABLE
    assert "cannot be reached" in bound.message
    assert isinstance(evicted, EvictionRefused)
    assert (evicted.why, evicted.message) == (Spared.UNAVAILABLE, bound.message)
    assert owner == Unanswered(bound.message)
    assert isinstance(made, GroupNotMade)
    assert [answer.outcome for answer in answers] == [Outcome.UNAVAILABLE] * 3


async def test_a_group_is_made_and_read_back_as_it_was_answered() -> None:
    api = FakeApi()
    made = made_group(MAKE.key, MAKE.spec, owner="driver", owner_uid="d1")
    answer = {**made, "metadata": {**made["metadata"], "uid": "g9", "resourceVersion": "7"}}
    api.answer("POST", GROUPS_PATH, body(answer, code=201))
    async with serving(api) as session:
        seen = await make_group(session, MAKE)
    assert isinstance(seen, GroupSeen)
    assert (seen.group.key, seen.group.uid, seen.group.spec, seen.group.made) == (MAKE.key, "g9", MAKE.spec, True)
    assert api.asked[0].body == made


async def test_a_group_that_is_there_already_is_left_to_the_watch() -> None:
    api = FakeApi()
    api.answer("POST", GROUPS_PATH, status(409, "already exists"))
    async with serving(api) as session:
        assert await make_group(session, MAKE) is None


@pytest.mark.parametrize("code", [403, 422, 429, 500])
async def test_a_group_that_is_not_made_says_why(code: int) -> None:
    api = FakeApi()
    api.answer("POST", GROUPS_PATH, status(code, "because"))
    async with serving(api) as session:
        found = await make_group(session, MAKE)
    assert isinstance(found, GroupNotMade)
    assert found.key == MAKE.key
    assert "the PodGroup g, in which its places must stand, was not created" in found.message
    assert found.message.endswith("because")


async def test_a_whole_status_is_written_on_condition_of_the_uid() -> None:
    api = FakeApi()
    api.answer("PATCH", STATUS_PATH, body({"metadata": {"uid": "g1", "resourceVersion": "77"}}))
    async with serving(api) as session:
        assert await patch_status(session, STATUS) == Answer(Outcome.WRITTEN, resource_version="77")
    [asked] = api.asked
    assert asked.headers["Content-Type"] == "application/json-patch+json"
    test, add = asked.body
    assert test == {"op": "test", "path": "/metadata/uid", "value": "g1"}
    assert (add["op"], add["path"]) == ("add", "/status")
    assert add["value"]["phase"] == "Queued"
    assert "reservation" not in add["value"]


async def test_a_reservation_is_written_on_condition_of_its_version() -> None:
    api = FakeApi()
    api.answer("PATCH", STATUS_PATH, body({"metadata": {"uid": "g1", "resourceVersion": "78"}}))
    conditional = PatchStatus(key=STATUS.key, uid="g1", status=STATUS.status, resource_version="77")
    async with serving(api) as session:
        await patch_status(session, conditional)
    assert api.asked[0].body[1] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "77"}


async def test_a_status_that_was_meant_for_a_namesake_is_told_as_gone() -> None:
    api = FakeApi()
    answer = status(422, "the server rejected our request due to an error in our request", reason="Invalid")
    api.answer("PATCH", STATUS_PATH, answer)
    async with serving(api) as session:
        assert (await patch_status(session, STATUS)).outcome is Outcome.GONE


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
    api = FakeApi()
    api.answer("PATCH", STATUS_PATH, status(code, "because", headers={"Retry-After": "4"}))
    effect = PatchStatus(key=STATUS.key, uid="g1", status=STATUS.status, resource_version=version)
    async with serving(api) as session:
        found = await patch_status(session, effect)
    assert found.outcome is outcome
    assert found.message.endswith("because")
    assert found.retry_after_s == (4.0 if outcome is Outcome.UNAVAILABLE else 0.0)


async def test_an_answer_without_a_lasting_object_is_no_write() -> None:
    api = FakeApi()
    api.answer("PATCH", STATUS_PATH, body("what?"))
    async with serving(api) as session:
        assert (await patch_status(session, STATUS)).outcome is Outcome.UNAVAILABLE


async def test_a_condition_is_merged_by_type_into_the_very_pod() -> None:
    api = FakeApi()
    api.answer("PATCH", f"{POD_PATH}/status", body({}))
    async with serving(api) as session:
        assert (await patch_condition(session, CONDITION)).outcome is Outcome.WRITTEN
    [asked] = api.asked
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert asked.body == {
        "metadata": {"uid": "u1"},
        "status": {
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "GangIncomplete", "message": "1 more"}]
        },
    }


async def test_a_condition_that_becomes_false_says_since_when() -> None:
    api = FakeApi()
    api.answer("PATCH", f"{POD_PATH}/status", body({}))
    async with serving(api) as session:
        await patch_condition(session, replace(CONDITION, since=1_000_000.5))
    [condition] = api.asked[0].body["status"]["conditions"]
    assert condition["lastTransitionTime"] == "1970-01-12T13:46:40Z"


async def test_a_message_that_quotes_something_long_is_cut() -> None:
    api = FakeApi()
    api.answer("PATCH", f"{POD_PATH}/status", body({}))
    async with serving(api) as session:
        await patch_condition(session, replace(CONDITION, message="x" * 300_000))
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
    api = FakeApi()
    api.answer("PATCH", f"{POD_PATH}/status", answer)
    async with serving(api) as session:
        assert (await patch_condition(session, CONDITION)).outcome is outcome


async def test_an_event_is_created_in_the_namespace_of_its_object() -> None:
    api = FakeApi()
    api.answer("POST", EVENTS_PATH, status(201))
    async with serving(api) as session:
        assert (await ApiWrites(session=session, instance="i", now=lambda: 0.5).emit(EVENT)).outcome is Outcome.WRITTEN
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
    api = FakeApi()
    api.answer("POST", EVENTS_PATH, status(404))
    async with serving(api) as session:
        assert (await emit_event(session, EVENT, now=0.0, reporting_instance="i")).outcome is Outcome.GONE
