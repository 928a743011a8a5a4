"""kill -9 at random instants while gangs are bound on the real API server, and the next process's recovery."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random

import pytest

from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests import effort
from tests.effort import kills
from tests.integration.cluster import Cluster

GANGS, SIZE, ROOM_FOR = 6, 5, 4
LATEST_KILL_S = 0.4
"""Latest kill, in seconds after the first pod was created; binding everything that fits takes less. Every second time
the limit is a tenth of this, counted from the first observed binding."""


@pytest.mark.timeout(1200)
@pytest.mark.explores
def test_after_a_kill_at_any_instant_every_group_is_whole_or_wholly_unbound(with_crd: ControlPlane, cluster: Cluster):
    """Six gangs of five and room for four: after each kill exactly four are bound, whole, by the next process."""
    random = Random(20 + effort.first_seed)
    cluster.add_node("n1", cpu=str(ROOM_FOR * SIZE))
    struck: list[int] = []
    with Operator(with_crd) as operator:
        for number in kills(struck):
            names = [f"r{number}-{gang}" for gang in range(GANGS)]
            kill_after_s = random.uniform(0.0, LATEST_KILL_S)
            with ThreadPoolExecutor(GANGS + 1) as makers:
                made = [makers.submit(make, cluster, name) for name in names]
                if number % 2:
                    cluster.until(lambda: any("nodeName" in pod["spec"] for pod in cluster.pods()))
                    kill_after_s /= 10
                time.sleep(kill_after_s)
                operator.kill()
                for each in made:
                    each.result()
            if 0 < len(cluster.bound()) < ROOM_FOR * SIZE:
                struck.append(number)
            operator.start()
            cluster.until(
                partial(whole_or_unbound, cluster, names),
                within_s=30,
                what=f"round {number}, killed after {kill_after_s:.3f} s: whole or wholly unbound",
            )
            clear(cluster, names)


def whole_or_unbound(cluster: Cluster, names: list[str]) -> bool:
    """Whether as many groups as there is room for are whole and the others wholly unbound."""
    bound = Counter(name.rpartition("-")[0] for name in cluster.bound())
    return bound.keys() <= set(names) and list(bound.values()) == [SIZE] * ROOM_FOR


def make(cluster: Cluster, name: str) -> None:
    cluster.add_gang(name, SIZE)


def clear(cluster: Cluster, names: list[str]) -> None:
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods", grace_s=0)
    for name in names:
        cluster.delete_group(name)
    cluster.until(lambda: not cluster.pods())
