"""Bindings, evictions and owner look-ups: how gangsched interprets the error messages of the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from gangsched.core.objects.effects import BindPod, EvictPod, LookUpOwner
from gangsched.core.objects.events import Event
from gangsched.core.objects.results import BindRefused, EvictionRefused, OwnerSeen, PodEvicted, Refused, Spared
from gangsched.kube.client.session import ApiSession, connect
from gangsched.kube.writing.binding import bind
from gangsched.kube.writing.evictions import evict
from gangsched.kube.writing.job_policies import look_up_owner
from gangsched.kube.writing.write_results import WriteResult
from tests.integration.admission import BindingPolicy
from tests.integration.cluster import Cluster

IGNORES = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
ELSEWHERE = "somebody-else"


def ask(
    cluster: Cluster, call: Callable[[ApiSession], Coroutine[Any, Any, WriteResult]], kubeconfig: Path | None = None
) -> Event | None:
    """The event that the machine gets for one call of the operator's own client."""

    async def asked() -> Event | None:
        session = await connect(kubeconfig=str(kubeconfig or cluster.control_plane.kubeconfig))
        try:
            return (await call(session)).event
        finally:
            await session.close()

    return asyncio.run(asked())


def evicted(cluster: Cluster, name: str, uid: str) -> Event | None:
    effect = EvictPod(uid=uid, namespace=cluster.namespace, name=name)
    return ask(cluster, lambda session: evict(session, effect))


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
        found = ask(cluster, lambda session: bind(session, effect), kubeconfig)
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
        return ask(cluster, lambda session: look_up_owner(session, effect))

    def failed(self, cluster: Cluster) -> int:
        job = cluster.api.get(f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs/train")
        return int(job["status"].get("failed", 0))

    def test_a_job_that_ignores_disruptions_replaces(self, cluster: Cluster) -> None:
        uid = self.add_job(cluster, podFailurePolicy=IGNORES)
        assert self.seen(cluster, uid) == OwnerSeen(uid=uid, replaces=True)

    def test_a_job_without_a_policy_counts_an_eviction_as_a_failure(self, cluster: Cluster) -> None:
        uid = self.add_job(cluster)
        found = self.seen(cluster, uid)
        assert isinstance(found, OwnerSeen)
        assert not found.replaces
        assert "has no podFailurePolicy that ignores DisruptionTarget" in found.why
        cluster.until(cluster.pods)
        pod = cluster.pods()[0]["metadata"]
        assert evicted(cluster, pod["name"], pod["uid"]) == PodEvicted(uid=pod["uid"])
        cluster.until(lambda: self.failed(cluster) == 1)
