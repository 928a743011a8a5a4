"""A kubelet that rejects what fits by numbers, under a real ReplicaSet controller.

The controller replaces a failed pod within milliseconds: 850 pods were bound and failed in two minutes.
"""

from __future__ import annotations

import time

from testbed.operator import Operator
from testbed.workloads import pod_template
from tests.integration.cluster import Cluster, Json
from tests.integration.rejecting import rejecting, rejection

TOPOLOGY = rejection("TopologyAffinityError", "Resources cannot be allocated\u202e with\nTopology locality")


def add_replica_set(cluster: Cluster, name: str, replicas: int, *, group: bool) -> None:
    made = pod_template(name if group else "", labels={"app": name})
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": made}
    cluster.api.post(
        f"/apis/apps/v1/namespaces/{cluster.namespace}/replicasets", {"metadata": {"name": name}, "spec": spec}
    )


def app(pod: Json) -> str:
    return str(pod["metadata"]["labels"].get("app", ""))


def quoted(cluster: Cluster, group: str) -> str:
    """The messages of the group's conditions."""
    return " ".join(str(cluster.condition(group, type_).get("message", "")) for type_ in ("Scheduled", "Degraded"))


def test_a_rejecting_node_is_left_for_another_at_once_also_after_a_restart(cluster: Cluster) -> None:
    """While the only node is closed to the set, the operator is killed; others may use the node all the time."""
    cluster.add_node("n1", cpu="8")
    with (
        rejecting(cluster, lambda pod: TOPOLOGY if on(pod, "n1") and app(pod) == "web" else None) as kubelets,
        Operator(cluster.control_plane) as operator,
    ):
        cluster.add_group("web", min_member=2)
        add_replica_set(cluster, "web", 2, group=True)
        cluster.until(lambda: "TopologyAffinityError" in quoted(cluster, "web"), within_s=30)
        cluster.until(lambda: len(kubelets.failed["web"]) == 4, within_s=30, what="the second attempt fails")
        operator.kill()
        operator.start()
        add_replica_set(cluster, "other", 2, group=False)
        cluster.until(lambda: sum(app(pod) == "other" and on(pod, "n1") for pod in cluster.pods()) == 2)
        time.sleep(3)
        assert len(kubelets.failed["web"]) == 4, "what is known comes from the failed pods"
        cluster.add_node("n2", cpu="2")
        cluster.until(lambda: sum(app(pod) == "web" and on(pod, "n2") for pod in cluster.pods()) == 2)
        cluster.until(lambda: cluster.phase("web") == "Running")
        assert len(kubelets.failed["web"]) == 4


def on(pod: Json, node: str) -> bool:
    return bool(pod["spec"].get("nodeName") == node)
