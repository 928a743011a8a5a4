"""`make mutations`: how many random defects of the core `make check` notices.

Each defect changes one expression or drops one call in a copy of the checkout, whose quick tests then run until one
fails. The seed decides which defects; annotations, decorators, docstrings and texts are left out.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
CORE = Path("gangsched", "core")
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
_TESTS = ("-m", "pytest", "-q", "-x", "-n", "2", "--dist", "load", "--hypothesis-profile=mutations")
_CHOSEN = (
    "-m",
    "not slow and not integration and not extras and not another_course",
    "--ignore=tests/integration",
    "-p",
    "no:cacheprovider",
)
# Tests run in this order: those most likely to detect a defect come first.
_FOLDERS = ("tests/core", "tests/scenarios", "tests/properties", "tests")
_HANGS_S = 600
_Z = 1.96


@dataclass(frozen=True)
class Mutation:
    """The characters from `start` to `end` of a file, relative to the checkout, become `after`."""

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.before.split())} -> {self.after}"


def mutations(path: Path, source: str) -> Iterator[Mutation]:
    """Every possible defect in this source of the file, in source order."""
    text = source.encode()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _changeable(ast.parse(source)):
        start, end = (starts[at - 1] + column for at, column in _span(node))
        for after in _changed(node):
            yield Mutation(path, node.lineno, start, end, text[start:end].decode(), after)


def _span(node: ast.expr | ast.stmt) -> tuple[tuple[int, int], tuple[int, int]]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _changeable(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """The expressions and statements that decide something."""
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    left_out = ("annotation", "returns", "decorator_list")
    for name, value in ast.iter_fields(node):
        if name not in left_out:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _changeable(child)


def _changed(node: ast.expr | ast.stmt) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[first, *_]) if type(first) in _SWAPPED:
            other = copy.deepcopy(node)
            other.ops[0] = _SWAPPED[type(first)]()  # type: ignore[call-overload]
            yield f"({ast.unparse(other)})"
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in _SWAPPED:
            joined = copy.deepcopy(node)
            joined.op = _SWAPPED[type(op)]()  # type: ignore[assignment]
            yield f"({ast.unparse(joined)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"({ast.unparse(operand)})"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield f"({ast.unparse(orelse)} if {ast.unparse(test)} else {ast.unparse(body)})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(number)):
            yield str(number + 1)
        case ast.Expr(value=ast.Call()):
            yield "pass"


def sample(number: int, seed: int) -> list[Mutation]:
    """This number of defects of the core; deterministic for a seed and a checkout."""
    every = [
        mutation
        for path in sorted((ROOT / CORE).rglob("*.py"))
        for mutation in mutations(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    ]
    return Random(seed).sample(every, number)


def copy_checkout(folder: Path) -> None:
    """Copy the files of the checkout, except those that git ignores, to this new folder."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()]
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", *ignored))


def notices(folder: Path, mutation: Mutation) -> bool:
    """Whether a test of the copy in this folder fails with the defect."""
    path = folder / mutation.path
    whole = path.read_bytes()
    path.write_bytes(whole[: mutation.start] + mutation.after.encode() + whole[mutation.end :])
    try:
        return _run(folder) != 0
    finally:
        path.write_bytes(whole)


def interval(part: int, whole: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson's score interval)."""
    share, square = part / whole, _Z * _Z / whole
    middle = share + square / 2
    wide = _Z * sqrt(share * (1 - share) / whole + square / (4 * whole))
    return (middle - wide) / (1 + square), (middle + wide) / (1 + square)


def _run(folder: Path) -> int:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        return subprocess.run(
            [sys.executable, *_TESTS, *_CHOSEN, *_FOLDERS],
            cwd=folder,
            env=env | {"PYTHONPATH": str(folder), "PYTHONHASHSEED": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_HANGS_S,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run as the command line says; the exit status is 1 only if the tests fail without a defect."""
    parser = argparse.ArgumentParser(description="How many random defects of the core make check notices.")
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gangsched-mutations-") as temporary:
        folder = Path(temporary, "checkout")
        copy_checkout(folder)
        if _run(folder) != 0:
            _say("error: the tests fail without a defect; run make check")
            return 1
        noticed = 0
        for number, mutation in enumerate(sample(arguments.number, arguments.seed), 1):
            found = notices(folder, mutation)
            noticed += found
            _say(f"{number:3d} {'noticed' if found else 'NOT NOTICED'} {mutation}")
    least, most = interval(noticed, arguments.number)
    share = noticed / arguments.number
    _say(f"noticed {noticed} of {arguments.number}: {share:.0%}, 95 % interval {least:.0%} to {most:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
