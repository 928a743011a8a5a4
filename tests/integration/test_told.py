"""Commands that answer by what the operator has written say the same as those that read the whole cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gangsched.cli import main
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.cluster import Cluster

MEMBERS = 3


@pytest.fixture(scope="module", autouse=True)
def leader(with_crd: ControlPlane) -> Iterator[Operator]:
    with Operator(with_crd, leader_elect=True) as running:
        yield running


@pytest.fixture
def crowd(cluster: Cluster) -> Cluster:
    """A group that runs, one that waits, one without pods, and gangs without a PodGroup of which one waits."""
    cluster.add_node("n1", cpu=str(4 * MEMBERS))
    cluster.add_gang("runs", MEMBERS)
    cluster.add_group("empty", min_member=2)
    undeclared(cluster, "undeclared", MEMBERS)
    cluster.add_gang("waits", 3 * MEMBERS)
    cluster.add_pods("waits-undeclared", 3 * MEMBERS, annotations={"gangsched.io/min-member": str(3 * MEMBERS)})
    cluster.until_bound("runs", MEMBERS)
    cluster.until(lambda: cluster.phase("runs") == "Running", what="the group runs")
    cluster.until_reason("waits", "Unschedulable")
    cluster.until(lambda: cluster.phase("empty") == "Pending", what="the group without pods is seen")
    cluster.until(lambda: cluster.told("waits-undeclared-0"), what="the other gang waits")
    cluster.until(lambda: cluster.events("waits-0"), what="a member has an Event")
    return cluster


def undeclared(cluster: Cluster, name: str, size: int) -> None:
    """A gang without a PodGroup is bound."""
    cluster.add_pods(name, size, annotations={"gangsched.io/min-member": str(size)})
    cluster.until_bound(name, size)


def test_lists_are_the_same_and_nobody_reads_more_pods_than_needed(
    crowd: Cluster, with_crd: ControlPlane, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    another = Cluster(with_crd, f"{crowd.namespace}-other")
    with_crd.api.post("/api/v1/namespaces", {"metadata": {"name": another.namespace}})
    another.until(lambda: another.api.get(f"/api/v1/namespaces/{another.namespace}/serviceaccounts/default"))
    undeclared(another, "undeclared", 1)
    commands = [
        ("list", "--namespace", crowd.namespace),
        ("list", "--all-namespaces"),
        ("events", f"{crowd.namespace}/waits"),
        ("explain", f"{crowd.namespace}/runs"),
        ("explain", f"{crowd.namespace}/waits"),
        ("explain", "--all-namespaces"),
    ]

    def shown(command: tuple[str, ...]) -> str:
        assert main([*command, "--kubeconfig", str(with_crd.kubeconfig)]) == 0
        return str(capsys.readouterr().out)

    told, reads = [], []
    for command in commands:
        asked = len(reads_of_pods(with_crd))
        told.append(shown(command))
        reads.append(reads_of_pods(with_crd)[asked:])
    own, everywhere, events, running, waiting, all_that_wait = told
    assert all(any("notin" in each for each in found) for found in reads[:2])
    assert "pod/waits-0" in events
    assert [each for each in reads[2] if "labelSelector" not in each] == []
    assert running.startswith(f"{crowd.namespace}/runs: Running Scheduled")
    assert reads[3] == []
    assert "lacks" in waiting
    assert "An operator leads: " in all_that_wait
    for at, text in enumerate((own, everywhere)):
        rows = [line.split()[at] for line in text.splitlines()[1:]]
        assert {"runs", "waits", "empty", "undeclared", "waits-undeclared"} <= {*rows}
    monkeypatch.setattr("gangsched.cli.leaders.Leaders.tell", lambda *_: False)
    assert [cells(shown(command)) for command in commands[:2]] == [cells(own), cells(everywhere)]
    another.delete_pod("undeclared-0")


def cells(table: str) -> list[list[str]]:
    """The cells of a list, but for those that change each second."""
    head, *rows = (line.split() for line in table.splitlines())
    return [[cell for name, cell in zip(head, row, strict=False) if name != "WAITS"] for row in rows]


def reads_of_pods(control_plane: ControlPlane) -> list[str]:
    """The requests so far by which a command has listed pods."""
    return [
        entry["requestURI"]
        for entry in control_plane.audited(naming="/pods")
        if entry["verb"] == "list" and entry["objectRef"]["resource"] == "pods" and "watch" not in entry["requestURI"]
    ]
