"""One tenant against the others, on the real API server and with the configuration that the chart makes by default."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gangsched.cli import main
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.chart import configuration
from tests.integration.cluster import Cluster

ROLE = "gangsched.io/role"
CORES = 16
NODES = 25
WANTED = CORES * NODES - 10


@pytest.fixture
def operator(with_crd: ControlPlane, tmp_path: Path) -> Iterator[Operator]:
    with Operator(with_crd, "--config", str(configuration(with_crd, tmp_path))) as running:
        yield running


def test_a_tiny_pod_with_a_large_template_holds_nothing_and_stops_nobody(
    operator: Operator, cluster: Cluster, control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """A template asks to reserve nearly all CPUs of the cluster for a week; another group wants most of them."""
    for number in range(NODES):
        cluster.add_node(f"n{number}", cpu=str(CORES))
    roles = [
        {"name": "seed", "minMember": 1},
        {"name": "worker", "minMember": WANTED, "template": {"requests": {"cpu": 1}}},
    ]
    cluster.add_group("attack", min_member=1 + WANTED, maxScheduleTime="168h", roles=roles)
    cluster.add_pod("seed", "attack", labels={ROLE: "seed"}, requests={"cpu": "10m"})
    told = cluster.until_reason("attack", "NamespaceLimit")
    cluster.add_group("healthy", min_member=NODES)
    cluster.add_pods("healthy", NODES, requests={"cpu": str(CORES - 1)})
    cluster.until_bound("healthy", NODES)
    operator.kill()
    operator.start()
    cluster.delete_pod("healthy-0")
    cluster.until(lambda: cluster.phase("healthy") == "Degraded", what="the new process decides")
    cluster.until_reason("attack", "NamespaceLimit")

    assert f"(namespaceLimits.heldPercent), 100 of 400; it holds 0, and this group asks for {WANTED} more" in told
    assert cluster.told("seed")["reason"] == "NamespaceLimit"
    assert "reservation" not in cluster.status("attack")
    assert set(cluster.bound()) == {f"healthy-{number}" for number in range(1, NODES)}
    kubeconfig = ["--kubeconfig", str(control_plane.kubeconfig)]
    assert main(["explain", f"{cluster.namespace}/attack", *kubeconfig]) == 0
    assert "namespaceLimits.heldPercent" in capsys.readouterr().out


def test_places_are_released_after_max_hold_time_and_who_is_bound_stays(
    with_crd: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    config = configuration(with_crd, tmp_path, "config.maxHoldTime=3s")
    with Operator(with_crd, "--config", str(config)):
        cluster.add_node("n1", cpu="5")
        roles = [
            {"name": "driver", "minMember": 1},
            {"name": "worker", "minMember": 4, "template": {"requests": {"cpu": 1}}},
        ]
        cluster.add_group("a", min_member=5, maxScheduleTime="168h", roles=roles)
        cluster.add_pod("driver", "a", labels={ROLE: "driver"})
        cluster.until_bound("a", 1)
        cluster.add_pod("plain", requests={"cpu": "4"})
        cluster.until(lambda: "plain" in cluster.bound())
        cluster.until_reason("a", "HoldLimit")
        status = cluster.status("a")
        cluster.delete_pod("plain")
        cluster.add_pods("a", 4, labels={ROLE: "worker"})
        cluster.until_bound("a", 5)

    assert (status["phase"], "reservation" in status) == ("Reserved", False)
    assert status["schedulePausedTime"] > status["scheduleStartTime"]
