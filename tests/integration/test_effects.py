"""Each kind of write of `runtime.effect_table` on the real API server: what it does, and how refusals are interpreted.

Pre-bindings are written in test_volumes.py and test_devices.py, phases and conditions of other systems' PodGroups in
test_phases.py and test_native.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.demands import DemandKey, DemandObject, DemandUnit, PoolDemand
from gangsched.core.objects.effects import (
    BindPod,
    DeleteGroup,
    DropDemand,
    Effect,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
    PutDemand,
)
from gangsched.core.objects.events import Event
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.record import Phase, Record
from gangsched.core.objects.results import (
    BindRefused,
    EvictionRefused,
    OwnerSeen,
    PodEvicted,
    Refused,
    Spared,
    StatusWritten,
)
from gangsched.core.objects.status import GroupStatus
from gangsched.core.objects.workload import Reference
from gangsched.kube.client.lease import LeaseClient
from gangsched.kube.client.session import connect
from gangsched.kube.writing.volcano_phases import Rival
from gangsched.kube.writing.write_results import Outcome, WriteResult
from gangsched.runtime.effect_table import table
from gangsched.runtime.write import Write
from tests.integration.admission import BindingPolicy
from tests.integration.cluster import Cluster
from tests.integration.foreign import DEMANDS, served

IGNORES = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
ELSEWHERE = "somebody-else"


def sent(cluster: Cluster, effect: Effect, kubeconfig: Path | None = None) -> WriteResult:
    """The result of the effect, sent by the operator's own client."""

    async def answered() -> WriteResult:
        session = await connect(kubeconfig=str(kubeconfig or cluster.control_plane.kubeconfig))
        rival = Rival(LeaseClient(session=session, namespace="none", name="none", essential=False), time.time)
        row = table(session, instance="test", now=time.time, rival=rival)[type(effect)]
        assert isinstance(row, Write)
        try:
            found: WriteResult = await row.send(effect)
            return found
        finally:
            await session.close()

    return asyncio.run(answered())


def metadata(cluster: Cluster, name: str = "a") -> dict[str, str]:
    """The PodGroup's metadata."""
    path = f"/apis/gangsched.io/v1alpha1/namespaces/{cluster.namespace}/podgroups/{name}"
    meta: dict[str, str] = cluster.api.get(path)["metadata"]
    return meta


def evicted(cluster: Cluster, name: str, uid: str) -> Event | None:
    effect = EvictPod(uid=uid, namespace=cluster.namespace, name=name)
    return sent(cluster, effect).event


def running_pod(cluster: Cluster, name: str, **fields: Any) -> str:
    """The UID of a new pod that runs on node n1."""
    cluster.add_pod(name, scheduler=ELSEWHERE, nodeName="n1", **fields)
    cluster.until(lambda: cluster.pod(name)["status"]["phase"] == "Running")
    return str(cluster.pod(name)["metadata"]["uid"])


def add_budget(cluster: Cluster, name: str, *, least: int, healthy: int = 1) -> None:
    """A budget of pods labelled app=kept that its controller has worked out."""
    budgets = f"/apis/policy/v1/namespaces/{cluster.namespace}/poddisruptionbudgets"
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "kept"}}}
    cluster.api.post(budgets, {"metadata": {"name": name}, "spec": spec})
    cluster.until(lambda: cluster.api.get(f"{budgets}/{name}")["status"]["currentHealthy"] == healthy)


@pytest.fixture(autouse=True)
def _one_node(cluster: Cluster) -> None:
    cluster.add_node("n1")


def test_what_is_no_nodes_fault_is_told_from_what_may_be(cluster: Cluster, refuse_bindings: BindingPolicy) -> None:
    """A policy, a missing right and a namespace that is being deleted all answer 403 to a binding."""
    cluster.add_pod("kept", scheduler=ELSEWHERE)
    path = f"/api/v1/namespaces/{cluster.namespace}"
    cluster.api.merge(f"{path}/pods/kept", {"metadata": {"finalizers": ["example.com/kept"]}})
    uid = str(cluster.pod("kept")["metadata"]["uid"])

    def answer(kubeconfig: Path | None = None) -> tuple[Refused, str]:
        effect = BindPod(uid=uid, namespace=cluster.namespace, name="kept", node="n1")
        found = sent(cluster, effect, kubeconfig).event
        assert isinstance(found, BindRefused)
        return found.why, found.message

    refuse_bindings("kept")
    why, said = answer()
    assert (why, "ValidatingAdmissionPolicy" in said) == (Refused.FORBIDDEN, True)
    why, said = answer(cluster.control_plane.kubeconfig_of_service_account(cluster.namespace, "default"))
    assert (why, "cannot create resource" in said) == (Refused.UNAVAILABLE, True)
    refuse_bindings.allow()
    cluster.api.delete(path)
    try:
        cluster.until(lambda: answer()[0] is Refused.DENIED)
        assert "being terminated" in answer()[1]
    finally:
        cluster.api.merge(f"{path}/pods/kept", {"metadata": {"finalizers": None}})


