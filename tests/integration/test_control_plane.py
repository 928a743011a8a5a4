"""The testbed's guarantees: a real cluster that works, stays on this machine and always ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import leftovers
from testbed.api import ApiError
from testbed.control_plane import ControlPlane
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


def test_an_owner_that_is_killed_leaves_no_process_and_no_folder():
    marker = f"killed-{os.getpid()}"
    program = """
import time
from testbed.control_plane import ControlPlane
with ControlPlane() as running:
    running.spawn("bystander", ["sleep", "1000"])
    print("up", flush=True)
    time.sleep(1000)
"""
    owner = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | {RUN_VARIABLE: marker},
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        assert len(leftovers.processes(marker)) >= 6
        assert len(leftovers.folders(marker)) == 1
        owner.kill()
    assert owner.returncode == -signal.SIGKILL
    assert leftovers.report(marker, within_s=10) == []


def test_every_listener_is_on_loopback_and_servers_die_with_a_tether_that_is_killed():
    with ControlPlane(scheduler=True) as running:
        folder = str(running.folder)
        ours = leftovers.processes(os.environ[RUN_VARIABLE])
        servers = {pid: command for pid, command in ours.items() if folder in command}
        addresses = {
            f"{command.split()[0].rsplit('/')[-1]} {address}"
            for pid, command in servers.items()
            for address in leftovers.listening(pid)
        }
        tethers = [pid for pid, command in ours.items() if "tether.py" in command and _holds(pid, running.folder)]
        assert len(tethers) == 1
        os.kill(tethers[0], signal.SIGKILL)
        until(lambda: not any(folder in command for command in leftovers.processes(os.environ[RUN_VARIABLE]).values()))
    subprocess.run(["rm", "-r", folder], check=True)
    assert {address.split()[0] for address in addresses} >= {"etcd", "kube-apiserver"}
    assert [address for address in addresses if f" {LOOPBACK_V4}:" not in address] == []


def _holds(tether, folder):
    """Whether the process is the parent of the servers in that folder."""
    children = Path(f"/proc/{tether}/task/{tether}/children").read_text().split()
    return any(str(folder) in Path(f"/proc/{child}/cmdline").read_text() for child in children)
