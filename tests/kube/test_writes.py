from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.effects import BindPod, EmitEvent, PatchPodCondition, PatchStatus
from gangsched.core.events import BindRefused, PodBound, Refused
from gangsched.core.model import GroupKey, GroupStatus
from gangsched.kube.credentials import Connection
from gangsched.kube.session import ApiSession
from gangsched.kube.writes import Answer, ApiWrites, Outcome, bind, emit_event, patch_condition, patch_status
from tests.kube.fake_api import FakeApi, body, dropped, serving, status, stream

POD_PATH = "/api/v1/namespaces/team/pods/a-0"
BIND_PATH = f"{POD_PATH}/binding"
STATUS_PATH = "/apis/gangsched.io/v1alpha1/namespaces/team/podgroups/g/status"
EVENTS_PATH = "/apis/events.k8s.io/v1/namespaces/team/events"
BIND = BindPod(uid="u1", namespace="team", name="a-0", node="n1")
STATUS = PatchStatus(key=GroupKey("team", "g"), uid="g1", status=GroupStatus(phase="Queued", members=3))
CONDITION = PatchPodCondition(uid="u1", namespace="team", name="a-0", reason="GangIncomplete", message="1 more")
EVENT = EmitEvent(
    kind="PodGroup", namespace="team", name="g", uid="g1", type="Normal", reason="Scheduled", action="Bind", note="n"
)


def pod(*, uid: str = "u1", node: str | None = None, deleted: str | None = None, gates: Any = None) -> Any:
    return {
        "metadata": {"name": "a-0", "uid": uid, "deletionTimestamp": deleted},
        "spec": {"nodeName": node, "schedulingGates": gates},
    }


async def nobody_listening() -> ApiSession:
    async def authorization() -> str | None:
        return None

    return ApiSession(Connection(server="http://127.0.0.1:9", authorization=authorization))


async def test_a_binding_carries_the_uid_and_is_bounded_on_the_server() -> None:
    api = FakeApi()
    api.answer("POST", BIND_PATH, status(201))
    async with serving(api) as session:
        assert await bind(session, BIND) == PodBound(uid="u1", node="n1")
    [asked] = api.asked
    assert asked.query == {"timeout": "4s"}
    assert asked.headers["Authorization"] == "Bearer of-tests"
    assert asked.body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a-0", "namespace": "team", "uid": "u1"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (400, Refused.FORBIDDEN),
        (401, Refused.UNAVAILABLE),
        (403, Refused.FORBIDDEN),
        (404, Refused.GONE),
        (408, Refused.UNAVAILABLE),
        (422, Refused.FORBIDDEN),
        (429, Refused.UNAVAILABLE),
    ],
)
async def test_a_refusal_that_leaves_nothing_open_is_sorted_by_its_status(code: int, why: Refused) -> None:
    api = FakeApi()
    api.answer("POST", BIND_PATH, status(code, "because", reason="Why", headers={"Retry-After": "3"}))
    async with serving(api) as session:
        found = await bind(session, BIND)
    assert isinstance(found, BindRefused)
    assert (found.uid, found.node, found.why, found.message) == ("u1", "n1", why, f"{code} Why: because")
    assert found.retry_after_s == (3.0 if why is Refused.UNAVAILABLE else 0.0)
    assert len(api.asked) == 1


@pytest.mark.parametrize("failure", [status(409), status(500), status(503), status(504), dropped()])
@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (body(pod(node="n1")), None),
        (body(pod(node="n1", deleted="2026-01-01T00:00:00Z")), None),
        (body(pod(node="n2")), Refused.CONFLICT),
        (body(pod(gates=[{"name": "g"}])), Refused.CONFLICT),
        (body(pod(uid="u2", node="n1")), Refused.GONE),
        (body(pod(deleted="2026-01-01T00:00:00Z")), Refused.GONE),
        (status(404), Refused.GONE),
        (body(pod()), Refused.UNAVAILABLE),
        (status(500), Refused.UNAVAILABLE),
        (body("no pod"), Refused.UNAVAILABLE),
    ],
)
async def test_where_the_answer_leaves_it_open_the_pod_tells(failure: Any, seen: Any, expected: Refused | None) -> None:
    api = FakeApi()
    api.answer("POST", BIND_PATH, failure)
    api.answer("GET", POD_PATH, seen)
    async with serving(api) as session:
        found = await bind(session, BIND)
    if expected is None:
        assert found == PodBound(uid="u1", node="n1")
    else:
        assert isinstance(found, BindRefused)
        assert found.why is expected
    assert [asked.method for asked in api.asked] == ["POST", "GET"]


