"""Gives the gangs of a trace hard limits: exact, too long as users write them, or none.

Source: Tsafrir, Etsion and Feitelson, "Modeling user runtime estimates", JSSPP 2005: most users choose one of about
twenty round values, so that estimates are modal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from gangsched.whatif.traces.trace_values import Gang, Trace

_HOUR_S = 3600
_ROUND_S = (
    *(minutes * 60 for minutes in (1, 5, 10, 15, 20, 30, 45)),
    *(hours * _HOUR_S for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 24, 36, 48, 72, 96, 168)),
)
_MOST_FACTOR = 5.0
_ROUNDING_USERS = 0.9


def _long(gang: Gang, random: Random) -> int:
    """One to five times the run time: a round value if one is within that, which nine of ten users choose."""
    run_s = max(gang.run_s, 1.0)
    wanted_s = run_s * random.uniform(1, _MOST_FACTOR)
    values = [value for value in _ROUND_S if run_s <= value <= run_s * _MOST_FACTOR]
    if values and random.random() < _ROUNDING_USERS:
        return next((value for value in values if value >= wanted_s), values[-1])
    return math.ceil(wanted_s)


KINDS: Mapping[str, Callable[[Gang, Random], int | None]] = {
    "exact": lambda gang, _: max(math.ceil(gang.run_s), 1),
    "long": _long,
    "none": lambda *_: None,
}
"""How limits can be."""


def with_limits(trace: Trace, kind: str, seed: int = 1) -> Trace:
    """The trace with hard limits of this kind instead of its own."""
    random = Random(f"limits {seed}")  # noqa: S311 - chance that can be repeated
    return Trace([replace(gang, limit_s=KINDS[kind](gang, random)) for gang in trace.gangs], trace.remarks)
