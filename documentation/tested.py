"""The versions of Kubernetes on which the main stories were played, and what is made of them.

``make versions`` writes its results to FIGURES; docs/versions.md and the chart's notes show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from documentation import figures
from documentation.filling import put

PAGE = Path("docs") / "versions.md"
NOTES = Path("charts") / "gangsched" / "files" / "tested.txt"
FIGURES = Path("docs") / "tested.jsonl"


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """One version: the tests that passed, by story, and why it lacks a story, or a part of one, by its name."""

    kubernetes: str
    passed: Mapping[str, int]
    lacks: Mapping[str, str] = {}


def read(root: Path) -> list[Played]:
    """The results of the last run, the oldest version first."""
    return figures.read(root / FIGURES, Played)


def write(root: Path, tested: Iterable[Played]) -> None:
    """Writes the results, one version per line."""
    figures.write(root / FIGURES, tested)


def with_table(root: Path, text: str) -> str:
    """The page's text with the table of all stories.

    Raises:
        ValueError: the text has no place for it.
    """
    return put(r"<!-- Table of versions, .*\n\n(\|.*\n)*", f"{_MADE}\n\n{_table(read(root))}", text)


def notes(root: Path) -> str:
    """The part of the chart's notes: a line for each version."""
    return "".join(f"  {each.kubernetes}{_but(each)}\n" for each in read(root))


_MADE = f"<!-- Table of versions, made by make docs from {FIGURES} -->"


def _table(tested: list[Played]) -> str:
    stories = list(tested[-1].passed)
    heads = ["Kubernetes", *stories, "what it lacks"]
    lines = [f"| {' | '.join(heads)} |", f"|---{'|---' * (len(heads) - 1)}|"]
    for each in tested:
        passed = {name: each.passed[name] for name in stories if name not in each.lacks}
        cells = [_tests(passed.get(name, 0)) for name in stories]
        lines.append(f"| {' | '.join([each.kubernetes, *cells, _lacks(each)])} |")
    return "".join(f"{line}\n" for line in lines)


def _tests(number: int) -> str:
    return f"{number} test{'s' * (number != 1)} passed" if number else "not possible"


def _lacks(tested: Played) -> str:
    together: dict[str, list[str]] = {}
    for what, why in tested.lacks.items():
        together.setdefault(why, []).append(what)
    return "; ".join(f"{', '.join(whats)}: {why}" for why, whats in together.items())


def _but(tested: Played) -> str:
    return f" (lacks {', '.join(tested.lacks)})" if tested.lacks else ""
