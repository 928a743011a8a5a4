"""Durations as people write them in a manifest or a configuration file: `90s`, `5m`, `1h30m`.

Whole hours, minutes and seconds in this order, each at most once. Days are left out on purpose, as in Go's durations
that Kubernetes uses; fractions are left out because nothing in gangsched is timed finer than a second by a person.
"""

from __future__ import annotations

import re

PATTERN = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"
"""The form of a duration, in the regular expressions that Python, CEL and OpenAPI share; the empty text is refused."""

SHORTEST_S = 1
LONGEST_S = 7 * 24 * 3600

_FORM = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")


def parse_duration(text: str) -> float:
    """Return the seconds that `text` means.

    Raises:
        ValueError: the text has not the form, or lies outside of 1 s to 7 days; its message says what to write.
    """
    match = _FORM.fullmatch(text)
    if not text or match is None:
        raise ValueError(f"{text!r} is not a duration: write hours, minutes and seconds such as 90s, 5m or 1h30m")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if not SHORTEST_S <= total <= LONGEST_S:
        raise ValueError(f"{text!r} is out of range: a duration here is from 1s to 168h (7 days)")
    return float(total)


def format_duration(seconds: float) -> str:
    """Return the duration in the form that `parse_duration` reads, to the nearest second; `0s` for none."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0s"
