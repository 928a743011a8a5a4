"""Runs all plays with the real workload controllers and writes the results: ``make workloads``.

Arguments are pytest's, such as ``-k jobset``. Plays that were not run keep their results of an earlier run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from documentation import matrix
from documentation.generate import ROOT
from documentation.matrix import Seen

HERE = Path(__file__).resolve().parent


class _Seen:
    """How each play ended."""

    def __init__(self) -> None:
        self.found: list[Seen] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: dict[str, Any] = dict(report.user_properties)
        if "played" in told and report.when == "call":
            workload, column, play = told["played"]
            self.found.append(Seen(workload=workload, column=column, play=play, whole=report.passed))


def main(arguments: list[str]) -> int:
    """Runs the tests, writes the figures, and the page, and returns pytest's exit status."""
    seen = _Seen()
    status = pytest.main([str(HERE), "--import-mode=importlib", "-q", *arguments], plugins=[seen])
    matrix.write(ROOT, matrix.merged(matrix.read(ROOT), seen.found))
    page = ROOT / matrix.PAGE
    page.write_text(matrix.page(ROOT, page.read_text(encoding="utf-8")), encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
