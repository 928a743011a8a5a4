"""Gangs with WaitForFirstConsumer volumes: all are bound or provisioned before the first member is bound."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.kube.reading.storage_values import MARK, SELECTED_NODE
from testbed.provisioner import DRIVER, Provisioner
from tests.integration.cluster import Cluster
from tests.integration.test_volumes import (
    PATH,
    ZONE,
    _no_volumes_left,  # noqa: F401 - a fixture
    add_claim,
    uses,
    zones,
    zones_of_volumes,
)

Json = dict[str, Any]


def with_zones(cluster: Cluster) -> Cluster:
    for name in ("a1", "a2", "b1", "b2"):
        cluster.add_node(name, labels={ZONE: name[0]}, cpu="8")
    return cluster


@pytest.fixture
def zoned(cluster: Cluster) -> Cluster:
    return with_zones(cluster)


def add_class(cluster: Cluster, provisioner: str = "kubernetes.io/no-provisioner") -> None:
    cluster.api.post(
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "metadata": {"name": cluster.namespace},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )


def claims(cluster: Cluster) -> list[Json]:
    found: list[Json] = cluster.api.get(f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims")["items"]
    return found


def left(cluster: Cluster) -> list[str]:
    """The unbound objects with traces of pre-binding."""
    found = [
        each["metadata"]["name"]
        for each in claims(cluster)
        if not each["spec"].get("volumeName") and {MARK, SELECTED_NODE} & each["metadata"].get("annotations", {}).keys()
    ]
    shown = [each for each in cluster.api.get(PATH)["items"] if each["status"].get("phase") == "Available"]
    return found + [
        each["metadata"]["name"]
        for each in shown
        if "claimRef" in each["spec"] or MARK in each["metadata"].get("annotations", {})
    ]


def add_workers(cluster: Cluster, name: str, number: int, **spec: object) -> None:
    cluster.add_group(name, min_member=number, **spec)
    for at in range(number):
        add_claim(cluster, f"{name}-{at}")
        cluster.add_pod(f"{name}-{at}", name, **uses(f"{name}-{at}"))


@pytest.mark.usefixtures("operator")
def test_workers_get_volumes_provisioned_and_none_is_bound_before_the_last(zoned: Cluster) -> None:
    add_class(zoned, DRIVER)
    with Provisioner(zoned.api) as provisioner:
        provisioner.paused = True
        add_workers(zoned, "w", 8)
        message = zoned.until_reason("w", "PreBinding")
        assert "is being provisioned for node" in message
        zoned.until(lambda: len(left(zoned)) == 8)
        assert not zoned.bound()
        provisioner.paused = False
        zoned.until_bound("w", 8, within_s=60)
    assert zones(zoned, "w") == zones_of_volumes(zoned, "w")
    assert not left(zoned)


@pytest.mark.usefixtures("operator")
def test_what_was_written_is_taken_back_when_a_member_or_the_group_goes(zoned: Cluster) -> None:
    add_class(zoned, DRIVER)
    add_workers(zoned, "w", 3)
    zoned.until(lambda: len(left(zoned)) == 3)
    zoned.delete_pod("w-1")
    zoned.until(lambda: not left(zoned))
    zoned.add_pod("w-1", "w", **uses("w-1"))
    zoned.until(lambda: len(left(zoned)) == 3)
    zoned.delete_group("w")
    zoned.until(lambda: not left(zoned))
    assert len(claims(zoned)) == 3
