"""The results of the plays of tests/workloads, and the tables of docs/workloads/README.md made from them.

``make workloads`` writes its results to FIGURES. The expected results are in
`testbed.controllers.expected`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from documentation import figures
from documentation.filling import put
from testbed.controllers.expected import COLUMNS, EXPECTED, PLAYS, RACE, Workload

PAGE = Path("docs") / "workloads" / "README.md"
FIGURES = Path("docs") / "workloads" / "seen.jsonl"

_Known = Mapping[tuple[str, str, str], bool]


class Seen(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The result of one play on the real API server, with a workload declared in one of the ways."""

    workload: str
    column: str
    play: str
    whole: bool


def read(root: Path) -> list[Seen]:
    """The results of the last runs."""
    return figures.read(root / FIGURES, Seen)


def merged(before: Iterable[Seen], now: Sequence[Seen]) -> list[Seen]:
    """The results after a run: its plays replace earlier ones, and those that are no longer expected are dropped."""
    found = {(each.workload, each.column, each.play): each for each in [*before, *now]}
    return [found[key] for key in _expected() if key in found]


def write(root: Path, seen: Iterable[Seen]) -> None:
    """Writes the results, one per line."""
    figures.write(root / FIGURES, seen)


def _expected() -> list[tuple[str, str, str]]:
    return [
        (row.kind, column, play) for row in EXPECTED.values() for column in row.columns() for play in row.plays(column)
    ]


def page(root: Path, text: str) -> str:
    """The page's text with both tables, generated from EXPECTED and the results.

    Raises:
        ValueError: the text has no place for one of them.
    """
    seen = {(each.workload, each.column, each.play): each.whole for each in read(root)}
    for name, lines in (("matrix", _matrix(seen)), ("plays", _plays(seen))):
        begin, end = f"<!-- {name}, written by make workloads -->\n", f"<!-- end of {name} -->"
        text = put(f"(?s){begin}.*?{end}", begin + "\n" + "\n".join(lines) + "\n\n" + end, text)
    return text


def _matrix(seen: _Known) -> list[str]:
    lines = [f"| workload | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row in EXPECTED.values():
        cells = [_first(row, column, seen) for column in COLUMNS]
        lines.append(f"| [{row.kind}]({row.file}) ({row.of}) | {' | '.join(cells)} |")
    return lines


def _first(row: Workload, column: str, seen: _Known) -> str:
    if why := row.not_declared.get(column):
        return f"not possible: {why}"
    if test := row.recorded.get(column):
        verdict = f"whole/whole with recorded pods ([test](../../{test}))"
    else:
        verdict = _verdict(seen.get((row.kind, column, RACE)))
    return ", ".join(filter(None, (verdict, row.noted.get(column))))


def _plays(seen: _Known) -> list[str]:
    further = [play for play in PLAYS if play != RACE]
    lines = [f"| workload | {' | '.join(PLAYS[play] for play in further)} |", "|---" * (len(further) + 1) + "|"]
    for row in EXPECTED.values():
        if row.only_race or not row.columns():
            continue
        cells = [_cell(row, play, seen) for play in further]
        lines.append(f"| {row.kind} | {' | '.join(cells)} |")
    return lines


def _cell(row: Workload, play: str, seen: _Known) -> str:
    """The play's result for each way to declare the workload; a single one if all are the same."""
    verdicts: dict[str, list[str]] = {}
    for column in row.columns():
        why_not = row.why_not(play, column)
        verdict = f"not possible: {why_not}" if why_not else _verdict(seen.get((row.kind, column, play)))
        verdicts.setdefault(verdict, []).append(column)
    if len(verdicts) == 1:
        return next(iter(verdicts))
    return "; ".join(f"{', '.join(columns)}: {verdict}" for verdict, columns in verdicts.items())


def _verdict(whole: bool | None) -> str:  # noqa: FBT001 - it is the verdict
    return {True: "whole/whole", False: "**not whole**", None: "not played yet"}[whole]
