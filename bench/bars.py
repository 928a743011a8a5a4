"""The performance targets of gangsched: each bar with its scenario and figure. The median counts."""

from __future__ import annotations

from dataclasses import dataclass

from bench import beside, commands, podgroups, replays
from bench.report import Line
from bench.scenarios import ALL, Kind

BARE = "bare_pods_per_s"
FULL_BARE = 1275.0
"""Absolute limits hold if the bare API server binds this many pods per second, and scale with its rate otherwise."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """`what` in words; the median of `figure` in `scenario` must be at most `most`, or at least `least`.

    `scales`: the limit is a time on the API server, which is longer on a slower machine.
    """

    what: str
    scenario: str
    figure: str
    least: float | None = None
    most: float | None = None
    unit: str = ""
    scales: bool = False

    def limit(self, line: Line) -> float:
        """The limit for the machine that this line was measured on."""
        if self.least is not None:
            return self.least
        slower = max(1.0, FULL_BARE / line[BARE][1]) if self.scales and BARE in line else 1.0
        return (self.most or 0.0) * slower

    def met(self, line: Line) -> bool:
        """Whether the line's median is within the limit."""
        found: float = line[self.figure][1]
        return found >= self.limit(line) if self.least is not None else found <= self.limit(line)


_BACKLOG, _WIDE, _SMALL = "backlog 500 × 100 × 20", "backlog 5,000 × 50 × 100", "backlog 5,000 × 1,667 × 3"
_APART, _DEVICES = "backlog anti-affinity 500 × 100 × 20", "backlog devices 500 × 100 × 20"
_STREAMS = tuple(scenario.title for scenario in ALL if scenario.kind is Kind.STREAM)
_STREAM, _PARKED = "stream 500 × 100 × 20", "parked 500 × 500 × 20"
_EVENTS, _MIXED = "core: pod events, gangs of 20", "core: plan 5,000 nodes × 100 of 10 signatures"
_DEPENDENT = "core: plan 5,000 nodes × 100 spread by zone, apart by hostname"
_NO_GPU = "core: 1,000 parked groups without GPUs, a CPU pod ends"
_NO_CPU = "core: 1,000 parked groups without CPUs, a small pod ends"
_CALLS = {
    what: f"core: longest call, {what}"
    for what in ("25,000 members of minimum 1", "20,000 parked gangs", "500 racks that all fail", "found by search")
}
_SIMULATED = {"core: simulate 700 gangs on 50 nodes": 2, "core: simulate 5,000 gangs on 50 nodes": 15}
_ANSWERS = "core: list, explain and page with 10,000 gangs"
_VICTIMS = {
    "core: victims for a gang of 100 on 5,000 nodes": 300,
    "core: victims for a gang of 100 whole nodes": 300,
    "core: victims for a gang that must be in one of 250 racks": 400,
}
_PLANNED = {
    "core: victims, from the last member to the plan": 300,
    "core: victims, from the last member in one rack to the plan": 400,
}
_AT_REST = "core: 1,000 groups for which no victims suffice, at rest"
_AT_ONCE = "core: victims for 100 groups of 20 at once"
_FOOTPRINT, _LARGE = "footprint 5,000 × 50,000", "footprint 5,000 × 100,000"
_RATE = "pods/s ÷ bare API server"

