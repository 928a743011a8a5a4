"""Builds one program from a Go module into a folder of the cache, atomically, and reports the progress.

Runs on a bare Python 3.11, before any virtual environment exists.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.cache import Report, SetupError
from testbed.go_toolchain import GoToolchain

_SCRATCH = ".build-"
PROGRESS_EVERY_S = 30.0
_BUILD_ENDS_WITHIN_S = 10


def remove_remains(folder: Path) -> None:
    """Removes the remains of killed builds from the folder; call it only while holding the folder's build lock."""
    for stale in folder.glob(f"{_SCRATCH}*"):
        shutil.rmtree(stale)


def build_program(
    target: Path,
    package: str,
    *,
    go: GoToolchain,
    directory: Path,
    options: Sequence[str] = (),
    step: str = "",
    report: Report,
) -> None:
    """Builds the package of the module in ``directory`` as the program ``target``.

    ``options`` are further options of ``go build``; ``step`` begins each line that ``report`` receives.

    Raises:
        SetupError: Go could not build it.
    """
    name = target.name
    report(f"{step}building {name}: fetching its modules …")
    started = time.monotonic()
    packages = frozenset(go.run(["list", "-deps", package], directory=directory).stdout.split())
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=target.parent) as scratch:
        built = Path(scratch) / name
        arguments = ["build", "-v", *options, "-o", str(built), package]
        with _interrupted_at_exit(go.start(arguments, directory=directory, scratch=Path(scratch))) as build:
            lines: list[str] = []
            for _ in _read_in_turns(build, lines):
                done = sum(line.strip() in packages for line in lines)
                took_s = time.monotonic() - started
                report(f"{step}building {name}: {done} of at most {len(packages)} packages compiled ({took_s:.0f} s)")
        if build.returncode != 0:
            raise SetupError(build_failure(name, "".join(line for line in lines if line.strip() not in packages)))
        built.replace(target)
    report(f"{step}built {name} in {time.monotonic() - started:.0f} s")


def build_failure(what: str, output: str) -> str:
    """The error message for a failure of Go with that output."""
    tail = "\n".join(f"    {line}" for line in output.strip().splitlines()[-15:])
    return (
        f"Building {what} failed: where the module proxy is out of reach set GOPROXY or HTTPS_PROXY, where memory or "
        f"disk ran out free some, or point KUBEBUILDER_ASSETS to a folder with the programs. Go said:\n{tail}"
    )


def _read_in_turns(build: subprocess.Popen[str], lines: list[str]) -> Iterator[None]:
    """Reads the output of the build to its end into ``lines``; yields now and then meanwhile."""
    reader = threading.Thread(target=lambda: lines.extend(build.stdout or ()), daemon=True)
    reader.start()
    while reader.is_alive():
        reader.join(PROGRESS_EVERY_S)
        if reader.is_alive():
            yield
    build.wait()


@contextlib.contextmanager
def _interrupted_at_exit(build: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Ends a build that still runs at exit with SIGINT, so that Go ends the compilers it has started."""
    try:
        yield build
    finally:
        if build.poll() is None:
            build.send_signal(signal.SIGINT)
            try:
                build.wait(timeout=_BUILD_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                build.kill()
                build.wait()
        # Not before: closing waits for whoever reads from it.
        if build.stdout is not None:
            build.stdout.close()
