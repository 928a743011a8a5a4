"""How the phase of a Volcano PodGroup is written, and when it is not."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import PutPhase
from gangsched.core.objects.podgroup import ForeignPhase
from gangsched.kube.client.lease import LeaseClient
from gangsched.kube.writing.volcano_phases import LOOK_S, SKEW_S, Rival, put_phase
from gangsched.kube.writing.write_results import Outcome, WriteResult
from tests.kube.fake_api import FakeApi, body, serving, status

PATH = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano"
EFFECT = PutPhase(GroupKey("ns", "g"), "u1", ForeignPhase.INQUEUE)
FREE = status(404, "leases volcano not found", reason="NotFound")
RENEWED = 1_700_000_000.0
"""The renew time in the Lease of these tests, as a timestamp."""


def lease(holder: str | None = "vc-1", renewed: str | None = "2023-11-14T22:13:20.000000Z", seconds: int = 15):
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": seconds}
    return body({"metadata": {"resourceVersion": "1"}, "spec": {key: value for key, value in spec.items() if value}})


async def put(api: FakeApi, *, now: float = RENEWED, times: int = 1, apart_s: float = 0.0) -> WriteResult:
    """The result of the last of `times` writes, with a fixed number of seconds between them."""
    clock = 0.0
    async with serving(api) as session:
        client = LeaseClient(session=session, namespace="volcano-system", name="volcano", essential=False)
        rival = Rival(client, lambda: now, lambda: clock)
        for _ in range(times):
            answer = await put_phase(session, EFFECT, rival=rival)
            clock += apart_s
    return answer


async def test_the_one_field_is_applied_to_the_status_under_our_name_and_without_force():
    api = FakeApi.answering("GET", LEASE, FREE)
    api.answer("PATCH", f"{PATH}/status", body({}))
    assert await put(api) == WriteResult(Outcome.WRITTEN)
    _, asked = api.asked
    assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
    assert asked.query["fieldManager"] == "gangsched"
    assert "force" not in asked.query
    assert asked.body == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns", "uid": "u1"},
        "status": {"phase": "Inqueue"},
    }


async def test_without_a_subresource_it_is_applied_to_the_object_itself():
    api = FakeApi.answering("GET", LEASE, FREE)
    api.answer("PATCH", f"{PATH}/status", status(404, "podgroups g not found", reason="NotFound"))
    api.answer("PATCH", PATH, body({}))
    assert await put(api) == WriteResult(Outcome.WRITTEN)
    assert api.asked[1].body == api.asked[2].body


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (409, 'Apply failed with 1 conflict: conflict with "vc-scheduler": .status.phase', Outcome.STALE),
        (409, "uid mismatch: the provided object specified uid u1, and no existing object was found", Outcome.STALE),
        (422, "metadata.uid: Invalid value: field is immutable", Outcome.GONE),
        (422, "status.phase: Unsupported value", Outcome.REFUSED),
        (403, "forbidden", Outcome.REFUSED),
        (503, "later", Outcome.UNAVAILABLE),
        (404, "the server could not find the requested resource", Outcome.GONE),
    ],
)
async def test_what_the_server_answers_decides_what_follows(code, said, expected):
    api = FakeApi.answering("GET", LEASE, FREE)
    api.answer("PATCH", f"{PATH}/status", status(404, "not found", reason="NotFound"))
    api.answer("PATCH", PATH, status(code, said))
    assert (await put(api)).result == expected


@pytest.mark.parametrize(
    ("found", "now", "written"),
    [
        (lease(), RENEWED, False),
        (lease(), RENEWED + 15 + SKEW_S - 1, False),
        (lease(), RENEWED + 15 + SKEW_S + 1, True),
        (lease(seconds=600), RENEWED + 15 + SKEW_S + 1, False),
        (lease(renewed=None), RENEWED + 1e9, False),
        (lease(renewed="yesterday"), RENEWED + 1e9, False),
        (lease(holder=""), RENEWED, True),
        (lease(holder=None), RENEWED, True),
        (body({"metadata": {"resourceVersion": "1"}}), RENEWED, True),
        (FREE, RENEWED, True),
    ],
)
async def test_nothing_is_written_while_somebody_holds_the_lease_of_volcanos_scheduler(found, now, written):
    api = FakeApi.answering("GET", LEASE, found)
    api.answer("PATCH", f"{PATH}/status", body({}))
    answer = await put(api, now=now)
    assert len(api.of("PATCH")) == written
    if not written:
        assert answer == WriteResult(
            Outcome.REFUSED,
            message="Volcano's scheduler leads (its Lease volcano-system/volcano is held by vc-1) and writes the "
            "phases of its PodGroups itself: empty volcano.writePhase, or stop that scheduler.",
        )


@pytest.mark.parametrize(
    ("answer", "result", "said"),
    [
        (status(403, "leases is forbidden", reason="Forbidden"), Outcome.REFUSED, "leases is forbidden"),
        (status(503, "later"), Outcome.UNAVAILABLE, "later"),
        (body({"metadata": {}}), Outcome.UNAVAILABLE, "A Lease cannot be read"),
    ],
)
async def test_nothing_is_written_while_the_lease_cannot_be_read(answer, result, said):
    api = FakeApi.answering("GET", LEASE, answer)
    found = await put(api)
    assert found.result == result
    assert said in found.message
    assert api.of("PATCH") == []


@pytest.mark.parametrize(("apart_s", "looks"), [(LOOK_S / 4, 1), (LOOK_S, 3)])
async def test_many_writes_look_at_the_lease_once_in_two_seconds(apart_s, looks):
    api = FakeApi.answering("GET", LEASE, *[FREE] * 3)
    api.answer("PATCH", f"{PATH}/status", *[body({})] * 3)
    await put(api, times=3, apart_s=apart_s)
    assert len(api.of("GET")) == looks
    assert len(api.of("PATCH")) == 3


async def test_a_leader_that_appears_between_two_writes_stops_the_second():
    api = FakeApi.answering("GET", LEASE, FREE, lease())
    api.answer("PATCH", f"{PATH}/status", body({}))
    assert (await put(api, times=2, apart_s=LOOK_S)).result == Outcome.REFUSED
    assert len(api.of("PATCH")) == 1
