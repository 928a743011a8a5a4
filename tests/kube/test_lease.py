from __future__ import annotations

import asyncio

import pytest

from gangsched.kube.client.errors import ApiError, ApiUnreachable, Garbled
from gangsched.kube.client.lease import Lease, LeaseClient, LeaseSpec
from tests.kube.fake_api import FakeApi, body, serving, status

FOLDER = "/apis/coordination.k8s.io/v1/namespaces/sys/leases"
PATH = f"{FOLDER}/gangsched"
SPEC = LeaseSpec(
    holder_identity="me",
    lease_duration_seconds=15,
    acquire_time="2026-01-01T00:00:00.000000Z",
    renew_time="2026-01-01T00:00:02.000000Z",
    lease_transitions=1,
)
WRITTEN = {
    "holderIdentity": "me",
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-01-01T00:00:00.000000Z",
    "renewTime": "2026-01-01T00:00:02.000000Z",
    "leaseTransitions": 1,
}
OBJECT = {"metadata": {"name": "gangsched", "resourceVersion": "7", "labels": {"a": "b"}}, "spec": WRITTEN}


@pytest.fixture
async def api():
    return FakeApi()


@pytest.fixture
async def leases(api):
    async with serving(api) as session:
        yield LeaseClient(session=session, namespace="sys", name="gangsched")


async def test_a_lease_is_read_with_its_version(api, leases):
    api.answer("GET", PATH, body(OBJECT))
    assert await leases.get(timeout_s=5) == Lease("7", SPEC)


async def test_a_lease_that_does_not_exist_is_none(api, leases):
    api.answer("GET", PATH, status(404, reason="NotFound"))
    assert await leases.get(timeout_s=5) is None


@pytest.mark.parametrize("spec", [{}, {"spec": None}, {"spec": {}}, {"spec": {"holderIdentity": None}}])
async def test_a_lease_that_nobody_has_filled_in_is_one_without_a_holder(api, leases, spec):
    api.answer("GET", PATH, body({"metadata": {"resourceVersion": "7"}} | spec))
    assert await leases.get(timeout_s=5) == Lease("7", LeaseSpec())


async def test_it_is_created_whole(api, leases):
    api.answer("POST", FOLDER, body(OBJECT, 201))
    assert await leases.create(SPEC, timeout_s=5) == Lease("7", SPEC)
    (asked,) = api.asked
    assert asked.body == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "gangsched", "namespace": "sys", "labels": {"app.kubernetes.io/name": "gangsched"}},
        "spec": WRITTEN,
    }


async def test_a_change_names_the_version_it_was_made_from_and_leaves_the_rest_of_the_object_alone(api, leases):
    api.answer("PATCH", PATH, body(OBJECT))
    assert await leases.update(SPEC, version="6", timeout_s=5) == Lease("7", SPEC)
    (asked,) = api.asked
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert asked.body == {"metadata": {"resourceVersion": "6"}, "spec": WRITTEN}


async def test_each_write_sets_the_annotations(api):
    api.answer("POST", FOLDER, body(OBJECT, 201))
    api.answer("PATCH", PATH, body(OBJECT))
    async with serving(api) as session:
        leases = LeaseClient(session=session, namespace="sys", name="gangsched", annotations={"a": "b"})
        await leases.create(SPEC, timeout_s=5)
        await leases.update(SPEC, version="6", timeout_s=5)
    created, updated = [asked.body["metadata"] for asked in api.asked]
    assert created["annotations"] == {"a": "b"}
    assert updated == {"resourceVersion": "6", "annotations": {"a": "b"}}


@pytest.mark.parametrize("code", [403, 409, 422, 429, 500, 503])
async def test_a_refusal_is_raised_with_its_status(api, leases, code):
    api.answer("PATCH", PATH, status(code, "no"))
    with pytest.raises(ApiError) as refused:
        await leases.update(SPEC, version="6", timeout_s=5)
    assert refused.value.status == code


async def test_no_call_lasts_longer_than_it_may(api, leases):
    async def hang(_):
        await asyncio.Event().wait()

    api.answer("GET", PATH, hang)
    with pytest.raises(ApiUnreachable):
        await leases.get(timeout_s=0.05)


@pytest.mark.parametrize("content", [[], {"metadata": {}}, {"metadata": {"resourceVersion": "7"}, "spec": []}])
async def test_an_answer_that_is_no_lease_is_told(api, leases, content):
    api.answer("GET", PATH, body(content))
    with pytest.raises(Garbled, match="A Lease cannot be read"):
        await leases.get(timeout_s=5)


async def test_names_are_quoted(api):
    async with serving(api) as session:
        api.answer("GET", "/apis/coordination.k8s.io/v1/namespaces/a%2Fb/leases/c%3Fd", status(404))
        assert await LeaseClient(session=session, namespace="a/b", name="c?d").get(timeout_s=5) is None
