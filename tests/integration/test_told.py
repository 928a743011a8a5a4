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
    return cluster


def undeclared(cluster: Cluster, name: str, size: int) -> None:
    """A gang without a PodGroup is bound."""
    cluster.add_pods(name, size, annotations={"gangsched.io/min-member": str(size)})
    cluster.until_bound(name, size)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("everywhere", [False, True], ids=["own namespace", "all namespaces"])
def test_the_list_is_the_same(
    crowd: Cluster, with_crd: ControlPlane, capsys, monkeypatch: pytest.MonkeyPatch, *, everywhere: bool
) -> None:
    with_crd.kubectl("create", "namespace", f"{crowd.namespace}-other")
    another = Cluster(with_crd, f"{crowd.namespace}-other")
    another.until(lambda: another.api.get(f"/api/v1/namespaces/{another.namespace}/serviceaccounts/default"))
    undeclared(another, "undeclared", 1)
    where = ("--all-namespaces",) if everywhere else ("--namespace", crowd.namespace)
    command = ("list", "--kubeconfig", str(with_crd.kubeconfig), *where)
    asked = len(reads_of_pods(with_crd))
    told = shown(capsys, *command)
    requests = reads_of_pods(with_crd)[asked:]
    assert any("notin" in each for each in requests)
    monkeypatch.setattr("gangsched.cli.leaders.Leaders.tell", lambda *_: False)
    assert cells(told) == cells(shown(capsys, *command))
    rows = {line.split()[int(everywhere)]: line.split() for line in told.splitlines()[1:]}
    assert {"runs", "waits", "empty", "undeclared", "waits-undeclared"} <= {*rows}
    another.delete_pod("undeclared-0")


def test_events_of_members_are_found_by_their_label(crowd: Cluster, with_crd: ControlPlane, capsys) -> None:
    crowd.until(lambda: crowd.events("waits-0"), what="a member has an Event")
    asked = len(reads_of_pods(with_crd))
    out = shown(capsys, "events", f"{crowd.namespace}/waits", "--kubeconfig", str(with_crd.kubeconfig))
    assert "pod/waits-0" in out
    assert [each for each in reads_of_pods(with_crd)[asked:] if "labelSelector" not in each] == []


def test_a_group_that_runs_is_explained_without_reading_pods(crowd: Cluster, with_crd: ControlPlane, capsys) -> None:
    asked = len(reads_of_pods(with_crd))
    out = shown(capsys, "explain", f"{crowd.namespace}/runs", "--kubeconfig", str(with_crd.kubeconfig))
    assert out.startswith(f"{crowd.namespace}/runs: Running Scheduled")
    assert reads_of_pods(with_crd)[asked:] == []
    assert "lacks" in shown(capsys, "explain", f"{crowd.namespace}/waits", "--kubeconfig", str(with_crd.kubeconfig))


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
