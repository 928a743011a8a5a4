"""Volumes and devices whose writes fail in flight before a gang is bound: the gang ends whole, or nothing is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from testbed.provisioner import Provisioner
from tests.effort import in_turn
from tests.faults.plan import OF_WRITES, Fault
from tests.faults.proxy import ProxyProcess
from tests.integration import devices
from tests.integration.admission import BindingPolicy
from tests.integration.cluster import Cluster
from tests.integration.devices import _no_devices_left  # noqa: F401 - a fixture
from tests.integration.test_volumes import (
    _no_volumes_left,  # noqa: F401 - a fixture
    add_class,
    add_volume,
    add_workers,
    bound,
    left,
    until_available,
    uses,
    with_zones,
    zones,
    zones_of_volumes,
)

SIZE = 3
RESOURCE = "example.com/gpu"


@pytest.mark.usefixtures("behind")
@in_turn("fault", sorted(OF_WRITES), ids=str, share=(2, 3))
def test_a_write_that_fails_on_its_way_leaves_the_group_whole_or_nothing_written(
    cluster: Cluster, proxy: ProxyProcess, fault: Fault
) -> None:
    zoned = with_zones(cluster)
    add_class(zoned)
    add_volume(zoned, zoned.namespace, "a")
    until_available(zoned, 1)
    before = proxy.injected[fault]
    proxy.next(fault=fault, method="PATCH", path_contains="persistentvolume", times=3)
    add_workers(zoned, "w", 3)
    zoned.until(lambda: len(left(zoned)) == 2 and sum(bound(zoned)) == 1, within_s=30)
    assert not zoned.bound()
    proxy.next(fault=fault, method="PATCH", path_contains="persistentvolume", times=3)
    for at in range(3):
        zoned.delete_pod(f"w-{at}")
    zoned.until(lambda: not left(zoned), within_s=30)
    assert proxy.injected[fault] > before
    with Provisioner(zoned.api):
        for at in range(3):
            zoned.add_pod(f"w-{at}", "w", **uses(f"w-{at}"))
        zoned.until_bound("w", 3, within_s=60)
    assert zones(zoned, "w") == zones_of_volumes(zoned, "w")


@pytest.mark.usefixtures("behind")
@in_turn("at", ["resourceclaims", "/status"])
@in_turn("fault", sorted(OF_WRITES), ids=str, share=(0, 3))
def test_a_claim_whose_writes_fail_is_whole_or_as_it_was(
    cluster: Cluster, proxy: ProxyProcess, refuse_bindings: BindingPolicy, fault: Fault, at: str
) -> None:
    """The pods stay, so only gangsched can release anything; for deleted pods kube-controller-manager would do it."""
    cluster.add_node("n0", cpu="64")
    devices.add_class(cluster, "gpu")
    devices.add_gpus(cluster, "n0", SIZE)
    for each in range(SIZE):
        devices.add_claim(cluster, f"w-{each}", "gpu")
    refuse_bindings("w-")
    before = proxy.injected[fault]
    written = ("resourceclaims", at)
    proxy.next(fault=fault, method="PATCH", path_contains=written, times=SIZE)
    devices.add_users(cluster, "w", SIZE)
    cluster.until(lambda: len(devices.in_use(cluster)) == SIZE, within_s=60)
    assert not cluster.bound()
    assert proxy.injected[fault] > before
    proxy.next(fault=fault, method="PATCH", path_contains=written, times=SIZE)
    cluster.delete_group("w")
    cluster.until(lambda: not devices.left(cluster), within_s=60, what="nothing is left on the claims")
    assert len(cluster.pods("w")) == SIZE
    refuse_bindings.allow()
    cluster.add_group("w", min_member=SIZE)
    cluster.until_bound("w", SIZE, within_s=60)
    assert len(devices.in_use(cluster)) == SIZE


@pytest.mark.usefixtures("behind")
@in_turn("fault", sorted(OF_WRITES), ids=str, share=(1, 3))
def test_writes_that_fail_on_their_way_make_each_claim_once_and_leave_none(
    cluster: Cluster, proxy: ProxyProcess, fault: Fault, refuse_bindings: Callable[[str], None]
) -> None:
    cluster.add_node("n0", cpu="64")
    devices.add_class(cluster, "gpu", extendedResourceName=RESOURCE)
    devices.add_gpus(cluster, "n0", SIZE)
    refuse_bindings("w-")
    before = proxy.injected[fault]
    proxy.next(fault=fault, method="POST", path_contains="resourceclaims", times=2)
    proxy.next(fault=fault, method="PATCH", path_contains="/pods/w-0/status", times=1)
    devices.add_askers(cluster, "w", 2, RESOURCE)
    cluster.until(lambda: len(devices.in_use(cluster)) == 2, within_s=60)
    assert proxy.injected[fault] > before
    assert len(devices.claims(cluster)) == 2
    assert all("extendedResourceClaimStatus" in cluster.pod(f"w-{at}")["status"] for at in range(2))
    before = proxy.injected[fault]
    proxy.next(fault=fault, method="DELETE", path_contains="resourceclaims", times=2)
    proxy.next(fault=fault, method="PATCH", path_contains="resourceclaims", times=2)
    proxy.next(fault=fault, method="PATCH", path_contains="/pods/w-0/status", times=1)
    cluster.delete_group("w")
    cluster.until(lambda: not devices.claims(cluster), within_s=90)
    assert proxy.injected[fault] > before
    assert not cluster.bound()
