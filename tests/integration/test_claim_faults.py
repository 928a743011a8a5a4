"""ResourceClaim writes that fail in flight: the gang ends whole, or nothing is left on the claims."""

from __future__ import annotations

import pytest

from tests.effort import in_turn
from tests.faults.plan import OF_WRITES, Fault
from tests.faults.proxy import ProxyProcess
from tests.integration.admission import BindingPolicy
from tests.integration.cluster import Cluster
from tests.integration.devices import (
    _no_devices_left,  # noqa: F401 - a fixture
    add_claim,
    add_class,
    add_gpus,
    add_users,
    in_use,
    left,
)

NUMBER = 3


@pytest.mark.usefixtures("behind")
@in_turn("at", ["resourceclaims", "/status"])
@in_turn("fault", sorted(OF_WRITES), ids=str, share=(0, 3))
def test_a_claim_whose_writes_fail_is_whole_or_as_it_was(
    cluster: Cluster, proxy: ProxyProcess, refuse_bindings: BindingPolicy, fault: Fault, at: str
) -> None:
    """The pods stay, so only gangsched can release anything; for deleted pods kube-controller-manager would do it."""
    cluster.add_node("n0", cpu="64")
    add_class(cluster, "gpu")
    add_gpus(cluster, "n0", NUMBER)
    for each in range(NUMBER):
        add_claim(cluster, f"w-{each}", "gpu")
    refuse_bindings("w-")
    before = proxy.injected[fault]
    written = ("resourceclaims", at)
    proxy.next(fault=fault, method="PATCH", path_contains=written, times=NUMBER)
    add_users(cluster, "w", NUMBER)
    cluster.until(lambda: len(in_use(cluster)) == NUMBER, within_s=60)
    assert not cluster.bound()
    assert proxy.injected[fault] > before
    proxy.next(fault=fault, method="PATCH", path_contains=written, times=NUMBER)
    cluster.delete_group("w")
    cluster.until(lambda: not left(cluster), within_s=60, what="nothing is left on the claims")
    assert len(cluster.pods("w")) == NUMBER
    refuse_bindings.allow()
    cluster.add_group("w", min_member=NUMBER)
    cluster.until_bound("w", NUMBER, within_s=60)
    assert len(in_use(cluster)) == NUMBER
