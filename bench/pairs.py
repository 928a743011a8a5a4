"""Conclusions from pairs of runs: one of the checkout and one of a base right before or after it.

Other work on a machine changes a rate by a fifth from minute to minute, but much less within a pair. Each figure is
therefore divided by that of its pair, and only the median of these ratios counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import comb
from statistics import median
from typing import TypeVar

from bench.lab import Figures

T = TypeVar("T")

Interval = tuple[float, float, float]
"""The lower end, the median and the upper end."""

LEAST_PAIRS = 9
TOLERANCE = 0.03
_ERROR = 0.025
"""At either end: the interval is one of 95 %."""


class Verdict(StrEnum):
    """Whether the checkout is as fast as the base."""

    AS_FAST = "as fast as the base"
    SLOWER = "slower than the base"
    COSTLIER = "more processor time for each pod than the base"

    @property
    def passes(self) -> bool:
        """Whether the checkout may stay as it is."""
        return self is Verdict.AS_FAST


def interval(values: Sequence[float]) -> Interval:
    """The median with its 95 % interval, whatever the distribution: it ends at the ranks of the sign test.

    The median lies below the k-th smallest of n independent values with the probability that of n tosses of a coin
    fewer than k show heads (Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2). The interval is
    that of the largest k for which this is at most 2.5 %, from the k-th smallest to the k-th largest.

    Raises:
        ValueError: fewer than six values, whose least and most are no such interval.
    """
    count, rank, fewer = len(values), 0, 1 / 2 ** len(values)
    while fewer <= _ERROR:
        rank += 1
        fewer += comb(count, rank) / 2**count
    if not rank:
        raise ValueError(f"a 95 % interval of a median takes at least 6 values, not {count}")
    ordered = sorted(values)
    return ordered[rank - 1], median(ordered), ordered[-rank]


def verdict(speed: Interval, cpu: Interval) -> Verdict:
    """The verdict by the ratios of speed and of processor time for each pod, the checkout's to the base's.

    The interval of the speed must reach 0.97. One that is wider than 3 % tells too little: where it reaches 0.97, the
    median of the processor time decides, which other work disturbs less and which may be 3 % higher.
    """
    least, _, most = speed
    if most < 1 - TOLERANCE:
        return Verdict.SLOWER
    if round(most - least, 9) > TOLERANCE and round(cpu[1], 9) > 1 + TOLERANCE:
        return Verdict.COSTLIER
    return Verdict.AS_FAST


def ratios(here: Sequence[Figures], base: Sequence[Figures]) -> dict[str, Interval]:
    """Each figure of the checkout to that of the base, for those that both have and that were never nothing."""
    names = [name for name in here[0] if all(each.get(name) for each in base)]
    return {name: interval([own[name] / other[name] for own, other in zip(here, base, strict=True)]) for name in names}


def inverse(found: Interval) -> Interval:
    """The ratio of speeds that belongs to a ratio of times."""
    least, middle, most = found
    return 1 / most, 1 / middle, 1 / least


def order(run: int, here: T, base: T) -> tuple[T, T]:
    """The order of the two in this run. They alternate, because the first one may find a colder machine."""
    return (here, base) if run % 2 else (base, here)
