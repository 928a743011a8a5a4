"""`python -m bench [--quick] [--runs N] [--write] [PART …]`: every scenario, one JSON line each.

Each run first measures the bare API server: a client without planning binds the same pods, with as many requests in
flight. `ratio` is gangsched's rate divided by that one, run by run. Every figure has the form [least, median, most].
PART chooses the scenarios whose title contains it; `--write` writes docs/performance.md, its plots, and the tables
that follow from it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable

import uvloop

from bench import beside, commands, core, page, podgroups, report, runs
from bench.lab import Figures, lab
from bench.scenarios import ALL, NODES_SWEPT, QUICK, SIZED, SIZES_SWEPT, Scenario
from documentation import comparison, sizing

RUNS = 3
BRIEF_RUNS = 3
"""Factor of the number of runs for the two scenarios of bench-quick if all scenarios run. Their runs last only one or
two seconds, so that other work on the machine changes a rate by a fifth."""


def main() -> None:
    """Measure, print, and write with `--write`."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the first backlog and stream, and a short core")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"so often each scenario is run ({RUNS})")
    parser.add_argument(
        "--write", action="store_true", help="write docs/performance.md, its plots, and the tables that follow from it"
    )
    parser.add_argument("part", nargs="*", help="only scenarios whose title contains this")
    chosen = parser.parse_args()
    scenarios = QUICK if chosen.quick else (*ALL, *NODES_SWEPT, *SIZES_SWEPT, *SIZED)
    for line in _measure(scenarios, parts=chosen.part, number=chosen.runs, quick=chosen.quick):
        print(json.dumps(line, ensure_ascii=False), flush=True)
        if chosen.write:
            page.write(report.keep([line]))
            for derived in (sizing, comparison):
                derived.write(report.RESULTS.parent.parent)


def _measure(scenarios: Iterable[Scenario], *, parts: list[str], number: int, quick: bool) -> Iterable[report.Line]:
    for title, measure in core.benchmarks(quick=quick):
        if _is_chosen(title, parts):
            yield report.line(title, [measure() for _ in range(number)])
    for crowd in () if quick else beside.ALL:
        if _is_chosen(crowd.title, parts):
            yield report.line(crowd.title, [uvloop.run(beside.run(crowd)) for _ in range(number)])
    if not quick and _is_chosen(podgroups.TITLE, parts):
        yield report.line(podgroups.TITLE, [uvloop.run(podgroups.measure()) for _ in range(number)])
    if not quick and _is_chosen(commands.TITLE, parts):
        yield report.line(commands.TITLE, uvloop.run(commands.measure(number)))
    for scenario in scenarios:
        if _is_chosen(scenario.title, parts):
            times = number if quick or scenario not in QUICK else number * BRIEF_RUNS
            yield report.line(scenario.title, uvloop.run(_runs(scenario, times)))


def _is_chosen(title: str, parts: list[str]) -> bool:
    return not parts or any(part in title for part in parts)


async def _runs(scenario: Scenario, number: int) -> list[Figures]:
    async with lab(scenario) as made:
        return [await runs.run(made) for _ in range(number)]


if __name__ == "__main__":
    main()
