"""A gang that asks for half of a cluster, in a stream of small jobs that never ends."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from gangsched.core.objects.node import Node
from gangsched.core.objects.policy import Policy, Reservations
from gangsched.whatif import trace_replay
from gangsched.whatif.played import Played
from gangsched.whatif.traces.run_limits import KINDS
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceRole

NODES = [Node(f"n{at:02}", allocatable=((GPU, 8), ("pods", 110))) for at in range(16)]
LASTS_S = 1800.0
"""The stream ends after so many seconds."""
AGE_S = 60.0
ARRIVES_S = 400.0
PROMISES = "promises"
"""Jobs without limits, of which every fifth lasts up to twice as long as it declares."""


def stream(seed: int, kind: str, *, load: float = 1.1, lasts_s: float = LASTS_S) -> Trace:
    """Jobs of 1 to 8 GPUs with limits of this kind, or promises, and a gang of 64 GPUs.

    They ask on average for `load` times what the nodes have.
    """
    random = Random(f"stream {seed} {kind}")
    gangs, at_s = [_gang("large", ARRIVES_S, 300.0, members=8, each=8)], 0.0
    while at_s < lasts_s:
        gpus = random.choice((1, 1, 2, 2, 4, 8))
        gang = _gang("small", at_s, random.uniform(60, 600), members=1, each=gpus)
        gangs.append(_declared(gang, kind, random))
        at_s += random.expovariate(load * 128 / (3 * 330))
    return Trace(sorted(gangs, key=lambda gang: gang.arrival_s))


def _gang(name: str, at_s: float, run_s: float, *, members: int, each: int) -> Gang:
    return Gang(name=name, arrival_s=at_s, run_s=run_s, parts=(TraceRole(members, ((GPU, each),)),))


def _declared(gang: Gang, kind: str, random: Random) -> Gang:
    if kind != PROMISES:
        return replace(gang, limit_s=KINDS[kind](gang, random))
    overstays = random.random() < 0.2
    return replace(gang, expected_s=float(int(gang.run_s / (random.uniform(1, 2) if overstays else 1)) + 1))


def played(trace: Trace, *, age_s: float = AGE_S, by_promises: bool = True) -> tuple[Played, list[Played]]:
    """What becomes of the large gang, and of all."""
    policy = Policy(reservations=Reservations(starvation_age_s=age_s, by_promises=by_promises))
    gangs = [*trace_replay.replay(trace, NODES, policy).gangs]
    return next(each for each in gangs if each.gang.name == "large"), gangs


def longest_left_s(gangs: list[Played], at_s: float) -> float:
    """When, in seconds since the start, all will have ended that runs at this time."""
    running = [each for each in gangs if each.bound_s is not None and each.bound_s <= at_s]
    return max((each.bound_s or 0.0) + each.gang.duration_s for each in running)
