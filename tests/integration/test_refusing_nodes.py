"""Nodes and pods that an admission policy refuses, on the real API server and with the chart's rights."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import Event
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.kube.client.session import connect
from gangsched.kube.writing.binding import bind
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from tests.integration.admission import BindingPolicy
from tests.integration.cluster import Cluster, Json

NAMESPACE = "gangsched-refusing"
REPAIR_DEADLINE_S = 30.0
NODES, GANGS = 20, 12
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def account(with_crd: ControlPlane) -> Iterator[Path]:
    """The kubeconfig of the chart's account."""
    with chart_account(with_crd, NAMESPACE):
        yield with_crd.kubeconfig_of_service_account(NAMESPACE, "gangsched")


def test_beside_two_nodes_that_refuse_every_binding_all_gangs_are_whole_and_the_nodes_are_told_of(
    account: Path, cluster: Cluster, refuse_bindings: BindingPolicy, show: Callable[[str], None]
) -> None:
    for number in range(NODES):
        cluster.add_node(f"n{number:02}", cpu="13", wait=False)
    bad = [f"n{number:02}" for number in range(0, NODES, 10)]
    refuse_bindings.where(f"object.target.name in {bad}", node=bad[0])
    partial_since: dict[str, float] = {}
    longest_partial_s = 0.0
    for number in range(GANGS):
        cluster.add_group(f"g{number:02}", min_member=10)
        cluster.add_pods(f"g{number:02}", 10)
    with Operator(cluster.control_plane, kubeconfig=account) as operator:
        began = time.monotonic()
        counts: Counter[str] = Counter()
        while list(counts.values()) != [10] * GANGS:
            now = time.monotonic()
            assert now - began < 120, f"not whole within 120 s: {counts}"
            counts = Counter(name.rpartition("-")[0] for name in cluster.bound())
            partial_since = {
                group: partial_since.get(group, now) for group, number in counts.items() if 0 < number < 10
            }
            longest_partial_s = max([longest_partial_s, *(now - since for since in partial_since.values())])
            time.sleep(0.3)
        whole_s = time.monotonic() - began
        refused = operator.metric("gangsched_bindings_total", result="Forbidden")
        counted = operator.metric("gangsched_node_refusals_total")
        cluster.until(lambda: told(cluster, bad), what="a node is told of")
        show(
            f"{GANGS} gangs of 10 whole {whole_s:.1f} s after the operator was ready; {refused:.0f} refusals, "
            f"{counted:.0f} counted; longest partly bound {longest_partial_s:.1f} s"
        )
        assert operator.metric("gangsched_evictions_total") == 0
        assert operator.metric("gangsched_avoided_nodes") >= 1
    assert refused_events(cluster) == []
    assert longest_partial_s < REPAIR_DEADLINE_S
    assert not set(cluster.bound().values()) & set(bad)
    assert "this pod may not be bound yet" in told(cluster, bad)[0]["note"]


def refused_events(cluster: Cluster) -> list[Json]:
    """The operator's refused Events; one in the terminating namespace of an earlier test is permitted."""
    return [
        entry
        for entry in cluster.control_plane.audited(f"system:serviceaccount:{NAMESPACE}:gangsched")
        if entry.get("objectRef", {}).get("resource") == "events"
        and entry["objectRef"]["namespace"] in ("default", cluster.namespace)
        and entry["responseStatus"]["code"] >= 400
    ]


def told(cluster: Cluster, nodes: list[str]) -> list[Json]:
    """Events on these nodes about their refusals; earlier tests had other nodes."""
    found = cluster.api.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    return [each for each in found if each["reason"] == "BindingsRefused" and each["regarding"]["name"] in nodes]


def test_what_is_no_nodes_fault_is_told_from_what_may_be(
    with_crd: ControlPlane, cluster: Cluster, refuse_bindings: BindingPolicy
) -> None:
    """A policy, a missing right and a namespace that is being deleted all answer 403."""
    cluster.add_node("e1", cpu="9")
    cluster.add_pod("kept", scheduler="somebody-else")
    path = f"/api/v1/namespaces/{cluster.namespace}"
    cluster.api.merge(f"{path}/pods/kept", {"metadata": {"finalizers": ["example.com/kept"]}})
    uid = str(cluster.pod("kept")["metadata"]["uid"])

    def answer(kubeconfig: Path) -> tuple[Refused, str]:
        effect = BindPod(uid=uid, namespace=cluster.namespace, name="kept", node="e1")

        async def asked() -> Event | None:
            session = await connect(kubeconfig=str(kubeconfig))
            try:
                return (await bind(session, effect)).event
            finally:
                await session.close()

        found = asyncio.run(asked())
        assert isinstance(found, BindRefused)
        return found.why, found.message

    refuse_bindings("kept")
    why, said = answer(with_crd.kubeconfig)
    assert (why, "ValidatingAdmissionPolicy" in said) == (Refused.FORBIDDEN, True)
    why, said = answer(with_crd.kubeconfig_of_service_account(cluster.namespace, "default"))
    assert (why, "cannot create resource" in said) == (Refused.UNAVAILABLE, True)
    refuse_bindings.allow()
    cluster.api.delete(path)
    try:
        cluster.until(lambda: answer(with_crd.kubeconfig)[0] is Refused.DENIED)
        assert "being terminated" in answer(with_crd.kubeconfig)[1]
    finally:
        cluster.api.merge(f"{path}/pods/kept", {"metadata": {"finalizers": None}})
