"""Checks at the end of a test run: nothing is left behind, and (with --cov) the core is covered.

Both are reported before pytest's summary, which stays the last thing printed, and both fail the run. Measurements that
tests pass to `record_property` under the name `measured` are printed there too. In a parallel run each worker checks
for leftovers of its tests, and the process that started the workers reports them.
"""

from __future__ import annotations

import io
import os
import secrets
from typing import Any

import coverage
import pytest

from testbed import leftovers
from testbed.tether import RUN_VARIABLE

CORE_FLOOR_PERCENT = 95
_LEFT = "left behind"
_LINES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    os.environ[RUN_VARIABLE] = f"{os.getpid()}-{secrets.token_hex(3)}"
    config.stash[_LINES] = []


def pytest_testnodedown(node: Any) -> None:
    node.config.stash[_LINES] += getattr(node, "workeroutput", {}).get(_LEFT, [])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    left = [f"LEFT BEHIND: {line}" for line in leftovers.report(os.environ[RUN_VARIABLE], within_s=5)]
    if hasattr(config, "workeroutput"):
        config.workeroutput[_LEFT] = left
        return
    lines = config.stash[_LINES]
    lines += left
    failed = any(line.startswith("LEFT BEHIND") for line in lines)
    if config.getoption("--cov"):
        core, everything = _percent("gangsched/core/*"), _percent("gangsched/*")
        lines.append(
            f"coverage with branches: core {core:.1f} % (at least {CORE_FLOOR_PERCENT} %), "
            f"all {everything:.1f} %; lines: .venv/bin/coverage report"
        )
        if core < CORE_FLOOR_PERCENT:
            lines.append(f"COVERAGE of gangsched/core is below {CORE_FLOOR_PERCENT} %: the run fails")
            failed = True
    if failed and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "measured":
                terminalreporter.write_line(f"measured: {value}")
    for line in config.stash[_LINES]:
        terminalreporter.write_line(line)


def _percent(files: str) -> float:
    """Coverage of these files by this run, in percent; pytest-cov writes the data before the session finishes."""
    measured = coverage.Coverage()
    try:
        measured.load()
        return measured.report(include=[files], file=io.StringIO())
    except coverage.exceptions.NoDataError:
        return 0.0
