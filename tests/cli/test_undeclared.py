"""`gangsched simulate` and `explain` recognise undeclared gangs, as the operator does."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gangsched.cli.group_reader import read
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import ForeignGroupsReplaced
from gangsched.core.objects.policy import Policy
from gangsched.kube.workloads.workload_table import chosen
from gangsched.views.diagnosed import Diagnosis
from gangsched.views.diagnosis import from_cluster
from gangsched.whatif.simulation import Outcome, simulate
from gangsched.whatif.world.building import build
from testbed.controllers.expected import AUTO
from tests.cli.test_live import DENIED, MISSING, cluster
from tests.kube.fake_api import Answer, FakeApi, body, page, serving
from tests.whatif import test_expanded as expanded
from tests.whatif.test_operators import objects
from tests.workloads.pages import manifest

Json = dict[str, Any]
GANG = {"gangsched.io/gang": "true"}


def node(cpus: int) -> Json:
    return expanded.node("n", str(cpus))


def template() -> Json:
    return {"spec": expanded.spec()}


def job(name: str = "train", size: int = 3, **metadata: Any) -> Json:
    spec = {"parallelism": size, "completions": size, "template": template()}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **metadata}, "spec": spec}


def run(*found: Json, **settings: Any) -> Outcome:
    return simulate(build(objects(yaml.safe_dump_all(found)), chosen(Settings(**settings))), Policy())


def bound(outcome: Outcome) -> dict[str, int]:
    """The number of members of each group that are bound."""
    return {group.key.name: len(group.placements) for group in outcome.groups}


def told(outcome: Outcome) -> list[tuple[str, bool]]:
    """The name of what each decision is about, and whether that is a pod without a group."""
    return [(each.finding.key.name, each.finding.plain) for each in outcome.decisions]


def placed(outcome: Outcome) -> int:
    return sum(len(each.placed) for each in outcome.decisions)


@pytest.mark.parametrize("cpus", [4, 5])
@pytest.mark.parametrize("kind", ["JobSet", "LeaderWorkerSet", "RayCluster", "MPIJob", "PyTorchJob"])
def test_the_workload_of_a_page_is_bound_whole_or_not_at_all_in_a_labelled_namespace(kind, cpus):
    """The page declares no group. Each replica of a LeaderWorkerSet is a gang."""
    outcome = run(*yaml.safe_load_all(manifest(kind, AUTO)), expanded.AUTO, node(cpus))
    [(name, number)] = bound(outcome).items()
    names = {"LeaderWorkerSet": "lws.bert.0"}
    assert (name, number) == (names.get(kind, f"{kind.lower()}.bert"), 5 if cpus == 5 else 0)
    # Each member of an automatic gang was told once more, as a pod without a group.
    assert not [name for name, plain in told(outcome) if plain]


@pytest.mark.parametrize("cpus", [2, 3])
def test_a_stateful_set_whose_pods_come_one_by_one_is_bound_whole_or_not_at_all(cpus):
    spec = {"replicas": 3, "serviceName": "web", "template": template()}
    web = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}
    assert placed(run(web, expanded.AUTO, node(cpus))) == (3 if cpus == 3 else 0)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, 2),
        (GANG, 0),
        (GANG | {"gangsched.io/min-member": "2"}, 2),
        ({"gangsched.io/gang": "false"}, 2),
    ],
)
def test_an_annotated_job_is_a_gang(annotations, expected):
    assert placed(run(job(annotations=annotations), node(2))) == expected


def test_a_wrong_annotation_is_told_as_the_operator_tells_it():
    [group] = run(job(annotations={"gangsched.io/gang": "yes"}), node(3)).groups
    assert group.reason == "InvalidDeclaration"
    assert 'Job train: The annotation gangsched.io/gang is \'yes\': write "true" or "false".' in group.message


@pytest.mark.parametrize("where", ["cron job", "its template"])
def test_the_job_of_a_cron_job_has_the_annotations_of_both(where):
    meta: Json = {"name": "nightly"}
    made: Json = {"spec": job()["spec"]}
    (meta if where == "cron job" else made.setdefault("metadata", {}))["annotations"] = GANG
    spec = {"schedule": "* * * * *", "jobTemplate": made}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": spec}
    assert bound(run(cron, node(2))) == {"job.nightly-0": 0}
    assert bound(run(cron, node(3))) == {"job.nightly-0": 3}


def test_the_annotation_of_a_train_job_counts_for_its_jobset_and_one_that_is_not_in_the_files_says_nothing():
    [jobset] = yaml.safe_load_all(manifest("JobSet", AUTO))
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "bert", "uid": "t"}
    jobset["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    top = {"apiVersion": owner["apiVersion"], "kind": "TrainJob", "metadata": {"name": "bert", "annotations": GANG}}
    assert bound(run(top, jobset, node(4))) == {"jobset.bert": 0}
    assert placed(run(jobset, node(4))) == 4


def pod_of(name: str, *, uid: str = "real") -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid, "controller": True}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "ownerReferences": [owner]}, **template()}


@pytest.mark.parametrize("uid", ["", "real"])
def test_pods_in_the_files_belong_to_the_job_there_whether_that_says_its_uid_or_not(uid):
    there = job(annotations=GANG, **({"uid": uid} if uid else {}))
    pods = [pod_of(name) for name in ("train-x", "train-y")]
    assert bound(run(there, *pods, node(2))) == {"job.train": 0}
    assert bound(run(there, *pods, node(3))) == {"job.train": 3}


def test_pods_whose_job_is_not_in_the_files_are_on_their_own_unless_their_namespace_is_labelled():
    pods = [pod_of(name) for name in ("train-x", "train-y")]
    assert placed(run(*pods, node(1))) == 1
    [group] = run(*pods, expanded.AUTO, node(3)).groups
    assert group.reason == "OwnerUnknown"


def test_where_jobsets_are_left_out_their_jobs_count():
    outcome = run(*yaml.safe_load_all(manifest("JobSet", AUTO)), expanded.AUTO, node(5), workloads=("job",))
    assert set(bound(outcome)) == {"job.bert-leader-0", "job.bert-worker-0", "job.bert-worker-1"}


# explain

JOBS, JOBSETS, TRAIN_JOBS = "/apis/batch/v1", "/apis/jobset.x-k8s.io/v1alpha2", "/apis/trainer.kubeflow.org/v1alpha1"
JOB_SET_OWNER = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "train", "uid": "top"}


def served(*plurals: str) -> Answer:
    return body({"resources": [{"name": plural} for plural in plurals]})


def api_with(*there: Json) -> FakeApi:
    """An API server with the namespace `default` without labels, these pods, and a node with 2 CPUs."""
    api = cluster(apart=("/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces"))
    meta = {"name": "default", "resourceVersion": "1", "labels": {}}
    api.answer("GET", "/api/v1/namespaces", page([{"metadata": meta}], 1))
    api.answer("GET", "/api/v1/nodes", page([node(2)], 1))
    api.answer("GET", "/api/v1/pods", page([_placed(each) for each in there], 1))
    return api


def _placed(found: Json) -> Json:
    meta = {"namespace": "default", "uid": f"uid-{found['metadata']['name']}", **found["metadata"]}
    return {**found, "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z", **meta}}


async def explained(api: FakeApi, name: str, **settings: Any) -> tuple[Diagnosis | None, list[str]]:
    """The diagnosis, and the kinds that could not be read."""
    async with serving(api) as session:
        reading = await read(session, GroupKey("default", name), Settings(**settings))
    found = from_cluster(reading.events, GroupKey("default", name), policy=Policy(), now=2e9)
    return found, reading.hidden


PODS = [pod_of(name) for name in ("train-x", "train-y", "train-z")]
MISSING_GROUP = "/apis/gangsched.io/v1alpha1/namespaces/default/podgroups"


async def test_explain_sees_the_gang_of_an_annotated_job():
    api = api_with(*PODS)
    api.answer("GET", f"{MISSING_GROUP}/train-x", MISSING)
    api.answer("GET", JOBS, served("jobs", "cronjobs"))
    api.answer("GET", f"{JOBS}/jobs", page([_placed(job(annotations=GANG, uid="real"))], 1))
    found, hidden = await explained(api, "train-x")
    assert found is not None
    assert (str(found.key), found.reason, found.minimum, found.members) == ("default/job.train", "NeverFits", 3, 3)
    assert hidden == []


async def test_explain_says_which_workloads_it_may_not_see():
    api = api_with(*PODS)
    api.answer("GET", f"{MISSING_GROUP}/train-x", MISSING)
    api.answer("GET", JOBS, served("jobs"))
    api.answer("GET", f"{JOBS}/jobs", DENIED)
    found, [hidden] = await explained(api, "train-x")
    assert hidden.startswith("You may not list jobs.batch (403 Forbidden: you may not), so their content is unknown")
    assert found is not None
    assert found.reason == "OwnerUnknown"
    assert found.message == f"It is unknown what the Job train declares for its pods: {hidden}"


async def test_explain_reads_no_workloads_that_no_pod_needs():
    api = api_with({**pod_of("train-x"), "spec": {**template()["spec"], "schedulerName": "other"}})
    api.answer("GET", f"{MISSING_GROUP}/train-x", MISSING)
    await explained(api, "train-x")
    assert not [asked.path for asked in api.asked if asked.path.startswith(JOBS)]


async def test_explain_reads_what_is_above_the_workloads_that_it_has_read():
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/jobset-uid": "real",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
    }
    pods = [{**each, "metadata": {**each["metadata"], "labels": labels}} for each in PODS]
    api = api_with(*pods)
    api.answer("GET", f"{MISSING_GROUP}/train-x", MISSING)
    jobs = [{"name": "node", "template": {"spec": {"parallelism": 3, "completions": 3}}}]
    owners = [{**JOB_SET_OWNER, "controller": True}]
    jobset = {"metadata": {"name": "train", "uid": "real", "ownerReferences": owners}, "spec": {"replicatedJobs": jobs}}
    api.answer("GET", JOBSETS, served("jobsets"))
    api.answer("GET", f"{JOBSETS}/jobsets", page([_placed(jobset)], 1))
    api.answer("GET", TRAIN_JOBS, served("trainjobs"))
    top = {"metadata": {"name": "train", "uid": "top", "annotations": GANG}, "spec": {}}
    api.answer("GET", f"{TRAIN_JOBS}/trainjobs", page([_placed(top)], 1))
    found, hidden = await explained(api, "train-x")
    assert found is not None
    assert (str(found.key), found.minimum, hidden) == ("default/jobset.train", 3, [])


@pytest.mark.parametrize("may", [True, False])
async def test_explain_counts_what_admission_adds_to_pods_that_come_later_or_says_that_it_is_unknown(may):
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "train", "uid": "real", "controller": True}
    pod = pod_of("train-0")
    api = api_with({**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}})
    api.answer("GET", f"{MISSING_GROUP}/train-0", MISSING)
    api.answer("GET", "/apis/apps/v1", *[served("statefulsets")] * 2)
    made = {"metadata": {"name": "train", "uid": "real"}, "spec": {"replicas": 2, "template": template()}}
    api.answer("GET", "/apis/apps/v1/statefulsets", *[page([_placed(made)], 1)] * 2)
    limits = {"limits": [{"type": "Container", "defaultRequest": {"memory": "1Gi"}}]}
    adding = page([{"metadata": {"name": "l", "namespace": "default"}, "spec": limits}], 1) if may else DENIED
    api.answer("GET", "/api/v1/limitranges", adding)
    api.answer("GET", "/apis/node.k8s.io/v1/runtimeclasses", page([], 1))
    async with serving(api) as session:
        reading = await read(session, GroupKey("default", "train-0"), Settings())
    groups = [each for event in reading.events if isinstance(event, ForeignGroupsReplaced) for each in event.groups]
    [role] = [role for each in groups if each.spec is not None for role in each.spec.roles]
    assert role.template is not None
    assert ("memory" in dict(role.template.requests)) == may
    assert [each.split(" (")[0] for each in reading.hidden] == ([] if may else ["limitranges cannot be listed"])


async def test_explain_with_a_configuration_that_leaves_a_kind_out_takes_its_pods_as_single():
    api = api_with(*PODS)
    api.answer("GET", f"{MISSING_GROUP}/train-z", MISSING)
    found, _ = await explained(api, "train-z", workloads=("lws",))
    assert found is not None
    assert found.minimum == 1
    assert not [asked.path for asked in api.asked if asked.path.startswith(JOBS)]


def test_pods_that_really_have_no_group_are_told_beside_an_undeclared_gang():
    plain = {**template(), "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "namespace": "other"}}
    assert sorted(told(run(expanded.AUTO, node(8), job(), plain))) == [("alone", True), ("job.train", False)]