class TestEvictions:
    def test_a_running_pod_is_evicted_and_gone_and_once_more_is_the_same(self, cluster: Cluster) -> None:
        uid = running_pod(cluster, "a")
        assert evicted(cluster, "a", uid) == PodEvicted(uid=uid)
        cluster.until(lambda: not cluster.pods())
        assert evicted(cluster, "a", uid) == PodEvicted(uid=uid)

    def test_a_pod_that_is_terminating_already_counts_as_evicted(self, cluster: Cluster) -> None:
        uid = running_pod(cluster, "a")
        path = f"/api/v1/namespaces/{cluster.namespace}/pods/a"
        cluster.api.merge(path, {"metadata": {"finalizers": ["example.com/kept"]}})
        assert [evicted(cluster, "a", uid) for _ in range(2)] == [PodEvicted(uid=uid)] * 2
        said = {condition["type"]: condition for condition in cluster.pod("a")["status"]["conditions"]}
        cluster.api.merge(path, {"metadata": {"finalizers": None}})
        assert said["DisruptionTarget"]["status"] == "True"

    def test_the_uid_of_an_earlier_pod_of_that_name_evicts_nothing(self, cluster: Cluster) -> None:
        earlier = running_pod(cluster, "a")
        cluster.delete_pod("a")
        # That it runs is not asked for: KWOK may pass over a pod that has the name of one it has just seen go.
        cluster.add_pod("a", scheduler=ELSEWHERE, nodeName="n1")
        later = cluster.pod("a")["metadata"]["uid"]
        assert evicted(cluster, "a", earlier) == PodEvicted(uid=earlier)
        pod = cluster.pod("a")
        assert pod["metadata"]["uid"] == later
        assert "deletionTimestamp" not in pod["metadata"]

    def test_a_disruption_budget_spares_the_pod_in_its_own_words(self, cluster: Cluster) -> None:
        uid = running_pod(cluster, "a", labels={"app": "kept"})
        add_budget(cluster, "all-of-them", least=1)
        assert evicted(cluster, "a", uid) == EvictionRefused(
            uid=uid,
            why=Spared.BUDGET,
            message="The disruption budget all-of-them needs 1 healthy pods and has 1 currently",
        )
        assert "deletionTimestamp" not in cluster.pod("a")["metadata"]

    def test_a_disruption_budget_of_a_namesake_is_no_reason_to_wait(self, cluster: Cluster) -> None:
        """The server checks budgets before it compares UIDs."""
        running_pod(cluster, "a", labels={"app": "kept"})
        add_budget(cluster, "all-of-them", least=1)
        earlier = "11111111-2222-3333-4444-555555555555"
        assert evicted(cluster, "a", earlier) == PodEvicted(uid=earlier)
        assert "deletionTimestamp" not in cluster.pod("a")["metadata"]

    def test_without_the_right_to_evict_it_is_refused_for_good(self, cluster: Cluster) -> None:
        uid = running_pod(cluster, "a")
        account = cluster.control_plane.kubeconfig_of_service_account(cluster.namespace, "default")
        found = sent(cluster, EvictPod(uid=uid, namespace=cluster.namespace, name="a"), account).event
        assert isinstance(found, EvictionRefused)
        assert (found.why, "cannot create resource" in found.message) == (Spared.FORBIDDEN, True)

    def test_two_disruption_budgets_on_one_pod_are_a_refusal_for_good(self, cluster: Cluster) -> None:
        uid = running_pod(cluster, "a", labels={"app": "kept"})
        for name in ("one", "two"):
            add_budget(cluster, name, least=0)
        found = evicted(cluster, "a", uid)
        assert isinstance(found, EvictionRefused)
        assert found.why is Spared.FORBIDDEN
        assert "more than one PodDisruptionBudget" in found.message


