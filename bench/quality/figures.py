"""The section of docs/performance.md about the quality of placements, from the lines of `bench.quality.comparison`."""

from __future__ import annotations

from collections.abc import Mapping

from bench.quality.planners import DEFAULT, FIRST_FIT
from bench.report import Line

TITLE = "quality: "
LEAST = 0.97
"""Minimum share of the optimum's members that the default strategy admits; it also admits no fewer than first fit."""

_HEAD = """
## Quality of placement

`python -m bench.quality` draws clusters of three to five nodes with CPUs, memory and GPUs, partly in use, and gangs
that want 1.3 times the free CPUs: of 1 to 9 members of one or two sizes, with minima in all and by role, priorities,
and for a third of the gangs a rule (no two on one node, even over zones, all in one zone, in a given zone). All gangs
wait when planning begins. The optimum keeps the order of gangs, like everybody here: OR-tools' CP-SAT first decides
gang by gang whether it gets its minimum, then gang by gang how many members it gets, and last where they go such that
the fragmentation is least. It knows all gangs when it places the first, so no planner can do better. The other planners
that are not gangsched's place pod by pod, whole gangs only, and see the same verdicts on nodes: first fit by the node's
name; the fullest node first, as binpack of Volcano, KAI and YuniKorn; the emptiest node first, as LeastAllocated of
kube-scheduler and Volcano, and fair of YuniKorn.

- *members*: how many are placed, as the mean share of the optimum's.
- *gangs*: how many gangs are placed, as the mean share of the optimum's.
- *as the optimum*: in how many instances every gang has as many members as in the optimum.
- *fragmentation*: one minus the mean, over the sizes of members in the instance, of *whole* ÷ *ideal*. *Whole* is how
  many members of the size the nodes could still take, each for itself, and *ideal* how many one node would take that
  had all that they have left. Who places fewer members has more room left, whole and in pieces.

"""


def met(lines: Mapping[str, Line]) -> bool:
    """Whether the default strategy is as good as it must be."""
    members = lines[TITLE + DEFAULT]["members"]
    return bool(members >= LEAST and members >= lines[TITLE + FIRST_FIT]["members"])


def section(lines: Mapping[str, Line]) -> str:
    """The section of the page; empty without figures. `lines` are all kept lines, by scenario."""
    own = [line for title, line in lines.items() if title.startswith(TITLE)]
    if not own:
        return ""
    rows = "".join(
        f"| {line['scenario'].removeprefix(TITLE)} | {line['members']:.1%} | {line['gangs']:.1%} "
        f"| {line['as_the_optimum']:.1%} | {line['fragmentation']:.3f} |\n"
        for line in own
    )
    bar = f"Pack places {LEAST:.0%} of the optimum's members or more, and no fewer than first fit"
    return (
        f"{_HEAD}The bar: {bar}: {'met' if met(lines) else '**missed**'}, on {own[0]['instances']} instances.\n\n"
        "| planner | members | gangs | as the optimum | fragmentation |\n|---|---:|---:|---:|---:|\n" + rows
    )
