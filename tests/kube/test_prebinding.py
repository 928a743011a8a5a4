"""Pre-bindings against a scripted API server: the meaning of each answer."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from gangsched.core.objects.devices import AllocatedDevice, Allocation, Consumer, Making
from gangsched.core.objects.effects import Prebind, UndoPrebinding
from gangsched.core.objects.prebindings import ClaimVolume, Prebinding, SelectNode, UseDevices
from gangsched.core.objects.results import PrebindRefused
from gangsched.kube.reading.storage_values import MARK, SELECTED_NODE
from gangsched.kube.wire.device_objects import EXTENDED
from gangsched.kube.writing.claiming import FINALIZER
from gangsched.kube.writing.prebinding_writes import prebind, undo_prebinding
from gangsched.kube.writing.write_results import Outcome, WriteResult
from tests.kube.fake_api import Asked, FakeApi, body, dropped, serving, status

Json = dict[str, Any]

CLAIM = "/api/v1/namespaces/team/persistentvolumeclaims/data"
VOLUME = "/api/v1/persistentvolumes/pv"
DEVICES = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/gpu"
SELECT = SelectNode("team", "data", "u1", "n1")
BIND = ClaimVolume("pv", "team", "data", "u1")
USE = UseDevices("team", "gpu", "u1", Consumer("w-0", "p1"), Allocation((AllocatedDevice("gpu", ("d", "pool", "x")),)))
MADE = msgspec.structs.replace(USE, uid="", making=Making((("gpu", "gpu", 1),)))
"""The same for a claim that is made for the pod."""
OURS: Json = {"annotations": {MARK: "p1"}, "finalizers": [FINALIZER]}
HAD: Json = {
    "allocation": {"devices": {"results": [{"request": "gpu", "driver": "d", "pool": "pool", "device": "x"}]}},
    "reservedFor": [{"resource": "pods", "name": "w-0", "uid": "p1"}],
}


def shown(*, spec: Json | None = None, state: Json | None = None, version: str = "7", **meta: Any) -> Json:
    return {
        "metadata": {"uid": "u1", "resourceVersion": version, **meta},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {}}]}} | (spec or {}),
        "status": state or {},
    }


def written(api: FakeApi, what: Prebinding) -> WriteResult:
    async def run() -> WriteResult:
        async with serving(api) as session:
            return await prebind(session, Prebind("p1", what))

    return asyncio.run(run())


def undone(api: FakeApi, what: Prebinding) -> WriteResult:
    async def run() -> WriteResult:
        async with serving(api) as session:
            return await undo_prebinding(session, UndoPrebinding(what))

    return asyncio.run(run())


def patches(api: FakeApi) -> list[Asked]:
    return api.of("PATCH")


def test_a_node_is_selected_on_condition_that_nothing_has_changed():
    api = FakeApi.answering("GET", CLAIM, body(shown()))
    api.answer("PATCH", CLAIM, body({}))
    assert written(api, SELECT) == WriteResult(Outcome.WRITTEN)
    [patch] = patches(api)
    assert patch.body == {
        "metadata": {"annotations": {SELECTED_NODE: "n1", MARK: "p1"}, "resourceVersion": "7", "uid": "u1"}
    }


def test_an_object_that_another_has_changed_is_read_again_at_once():
    api = FakeApi.answering("GET", CLAIM, body(shown()), body(shown(version="8")))
    api.answer("PATCH", CLAIM, status(409), body({}))
    assert written(api, SELECT).done
    assert [each.body["metadata"]["resourceVersion"] for each in patches(api)] == ["7", "8"]


def test_an_object_that_others_change_all_the_time_is_left_for_later():
    api = FakeApi.answering("GET", CLAIM, *[body(shown())] * 9)
    api.answer("PATCH", CLAIM, *[status(409)] * 9)
    answer = written(api, SELECT)
    assert answer.passing
    assert len(patches(api)) == 8
    assert "PersistentVolumeClaim team/data" in answer.message


@pytest.mark.parametrize(
    "found",
    [
        shown(uid="another"),
        shown(spec={"volumeName": "pv"}),
        shown(annotations={SELECTED_NODE: "n2"}),
    ],
    ids=["made again", "bound", "selected by another"],
)
def test_a_claim_that_is_not_as_expected_is_left_alone(found):
    api = FakeApi.answering("GET", CLAIM, body(found))
    answer = written(api, SELECT)
    assert answer.result == Outcome.STALE
    assert patches(api) == []
    assert "is no longer as expected" in answer.message


def test_what_cannot_be_read_is_said():
    api = FakeApi.answering("GET", CLAIM, body({"metadata": {}}))
    answer = written(api, SELECT)
    assert not answer.done
    assert "cannot be read" in answer.message


def test_a_volume_is_claimed_only_while_it_is_available_and_unclaimed():
    api = FakeApi()
    api.answer("GET", VOLUME, body(shown(state={"phase": "Available"})), body(shown(state={"phase": "Bound"})))
    api.answer("PATCH", VOLUME, body({}))
    assert written(api, BIND).done
    [patch] = patches(api)
    assert patch.body["spec"]["claimRef"]["uid"] == "u1"
    assert written(api, BIND).result == Outcome.STALE


def test_devices_are_written_after_finalizer_and_mark():
    api = FakeApi.answering("GET", DEVICES, body(shown()), body(shown(version="8", **OURS)))
    api.answer("PATCH", DEVICES, body({}))
    api.answer("PATCH", f"{DEVICES}/status", body({}))
    assert written(api, USE).done
    first, second = patches(api)
    assert first.body["metadata"] == {**OURS, "resourceVersion": "7", "uid": "u1"}
    assert second.body["metadata"]["resourceVersion"] == "8"
    assert second.body["status"]["reservedFor"] == HAD["reservedFor"]


def test_devices_that_are_there_already_are_not_written_again():
    api = FakeApi.answering("GET", DEVICES, *[body(shown(state=HAD, **OURS))] * 2)
    assert written(api, USE).done
    assert patches(api) == []


ANSWERS = [
    pytest.param(dropped(), Outcome.UNAVAILABLE, id="lost"),
    *(
        pytest.param(status(code, "so it is"), result, id=str(code))
        for code, result in (
            (403, Outcome.REFUSED),
            (404, Outcome.GONE),
            (422, Outcome.REFUSED),
            (429, Outcome.UNAVAILABLE),
            (500, Outcome.UNAVAILABLE),
            (503, Outcome.UNAVAILABLE),
            (504, Outcome.UNAVAILABLE),
        )
    ),
]


@pytest.mark.parametrize("step", range(4), ids=["look", "status", "look again", "mark"])
@pytest.mark.parametrize(("failure", "result"), ANSWERS)
def test_what_an_answer_means_at_each_step_of_taking_devices_back(failure, result, step):
    """The mark stays while the claim may have devices: it identifies the claim as one to release."""
    api = FakeApi()
    steps = [
        ("GET", DEVICES, body(shown(state=HAD, **OURS))),
        ("PATCH", f"{DEVICES}/status", body({})),
        ("GET", DEVICES, body(shown(version="8", **OURS))),
        ("PATCH", DEVICES, body({})),
    ]
    for at, (method, path, found) in enumerate(steps):
        api.answer(method, path, failure if at == step else found)
    assert undone(api, USE).result is result
    assert [each.path for each in patches(api)] == [path for method, path, _ in steps[: step + 1] if method == "PATCH"]


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize(("failure", "result"), ANSWERS)
def test_what_an_answer_means_at_each_step_for_a_claim_that_is_made(failure, result, step):
    """The claim is made, marked, named in the pod's status and allocated, each step only after the one before.

    After any failure nothing more is written, and the group learns of it.
    """
    api = FakeApi()
    owner = {"uid": "p1", "controller": True}
    made = shown(**OURS | {"annotations": {MARK: "p1", EXTENDED: "true"}, "ownerReferences": [owner]})
    steps = [
        ("GET", DEVICES, status(404)),
        ("POST", DEVICES.rpartition("/")[0], body({}, 201)),
        ("GET", DEVICES, body(made)),
        ("GET", DEVICES, body(made | {"metadata": made["metadata"] | {"finalizers": []}})),
        ("PATCH", DEVICES, body({})),
        ("PATCH", "/api/v1/namespaces/team/pods/w-0/status", body({})),
        ("GET", DEVICES, body(made)),
        ("PATCH", f"{DEVICES}/status", body({})),
    ]
    for at, (method, path, found) in enumerate(steps):
        # The client itself repeats a read once if the connection is lost.
        asked_twice = 2 if result is Outcome.UNAVAILABLE else 1
        api.answer(method, path, *([failure] * asked_twice if at == step else [found]))
    answer = written(api, MADE)
    if (step, result) == (0, Outcome.GONE):
        assert answer.done
        return
    assert answer.result is result
    assert isinstance(answer.event, PrebindRefused)
    assert (answer.event.uid, answer.event.prebinding) == ("p1", MADE)
    asked = [(method, path) for method, path, _ in steps[: step + 1] if method != "GET"]
    assert [(each.method, each.path) for each in api.asked if each.method != "GET"] == asked


def test_a_claim_that_another_makes_at_the_same_time_is_looked_for_later():
    api = FakeApi.answering("GET", DEVICES, status(404))
    api.answer("POST", DEVICES.rpartition("/")[0], status(409))
    assert written(api, MADE).passing


@pytest.mark.parametrize(
    ("found", "deleted"),
    [
        pytest.param(body({}), 1, id="its pod"),
        pytest.param(status(404), 1, id="no pod"),
        pytest.param(status(422, 'Pod "w-0" is invalid: metadata.uid: field is immutable'), 1, id="another pod"),
        pytest.param(status(422, "so it is"), 0, id="refused"),
        pytest.param(status(503), 0, id="later"),
    ],
)
def test_a_claim_that_was_made_is_deleted_unless_its_pod_may_still_name_it(found, deleted):
    """A controller may have created its pod again under the same name: that one names no claim of the first."""
    api = FakeApi.answering("PATCH", "/api/v1/namespaces/team/pods/w-0/status", found)
    api.answer("DELETE", DEVICES, body({}))
    assert undone(api, msgspec.structs.replace(MADE, uid="u1")).done is bool(deleted)
    assert len(api.of("DELETE")) == deleted


def test_a_reservation_that_another_makes_at_the_same_time_stays():
    """Two members share the claim: the second write conflicts with the first and is repeated on top of it."""
    other = {"resource": "pods", "name": "w-1", "uid": "p2"}
    theirs = {"allocation": HAD["allocation"], "reservedFor": [other]}
    api = FakeApi.answering("GET", DEVICES, *[body(shown(**OURS))] * 2, body(shown(state=theirs, version="9", **OURS)))
    api.answer("PATCH", f"{DEVICES}/status", status(409), body({}))
    assert written(api, USE).done
    _, second = patches(api)
    assert second.body["status"] == {"reservedFor": [other, *HAD["reservedFor"]]}
    assert second.body["metadata"]["resourceVersion"] == "9"


@pytest.mark.parametrize(
    ("what", "path", "found"),
    [
        (SELECT, CLAIM, shown(annotations={SELECTED_NODE: "n1"})),
        (SELECT, CLAIM, shown(annotations={SELECTED_NODE: "n1", MARK: "p1"}, uid="another")),
        (SELECT, CLAIM, shown(annotations={SELECTED_NODE: "n1", MARK: "p1"}, spec={"volumeName": "pv"})),
        (BIND, VOLUME, shown(spec={"claimRef": {"namespace": "team", "name": "data", "uid": "u1"}})),
        (USE, DEVICES, shown(state=HAD)),
        (USE, DEVICES, shown(state=HAD, **{**OURS, "uid": "another"})),
    ],
)
def test_what_is_not_ours_is_not_taken_back(what, path, found):
    api = FakeApi.answering("GET", path, body(found))
    assert undone(api, what).result == Outcome.STALE
    assert patches(api) == []
