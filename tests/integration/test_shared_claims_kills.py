"""Kills of the leader while it allocates a ResourceClaim that a PodGroup of Kubernetes shares.

In a file of its own: no other operator may run on the control plane.
"""

from __future__ import annotations

import time
from random import Random

import pytest

from testbed.operator import Operator
from tests import effort
from tests.effort import kills
from tests.faults.plan import Fault, Rates
from tests.faults.proxy import ProxyProcess
from tests.integration import devices
from tests.integration.cluster import Cluster
from tests.integration.test_native import (
    declare,
    with_gates,  # noqa: F401 - a fixture
)
from tests.integration.test_shared_claims import (
    GANG,
    NAMED,
    add_pod,
    claim_of,
    delete_group,
    delete_pod,
    gated,  # noqa: F401 - a fixture
    group_of,
    of_group,
    reserved,
)

_LATE_S = 5.0


@pytest.mark.timeout(1200)
@pytest.mark.explores
def test_wherever_the_leader_is_killed_the_claim_is_never_allocated_without_its_group_and_never_twice(
    gated: Cluster,  # noqa: F811 - the fixture
) -> None:
    """Every second time a member is deleted while there is no leader, so that the gang is incomplete afterwards.

    In two of four rounds the leader learns late what its first write to the claim has done, so that the kill strikes
    right after it. Bindings follow such a write within milliseconds, which a busy machine does not let a test hit.
    """
    random = Random(37 + effort.first_seed)
    for name in ("n0", "n1"):
        gated.add_node(name, cpu="64")
        devices.add_gpus(gated, name, 1)
    devices.add_claim(gated, "c", "gpu")
    struck: list[int] = []
    late = Rates(of={}, delay_s=(_LATE_S, _LATE_S))
    with (
        ProxyProcess(gated.control_plane, seed=4, rates=late) as proxy,
        Operator(gated.control_plane, kubeconfig=proxy.kubeconfig_for()) as operator,
    ):
        for number in kills(struck):
            group = f"g{number}"
            is_late = number // 2 % 2 == 0
            if is_late:
                proxy.next(fault=Fault.DELAY_AFTER, method="PATCH", path_contains="/resourceclaims/")
            declare(gated, group, GANG, resourceClaims=[NAMED])
            for at in range(3):
                add_pod(gated, f"p-{at}", NAMED, group=group)
            if is_late:
                gated.until(lambda: devices.left(gated), what="something is written to the claim")
            else:
                time.sleep(random.uniform(0.0, 0.2))
            operator.kill()
            if devices.left(gated) and not gated.bound():
                struck.append(number)
            time.sleep(1)  # requests that the API server has received take effect
            if number % 2 and not gated.bound():
                delete_pod(gated, "p-0")
                operator.start()
                gated.until(lambda: not devices.left(gated), within_s=60, what="nothing is left on the claim")
                assert gated.bound() == {}
            else:
                operator.start()
                gated.until(lambda: len(gated.bound()) == 3, within_s=60, what="all are bound")
                assert reserved(gated, "c") == [of_group(group_of(gated, group))]
                [device] = claim_of(gated, "c")["status"]["allocation"]["devices"]["results"]
                assert set(gated.bound().values()) == {device["pool"]}
            for pod in [each["metadata"]["name"] for each in gated.pods()]:
                delete_pod(gated, pod)
            delete_group(gated, group)
            gated.until(lambda: not devices.left(gated), within_s=60, what="the claim is as it was")
