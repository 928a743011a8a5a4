"""Whose pods leave for a group that preempts them, with the rights of the chart: who comes back, and what is freed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from testbed.workloads import pod_template
from tests.integration import devices
from tests.integration.admission import EvictionPolicy
from tests.integration.cluster import Cluster, Json
from tests.integration.devices import _no_devices_left  # noqa: F401 - a fixture
from tests.integration.test_rollback import IGNORES_DISRUPTION
from tests.integration.test_volumes import (
    _no_volumes_left,  # noqa: F401 - a fixture
    claim_spec,
    uses,
)
from tests.integration.urgent import (
    HIGH,
    add_budget,
    add_urgent,
    alive,
    budget_path,
    evictions,
    uids,
    until_allowed,
    until_replaced,
    urgent_class,
)

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("operator")]
NAMESPACE = "gangsched-preempts"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:gangsched"
WEB = {"app": "web"}


@pytest.fixture(scope="module")
def operator(with_crd: ControlPlane) -> Iterator[Operator]:
    """gangsched with the rights of the chart, which suffice."""
    with urgent_class(with_crd), chart_account(with_crd, NAMESPACE):
        account = with_crd.kubeconfig_of_service_account(NAMESPACE, "gangsched")
        with Operator(with_crd, kubeconfig=account) as running:
            yield running
    denied = [each for each in with_crd.not_permitted(ACCOUNT) if "eviction" in each or "/status" in each]
    assert denied == []


def add_deployment(cluster: Cluster, name: str, replicas: int) -> None:
    """Pods without a group, of our scheduler."""
    template = pod_template("", labels=WEB)
    spec = {"replicas": replicas, "selector": {"matchLabels": WEB}, "template": template}
    cluster.api.post(
        f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments", {"metadata": {"name": name}, "spec": spec}
    )


def of_web(cluster: Cluster) -> list[Json]:
    return [pod for pod in alive(cluster, "") if pod["metadata"].get("labels", {}).get("app") == "web"]


def bound_of_web(cluster: Cluster) -> int:
    return sum("nodeName" in pod["spec"] for pod in of_web(cluster))


def give_way_to_urgent(cluster: Cluster, size: int) -> None:
    """The members of `low` leave for as many urgent ones; their controller makes them again, and they wait behind."""
    cluster.until_bound("low", size)
    first = uids(cluster.pods("low"))
    add_urgent(cluster, size)
    until_replaced(cluster, "high", size)
    cluster.until(lambda: len(alive(cluster, "low")) == size and not uids(alive(cluster, "low")) & first, within_s=60)
    cluster.until_reason("low", "Unschedulable")
    assert cluster.bound("low") == {}


def follow_urgent(cluster: Cluster, size: int) -> None:
    """Once the urgent ones are gone, those who wait behind have their room again."""
    for at in range(size):
        cluster.delete_pod(f"high-{at}")
    cluster.until_bound("low", size)


def test_an_indexed_job_that_ignores_disruptions_comes_back_and_waits_and_counts_no_failure(cluster: Cluster) -> None:
    """As the Jobs of a JobSet. Without the rule its backoffLimit of 0 would end it."""
    cluster.add_node("n1", cpu="3")
    cluster.add_group("low", min_member=3)
    rules = {"completionMode": "Indexed", "backoffLimitPerIndex": 0, "podFailurePolicy": IGNORES_DISRUPTION}
    cluster.add_job("low", 3, "low", **rules)
    give_way_to_urgent(cluster, 3)
    assert cluster.status("low")["preemptions"] == 1
    assert [event["type"] for event in cluster.events("low", "Preempted")] == ["Normal"]
    status = cluster.api.get(f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs/low")["status"]
    assert not status.get("failed")
    assert not status.get("failedIndexes")
    assert not any(each["type"] in ("Failed", "FailureTarget") for each in status.get("conditions", []))
    follow_urgent(cluster, 3)


def test_a_stateful_set_comes_back_under_the_same_names_and_waits_behind_the_group(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="2")
    cluster.add_group("low", min_member=2)
    template = pod_template("low", labels={"app": "low"})
    selector = {"matchLabels": {"app": "low"}}
    spec = {"replicas": 2, "podManagementPolicy": "Parallel", "selector": selector, "template": template}
    cluster.api.post(
        f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets",
        {"metadata": {"name": "low"}, "spec": {"serviceName": "low", **spec}},
    )
    give_way_to_urgent(cluster, 2)
    assert len(evictions(cluster)) == 2
    follow_urgent(cluster, 2)


def test_a_member_above_a_minimum_leaves_before_a_pod_without_a_group_and_a_gang(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="4")
    cluster.add_group("elastic", min_member=1)
    cluster.add_pods("elastic", 2)
    cluster.add_gang("whole", 1)
    cluster.add_pod("alone")
    cluster.until(lambda: len(cluster.bound()) == 4)
    add_urgent(cluster, 1)
    until_replaced(cluster, "high", 1)
    assert len(alive(cluster, "elastic")) == len(alive(cluster, "whole")) == 1
    assert len(evictions(cluster)) == 1


def test_of_two_gangs_one_leaves_as_a_whole_and_the_other_stays(cluster: Cluster) -> None:
    for name in ("n1", "n2"):
        cluster.add_node(name, cpu="2")
    for gang in ("one", "other"):
        cluster.add_gang(gang, 2)
        cluster.until_bound(gang, 2)
    add_urgent(cluster, 2)
    until_replaced(cluster, "high", 2)
    assert sorted(len(alive(cluster, gang)) for gang in ("one", "other")) == [0, 2]
    assert [answer for _, answer in evictions(cluster)] == [201, 201]


@pytest.mark.parametrize(
    ("low", "high"),
    [({}, {**HIGH, "preemptionPolicy": "Never"}), (HIGH, HIGH), ({}, {"priority": 1000})],
    ids=["its spec says never", "equal priority", "a number without a class"],
)
def test_who_may_not_preempt_waits_and_nobody_leaves(cluster: Cluster, low: Json, high: Json) -> None:
    cluster.add_node("n1", cpu="1")
    cluster.add_group("low", min_member=1, **low)
    cluster.add_pods("low", 1)
    cluster.until_bound("low", 1)
    cluster.add_group("high", min_member=1, **high)
    cluster.add_pods("high", 1)
    cluster.until_reason("high", "Unschedulable")
    time.sleep(2)
    assert evictions(cluster) == []
    assert len(cluster.bound("low")) == 1


def test_a_budget_that_allows_one_of_two_keeps_both_until_it_allows_two(cluster: Cluster) -> None:
    """Their controller makes them again at once; they wait behind the group."""
    for name in ("n1", "n2"):
        cluster.add_node(name, cpu="1")
    add_deployment(cluster, "web", 2)
    cluster.until(lambda: bound_of_web(cluster) == 2)
    first = uids(of_web(cluster))
    add_budget(cluster, "web", WEB, maxUnavailable=1)
    until_allowed(cluster, "web", 1)
    add_urgent(cluster, 2)
    cluster.until_reason("high", "Unschedulable")
    time.sleep(2)
    assert uids(of_web(cluster)) == first
    cluster.api.merge(budget_path(cluster, "web"), {"spec": {"maxUnavailable": 2}})
    until_replaced(cluster, "high", 2)
    assert [answer for _, answer in evictions(cluster)] == [201, 201]
    cluster.until(lambda: len(of_web(cluster)) == 2, what="the controller has made them again")
    cluster.until(lambda: all(cluster.told(pod["metadata"]["name"]) for pod in of_web(cluster)), what="they are told")
    assert bound_of_web(cluster) == 0
    for at in range(2):
        cluster.delete_pod(f"high-{at}")
    cluster.until(lambda: bound_of_web(cluster) == 2)


@pytest.fixture
def refuse_evictions(cluster: Cluster) -> Iterator[EvictionPolicy]:
    policy = EvictionPolicy(cluster)
    yield policy
    policy.allow()


def test_an_admission_plug_in_that_refuses_evictions_is_told_and_nobody_leaves(
    cluster: Cluster, refuse_evictions: EvictionPolicy
) -> None:
    cluster.add_node("n1", cpu="2")
    cluster.add_gang("low", 2)
    cluster.until_bound("low", 2)
    cluster.until(lambda: cluster.phase("low") == "Running")
    first = uids(cluster.pods("low"))
    refuse_evictions("low-0", "Forbidden")
    add_urgent(cluster, 2)
    cluster.until(lambda: cluster.events("high", "PreemptionRefused"), what="the refusal is told")
    cluster.until(lambda: "reservation" not in cluster.status("high"), what="nobody is to leave any more")
    cluster.until(lambda: "preempted" not in cluster.status("low"), what="the group stays")
    assert {answer for _, answer in evictions(cluster)} == {403}
    assert len(cluster.events("high", "PreemptionRefused")) == 1
    assert uids(alive(cluster, "low")) == first
    assert "preemptions" not in cluster.status("low")


def test_a_device_is_used_again_once_the_claim_of_its_former_user_is_gone(cluster: Cluster) -> None:
    """The claim outlives the pod for a moment: kube-controller-manager deletes it. Nobody else leaves meanwhile."""
    for name in ("n1", "n2"):
        cluster.add_node(name, cpu="4")
        devices.add_gpus(cluster, name, 1)
    devices.add_class(cluster, "gpu")
    devices.add_template_of(cluster, {})
    for name in ("a", "b"):
        devices.add_workers(cluster, name, 1)
        cluster.until_bound(name, 1, within_s=60)
    add_urgent(cluster, 1, resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "gpus"}])
    until_replaced(cluster, "high", 1, within_s=60)
    assert len(alive(cluster, "a") + alive(cluster, "b")) == 1
    assert len(evictions(cluster)) == 1
    assert len({each for held in devices.in_use(cluster).values() for each in held}) == 2


def test_a_volume_for_a_single_pod_is_used_again_once_its_former_user_is_gone(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="4")
    volume = f"{cluster.namespace}-0"
    cluster.api.post(
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": volume},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOncePod"],
                "storageClassName": cluster.namespace,
                "csi": {"driver": "csi.example.com", "volumeHandle": volume},
            },
        },
    )
    claims = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
    cluster.api.post(
        claims,
        {"metadata": {"name": "data"}, "spec": claim_spec(cluster) | {"accessModes": ["ReadWriteOncePod"]}},
    )
    cluster.add_group("low", min_member=1)
    cluster.add_pods("low", 1, **uses("data"))
    cluster.until_bound("low", 1, within_s=60)
    cluster.add_group("beside", min_member=1)
    cluster.add_pods("beside", 1)
    cluster.until_bound("beside", 1)
    add_urgent(cluster, 1, **uses("data"))
    until_replaced(cluster, "high", 1)
    assert [name for name, _ in evictions(cluster)] == ["low-0"]
    assert len(alive(cluster, "beside")) == 1


def test_from_complete_to_bound_a_preemption_takes_little_more_than_its_victims(
    cluster: Cluster, show: Callable[[str], None]
) -> None:
    """The victims end at once. The limit has a margin, because the machine may be busy; the issue promises 3 s."""
    cluster.add_node("n1", cpu="10")
    cluster.add_gang("low", 10)
    cluster.until_bound("low", 10)
    add_urgent(cluster, 10)
    complete = time.monotonic()
    cluster.until_bound("high", 10)
    took_s = time.monotonic() - complete
    show(f"preemption: 10 for 10, from complete to bound: {took_s:.1f} s")
    assert took_s < 10
