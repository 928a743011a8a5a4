"""Durations in Go's format, with the fractions and small units that gangsched's own format lacks."""

from __future__ import annotations

import re

_LONGEST = 64
_PARTS = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def go_seconds(text: str) -> float:
    """The seconds of a duration such as `30s`, `1.5h`, `1m30s` or `0`, as in Go; negative ones are invalid.

    Raises:
        ValueError: the text is not a valid duration.
    """
    parts = _PARTS.findall(text) if len(text) <= _LONGEST else []
    if text == "0":
        return 0.0
    if not parts or "".join(number + unit for number, unit in parts) != text.removeprefix("+"):
        raise ValueError(f"{text[:_LONGEST]!r} is no duration")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)
