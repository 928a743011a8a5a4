"""Kubelets that reject what fits by numbers, and containers that end at once, under a real ReplicaSet controller.

The controller replaces a failed pod within milliseconds: 850 pods were bound and failed in two minutes.
"""

from __future__ import annotations

import time
from functools import partial

import pytest

from testbed.workloads import pod_template
from tests.integration.cluster import Cluster, Json
from tests.integration.rejecting import exit_at_once, rejecting, rejection

WATCHED_S = 36.0
"""Without pauses, dozens of pods of each set would fail in this time, in seconds. The pauses are 10 s, 20 s and 40 s,
or last for five minutes once one more attempt would exceed five failures."""
TOPOLOGY = rejection("TopologyAffinityError", "Resources cannot be allocated\u202e with\nTopology locality")
FATES = {
    "topology": lambda: TOPOLOGY,
    "admission": lambda: rejection("UnexpectedAdmissionError", "Allocate failed due to no healthy devices present"),
    "race": lambda: rejection("OutOfcpu", "Node didn't have enough resource: cpu, requested: 1000, used: 7900"),
    "affinity": lambda: rejection("NodeAffinity", "Predicate NodeAffinity failed"),
    "starts": exit_at_once,
    "alone": lambda: TOPOLOGY,
}
QUOTED = {
    "topology": r"TopologyAffinityError: Resources cannot be allocated\u202e with\nTopology locality",
    "admission": "UnexpectedAdmissionError: Allocate failed due to no healthy devices present",
    "race": "OutOfcpu: Node didn't have enough resource: cpu",
    "affinity": "NodeAffinity: Predicate NodeAffinity failed",
    "starts": "container main: StartError, exit code 128",
}


def add_replica_set(cluster: Cluster, name: str, replicas: int, *, group: bool) -> None:
    made = pod_template(name if group else "", labels={"app": name})
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": made}
    cluster.api.post(
        f"/apis/apps/v1/namespaces/{cluster.namespace}/replicasets", {"metadata": {"name": name}, "spec": spec}
    )


def app(pod: Json) -> str:
    return str(pod["metadata"]["labels"].get("app", ""))


@pytest.mark.usefixtures("operator")
def test_at_most_five_pods_of_a_set_fail_in_five_minutes_and_its_group_quotes_the_kubelet(cluster: Cluster) -> None:
    """Six ReplicaSets of two on one node, each with another way to fail; the last has no group."""
    cluster.add_node("n1", cpu="64")
    with rejecting(cluster, lambda pod: FATES[app(pod)]()) as kubelets:
        for name in FATES:
            if name in QUOTED:
                cluster.add_group(name, min_member=2)
            add_replica_set(cluster, name, 2, group=name in QUOTED)
        began = time.monotonic()
        for name, said in QUOTED.items():
            cluster.until(partial(says, cluster, name, said), within_s=30, what=name)
        assert "not to be quoted" not in quoted(cluster, "starts")
        time.sleep(max(0.0, began + WATCHED_S - time.monotonic()))
        most = {name: kubelets.most(name) for name in FATES}
        assert all(1 < number <= 5 for number in most.values()), most
        waiting = [pod for pod in cluster.pods() if app(pod) == "alone" and not pod["spec"].get("nodeName")]
        assert len(waiting) == 2
        told = [cluster.told(pod["metadata"]["name"]) for pod in waiting]
        assert {found["reason"] for found in told} == {"PodsFailAtOnce"}
        assert all("TopologyAffinityError" in found["message"] for found in told)


def says(cluster: Cluster, group: str, words: str) -> bool:
    return words in quoted(cluster, group)


def quoted(cluster: Cluster, group: str) -> str:
    """The messages of the group's conditions."""
    return " ".join(str(cluster.condition(group, type_).get("message", "")) for type_ in ("Scheduled", "Degraded"))
