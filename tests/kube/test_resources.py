from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import (
    BudgetGone,
    BudgetSeen,
    BudgetsReplaced,
    Event,
    GroupGone,
    NamespaceGone,
    NamespaceSeen,
    NamespacesReplaced,
    NodeGone,
    PodGone,
    PriorityClassesReplaced,
    PriorityClassGone,
    PriorityClassSeen,
    StorageGone,
    StorageReplaced,
    StorageSeen,
)
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.volumes import (
    CsiDriver,
    CsiNode,
    StorageCapacity,
    StorageClass,
    StorageKind,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from gangsched.kube import wire
from gangsched.kube.client.resource import Resource
from gangsched.kube.dialects.dialect_table import chosen
from gangsched.kube.reading.disruption_values import BUDGETS
from gangsched.kube.reading.pod_values import decode_pod
from gangsched.kube.reading.watched_resources import GROUPS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, STORAGE, pods


@pytest.mark.parametrize(
    ("resource", "found", "seen", "replaced"),
    [
        (
            NAMESPACES,
            {"metadata": {"name": "team", "resourceVersion": "4", "labels": {"b": "2", "a": "1"}}},
            NamespaceSeen(name="team", labels=(("a", "1"), ("b", "2"))),
            NamespacesReplaced(namespaces=(NamespaceSeen("team", (("a", "1"), ("b", "2"))),)),
        ),
        (
            NAMESPACES,
            {"metadata": {"name": "doomed", "resourceVersion": "4", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
            NamespaceSeen(name="doomed", labels=(), terminating=True),
            NamespacesReplaced(namespaces=(NamespaceSeen("doomed", (), terminating=True),)),
        ),
        (
            PRIORITY_CLASSES,
            {"metadata": {"name": "high", "resourceVersion": "4"}, "value": -5, "globalDefault": False},
            PriorityClassSeen(name="high", priority_class=PriorityClass(-5)),
            PriorityClassesReplaced(classes=(("high", PriorityClass(-5)),)),
        ),
        (
            PRIORITY_CLASSES,
            {"metadata": {"name": "meek", "resourceVersion": "4"}, "value": 5, "preemptionPolicy": "Never"},
            PriorityClassSeen(name="meek", priority_class=PriorityClass(5, preempts=False)),
            PriorityClassesReplaced(classes=(("meek", PriorityClass(5, preempts=False)),)),
        ),
        (
            BUDGETS,
            {
                "metadata": {"name": "x", "namespace": "team", "resourceVersion": "4"},
                "status": {"disruptionsAllowed": 2},
            },
            BudgetSeen(DisruptionBudget("team", "x", None, allowed=2)),
            BudgetsReplaced((DisruptionBudget("team", "x", None, allowed=2),)),
        ),
        *(
            (
                STORAGE[kind],
                {"metadata": {"name": "x", "namespace": "team", "resourceVersion": "4"}},
                StorageSeen(kind, value),
                StorageReplaced(kind, (value,)),
            )
            for kind, value in (
                (StorageKind.CLAIM, VolumeClaim("team", "x")),
                (StorageKind.VOLUME, Volume("x")),
                (StorageKind.CLASS, StorageClass("x")),
                (StorageKind.NODE, CsiNode("x")),
                (StorageKind.ATTACHMENT, VolumeAttachment("x")),
                (StorageKind.DRIVER, CsiDriver("x")),
                (StorageKind.CAPACITY, StorageCapacity("team", "x")),
            )
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
        (BUDGETS, BudgetGone("team/x")),
        (STORAGE[StorageKind.CLAIM], StorageGone(StorageKind.CLAIM, ("team", "x"))),
        (GROUPS, GroupGone(key=GroupKey("team", "x"))),
    ],
)
def test_an_object_is_gone_by_what_identifies_it(resource: Resource[Any], gone: Event) -> None:
    assert resource.gone(wire.Meta(name="x", namespace="team", uid="u")) == gone


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


@pytest.mark.parametrize(
    "found",
    [
        {"spec": {"minMember": "many"}},
        {"spec": {"minMember": 10**30}},
        {"spec": {"minMember": 1.5e300}},
        {"spec": [], "status": []},
        {"spec": None, "status": {"conditions": [{"type": 7}], "phase": "???", "reservation": 3}},
        {"spec": {"roles": [{"name": None}], "minMember": 1}, "status": {"members": "x"}},
        {"spec": {"minMember": 1, "nothing": {"like": "this"}}, "status": None},
        {},
    ],
    ids=str,
)
def test_no_podgroup_keeps_the_others_from_being_read(found: Any) -> None:
    """Whatever an older or newer CustomResourceDefinition has accepted: one list holds the PodGroups of all users."""
    meta = {"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "5"}
    version, group = GROUPS.read(msgspec.Raw(msgspec.json.encode({"metadata": meta, **found})))
    assert (version, group.key, group.uid) == ("5", GroupKey("team", "a"), "u")


def test_a_pods_group_is_read_from_annotations_alone_and_in_the_dialects_that_are_chosen() -> None:
    said = {"gang.scheduling.koordinator.sh/name": "a", "gang.scheduling.koordinator.sh/min-available": "2"}
    raw = msgspec.Raw(msgspec.json.encode({"metadata": {"name": "p", "annotations": said}}))

    _, found = PODS.read(raw)
    _, narrowed = pods(chosen(Settings(dialects=("gangsched", "kueue")))).read(raw)

    assert found.declaration is not None
    assert (found.declaration.group, found.declaration.source) == ("a", "koordinator")
    assert narrowed.declaration is None
