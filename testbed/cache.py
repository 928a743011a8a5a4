"""The project's folder in the user's cache, and the files that all checkouts share there.

Runs on a bare Python 3.11, before any virtual environment exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

Report = Callable[[str], None]
"""Receives each step of the progress, one line per call."""


class SetupError(Exception):
    """This machine lacks a prerequisite; the message names the remedy."""


def cache_root() -> Path:
    """The project's folder in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gangsched"


def built(build: Callable[[Report], Iterable[Path]]) -> int:
    """Run a build from the command line: progress and, last, its folders on standard output; the exit status.

    A failure is told on standard error.
    """
    # SIGTERM shuts down as cleanly as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        folders = build(lambda line: print(line, flush=True))
    except (SetupError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; what was built so far is kept", file=sys.stderr)
        return 130
    for folder in folders:
        print(folder, flush=True)
    return 0


@contextlib.contextmanager
def locked(name: str, *, report: Report) -> Iterator[None]:
    """Hold the lock of this name, one process at a time; the operating system frees the lock of a killed process."""
    path = cache_root() / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another process holds {path}: waiting for it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, text: str) -> None:
    """Write the file so that a reader sees the whole text or no new file."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    unfinished.write_text(text)
    unfinished.replace(path)


def pypi_environment(requirement: str, *, report: Report, hashes: Path | None = None) -> Path:
    """A virtual environment in the cache with one tool, ``NAME==VERSION``, from its wheel on PyPI.

    `hashes` is a requirements file with the tool's version and the hashes that its wheels may have.

    Raises:
        SetupError: this Python has no ensurepip, or pip failed.
    """
    name = requirement.replace("==", "-")
    environment = cache_root() / name
    with locked(name, report=report):
        if not environment.exists():
            report(f"installing {requirement} from PyPI into {environment}")
            unfinished = environment.with_name(f"{name}.part")
            _create_environment(unfinished)
            _pip_install(unfinished, requirement, hashes)
            unfinished.replace(environment)
    return environment


def _create_environment(directory: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        venv.EnvBuilder(with_pip=True, clear=True, symlinks=True).create(directory)
    except (subprocess.CalledProcessError, ImportError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise SetupError(
            f"Python {version} at {sys.executable} was installed without ensurepip and cannot make a virtual "
            f"environment: install its venv package, on Debian and Ubuntu with: apt-get install python{version}-venv"
        ) from error


def _pip_install(environment: Path, requirement: str, hashes: Path | None) -> None:
    what = [requirement] if hashes is None else ["--require-hashes", "--requirement", str(hashes)]
    pip = subprocess.run(
        [
            str(environment / "bin" / "python"),
            *("-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"),
            *("--only-binary", ":all:"),
            *what,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if pip.returncode != 0:
        last_line = (pip.stderr.strip() or pip.stdout.strip() or "it said nothing").splitlines()[-1]
        raise SetupError(
            f"pip could not install {requirement} ({last_line.rstrip('.')}): "
            f"let this machine reach PyPI, or set PIP_INDEX_URL to a mirror of it."
        )
