from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.core.events import (
    Event,
    NamespaceGone,
    NamespaceSeen,
    NamespacesReplaced,
    NodeGone,
    PodGone,
    PriorityClassesReplaced,
    PriorityClassGone,
    PriorityClassSeen,
)
from gangsched.core.model import GroupKey
from gangsched.kube import wire
from gangsched.kube.dialects.table import chosen
from gangsched.kube.errors import ApiError, CrdMissing, Garbled
from gangsched.kube.resources import (
    GROUPS_PATH,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    Resource,
    check_discovery,
    decode_pod,
    list_groups,
    pods,
)
from tests.kube.fake_api import FakeApi, body, page, serving, status


@pytest.mark.parametrize(
    ("resource", "found", "seen", "replaced"),
    [
        (
            NAMESPACES,
            {"metadata": {"name": "team", "resourceVersion": "4", "labels": {"b": "2", "a": "1"}}},
            NamespaceSeen(name="team", labels=(("a", "1"), ("b", "2"))),
            NamespacesReplaced(namespaces=(("team", (("a", "1"), ("b", "2"))),)),
        ),
        (
            PRIORITY_CLASSES,
            {"metadata": {"name": "high", "resourceVersion": "4"}, "value": -5, "globalDefault": False},
            PriorityClassSeen(name="high", value=-5),
            PriorityClassesReplaced(classes=(("high", -5),)),
        ),
    ],
)
def test_an_object_becomes_events(resource: Resource[Any], found: Any, seen: Event, replaced: Event) -> None:
    version, value = resource.read(msgspec.Raw(msgspec.json.encode(found)))
    assert version == "4"
    assert resource.seen(value) == seen
    assert resource.replaced((value,)) == replaced


@pytest.mark.parametrize(
    ("resource", "gone"),
    [
        (PODS, PodGone(uid="u")),
        (NODES, NodeGone(name="x")),
        (NAMESPACES, NamespaceGone(name="x")),
        (PRIORITY_CLASSES, PriorityClassGone(name="x")),
    ],
)
def test_an_object_is_gone_by_what_identifies_it(resource: Resource[Any], gone: Event) -> None:
    assert resource.gone(wire.Meta(name="x", uid="u")) == gone


def test_a_pod_whose_node_cannot_be_told_cannot_be_read_at_all() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_pod(b'{"metadata": {"name": "a"}, "spec": {"nodeName": 7}}')


def test_an_unreadable_pod_keeps_what_its_place_depends_on() -> None:
    found = decode_pod(
        b'{"metadata": {"name": "a", "uid": "u"}, "spec": {"nodeName": "n", "schedulerName": "s", "priority": 3,'
        b' "tolerations": 1}, "status": {"phase": "Running"}}'
    )
    assert isinstance(found, wire.UnreadablePod)
    assert found.metadata.uid == "u"
    assert found.spec is not None
    assert (found.spec.node_name, found.spec.scheduler_name, found.spec.priority) == ("n", "s", 3)
    assert found.status is not None
    assert found.status.phase == "Running"


def group(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", "uid": name}, "spec": {"minMember": 2}}


async def test_groups_are_listed_page_by_page() -> None:
    api = FakeApi()
    api.answer("GET", GROUPS_PATH, page([group("a")], 8, more="next"), page([group("b")], 8))
    async with serving(api) as session:
        groups, version = await list_groups(session)
    assert [found.key for found in groups] == [GroupKey("team", "a"), GroupKey("team", "b")]
    assert groups[0].spec is not None
    assert groups[0].spec.min_member == 2
    assert version == "8"
    assert [asked.query.get("continue") for asked in api.asked] == [None, "next"]


async def test_a_missing_definition_is_told_with_its_remedy() -> None:
    api = FakeApi()
    api.answer("GET", GROUPS_PATH, status(404))
    async with serving(api) as session:
        with pytest.raises(CrdMissing, match=r"podgroups\.gangsched\.io: install .*gangsched crd \| kubectl apply"):
            await list_groups(session)


@pytest.mark.parametrize(("answer", "error"), [(status(410), ApiError), (status(403), ApiError), (body([]), Garbled)])
async def test_a_list_of_groups_that_does_not_come_whole_is_an_error(answer: Any, error: type[Exception]) -> None:
    api = FakeApi()
    api.answer("GET", GROUPS_PATH, page([group("a")], 8, more="next"), answer)
    async with serving(api) as session:
        with pytest.raises(error):
            await list_groups(session)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (body({"groups": [{"name": "apps"}, {"versions": [{"groupVersion": "gangsched.io/v1alpha1"}]}]}), None),
        (body({"groups": [{"name": "gangsched.io", "versions": [{"groupVersion": "gangsched.io/v1"}]}]}), CrdMissing),
        (body({"groups": None}), CrdMissing),
        (body({"groups": 5}), Garbled),
        (status(503), ApiError),
    ],
)
async def test_podgroups_that_discovery_does_not_list_yet_are_waited_for(answer, error) -> None:
    api = FakeApi()
    api.answer("GET", "/apis", answer)
    async with serving(api) as session:
        if error is None:
            await check_discovery(session)
        else:
            with pytest.raises(error):
                await check_discovery(session)


def test_a_pods_group_is_read_from_annotations_alone_and_in_the_dialects_that_are_chosen() -> None:
    said = {"gang.scheduling.koordinator.sh/name": "a", "gang.scheduling.koordinator.sh/min-available": "2"}
    raw = msgspec.Raw(msgspec.json.encode({"metadata": {"name": "p", "annotations": said}}))

    _, found = PODS.read(raw)
    _, narrowed = pods(chosen(["gangsched", "kueue"])).read(raw)

    assert found.declaration is not None
    assert (found.declaration.group, found.declaration.source) == ("a", "koordinator")
    assert narrowed.declaration is None
