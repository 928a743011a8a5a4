"""Volume pre-bindings that fail in flight: the gang ends whole, or nothing is left."""

from __future__ import annotations

import pytest

from testbed.provisioner import DRIVER, Provisioner
from tests.effort import in_turn
from tests.faults.plan import OF_WRITES, Fault
from tests.faults.proxy import ProxyProcess
from tests.integration.cluster import Cluster
from tests.integration.test_prebinding import add_class, add_workers, left, with_zones
from tests.integration.test_volumes import (
    _no_volumes_left,  # noqa: F401 - a fixture
    add_volume,
    bound,
    until_available,
    uses,
    zones,
    zones_of_volumes,
)


@pytest.fixture
def zoned(cluster: Cluster) -> Cluster:
    return with_zones(cluster)


@pytest.mark.usefixtures("behind")
@in_turn("fault", sorted(OF_WRITES), ids=str, share=(2, 3))
def test_a_write_that_fails_on_its_way_leaves_the_group_whole_or_nothing_written(
    zoned: Cluster, proxy: ProxyProcess, fault: Fault
) -> None:
    add_class(zoned, DRIVER)
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
