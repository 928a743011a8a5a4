"""The tables of docs/sizing.md: the operator's resource use by cluster size, as measured by `make bench`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from documentation.filling import put

PAGE = Path("docs/sizing.md")
FIGURES = Path("docs/performance.jsonl")
_SPARE = 1.25
"""Factor by which the requested memory exceeds the measured maximum."""
_STEP_MI, _STEP_M = 64, 100
_TITLE = re.compile(r"(?P<kind>[a-z -]+) (?P<nodes>[\d,]+) × (?P<gangs>[\d,]+)(?: × (?P<size>[\d,]+))?$")


@dataclass(frozen=True)
class Measured:
    """One scenario of bench.scenarios, from its title and its medians."""

    kind: str
    nodes: int
    gangs: int
    size: int
    figures: dict[str, float]

    @property
    def pods(self) -> int:
        """The number of pods."""
        return self.gangs * self.size


@dataclass(frozen=True)
class Size:
    """A cluster by its maximum of nodes and pods, and the sustained rate of bindings per second."""

    nodes: int
    pods: int
    pods_per_s: int


SIZES = (Size(1_000, 10_000, 50), Size(5_000, 100_000, 200))
"""The sizes for which the page recommends requests; those of the first are the chart's defaults."""


def measured(root: Path) -> list[Measured]:
    """The measured scenarios that have a real API server and one kind of cluster."""
    found = []
    for line in map(json.loads, (root / FIGURES).read_text(encoding="utf-8").splitlines()):
        if "rss_mb" in line and (title := _TITLE.fullmatch(line["scenario"])):
            nodes, gangs, size = (int((title[part] or "1").replace(",", "")) for part in ("nodes", "gangs", "size"))
            figures = {name: value[1] for name, value in line.items() if isinstance(value, list)}
            found.append(Measured(title["kind"], nodes, gangs, size, figures))
    return sorted(found, key=lambda each: (each.nodes, each.pods, each.gangs))


def requests(size: Size, found: Sequence[Measured]) -> tuple[str, str]:
    """The CPU and memory to request in such a cluster: those of its most expensive scenario, plus a margin."""
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
    """The page with its tables, each after a comment that names it."""
    found = measured(root)
    for name, rows in (("requests", _requests(found)), ("rest", _at_rest(found)), ("load", _loaded(found))):
        note = f"<!-- Table of {name}, made by make docs from what make bench has measured -->"
        head, *body = (f"| {' | '.join(row)} |" for row in rows)
        table = [note, "", head, "|---:" * head.count(" | ") + "|---:|", *body, ""]
        page = put(rf"<!-- Table of {name}, .*\n\n(\|.*\n)*", "\n".join(table), page)
    return page


Row = Sequence[str]


def _requests(found: Sequence[Measured]) -> Iterator[Row]:
    yield "nodes", "pods", "pods bound per second, for long", "CPU", "memory"
    for size in SIZES:
        yield f"{size.nodes:,}", f"{size.pods:,}", f"{size.pods_per_s}", *requests(size, found)


def _at_rest(found: Sequence[Measured]) -> Iterator[Row]:
    """Rows for backlogs of gangs of twenty, for gangs that do not fit, and for running pods with gangs that follow."""
    used = any(each.kind == "in use" for each in found)
    heads = ("nodes", "pods", "", "memory", "processor time", "of one core, then")
    yield *heads, *(("gang, median", "99th") if used else ())
    for each in found:
        figures, idle, latencies = each.figures, "", ("", "")
        if "updates_cpu" in figures:
            idle = f"{figures['updates_cpu']:.1%} at 100 changes per second"
        match each.kind:
            case "backlog" if (each.gangs, each.size) == (100, 20):
                what = f"wait; all bound {figures['whole_s']:.1f} s after the start"
            case "parked":
                what, idle = "fit nowhere", f"{figures['idle_cpu']:.1%}"
            case "footprint":
                what = "run"
            case "in use":
                what = f"run; ready after {figures['ready_s']:.1f} s; then 50 gangs of 20 come"
                latencies = (f"{figures['gang_ms_p50']:.0f} ms", f"{figures['gang_ms_p99']:.0f} ms")
            case _:
                continue
        cpu = f"{figures['cpu_s']:g} s" if "cpu_s" in figures else ""
        cells = (f"{each.nodes:,}", f"{each.pods:,}", what, f"{figures['rss_mb']:.0f} MB", cpu, idle)
        yield *cells, *(latencies if used else ())


def _loaded(found: Sequence[Measured]) -> Iterator[Row]:
    yield "nodes", "gangs", "pods per second", "processor time per pod", "gang, median", "99th"
    for each in found:
        if each.kind == "stream" and each.gangs > 1:
            figures = each.figures
            yield (
                *(f"{each.nodes:,}", f"{each.gangs:,} of {each.size}", f"{figures['pods_per_s']:.0f}"),
                *(f"{figures['cpu_ms_per_pod']:.2f} ms", f"{figures['gang_ms_p50']:.0f} ms"),
                f"{figures['gang_ms_p99']:.0f} ms",
            )
