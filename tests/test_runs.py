"""How test runs pass or fail and how many cases they try: small runs of pytest, in separate processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.tether import RUN_VARIABLE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run pytest on a test file with this text and the plug-ins of this suite."""

    def ran(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "test_small.py"
        file.write_text(textwrap.dedent(text))
        command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest"]
        own = {"COVERAGE_FILE": str(tmp_path / ".coverage"), RUN_VARIABLE: "", "PYTEST_ADDOPTS": ""}
        return subprocess.run(
            [*command, "-p", "no:cacheprovider", *options, str(file)],
            cwd=ROOT,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    return ran


def test_a_process_that_a_test_leaves_behind_fails_the_run_and_is_named(run: Run) -> None:
    done = run(
        """
        import subprocess

        def test_that_forgets():
            test_that_forgets.kept = subprocess.Popen(["sleep", "9"])
        """,
        *("-n", "2"),
    )
    assert re.search(r"^LEFT BEHIND: process \d+ still runs: sleep 9$", done.stdout, flags=re.MULTILINE), done.stdout
    assert " 1 passed in " in done.stdout.splitlines()[-1]
    assert done.returncode == 1


def test_the_core_must_be_covered(run: Run) -> None:
    """Of one room of it, which is measured in a tenth of the time of the whole."""
    done = run(
        """
        def test_little():
            from gangsched.core.objects import quantity
        """,
        *("--cov=gangsched/core/objects", "--cov-report=", "-n", "2"),
    )
    *_, told, failed, _ = done.stdout.splitlines()
    core = re.match(r"coverage with branches: core (\d+\.\d) % \(at least 95 %\), all \d+\.\d %", told)
    assert core, done.stdout
    assert 0 < float(core[1]) < 95
    assert failed == "COVERAGE of gangsched/core is below 95 %: the run fails"
    assert done.returncode == 1


EXPLORING = """
    from hypothesis import given, strategies as st, settings
    from tests.effort import examples, seeded

    drawn = []

    @settings(max_examples=examples(50))
    @given(st.integers(0, 10**9))
    def test_of_examples(number):
        drawn.append(number)

    @seeded(10)
    def test_of_seeds(seed):
        drawn.append(f"seed {seed}")

    def test_prints_what_was_drawn():
        print(*drawn, sep="\\n")
"""


def drawn(done: subprocess.CompletedProcess[str]) -> list[str]:
    return re.findall(r"^\.*(\d+|seed \d+)$", done.stdout, flags=re.MULTILINE)


def test_a_nightly_run_tries_much_more_and_its_seed_repeats_it(run: Run) -> None:
    first, second = (
        drawn(run(EXPLORING, "-sq", "--hypothesis-profile=nightly", "--hypothesis-seed=700")) for _ in "12"
    )
    assert first == second
    assert len(first) == 20 * (50 + 10)
    assert [first[-200], first[-1]] == ["seed 700", "seed 899"]


@pytest.mark.parametrize("asked", [("SEED=7", "DURATION=9"), ()])
def test_a_night_goes_on_after_a_part_that_fails_and_tells_it_with_the_seed(tmp_path: Path, asked: tuple[str, ...]):
    """Uses a Python that prints its arguments instead of running them."""
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "runs $@"\ncase "$*" in *faults.soak*) exit 3;; esac\n')
    python.chmod(0o755)
    for name in ("uv.lock", "pyproject.toml", ".venv/.ready"):
        (tmp_path / name).touch()
    make = ["make", "-f", str(ROOT / "Makefile"), "--no-print-directory", "nightly", f"PYTHON={python}", *asked]
    night = subprocess.run(
        make, cwd=tmp_path, env=os.environ | {"MAKEFLAGS": ""}, capture_output=True, text=True, check=False
    )
    _, told, explored, soak, outages, rivals, starving, *rest = night.stdout.splitlines()
    built, workloads, older, versions, failed = rest
    [seed] = re.findall(r"^the seed of this night is (\d+); make nightly SEED=\1 repeats it$", told)
    assert (seed == "7") == bool(asked)
    assert f"--hypothesis-profile=nightly --hypothesis-seed={seed}" in explored
    assert soak == f"runs -m tests.faults.soak --duration {9 if asked else 3600} --seed {seed}"
    assert outages == f"runs -m tests.faults.outages --seed {seed}"
    assert rivals == f"runs -m tests.faults.rivals --seed {seed}"
    assert starving == f"runs -m tests.faults.starving --seed {seed}"
    assert built == "runs -m testbed.controllers.build"
    assert re.fullmatch(r"runs -m pytest -n 4 .* -m workloads tests/workloads", workloads)
    assert (older, versions) == ("runs -m testbed.versions", "runs -m tests.versions.played")
    assert failed == f"FAILED with SEED={seed}: soak"
    assert night.returncode == 2
