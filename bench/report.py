"""The results of the runs: lines of JSON in docs/performance.jsonl, the source of docs/performance.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.lab import Figures

Line = dict[str, Any]

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "performance.jsonl"
START_S = 2.0
"""Start-up time of a process, in seconds, subtracted from the time to the last binding in `whole_ratio`."""


def line(title: str, found: Sequence[Figures]) -> Line:
    """One scenario's line: every figure as [least, median, most] of its runs.

    `ratio` is the rate divided by the bare API server's. `whole_ratio` is the time from the process's start to the last
    binding, less START_S, divided by the time that the bare API server takes. `counting_ratio` is a stream's median
    latency divided by that of the client that only counts.
    """
    figures = [dict(each) for each in found]
    for each in figures:
        if "whole_s" in each:
            each["ratio"] = each["pods_per_s"] / each["bare_pods_per_s"]
            each["whole_ratio"] = (each["whole_s"] - START_S) / each["bare_s"]
        if "counting_ms_p50" in each:
            each["counting_ratio"] = each["gang_ms_p50"] / each["counting_ms_p50"]
    names = dict.fromkeys(name for each in figures for name in each)
    return {"scenario": title, "runs": len(figures)} | {
        name: _spread([each[name] for each in figures]) for name in names
    }


def kept() -> list[Line]:
    """The lines of the last write."""
    return [json.loads(each) for each in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def keep(lines: Sequence[Line]) -> list[Line]:
    """Write these lines, replacing earlier ones of the same scenarios; returns all kept lines."""
    new = {each["scenario"]: each for each in lines}
    old = {each["scenario"]: each for each in kept()}
    every = list((old | new).values())
    RESULTS.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in every))
    return every


def _spread(values: Sequence[float]) -> list[float]:
    return [_rounded(value) for value in (min(values), median(values), max(values))]


def _rounded(value: float) -> float:
    """Round to three significant figures, and to whole numbers from 100 on."""
    return float(f"{value:.3g}") if abs(value) < 100 else float(round(value))  # noqa: PLR2004 - as the docstring says
