"""Durations as people write them in a manifest or a configuration file: `90s`, `5m`, `1h30m`, and pauses that double.

Whole hours, minutes and seconds in this order, each at most once. Days are left out on purpose, as in Go's durations
that Kubernetes uses; fractions are left out because no setting of gangsched needs to be finer than a second.
"""

from __future__ import annotations

import math
import re

PATTERN = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"
"""The form of a duration, in the regular expressions that Python, CEL and OpenAPI share; the empty text is refused."""

SHORTEST_S = 1
LONGEST_S = 7 * 24 * 3600

_IN_SECONDS_S = 120
"""Durations below this number of seconds that are not whole minutes are written in seconds: 90s, not 1m30s."""


def parse_duration(text: str, *, shortest_s: int = SHORTEST_S) -> float:
    """Return the seconds that `text` means.

    Raises:
        ValueError: the text does not have the form, or is outside `shortest_s` seconds to 7 days; the message says what
            to write.
    """
    match = re.fullmatch(PATTERN, text)
    if not text or match is None:
        raise ValueError(f"{text!r} is not a duration: write hours, minutes and seconds such as 90s, 5m or 1h30m")
    hours, minutes, seconds = (int((part or "0s")[:-1]) for part in match.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if not shortest_s <= total <= LONGEST_S:
        raise ValueError(f"{text!r} is out of range: a duration here is from {shortest_s}s to 168h (7 days)")
    return float(total)


def format_duration(seconds: float) -> str:
    """Return the duration as people write it, such as `90s`, `10m` and `1h30m`; `0s` for none.

    `parse_duration` reads the result if it has whole seconds; a fraction, which other systems allow, is kept.
    """
    if not math.isfinite(seconds) or (seconds < _IN_SECONDS_S and seconds % 60):
        return f"{seconds:.10g}s"
    minutes, left = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{amount:.10g}{unit}" for amount, unit in parts if amount) or "0s"


def doubled(first: float, times: int, *, longest: float) -> float:
    """The wait in seconds after `times` failures: `first`, doubled with each further failure up to `longest`."""
    return min(first * 2.0 ** min(times - 1, 32), longest)