BARS = (
    Bar(what=f"{_BACKLOG}: {_RATE}", scenario=_BACKLOG, figure="ratio", least=0.75),
    Bar(what=f"{_WIDE}: {_RATE}", scenario=_WIDE, figure="ratio", least=0.7),
    Bar(what=f"{_SMALL}: {_RATE}", scenario=_SMALL, figure="ratio", least=0.55),
    Bar(what=f"{_APART}: {_RATE}", scenario=_APART, figure="ratio", least=0.6),
    Bar(what=f"{_DEVICES}: {_RATE}, which allocates too", scenario=_DEVICES, figure="ratio", least=0.6),
    *(
        Bar(
            what=f"{title}: process start → last binding, less 2 s, ÷ the bare time",
            scenario=title,
            figure="whole_ratio",
            most=1.33,
        )
        for title in (_BACKLOG, _WIDE, _SMALL)
    ),
    *(
        Bar(
            what=f"{title}: last binding → last group’s status",
            scenario=title,
            figure="told_after_s",
            most=5.0,
            unit="s",
            scales=True,
        )
        for title in (_BACKLOG, _SMALL)
    ),
    Bar(
        what=f"{_STREAM}: last member created → last bound, p50",
        scenario=_STREAM,
        figure="gang_ms_p50",
        most=100,
        unit="ms",
        scales=True,
    ),
    Bar(
        what=f"{_STREAM}: last member created → last bound, p99",
        scenario=_STREAM,
        figure="gang_ms_p99",
        most=500,
        unit="ms",
        scales=True,
    ),
    *(
        Bar(
            what=f"{title}: last member created → last bound, p50, ÷ that of a client that only counts",
            scenario=title,
            figure="counting_ratio",
            most=1.5,
        )
        for title in _STREAMS
    ),
    Bar(
        what=f"{_STREAM}: first → last binding of a gang, p50",
        scenario=_STREAM,
        figure="span_ms_p50",
        most=30,
        unit="ms",
        scales=True,
    ),
    Bar(
        what=f"{_WIDE}: process start → first binding",
        scenario=_WIDE,
        figure="first_binding_after_s",
        most=3.0,
        unit="s",
        scales=True,
    ),
    Bar(
        what="10,000 parked pods: all told",
        scenario=_PARKED,
        figure="all_told_after_s",
        most=60,
        unit="s",
        scales=True,
    ),
    *(
        Bar(what=f"{crowd.title}: {what}", scenario=crowd.title, figure=figure, most=most, unit="s")
        for crowd in beside.ALL
        for what, figure, most in (
            ("longest wait of a healthy gang", "healthy_s", 2.0),
            ("longest /livez", "livez_s", 0.5),
        )
    ),
    Bar(what="10,000 parked pods: then, of one core", scenario=_PARKED, figure="idle_cpu", most=0.01),
    Bar(
        what="1,000 parked groups that lack GPUs, a CPU pod ends", scenario=_NO_GPU, figure="cpu_ms", most=20, unit="ms"
    ),
    Bar(
        what="1,000 parked groups that lack CPUs, a pod ends that frees too little",
        scenario=_NO_CPU,
        figure="cpu_ms",
        most=100,
        unit="ms",
    ),
    *(
        Bar(what=f"longest call of the core: {what}", scenario=title, figure="longest_ms", most=100, unit="ms")
        for what, title in _CALLS.items()
    ),
    Bar(
        what="20,000 parked gangs, a pod ends that half a gang could use",
        scenario="core: longest call, 20,000 parked gangs",
        figure="freed_ms",
        most=20,
        unit="ms",
    ),
    Bar(
        what="1,000 of 50,000 pods leave a plan on 5,000 nodes",
        scenario="core: 1,000 of 50,000 pods leave a plan",
        figure="leave_ms",
        most=10,
        unit="ms",
    ),
    *(
        Bar(what=f"{title.removeprefix('core: ')}: {what}", scenario=title, figure=figure, most=limit, unit="ms")
        for title, most in _VICTIMS.items()
        for what, figure, limit in (("longest call", "longest_ms", 100), ("all calls", "all_ms", most))
    ),
    *(
        Bar(what=f"{title.removeprefix('core: ')}: {what}", scenario=title, figure=figure, most=limit, unit="ms")
        for title, most in _PLANNED.items()
        for what, figure, limit in (
            ("longest call of the first", "first_longest_ms", 100),
            ("the first", "first_all_ms", 500),
            ("longest call of the next", "second_longest_ms", 100),
            ("the next", "second_all_ms", most),
        )
    ),
    *(
        Bar(what=f"{_AT_REST.removeprefix('core: ')}: {what}", scenario=_AT_REST, figure=figure, most=0.01)
        for what, figure in (
            ("cores, pods come and go elsewhere", "elsewhere_cores"),
            ("cores, pods come and go on their nodes", "beside_cores"),
        )
    ),
    Bar(what="100 groups of 20 at once: last plan opened", scenario=_AT_ONCE, figure="opened_s", most=5, unit="s"),
    Bar(
        what="100 groups of 20 at once: bound after its last victim has left",
        scenario=_AT_ONCE,
        figure="bound_after_s",
        most=2,
        unit="s",
    ),
    Bar(
        what="no victims suffice for a gang of 100, by sums",
        scenario="core: no victims suffice for a gang of 100 on 5,000 nodes",
        figure="refused_ms",
        most=5,
        unit="ms",
    ),
    Bar(
        what="plan of 1,000 identical members on 5,000 nodes",
        scenario="core: plan 5,000 nodes × 1,000 identical",
        figure="first_ms",
        most=10,
        unit="ms",
    ),
    Bar(
        what="plan of 100 members of 10 signatures with selectors, taints and host ports",
        scenario=_MIXED,
        figure="first_ms",
        most=20,
        unit="ms",
    ),
    Bar(
        what="plan of 100 members on 5,000 nodes with zone spread and hostname anti-affinity",
        scenario=_DEPENDENT,
        figure="first_ms",
        most=100,
        unit="ms",
    ),
    *(
        Bar(what=title.removeprefix("core: "), scenario=title, figure="cpu_s", most=60, unit="s")
        for title in replays.LOADS
    ),
    *(
        Bar(what=title.removeprefix("core: "), scenario=title, figure="cpu_s", most=most, unit="s")
        for title, most in _SIMULATED.items()
    ),
    *(
        Bar(what=f"10,000 gangs: {what}", scenario=_ANSWERS, figure=figure, most=15, unit="s")
        for what, figure in (
            ("gangsched list", "list_cpu_s"),
            ("gangsched explain", "explain_all_cpu_s"),
            ("gangsched explain NAME", "explain_one_cpu_s"),
            ("first look of the page", "page_cpu_s"),
        )
    ),
    *(
        Bar(
            what=f"{commands.TITLE}: {what}",
            scenario=commands.TITLE,
            figure=figure,
            most=most,
            unit="s",
        )
        for what, figure, most in (
            ("list", "list_s", 0.7),
            ("events NAME", "events_s", 0.7),
            ("explain NAME, of a group that waits", "explain_s", 2.0),
            ("explain NAME, of a group that waits, over a connection of 50 ms", "explain_far_s", 2.0),
            ("explain NAME, of a group that runs", "explain_running_s", 2.0),
        )
    ),
    Bar(
        what="resident memory, 5,000 nodes and 50,000 live pods",
        scenario=_FOOTPRINT,
        figure="rss_mb",
        most=400,
        unit="MB",
    ),
    Bar(
        what="resident memory, 5,000 nodes with 10 volumes and 10 pods each",
        scenario="core: memory of 5,000 nodes with 10 volumes each",
        figure="rss_mb",
        most=400,
        unit="MB",
    ),
    *(
        Bar(what=f"5,000 nodes and 100,000 live pods: {what}", scenario=_LARGE, figure=figure, most=most, unit=unit)
        for what, figure, most, unit in (
            ("processor time until ready", "cpu_s", 10, "s"),
            ("resident memory", "rss_mb", 250, "MB"),
            ("100 pod updates a second, of one core", "updates_cpu", 0.05, ""),
        )
    ),
    Bar(
        what="processor time for a PodGroup without pods, its status sent by another",
        scenario=podgroups.TITLE,
        figure="both_ms",
        most=0.5,
        unit="ms",
    ),
    Bar(what="pod event to state", scenario=_EVENTS, figure="event_us", most=40, unit="µs"),
    Bar(
        what="cost per pod, 5,000 nodes ÷ 500 nodes",
        scenario="core: life of gangs of 20, 5,000 nodes against 500",
        figure="cpu_ratio",
        most=1.5,
    ),
)
