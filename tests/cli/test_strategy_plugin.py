"""The example strategy plug-in, built and installed as users would, and run by `gangsched simulate`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from testbed.cache import pypi_environment
from testbed.environment import UV
from tests.cli.test_simulate import group, node, pod

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "strategy-plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the example installed in it."""
    folder: Path = tmp_path_factory.mktemp("plugin")
    uv = pypi_environment(UV, report=print) / "bin" / "uv"
    command = [str(uv), "pip", "install", "--quiet", "--no-deps", "--python", sys.executable, "--target", str(folder)]
    subprocess.run([*command, str(EXAMPLE)], check=True, timeout=120)
    return folder


def simulated(tmp_path: Path, *, plugin: Path | None, members: int = 4, minimum: int = 4):
    things = [
        *(node(f"n{number}", "8") for number in range(3)),
        group("g", minimum, placement={"strategy": "example.com/pairs"}),
    ]
    things += [pod(f"g-{number}") for number in range(members)]
    path = tmp_path / "gang.yaml"
    path.write_text(yaml.safe_dump_all(things), encoding="utf-8")
    folders = [str(ROOT), *([str(plugin)] if plugin else [])]
    done = subprocess.run(
        [sys.executable, "-m", "gangsched", "simulate", str(path), "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    (found,) = json.loads(done.stdout)["groups"]
    return found


def test_a_group_that_names_the_plug_in_is_placed_by_it(installed, tmp_path):
    found = simulated(tmp_path, plugin=installed)
    nodes = sorted(found["placements"].values())
    assert (found["phase"], nodes) == ("Scheduled", ["n0", "n0", "n1", "n1"])


def test_further_members_complete_the_pair_that_the_quorum_began(installed, tmp_path):
    found = simulated(tmp_path, plugin=installed, members=4, minimum=3)
    assert sorted(found["placements"].values()) == ["n0", "n0", "n1", "n1"]


def test_without_it_the_group_waits_and_says_what_is_missing(tmp_path):
    found = simulated(tmp_path, plugin=None)
    assert (found["reason"], found["placements"]) == ("StrategyUnknown", {})
    assert "example.com/pairs is not installed: install the plug-in that provides it" in found["message"]
