"""The workload model of Lublin and Feitelson for parallel supercomputers.

Source: Lublin and Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
JPDC 63(11), 2003; the parameters are those for all jobs, without a distinction of batch and interactive ones. The
gaps between arrivals are scaled to the load; the model's own rate is not used.
"""

from __future__ import annotations

import math
from itertools import accumulate
from random import Random

from gangsched.whatif.traces.arrival_cycle import DAY_S, Cycle, Job, Target, fill, from_start
from gangsched.whatif.traces.trace_values import Gang, Trace, TraceRole

_SERIAL, _POWER_OF_TWO = 0.244, 0.576
_LOWEST, _BELOW_HIGHEST, _LOWER_PART = 0.8, 2.5, 0.86
"""log2 of the size: its minimum, how far below its maximum the two stages meet, and the share of the lower stage."""
_SHORT, _LONG, _LOG_RUN_MOST = (4.2, 0.94), (312.0, 0.03), 12.0
"""ln of the run time: shape and scale of both gamma distributions, and the highest value."""
_SHORT_PER_NODE, _SHORT_SHARE = -0.0054, 0.78
_GAP, _LOG_GAP_MOST = (10.2303 * 1.0225, 0.4871), 13.0
"""ln of the gaps: shape (at rush hours, corrected to all hours) and scale, and the highest value."""
_DAY = (8.1737, 3.9631)
"""Shape and scale of the gamma distribution of arrivals over the half hours of a day that begins at half past five."""
_BEFORE_S = 2 * DAY_S
"""How long before the start jobs begin to arrive: no run is longer."""
_BUCKETS, _FIRST, _BUCKET_S = 48, 11, 1800.0


def lublin(target: Target) -> Trace:
    """Jobs of the model; each of their processors is a member that requests a CPU."""
    random = Random(target.seed)  # noqa: S311 - chance that can be repeated

    def draw() -> tuple[int, float]:
        size = _size(random, target.cpus)
        return size, _run_s(random, size)

    span_s = _BEFORE_S + target.span_s
    cycle = Cycle(_day(), _BUCKET_S, span_s)
    drawn = list(fill(draw, target.load * target.cpus * span_s))
    points = list(accumulate(_gap(random) for _ in range(len(drawn) + 1)))
    jobs = [Job(cycle.time_at(at / points[-1]), run_s, size) for (size, run_s), at in zip(drawn, points, strict=False)]
    return Trace(
        [
            Gang(
                name=f"job-{number}",
                arrival_s=job.arrival_s,
                run_s=job.run_s,
                parts=(TraceRole(job.size, (("cpu", 1000),)),),
            )
            for number, job in enumerate(from_start(jobs, _BEFORE_S))
        ]
    )


def _size(random: Random, most: int) -> int:
    kind = random.random()
    if kind <= _SERIAL or most == 1:
        return 1
    highest = math.log2(most)
    middle = max(highest - _BELOW_HIGHEST, _LOWEST)
    log = random.uniform(*((_LOWEST, middle) if random.random() <= _LOWER_PART else (middle, highest)))
    if kind <= _SERIAL + _POWER_OF_TWO:
        log = math.floor(log + 0.5)
    return min(round(2**log), most)


def _run_s(random: Random, size: int) -> float:
    short = min(max(_SHORT_PER_NODE * size + _SHORT_SHARE, 0.0), 1.0)
    while True:
        log = random.gammavariate(*(_SHORT if random.random() <= short else _LONG))
        if log <= _LOG_RUN_MOST:
            return math.exp(log)


def _gap(random: Random) -> float:
    while True:
        log = random.gammavariate(*_GAP)
        if log <= _LOG_GAP_MOST:
            return math.exp(log)


def _day() -> list[float]:
    """The weight of each half hour from midnight on: the density in its middle stands for its share."""
    shape, scale = _DAY
    weights = [0.0] * _BUCKETS
    for place in range(_FIRST, _FIRST + _BUCKETS):
        weights[(place - 1) % _BUCKETS] = place ** (shape - 1) * math.exp(-place / scale)
    return weights
