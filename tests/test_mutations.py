"""The random defects of `make mutations`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutations import ROOT, copy_checkout, interval, mutations, sample


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["(a <= b)"]),
        ("x = a and not b", ["(a or not b)", "(b)"]),
        ("x = a + 1", ["(a - 1)", "2"]),
        ("x = a if b else c", ["(c if b else a)"]),
        ("do(True)", ["pass", "False"]),
        ('"""1 + 1"""\nx: Literal[1] = f"{a + 1}"', []),
        ("@cached(1)\ndef f(x: Kind[1]) -> Kind[2]: ...", []),
    ],
)
def test_what_decides_is_changed_and_what_only_tells_is_not(source: str, expected: list[str]) -> None:
    assert [mutation.after for mutation in mutations(Path("x.py"), source)] == expected


@pytest.mark.slow
def test_a_seed_gives_the_same_defects_each_of_which_can_be_compiled() -> None:
    found = sample(50, seed=7)
    assert found == sample(50, seed=7) != sample(50, seed=8)
    for mutation in found:
        whole = (ROOT / mutation.path).read_bytes()
        assert whole[mutation.start : mutation.end].decode() == mutation.before
        ast.parse(whole[: mutation.start] + mutation.after.encode() + whole[mutation.end :])


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert interval(35, 45) == pytest.approx((0.637, 0.875), abs=0.001)


def test_the_copy_has_everything_that_the_tests_look_at(tmp_path: Path) -> None:
    """Regression: workflows and hooks were left out for the dot in their names, and tests failed without a defect."""
    copy_checkout(tmp_path / "copy")
    for name in ("Makefile", ".github/workflows", ".pre-commit-config.yaml", ".gitignore", "gangsched/core/machine.py"):
        assert (tmp_path / "copy" / name).exists(), name
    assert not [*(tmp_path / "copy").rglob("__pycache__"), *(tmp_path / "copy").glob(".venv")]
