"""Clusters on which a group waits for so long that places are reserved for it."""

from __future__ import annotations

from typing import Any

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy, Preemption, Reservations
from tests.builders import group, node, pod, pods
from tests.harness import START, Harness

AGE_S = 60.0
"""Here a group starves after so many seconds."""
GRACE_S = 30
"""The grace period of pods, in seconds, unless they say otherwise."""


def cluster(*things: Any, nodes: int = 4, cpu: int = 1, preempts: bool = True, **settings: Any) -> Harness:
    """Nodes with so many CPUs each, on which these run."""
    rules = Reservations(**{"starvation_age_s": AGE_S, **settings})
    harness = Harness(Policy(reservations=rules, preemption=Preemption(enabled=preempts)))
    harness.put_class("high", 100)
    harness.settle(*(node(f"n{at}", cpu=cpu) for at in range(nodes)), *things)
    return harness


def runs(name: str, on: int | str, ends_in: float | None = None, **fields: Any) -> Pod:
    """A bound pod that its limit ends so many seconds after the story's start; None: without one."""
    deadline_s = None if ends_in is None else int(1000 + ends_in - GRACE_S)
    times = {"bound_at": START - 1000, "start": START - 1000, "deadline_s": deadline_s}
    return pod(name, **{"group": "", "node": f"n{on}", **times, **fields})


def gang(name: str, size: int, *, least: int | None = None, pods_with: Any = None, **spec: Any) -> list[Any]:
    """A group and its members, of which it needs the `least` number, or all; `pods_with` are keywords of `pod`."""
    asked = {"max_schedule_time_s": 9999.0, **spec}
    return [group(name, min_member=least or size, **asked), *pods(name, size, **(pods_with or {}))]


def starve(harness: Harness, *things: Any) -> None:
    """Add these, and let so much time pass that places are reserved for them."""
    harness.wait(AGE_S + 1, *things)


def start(harness: Harness, name: str) -> float | None:
    """From when on places are reserved for the group, in seconds since the story's start; None if none are."""
    plan = harness.machine.plans.get(GroupKey("default", name))
    return None if plan is None or plan.start is None else round(plan.start - START, 3)


def places(harness: Harness, name: str) -> list[str]:
    """The nodes on which places are reserved for the group, one for each."""
    plan = harness.machine.plans.get(GroupKey("default", name))
    return sorted(each for _, each in plan.places) if plan is not None else []


def finish(harness: Harness, *names: str) -> None:
    """These pods end."""
    harness.delete(*names)
    harness.settle()
