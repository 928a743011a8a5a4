"""Gangs whose members share volumes, or exclude each other by volumes or host ports, on the real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.cluster import Cluster, Json

pytestmark = pytest.mark.usefixtures("operator")

ZONE = "topology.kubernetes.io/zone"
VOLUMES = "/api/v1/persistentvolumes"


@pytest.fixture
def shared(cluster: Cluster) -> Iterator[Json]:
    """The part of a pod's spec that uses one volume for all members, reachable only from zone b."""
    name = cluster.namespace
    inside = {"key": ZONE, "operator": "In", "values": ["b"]}
    asked = {"accessModes": ["ReadWriteMany"], "storageClassName": name}
    volume = asked | {
        "capacity": {"storage": "1Gi"},
        "nfs": {"server": "files.example", "path": "/"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [inside]}]}},
    }
    claim = asked | {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}
    claims = f"/api/v1/namespaces/{name}/persistentvolumeclaims"
    cluster.api.post(VOLUMES, {"metadata": {"name": name}, "spec": volume})
    cluster.api.post(claims, {"metadata": {"name": "files"}, "spec": claim})
    yield {"volumes": [{"name": "files", "persistentVolumeClaim": {"claimName": "files"}}]}
    for path in (f"{claims}/files", f"{VOLUMES}/{name}"):
        cluster.api.merge(path, {"metadata": {"finalizers": None}})
        cluster.api.delete(path)


def test_a_gang_that_shares_a_volume_is_bound_whole_where_the_volume_is_or_waits_whole(
    cluster: Cluster, shared: Json
) -> None:
    cluster.add_node("a1", labels={ZONE: "a"}, cpu="64")
    cluster.add_node("b1", labels={ZONE: "b"}, cpu="3")
    cluster.add_group("readers", min_member=6)
    cluster.add_pods("readers", 6, **shared)
    cluster.until(lambda: "members fit" in cluster.condition("readers").get("message", ""), within_s=60)
    message = cluster.condition("readers")["message"]
    assert "Only 3 of 6 members fit" in message
    volume = f"{cluster.namespace} (node affinity {ZONE}=b)"
    assert f"1 where the PersistentVolume {volume} cannot be used" in message
    assert "1 with too little cpu" in message
    assert cluster.bound("readers") == {}
    cluster.add_node("b2", labels={ZONE: "b"}, cpu="3")
    cluster.until_bound("readers", 6)
    assert {node[0] for node in cluster.bound("readers").values()} == {"b"}


def test_a_gang_with_a_host_port_has_one_member_on_each_node_or_waits_whole(cluster: Cluster) -> None:
    for name in ("n1", "n2", "n3"):
        cluster.add_node(name, cpu="64")
    port = {"containerPort": 8080, "hostPort": 8080}
    container = {"name": "main", "image": "registry.example/x:1", "ports": [port]}
    cluster.add_group("served", min_member=4)
    cluster.add_pods("served", 4, containers=[container])
    message = cluster.until_reason("served", "NeverFits")
    assert "Only 3 of 4 members fit" in message
    assert "3 with the host port 8080/TCP taken" in message
    assert cluster.bound("served") == {}
    cluster.add_node("n4", cpu="64")
    cluster.until_bound("served", 4)
    assert len(set(cluster.bound("served").values())) == 4
