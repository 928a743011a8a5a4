"""Timestamps in the API's format: RFC 3339 in UTC."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, datetime

_OUTERMOST = frozenset({MINYEAR, MAXYEAR})
"""Years in which a time may be out of range after its conversion to UTC."""


def format_time(seconds: float, *, to_the_second: bool = False) -> str:
    """Return seconds since the epoch as `2026-01-01T00:00:00.250000Z`.

    The time is rounded to the microsecond, as in metav1.MicroTime. With `to_the_second`, as in metav1.Time, fractions
    are cut off, so that no time is in the future.
    """
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="seconds" if to_the_second else "microseconds") + "Z"


def format_if_set(seconds: float) -> str | None:
    """The time to the second; None for 0.0, which stands for no time."""
    return format_time(seconds, to_the_second=True) if seconds else None


def parse_time(text: str) -> float:
    """Return a time of the API in seconds since the epoch.

    Raises:
        ValueError: the text is no timestamp, has no time zone, or is outside of the years 1 to 9999 in UTC, so that
            `format_time` could not write it.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: write it in UTC, such as 2026-01-01T00:00:00Z")
    seconds = moment.timestamp()
    if moment.year in _OUTERMOST:
        datetime.fromtimestamp(seconds, UTC)
    return seconds


def parse_if_set(text: str | None) -> float:
    """The time in seconds since the epoch; 0.0, which stands for no time, if there is none or it cannot be read."""
    try:
        return parse_time(text or "")
    except ValueError:
        return 0.0
