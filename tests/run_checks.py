"""What must hold when a test run ends: nothing is left behind, and (in `make test`) the core is covered.

Both are told before pytest's summary, which stays the last thing printed, and both fail the run.
"""

from __future__ import annotations

import io
import os
import secrets
import warnings

import coverage
import pytest

from testbed import leftovers
from testbed.tether import RUN_VARIABLE

CORE_FLOOR_PERCENT = 95
_LINES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    os.environ[RUN_VARIABLE] = f"{os.getpid()}-{secrets.token_hex(3)}"
    config.stash[_LINES] = []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    left = leftovers.report(os.environ[RUN_VARIABLE], within_s=5)
    lines = [f"LEFT BEHIND: {line}" for line in left]
    covered = coverage.Coverage.current()
    failed = bool(left)
    if covered is not None:
        covered.stop()
        with warnings.catch_warnings():
            # That nothing was measured shows in the figures below; as a warning it would be an error here.
            warnings.simplefilter("ignore", coverage.exceptions.CoverageWarning)
            covered.save()
            core, everything = _percent(covered, "gangsched/core/*"), _percent(covered, "gangsched/*")
        lines.append(
            f"coverage with branches: core {core:.1f} % (at least {CORE_FLOOR_PERCENT} %), "
            f"all {everything:.1f} %; lines: .venv/bin/coverage report"
        )
        if core < CORE_FLOOR_PERCENT:
            lines.append(f"COVERAGE of gangsched/core is below {CORE_FLOOR_PERCENT} %: the run fails")
            failed = True
    session.config.stash[_LINES] = lines
    if failed and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash[_LINES]:
        terminalreporter.write_line(line)


def _percent(covered: coverage.Coverage, files: str) -> float:
    try:
        return covered.report(include=[files], file=io.StringIO())
    except coverage.exceptions.NoDataError:
        return 0.0
