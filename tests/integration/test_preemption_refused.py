"""What the API server refuses while others are to leave for a group, and groups that want the same at once.

Each test has an operator of its own; no other one may run on the control plane.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from testbed.workloads import pod_template
from tests.faults.plan import Fault
from tests.faults.proxy import ProxyProcess
from tests.integration.admission import EvictionPolicy
from tests.integration.cluster import Cluster, Json
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

pytestmark = pytest.mark.timeout(240)
NAMESPACE = "gangsched-may-not-evict"
LABELS = {"gangsched.io/pod-group": "low"}
_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@pytest.fixture(scope="module", autouse=True)
def _urgent(with_crd: ControlPlane) -> Iterator[None]:
    with urgent_class(with_crd):
        yield


@pytest.fixture
def acting(with_crd: ControlPlane) -> Iterator[Operator]:
    with Operator(with_crd) as running:
        yield running


def fill(cluster: Cluster, size: int) -> set[str]:
    """A group on a node of its size; returns the UIDs of its pods."""
    cluster.add_node("n1", cpu=str(size))
    cluster.add_group("low", min_member=size)
    cluster.add_pods("low", size)
    cluster.until_bound("low", size)
    cluster.until(lambda: cluster.phase("low") == "Running")
    return uids(cluster.pods("low"))


def reserves(cluster: Cluster, group: str = "high") -> bool:
    """Whether the status of the group has a reservation for which others leave."""
    held: Json = cluster.status(group).get("reservation", {})
    return held.get("kind") == "Preemption"


def is_unmarked(cluster: Cluster) -> bool:
    return "preempted" not in cluster.status("low") and "preemptions" not in cluster.status("low")


@pytest.mark.usefixtures("acting")
@pytest.mark.parametrize(("reason", "status"), [("Invalid", 422), ("Forbidden", 403), ("RequestEntityTooLarge", 413)])
def test_an_admission_webhook_that_refuses_evictions_is_told_and_nobody_leaves(
    cluster: Cluster, reason: str, status: int
) -> None:
    first = fill(cluster, 3)
    policy = EvictionPolicy(cluster)
    policy("low-0", reason)
    try:
        add_urgent(cluster, 3)
        cluster.until(lambda: cluster.events("high", "PreemptionRefused"), what="the refusal is told")
        cluster.until(lambda: not reserves(cluster) and is_unmarked(cluster), what="nobody is to leave any more")
        time.sleep(2)
        assert {answer for _, answer in evictions(cluster)} == {status}
        assert len(cluster.events("high", "PreemptionRefused")) == 1
        assert uids(alive(cluster, "low")) == first
        assert cluster.phase("low") == "Running"
    finally:
        policy.allow()


def test_without_the_right_to_evict_that_is_told_and_nobody_leaves(cluster: Cluster) -> None:
    with Operator(cluster.control_plane):
        first = fill(cluster, 3)
    with chart_account(cluster.control_plane, NAMESPACE) as text:
        forbid_evictions(cluster, text)
        account = cluster.control_plane.kubeconfig_of_service_account(NAMESPACE, "gangsched")
        with Operator(cluster.control_plane, kubeconfig=account):
            add_urgent(cluster, 3)
            cluster.until(lambda: cluster.events("high", "PreemptionRefused"), what="the refusal is told")
            cluster.until(lambda: not reserves(cluster) and is_unmarked(cluster), what="nobody is to leave any more")
            assert {answer for _, answer in evictions(cluster)} == {403}
            assert uids(alive(cluster, "low")) == first


def forbid_evictions(cluster: Cluster, text: str) -> None:
    """Take the right to evict pods out of the chart's ClusterRoles."""
    for role in cluster.api.get(_ROLES)["items"]:
        rules = [rule for rule in role.get("rules") or [] if "pods/eviction" in rule.get("resources", [])]
        if not rules or f"name: {role['metadata']['name']}" not in text:
            continue
        for rule in rules:
            rule["resources"].remove("pods/eviction")
        cluster.api.merge(f"{_ROLES}/{role['metadata']['name']}", {"rules": role["rules"]})


def test_a_group_that_is_deleted_between_its_reservation_and_the_evictions_preempts_nobody(
    cluster: Cluster, proxy: ProxyProcess
) -> None:
    """Meanwhile it cannot be written that the others leave."""
    with Operator(cluster.control_plane, kubeconfig=proxy.kubeconfig_for()) as operator:
        delete_in_between(cluster, proxy, operator)


