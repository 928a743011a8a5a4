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


def required(kind: str, app: str, key: str, **more: Any) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key} | more
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


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


def test_sixteen_members_that_exclude_each_other_by_hostname_are_bound_whole_once_there_are_as_many_nodes(
    cluster: Cluster,
) -> None:
    add_nodes(cluster, "z1", 15, cpu="64")
    cluster.add_group("a", min_member=16)
    cluster.add_pods("a", 16, labels={"app": "a"}, **required("podAntiAffinity", "a", HOST))
    message = cluster.until_reason("a", "NeverFits")
    assert "Only 15 of 16 members fit" in message
    assert f"15 with pods there that the required pod anti-affinity excludes from the same {HOST}: app=a" in message
    assert cluster.bound("a") == {}
    cluster.add_node("z2-0", cpu="64", labels={HOST: "z2-0", ZONE: "z2"})
    cluster.until_bound("a", 16)
    assert len(set(cluster.bound("a").values())) == 16


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


def test_eight_members_follow_the_pods_of_another_gang_to_their_zone(cluster: Cluster) -> None:
    add_nodes(cluster, "z1", 2, cpu="16")
    add_nodes(cluster, "z2", 2, cpu="8")
    cluster.add_group("a", min_member=8)
    cluster.add_pods("a", 8, labels={"app": "a"}, **required("podAffinity", "data", ZONE))
    message = cluster.until_reason("a", "Unschedulable")
    assert "None of 8 members fits; a new node would not help before the pods that their affinity asks for" in message
    assert "demand" not in cluster.status("a")
    assert (
        f"4 without the pods that the required pod affinity asks for in the same {ZONE} (z1, z2): app=data" in message
    )
    assert cluster.bound("a") == {}
    cluster.add_group("data", min_member=2)
    cluster.add_pods("data", 2, labels={"app": "data"}, nodeSelector={ZONE: "z2"})
    cluster.until_bound("a", 8)
    assert zones(cluster, "a") == {"z2": 8}


def test_two_runs_of_one_application_are_spread_each_for_itself_by_match_label_keys(cluster: Cluster) -> None:
    add_nodes(cluster, "z1", 1, cpu="8")
    add_nodes(cluster, "z2", 1, cpu="8")
    for run in ("one", "two"):
        cluster.add_group(run, min_member=3)
        cluster.add_pods(
            run, 3, labels={"app": "a", "run": run}, **spread("a", ZONE, matchLabelKeys=["run"], maxSkew=1)
        )
        cluster.until_bound(run, 3)
        assert sorted(zones(cluster, run).values()) == [1, 2]
