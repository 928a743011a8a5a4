"""The results of a replay: how long gangs waited, how much of the nodes was used, and how much was free but useless."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from gangsched.core.objects.shape import PODS, Amounts
from gangsched.whatif.played import Played, Replay, Told
from gangsched.whatif.traces.trace_values import GPU

SAMPLES = 200
"""Number of evenly spaced times, from the first arrival to the last end, at which the nodes are sampled."""
SIZES = ((1, "1"), (8, "2-8"), (31, "9-31"), (math.inf, "32+"))
"""The largest size and the name of each size class."""
_CLASSES = 50
_SHORTEST_RUN_S = 10.0
_LATE_S = 1.0
_FORETOLD_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The nodes at one time: the shares of their resources that are `used` and that are `fragmented`.

    A free amount is fragmented to the extent that members of the trace cannot use it because their other requests do
    not fit on its node: it is the free amount on nodes without room for a member, averaged over the members of the
    trace, each counted once. (The expected fragmentation of Weng et al., USENIX ATC 2023, "Beware of Fragmentation",
    here of the resource's free amount and for the whole trace.) Only the most common requests of members count.
    `waiting` gangs are complete and not bound, `running` ones are bound.
    """

    at_s: float
    used: Mapping[str, float]
    fragmented: Mapping[str, float]
    waiting: int
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """The gangs of one size: how many, how many of them still waited when the last gang arrived, and their waits."""

    gangs: int
    waiting: int
    wait_s: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The result for one strategy or baseline; times in seconds, shares between 0 and 1.

    `wait_s`, `completion_s` and `slowdown` have the mean and the 50th, 95th, 99th and 100th percentile of the gangs
    that were bound: the time from arrival to binding, the time from arrival to end, and the latter divided by the run
    time, but at least 1, where shorter run times count as 10 s (bounded slowdown, Feitelson et al., JSSPP 1997).
    `sizes` has the gangs by their number of GPUs, or of members if they request none. `used` and `fragmented` are means
    over time, by resource, from the first arrival to the last end, which is `makespan_s` later; `used_arriving` only to
    the last arrival, and `idle` is the share of a resource that was kept free until then where places were reserved for
    later. `never` are the names of the gangs that were not bound. Gangs were preempted `preemptions` times,
    which lost `lost`: a share of the time that members held their places. For `reserved` of them a known start was
    reserved, by which `late` of these were not bound. For `foretold` gangs the latest start was known five minutes
    before they were bound, of which `covered` were bound when they were expected; `error` is the median time from then
    to the latest start, as a share of the wait.
    """

    strategy: str
    gangs: int
    bound: int
    wait_s: Mapping[str, float]
    completion_s: Mapping[str, float]
    slowdown: Mapping[str, float]
    sizes: Mapping[str, SizeClass]
    makespan_s: float
    used: Mapping[str, float]
    used_arriving: Mapping[str, float]
    idle: Mapping[str, float]
    fragmented: Mapping[str, float]
    never: Sequence[str]
    preemptions: int
    lost: float
    reserved: int
    late: int
    foretold: int
    covered: int
    error: float
    samples: Sequence[Sample]


def measure(replay: Replay) -> Measures:
    """The measures of the replay."""
    bound = [played for played in replay.gangs if played.bound_s is not None]
    end = max((played.ended_s for played in bound if played.ended_s is not None), default=0.0)
    last = max((played.gang.arrival_s for played in replay.gangs), default=0.0)
    tally = _Tally(replay)
    samples = list(tally.samples(end))
    foretold = [(played, told) for played in bound if (told := _foretold(played)) is not None]
    return Measures(
        strategy=replay.strategy,
        gangs=len(replay.gangs),
        bound=len(bound),
        wait_s=_percentiles(played.waited_s for played in bound),
        completion_s=_percentiles(played.completion_s for played in bound),
        slowdown=_percentiles(_slowdown(played) for played in bound),
        sizes=_by_size(replay, last),
        makespan_s=end,
        used=tally.mean_use(end),
        used_arriving=tally.mean_use(last),
        idle=tally.mean_idle(last),
        fragmented={name: _mean([sample.fragmented[name] for sample in samples]) for name in tally.resources},
        never=[f"{played.gang.namespace}/{played.gang.name}" for played in replay.gangs if played.bound_s is None],
        preemptions=sum(played.preemptions for played in replay.gangs),
        lost=_lost(replay),
        reserved=sum(played.reserved_s is not None for played in replay.gangs),
        late=sum(map(_is_late, replay.gangs)),
        foretold=len(foretold),
        covered=sum(
            told.earliest_s - _LATE_S <= (played.bound_s or 0.0) <= told.latest_s + _LATE_S for played, told in foretold
        ),
        error=_percentiles(
            abs(told.latest_s - (played.bound_s or 0.0)) / (played.waited_s or 1.0) for played, told in foretold
        )["p50"],
        samples=samples,
    )


def _foretold(played: Played) -> Told | None:
    """What the gang was told last, at least some minutes before it was bound, if the latest start was known."""
    before = [told for told in played.told if told.at_s <= (played.bound_s or 0.0) - _FORETOLD_S]
    return before[-1] if before and before[-1].latest_s else None


def _is_late(played: Played) -> bool:
    if played.reserved_s is None:
        return False
    return played.bound_s is None or played.bound_s > played.reserved_s + _LATE_S


def _by_size(replay: Replay, last: float) -> dict[str, SizeClass]:
    """The size classes that have gangs, from the smallest on; `last` is when the last gang arrived."""
    by_size: dict[str, list[Played]] = {name: [] for _, name in SIZES}
    for played in replay.gangs:
        size = played.gang.total(GPU) or played.gang.members
        by_size[next(name for most, name in SIZES if size <= most)].append(played)
    return {
        name: SizeClass(
            gangs=len(gangs),
            waiting=sum(played.bound_s is None or played.bound_s > last for played in gangs),
            wait_s=_percentiles(played.waited_s for played in gangs),
        )
        for name, gangs in by_size.items()
        if gangs
    }


def _slowdown(played: Played) -> float | None:
    if played.completion_s is None:
        return None
    return max(played.completion_s / max(played.gang.duration_s, _SHORTEST_RUN_S), 1.0)


def _lost(replay: Replay) -> float:
    lost_s = sum(played.lost_s for played in replay.gangs)
    done_s = sum(played.gang.members * played.gang.duration_s for played in replay.gangs if played.ended_s is not None)
    return lost_s / (lost_s + done_s) if lost_s else 0.0


def _percentiles(numbers: Iterable[float | None]) -> dict[str, float]:
    values = sorted(value for value in numbers if value is not None)
    if not values:
        return dict.fromkeys(("mean", "p50", "p95", "p99", "max"), 0.0)
    percentiles = {f"p{share}": values[math.ceil(share / 100 * len(values)) - 1] for share in (50, 95, 99)}
    return {"mean": _mean(values), **percentiles, "max": values[-1]}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


class _Tally:
    """The free amounts of the nodes through the replay: an array of nodes by resources."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        names = {name for played in replay.gangs for part in played.gang.parts for name, _ in part.requests}
        self.resources = sorted(names)
        self._column = {name: number for number, name in enumerate((*self.resources, PODS))}
        self._row = {node.name: number for number, node in enumerate(replay.nodes)}
        self._total = np.zeros((len(replay.nodes), len(self._column)))
        for node in replay.nodes:
            self._total[self._row[node.name]] = self._vector(node.allocatable)
        self._sum = self._total.sum(axis=0)
        kinds = Counter[Amounts]()
        for played in replay.gangs:
            for part in played.gang.parts:
                kinds[part.requests] += part.members
        common = kinds.most_common(_CLASSES)
        self._classes = np.array([self._vector((*requests, (PODS, 1))) for requests, _ in common])
        self._weights = np.array([number for _, number in common], dtype=float)
        self._weights /= self._weights.sum()
        self._parts = [
            [self._vector((*part.requests, (PODS, 1))) for part in played.gang.parts] for played in replay.gangs
        ]

    def _vector(self, amounts: Amounts) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        vector = np.zeros(len(self._column))
        for name, size in amounts:
            if name in self._column:
                vector[self._column[name]] = size
        return vector

    def mean_use(self, end: float) -> dict[str, float]:
        """The exact mean share in use until then: each change counts from its time to the end."""
        area = np.zeros(len(self._column))
        for change in takewhile(lambda change: change.at_s < end, self._replay.changes):
            sign = 1 if change.taken else -1
            area += sign * (end - change.at_s) * self._parts[change.gang][change.part]
        return self._shares(area / end if end else area)

    def mean_idle(self, end: float) -> dict[str, float]:
        """The exact mean share that is kept free until then for those who have places reserved for later."""
        area, idle = np.zeros(len(self._column)), self._replay.idle
        for period, until in zip(idle, (*(later.at_s for later in idle[1:]), end), strict=False):
            area += max(0.0, min(until, end) - period.at_s) * self._vector(tuple(period.amounts.items()))
        return self._shares(area / end if end else area)

    def samples(self, end: float) -> Iterator[Sample]:
        """Samples of the nodes at evenly spaced times."""
        free = self._total.copy()
        changes = iter(self._replay.changes)
        change = next(changes, None)
        arrivals = sorted(played.gang.arrival_s for played in self._replay.gangs)
        bound = sorted(played.bound_s for played in self._replay.gangs if played.bound_s is not None)
        ended = sorted(played.ended_s for played in self._replay.gangs if played.ended_s is not None)
        for at in np.linspace(0.0, end, SAMPLES):
            while change is not None and change.at_s <= at:
                sign = -1 if change.taken else 1
                free[self._row[change.node]] += sign * self._parts[change.gang][change.part]
                change = next(changes, None)
            counts = [int(np.searchsorted(times, at, side="right")) for times in (arrivals, bound, ended)]
            yield Sample(
                at_s=float(at),
                used=self._shares(self._sum - free.sum(axis=0)),
                fragmented=self._fragmented(free),
                waiting=counts[0] - counts[1],
                running=counts[1] - counts[2],
            )

    def _fragmented(self, free: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> dict[str, float]:
        useless = np.zeros(free.shape[1])
        for requests, weight in zip(self._classes, self._weights, strict=True):
            useless += weight * free[(free < requests).any(axis=1)].sum(axis=0)
        return self._shares(useless)

    def _shares(self, amounts: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, float]:
        return {
            name: float(amounts[self._column[name]] / self._sum[self._column[name]])
            if self._sum[self._column[name]]
            else 0.0
            for name in self.resources
        }
