"""How test runs pass or fail: small runs of pytest, in separate processes."""

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
        *("-n", "1"),
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
        *("--cov=gangsched/core/objects", "--cov-report=", "-n", "1"),
    )
    *_, told, failed, _ = done.stdout.splitlines()
    core = re.match(r"coverage with branches: core (\d+\.\d) % \(at least 95 %\), all \d+\.\d %", told)
    assert core, done.stdout
    assert 0 < float(core[1]) < 95
    assert failed == "COVERAGE of gangsched/core is below 95 %: the run fails"
    assert done.returncode == 1
