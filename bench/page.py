"""docs/performance.md and its plots, made of the lines that `bench.report` keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.bars import BARE, BARS, Bar
from bench.report import RESULTS, Line
from bench.runs import PERCENTILES
from bench.scenarios import ALL, NODES_SWEPT, QUICK, SIZES_SWEPT, Kind, Scenario

PAGE = RESULTS.with_name("performance.md")
IMAGES = RESULTS.parent / "images"

_HEAD = """# Performance

What `make bench` measured last, on 2 cores that the control plane, the operator and the client share; `make
bench-quick` takes less than three minutes. Each run begins with the bare API server: the same pods bound by a client
that plans nothing, 32 requests in flight. `ratio` is gangsched's rate to that of the same run, with everything
switched on but the election of a leader. The API server runs without priority and fairness, but where a scenario says
so: there both bind with the chart's account, whose requests its FlowSchemas put beside those of kube-scheduler.
Times come from the API server's own audit log. Every figure is least / **median** / most of its runs; the raw lines
are in [performance.jsonl](performance.jsonl). After each run every gang was whole or wholly unbound and no node
overcommitted; a run that finds otherwise ends the benchmark.

`make bench-compare BASE=ref` says whether the checkout is as fast as that commit: at least nine pairs of runs on one
control plane, one of each, with each of them first in turn. `speed` is the ratio of the rates, or where the client sets
the rate that of the median gangs' latencies, and `cpu_per_pod` that of the processor times: the median of the pairs in
its 95 % interval, whatever the distribution. The checkout is as fast if the interval of `speed` reaches 0.97 and,
where it is wider than 3 %, the median of `cpu_per_pod` is at most 1.03. Otherwise the exit status is 1.

## The bars

Times on the API server are scaled where it binds fewer than 1,275 pods/s bare.

"""
_PLOTS = """
## In pictures

![Pods bound per second against the number of nodes](images/performance-nodes.svg)
![Pods bound per second against the size of a gang](images/performance-sizes.svg)
![Share of gangs bound within so many milliseconds of their last member's creation](images/performance-latency.svg)
![Resident memory of the operator](images/performance-memory.svg)

## All scenarios

`kind nodes × gangs × size`: a *backlog* exists before gangsched starts, a *stream* comes while it runs, created as fast
as the API server takes it (8 requests in flight; more are not faster, they wait), under *contention* twice as much is
wanted as there is, and *parked* pods fit nowhere. A stream comes first for a client that only watches pods, counts
members and binds each gang that is complete: `counting_ms_p50` is its median gang, `counting_ratio` gangsched's to it.
*beside* a crowd, which is created at 250 objects a second, healthy gangs of five come one after the other and /livez is
asked for ten times a second: `healthy_s` is a gang's longest wait from when a watch showed its last member to the
request of its last binding, `with_server_s` from the answer to its creation to the binding's, of which `server_s` was
the API server's at most.

"""
_CORE = """
## The core alone

No cluster: what planning, events and memory cost, in processor time.

"""


def write(lines: Sequence[Line]) -> None:
    """Write the page and its plots from all lines that there are; a plot without its scenarios is left as it is."""
    by_title = {line["scenario"]: line for line in lines}
    PAGE.write_text(
        _HEAD
        + _bars(by_title)
        + _PLOTS
        + _table([line for line in lines if not line["scenario"].startswith("core")])
        + _CORE
        + _table([line for line in lines if line["scenario"].startswith("core")])
    )
    # Text stays text, and equal figures give an equal file.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gangsched"})
    backlog = QUICK[0]
    _plot("nodes", by_title, sorted((backlog, *NODES_SWEPT), key=lambda each: each.nodes), _throughput("nodes"))
    _plot("sizes", by_title, sorted((backlog, *SIZES_SWEPT), key=lambda each: each.size), _throughput("size"))
    _plot("latency", by_title, [each for each in ALL if each.kind is Kind.STREAM and each.gangs > 1], _latency)
    _plot("memory", by_title, [each for each in ALL if each.kind is not Kind.STREAM], _memory)


def _bars(lines: dict[str, Line]) -> str:
    rows = [_bar(bar, lines.get(bar.scenario)) for bar in BARS]
    return "| figure | bar | measured | |\n|---|---|---|---|\n" + "".join(rows)


def _bar(bar: Bar, line: Line | None) -> str:
    if line is None or bar.figure not in line:
        return f"| {bar.what} | | not measured | |\n"
    sign = "≥" if bar.least is not None else "≤"
    unit = f" {bar.unit}" if bar.unit else ""
    limit = f"{sign} {bar.limit(line):.4g}{unit}"
    return f"| {bar.what} | {limit} | {_three(line[bar.figure])}{unit} | {'met' if bar.met(line) else '**missed**'} |\n"


def _table(lines: Sequence[Line]) -> str:
    return "".join(
        f"- **{line['scenario']}**, {line['runs']} runs: "
        + ", ".join(f"{name} {_three(found)}" for name, found in line.items() if isinstance(found, list))
        + "\n"
        for line in lines
    )


def _three(found: list[float]) -> str:
    least, middle, most = (f"{value:g}" for value in found)
    return f"{least} / **{middle}** / {most}"


Drawing = Callable[[Axes, Sequence[tuple[Scenario, Line]]], None]


def _plot(name: str, lines: dict[str, Line], scenarios: Sequence[Scenario], draw: Drawing) -> None:
    known = [(each, lines[each.title]) for each in scenarios if each.title in lines]
    if not known:
        return
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.add_subplot()
    draw(axes, known)
    axes.spines[["top", "right"]].set_visible(False)
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"performance-{name}.svg", metadata={"Date": None})


def _throughput(field: str) -> Drawing:
    words = {"nodes": "nodes (100 gangs of 20)", "size": "members of a gang (2,000 pods on 500 nodes)"}

    def draw(axes: Axes, known: Sequence[tuple[Scenario, Line]]) -> None:
        at = [getattr(scenario, field) for scenario, _ in known]
        for figure, label in ((BARE, "bare API server"), ("pods_per_s", "gangsched")):
            found = [line[figure] for _, line in known]
            axes.plot(at, [median for _, median, _ in found], marker="o", label=label)
            axes.fill_between(at, [least for least, _, _ in found], [most for _, _, most in found], alpha=0.2)
        axes.set_xscale("log")
        axes.set_xticks(at, [f"{each:,}" for each in at])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel(words[field])
        axes.set_ylabel("pods bound per second")
        axes.legend(frameon=False)

    return draw


def _latency(axes: Axes, known: Sequence[tuple[Scenario, Line]]) -> None:
    for scenario, line in known:
        at = [line[f"gang_ms_p{percent}"][1] for percent in PERCENTILES]
        axes.plot(at, PERCENTILES, marker=".", label=scenario.title)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds from the last member's creation to the last binding")
    axes.set_ylabel("% of the gangs")
    axes.legend(frameon=False)


def _memory(axes: Axes, known: Sequence[tuple[Scenario, Line]]) -> None:
    axes.barh([scenario.title for scenario, _ in known], [line["rss_mb"][1] for _, line in known])
    axes.invert_yaxis()
    axes.set_xlabel("resident memory of the operator, MB")
