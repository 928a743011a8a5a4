"""The tables of docs/sizing.md: what the operator takes by size of the cluster, as `make bench` has measured it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.filling import put

PAGE = Path("docs/sizing.md")
FIGURES = Path("docs/performance.jsonl")
_SPARE = 1.25
"""By what factor the memory requested exceeds the most that was measured."""
_STEP_MI, _STEP_M = 64, 100
_TITLE = re.compile(r"(?P<kind>[a-z -]+) (?P<nodes>[\d,]+) × (?P<gangs>[\d,]+)(?: × (?P<size>[\d,]+))?$")


@dataclass(frozen=True)
class Measured:
    """One scenario of bench.scenarios, as its title and its medians tell it."""

    kind: str
    nodes: int
    gangs: int
    size: int
    figures: dict[str, float]

    @property
    def pods(self) -> int:
        """How many pods there were."""
        return self.gangs * self.size


@dataclass(frozen=True)
class Size:
    """A cluster of at most so many nodes and pods, where so many pods a second are bound for a long time."""

    nodes: int
    pods: int
    pods_per_s: int


SIZES = (Size(1_000, 10_000, 50), Size(5_000, 100_000, 200))
"""Those for which the page recommends requests; the first are the chart's defaults."""


def measured(root: Path) -> list[Measured]:
    """Every scenario with a real API server and one kind of cluster."""
    found = []
    for line in map(json.loads, (root / FIGURES).read_text(encoding="utf-8").splitlines()):
        if "rss_mb" in line and (title := _TITLE.fullmatch(line["scenario"])):
            nodes, gangs, size = (int((title[part] or "1").replace(",", "")) for part in ("nodes", "gangs", "size"))
            figures = {name: value[1] for name, value in line.items() if isinstance(value, list)}
            found.append(Measured(title["kind"], nodes, gangs, size, figures))
    return sorted(found, key=lambda each: (each.nodes, each.pods, each.gangs))


def requests(size: Size, found: Sequence[Measured]) -> tuple[str, str]:
    """The CPU and memory to request in such a cluster: those of the most expensive scenario in it, and room."""
    within = [each for each in found if each.nodes <= size.nodes and each.pods <= size.pods]
    memory_mi = _SPARE * max(each.figures["rss_mb"] for each in within) * 1e6 / 2**20
    changes = max(each.figures.get("updates_cpu", 0) for each in within)
    of_pod_ms = max(each.figures.get("cpu_ms_per_pod", 0) for each in found)
    cpu_m = 1000 * changes + size.pods_per_s * of_pod_ms
    return f"{math.ceil(cpu_m / _STEP_M) * _STEP_M}m", f"{math.ceil(memory_mi / _STEP_MI) * _STEP_MI}Mi"


def write(root: Path) -> None:
    """Write the page with its tables."""
    page = root / PAGE
    page.write_text(with_tables(root, page.read_text(encoding="utf-8")), encoding="utf-8")


def with_tables(root: Path, page: str) -> str:
    """The page with its tables, each behind a comment that names it."""
    found = measured(root)
    for name, head, rows in (
        ("requests", "| nodes | pods | pods bound per second, for long | CPU | memory |", _requests(found)),
        ("rest", "| nodes | pods | of these | memory | processor time | of one core, then |", _at_rest(found)),
        ("load", "| nodes | gangs | pods per second | processor time per pod | gang, median | 99th |", _loaded(found)),
    ):
        note = f"<!-- Table of {name}, made by make docs from what make bench has measured -->"
        table = [note, "", head, "|---:" * (head.count("|") - 1) + "|", *rows, ""]
        page = put(rf"<!-- Table of {name}, .*\n\n(\|.*\n)*", "\n".join(table), page)
    return page


def _requests(found: Sequence[Measured]) -> Iterator[str]:
    for size in SIZES:
        cpu, memory = requests(size, found)
        yield f"| {size.nodes:,} | {size.pods:,} | {size.pods_per_s} | {cpu} | {memory} |"


def _at_rest(found: Sequence[Measured]) -> Iterator[str]:
    """Backlogs of gangs of twenty, what never fits, and what runs already."""
    for each in found:
        figures = each.figures
        match each.kind:
            case "backlog" if (each.gangs, each.size) == (100, 20):
                what, idle = f"all bound {figures['whole_s']:.1f} s after the start", ""
            case "parked":
                what, idle = "none fits", f"{figures['idle_cpu']:.2%}"
            case "footprint":
                what = "all running"
                idle = (
                    f"{figures['updates_cpu']:.2%} at 100 changes of pods per second"
                    if "updates_cpu" in figures
                    else ""
                )
            case _:
                continue
        used = f"{figures['cpu_s']:g} s" if "cpu_s" in figures else ""
        yield f"| {each.nodes:,} | {each.pods:,} | {what} | {figures['rss_mb']:.0f} MB | {used} | {idle} |"


def _loaded(found: Sequence[Measured]) -> Iterator[str]:
    for each in found:
        if each.kind == "stream" and each.gangs > 1:
            figures = each.figures
            rate, cost = f"{figures['pods_per_s']:.0f}", f"{figures['cpu_ms_per_pod']:.2f} ms"
            median, late = (f"{figures[name]:.0f} ms" for name in ("gang_ms_p50", "gang_ms_p99"))
            yield f"| {each.nodes:,} | {each.gangs:,} of {each.size} | {rate} | {cost} | {median} | {late} |"
