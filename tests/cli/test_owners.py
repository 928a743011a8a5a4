"""Why pods are missing, according to their workloads: the facts read from each kind and the resulting remedies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gangsched.cli.missing_pods import read_owners, remedies
from gangsched.config.dialects import GROUP_LABEL
from gangsched.config.settings import validated
from gangsched.config.workload_registry import WORKLOADS
from gangsched.kube.workloads.workload_table import chosen
from tests.kube.fake_api import FakeApi, body, serving, status

Json = dict[str, Any]
TEMPLATE: Json = {"metadata": {"labels": {GROUP_LABEL: "g"}}, "spec": {"containers": [{"name": "main"}]}}
BARE: Json = {"spec": {"containers": [{"name": "main"}]}}
LISTS = {
    **{row.kind: row.resource.group + "/" + row.resource.versions[0] for row in WORKLOADS.values()},
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "CronJob": "batch/v1",
    "Farm": "example.com/v1",
}
FARM = {"name": "farm", "apiVersion": LISTS["Farm"], "kind": "Farm", "plural": "farms", "replicas": "spec.size"}
KINDS = chosen(validated({"workloads": {"custom": [FARM]}}, "test"))
EVENTS = "/apis/events.k8s.io/v1/namespaces/n/events"


def path(kind: str) -> str:
    return f"/apis/{LISTS[kind]}/namespaces/n/{kind.lower()}s"


def made(kind: str, name: str, spec: Any, *, of: str = "", said: Any = None, **metadata: Any) -> Json:
    meta = {"name": name, "namespace": "n", "uid": f"{kind}/{name}", "resourceVersion": "1", **metadata}
    if of:
        meta["ownerReferences"] = [{"uid": of, "controller": True, "kind": of.partition("/")[0]}]
    return {"kind": kind, "metadata": meta, "spec": spec, "status": said or {}}


def replicated(template: Json, **spec: Any) -> Json:
    """The spec of a JobSet with one Job of 2 pods."""
    job = {"parallelism": 2, "completions": 2, "template": template}
    return {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": job}}], **spec}


async def told(*objects: Json, events: Mapping[str, list[Json]] | None = None, minimum: int = 4, group: str = "g"):
    """The remedies for the group, given these objects; `events` maps reasons to Events."""
    api = FakeApi()
    for kind in LISTS:
        items = [each for each in objects if each["kind"] == kind]
        api.answer("GET", path(kind), body({"items": items}) if items else status(404, reason="NotFound"))
    for version in WORKLOADS["mpijob"].resource.versions[1:]:
        api.answer("GET", f"/apis/kubeflow.org/{version}/namespaces/n/mpijobs", status(404, reason="NotFound"))
    reasons = ("FailedCreate", "FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod", "MPIJobFailed")
    api.answer("GET", EVENTS, *[body({"items": (events or {}).get(reason, [])}) for reason in reasons])
    async with serving(api) as session:
        return list(remedies(await read_owners(session, "n", group, KINDS), minimum))


def event(kind: str, name: str, note: str, at: str = "2026-01-01T00:00:00Z") -> Json:
    return {"metadata": {"name": "e", "creationTimestamp": at}, "regarding": {"kind": kind, "name": name}, "note": note}


LWS = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE}}
RAY = {
    "headGroupSpec": {"template": TEMPLATE},
    "workerGroupSpecs": [{"groupName": "w", "replicas": 1, "template": BARE}],
}
MPI = {"mpiReplicaSpecs": {"Launcher": {"template": TEMPLATE}, "Worker": {"replicas": 1, "template": TEMPLATE}}}
TORCH = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": TEMPLATE}}}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("JobSet", replicated(TEMPLATE)),
        ("LeaderWorkerSet", LWS),
        ("RayCluster", RAY),
        ("MPIJob", MPI),
        ("PyTorchJob", TORCH),
        ("Job", {"parallelism": 2, "completions": 2, "template": TEMPLATE}),
        ("Deployment", {"replicas": 2, "template": TEMPLATE}),
    ],
)
async def test_who_makes_fewer_pods_than_the_minimum_is_told_how_many(kind, spec):
    who = f"the {kind} x"
    assert f"a minimum of at most 2, which is all that {who} will make, or more replicas there" in await told(
        made(kind, "x", spec)
    )
    assert await told(made(kind, "x", spec), minimum=2) == []


async def test_who_makes_no_pods_is_told_so_and_no_minimum_of_none():
    """Regression: "a minimum of at most 0"."""
    spec = {"replicas": 0, "template": TEMPLATE}
    assert await told(made("Deployment", "x", spec)) == ["replicas of the Deployment x: no pods are wanted now"]


@pytest.mark.parametrize(
    ("kind", "spec", "where"),
    [
        ("JobSet", replicated(BARE), "spec.replicatedJobs[].template.spec.template"),
        ("CronJob", {"jobTemplate": {"spec": {"template": BARE}}}, "spec.jobTemplate.spec.template"),
        (
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Worker": {"template": BARE}}},
            "spec.pytorchReplicaSpecs.Worker.template",
        ),
        ("Deployment", {"replicas": 2, "template": BARE}, "spec.template"),
    ],
)
async def test_a_label_on_the_object_alone_is_told_with_the_place_where_it_belongs(kind, spec, where):
    [said] = await told(made(kind, "x", spec, labels={GROUP_LABEL: "g"}))
    assert said == f"the label {GROUP_LABEL} in {where}.metadata.labels of the {kind} x, which has it only on itself"


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("Job", {"suspend": True, "template": TEMPLATE}, "spec.suspend"),
        ("JobSet", replicated(TEMPLATE, suspend=True), "spec.suspend"),
        ("PyTorchJob", {**TORCH, "runPolicy": {"suspend": True}}, "spec.runPolicy.suspend"),
        ("CronJob", {"suspend": True, "jobTemplate": {"spec": {"template": TEMPLATE}}}, "spec.suspend"),
    ],
)
async def test_a_suspension_is_told_with_its_field(kind, spec, field):
    assert f"the end of the suspension of the {kind} x: set its {field} to false" in await told(made(kind, "x", spec))


async def test_a_job_that_has_failed_says_why_and_counts_no_more():
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "BackoffLimitExceeded",
        "message": "Job has reached the limit",
    }
    job = made("Job", "x", {"parallelism": 2, "template": TEMPLATE}, said={"conditions": [failed]})
    [said] = await told(job)
    assert said == (
        "a new run: the Job x has failed (BackoffLimitExceeded: Job has reached the limit); delete it and create "
        "it again"
    )


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        ("LeaderWorkerSet", LWS, "FailedCreate"),
        ("RayCluster", RAY, "FailedToCreateHeadPod"),
        ("RayCluster", RAY, "FailedToCreateWorkerPod"),
        ("PyTorchJob", TORCH, "FailedCreatePod"),
        ("MPIJob", MPI, "MPIJobFailed"),
    ],
)
async def test_the_controllers_own_cause_is_told(kind, spec, reason):
    found = {reason: [event(kind, "x", "exceeded quota: small"), event(kind, "other", "something else")]}
    assert await told(made(kind, "x", spec), events=found, minimum=2) == [
        f"pods that the {kind} x could not make: exceeded quota: small"
    ]


async def test_the_latest_cause_is_told():
    found = {
        "FailedCreate": [
            event("Job", "x", "the second", "2026-01-01T00:00:02Z"),
            event("Job", "x", "the first", "2026-01-01T00:00:01Z"),
        ]
    }
    [said, _] = await told(made("Job", "x", {"parallelism": 2, "template": TEMPLATE}), events=found)
    assert said.endswith("could not make: the second")


async def test_a_part_tells_the_cause_and_is_not_counted_beside_its_whole():
    whole = made("JobSet", "x", replicated(TEMPLATE))
    part = made("Job", "x-w-0", {"parallelism": 2, "template": TEMPLATE}, of="JobSet/x")
    found = {"FailedCreate": [event("Job", "x-w-0", "exceeded quota: small")]}
    assert await told(whole, part, events=found, minimum=3) == [
        "pods that the Job x-w-0 could not make: exceeded quota: small",
        "a minimum of at most 2, which is all that the JobSet x will make, or more replicas there",
    ]


async def test_the_workload_that_declares_a_gang_and_its_parts_are_read_without_a_label():
    whole = made("JobSet", "x", replicated(BARE))
    part = made("Job", "x-w-0", {"parallelism": 2, "template": BARE}, of="JobSet/x")
    another = made("Job", "y", {"parallelism": 2, "template": BARE})
    found = {"FailedCreate": [event("Job", name, "exceeded quota: small") for name in ("x-w-0", "y")]}
    assert await told(whole, part, another, events=found, minimum=2, group="jobset.x") == [
        "pods that the Job x-w-0 could not make: exceeded quota: small"
    ]


async def test_a_gang_of_one_replica_is_its_sets_without_a_label():
    bare = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": BARE}}
    found = {"FailedCreate": [event("LeaderWorkerSet", "x", "exceeded quota: small")]}
    assert await told(made("LeaderWorkerSet", "x", bare), events=found, minimum=2, group="lws.x.0") == [
        "pods that the LeaderWorkerSet x could not make: exceeded quota: small"
    ]


async def test_an_annotated_minimum_above_what_the_workload_makes_is_told():
    job = made("Job", "x", {"parallelism": 2, "completions": 2, "template": BARE})
    assert await told(job, minimum=3, group="job.x") == [
        "a minimum of at most 2, which is all that the Job x will make, or more replicas there"
    ]


async def test_a_condition_tells_the_cause_where_the_event_is_gone():
    failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: small"}
    rays = made("RayCluster", "x", RAY, said={"conditions": [failure]})
    assert await told(rays, minimum=2) == ["pods that the RayCluster x could not make: exceeded quota: small"]


@pytest.mark.parametrize(
    ("kind", "spec", "remedy"),
    [
        (
            "StatefulSet",
            {"replicas": 4, "template": TEMPLATE},
            "create the StatefulSet again with podManagementPolicy: Parallel",
        ),
        (
            "LeaderWorkerSet",
            {**LWS, "replicas": 2, "startupPolicy": "LeaderReady"},
            "set startupPolicy: LeaderCreated in the LeaderWorkerSet",
        ),
    ],
)
async def test_who_makes_some_pods_only_when_others_run_is_told_what_to_set(kind, spec, remedy):
    assert await told(made(kind, "x", spec)) == [
        f"all pods at once of the {kind} x, which makes some only when others run: {remedy}"
    ]


@pytest.mark.parametrize(
    "said",
    [
        {"conditions": {"Ready": "True"}},
        {"conditions": [{"type": "Ready", "status": True}, {"type": "ReplicaFailure", "status": "True"}]},
        ["ready"],
        "ready",
    ],
)
async def test_what_another_kind_says_of_itself_in_a_form_of_its_own_says_nothing(said):
    """Regression: `explain` ended with a traceback."""
    farm = made("Farm", "x", {"size": 2, "template": TEMPLATE}, said=said)
    assert await told(farm) == [
        "a minimum of at most 2, which is all that the Farm x will make, or more replicas there"
    ]


async def test_an_object_of_another_kind_whose_spec_is_no_object_makes_no_pods():
    """Regression: `explain` ended with a traceback."""
    assert await told(made("Farm", "x", ["size"]), made("Deployment", "y", {"replicas": 2, "template": TEMPLATE})) == [
        "a minimum of at most 2, which is all that the Deployment y will make, or more replicas there"
    ]
