"""How long a failed write waits before it is tried again."""

from __future__ import annotations


def doubled(first: float, times: int, *, longest: float) -> float:
    """The wait in seconds after `times` failures: `first`, doubled with each further failure up to `longest`."""
    return min(first * 2.0 ** min(times - 1, 32), longest)
