"""Judges of the soak: rejections by kubelets that come too fast, and what the end and the log of a process tell."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.contenders import Life
from tests.faults.rejections import Rejections


@pytest.mark.parametrize(
    ("times", "gone", "changed", "wrong"),
    [
        ([0, 10, 30, 70, 150], (), 0, 0),
        ([0, 10, 20, 30, 40, 50], (), 0, 1),
        ([0, 10, 20, 30, 40, 50], ("u0",), 0, 0),
        ([0, 10, 20, 30, 40, 50], (), 15, 0),
        ([0, 0, 10, 10, 20, 20], (), 0, 0),
        ([0, 0, 10, 10, 20, 20, 30], (), 0, 1),
        ([0] * 8, (), 0, 0),
        ([0] * 8 + [310] * 8, (), 0, 0),
    ],
)
def test_rejections_of_one_maker_are_too_fast_if_more_than_five_that_exist_are_of_five_minutes(
    times: list[int], gone: tuple[str, ...], changed: float, wrong: int
) -> None:
    judge = Rejections()
    there = {f"u{number}" for number in range(len(times))} - set(gone)
    for number, at in enumerate(times):
        judge.note("a", "n1", f"u{number}", at=1000.0 + at, there=there, changed=1000.0 + changed if changed else 0.0)
        judge.note("b", "n1", f"u{number}", at=1000.0 + 400 * number, there=there)
    assert len(judge.wrong) == wrong


@pytest.mark.parametrize(
    ("log", "status", "expected", "found"),
    [
        ("all is well\n", 0, {0}, 0),
        ("all is well\n", -9, {-9}, 0),
        ("", None, set(), 0),
        ("all is well\n", 0, set(), 1),
        ("all is well\n", -9, set(), 1),
        ("could not renew the lease\n", 1, {-9}, 1),
        ("Traceback (most recent call last):\n  File …\n", 0, {0}, 1),
        ("the scheduler's core failed; this is a bug\n", None, set(), 1),
        ("another process binds pods of our schedulerName\n", None, set(), 1),
    ],
)
def test_the_end_and_the_log_of_a_process_tell_of_defects(
    tmp_path: Path, *, log: str, status: int | None, expected: set[int], found: int
) -> None:
    (tmp_path / "log").write_text(log)
    child: Any = SimpleNamespace(log=tmp_path / "log")
    life = Life(name="a-1", started=0.0, child=child, recording=tmp_path, ended=status, expected=expected)

    assert len(life.defects()) == found
