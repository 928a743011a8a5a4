"""How long `gangsched replay` takes for a made-up trace of 10,000 gangs on 1,000 nodes with 8 GPUs each."""

from __future__ import annotations

import random
import time

from bench.lab import Figures
from gangsched.config.settings import Settings
from gangsched.core.objects.node import Node
from gangsched.core.objects.shape import Amounts
from gangsched.whatif.measures import measure
from gangsched.whatif.trace_replay import replay
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceRole

GANGS, NODES, _GPUS = 10_000, 1000, 8
LOADS = {f"core: replay of 10,000 gangs on 1,000 nodes, {load:g} of their GPUs asked for": load for load in (0.5, 1.0)}
"""For each benchmark, the share of all GPUs that the gangs request together."""
_ROOM: Amounts = (("cpu", 64_000), ("memory", 512 << 30), (GPU, _GPUS), ("pods", 110))
_MEMBERS, _ASKED = (1, 1, 1, 2, 4, 8), (1, 2, 4, 8)
_MEAN_RUN_S = 3600.0


def replayed(load: float) -> Figures:
    """Replay gangs that together request `load` of all GPUs: at 1 the nodes could just carry them without a gap."""
    trace, nodes = _trace(load), [Node(name=f"node-{number}", allocatable=_ROOM) for number in range(NODES)]
    start = time.process_time()
    found = measure(replay(trace, nodes, Settings().policy()))
    return {
        "cpu_s": time.process_time() - start,
        "pods": sum(gang.members for gang in trace.gangs),
        "gpus_in_use": found.used[GPU],
        "wait_s_p50": found.wait_s["p50"],
        "most_waiting": max(sample.waiting for sample in found.samples),
    }


def _trace(load: float) -> Trace:
    """Arrivals of a Poisson process and run times; the loads differ only in the time between two arrivals."""
    draw, at, gangs = random.Random(1), 0.0, []  # noqa: S311 - the same trace each time
    mean_gpus = sum(_MEMBERS) / len(_MEMBERS) * sum(_ASKED) / len(_ASKED)
    every_s = mean_gpus * _MEAN_RUN_S / (load * NODES * _GPUS)
    for number in range(GANGS):
        at += draw.expovariate(1 / every_s)
        gpus = draw.choice(_ASKED)
        requests: Amounts = (("cpu", 6000 * gpus), ("memory", gpus * 48 << 30), (GPU, gpus))
        part = TraceRole(draw.choice(_MEMBERS), requests)
        gangs.append(Gang(name=f"gang-{number}", arrival_s=at, run_s=draw.expovariate(1 / _MEAN_RUN_S), parts=(part,)))
    return Trace(gangs)
