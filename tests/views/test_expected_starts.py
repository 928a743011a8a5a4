"""What explain says about when a waiting group will start."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gangsched.cli.explain_text import _BASES, lines
from gangsched.core.objects.events import Event, GroupsReplaced, NodesReplaced, PodsReplaced, Synced
from gangsched.core.objects.expected_start import Basis, Unknown
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.policy import Policy
from gangsched.views.diagnosed import Diagnosis
from gangsched.views.diagnosis import from_cluster
from gangsched.views.diagnosis_json import as_object
from gangsched.views.expected_starts import _UNKNOWN
from tests.builders import group, key, node, pod, pods

NOW = 1_767_225_600.0
SERVICE = Owner("ReplicaSet", "web", "uid-web", "apps")


def diagnose(*there: Pod) -> Diagnosis:
    """The diagnosis of a group of two beside these pods, each of which has a node of one CPU."""
    events: list[Event] = [
        NodesReplaced(tuple(node(each.node, cpu=1) for each in there)),
        GroupsReplaced((group("g", min_member=2),)),
        PodsReplaced((*there, *pods("g", 2))),
        Synced(),
    ]
    found = from_cluster(events, key("g"), policy=Policy(), now=NOW)
    assert found is not None
    return found


def runs(name: str, **fields: Any) -> Pod:
    return pod(name, **{"group": "", "node": f"node-of-{name}", "bound_at": NOW - 60, "start": NOW - 60, **fields})


def row(diagnosis: Diagnosis) -> str:
    return next(line for line in lines(diagnosis, width=1000) if line.strip().startswith("starts"))


def told(diagnosis: Diagnosis) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(msgspec.json.encode(as_object(diagnosis)))["expectedStart"]
    return found


def test_limits_say_when_it_starts():
    diagnosis = diagnose(runs("a", deadline_s=90), runs("b", deadline_s=630))
    assert told(diagnosis) == {
        "earliest": None,
        "latest": "2026-01-01T00:10:00Z",
        "basis": "Limits",
        "unknown": None,
        "why": None,
        "decides": None,
    }
    assert "2026-01-01T00:10:00Z" in row(diagnosis)


def test_who_has_no_limit_is_named():
    diagnosis = diagnose(runs("a", deadline_s=90), runs("b", owner=SERVICE))
    assert told(diagnosis)["unknown"] == "Endless"
    assert told(diagnosis)["decides"] == {"namespace": "default", "name": "b"}
    assert " b " in row(diagnosis)
    assert told(diagnosis)["why"] == "b is a service, which does not end by itself"


def test_who_has_declared_to_end_is_not_said_to_have_declared_nothing():
    found = told(diagnose(runs("a", deadline_s=90), runs("b", expected_s=630.0)))
    assert (found["unknown"], found["why"]) == ("Unknown", "b has no activeDeadlineSeconds")


def test_nobody_of_another_namespace_is_named():
    assert "secret" not in row(diagnose(runs("a", deadline_s=90), runs("theirs/secret")))


@pytest.mark.parametrize("told", [*Basis, *Unknown])
def test_each_case_has_a_sentence(told):
    assert told in _BASES or told in _UNKNOWN
