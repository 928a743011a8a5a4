"""The wheel in a separate environment, as a person without a cluster installs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.cache import pypi_environment
from testbed.environment import UV

ROOT = Path(__file__).resolve().parents[1]
RACE = [str(file) for file in sorted((ROOT / "examples" / "race").glob("*.yaml"))]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(*command: str | Path, cwd: Path) -> str:
    named = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=named, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def uv() -> Path:
    return pypi_environment(UV, report=print) / "bin" / "uv"


@pytest.fixture(scope="module")
def wheel(uv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(uv, "build", "--wheel", "--quiet", "--python", sys.executable, "--out-dir", folder, ROOT, cwd=folder)
    [found] = folder.glob("*.whl")
    return found


def test_the_wheel_alone_gives_the_command_line_and_the_python_interface(uv: Path, wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "env"
    run(uv, "venv", "--quiet", "--python", sys.executable, home, cwd=tmp_path)
    run(uv, "pip", "install", "--quiet", "--python", home / "bin" / "python", wheel, cwd=tmp_path)
    printed = json.loads(run(home / "bin" / "gangsched", "simulate", "--json", *RACE, cwd=tmp_path))
    assert {group["name"]: group["bound"] for group in printed["groups"]} in (
        {"blue": 5, "green": 0},
        {"blue": 0, "green": 5},
    )
    program = (
        "import pathlib, sys, gangsched\n"
        "found = gangsched.simulate([], [pathlib.Path(each) for each in sys.argv[1:]])\n"
        "print(gangsched.__file__, sum(each.is_whole for each in found.last if each.is_group))"
    )
    where, whole = run(home / "bin" / "python", "-c", program, *RACE, cwd=tmp_path).split()
    assert Path(where).is_relative_to(home)
    assert whole == "1"
    assert (Path(where).parent / "py.typed").is_file()
    assert "CustomResourceDefinition" in run(home / "bin" / "kubectl-gang", "crd", cwd=tmp_path)


def test_the_wheel_runs_without_being_installed(uv: Path, wheel: Path, tmp_path: Path) -> None:
    command = (uv, "tool", "run", "--quiet", "--python", sys.executable, "--from", wheel, "gangsched", "version")
    assert run(*command, cwd=tmp_path).split()[-1] == wheel.name.split("-")[1]
