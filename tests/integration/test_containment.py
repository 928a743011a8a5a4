"""A defect that one group triggers in a running operator: a plug-in's module breaks the core for that group name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.operator import Operator
from tests.integration.cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]
BROKEN = """
from gangsched.core import cycle, upkeep

place, reconcile = cycle.place, upkeep.reconcile


def broken_place(snapshot, ask, *rest):
    if any(pod.name.startswith("unplaced-") for pod in ask.members):
        raise ZeroDivisionError("over this\\ngroup")
    return place(snapshot, ask, *rest)


def broken_reconcile(gang, *rest, **more):
    done = reconcile(gang, *rest, **more)
    if gang.key.name == "part" and sum(bool(pod.node) for pod in gang.observed.pods.values()) == 2:
        raise KeyError("part")
    return done


cycle.place, upkeep.reconcile = broken_place, broken_reconcile


class Usual:
    def distribute(self, room, count):
        raise NotImplementedError
"""


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """The environment of operators that load the module as the strategy of a package."""
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[gangsched.strategies]\nexample.com/x = broken:Usual\n", encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}


def test_a_group_over_which_the_core_fails_says_so_and_the_others_are_bound(
    cluster: Cluster, broken: dict[str, str]
) -> None:
    cluster.add_node("n1", cpu="12")
    with Operator(cluster.control_plane, env=broken) as operator:
        cluster.add_group("unplaced", min_member=3)
        cluster.add_pods("unplaced", 3)
        cluster.add_group("well", min_member=3)
        cluster.add_pods("well", 3)
        cluster.until_bound("well", 3)
        message = cluster.until_reason("unplaced", "InternalError")
        assert "gangsched failed with ZeroDivisionError while placing it" in message
        assert cluster.bound("unplaced") == {}
        cluster.until(lambda: cluster.told("unplaced-0").get("reason") == "InternalError")
        cluster.until(lambda: len(cluster.events("unplaced", "InternalError")) == 1)
        assert operator.metric("gangsched_group_faults_total", step="Cycle") == 1.0
        assert operator.metric("gangsched_accounts_rebuilt_total") == 0.0
        line = next(line for line in operator.log.splitlines() if "the logic of a group failed" in line)
        assert f"group={cluster.namespace}/unplaced" in line
        assert "    ZeroDivisionError: over this" in operator.log
        assert operator.child.poll() is None
