"""What the generators share: what they are to fill, and arrivals that follow the time of day and of the week."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from gangsched.core.objects.node import Node
from gangsched.whatif.traces.trace_values import GPU

DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Target:
    """What a generated trace is to fill: nodes, for `days`, with `load` times what they can do in that time.

    `gpus` and `cpus` are those of all nodes, and `node_gpus` is the most that one node has.
    """

    gpus: int
    node_gpus: int
    cpus: int
    load: float = 1.0
    days: float = 2.0
    seed: int = 1

    @property
    def span_s(self) -> float:
        """The time in which gangs arrive."""
        return self.days * DAY_S


def target_of(nodes: Iterable[Node], load: float, days: float, seed: int) -> Target:
    """The target for these nodes."""
    sizes = [dict(node.allocatable) for node in nodes]
    gpus = [size.get(GPU, 0) for size in sizes]
    cpus = sum(size.get("cpu", 0) for size in sizes) // 1000
    return Target(sum(gpus), max(gpus, default=0), cpus, load, days, seed)


def fill(draw: Callable[[], tuple[int, float]], work: float) -> Iterator[tuple[int, float]]:
    """Draw jobs, as their size and run time, until the sum of the products of both is as near to `work` as it gets."""
    done = 0.0
    while True:
        size, run_s = draw()
        if done and abs(done + size * run_s - work) > abs(done - work):
            return
        done += size * run_s
        yield size, run_s
        if done >= work:
            return


class Job(NamedTuple):
    """A generated job, in seconds since the start of the trace."""

    arrival_s: float
    run_s: float
    size: int


def from_start(jobs: Iterable[Job], before_s: float) -> list[Job]:
    """The jobs from `before_s` on, which becomes the start, and the rest of those that would still run then.

    The nodes are in use from the start so: with run times of days they would fill up for days otherwise.
    """
    moved = (job._replace(arrival_s=job.arrival_s - before_s) for job in jobs)
    return [
        job._replace(arrival_s=max(job.arrival_s, 0.0), run_s=job.run_s + min(job.arrival_s, 0.0))
        for job in moved
        if job.arrival_s + job.run_s > 0
    ]


class Cycle:
    """How often jobs arrive, relative to the mean, in the buckets of a period that is repeated."""

    def __init__(self, weights: Sequence[float], bucket_s: float, span_s: float) -> None:
        count = math.ceil(span_s / bucket_s)
        self._bucket_s = bucket_s
        self._weights = [weights[number % len(weights)] for number in range(count)]
        self._weights[-1] *= span_s / bucket_s - (count - 1)
        self._last_s = span_s - (count - 1) * bucket_s
        self._until = list(accumulate(self._weights))

    def time_at(self, share: float) -> float:
        """When this share of all jobs has arrived, in seconds since the start."""
        wanted = share * self._until[-1]
        bucket = min(bisect_left(self._until, wanted), len(self._until) - 1)
        left = self._until[bucket] - wanted
        length = self._last_s if bucket == len(self._until) - 1 else self._bucket_s
        return bucket * self._bucket_s + (1 - left / self._weights[bucket]) * length
