"""A machine that has decided about everything in a copy of the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from gangsched.core.machine import Machine
from gangsched.core.objects.events import Event
from gangsched.core.objects.policy import Policy

_MOST_CALLS = 20_000
"""A guard against a machine that never rests; 5,000 groups take 175 calls."""


def decided(events: Iterable[Event], *, policy: Policy, now: float) -> Machine:
    """The machine after these events. One call does a bounded amount of work, so it is called until nothing is left."""
    machine = Machine(policy)
    machine.handle(list(events), now)
    for _ in range(_MOST_CALLS):
        if machine.next_deadline() != now:
            break
        machine.handle([], now)
    return machine
