"""What a group sets in another system's words and gangsched does not honour is told on the group, once."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import group, node, pod
from tests.harness import Harness
from tests.served import served_group


def volcano(**spec: Any) -> ForeignGroup:
    return served_group("volcano", "g", {"minMember": 2} | spec, uid="u")


def member(name: str, **annotations: str):
    said = {"scheduling.k8s.io/group-name": "g"} | {key.replace("__", "/"): text for key, text in annotations.items()}
    return pod(name, declaration=DEFAULT.declaration({}, said))


def told(harness: Harness) -> list[tuple[str, str, str]]:
    return [(event.kind, event.name, event.note) for event in harness.emitted if event.reason == "FieldsIgnored"]


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew")
def test_fields_of_the_object_and_keys_of_pods_are_named_in_one_event_and_the_group_is_scheduled():
    harness = Harness()
    zone = {"volcano.sh__revocable-zone": "*"}
    harness.wait(20, node(), volcano(queue="research"), member("g-0", **zone), member("g-1", **zone))
    assert len(harness.bound()) == 2
    ((kind, name, note),) = told(harness)
    assert (kind, name) == ("Pod", "g-0")
    assert "spec.queue, the annotation volcano.sh/revocable-zone, which are set for the group g" in note
    harness.wait(400)
    assert len(told(harness)) == 1


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew")
def test_a_field_that_is_set_later_is_told_then_and_no_other_again():
    harness = Harness.waited(20, node(cpu=1), volcano(queue="research"), member("g-0"), member("g-1"))
    harness.wait(20, volcano(queue="research", networkTopology={"mode": "soft"}))
    assert [note.partition(", which")[0] for _, _, note in told(harness)] == [
        "gangsched does not honour spec.queue",
        "gangsched does not honour spec.networkTopology",
    ]


def test_a_group_that_sets_nothing_of_the_kind_is_told_nothing():
    harness = Harness.waited(20, node(), volcano(queue="default"), member("g-0"), member("g-1"))
    assert told(harness) == []


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew")
def test_with_a_podgroup_of_gangscheds_the_event_is_on_that():
    harness = Harness.of(node(), group("g", min_member=2), volcano(queue="research"), member("g-0"), member("g-1"))
    harness.wait(20)
    assert [(kind, name) for kind, name, _ in told(harness)] == [("PodGroup", "g")]