def delete_in_between(cluster: Cluster, proxy: ProxyProcess, operator: Operator) -> None:
    first = fill(cluster, 3)
    proxy.next(
        fault=Fault.UNAVAILABLE,
        method="PATCH",
        path_contains=(cluster.namespace, "/podgroups/low/status"),
        body_contains='"preempted":{',
        times=10_000,
    )
    add_urgent(cluster, 3)
    cluster.until(lambda: reserves(cluster), what="the reservation is written")
    refused = proxy.injected[Fault.UNAVAILABLE]
    cluster.until(lambda: proxy.injected[Fault.UNAVAILABLE] > refused, what="the mark is tried")
    for at in range(3):
        cluster.delete_pod(f"high-{at}")
    cluster.delete_group("high")
    cluster.until(lambda: operator.metric("gangsched_plans_open") == 0, what="the plan has ended")
    proxy.forget()
    time.sleep(3)
    assert evictions(cluster) == []
    assert uids(alive(cluster, "low")) == first
    assert is_unmarked(cluster)


@pytest.mark.usefixtures("acting")
def test_two_groups_that_come_at_once_get_a_node_each_and_nobody_leaves_twice(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        cluster.add_node(name, cpu="3")
        cluster.add_group(name, min_member=3)
        cluster.add_pods(name, 3)
        cluster.until_bound(name, 3)
    for name in ("high", "next"):
        cluster.add_group(name, min_member=3, **HIGH)
    for at in range(3):
        for name in ("high", "next"):
            cluster.add_pod(f"{name}-{at}", name)
    until_replaced(cluster, "high", 3)
    until_replaced(cluster, "next", 3)
    asked = evictions(cluster)
    assert len(asked) == len({name for name, _ in asked}) == 6
    assert {answer for _, answer in asked} == {201}
    assert sorted(len(alive(cluster, name)) for name in ("a", "b", "c")) == [0, 0, 3]


@pytest.fixture
def prefers(with_crd: ControlPlane, tmp_path: Path) -> Iterator[Operator]:
    """gangsched that exceeds budgets if there is no other way."""
    config = tmp_path / "config.yaml"
    config.write_text("preemption: {budgets: Prefer}\n")
    with Operator(with_crd, "--config", str(config)) as running:
        yield running


@pytest.mark.usefixtures("prefers")
def test_a_plan_that_exceeds_a_budget_waits_for_the_eviction_api(cluster: Cluster) -> None:
    """The first eviction is accepted, the second refused (429), and accepted once the budget allows it."""
    for name in ("n1", "n2"):
        cluster.add_node(name, cpu="1")
    labels = {"app": "web"}
    template = pod_template("", labels=labels)
    cluster.api.post(
        f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments",
        {
            "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        },
    )
    cluster.until(lambda: len(cluster.bound()) == 2)
    add_budget(cluster, "web", labels, maxUnavailable=1)
    until_allowed(cluster, "web", 1)
    add_urgent(cluster, 2)
    cluster.until(lambda: {answer for _, answer in evictions(cluster)} >= {201, 429}, what="one may leave")
    time.sleep(1)
    assert [answer for _, answer in evictions(cluster)].count(201) == 1
    assert cluster.bound("high") == {}
    cluster.api.merge(budget_path(cluster, "web"), {"spec": {"maxUnavailable": 2}})
    until_replaced(cluster, "high", 2, within_s=40)


@pytest.fixture(scope="module")
def unattended() -> Iterator[ControlPlane]:
    """A control plane on which nobody keeps the status of PodDisruptionBudgets up to date."""
    off = "--controllers=*,-node-ipam-controller,-disruption-controller"
    with ControlPlane(audit=True, extra_controller_args=(off,)) as running:
        crds.install(running)
        with urgent_class(running), Operator(running):
            yield running


def test_a_budget_whose_status_lags_is_waited_for(unattended: ControlPlane) -> None:
    """The API server refuses (429) while the status is of an earlier generation than the budget."""
    cluster = Cluster.fresh(unattended)
    first = fill(cluster, 2)
    path = budget_path(cluster, "all")
    spec = {"selector": {"matchLabels": LABELS}, "minAvailable": 1}
    cluster.api.post(budget_path(cluster), {"metadata": {"name": "all"}, "spec": spec})
    counts = {"currentHealthy": 2, "desiredHealthy": 0, "expectedPods": 2, "disruptionsAllowed": 2}
    cluster.api.merge(f"{path}/status", {"status": counts | {"observedGeneration": 1}})
    cluster.api.merge(path, {"spec": {"minAvailable": 0}})
    add_urgent(cluster, 2)
    cluster.until(lambda: len({name for name, _ in evictions(cluster)}) == 2, what="both are asked to leave")
    time.sleep(3)
    assert {answer for _, answer in evictions(cluster)} == {429}
    assert uids(alive(cluster, "low")) == first
    assert reserves(cluster)
    cluster.api.merge(f"{path}/status", {"status": {"observedGeneration": 2}})
    until_replaced(cluster, "high", 2, within_s=40)
    assert cluster.status("low")["preemptions"] == 1
