"""The optimum and each planner on the same instances: means over all of them, one line each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean

from bench.quality.figures import TITLE
from bench.quality.instances import drawn
from bench.quality.optimum import optimum
from bench.quality.outcomes import Outcome
from bench.quality.planners import PLANNERS
from bench.report import Line

OPTIMUM = "optimum"


def compared(seeds: Iterable[int]) -> list[Line]:
    """A line for the optimum and for each planner.

    Raises:
        RuntimeError: a planner beats the optimum, so the two do not solve the same problem.
    """
    outcomes: dict[str, list[Outcome]] = {name: [] for name in (OPTIMUM, *PLANNERS)}
    for seed in seeds:
        instance = drawn(seed)
        best = optimum(instance)
        outcomes[OPTIMUM].append(best)
        for name, planner in PLANNERS.items():
            found = planner(instance)
            if found.rank > best.rank:
                raise RuntimeError(f"{name} finds more than the optimum of instance {seed}")
            outcomes[name].append(found)
    return [_line(name, found, outcomes[OPTIMUM]) for name, found in outcomes.items()]


def _line(name: str, found: Sequence[Outcome], best: Sequence[Outcome]) -> Line:
    pairs = [(one, other) for one, other in zip(found, best, strict=True) if other.members]
    return {
        "scenario": TITLE + name,
        "instances": len(found),
        "members": round(mean(one.members / other.members for one, other in pairs), 4),
        "gangs": round(mean(one.gangs / other.gangs for one, other in pairs), 4),
        "as_the_optimum": round(mean(one.rank == other.rank for one, other in zip(found, best, strict=True)), 4),
        "fragmentation": round(mean(one.fragmentation() for one in found), 4),
    }
