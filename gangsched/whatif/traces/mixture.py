"""Generated jobs of a GPU cluster: a mixture like those of Philly and Helios, and a stream with large gangs in it.

Sources: Jeon et al., USENIX ATC 2019 (Philly), and Hu et al., SC 2021 (Helios): most jobs use one GPU, few use 32 and
more, run times have a heavy tail and grow with the size, and arrivals follow day and week. The numbers here are round.
"""

from __future__ import annotations

import math
from random import Random

from gangsched.whatif.traces.arrival_cycle import Cycle, Job, Target, fill, from_start
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceError, TraceRole

_SIZES = {1: 0.70, 2: 0.08, 4: 0.07, 8: 0.08, 16: 0.04, 32: 0.02, 64: 0.01}
"""The share of jobs by their number of GPUs."""
_MEDIAN_S, _SIGMA, _GROWTH, _MOST_S = 600.0, 1.8, 0.3, 7 * 24 * 3600.0
"""Run times are log-normal, with a median that grows with this power of the size, and end after a week."""
_PEAK_HOUR, _SWING, _WEEKEND = 15, 0.5, 0.6
"""The hour with most arrivals, how much their number swings about its mean, and its factor on Saturdays and Sundays."""
_STREAM_SIZES, _STREAM_MEDIAN_S, _STREAM_SIGMA = (1, 2, 4, 8), 1200.0, 0.8
_LARGE_GPUS, _LARGE_EVERY_S, _LARGE_RUN_S = 64, 6 * 3600.0, 3 * 3600.0


def mixture(target: Target) -> Trace:
    """Jobs of 1 to 64 GPUs; the trace begins on a Monday at midnight."""
    random = Random(target.seed)  # noqa: S311 - chance that can be repeated
    shares = {size: share for size, share in _SIZES.items() if size <= target.gpus}

    def draw() -> tuple[int, float]:
        [size] = random.choices(list(shares), list(shares.values()))
        return size, min(random.lognormvariate(math.log(_MEDIAN_S * size**_GROWTH), _SIGMA), _MOST_S)

    span_s = _MOST_S + target.span_s
    cycle = Cycle(_week(), 3600.0, span_s)
    drawn = fill(draw, target.load * target.gpus * span_s)
    jobs = sorted(Job(cycle.time_at(random.random()), run_s, size) for size, run_s in drawn)
    return Trace(
        [
            _gang(f"job-{number}", target, job.arrival_s, job.size, job.run_s)
            for number, job in enumerate(from_start(jobs, _MOST_S))
        ]
    )


def stream(target: Target) -> Trace:
    """A steady stream of jobs of 1 to 8 GPUs, and every six hours a gang of 64 GPUs that runs for three.

    Raises:
        TraceError: the nodes are too small, or the load is below that of the large gangs alone.
    """
    large = [(number + 0.5) * _LARGE_EVERY_S for number in range(int(target.span_s / _LARGE_EVERY_S))]
    work = target.load * target.gpus * target.span_s - len(large) * _LARGE_GPUS * _LARGE_RUN_S
    if target.gpus < _LARGE_GPUS or work <= 0:
        raise TraceError([f"stream: its gangs of {_LARGE_GPUS} GPUs alone are more than that load: name more nodes"])
    random = Random(target.seed)  # noqa: S311 - chance that can be repeated

    def draw() -> tuple[int, float]:
        return random.choice(_STREAM_SIZES), random.lognormvariate(math.log(_STREAM_MEDIAN_S), _STREAM_SIGMA)

    gangs = [_gang(f"large-{number}", target, at, _LARGE_GPUS, _LARGE_RUN_S) for number, at in enumerate(large)]
    for number, (size, run_s) in enumerate(fill(draw, work)):
        gangs.append(_gang(f"job-{number}", target, random.uniform(0, target.span_s), size, run_s))
    return Trace(sorted(gangs, key=lambda gang: gang.arrival_s))


def _gang(name: str, target: Target, arrival_s: float, gpus: int, run_s: float) -> Gang:
    """Members are as large as nodes allow, at most 8 GPUs; the last is smaller if they do not share evenly."""
    member_gpus = min(gpus, target.node_gpus, 8)
    full, rest = divmod(gpus, member_gpus)
    parts = [TraceRole(full, ((GPU, member_gpus),), "full" if rest else "")]
    parts += [TraceRole(1, ((GPU, rest),), "rest")] if rest else []
    return Gang(name=name, arrival_s=arrival_s, run_s=run_s, parts=tuple(parts))


def _week() -> list[float]:
    """The weight of each hour from Monday on."""
    day = [1 + _SWING * math.cos(2 * math.pi * (hour + 0.5 - _PEAK_HOUR) / 24) for hour in range(24)]
    return day * 5 + [weight * _WEEKEND for weight in day * 2]
