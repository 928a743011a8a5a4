from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import Event
from gangsched.core.objects.results import BindRefused, PodBound, Refused
from gangsched.kube.writing.binding import bind
from tests.kube.fake_api import FakeApi, body, dropped, serving, status, stream

POD_PATH = "/api/v1/namespaces/team/pods/a-0"
BIND_PATH = f"{POD_PATH}/binding"
BIND = BindPod(uid="u1", namespace="team", name="a-0", node="n1")


def pod(*, uid: str = "u1", node: str | None = None, deleted: str | None = None, gates: Any = None) -> Any:
    return {
        "metadata": {"name": "a-0", "uid": uid, "deletionTimestamp": deleted},
        "spec": {"nodeName": node, "schedulingGates": gates},
    }


async def asked_of(api: FakeApi, effect: BindPod = BIND) -> Event | None:
    """The result of the binding."""
    async with serving(api) as session:
        return (await bind(session, effect)).event


async def test_a_binding_carries_the_uid_and_is_bounded_on_the_server() -> None:
    api = FakeApi.answering("POST", BIND_PATH, status(201))
    assert await asked_of(api) == PodBound(uid="u1", node="n1")
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
    api = FakeApi.answering("POST", BIND_PATH, status(code, "because", reason="Why", headers={"Retry-After": "3"}))
    found = await asked_of(api)
    assert isinstance(found, BindRefused)
    assert (found.uid, found.node, found.why, found.message) == ("u1", "n1", why, f"{code} Why: because")
    assert found.retry_after_s == (3.0 if why is Refused.UNAVAILABLE else 0.0)
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    ("message", "causes", "why"),
    [
        ("being terminated", [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}], Refused.DENIED),
        (
            'pods is forbidden: User "x" cannot create resource "pods/binding" in API group "" in the namespace "n"',
            None,
            Refused.UNAVAILABLE,
        ),
        ("ValidatingAdmissionPolicy 'p' denied request: being terminated", [{"message": "p"}], Refused.FORBIDDEN),
    ],
)
async def test_a_refusal_that_no_node_can_help_is_told_from_one_that_may_be_the_nodes(
    message: str, causes: Any, why: Refused
) -> None:
    """A restarted server denies every binding for some seconds: that is neither permanent nor due to the node."""
    api = FakeApi()
    answer = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message, "details": {"causes": causes}}
    api.answer("POST", BIND_PATH, body(answer, code=403))
    found = await asked_of(api)
    assert isinstance(found, BindRefused)
    assert (found.why, found.message) == (why, f"403 Forbidden: {message}")


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
    api = FakeApi.answering("POST", BIND_PATH, failure)
    api.answer("GET", POD_PATH, seen)
    found = await asked_of(api)
    if expected is None:
        assert found == PodBound(uid="u1", node="n1")
    else:
        assert isinstance(found, BindRefused)
        assert found.why is expected
    assert [asked.method for asked in api.asked] == ["POST", "GET"]


async def test_what_the_server_asks_to_wait_is_kept_after_a_failure() -> None:
    api = FakeApi.answering("POST", BIND_PATH, status(503, headers={"Retry-After": "2"}))
    api.answer("GET", POD_PATH, status(503))
    found = await asked_of(api)
    assert isinstance(found, BindRefused)
    assert (found.why, found.retry_after_s) == (Refused.UNAVAILABLE, 2.0)


async def test_names_cannot_lead_out_of_their_place_in_the_path() -> None:
    api = FakeApi.answering("POST", "/api/v1/namespaces/..%2Fx/pods/a%2F..%2F%3Fb%23/binding", status(201))
    effect = BindPod(uid="u", namespace="../x", name="a/../?b#", node="n1")
    assert await asked_of(api, effect) == PodBound(uid="u", node="n1")


async def test_an_answer_that_does_not_come_in_time_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gangsched.kube.writing.sending.TIMEOUT_S", 0.05)
    api = FakeApi.answering("POST", BIND_PATH, stream(then="hang"))
    api.answer("GET", POD_PATH, stream(then="hang"))
    found = await asked_of(api)
    assert isinstance(found, BindRefused)
    assert found.why is Refused.UNAVAILABLE