async def test_a_binding_whose_reply_was_lost_is_found_to_stand() -> None:
    api = FakeApi()
    api.answer("POST", BIND_PATH, dropped(after=lambda: api.answer("GET", POD_PATH, body(pod(node="n1")))))
    async with serving(api) as session:
        assert await bind(session, BIND) == PodBound(uid="u1", node="n1")


async def test_what_the_server_asks_to_wait_is_kept_after_a_failure() -> None:
    api = FakeApi()
    api.answer("POST", BIND_PATH, status(503, headers={"Retry-After": "2"}))
    api.answer("GET", POD_PATH, status(503))
    async with serving(api) as session:
        found = await bind(session, BIND)
    assert isinstance(found, BindRefused)
    assert (found.why, found.retry_after_s) == (Refused.UNAVAILABLE, 2.0)


async def test_a_server_that_is_not_there_makes_every_write_unavailable() -> None:
    session = await nobody_listening()
    writes = ApiWrites(session=session, instance="i")
    bound = await writes.bind(BIND)
    answers = [await writes.patch_status(STATUS), await writes.patch_condition(CONDITION), await writes.emit(EVENT)]
    await session.close()
    assert isinstance(bound, BindRefused)
    assert bound.why is Refused.UNAVAILABLE
    assert "cannot be reached" in bound.message
    assert [answer.outcome for answer in answers] == [Outcome.UNAVAILABLE] * 3


async def test_names_cannot_lead_out_of_their_place_in_the_path() -> None:
    api = FakeApi()
    api.answer("POST", "/api/v1/namespaces/..%2Fx/pods/a%2F..%2F%3Fb%23/binding", status(201))
    async with serving(api) as session:
        effect = BindPod(uid="u", namespace="../x", name="a/../?b#", node="n1")
        assert await bind(session, effect) == PodBound(uid="u", node="n1")


async def test_a_message_of_the_server_stays_on_one_line() -> None:
    api = FakeApi()
    api.answer("POST", BIND_PATH, status(403, "no\n2026 ERROR forged\x1b[31m", reason="Forbidden"))
    async with serving(api) as session:
        found = await bind(session, BIND)
    assert isinstance(found, BindRefused)
    assert found.message == "403 Forbidden: no\\n2026 ERROR forged\\x1b[31m"


async def test_a_status_is_written_as_a_merge_patch_of_the_whole() -> None:
    api = FakeApi()
    api.answer("PATCH", STATUS_PATH, body({"metadata": {"uid": "g1", "resourceVersion": "77"}}))
    async with serving(api) as session:
        assert await patch_status(session, STATUS) == Answer(Outcome.WRITTEN, resource_version="77")
    [asked] = api.asked
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert "metadata" not in asked.body
    assert asked.body["status"]["phase"] == "Queued"
    assert asked.body["status"]["reservation"] is None


async def test_a_reservation_is_written_on_condition_of_its_version() -> None:
    api = FakeApi()
    api.answer("PATCH", STATUS_PATH, body({"metadata": {"uid": "g1", "resourceVersion": "78"}}))
    conditional = PatchStatus(key=STATUS.key, uid="g1", status=STATUS.status, resource_version="77")
    async with serving(api) as session:
        await patch_status(session, conditional)
    assert api.asked[0].body["metadata"] == {"resourceVersion": "77"}


async def test_a_status_that_a_namesake_took_is_told_as_gone() -> None:
    api = FakeApi()
    api.answer("PATCH", STATUS_PATH, body({"metadata": {"uid": "g2", "resourceVersion": "78"}}))
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
    api.answer("PATCH", f"{POD_PATH}/status", body(pod()))
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
    api.answer("PATCH", f"{POD_PATH}/status", body(pod()))
    async with serving(api) as session:
        await patch_condition(session, replace(CONDITION, since=1_000_000.5))
    [condition] = api.asked[0].body["status"]["conditions"]
    assert condition["lastTransitionTime"] == "1970-01-12T13:46:40Z"


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


async def test_an_answer_that_does_not_come_in_time_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gangsched.kube.writes._BIND_TIMEOUT_S", 0.05)
    api = FakeApi()
    api.answer("POST", BIND_PATH, stream(then="hang"))
    api.answer("GET", POD_PATH, stream(then="hang"))
    async with serving(api) as session:
        found = await bind(session, BIND)
    assert isinstance(found, BindRefused)
    assert found.why is Refused.UNAVAILABLE
