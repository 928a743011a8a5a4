"""Extended resource claims whose writes fail or whose writer is killed: the gang ends whole, or no claim is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random

import pytest

from testbed.operator import Operator
from tests import effort
from tests.effort import in_turn, kills
from tests.faults.plan import OF_WRITES, Fault
from tests.faults.proxy import ProxyProcess
from tests.integration.cluster import Cluster
from tests.integration.devices import add_askers, add_class, add_gpus, claims, in_use, remove_devices

RESOURCE = "example.com/gpu"


@pytest.fixture
def equipped(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with a node of three devices."""
    cluster.add_node("n0", cpu="64")
    add_class(cluster, "gpu", extendedResourceName=RESOURCE)
    add_gpus(cluster, "n0", 3)
    yield cluster
    remove_devices(cluster)


@pytest.mark.usefixtures("behind")
@in_turn("fault", sorted(OF_WRITES), ids=str, share=(1, 3))
def test_writes_that_fail_on_their_way_make_each_claim_once_and_leave_none(
    equipped: Cluster, proxy: ProxyProcess, fault: Fault, refuse_bindings: Callable[[str], None]
) -> None:
    refuse_bindings("w-")
    before = proxy.injected[fault]
    proxy.next(fault=fault, method="POST", path_contains="resourceclaims", times=2)
    proxy.next(fault=fault, method="PATCH", path_contains="/pods/w-0/status", times=1)
    add_askers(equipped, "w", 2, RESOURCE)
    equipped.until(lambda: len(in_use(equipped)) == 2, within_s=60)
    assert proxy.injected[fault] > before
    assert len(claims(equipped)) == 2
    assert all("extendedResourceClaimStatus" in equipped.pod(f"w-{at}")["status"] for at in range(2))
    before = proxy.injected[fault]
    proxy.next(fault=fault, method="DELETE", path_contains="resourceclaims", times=2)
    proxy.next(fault=fault, method="PATCH", path_contains="resourceclaims", times=2)
    proxy.next(fault=fault, method="PATCH", path_contains="/pods/w-0/status", times=1)
    equipped.delete_group("w")
    equipped.until(lambda: not claims(equipped), within_s=90)
    assert proxy.injected[fault] > before
    assert not equipped.bound()


@pytest.mark.timeout(1200)
@pytest.mark.explores
def test_after_a_kill_at_any_instant_the_group_becomes_whole_or_no_claim_is_left(equipped: Cluster) -> None:
    """Every second time its group is deleted while there is no leader."""
    random = Random(31 + effort.first_seed)
    struck: list[int] = []
    with Operator(equipped.control_plane) as operator:
        for number in kills(struck):
            name = f"r{number}"
            add_askers(equipped, name, 3, RESOURCE)
            time.sleep(random.uniform(0.0, 0.3))
            operator.kill()
            if claims(equipped) and not equipped.bound(name):
                struck.append(number)
            if number % 2:
                equipped.delete_group(name)
                for at in range(3):
                    equipped.delete_pod(f"{name}-{at}")
            operator.start()
            if not number % 2:
                equipped.until_bound(name, 3, within_s=60)
                assert len(in_use(equipped)) == 3
                for at in range(3):
                    equipped.delete_pod(f"{name}-{at}")
            equipped.until(lambda: not claims(equipped), within_s=60, what="nothing is left")
