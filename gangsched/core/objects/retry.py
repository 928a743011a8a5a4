"""How long a failed write waits before it is tried again."""

from __future__ import annotations


def doubled(first: float, times: int, *, longest: float) -> float:
    """The wait after so many failures, from 1: the first one's, doubled with each further one up to the longest."""
    return min(first * 2.0 ** min(times - 1, 32), longest)
