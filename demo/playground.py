"""A cluster to try gangsched in, left running until Ctrl-C: ``python -m demo.playground`` (make playground).

It has the demo's control plane, nodes with GPUs and gangsched, and prints the commands to try. Nothing is left when it
ends.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from demo.show import Stage, build, end_in_order
from testbed import binaries, crds
from testbed.cache import SetupError
from testbed.control_plane import ControlPlane, ControlPlaneError
from testbed.operator import Operator

ENDED, FAILED = 0, 1
_PAGE_WITHIN_S = 30
ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "playground"


@dataclass(frozen=True)
class Step:
    """A step of the tour: a description, and the commands that show it."""

    what: str
    commands: Sequence[str]


STEPS = (
    Step(
        "A first gang: four workers with 2 GPUs each, bound together",
        (
            "kubectl apply -f examples/playground/first.yaml",
            "kubectl get podgroups.gangsched.io",
            "kubectl get pods -o wide",
        ),
    ),
    Step(
        "One that waits: it needs 6 GPUs, and 4 are free until the first is deleted",
        (
            "kubectl apply -f examples/playground/waits.yaml",
            "gangsched explain waits",
            "kubectl delete -f examples/playground/first.yaml",
            "kubectl get podgroups.gangsched.io",
        ),
    ),
    Step(
        "One that never fits: no node has 8 GPUs",
        (
            "kubectl apply -f examples/playground/never.yaml",
            "gangsched explain never",
        ),
    ),
    Step(
        "The same before it is submitted, without any cluster",
        ("gangsched simulate examples/playground/nodes.yaml examples/playground/never.yaml",),
    ),
)


def entrance(control_plane: ControlPlane) -> str:
    """The shell command that makes kubectl and gangsched use this cluster from any folder."""
    programs = [str(control_plane.binaries), str(Path(sys.executable).parent)]
    return "; ".join(
        (
            f"cd {shlex.quote(str(ROOT))}",
            f"export KUBECONFIG={shlex.quote(str(control_plane.kubeconfig))}",
            f'export PATH={":".join(map(shlex.quote, programs))}:"$PATH"',
        )
    )


def play(stage: Stage) -> None:
    """Start everything, print what to try, and wait for Ctrl-C.

    Raises:
        SetupError: the programs of the control plane are missing and cannot be built.
        ControlPlaneError: a server or the operator did not start.
    """
    if binaries.find(binaries.DEMO) is None:
        build(stage)
    stage.say("starting etcd, kube-apiserver, kube-controller-manager and KWOK")
    with ControlPlane() as control_plane:
        crds.install(control_plane)
        add_nodes(control_plane)
        stage.say("three nodes with 4 GPUs each are there; starting the operator")
        with Operator(control_plane, leader_elect=True), _page(control_plane) as address:
            print("\n".join(("", address, "", *_told(control_plane), "")), flush=True)
            stage.say("everything runs until Ctrl-C")
            signal.pause()


def add_nodes(control_plane: ControlPlane) -> None:
    """Add the nodes of examples/playground."""
    for node in yaml.safe_load_all((FOLDER / "nodes.yaml").read_text()):
        given = dict(node["status"]["allocatable"])
        size = {name: given.pop(name) for name in ("cpu", "memory", "pods")}
        control_plane.add_node(node["metadata"]["name"], **size, extra=given)


@contextlib.contextmanager
def _page(control_plane: ControlPlane) -> Iterator[str]:
    """The output of `gangsched dashboard` once its page can be opened."""
    command = [sys.executable, "-m", "gangsched", "dashboard", "--kubeconfig", str(control_plane.kubeconfig)]
    child = control_plane.spawn("dashboard", command)
    deadline = time.monotonic() + _PAGE_WITHIN_S
    while "token=" not in (said := child.log.read_text(errors="replace")):
        if child.poll() is not None or time.monotonic() > deadline:
            raise ControlPlaneError(f"gangsched dashboard did not start: {child.log_tail()}")
        time.sleep(0.05)
    try:
        yield next(line for line in said.splitlines() if "token=" in line)
    finally:
        child.stop(timeout_s=10)


def _told(control_plane: ControlPlane) -> Sequence[str]:
    lines = ["In another terminal:", "", f"  {entrance(control_plane)}"]
    for number, step in enumerate(STEPS, 1):
        lines += ["", f"{number}. {step.what}:", "", *(f"  {command}" for command in step.commands)]
    return lines


def main(_: Sequence[str] = ()) -> int:
    """The command line; ending by a signal counts as success."""
    end_in_order()
    try:
        play(Stage())
    except KeyboardInterrupt:
        print("\nEnded: nothing that was started is left.", file=sys.stderr)
        return ENDED
    except (SetupError, OSError, ControlPlaneError) as error:
        print(f"error: {error}", file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
