"""The choice of the control plane's programs, tested without building any."""

from __future__ import annotations

import socket
import sys

import pytest

from testbed import binaries, leftovers
from testbed.binaries import ALL, DEMO, PROGRAMS, Pins, parse_version
from testbed.tether import Tether

PINS = Pins(kubernetes="v1.37.2", kwok="v0.8.0", helm="v4.3.1", go=(1, 26), key="control-plane-v1.37.2-0123")


def hack_folder(root):
    for module, required in (("control-plane", "k8s.io/kubernetes v1.37.2"), ("helm", "helm.sh/helm/v4 v4.3.1")):
        folder = root / module
        folder.mkdir(parents=True)
        also = "sigs.k8s.io/kwok v0.8.0" if module == "control-plane" else ""
        (folder / "go.mod").write_text(f"module m\n\ngo 1.26.0\n\nrequire (\n\t{required} // indirect\n\t{also}\n)\n")
        (folder / "go.sum").write_text("sums\n")
    return root


def test_the_repositorys_modules_pin_every_program():
    pins = Pins.read()
    assert parse_version(pins.kubernetes) == (1, 37)
    go_mods = {module: (binaries.HACK / module / "go.mod").read_text() for module in binaries.MODULES}
    for wanted in PROGRAMS.values():
        own = (binaries.HACK / wanted.module / wanted.package).is_dir()
        assert own or wanted.package in go_mods[wanted.module]


def test_a_program_of_our_own_is_built_anew_exactly_if_its_source_changes(tmp_path):
    (tmp_path / "main.go").write_text("package main")
    before = binaries.with_digest("judge", tmp_path)
    assert before == binaries.with_digest("judge", tmp_path)
    (tmp_path / "main.go").write_text("package main // changed")
    assert binaries.with_digest("judge", tmp_path) != before
    assert binaries.JUDGE in ALL
    assert binaries.JUDGE not in DEMO


@pytest.mark.parametrize("file", ["control-plane/go.mod", "control-plane/go.sum", "helm/go.mod", "helm/go.sum"])
def test_any_change_of_what_is_pinned_changes_the_cache_key(tmp_path, file):
    hack = hack_folder(tmp_path)
    before = Pins.read(hack).key
    with (hack / file).open("a") as pinned:
        pinned.write("// changed\n")
    assert Pins.read(hack).key != before


@pytest.mark.parametrize(
    ("name", "version", "on_path", "in_assets"),
    [
        ("kube-apiserver", (1, 37), True, True),
        ("kube-apiserver", (1, 36), False, True),
        ("kube-apiserver", (1, 30), False, True),
        ("kube-apiserver", (1, 29), False, False),
        ("kubectl", (1, 32), False, True),
        ("kubectl", (0, 0), False, False),
        ("etcd", (3, 4), False, False),
        ("etcd", (3, 5), True, True),
        ("kwok", (0, 8), True, True),
        ("kwok", (0, 7), False, False),
        ("helm", (4, 0), True, True),
        ("helm", (3, 19), False, False),
    ],
)
def test_the_versions_that_will_do(name, version, on_path, in_assets):
    assert PINS.accepts(name, version) == on_path
    assert PINS.accepts(name, version, explicit=True) == in_assets


def test_a_run_that_leaves_something_behind_is_told(monkeypatch):
    monkeypatch.setenv("GANGSCHED_TESTBED_RUN", "left-behind")
    with Tether() as tether:
        child = tether.start("forgotten", ["sleep", "1000"])
        lines = leftovers.report("left-behind", within_s=0)
        assert f"process {child.pid} still runs: sleep 1000" in lines
        assert f"folder {tether.folder} is still there" in lines
    assert leftovers.report("left-behind", within_s=5) == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_socket_that_this_process_forgot_is_told():
    with socket.socket() as forgotten:
        forgotten.bind(("127.0.0.1", 0))
        forgotten.listen()
        port = forgotten.getsockname()[1]
        assert leftovers.report("nobody", within_s=0) == [f"this process still listens on 0100007F:{port:04X}"]
