from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.effects import EmitEvent
from gangsched.kube.writing.event_writes import event_object
from gangsched.kube.writing.texts import shortened

DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def emit(*, name: str = "a-0", note: str = "n", kind: str = "Pod") -> EmitEvent:
    return EmitEvent(kind=kind, namespace="team", name=name, uid="u", type="Warning", reason="R", action="A", note=note)


@given(text=st.text(max_size=300), limit=st.integers(3, 300))
def test_a_shortened_text_fits_and_begins_as_the_whole(text: str, limit: int) -> None:
    short = shortened(text, limit_bytes=limit)
    assert len(short.encode()) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


def test_a_note_is_cut_by_bytes_between_characters() -> None:
    note = event_object(emit(note="ü" * 2000), now=0.0, reporting_instance="i")["note"]
    assert note == "ü" * 510 + "…"


@pytest.mark.parametrize("name", ["a-0", "x" * 253, "y." * 126 + "z", "a" * 235 + "-" * 17 + "b"])
def test_an_event_has_a_valid_name_however_long_that_of_its_object(name: str) -> None:
    found = event_object(emit(name=name), now=0.0, reporting_instance="i")["metadata"]["name"]
    assert len(found) <= 253
    assert DNS_SUBDOMAIN.fullmatch(found)


def test_two_events_never_share_a_name() -> None:
    names = {event_object(emit(), now=0.0, reporting_instance="i")["metadata"]["name"] for _ in range(100)}
    assert len(names) == 100


@pytest.mark.parametrize(("kind", "version"), [("Pod", "v1"), ("PodGroup", "gangsched.io/v1alpha1")])
def test_an_event_says_where_its_object_is_defined(kind: str, version: str) -> None:
    assert event_object(emit(kind=kind), now=0.0, reporting_instance="i")["regarding"]["apiVersion"] == version


def test_an_event_on_a_node_names_no_namespace_and_is_kept_in_the_one_for_such_events() -> None:
    on_node = EmitEvent(
        kind="Node", namespace="", name="n1", uid="n1", type="Warning", reason="R", action="A", note="n"
    )
    found = event_object(on_node, now=0.0, reporting_instance="i")
    assert found["metadata"]["namespace"] == "default"
    assert found["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"}


def test_a_long_instance_name_is_cut() -> None:
    assert event_object(emit(), now=0.0, reporting_instance="h" * 200)["reportingInstance"] == "h" * 128
