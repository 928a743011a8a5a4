"""The final report of a soak: the figures of one run by name, times in seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def line(report: Mapping[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(report, ensure_ascii=False)


def table(report: Mapping[str, Any]) -> str:
    """The report as a human-readable table, without the violations."""
    rows = []
    for name, value in report.items():
        shown = value
        if isinstance(value, Mapping):
            parts = sorted(value.items(), key=lambda pair: (-pair[1], pair[0]))
            shown = f"{sum(value.values())}: " + ", ".join(f"{what} {count}" for what, count in parts)
        elif isinstance(value, float):
            shown = f"{value:.1f}"
        if name != "violations":
            rows.append(f"  {name.replace('_', ' '):20} {shown}")
    return "\n".join(rows)
