"""Gangs that depend on where other pods are, on the real API server."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.integration.cluster import Cluster, Json

pytestmark = pytest.mark.usefixtures("operator")

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def add_nodes(cluster: Cluster, zone: str, number: int, *, cpu: str) -> None:
    for at in range(number):
        name = f"{zone}-{at}"
        cluster.add_node(name, cpu=cpu, labels={HOST: name, ZONE: zone})


def spread(app: str, key: str, **more: Any) -> Json:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"topologySpreadConstraints": [constraint | more]}


def zones(cluster: Cluster, group: str) -> Counter[str]:
    return Counter(node.partition("-")[0] for node in cluster.bound(group).values())


def test_twelve_members_are_spread_evenly_over_three_zones_of_unequal_room(cluster: Cluster) -> None:
    add_nodes(cluster, "z1", 4, cpu="16")
    add_nodes(cluster, "z2", 2, cpu="4")
    add_nodes(cluster, "z3", 1, cpu="3")
    cluster.add_group("a", min_member=12)
    cluster.add_pods("a", 12, labels={"app": "a"}, **spread("a", ZONE))
    message = cluster.until_reason("a", "NeverFits")
    assert (
        f"topology spread by {ZONE} (z1 has 4 of at most 4, z2 has 4 of at most 4; fewest in z3: 3) allows no more"
        in message
    )
    assert "Only 11 of 12 members fit" in message
    assert cluster.bound("a") == {}
    cluster.add_node("z3-1", cpu="4", labels={HOST: "z3-1", ZONE: "z3"})
    cluster.until_bound("a", 12)
    assert zones(cluster, "a") == {"z1": 4, "z2": 4, "z3": 4}
