"""`gangsched try` as a person uses it on a cluster without gangsched: what it prints, and what it leaves."""

from __future__ import annotations

import os
import re
import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gangsched.cli.trial import MANIFEST
from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.tether import Child
from tests.integration.waiting import until

CRD = "customresourcedefinition/podgroups.gangsched.io"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane of its own, without the CRD, and two nodes."""
    with ControlPlane(users=["guest"]) as running:
        for name in ("n1", "n2"):
            running.add_node(name, cpu="2")
        yield running


def tried(cluster: ControlPlane, *arguments: str, kubeconfig: Path | None = None) -> Child:
    """Start the command, with a log of its own."""
    # Tests that were started in the background ignore SIGINT, and so would the command.
    command = [sys.executable, "-m", "gangsched", "try", "--kubeconfig", str(kubeconfig or cluster.kubeconfig)]
    return cluster.spawn(f"try-{secrets.token_hex(4)}", ["env", "--default-signal=INT", *command, *arguments])


def said(child: Child) -> str:
    return child.log.read_text(errors="replace")


def end(child: Child, *, by: signal.Signals = signal.SIGINT) -> int:
    os.kill(child.pid, by)
    return child.wait(timeout_s=20)


def has_crd(cluster: ControlPlane) -> bool:
    return CRD.partition("/")[2] in cluster.kubectl("get", "crd", "--output=name")


def test_it_runs_a_gang_and_leaves_no_crd(cluster: ControlPlane) -> None:
    """Beside it another one is refused."""
    child = tried(cluster)
    until(lambda: "explain first" in said(child))
    assert "install the CRD of PodGroups, and delete it at the end" in said(child)
    assert re.search(r"The page: http://127\.0\.0\.1:\d+/\?token=[\w-]", said(child))
    assert MANIFEST in said(child)
    cluster.kubectl("apply", "--filename", "-", stdin=MANIFEST)
    until(lambda: "Running" in cluster.kubectl("get", "podgroups.gangsched.io", "first"))
    bound = yaml.safe_load(cluster.kubectl("get", "pods", "--output=yaml"))["items"]
    assert [bool(pod["spec"].get("nodeName")) for pod in bound] == [True, True]
    second = tried(cluster)
    assert second.wait(timeout_s=20) == 1
    assert "another gangsched try runs on this cluster" in said(second)
    assert end(child) == 0
    assert "The CRD of PodGroups is deleted again." in said(child)
    until(lambda: not has_crd(cluster))
    assert cluster.kubectl("get", "leases", "--all-namespaces", "--output=name").count("gangsched") == 0
    cluster.kubectl("delete", "job", "first")


def test_a_crd_that_others_have_written_since_stays_and_the_next_trial_uses_it(cluster: ControlPlane) -> None:
    child = tried(cluster)
    until(lambda: "explain first" in said(child))
    crds.install(cluster)
    assert end(child) == 0
    assert "stays, because others use it by now" in said(child)
    child = tried(cluster)
    until(lambda: "explain first" in said(child))
    assert "leave it as it is" in said(child)
    assert end(child) == 0
    assert has_crd(cluster)
    cluster.kubectl("delete", CRD)


def test_who_may_not_install_the_crd_is_told_what_to_ask_for(cluster: ControlPlane) -> None:
    child = tried(cluster, kubeconfig=cluster.kubeconfig_of_user("guest"))
    assert child.wait(timeout_s=20) == 1
    assert "the right to read and create CustomResourceDefinitions" in said(child)


def test_a_cluster_that_looks_like_production_is_left_alone_unless_it_is_meant(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """A closed terminal ends it as cleanly as Ctrl-C."""
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    content["contexts"][0]["name"] = content["current-context"] = "eu-prod-1"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(content))
    child = tried(cluster, kubeconfig=kubeconfig)
    assert child.wait(timeout_s=20) == 2
    assert "(context eu-prod-1) looks like production: choose another --context, or add --yes" in said(child)
    assert not has_crd(cluster)
    meant = tried(cluster, "--yes", kubeconfig=kubeconfig)
    until(lambda: "explain first" in said(meant))
    assert end(meant, by=signal.SIGHUP) == 0
    until(lambda: not has_crd(cluster))
