"""`python -m bench.compare [--pairs N] BASE [PART …]`: is the checkout as fast as the commit BASE?

Each scenario runs in pairs on one control plane and with one client, those of the checkout. Only the measured gangsched
differs. One JSON line per scenario has the ratio of every figure, the checkout's to the base's, as [lower end, median,
upper end] of its 95 % interval. The verdict depends on `speed` and `cpu_per_pod`. PART selects the scenarios whose
title contains it, instead of those of bench-quick. With --page the checkout serves its page, which a browser follows,
and the base does not. Exit status 1: the checkout is slower; 2: there is no such commit or
scenario.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import uvloop

from bench import pairs, runs, trees
from bench.lab import Figures, lab
from bench.scenarios import ALL, NODES_SWEPT, QUICK, SIZES_SWEPT, Kind, Scenario
from bench.trees import ROOT, Program

_RATE, _LATENCY, _CPU, _CPU_PER_POD = "pods_per_s", "gang_ms_p50", "cpu_s", "cpu_ms_per_pod"
_COMPARED = (Kind.BACKLOG, Kind.CONTENTION, Kind.STREAM)
"""Their speed is the rate or, where the client sets the rate, the median gang's latency."""


def main() -> int:
    """Measure and print; return 1 if the checkout fails in a scenario."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    least = pairs.LEAST_PAIRS
    parser.add_argument("--pairs", type=_pairs, default=least, metavar="N", help=f"so many, {least} or more ({least})")
    parser.add_argument("--page", action="store_true", help="the checkout serves its page, and a browser follows it")
    parser.add_argument("base", metavar="BASE", help="the commit that the checkout is compared with")
    parser.add_argument("part", nargs="*", metavar="PART", help="only scenarios whose title contains this")
    chosen = parser.parse_args()
    scenarios = _chosen(chosen.part)
    if not scenarios:
        parser.error(f"no scenario that can be compared has {' or '.join(chosen.part)} in its title")
    verdicts = []
    try:
        with trees.base(chosen.base) as tree:
            here, base = trees.program(ROOT), trees.program(tree)
            for scenario in scenarios:
                line, verdict = judged(
                    scenario, *uvloop.run(_measure(scenario, here, base, number=chosen.pairs, page=chosen.page))
                )
                print(json.dumps({**line, "base": chosen.base}, ensure_ascii=False), flush=True)
                verdicts.append(verdict)
    except subprocess.CalledProcessError as error:
        parser.error(f"{shlex.join(error.cmd)} has failed, for the reason above")
    return 0 if all(verdict.passes for verdict in verdicts) else 1


def judged(scenario: Scenario, here: list[Figures], base: list[Figures]) -> tuple[dict[str, Any], pairs.Verdict]:
    """The JSON line of a scenario and its verdict, from the runs of both commits in the order of the pairs."""
    found = pairs.ratios(here, base)
    speed = found[_RATE] if scenario.kind is not Kind.STREAM else pairs.inverse(found[_LATENCY])
    cpu = found[_CPU_PER_POD] if scenario.kind is Kind.STREAM else found[_CPU]
    verdict = pairs.verdict(speed, cpu)
    told = {"speed": speed, "cpu_per_pod": cpu, **found}
    rounded = {name: [round(each, 3) for each in values] for name, values in told.items()}
    return {"scenario": scenario.title, "pairs": len(here), "verdict": verdict.value, **rounded}, verdict


async def _measure(
    scenario: Scenario, here: Program, base: Program, *, number: int, page: bool
) -> tuple[list[Figures], list[Figures]]:
    found: dict[Program, list[Figures]] = {here: [], base: []}
    async with lab(scenario) as made:
        for run in range(number):
            for program in pairs.order(run, here, base):
                made.program = program
                made.page = page and program == here
                found[program].append(await runs.alone(made))
            print(f"{scenario.title}: pair {run + 1} of {number}", file=sys.stderr, flush=True)
    return found[here], found[base]


def _chosen(parts: Iterable[str]) -> list[Scenario]:
    every = (*ALL, *NODES_SWEPT, *SIZES_SWEPT) if parts else QUICK
    return [
        each for each in every if each.kind in _COMPARED and (not parts or any(part in each.title for part in parts))
    ]


def _pairs(text: str) -> int:
    number = int(text)
    if number < pairs.LEAST_PAIRS:
        raise argparse.ArgumentTypeError(f"fewer than {pairs.LEAST_PAIRS} pairs say too little")
    return number


if __name__ == "__main__":
    sys.exit(main())
