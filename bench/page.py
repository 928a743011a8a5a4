"""docs/performance.md and its plots, generated from the lines that `bench.report` keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.bars import BARE, BARS, Bar
from bench.quality import figures
from bench.report import RESULTS, Line
from bench.runs import PERCENTILES
from bench.scenarios import ALL, NODES_SWEPT, QUICK, SIZES_SWEPT, Kind, Scenario

PAGE = RESULTS.with_name("performance.md")
IMAGES = RESULTS.parent / "images"

_HEAD = """# Performance

These are the latest results of `make bench`, on 2 cores that the control plane, the operator and the client share.
`make bench-quick` takes less than three minutes. Each run begins with the bare API server: a client that plans nothing
binds the same pods, 32 requests in flight. `ratio` compares gangsched's rate to the bare rate of the same run, with
everything but leader election switched on. The API server runs without priority and fairness, unless a scenario says
otherwise: there both bind with the chart's account, whose FlowSchemas put its requests beside those of kube-scheduler.
Times come from the API server's own audit log. Every figure is minimum / **median** / maximum of its runs; the raw
lines are in [performance.jsonl](performance.jsonl). After each run every gang was whole or wholly unbound and no node
overcommitted; a run that finds otherwise ends the benchmark.

`make bench-compare BASE=ref` says whether the checkout is as fast as that commit. It makes at least nine pairs of runs
on one control plane, one run of each, alternating which is first. `speed` is the ratio of the rates, or, where the
client sets the rate, of the median gangs' latencies; `cpu_per_pod` is the ratio of the processor times. Both are the
median of the pairs with its distribution-free 95 % interval. The checkout is as fast if the interval of `speed`
reaches 0.97 and, where it is wider than 3 %, the median of `cpu_per_pod` is at most 1.03. Otherwise the exit status
is 1.

## The bars

Times on the API server are scaled if its bare rate is below 1,275 pods/s.

"""
_PLOTS = """
## In pictures

![Pods bound per second against the number of nodes](images/performance-nodes.svg)
![Pods bound per second against the size of a gang](images/performance-sizes.svg)
![Share of gangs bound within so many milliseconds of their last member's creation](images/performance-latency.svg)
![Resident memory of the operator](images/performance-memory.svg)

## All scenarios

Titles are `kind nodes × gangs × size`. A *backlog* exists before gangsched starts. A *stream* comes while it runs,
created as fast as the API server takes it (8 requests in flight; more only wait). Under *contention* the pods want
twice the room that there is, and *parked* pods fit nowhere. Of a *footprint*, `nodes × pods`, all pods run already; in
a cluster *in use* some of these change, 100 a second, and then a stream of 50 gangs of 20 comes. A client that only
watches pods, counts members and binds each complete gang runs before each stream: `counting_ms_p50` is its median gang,
`counting_ratio` gangsched's to it. *beside* a crowd, which is created at 250 objects a second, healthy gangs of five
come one after the other and /livez is requested ten times a second. `healthy_s` is a gang's longest wait from when a
watch showed its last member to the request of its last binding. `with_server_s` lasts from the answer to that member's
creation to the answer to the binding; the API server took at most `server_s` of it.

"""
_CORE = """
## The core alone

Without a cluster: the cost of planning and events in processor time, and of memory.

"""


def write(lines: Sequence[Line]) -> None:
    """Write the page and its plots from all available lines; a plot whose scenarios are missing is left as it is."""
    by_title = {line["scenario"]: line for line in lines}
    PAGE.write_text(
        _HEAD
        + _bars(by_title)
        + _PLOTS
        + _table([line for line in lines if not line["scenario"].startswith(("core", figures.TITLE))])
        + _CORE
        + _table([line for line in lines if line["scenario"].startswith("core")])
        + figures.section(by_title)
    )
    # Keep text as text in the SVG, and give equal figures an identical file.
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
