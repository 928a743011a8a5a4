"""What an API server drops or refuses on which feature gates are off that simulate otherwise takes to be on."""

from __future__ import annotations

from functools import partial

import pytest

from gangsched.core.objects.policy import Policy
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.building import build
from gangsched.whatif.world.feature_gates import off, without
from gangsched.whatif.world.manifests import ManifestError, manifests_of
from tests.whatif.test_expanded import AUTO, Json, node, placed, spec
from tests.whatif.test_native import DELEGATED, GANG, OF_SUPER, SUPER, job, native, pods, workload

ALL, OF_JOBS = "GenericWorkload=false", "GenericWorkload=true,WorkloadWithJob=false"
BASIC: Json = {"schedulingPolicy": {"basic": {}}}
CRON_JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "c"},
    "spec": {"jobTemplate": {"spec": job(scheduling=GANG)["spec"]}},
}


def bound(gates: str, *objects: Json) -> dict[str, int]:
    """The number of bound members of each group, and of pods without a group as those of a group without a name."""
    world = build(without(manifests_of(objects, "f"), off(gates)))
    return {name: len(nodes) for name, nodes in placed(simulate(world, Policy())).items()}


@pytest.mark.parametrize("gates", [ALL, OF_JOBS])
@pytest.mark.parametrize("made", [job(scheduling=GANG), CRON_JOB], ids=["Job", "CronJob"])
def test_no_group_is_made_for_a_job(gates, made):
    world = build(without(manifests_of([made], "f"), off(gates)))
    assert native(world) == []
    assert [pod.declaration for pod in world.pods] == [None] * 3


def test_a_job_with_the_policy_basic_is_a_gang_where_jobs_are_gangs():
    found = partial(bound, OF_JOBS, AUTO, job(scheduling=BASIC))
    assert (found(node("n", "2")), found(node("n", "3"))) == ({"job.train": 0}, {"job.train": 3})


def test_no_group_is_made_from_the_template_of_a_workload_that_a_job_names():
    delegated = job(ownerReferences=[OF_SUPER], annotations=DELEGATED)
    world = build(without(manifests_of([delegated, workload("workers", least=3, **SUPER)], "f"), off(OF_JOBS)))
    assert native(world) == []


@pytest.mark.parametrize(
    "made", [job(template=spec(schedulingGroup={"podGroupName": "g"})), *pods("g", 1)], ids=["Job", "Pod"]
)
def test_new_pods_name_no_group(made):
    world = build(without(manifests_of([made], "f"), off(ALL)))
    assert {pod.declaration for pod in world.pods} == {None}


def test_a_pod_that_exists_keeps_its_group():
    [there] = pods("g", 1)
    there["metadata"]["uid"] = "u"
    [pod] = build(without(manifests_of([there], "f"), off(ALL))).pods
    assert pod.declaration is not None


def test_objects_that_are_not_served_are_refused():
    with pytest.raises(ManifestError) as refused:
        without(manifests_of([workload("a"), *pods("g", 1)], "f"), off(ALL))
    [problem] = refused.value.problems
    assert problem == (
        "f, item 1: Workload w: the API server would refuse it, because it has no kind Workload in "
        "scheduling.k8s.io/v1beta1 without the feature gate GenericWorkload: remove it, or turn the gate on"
    )


def test_groups_share_no_claims():
    group = workload("a")
    [template] = group["spec"]["podGroupTemplates"]
    template["resourceClaims"] = [{"name": "d", "resourceClaimName": "shared"}]
    given = manifests_of([group], "f")
    [found] = without(given, off("DRAWorkloadResourceClaims=False"))
    assert found.spec["podGroupTemplates"] == [{key: template[key] for key in ("name", "schedulingPolicy")}]
    assert without(given, off("DRAWorkloadResourceClaims=true")) == given


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            "GangScheduling=false",
            "'GangScheduling' is no feature gate that can be chosen here: write GenericWorkload, ",
        ),
        ("WorkloadWithJob", "'WorkloadWithJob' is not clear: write WorkloadWithJob=true or "),
        ("WorkloadWithJob=true, GenericWorkload=false", "WorkloadWithJob needs GenericWorkload: turn both on or both"),
    ],
)
def test_what_cannot_be_is_told(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        off(text)
