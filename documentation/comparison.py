"""The tables of figures in README.md and docs/comparison.md: gangsched, measured by `make bench`, beside others.

The others were measured once, by hand, on a machine of the same kind; docs/comparison.md describes the method.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from documentation.filling import put

PAGE = Path("docs/comparison.md")
README = Path("README.md")
FIGURES = Path("docs/performance.jsonl")
_OTHERS = ("Volcano", "KAI", "kube-scheduler's groups", "coscheduling")
_HEAD = f"| | gangsched | {' | '.join(_OTHERS)} |\n|---|{'---:|' * (len(_OTHERS) + 1)}"


@dataclass(frozen=True)
class Row:
    """One figure: its scenario of `make bench`, its format, and the others' values by name."""

    what: str
    scenario: str
    figure: str
    form: str
    others: Mapping[str, float]


ROWS = (
    Row(
        "pods bound per second, 500 nodes, 100 gangs of 20",
        "backlog 500 × 100 × 20",
        "pods_per_s",
        "{:,.0f}",
        {"Volcano": 294, "KAI": 89, "kube-scheduler's groups": 93, "coscheduling": 355},
    ),
    Row(
        "the same, as a share of what the bare API server takes",
        "backlog 500 × 100 × 20",
        "ratio",
        "{:.2f}",
        {},
    ),
    Row(
        "pods bound per second, 5,000 nodes, 50 gangs of 100",
        "backlog 5,000 × 50 × 100",
        "pods_per_s",
        "{:,.0f}",
        {"Volcano": 142, "KAI": 36, "kube-scheduler's groups": 255},
    ),
    Row(
        "from a gang's last pod created to its last one bound, median",
        "stream 500 × 100 × 20",
        "gang_ms_p50",
        "{:,.0f} ms",
        {"Volcano": 3635, "KAI": 13336, "kube-scheduler's groups": 3132, "coscheduling": 916},
    ),
    Row(
        "the same, 99th percentile",
        "stream 500 × 100 × 20",
        "gang_ms_p99",
        "{:,.0f} ms",
        {"Volcano": 6936, "KAI": 23983, "kube-scheduler's groups": 4041, "coscheduling": 8563},
    ),
    Row(
        "memory, 5,000 nodes and 5,000 pods",
        "backlog 5,000 × 50 × 100",
        "rss_mb",
        "{:,.0f} MB",
        {"Volcano": 436, "KAI": 634, "kube-scheduler's groups": 220},
    ),
    Row(
        "processor time, 5,000 nodes and 5,000 pods",
        "backlog 5,000 × 50 × 100",
        "cpu_s",
        "{:,.1f} s",
        {"Volcano": 44, "KAI": 176, "kube-scheduler's groups": 64},
    ),
)
_OF_README = (ROWS[0], ROWS[1], ROWS[3], ROWS[5])


def with_all(root: Path, page: str) -> str:
    """docs/comparison.md with its table of figures."""
    return _filled(root, page, ROWS)


def with_some(root: Path, readme: str) -> str:
    """The README with its table of figures."""
    return _filled(root, readme, _OF_README)


def write(root: Path) -> None:
    """Write both tables."""
    for path, filled in ((PAGE, with_all), (README, with_some)):
        (root / path).write_text(filled(root, (root / path).read_text(encoding="utf-8")), encoding="utf-8")


def _filled(root: Path, page: str, rows: Sequence[Row]) -> str:
    lines = {line["scenario"]: line for line in map(json.loads, (root / FIGURES).read_text().splitlines())}
    table = "".join(f"{_row(row, lines[row.scenario][row.figure][1])}\n" for row in rows)
    note = "<!-- Table of figures, made by make docs from docs/performance.jsonl and documentation/comparison.py -->"
    return put(r"<!-- Table of figures, .*\n\n(\|.*\n)*", f"{note}\n\n{_HEAD}\n{table}", page)


def _row(row: Row, own: float) -> str:
    others = (row.form.format(row.others[name]) if name in row.others else "" for name in _OTHERS)
    return f"| {row.what} | **{row.form.format(own)}** | {' | '.join(others)} |"