class TestOwners:
    @pytest.fixture(autouse=True)
    def _no_job_left(self, cluster: Cluster) -> Iterator[None]:
        """Delete the Job: pods of a Job with a policy go only when it releases them, otherwise late."""
        yield
        cluster.api.delete(f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs")

    def add_job(self, cluster: Cluster, **spec: Any) -> str:
        """The UID of a new Job whose single pod no scheduler handles."""
        template = {
            "restartPolicy": "Never",
            "schedulerName": ELSEWHERE,
            "containers": [{"name": "main", "image": "registry.invalid/sleep"}],
        }
        jobs = f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs"
        cluster.api.post(jobs, {"metadata": {"name": "train"}, "spec": {"template": {"spec": template}, **spec}})
        return str(cluster.api.get(f"{jobs}/train")["metadata"]["uid"])

    def seen(self, cluster: Cluster, uid: str) -> Event | None:
        effect = LookUpOwner(uid=uid, namespace=cluster.namespace, name="train")
        return sent(cluster, effect).event

    def failed(self, cluster: Cluster) -> int:
        job = cluster.api.get(f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs/train")
        return int(job["status"].get("failed", 0))

    def test_a_job_that_ignores_disruptions_replaces(self, cluster: Cluster) -> None:
        uid = self.add_job(cluster, podFailurePolicy=IGNORES)
        assert self.seen(cluster, uid) == OwnerSeen(uid=uid)

    def test_a_job_without_a_policy_counts_an_eviction_as_a_failure(self, cluster: Cluster) -> None:
        uid = self.add_job(cluster)
        found = self.seen(cluster, uid)
        assert isinstance(found, OwnerSeen)
        assert "has no podFailurePolicy that ignores DisruptionTarget" in found.why
        cluster.until(cluster.pods)
        pod = cluster.pods()[0]["metadata"]
        assert evicted(cluster, pod["name"], pod["uid"]) == PodEvicted(uid=pod["uid"])
        cluster.until(lambda: self.failed(cluster) == 1)


# Statuses


def patched(cluster: Cluster, uid: str, *, bound: int = 0, resource_version: str = "") -> WriteResult:
    """The result of a status write for the PodGroup a."""
    status = GroupStatus(Record(phase=Phase.QUEUED), bound=bound)
    return sent(cluster, PatchStatus(GroupKey(cluster.namespace, "a"), uid, status, resource_version))


@pytest.fixture
def group(cluster: Cluster) -> dict[str, str]:
    """The metadata of a PodGroup a, which has no status yet."""
    cluster.add_group("a", min_member=1)
    return metadata(cluster)


@pytest.mark.parametrize("conditional", [False, True])
def test_a_podgroup_that_was_made_again_does_not_get_the_old_ones_status(cluster, group, conditional):
    """The PodGroup is deleted and recreated while a write of its status is in flight."""
    cluster.delete_group("a")
    cluster.add_group("a", min_member=1)
    answer = patched(cluster, group["uid"], resource_version=group["resourceVersion"] if conditional else "")
    assert answer.result is Outcome.GONE, answer
    assert cluster.status("a") == {}


def test_a_status_is_replaced_as_a_whole_and_the_version_that_it_gave_is_known(cluster, group):
    cluster.api.merge(
        f"/apis/gangsched.io/v1alpha1/namespaces/{cluster.namespace}/podgroups/a/status",
        {"status": {"phase": "Reserved", "reservation": {"expires": "2026-01-01T00:00:00Z", "placements": []}}},
    )
    written = patched(cluster, group["uid"])
    version = metadata(cluster)["resourceVersion"]
    assert written == WriteResult(Outcome.WRITTEN, StatusWritten(GroupKey(cluster.namespace, "a"), version))
    assert cluster.phase("a") == "Queued"
    assert "reservation" not in cluster.status("a")
    again = patched(cluster, group["uid"], bound=1, resource_version=version)
    assert again.result is Outcome.WRITTEN, again
    assert cluster.status("a")["bound"] == 1


def test_a_status_on_condition_of_a_version_that_is_past_is_stale(cluster, group):
    cluster.change_spec("a", minMember=2)
    answer = patched(cluster, group["uid"], resource_version=group["resourceVersion"])
    assert answer.result is Outcome.STALE, answer
    assert cluster.status("a") == {}


def test_a_status_that_the_schema_forbids_is_refused_and_one_of_no_podgroup_is_gone(cluster, group):
    assert patched(cluster, group["uid"], bound=-1).result is Outcome.REFUSED
    cluster.delete_group("a")
    assert patched(cluster, group["uid"]).result is Outcome.GONE


# PodGroups, conditions and Events


def test_a_podgroup_is_made_once_and_deleted_as_long_as_it_is_the_same_and_unchanged(cluster: Cluster) -> None:
    cluster.add_pod("driver", scheduler=ELSEWHERE)
    key, uid = GroupKey(cluster.namespace, "a"), str(cluster.pod("driver")["metadata"]["uid"])
    make = MakeGroup(key, GroupSpec(min_member=5), Reference("v1", "Pod", "driver", uid))
    made = [sent(cluster, make).result for _ in range(2)]
    found = metadata(cluster)
    cluster.change_spec("a", minMember=2)
    now = metadata(cluster)
    asked = [("another", now["resourceVersion"]), (found["uid"], found["resourceVersion"])]
    asked += [(found["uid"], now["resourceVersion"])] * 2
    deleted = [sent(cluster, DeleteGroup(key, *each)).result for each in asked]
    assert made == [Outcome.WRITTEN, Outcome.STALE]
    assert deleted == [Outcome.STALE, Outcome.STALE, Outcome.WRITTEN, Outcome.GONE]


def test_a_condition_is_that_of_the_very_pod_and_an_event_needs_a_namespace(cluster: Cluster) -> None:
    cluster.add_pod("a", scheduler=ELSEWHERE)
    uid = str(cluster.pod("a")["metadata"]["uid"])
    said = [
        PatchPodCondition(each, cluster.namespace, name, "GangIncomplete", "1 more", 1.0)
        for each, name in (("another", "a"), (uid, "none"), (uid, "a"))
    ]
    assert [sent(cluster, each).result for each in said] == [Outcome.GONE, Outcome.GONE, Outcome.WRITTEN]
    assert (cluster.told("a")["reason"], cluster.told("a")["status"]) == ("GangIncomplete", "False")
    about = [
        EmitEvent("Pod", each, "a", uid, "Normal", "Scheduled", "Binding", "x" * 2000)
        for each in (cluster.namespace, "none")
    ]
    assert [sent(cluster, each).result for each in about] == [Outcome.WRITTEN, Outcome.GONE]
    [event] = cluster.events("a", "Scheduled")
    assert len(event["note"]) <= 1024


def test_another_demand_of_the_name_is_neither_changed_nor_deleted(cluster: Cluster) -> None:
    with served(cluster.control_plane, DEMANDS):
        # A Demand without an existing owner pod is garbage-collected.
        cluster.add_pod("pi-driver", scheduler=ELSEWHERE)
        driver = cluster.pod("pi-driver")["metadata"]["uid"]
        pool = PoolDemand(instance_group="batch", units=(DemandUnit(1, (("cpu", 1000),)),))
        wanted = DemandObject(DemandKey(cluster.namespace, "demand-pi-driver"), "pi-driver", driver, pool)
        answers = [
            sent(cluster, PutDemand(wanted)),
            sent(cluster, PutDemand(wanted)),
            sent(cluster, PutDemand(wanted, "another")),
            sent(cluster, DropDemand(wanted.key, "another")),
        ]
        demands = f"/apis/scaler.palantir.com/v1alpha2/namespaces/{cluster.namespace}/demands"
        [found] = cluster.api.get(demands)["items"]
        uid = found["metadata"]["uid"]
        answers += [
            sent(cluster, PutDemand(wanted, uid)),
            sent(cluster, DropDemand(wanted.key, uid)),
            sent(cluster, PutDemand(wanted, uid)),
        ]
    assert [str(answer.result) for answer in answers] == [
        *("Written", "Stale", "Gone", "Gone"),
        *("Written", "Written", "Gone"),
    ]
    assert found["metadata"]["labels"] == {"gangsched.io/created-by": "gangsched"}
    assert [(owner["kind"], owner["uid"]) for owner in found["metadata"]["ownerReferences"]] == [("Pod", driver)]
    assert found["spec"] == {
        "instance-group": "batch",
        "is-long-lived": False,
        "enforce-single-zone-scheduling": False,
        "units": [{"count": 1, "resources": {"cpu": "1000m"}}],
    }
