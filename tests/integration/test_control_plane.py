"""The testbed's guarantees: a real cluster that works, stays on this machine and always ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import leftovers
from testbed.api import ApiError
from testbed.tether import RUN_VARIABLE
from tests.integration.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
LOOPBACK_V4 = "0100007F"


def bare_pod(name):
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]},
    }


def bind(control_plane, namespace, pod, node):
    control_plane.api.post(
        f"/api/v1/namespaces/{namespace}/pods/{pod}/binding",
        {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}},
    )


@pytest.fixture
def kwok(control_plane):
    """The API as KWOK uses it."""
    api = control_plane.api_of_kwok()
    yield api
    api.close()


def running(control_plane, namespace, name):
    """The path of a pod that KWOK has seen and runs."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    control_plane.api.post(pods, bare_pod(name))
    bind(control_plane, namespace, name, "one")
    until(lambda: control_plane.api.get(f"{pods}/{name}")["status"]["phase"] == "Running")
    return f"{pods}/{name}"


def test_what_kwok_owes_an_earlier_pod_does_not_reach_a_later_one_of_its_name(control_plane, namespace, kwok):
    """KWOK deletes by name; late on a busy machine: a pod that was made again was deleted at once."""
    control_plane.add_node("one")
    path = running(control_plane, namespace, "twice")
    control_plane.api.delete(path, grace_s=0)
    until(lambda: not control_plane.api.get(path.rpartition("/")[0])["items"])
    control_plane.api.post(path.rpartition("/")[0], bare_pod("twice"))
    bind(control_plane, namespace, "twice", "one")

    with pytest.raises(ApiError, match="KWOK means an earlier pod"):
        kwok.delete(path, grace_s=0)
    assert "deletionTimestamp" not in control_plane.api.get(path)["metadata"]


@pytest.mark.parametrize("state", ["not bound", "ended"])
def test_kwok_runs_no_pod_without_a_node_and_none_that_has_ended(control_plane, namespace, kwok, state):
    control_plane.add_node("one")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    if state == "ended":
        control_plane.api.merge(f"{running(control_plane, namespace, 'p')}/status", {"status": {"phase": "Failed"}})
    else:
        control_plane.api.post(pods, bare_pod("p"))
    before = control_plane.api.get(f"{pods}/p")["status"]["phase"]
    with pytest.raises(ApiError, match="an earlier state of this one"):
        kwok.merge(f"{pods}/p/status", {"status": {"phase": "Running"}})
    assert control_plane.api.get(f"{pods}/p")["status"]["phase"] == before


PROGRAM = """
import time
from testbed.tether import Tether
with Tether() as tether:
    tether.start("server", ["sleep", "1000"])
    print("up", flush=True)
    time.sleep(1000)
"""


@pytest.mark.parametrize("killed", ["owner", "tether"])
def test_servers_end_when_their_owner_is_killed_or_its_tether(killed):
    """The folder of a tether that was killed stays."""
    marker = f"killed-{os.getpid()}-{killed}"
    env = os.environ | {RUN_VARIABLE: marker}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        found = leftovers.processes(marker)
        [tether] = [pid for pid, command in found.items() if "tether.py" in command]
        [server] = [pid for pid, command in found.items() if command.startswith("sleep")]
        [folder] = leftovers.folders(marker)
        os.kill(owner.pid if killed == "owner" else tether, signal.SIGKILL)
        until(lambda: server not in leftovers.processes(marker))
        owner.kill()
    if killed == "tether":
        shutil.rmtree(folder)
    assert leftovers.report(marker, within_s=10) == []


def test_every_listener_is_on_loopback(control_plane):
    folder = str(control_plane.folder)
    addresses = {
        f"{command.split()[0].rsplit('/')[-1]} {address}"
        for pid, command in leftovers.processes(os.environ[RUN_VARIABLE]).items()
        if folder in command
        for address in leftovers.listening(pid)
    }
    assert {address.split()[0] for address in addresses} >= {"etcd", "kube-apiserver"}
    assert [address for address in addresses if f" {LOOPBACK_V4}:" not in address] == []
