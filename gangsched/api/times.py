"""Points in time as the API writes them: RFC 3339 in UTC."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, datetime

_OUTERMOST = frozenset({MINYEAR, MAXYEAR})
"""Years in which a time may lie outside of them in UTC."""


def format_time(seconds: float, *, to_the_second: bool = False) -> str:
    """Return seconds since the epoch as `2026-01-01T00:00:00.250000Z`.

    Microseconds are rounded to the nearest, as metav1.MicroTime has them. To the second, as metav1.Time has it, they
    are cut off, so that nothing is ever dated into the future.
    """
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="seconds" if to_the_second else "microseconds") + "Z"


def parse_time(text: str) -> float:
    """Return a time of the API in seconds since the epoch.

    Raises:
        ValueError: the text is no point in time, does not say in which zone, or lies outside of the years 1 to 9999 in
            UTC, so that `format_time` could not write it.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: write it in UTC, such as 2026-01-01T00:00:00Z")
    seconds = moment.timestamp()
    if moment.year in _OUTERMOST:
        datetime.fromtimestamp(seconds, UTC)
    return seconds
