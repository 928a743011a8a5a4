from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from gangsched.core.objects.effects import EvictPod
from gangsched.core.objects.results import EvictionRefused, PodEvicted, Spared
from gangsched.kube.writing.evictions import evict
from tests.kube.fake_api import Answer, FakeApi, body, dropped, serving, status

POD_PATH = "/api/v1/namespaces/team/pods/a-0"
EVICTION_PATH = f"{POD_PATH}/eviction"
EVICT = EvictPod(uid="u1", namespace="team", name="a-0")
EVICTED = PodEvicted(uid="u1")
NEEDS = "The disruption budget b1 needs 1 healthy pods and has 1 currently"
PROCESSING = "The disruption budget b1 is still being processed by the server."
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
OTHER_UID = (
    'Operation cannot be fulfilled on Pod "a-0": the UID in the precondition (u1) does not match the UID in record'
    " (u2). The object might have been deleted and then recreated"
)

THERE = body({"metadata": {"name": "a-0", "uid": "u1"}})
NAMESAKE = body({"metadata": {"name": "a-0", "uid": "u2"}})
TERMINATING = body({"metadata": {"name": "a-0", "uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z"}})


def too_many(*causes: Any, retry_after: str | None = None) -> Answer:
    """A 429 as the real API server words it."""

    async def answer(_: web.Request) -> web.StreamResponse:
        told = {
            "kind": "Status",
            "status": "Failure",
            "message": "Cannot evict pod as it would violate the pod's disruption budget.",
            "reason": "TooManyRequests",
            "details": {"causes": list(causes)},
            "code": 429,
        }
        return web.json_response(told, status=429, headers={"Retry-After": retry_after} if retry_after else None)

    return answer


def budget(message: str | None = NEEDS) -> dict[str, str | None]:
    return {"reason": "DisruptionBudget", "message": message}


async def asked_of(api: FakeApi) -> PodEvicted | EvictionRefused:
    async with serving(api) as session:
        found = await evict(session, EVICT)
    assert isinstance(found.event, PodEvicted | EvictionRefused)
    assert found.done == isinstance(found.event, PodEvicted) == (not found.message)
    return found.event


async def test_an_eviction_is_of_the_very_pod_and_bounded_on_the_server() -> None:
    api = FakeApi.answering("POST", EVICTION_PATH, status(201))
    assert await asked_of(api) == EVICTED
    [asked] = api.asked
    assert asked.query == {"timeout": "4s"}
    assert asked.body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a-0", "namespace": "team"},
        "deleteOptions": {"preconditions": {"uid": "u1"}},
    }


async def test_a_pod_that_is_gone_counts_as_evicted_without_another_question() -> None:
    api = FakeApi.answering("POST", EVICTION_PATH, status(404))
    assert await asked_of(api) == EVICTED
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (301, Spared.FORBIDDEN),
        (400, Spared.FORBIDDEN),
        (401, Spared.UNAVAILABLE),
        (403, Spared.FORBIDDEN),
        (405, Spared.FORBIDDEN),
        (408, Spared.UNAVAILABLE),
        (422, Spared.FORBIDDEN),
        (429, Spared.UNAVAILABLE),
    ],
)
async def test_a_refusal_that_leaves_nothing_open_is_sorted_by_its_status(code: int, why: Spared) -> None:
    api = FakeApi.answering("POST", EVICTION_PATH, status(code, "because", reason="Why", headers={"Retry-After": "3"}))
    found = await asked_of(api)
    retry_after_s = 3.0 if why is Spared.UNAVAILABLE else 0.0
    assert found == EvictionRefused(uid="u1", why=why, message=f"{code} Why: because", retry_after_s=retry_after_s)
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    ("answer", "message", "retry_after_s"),
    [
        (too_many(budget()), NEEDS, 0.0),
        (too_many(budget(PROCESSING), retry_after="10"), PROCESSING, 10.0),
        (too_many({"reason": "Other"}, budget("one"), budget("two")), "one; two", 0.0),
        (too_many(budget(None)), "a PodDisruptionBudget forbids it", 0.0),
        (too_many(budget("no\n2026 ERROR forged")), "no\\n2026 ERROR forged", 0.0),
    ],
)
async def test_a_disruption_budget_is_told_in_its_own_words(answer: Answer, message: str, retry_after_s: float) -> None:
    api = FakeApi.answering("POST", EVICTION_PATH, answer)
    api.answer("GET", POD_PATH, THERE)
    found = await asked_of(api)
    assert found == EvictionRefused(uid="u1", why=Spared.BUDGET, message=message, retry_after_s=retry_after_s)


@pytest.mark.parametrize(
    "answer",
    [
        too_many(),
        too_many({"reason": "Other", "message": "m"}),
        too_many("odd"),
        body("too many requests, please try again later", 429),
        body({"details": None}, 429),
        body({"details": {"causes": None}}, 429),
    ],
)
async def test_throttling_is_no_disruption_budget(answer: Answer) -> None:
    api = FakeApi.answering("POST", EVICTION_PATH, answer)
    found = await asked_of(api)
    assert isinstance(found, EvictionRefused)
    assert found.why is Spared.UNAVAILABLE
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    ("answer", "lasting"),
    [
        (status(409, OTHER_UID, reason="Conflict"), Spared.UNAVAILABLE),
        (status(409, "the object has been modified", reason="Conflict"), Spared.UNAVAILABLE),
        (status(500, "etcdserver: request timed out"), Spared.UNAVAILABLE),
        (status(500, SEVERAL), Spared.FORBIDDEN),
        (status(503), Spared.UNAVAILABLE),
        (status(504), Spared.UNAVAILABLE),
        (dropped(), Spared.UNAVAILABLE),
        (too_many(budget()), Spared.BUDGET),
    ],
)
@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (status(404), EVICTED),
        (NAMESAKE, EVICTED),
        (TERMINATING, EVICTED),
        (THERE, None),
        (status(403), None),
        (status(500), None),
        (body("no pod"), None),
    ],
)
async def test_where_the_answer_leaves_it_open_the_pod_tells(
    answer: Answer, lasting: Spared, seen: Answer, expected: PodEvicted | None
) -> None:
    """The server checks budgets before it compares UIDs, so even such a refusal may concern another pod of the name."""
    api = FakeApi.answering("POST", EVICTION_PATH, answer)
    api.answer("GET", POD_PATH, seen)
    found = await asked_of(api)
    if expected is not None:
        assert found == expected
    else:
        assert isinstance(found, EvictionRefused)
        assert found.why is lasting
    assert [asked.method for asked in api.asked] == ["POST", "GET"]
