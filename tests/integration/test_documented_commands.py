"""Runs every command of README.md, docs/ and the manifests' header comments verbatim, beside a running gangsched.

The control plane is real. The commands of a page run in order, in a namespace of their own that stands for `default`,
and in a folder that looks like the checkout. tests/documented_commands.py lists the commands that other tests run, and
those that no test runs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from gangsched.cli import main, make_parser
from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.documented_commands import ALL, ROOT, Command, blocks
from tests.integration.waiting import until

DEPLOYMENT = ROOT / "manifests" / "deployment.yaml"
INSTALL = (
    "helm install gangsched charts/gangsched --namespace gangsched-system --create-namespace "
    "--set image.repository=REGISTRY/gangsched"
)
INSTALLED = f"helm status gangsched --namespace gangsched-system || {INSTALL}"
"""A command that installs the chart unless an earlier page has."""


def made(namespace: str) -> str:
    """A command that creates the namespace unless an earlier page has created it."""
    return f"kubectl get namespace {namespace} || kubectl create namespace {namespace}"


LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "gangsched", "namespace": "gangsched-system"},
}
TRAINING = "kubectl apply --filename training.yaml"
BEFORE = {
    ("docs/dialects.md", "helm upgrade gangsched"): (INSTALLED, made("team-a"), made("team-b")),
    ("docs/autoscalers.md", "kubectl get podgroups.gangsched.io training"): (TRAINING,),
    ("docs/gangs.md", "kubectl label namespace training"): ("kubectl create namespace training",),
    ("docs/gangs.md", "kubectl annotate job train"): ("kubectl create job train --image none",),
    ("docs/installations.md", "kubectl annotate podgroups.gangsched.io training"): (TRAINING,),
    ("docs/high-availability.md", "kubectl -n gangsched-system get lease"): (
        made("gangsched-system"),
        f"kubectl create --filename - <<< '{json.dumps(LEASE)}'",
    ),
    ("docs/migrate/native.md", "helm upgrade gangsched"): (INSTALLED,),
    ("docs/migrate/palantir.md", "helm upgrade gangsched"): (INSTALLED,),
    ("docs/sizing.md", "helm upgrade gangsched"): (INSTALLED,),
    ("docs/uninstall.md", "helm uninstall gangsched"): (INSTALLED,),
    ("docs/uninstall.md", "kubectl delete -f manifests"): ("kubectl apply -f manifests/deployment.yaml",),
    ("docs/upgrade.md", "helm upgrade gangsched"): (
        INSTALLED,
        "helm get values gangsched -n gangsched-system -o yaml > my-values.yaml",
    ),
    ("docs/upgrade.md", "kubectl apply --server-side -f crds/ -f manifests"): (
        "helm uninstall gangsched --namespace gangsched-system",
    ),
    ("docs/upgrade.md", "helm history gangsched"): (
        "kubectl delete -f manifests/deployment.yaml",
        INSTALL,
        "helm upgrade gangsched charts/gangsched --namespace gangsched-system --reuse-values",
    ),
    ("docs/reasons.md", "kubectl get podgroups.gangsched.io -A"): (TRAINING,),
}
"""A page's prerequisites: commands that run before the one with this prefix; training.yaml is the README's first
gang."""
WORDS = {"REGISTRY": "registry.invalid", "NAMESPACE": "default", "NAME": "training", "NODE": "node-1"}
"""Values for the placeholders in capitals, which a reader replaces."""
SHOWN = {
    ("README.md", "gangsched list"): ("training", "Running"),
    ("README.md", "gangsched explain default/training"): ("training: Running",),
    ("README.md", "gangsched simulate nodes.yaml training.yaml"): ("Completely bound: 1 of 1 group",),
    ("docs/reasons.md", "kubectl describe podgroups.gangsched.io NAME"): ("Phase:", "Running"),
    ("docs/reasons.md", "gangsched explain NAMESPACE/NAME"): ("training: Running",),
}
"""The output that a page's queries must show eventually. All other commands only have to succeed, at once."""
ENDLESS = {"gangsched dashboard": "http://127.0.0.1:", ".venv/bin/gangsched try": "The page: http://127.0.0.1:"}
"""Output of the commands that run until Ctrl-C, expected before it is pressed; each is run for its first page."""
_WITHIN_S = 30
_INSTALLS = re.compile("helm install|-f (crds|manifests)/|delete crd")
_STATE = re.compile(r"(cd|export) |\w+=\S*$")

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Reader:
    """A user who follows the pages in this namespace and folder."""

    control_plane: ControlPlane
    namespace: str
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        path = f"{self.folder / '.venv' / 'bin'}:{self.control_plane.binaries}:{os.environ['PATH']}"
        own = {"PATH": path, "KUBECONFIG": str(self.folder / "kubeconfig"), "HOME": str(self.folder / "home")}
        return os.environ | own | {"PYTHONPATH": str(ROOT)}

    def run(self, command: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run a command after those in `before`, which set the folder and variables.

        One of gangsched that needs no shell runs in this process, which spares a second of imports.
        """
        words = shlex.split(self.filled(command))
        if not before and Path(words[0]).name == "gangsched" and not re.search(r"[|<>*]", command):
            return self._in_process(words)
        return subprocess.run(
            ["bash", "-c", self.filled("\n".join([*before, command]))],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def _in_process(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.folder),
            mock.patch.dict("os.environ", self.env),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            return subprocess.CompletedProcess(words, main(words[1:]), out.getvalue(), err.getvalue())

    def must(self, command: str, before: Sequence[str] = ()) -> str:
        done = self.run(command, before)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def shows(self, command: str, wanted: Sequence[str], before: Sequence[str] = ()) -> None:
        """Repeat a query until it succeeds and shows everything in `wanted`."""
        seen = [""]

        def shown() -> bool:
            done = self.run(command, before)
            seen[0] = done.stdout + done.stderr
            return done.returncode == 0 and all(self.filled(each) in done.stdout for each in wanted)

        until(shown, _WITHIN_S, what=lambda: f"{command} shows {wanted}, not\n{seen[0]}")

    def interrupts(self, command: str, wanted: str) -> None:
        """Start a command, wait until it prints `wanted`, and press Ctrl-C."""
        log = self.folder / "endless.log"
        with (
            log.open("w") as out,
            subprocess.Popen(
                # Tests started in the background inherit this signal as ignored.
                ["env", "--default-signal=INT", "bash", "-c", f"exec {self.filled(command)}"],
                cwd=self.folder,
                env=self.env,
                stdout=out,
                stderr=out,
            ) as running,
        ):
            try:
                until(lambda: wanted in log.read_text(), _WITHIN_S, what=log.read_text)
            finally:
                running.send_signal(signal.SIGINT)
            assert running.wait(timeout=30) == 0, log.read_text()

    def filled(self, text: str) -> str:
        for word, meant in WORDS.items():
            text = re.sub(rf"\b{word}\b", meant, text)
        return re.sub(r"\bdefault\b(?!-)", self.namespace, text)


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A separate control plane: some of the commands affect the whole cluster."""
    with ControlPlane(scheduler=True) as running:
        crds.install(running)
        for number in range(1, 4):
            running.add_node(f"node-{number}", cpu="64", memory="256Gi", extra={"nvidia.com/gpu": "16"})
        with Operator(running, leader_elect=True):
            yield running


@pytest.fixture(autouse=True)
def _no_nodes_left() -> None:
    """Overridden: here the nodes stay from one page to the next."""


@pytest.fixture
def reader(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Reader:
    return reader_in(control_plane, namespace, tmp_path)


def uninstall(control_plane: ControlPlane) -> None:
    """Remove what other pages have installed; the CRD is there."""
    for release in json.loads(control_plane.helm("list", "--all-namespaces", "--output", "json")):
        control_plane.helm("uninstall", release["name"], "--namespace", release["namespace"], "--wait")
    control_plane.kubectl("delete", "--ignore-not-found", "--filename", DEPLOYMENT)
    crds.install(control_plane)


@pytest.fixture(scope="module")
def asker(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader who changes nothing."""
    return reader_in(control_plane, "default", tmp_path_factory.mktemp("asker"))


def reader_in(control_plane: ControlPlane, namespace: str, folder: Path) -> Reader:
    """Fills the folder like a checkout after make setup, and adds the README's first gang."""
    for path in ROOT.iterdir():
        if not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    (folder / "home").mkdir()
    program = folder / ".venv" / "bin" / "gangsched"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gangsched "$@"\n')
    program.chmod(0o755)
    config = json.loads(control_plane.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    (folder / "kubeconfig").write_text(json.dumps(config))
    [gang] = [each.text for each in blocks("README.md") if each.language == "yaml"]
    (folder / "training.yaml").write_text(gang)
    return Reader(control_plane, namespace, folder)


TO_RUN = [command for command in ALL if not command.run_by and not command.why_not_here]
NOT_TO_RUN = list({command.text: command for command in ALL if command.why_not_here}.values())


@pytest.mark.parametrize("page", dict.fromkeys(command.page for command in TO_RUN))
def test_the_commands_of_a_page_do_what_it_says(reader: Reader, page: str) -> None:
    state: list[str] = []
    if any(_INSTALLS.search(each.text) for each in TO_RUN if each.page == page):
        uninstall(reader.control_plane)
    for each in TO_RUN:
        if each.page != page:
            continue
        for command in before(each):
            reader.must(command)
        if _STATE.match(each.text):
            state.append(each.text)
        elif each.text in ENDLESS:
            if page == next(other.page for other in TO_RUN if other.text == each.text):
                reader.interrupts(each.text, ENDLESS[each.text])
        elif each.language == "python":
            reader.must(f"python3 -c {shlex.quote(each.text)}", state)
        elif wanted := SHOWN.get((page, each.text)):
            reader.shows(each.text, wanted, state)
        else:
            reader.must(each.text, state)


def before(command: Command) -> Sequence[str]:
    """The commands to run before this one."""
    return [
        each
        for (page, head), rows in BEFORE.items()
        if page == command.page and command.text.startswith(head)
        for each in rows
    ]


def test_every_row_of_these_tables_is_about_a_command_that_is_still_there() -> None:
    told = {(each.page, each.text) for each in TO_RUN}
    assert set(SHOWN) - told == set()
    assert set(ENDLESS) - {text for _, text in told} == set()
    assert {
        row for row in BEFORE if not any(page == row[0] and text.startswith(row[1]) for page, text in told)
    } == set()


def is_possible(reader: Reader, command: str) -> bool:
    """Whether a command that is not run could succeed: its target, sub-command, flags and values exist.

    Only four programs are checked; commands of others pass.
    """
    program, *arguments = shlex.split(reader.filled(command))
    match program:
        case "make":
            done = subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, capture_output=True, check=False)
            return done.returncode == 0
        case "helm" if arguments[0] in ("install", "upgrade"):
            charts = [at for at, each in enumerate(arguments) if each.startswith("oci://")]
            for at in charts:
                arguments[at] = "charts/gangsched"
            return reader.run(shlex.join(["helm", "template", *arguments[1:]])).returncode == 0
        case "kubectl" | "helm":
            return reader.run(shlex.join([program, *arguments, "--help"])).returncode == 0
        case "gangsched":
            try:
                make_parser().parse_args(arguments)
            except SystemExit as ended:
                return ended.code == 0
    return True


@pytest.mark.parametrize("command", NOT_TO_RUN, ids=lambda command: f"{command.page} {command.head}")
def test_what_is_not_run_could_be(asker: Reader, command: Command) -> None:
    assert is_possible(asker, command.text), f"{command.page}, line {command.line}: {command.text}"


@pytest.mark.parametrize(
    "command",
    [
        "make nosuch",
        "kubectl drain NODE --nosuch",
        "helm install g oci://REGISTRY/charts/gangsched --set image.repository=REGISTRY/x --set nosuch=1",
        "gangsched list --nosuch",
    ],
)
def test_what_could_not_be_run_is_noticed(asker: Reader, command: str) -> None:
    assert not is_possible(asker, command)


def test_the_image_that_the_readme_builds_and_pushes_is_the_one_that_it_installs(asker: Reader) -> None:
    page = [each.text for each in ALL if each.page == "README.md"]
    [built] = [each.split("--tag ")[1].split() for each in page if each.startswith("docker build")]
    [pushed] = [each.removeprefix("docker push ") for each in page if each.startswith("docker push")]
    [install] = [each for each in page if each.startswith("helm install")]
    assert built == [pushed, "."]
    assert (ROOT / "Dockerfile").is_file()
    rendered = asker.must(install.replace("helm install", "helm template"))
    assert re.findall(r'image: "?(\S+?)"?$', rendered, re.MULTILINE)[0] == asker.filled(pushed)
