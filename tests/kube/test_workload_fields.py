"""Each field that is decoded of a workload's object says what it decides, and those that are not honoured are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gangsched.config.settings import Settings
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.workloads.workload_fields import Field, fields_of
from gangsched.kube.workloads.workload_table import chosen

KINDS = chosen(Settings()).kinds
DECODED = [(name, each) for name, kind in KINDS.items() for each in fields_of(kind.form)]
IGNORED = [(name, each) for name, each in DECODED if each.ignored]


def with_field(kind: str, path: str, value: object) -> ForeignGroup:
    """The kind's object in which only the field at this path is set."""
    body: dict[str, Any] = {"metadata": {"name": "w", "namespace": "ns", "uid": "u"}}
    *way, last = path.split(".")
    inner = body
    for step in way:
        inner = inner.setdefault(step, {})
    inner[last] = value
    return KINDS[kind].read(json.dumps(body).encode())[1]


def test_it_is_said_what_each_decoded_field_decides():
    assert len(DECODED) > 100
    assert [(kind, field.path) for kind, field in DECODED if not field.meaning] == []


@pytest.mark.parametrize(("kind", "field"), IGNORED, ids=lambda each: str(getattr(each, "path", each)))
@pytest.mark.parametrize(
    ("value", "told"),
    [({"cpu": "5"}, True), ("research", True), ([{"name": "x"}], True), ({}, False), ("", False), (None, False)],
)
def test_a_field_that_is_not_honoured_is_named_if_it_is_in_use(kind: str, field: Field, value: object, *, told: bool):
    found = with_field(kind, field.path, value)
    assert found.workload is not None
    assert found.workload.ignored == ((field.path,) if told else ())


def test_fields_that_are_honoured_are_never_called_ignored():
    job = with_field("pytorchjob", "spec.runPolicy.schedulingPolicy", {"minAvailable": 2, "priorityClass": "high"})
    assert job.workload is not None
    assert job.workload.ignored == ()


MIN_AVAILABLE = {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}
ELASTIC = {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 6}}
TYPES = {"Master": {"replicas": 1}, "Worker": {"replicas": 4}}
LATE_LAUNCHER = {
    "mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 4}},
    "launcherCreationPolicy": "WaitForWorkersReady",
}


@pytest.mark.parametrize(
    ("kind", "spec", "annotations", "minimum", "roles"),
    [
        ("pytorchjob", {"pytorchReplicaSpecs": TYPES}, {}, 5, {"master": 1, "worker": 4}),
        ("pytorchjob", {"pytorchReplicaSpecs": TYPES, **MIN_AVAILABLE}, {}, 2, {}),
        ("pytorchjob", {"pytorchReplicaSpecs": TYPES, **ELASTIC}, {}, 3, {"master": 1, "worker": 2}),
        ("pytorchjob", {"pytorchReplicaSpecs": TYPES, **ELASTIC, **MIN_AVAILABLE}, {}, 2, {}),
        ("pytorchjob", {"pytorchReplicaSpecs": TYPES, **MIN_AVAILABLE}, {"gangsched.io/min-member": "4"}, 4, {}),
        ("pytorchjob", {"pytorchReplicaSpecs": {"Master": {}}, **ELASTIC}, {}, 1, {"master": 1}),
        ("pytorchjob", {"pytorchReplicaSpecs": TYPES, "elasticPolicy": {"minReplicas": 9}}, {}, 5, None),
        ("paddlejob", {"paddleReplicaSpecs": TYPES, **ELASTIC}, {}, 3, None),
        ("tfjob", {"tfReplicaSpecs": TYPES, **MIN_AVAILABLE}, {}, 2, {}),
        ("xgboostjob", {"xgbReplicaSpecs": TYPES, **MIN_AVAILABLE}, {}, 2, {}),
        ("jaxjob", {"jaxReplicaSpecs": TYPES, **MIN_AVAILABLE}, {}, 2, {}),
        ("mpijob", {"mpiReplicaSpecs": {"Launcher": {}, "Worker": {"replicas": 4}}, **MIN_AVAILABLE}, {}, 2, {}),
        # A launcher that comes late has a place only where the stated minimum asks for it.
        ("mpijob", LATE_LAUNCHER | MIN_AVAILABLE, {}, 2, {}),
        ("mpijob", LATE_LAUNCHER, {"gangsched.io/min-member": "5"}, 5, {"launcher": 1}),
        ("job", {"parallelism": 5, "scheduling": {"schedulingPolicy": {"gang": {"minCount": 3}}}}, {}, 3, {}),
        ("job", {"parallelism": 5, "scheduling": {"schedulingPolicy": {"gang": {}}}}, {}, 5, {}),
        ("job", {"parallelism": 5, "scheduling": {"schedulingPolicy": {"basic": {}}}}, {}, 5, {}),
        (
            "pytorchjob",
            {"pytorchReplicaSpecs": TYPES, "runPolicy": {"schedulingPolicy": {"minAvailable": 0}}},
            {},
            1,
            {},
        ),
    ],
)
def test_a_gang_keeps_the_minimum_that_its_workload_states(kind, spec, annotations, minimum, roles):
    """The training operator and the MPI operator hand minAvailable to other gang schedulers as their minMember."""
    meta = {"name": "w", "namespace": "ns", "uid": "u", "annotations": annotations}
    found = KINDS[kind].read(json.dumps({"metadata": meta, "spec": spec}).encode())[1]
    assert found.spec is not None
    assert found.workload is not None
    assert found.spec.minimum == minimum
    if roles is not None:
        assert {role.name: role.min_member for role in found.spec.roles} == roles


def test_a_jobs_priorityclass_and_longest_wait_are_its_gangs():
    policy = {"priorityClass": "high", "scheduleTimeoutSeconds": 90}
    found = with_field("mpijob", "spec.runPolicy.schedulingPolicy", policy)
    assert found.spec is not None
    assert (found.spec.priority_class, found.spec.max_schedule_time_s) == ("high", 90.0)


@pytest.mark.parametrize("seconds", [-1, 10**9])
def test_a_longest_wait_that_is_out_of_range_is_an_error_that_names_the_field(seconds):
    found = with_field("mpijob", "spec.runPolicy.schedulingPolicy", {"scheduleTimeoutSeconds": seconds})
    assert found.spec is None
    assert "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds" in found.error
