"""Reservations for later in a whole machine, on nodes that are full of pods with limits."""

from __future__ import annotations

import gc
from random import Random

from msgspec.structs import replace

from bench.contended import BEGAN, Contended, full, holder
from bench.lab import Figures
from gangsched.core.contention.forecasting import FIRST_S
from gangsched.core.objects.events import Event, GroupSeen, PodGone
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy, Preemption, Reservations

_AGE_S = 60.0
_POLICY = Policy(preemption=Preemption(enabled=False), reservations=Reservations(starvation_age_s=_AGE_S))
_SETTLED_S = 5.0


def reserving(size: int = 100) -> Figures:
    """A group of this size gets places for later: all calls that take part in finding them, and the longest."""
    pods, groups = full()
    contended = Contended(_limited(pods), groups, policy=_POLICY)
    group, members = holder("large", size, cpus=16)
    contended.run([GroupSeen(group), *contended.known(members)], _AGE_S - 1.0)
    contended.took.clear()
    contended.run([], _SETTLED_S)
    if group.key not in contended.opened:
        raise RuntimeError("no places were reserved")
    took = contended.took[: contended.calls[group.key]]
    gc.unfreeze()
    return {"all_ms": 1000 * sum(took), "longest_ms": 1000 * max(took), "calls": len(took)}


def beside(short: int = 10_000) -> Figures:
    """So many groups of one wait while places are reserved for a large one: the calls after a pod has ended there."""
    pods, groups = full()
    pods = _limited(pods)
    contended = Contended(pods, groups, policy=_POLICY)
    events: list[Event] = []
    for name, size, cpus in (("large", 100, 16), *((f"s{at}", 1, 4) for at in range(short))):
        group, members = holder(name, size, cpus=cpus)
        group = replace(group, created=BEGAN + (name != "large"))
        events += [GroupSeen(group), *contended.known(members)]
    contended.run(events, _AGE_S + _SETTLED_S)
    plan = next(iter(contended.machine.plans.values()))
    leaving = [pod for pod in pods if pod.uid in plan.leaving]
    longest: list[float] = []
    for pod in leaving[:20]:
        contended.took.clear()
        contended.run([PodGone(pod.uid)], 1.0)
        longest.append(max(contended.took))
    gc.unfreeze()
    return {"longest_ms": 1000 * max(longest), "median_ms": 1000 * sorted(longest)[len(longest) // 2]}


def foretold(waiting: int = 1000) -> Figures:
    """So many groups wait for room: all calls that take part in finding out when they start, and the longest."""
    pods, groups = full()
    contended = Contended(_limited(pods), groups, policy=replace(_POLICY, reservations=Reservations(0.0)))
    events: list[Event] = []
    random = Random(58)  # noqa: S311 - not for secrets
    for at in range(waiting):
        group, members = holder(f"g{at}", random.choice((4, 8, 16, 32)), cpus=random.choice((16, 24, 30)))
        deadline_s = int(random.uniform(600, 20_000))
        limited = [replace(pod, lifetime=replace(pod.lifetime, deadline_s=deadline_s)) for pod in members]
        events += [GroupSeen(group), *contended.known(limited)]
    contended.run(events, FIRST_S - 1.0)
    contended.took.clear()
    while not contended.machine.forecasting.told_starts.last:
        contended.run([], 0.5)
    gc.unfreeze()
    return {
        "all_ms": 1000 * sum(contended.took),
        "longest_ms": 1000 * max(contended.took),
        "calls": len(contended.took),
    }


def _limited(pods: list[Pod]) -> list[Pod]:
    """These pods with limits, up to a day from now."""
    random = Random(35)  # noqa: S311 - not for secrets
    started = (replace(pod.lifetime, start=pod.bound_at) for pod in pods)
    lifetimes = (replace(each, deadline_s=int(BEGAN - each.start + random.uniform(600, 86_400))) for each in started)
    return [replace(pod, lifetime=lifetime) for pod, lifetime in zip(pods, lifetimes, strict=True)]
