"""Gangs with WaitForFirstConsumer volumes: all are bound or provisioned before the first member is bound."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.kube.reading.storage_values import MARK, SELECTED_NODE
from testbed.provisioner import DRIVER, Provisioner
from tests.effort import in_turn
from tests.integration.cluster import Cluster
from tests.integration.test_volumes import (
    PATH,
    ZONE,
    _no_volumes_left,  # noqa: F401 - a fixture
    add_claim,
    add_volume,
    bound,
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
@in_turn("number", range(10))
def test_two_gangs_race_for_the_last_storage(zoned: Cluster, number: int) -> None:  # noqa: ARG001 - each try alike
    add_class(zoned, DRIVER)
    with Provisioner(zoned.api, room={"a": 2, "b": 1}, tells=True):
        add_workers(zoned, "one", 2)
        add_workers(zoned, "two", 2)
        zoned.until(lambda: len(zoned.bound()) == 2, within_s=60)
        whole, waiting = ("one", "two") if zoned.bound("one") else ("two", "one")
        assert len(zoned.bound(whole)) == 2
        assert "without storage capacity" in zoned.until_reason(waiting, "Unschedulable")
        assert not zoned.bound(waiting)
        zoned.until(lambda: not left(zoned))


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


@pytest.mark.usefixtures("operator")
@in_turn("number", range(20))
def test_two_gangs_race_for_the_last_volumes(zoned: Cluster, number: int) -> None:  # noqa: ARG001 - each try alike
    add_class(zoned)
    for at in range(5):
        add_volume(zoned, f"{zoned.namespace}-{at}", "ab"[at % 2])
    for name in ("one", "two"):
        add_workers(zoned, name, 4)
    zoned.until(lambda: len(zoned.bound()) == 4, within_s=60)
    names = {name.partition("-")[0] for name in zoned.bound()}
    [other] = {"one", "two"} - names
    assert len(names) == 1
    told = "without a PersistentVolume of StorageClass"
    zoned.until(lambda: told in zoned.condition(other).get("message", ""), within_s=60)
    zoned.until(lambda: not left(zoned))
    zoned.until(lambda: sum(bound(zoned)) == 4)
