"""The race of two groups on a real API server, for a person to watch: ``python -m demo.show`` (make demo).

While the first run builds the control plane's programs, ``gangsched simulate`` plays the same race.
The demo ends by itself with a verdict; the exit status is 0 if the race went as expected.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from demo.race import FILES, FOLDER, Group, Race, RaceError, Scene
from testbed import binaries, crds
from testbed.cache import SetupError
from testbed.control_plane import ControlPlane, ControlPlaneError
from testbed.operator import Operator

PASSED, FAILED, INTERRUPTED = 0, 1, 130
BUILD = (sys.executable, "-m", "testbed.binaries", "--only", "demo")
"""Builds the programs that the demo needs, and prints its progress."""
_GANGSCHED = (sys.executable, "-m", "gangsched")
_BUILD_ENDS_WITHIN_S = 30
_LOG_LINES = 30
_WIDTH = 100


class Stage:
    """The terminal output: lines with the time since the start, and each scene that differs from the last."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._shown: list[str] = []

    @property
    def elapsed_s(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._started

    def say(self, text: str) -> None:
        """Print one step with its time."""
        print(f"[{self.elapsed_s:5.1f} s] {text}", flush=True)

    def show(self, scene: Scene) -> None:
        """Print the scene as a table if it differs from the last one."""
        lines = list(table(scene))
        if lines != self._shown:
            self._shown = lines
            print("\n".join([f"[{self.elapsed_s:5.1f} s]", *(f"    {line}" for line in lines)]), flush=True)


def table(scene: Scene) -> Iterator[str]:
    """Groups, members and nodes as lines of plain text."""
    rows = [("GROUP", "PHASE", "MEMBERS", "BOUND", "RUNNING", "NODES"), *map(_row, scene.groups.values())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for group in scene.groups.values():
        if group.members and not group.bound and group.message:
            yield from textwrap.wrap(f"{group.name}: {group.message}", _WIDTH, subsequent_indent="  ")
    for node, pods in scene.nodes.items():
        yield f"{node}: {', '.join(pods) or '-'}"


def _row(group: Group) -> tuple[str, ...]:
    nodes = Counter(member.node for member in group.members if member.node)
    return (
        group.name,
        group.phase or "-",
        f"{len(group.members)} of {group.minimum}",
        str(group.bound),
        str(sum(member.running for member in group.members)),
        ", ".join(f"{node} ({number})" for node, number in sorted(nodes.items())) or "-",
    )


def play(stage: Stage) -> str:
    """Play the whole race and return the verdict.

    Raises:
        SetupError: the programs of the control plane are missing and cannot be built.
        ControlPlaneError: a server or the operator did not start.
        RaceError: the race did not go as expected.
    """
    if binaries.find(binaries.DEMO) is None:
        build_while_simulating(stage)
    stage.say("starting etcd, kube-apiserver, kube-controller-manager and KWOK")
    with ControlPlane() as control_plane:
        stage.say("the API server is ready; installing the CRD: gangsched crd | kubectl apply -f -")
        crds.install(control_plane, _gangsched("crd"))
        race = Race(control_plane)
        race.prepare()
        stage.say("nodes with 8 CPUs in all are there, 0.9 of them in use; starting the operator: gangsched run")
        with Operator(control_plane) as operator:
            try:
                return _race(race, stage)
            except RaceError as error:
                tail = operator.child.log_tail(_LOG_LINES)
                raise RaceError(f"{error}\nThe operator's log ends with:\n{tail}") from error


def _race(race: Race, stage: Stage) -> str:
    names = " and ".join(sorted({entry["metadata"]["name"] for entry in race.entries}))
    stage.say(f"the operator is ready; creating {names} at once, each a StatefulSet of 5 pods of 1 CPU and a PodGroup")
    race.start(race.entries)
    scene = race.until(Scene.winner, what="one whole running and one whole waiting group", seen=stage.show)
    winner = scene.winner()
    [loser] = scene.groups.keys() - {winner}
    waited = scene.groups[loser].message
    stage.say(f"{winner} runs whole, {loser} waits whole and unbound; deleting {winner}")
    race.delete(winner)
    race.until(
        lambda scene: winner not in scene.groups and scene.groups[loser].runs_whole,
        what=f"that {loser} runs whole after {winner} was deleted",
        seen=stage.show,
    )
    return (
        f"{winner} ran whole while {loser} waited whole and unbound, told why ({waited.rstrip('.')}); "
        f"once {winner} was deleted, {loser} ran whole."
    )


def build_while_simulating(stage: Stage) -> None:
    """Build the missing programs in another process, print its progress, and meanwhile play the race in memory.

    Raises:
        SetupError: the build failed; its last lines say why.
    """
    stage.say("the control plane's programs are not built yet; building them in the background")
    with _builder(stage) as builder:
        shown = " ".join(str(file.relative_to(FOLDER.parent.parent)) for file in FILES)
        stage.say(f"meanwhile the race without a cluster: gangsched simulate {shown}")
        print(_gangsched("simulate", *map(str, FILES)), flush=True)
        stage.say("the same on a real API server follows once it is built")
        _await(builder)


def build(stage: Stage) -> None:
    """Build the missing programs in another process and print its progress.

    Raises:
        SetupError: the build failed; its last lines say why.
    """
    stage.say("the control plane's programs are not built yet; building them")
    with _builder(stage) as builder:
        _await(builder)


def _await(builder: subprocess.Popen[str]) -> None:
    if builder.wait() != 0:
        raise SetupError("the control plane could not be built, for the reason above")


@contextlib.contextmanager
def _builder(stage: Stage) -> Iterator[subprocess.Popen[str]]:
    # A separate session, so that Ctrl-C reaches it once, from here, and it shuts down cleanly.
    with subprocess.Popen(
        BUILD,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=FOLDER.parent.parent,
        start_new_session=True,
    ) as builder:
        teller = threading.Thread(target=_tell, args=(builder, stage), daemon=True)
        teller.start()
        try:
            yield builder
        finally:
            if builder.poll() is None:
                builder.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    builder.wait(timeout=_BUILD_ENDS_WITHIN_S)
            teller.join()


def _tell(builder: subprocess.Popen[str], stage: Stage) -> None:
    for line in builder.stdout or ():
        stage.say(line.rstrip())


def _gangsched(*arguments: str) -> str:
    """Run the command and return its output.

    Raises:
        RaceError: it failed.
    """
    done = subprocess.run([*_GANGSCHED, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RaceError(f"gangsched {' '.join(arguments)} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def end_in_order() -> None:
    """Make the terminating signals raise KeyboardInterrupt, so that everything that was started is stopped."""
    # SIGINT too: a shell makes its background jobs ignore it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def main(_: Sequence[str] = ()) -> int:
    """The command line."""
    end_in_order()
    stage = Stage()
    try:
        verdict = play(stage)
    except KeyboardInterrupt:
        print("\nInterrupted: everything that was started has been ended.", file=sys.stderr)
        return INTERRUPTED
    except (SetupError, OSError, ControlPlaneError) as error:
        print(f"error: {error}", file=sys.stderr)
        print("VERDICT: FAILED, the race could not be held.", flush=True)
        return FAILED
    except RaceError as error:
        print(f"VERDICT: FAILED after {stage.elapsed_s:.0f} s. {error}", flush=True)
        return FAILED
    print(f"\nVERDICT: PASSED in {stage.elapsed_s:.0f} s. {verdict}", flush=True)
    return PASSED


if __name__ == "__main__":
    sys.exit(main())
