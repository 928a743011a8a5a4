"""Clusters whose room is taken, for stories about preemption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.policy import Policy, Preemption
from gangsched.core.objects.record import Record
from tests.builders import group, pod, pods
from tests.harness import Harness

SET = Owner("StatefulSet", "s", "set-s", "apps")
"""A controller that creates its pods again and counts no failures."""
GRACE_S = 30
"""The grace period of pods here, in seconds, unless they say otherwise."""


def cluster(*things: Any, **preemption: Any) -> Harness:
    """A cluster with these objects and settings of preemption, and with the PriorityClasses `mid` and `high`."""
    harness = Harness(Policy(preemption=Preemption(**preemption)) if preemption else None)
    harness.put_class("mid", 50)
    harness.put_class("high", 100)
    harness.settle(*things)
    return harness


def gang(
    name: str,
    size: int,
    *,
    least: int | None = None,
    priority_class: str = "",
    pods_with: Mapping[str, Any] | None = None,
    **spec: Any,
) -> list[Any]:
    """A group and its members, of which it needs the `least` number, or all; `pods_with` are keywords of `pod`."""
    asked: dict[str, Any] = {"max_schedule_time_s": 9999.0, "priority_class": priority_class, **spec}
    said = {"owner": SET, **(pods_with or {})}
    return [group(name, min_member=least or size, **asked), *pods(name, size, **said)]


def alone(name: str, **fields: Any) -> Pod:
    """A pod without a group, which a controller would create again."""
    return pod(name, **{"group": "", "owner": SET, **fields})


def holder(size: int, *, name: str = "high", **fields: Any) -> list[Any]:
    """A group of priority 100 that may preempt others."""
    return gang(name, size, priority_class="high", **fields)


def evicted(harness: Harness) -> list[str]:
    """The names of the pods that were evicted, without their namespace."""
    return sorted(name.partition("/")[2] for name in harness.evicted)


def victims(harness: Harness, *things: Any, wait_s: float = 5) -> list[str]:
    """Add these, and let time pass. Returns who was evicted meanwhile."""
    before = len(harness.evicted)
    harness.wait(wait_s, *things)
    return sorted(name.partition("/")[2] for name in harness.evicted[before:])


def end(harness: Harness, *, wait_s: float = 5) -> None:
    """Let those that were evicted end, and time pass."""
    harness.end_terminating()
    harness.wait(wait_s)


def is_whole(harness: Harness, name: str, size: int) -> bool:
    """Whether so many members of the group are bound."""
    return len(harness.bound(f"default/{name}-")) == size


def record(harness: Harness, name: str) -> Record:
    """What the status of the group keeps for the operator."""
    found = harness.status(f"default/{name}").record
    assert found is not None
    return found


def names(name: str, numbers: Iterable[int]) -> list[str]:
    """Names of members."""
    return [f"{name}-{number}" for number in numbers]
