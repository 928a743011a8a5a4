"""Two operators with different schedulerNames on one API server: each group belongs to one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.waiting import until


def operator(with_crd: ControlPlane, folder: Path, name: str) -> Operator:
    config = folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump({"leaderElection": {"resourceName": f"{name}-beside"}}))
    return Operator(with_crd, "--scheduler-name", name, "--config", str(config), leader_elect=True)


@pytest.fixture(scope="module")
def both(with_crd: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Operator, Operator]]:
    folder = tmp_path_factory.mktemp("installations")
    with operator(with_crd, folder, "gangsched") as first, operator(with_crd, folder, "green") as green:
        until(lambda: (first.metric("gangsched_leader"), green.metric("gangsched_leader")) == (1, 1))
        yield first, green
        for each in (first, green):
            assert "Traceback" not in each.log
    # Other tests look for leftover Leases.
    for name in ("gangsched", "green"):
        with_crd.api.delete(f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}-beside")


def writes(one: Operator) -> float:
    """How many writes of any kind it has decided."""
    return one.metric("gangsched_effects_total")


def test_members_decide_whose_a_group_is_and_the_other_writes_nothing(cluster, both):
    first, green = both
    cluster.add_node("n1", cpu="4")
    cluster.add_group("a", min_member=2)
    cluster.add_pods("a", 1, scheduler="green")
    # The PodGroup had no pods for a moment, and belonged to the first operator.
    cluster.until(lambda: cluster.status("a").get("scheduler") == "green")
    before = writes(first)
    cluster.add_pods("a", 1, first=1, scheduler="green")
    cluster.until_bound("a", 2)
    # This is the group's last status write.
    cluster.until(lambda: (cluster.phase("a"), cluster.status("a").get("running")) == ("Running", 2))
    # One write may have been in flight.
    assert writes(first) - before <= 1
    before = writes(green)
    cluster.add_group("b", min_member=2)
    cluster.add_pods("b", 2)
    cluster.until_bound("b", 2)
    cluster.until(lambda: cluster.phase("b") in ("Scheduled", "Running"))
    assert "scheduler" not in cluster.status("b")
    assert writes(green) == before
