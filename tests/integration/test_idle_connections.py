"""Idle connections to the port of metrics and probes, which every pod of a cluster can reach."""

from __future__ import annotations

import resource
import socket

from testbed.operator import Operator
from tests.integration.cluster import Cluster

OPEN_FILES = 200
IDLE = 2000


def test_gangs_are_bound_and_probes_answered_beside_2000_idle_connections(with_crd, namespace):
    """Regression: 197 of them took all open files of an operator that may have 200, and it bound nothing more."""
    cluster = Cluster(with_crd, namespace)
    cluster.add_node(f"n-{namespace}", cpu="4")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))
    operator = Operator(with_crd, "--namespace", namespace)
    try:
        operator.launch()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * IDLE)), hard))
    idle: list[socket.socket] = []
    try:
        cluster.until(lambda: operator.get("/readyz")[0] == 200)
        host, _, port = operator.address.rpartition(":")
        idle += [socket.create_connection((host, int(port)), source_address=("127.0.0.2", 0)) for _ in range(IDLE)]
        cluster.add_gang("a", 2)
        cluster.until_bound("a", 2)
        assert operator.get("/livez")[0] == 200
        assert operator.get("/readyz")[0] == 200
        assert "Too many open files" not in operator.log
    finally:
        for each in idle:
            each.close()
        assert operator.stop() == 0
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
