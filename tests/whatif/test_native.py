"""Kubernetes' own groups that controllers make: for Jobs with spec.scheduling, and from the templates of Workloads."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.policy import Policy
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.building import build
from gangsched.whatif.world.contents import World
from gangsched.whatif.world.manifests import given
from tests.whatif.test_expanded import AUTO, Json, node, placed, spec

OF_SUPER: Json = {"apiVersion": "x/v1", "kind": "SuperJob", "name": "top", "uid": "u", "controller": True}
GANG: Json = {"schedulingPolicy": {"gang": {}}}


def job(*, completions: int | None = 3, template: Json | None = None, **fields: Any) -> Json:
    """A Job of three pods; `fields` are those of its metadata, or its spec.scheduling."""
    asked = {"scheduling": fields.pop("scheduling")} if "scheduling" in fields else {}
    meta = {"name": "train", **fields}
    body: Json = {"parallelism": 3, "completions": completions, "template": {"spec": template or spec()}, **asked}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": body}


def workload(*templates: str, least: int = 3, **controller: str) -> Json:
    policies = [{"name": each, "schedulingPolicy": {"gang": {"minCount": least}}} for each in templates]
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podGroupTemplates": policies} | ({"controllerRef": controller} if controller else {}),
    }


def pods(group: str, count: int) -> list[Json]:
    named = spec(schedulingGroup={"podGroupName": group})
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{at}"}, "spec": named} for at in range(count)]


def world(*objects: Json) -> World:
    return build(given(objects, "f"))


def native(found: World) -> list[ForeignGroup]:
    return [each for each in found.foreign if each.dialect == "native"]


def bound(*objects: Json) -> dict[str, int]:
    """The number of bound members of each group."""
    return {name: len(nodes) for name, nodes in placed(simulate(world(*objects), Policy())).items()}


@pytest.mark.parametrize(("cpus", "number"), [("2", 0), ("3", 3)])
def test_a_job_that_asks_for_a_gang_is_a_native_group(cpus, number):
    assert bound(job(scheduling=GANG), node("n", cpus)) == {"train-pgt-0": number}


@pytest.mark.parametrize(
    ("scheduling", "least"),
    [({"schedulingPolicy": {"gang": {"minCount": 2}}}, 2), (GANG, 3), ({"schedulingPolicy": {"basic": {}}}, 1)],
)
def test_its_policy_is_that_of_the_job(scheduling, least):
    [group] = native(world(job(scheduling=scheduling)))
    assert group.spec is not None
    assert group.spec.minimum == least


def test_its_constraints_are_copied_and_its_priority_class_is_that_of_the_pods():
    constrained = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    [group] = native(world(high, job(scheduling=GANG | constrained, template=spec(priorityClassName="high"))))
    assert group.spec is not None
    assert group.spec.topology is not None
    assert (group.spec.topology.key, group.spec.priority_class) == ("rack", "high")


def test_where_jobs_are_gangs_the_automatic_gang_counts_with_what_the_job_states():
    two = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    assert bound(AUTO, job(scheduling=two), node("n", "2")) == {"job.train": 2}


@pytest.mark.parametrize(
    "found",
    [
        job(),
        job(scheduling=GANG, template=spec(schedulingGroup={"podGroupName": "own"})),
        job(scheduling=GANG, ownerReferences=[OF_SUPER]),
        job(scheduling=GANG) | {"status": {"startTime": "2026-01-01T00:00:00Z"}},
    ],
    ids=["nothing asked", "a group of its own", "part of something larger", "started"],
)
def test_no_group_is_made_for_other_jobs(found):
    assert native(world(found)) == []


def test_a_group_in_the_files_that_the_job_controls_is_taken():
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "Job/default/train", "controller": True}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train-x", "ownerReferences": [owner]},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    assert bound(job(scheduling=GANG), group, node("n", "2")) == {"train-x": 0}
    assert len(native(world(job(scheduling=GANG), group))) == 1


def test_a_delegated_group_comes_from_the_template_that_the_jobs_owner_names():
    delegated = job(
        ownerReferences=[OF_SUPER], annotations={"scheduling.k8s.io/group-template-name": "workers"}, scheduling=GANG
    )
    above = workload("drivers", "workers", least=2, apiGroup="x", kind="SuperJob", name="top")
    assert bound(delegated, above, node("n", "2")) == {"w-workers-train": 2}
    assert native(world(delegated)) == []


@pytest.mark.parametrize("name", ["workers", "w-workers", "w-workers-7xk2p"])
def test_the_group_that_pods_name_is_made_from_the_template_of_its_workload(name):
    few, enough = (bound(workload("drivers", "workers"), *pods(name, 3), node("n", cpus)) for cpus in "23")
    assert (few, enough) == ({name: 0}, {name: 3})


def test_a_group_in_the_files_is_not_made_again_and_a_name_of_no_template_is_missing():
    there = native(world(workload("workers"), *pods("other", 3)))
    [decision] = simulate(world(workload("workers"), *pods("other", 3), node("n", "3")), Policy()).groups
    assert there == []
    assert decision.reason == "PodGroupNotFound"


def test_a_workload_is_no_object_that_does_not_matter():
    assert not world(workload("workers")).ignored
