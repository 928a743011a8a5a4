"""The operator is killed while a gang's pre-bindings are written: the gang becomes whole, or nothing is left."""

from __future__ import annotations

import time
from random import Random

import pytest

from testbed.operator import Operator
from testbed.provisioner import Provisioner
from tests import effort
from tests.effort import kills
from tests.integration import devices
from tests.integration.cluster import Cluster
from tests.integration.devices import _no_devices_left  # noqa: F401 - a fixture
from tests.integration.test_volumes import (
    _no_volumes_left,  # noqa: F401 - a fixture
    add_class,
    add_volume,
    add_workers,
    left,
    with_zones,
    zones,
    zones_of_volumes,
)

SIZE = 4
RESOURCE = "example.com/gpu"


def delete_pods(cluster: Cluster) -> None:
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods", grace_s=0)


def at_the_first_write(cluster: Cluster) -> None:
    """Return as soon as a claim shows a write; the time until then depends on the machine."""
    until = time.monotonic() + 20
    while not devices.left(cluster):
        assert time.monotonic() < until, "no claim was written"


@pytest.mark.timeout(1200)
@pytest.mark.explores
def test_volumes(cluster: Cluster) -> None:
    """Every second time its members are deleted while there is no leader."""
    zoned, random = with_zones(cluster), Random(29 + effort.first_seed)
    add_class(zoned)
    struck: list[int] = []
    with Operator(zoned.control_plane) as operator, Provisioner(zoned.api) as provisioner:
        for number in kills(struck):
            name = f"r{number}"
            add_volume(zoned, f"{zoned.namespace}-{number}", "ab"[number % 2])
            provisioner.paused = number % 4 > 1
            add_workers(zoned, name, SIZE)
            time.sleep(random.uniform(0.0, 0.4))
            operator.kill()
            if left(zoned):
                struck.append(number)
            if number % 2:
                delete_pods(zoned)
            operator.start()
            if number % 2:
                zoned.until(lambda: not left(zoned), within_s=30, what="nothing is left")
                continue
            provisioner.paused = False
            zoned.until_bound(name, SIZE, within_s=60)
            assert zones(zoned, name) == zones_of_volumes(zoned, name)


@pytest.mark.timeout(1200)
@pytest.mark.explores
def test_devices(cluster: Cluster) -> None:
    """Every second time its PodGroup is deleted while there is no leader; its pods stay: only gangsched cleans up."""
    random = Random(31 + effort.first_seed)
    cluster.add_node("n0", cpu="64")
    devices.add_class(cluster, "gpu")
    devices.add_gpus(cluster, "n0", SIZE)
    for at in range(SIZE):
        devices.add_claim(cluster, f"w-{at}", "gpu")
    struck: list[int] = []
    with Operator(cluster.control_plane) as operator:
        for number in kills(struck):
            devices.add_users(cluster, "w", SIZE)
            if number // 2 % 2:
                time.sleep(random.uniform(0.0, 0.2))
            else:
                at_the_first_write(cluster)
            operator.kill()
            if devices.left(cluster) and not cluster.bound():
                struck.append(number)
            if number % 2 and not cluster.bound():
                cluster.delete_group("w")
                operator.start()
                cluster.until(lambda: not devices.left(cluster), within_s=60, what="nothing is left on the claims")
                assert not cluster.bound()
                delete_pods(cluster)
                continue
            operator.start()
            cluster.until_bound("w", SIZE, within_s=60)
            assert len(devices.in_use(cluster)) == SIZE
            cluster.delete_group("w")
            delete_pods(cluster)
            cluster.until(lambda: not devices.left(cluster), within_s=60, what="the claims are as they were")


@pytest.mark.timeout(1200)
@pytest.mark.explores
def test_devices_for_a_resource(cluster: Cluster) -> None:
    """Every second time its group is deleted while there is no leader."""
    random = Random(31 + effort.first_seed)
    cluster.add_node("n0", cpu="64")
    devices.add_class(cluster, "gpu", extendedResourceName=RESOURCE)
    devices.add_gpus(cluster, "n0", 3)
    struck: list[int] = []
    with Operator(cluster.control_plane) as operator:
        for number in kills(struck):
            name = f"r{number}"
            devices.add_askers(cluster, name, 3, RESOURCE)
            if number % 4 > 1:
                # How long it takes until there is something to interrupt depends on the machine.
                cluster.until(lambda: devices.claims(cluster), within_s=60, what="the first claim")
            else:
                time.sleep(random.uniform(0.0, 0.3))
            operator.kill()
            if devices.claims(cluster) and not cluster.bound(name):
                struck.append(number)
            if number % 2:
                cluster.delete_group(name)
                for at in range(3):
                    cluster.delete_pod(f"{name}-{at}")
            operator.start()
            if not number % 2:
                cluster.until_bound(name, 3, within_s=60)
                assert len(devices.in_use(cluster)) == 3
                for at in range(3):
                    cluster.delete_pod(f"{name}-{at}")
            cluster.until(lambda: not devices.claims(cluster), within_s=60, what="nothing is left")
