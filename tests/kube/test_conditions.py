"""How the condition of a native PodGroup is written, and when it is not."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import PutCondition
from gangsched.core.objects.podgroup import GroupCondition
from gangsched.kube.writing.condition_writes import DENIED_S, PATIENCE_S, Right, put_condition
from gangsched.kube.writing.write_results import Outcome, WriteResult
from tests.kube.fake_api import FakeApi, body, serving, status

CONDITION = GroupCondition(scheduled=False, reason="Unschedulable", message="No room.", generation=3)

FORBIDDEN = (
    'podgroups.scheduling.k8s.io "g" is forbidden: User "system:serviceaccount:ns:gangsched" cannot patch '
    'resource "podgroups/status" in API group "scheduling.k8s.io" in the namespace "ns"'
)


def path(version: str) -> str:
    return f"/apis/scheduling.k8s.io/{version}/namespaces/ns/podgroups/g/status"


async def put(api: FakeApi, *effects: PutCondition, apart_s: float = 0.0) -> list[WriteResult]:
    """The results of these writes, or of one, with a fixed number of seconds between them."""
    clock = 0.0
    answers = []
    async with serving(api) as session:
        right = Right(lambda: clock)
        for effect in effects or (PutCondition(GroupKey("ns", "g"), "u1", CONDITION, "v1beta1"),):
            answers.append(await put_condition(session, effect, right=right))
            clock += apart_s
    return answers


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1beta1", "PodGroupInitiallyScheduled"),
        ("v1alpha3", "PodGroupInitiallyScheduled"),
        ("v1alpha2", "PodGroupScheduled"),
    ],
)
async def test_one_condition_is_patched_in_the_version_in_which_the_object_was_read(version, kind):
    api = FakeApi.answering("PATCH", path(version), body({}))
    sent = PutCondition(GroupKey("ns", "g"), "u1", CONDITION, version, since=1_700_000_000.0)
    assert await put(api, sent) == [WriteResult(Outcome.WRITTEN)]
    [asked] = api.asked
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert asked.body == {
        "metadata": {"uid": "u1"},
        "status": {
            "conditions": [
                {
                    "type": kind,
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "No room.",
                    "observedGeneration": 3,
                    "lastTransitionTime": "2023-11-14T22:13:20Z",
                }
            ]
        },
    }


async def test_the_time_stays_if_the_status_does():
    api = FakeApi.answering("PATCH", path("v1beta1"), body({}))
    await put(api)
    [asked] = api.asked
    assert "lastTransitionTime" not in asked.body["status"]["conditions"][0]


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (404, "podgroups g not found", Outcome.GONE),
        (409, "the object has been modified; please apply your changes to the latest version", Outcome.UNAVAILABLE),
        (422, "metadata.uid: Invalid value: field is immutable", Outcome.GONE),
        (422, "status.conditions[0].reason: Invalid value", Outcome.REFUSED),
        (503, "later", Outcome.UNAVAILABLE),
        (403, 'admission webhook "no.example.com" denied the request: not this one', Outcome.REFUSED),
    ],
)
async def test_what_the_server_answers_decides_what_follows(code, said, expected):
    api = FakeApi.answering("PATCH", path("v1beta1"), status(code, said))
    assert [answer.result for answer in await put(api)] == [expected]


@pytest.mark.parametrize(("apart_s", "requests"), [(1.0, 1), (DENIED_S + 1, 3)])
async def test_without_the_right_one_write_in_a_while_asks_whether_it_is_still_missing(apart_s, requests):
    api = FakeApi.answering("PATCH", path("v1beta1"), *[status(403, FORBIDDEN, reason="Forbidden")] * 3)
    effects = [PutCondition(GroupKey("ns", "g"), "u1", CONDITION, "v1beta1")] * 3
    answers = await put(api, *effects, apart_s=apart_s)
    assert {answer.result for answer in answers} == {Outcome.REFUSED}
    assert all("set native.writeCondition to false" in answer.message for answer in answers)
    assert len(api.asked) == requests


async def test_a_right_that_is_granted_later_is_used():
    api = FakeApi()
    forbidden = status(403, FORBIDDEN, reason="Forbidden")
    api.answer("PATCH", path("v1beta1"), forbidden, body({}), body({}))
    effects = [PutCondition(GroupKey("ns", "g"), "u1", CONDITION, "v1beta1")] * 3
    answers = await put(api, *effects, apart_s=DENIED_S + 1)
    assert [answer.result for answer in answers] == [Outcome.REFUSED, Outcome.WRITTEN, Outcome.WRITTEN]


@pytest.mark.parametrize(
    ("apart_s", "answers", "expected"),
    [
        (1.0, "+-++", "written, unavailable, written, written"),
        (PATIENCE_S / 2, "+---", "written, unavailable, unavailable, refused"),
        (PATIENCE_S, "+-+-", "written, unavailable, written, unavailable"),
    ],
)
async def test_a_right_that_there_was_is_missing_only_after_a_minute(apart_s, answers, expected):
    """A restarted API server denies it for some seconds."""
    api = FakeApi()
    denied = status(403, FORBIDDEN, reason="Forbidden")
    api.answer("PATCH", path("v1beta1"), *(body({}) if each == "+" else denied for each in answers))
    effects = [PutCondition(GroupKey("ns", "g"), "u1", CONDITION, "v1beta1")] * len(answers)
    results = [answer.result for answer in await put(api, *effects, apart_s=apart_s)]
    assert ", ".join(Outcome(each).name.lower() for each in results) == expected


async def test_what_an_admission_plug_in_refuses_says_nothing_about_other_groups():
    api = FakeApi()
    refused = status(403, 'admission webhook "no.example.com" denied the request: not this one', reason="Forbidden")
    api.answer("PATCH", path("v1beta1"), refused, body({}))
    answers = await put(api, *[PutCondition(GroupKey("ns", "g"), "u1", CONDITION, "v1beta1")] * 2)
    assert [answer.result for answer in answers] == [Outcome.REFUSED, Outcome.WRITTEN]
    assert "give its account that right" not in answers[0].message
