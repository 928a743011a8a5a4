"""Objects of custom kinds in files: kinds that gangsched knows itself, and pods that their operators create."""

from __future__ import annotations

import pytest

from gangsched.config.settings import validated
from gangsched.core.objects.policy import Policy
from gangsched.kube.workloads.workload_table import Workloads, chosen
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.building import build
from gangsched.whatif.world.contents import World
from gangsched.whatif.world.made import RECORDED
from gangsched.whatif.world.manifests import manifests_of
from tests.whatif.test_expanded import AUTO, Json, body, node, placed, spec
from tests.whatif.test_native import job

JOBS: Json = {"name": "bjob", "apiVersion": "batch/v1", "kind": "Job", "plural": "jobs", "replicas": "spec.parallelism"}
FARMS: Json = {"name": "farm", "apiVersion": "example.com/v1", "kind": "Farm", "plural": "farms", "replicas": "spec.n"}


def kinds(*custom: Json) -> Workloads:
    return chosen(validated({"workloads": {"custom": [*custom]}}, origin="f"))


def world(found: Workloads, *objects: Json) -> World:
    return build(manifests_of(objects, "f"), found)


def bound(found: Workloads, *objects: Json) -> dict[str, int]:
    outcome = simulate(world(found, *objects), Policy())
    return {name: len(nodes) for name, nodes in placed(outcome).items()}


@pytest.mark.parametrize("order", [1, -1])
def test_a_custom_kind_for_jobs_stands_beside_the_own_one(order):
    """Regression: objects of the custom kind were unknown, because the last kind alone counted."""
    files = [AUTO, job(), node("n", "2")][::order]
    assert bound(kinds(JOBS), *files) == {"bjob.train": 0}
    assert bound(kinds(JOBS), *files, node("m", "1")) == {"bjob.train": 3}


def test_a_custom_kind_for_jobs_counts_for_the_jobs_of_a_job_set():
    template = {"spec": {"parallelism": 2, "completions": 2, "template": {"spec": spec()}}}
    job_set = body(
        "jobset.x-k8s.io/v1alpha2", "JobSet", "s", replicatedJobs=[{"name": "w", "replicas": 2, "template": template}]
    )
    found = bound(kinds(JOBS), AUTO, job_set, node("n", "3"))
    assert found == {"bjob.s-w-0": 2, "bjob.s-w-1": 0}
    assert bound(kinds(), AUTO, job_set, node("n", "3")) == {"jobset.s": 0}


def farm(number: int = 3, annotations: Json | None = None) -> Json:
    template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    return body("example.com/v1", "Farm", "f", annotations=annotations, n=number, template=template)


def members(number: int, **labels: str) -> list[Json]:
    owner = {"apiVersion": "example.com/v1", "kind": "Farm", "name": "f", "uid": "", "controller": True}
    metadata: Json = {"labels": labels} if labels else {"ownerReferences": [owner]}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{at}", **metadata}, "spec": spec()}
        for at in range(number)
    ]


@pytest.mark.parametrize(
    ("objects", "doubts"),
    [
        ([farm(), *members(3)], 0),
        ([*members(4), farm()], 0),
        ([farm(annotations={RECORDED: "true"})], 0),
        ([farm(0)], 0),
        ([farm(), *members(2)], 1),
        ([farm()], 1),
    ],
    ids=["its pods", "more pods", "recorded", "without pods", "too few pods", "no pods"],
)
def test_an_object_whose_pods_are_in_the_files_leaves_no_doubt(objects, doubts):
    """Regression: one with a pod template ended with the status 3, whether or not its pods were there."""
    said = world(kinds(FARMS), *objects).doubts
    assert len(said) == doubts
    assert all("Farm f: the pods that its controller creates are not known here" in each for each in said)


def test_pods_that_a_label_recognises_count_too_wherever_they_come_from():
    labels = {"example.com/farm": "f"}
    template = {"metadata": {"labels": labels}, "spec": spec()}
    stateful = body("apps/v1", "StatefulSet", "s", replicas=3, template=template)
    labelled = kinds(FARMS | {"label": "example.com/farm"})
    assert world(labelled, farm(), stateful).doubts == []
    assert len(world(labelled, farm(4), stateful).doubts) == 1
