"""kubectl with the plug-in `kubectl gang` of this checkout on its PATH."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

from gangsched.cli import main, make_parser
from testbed.control_plane import ControlPlane

SCRIPTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
"""The programs that the package installs, with their entry points."""


class Kubectl:
    """The real kubectl with its own kubeconfig, whose context selects the given namespace."""

    def __init__(self, control_plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._control_plane = control_plane
        self._folder = folder
        self.binary = control_plane.binaries / "kubectl"
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_bytes(control_plane.kubeconfig.read_bytes())
        for name, entry in SCRIPTS.items():
            module, _, function = entry.partition(":")
            script = folder / name
            script.write_text(
                f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
            )
            script.chmod(0o755)
        self.run("config", "set-context", "--current", "--namespace", namespace)

    def env(self, **more: str) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
        here = str(Path(__file__).parents[2])
        path = os.pathsep.join([str(self._folder), str(self.binary.parent), kept.get("PATH", "")])
        ours = {"PATH": path, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self._folder), "PYTHONPATH": here}
        return {**kept, **ours, **more}

    def tried(self, *arguments: str) -> tuple[int, str, str]:
        """The exit status, standard output and standard error of kubectl.

        `kubectl gang COMMAND` runs in this process, as kubectl would start it: two processes take seconds.
        """
        if arguments[0] == "gang":
            return self._ours(arguments[1:])
        return self.started(*arguments)

    def _ours(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.env(), clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                status = main(arguments, parser=make_parser(plugin=True))
            except SystemExit as ended:
                status = int(ended.code or 0)
        return status, out.getvalue(), err.getvalue()

    def started(self, *arguments: str) -> tuple[int, str, str]:
        """As `tried`, in processes of their own."""
        done = subprocess.run(
            [self.binary, *arguments], env=self.env(), capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def run(self, *arguments: str) -> str:
        """The standard output of a command that must succeed."""
        status, out, err = self.tried(*arguments)
        assert status == 0, (arguments, out, err)
        return out
