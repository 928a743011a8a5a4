"""palantir's Demand objects against a scripted API server: how they are watched, read, written and deleted."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from gangsched.core.objects.demands import DemandKey, DemandObject, DemandUnit, PoolDemand, SeenDemand
from gangsched.core.objects.effects import DropDemand, PutDemand
from gangsched.core.objects.events import DemandGone, DemandSeen, DemandsHidden, DemandsReplaced, Event
from gangsched.kube.client.discovery import Discovery
from gangsched.kube.client.session import ApiSession
from gangsched.kube.foreign.demand_objects import DEMANDS, demand_to_object
from gangsched.kube.foreign.watch import ForeignWatch
from gangsched.kube.writing.demand_writes import drop_demand, put_demand
from gangsched.kube.writing.write_results import Outcome
from tests.builders import GPU, amounts
from tests.kube.fake_api import FakeApi, Inbox, body, page, serving, status, stream

DISCOVERY = "/apis/scaler.palantir.com/v1alpha2"
LIST = f"{DISCOVERY}/demands"
PATH = f"{DISCOVERY}/namespaces/team/demands"
SERVED = body({"resources": [{"name": "demands"}, {"name": "demands/status"}]})
DEMAND = DemandObject(
    DemandKey("team", "demand-pi-driver"),
    "pi-driver",
    "d1",
    PoolDemand(
        instance_group="batch",
        units=(
            DemandUnit(4, amounts({"cpu": "1500m", "memory": "2Gi", GPU: 1})),
            DemandUnit(1, amounts({"cpu": "1"}), ("pi-driver",)),
        ),
    ),
)
IN_ZONE = replace(DEMAND, pool=replace(DEMAND.pool, single_zone=True, zone="z1"))


def found(demand: DemandObject = DEMAND, **spec: Any) -> dict[str, Any]:
    """The object as the API server returns it."""
    made = demand_to_object(demand)
    meta = {**made["metadata"], "uid": "u1", "resourceVersion": "7"}
    return {**made, "metadata": meta, "spec": {**made["spec"], **spec}, "status": {"phase": "pending"}}


def read(content: object) -> SeenDemand:
    version, value = DEMANDS.resource("v1alpha2").read(Raw(msgspec.json.encode(content)))
    assert version == "7"
    assert isinstance(value, SeenDemand)
    return value


def test_an_object_says_what_palantirs_autoscaler_reads():
    assert demand_to_object(IN_ZONE) == {
        "apiVersion": "scaler.palantir.com/v1alpha2",
        "kind": "Demand",
        "metadata": {
            "name": "demand-pi-driver",
            "namespace": "team",
            "labels": {"gangsched.io/created-by": "gangsched"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "pi-driver", "uid": "d1", "controller": True}
            ],
        },
        "spec": {
            "instance-group": "batch",
            "is-long-lived": False,
            "enforce-single-zone-scheduling": True,
            "zone": "z1",
            "units": [
                {"count": 4, "resources": {"cpu": "1500m", "memory": "2147483648", GPU: "1"}},
                {"count": 1, "resources": {"cpu": "1000m"}, "pod-names-by-namespace": {"team": ["pi-driver"]}},
            ],
        },
    }


@pytest.mark.parametrize("demand", [DEMAND, IN_ZONE])
def test_what_was_written_is_read_back_as_it_was_meant(demand):
    assert read(found(demand)) == SeenDemand("u1", demand)


def test_equal_amounts_in_other_words_are_equal():
    unit = {"count": 1, "resources": {"cpu": 1, "memory": "0"}, "pod-names-by-namespace": {"team": ["b", "a"]}}
    assert read(found(units=[unit])).demand.pool.units == (DemandUnit(1, amounts({"cpu": "1"}), ("a", "b")),)


@pytest.mark.parametrize("units", ["many", [{"count": "x"}], [{"count": 1, "resources": {"cpu": "much"}}]])
def test_what_cannot_be_read_is_nothing_that_anybody_wants(units):
    seen = read(found(units=units))
    assert (seen.uid, seen.demand.key) == ("u1", DEMAND.key)
    assert seen.demand.pool == PoolDemand(instance_group="", units=())


async def watched(session: ApiSession, count: int) -> list[Event]:
    """The first `count` events of a watch."""
    inbox = Inbox()
    discovery = Discovery(session, every_s=0.01)
    watch = ForeignWatch(session, DEMANDS, inbox.post, observer=inbox, discovery=discovery, retry_s=0.01)
    task = asyncio.create_task(watch.run())
    await inbox.until(lambda: len(inbox.events) >= count)
    task.cancel()
    await asyncio.wait([task])
    assert set(inbox.counted) <= {"demands.scaler.palantir.com"}
    return inbox.events


async def test_those_with_our_label_are_listed_and_watched():
    api = FakeApi.answering("GET", DISCOVERY, SERVED)
    api.answer("GET", LIST, page([found()], 7))
    changes = ({"type": "MODIFIED", "object": found(IN_ZONE)}, {"type": "DELETED", "object": found(IN_ZONE)})
    api.answer("WATCH", LIST, stream(*changes, then="hang"))
    async with serving(api) as session:
        events = await watched(session, 3)
    assert events == [
        DemandsReplaced((SeenDemand("u1", DEMAND),)),
        DemandSeen(SeenDemand("u1", IN_ZONE)),
        DemandGone(DEMAND.key),
    ]
    asked = [each.query["labelSelector"] for each in api.asked if each.path == LIST]
    assert asked == ["gangsched.io/created-by=gangsched"] * 2


async def test_without_the_kind_it_is_silent_until_discovery_lists_it(caplog):
    api = FakeApi.answering("GET", DISCOVERY, status(404, "the server could not find the requested resource"), SERVED)
    listed = {"groups": [{"versions": [{"groupVersion": "scaler.palantir.com/v1alpha2"}]}]}
    api.answer("GET", "/apis", body({"groups": []}), body(listed))
    api.answer("GET", LIST, page([found()], 7))
    api.answer("WATCH", LIST, stream(then="hang"))
    async with serving(api) as session:
        events = await watched(session, 2)
    assert events == [DemandsHidden(), DemandsReplaced((SeenDemand("u1", DEMAND),))]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def outcome(api: FakeApi, effect: PutDemand | DropDemand) -> str:
    async with serving(api) as session:
        if isinstance(effect, PutDemand):
            return (await put_demand(session, effect)).result
        return (await drop_demand(session, effect)).result


async def test_a_new_one_is_created():
    api = FakeApi.answering("POST", PATH, body({}, 201))
    assert await outcome(api, PutDemand(DEMAND)) is Outcome.WRITTEN
    assert api.asked[0].body == demand_to_object(DEMAND)


async def test_another_content_replaces_the_former_in_the_very_object():
    api = FakeApi.answering("PATCH", f"{PATH}/demand-pi-driver", body({}))
    assert await outcome(api, PutDemand(DEMAND, "u1")) is Outcome.WRITTEN
    (asked,) = api.asked
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert asked.body["metadata"]["uid"] == "u1"
    assert asked.body["spec"] == {**demand_to_object(DEMAND)["spec"], "zone": None}


async def test_it_is_deleted_only_if_it_is_the_very_one():
    api = FakeApi.answering("DELETE", f"{PATH}/demand-pi-driver", body({}))
    assert await outcome(api, DropDemand(DEMAND.key, "u1")) is Outcome.WRITTEN
    assert api.asked[0].body["preconditions"] == {"uid": "u1"}


@pytest.mark.parametrize(
    ("effect", "code", "said", "expected"),
    [
        (PutDemand(DEMAND), 409, "already exists", Outcome.STALE),
        (PutDemand(DEMAND), 404, "the server could not find the requested resource", Outcome.GONE),
        (PutDemand(DEMAND), 403, "forbidden", Outcome.REFUSED),
        (PutDemand(DEMAND), 503, "later", Outcome.UNAVAILABLE),
        (PutDemand(DEMAND, "u1"), 422, "metadata.uid: Invalid value: field is immutable", Outcome.GONE),
        (PutDemand(DEMAND, "u1"), 422, "spec.units: Invalid value", Outcome.REFUSED),
        (PutDemand(DEMAND, "u1"), 404, "not found", Outcome.GONE),
        (PutDemand(DEMAND, "u1"), 409, "Conflict", Outcome.UNAVAILABLE),
        (DropDemand(DEMAND.key, "u1"), 409, "the UID in the precondition", Outcome.GONE),
        (DropDemand(DEMAND.key, "u1"), 404, "not found", Outcome.GONE),
        (DropDemand(DEMAND.key, "u1"), 403, "forbidden", Outcome.REFUSED),
        (DropDemand(DEMAND.key, "u1"), 500, "ill", Outcome.UNAVAILABLE),
    ],
)
async def test_what_is_not_written_is_sorted_by_what_helps(effect, code, said, expected):
    api = FakeApi()
    method = "DELETE" if isinstance(effect, DropDemand) else "PATCH" if effect.uid else "POST"
    api.answer(method, PATH if method == "POST" else f"{PATH}/demand-pi-driver", status(code, said))
    assert await outcome(api, effect) is expected
