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
"""Probability of error at either end of the 95 % interval."""


class Verdict(StrEnum):
    """Whether the checkout is as fast as the base."""

    AS_FAST = "as fast as the base"
    SLOWER = "slower than the base"
    COSTLIER = "more processor time for each pod than the base"

    @property
    def passes(self) -> bool:
        """Whether the checkout is fast enough."""
        return self is Verdict.AS_FAST


def interval(values: Sequence[float]) -> Interval:
    """The median with its distribution-free 95 % interval, whose ends are the ranks of the sign test.

    The probability that the median lies below the k-th smallest of n independent values equals the probability that
    fewer than k of n coin tosses show heads (Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2).
    The interval runs from the k-th smallest to the k-th largest value, for the largest k for which this is at most
    2.5 %.

    Raises:
        ValueError: there are fewer than six values; their minimum and maximum are no 95 % interval.
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
    """The verdict from the ratios (checkout to base) of speed and of processor time per pod.

    The interval of the speed must reach 0.97. An interval wider than 3 % is inconclusive: if it reaches 0.97, the
    median of the processor time decides. Other work disturbs that less, and it may be 3 % higher.
    """
    least, _, most = speed
    if most < 1 - TOLERANCE:
        return Verdict.SLOWER
    if round(most - least, 9) > TOLERANCE and round(cpu[1], 9) > 1 + TOLERANCE:
        return Verdict.COSTLIER
    return Verdict.AS_FAST


def ratios(here: Sequence[Figures], base: Sequence[Figures]) -> dict[str, Interval]:
    """The ratio, checkout to base, of each figure that all runs of the base have and that is never zero there."""
    names = [name for name in here[0] if all(each.get(name) for each in base)]
    return {name: interval([own[name] / other[name] for own, other in zip(here, base, strict=True)]) for name in names}


def inverse(found: Interval) -> Interval:
    """The ratio of speeds that corresponds to a ratio of times."""
    least, middle, most = found
    return 1 / most, 1 / middle, 1 / least


def order(run: int, here: T, base: T) -> tuple[T, T]:
    """The order of the two in this run. They alternate, because the first may run on a colder machine."""
    return (here, base) if run % 2 else (base, here)
