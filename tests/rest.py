"""The law of rest: a call that is due at once changes something, or the machine rests within a few calls.

It holds for every machine of every test: the hook in `tests/conftest.py` puts `watched` in the place of
`Machine.handle`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from gangsched.core.machine import Machine
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.events import Event, TimePassed

MOST_IDLE_CALLS = 100
"""Calls in a row that may be due at once, bring nothing about, and leave as much work as before."""

Handle = Callable[[Machine, Sequence[Event], float], list[Effect]]


def watched(handle: Handle) -> Handle:
    """The method, which fails once a machine calls for attention again and again and does nothing with it."""
    idle: WeakKeyDictionary[Machine, tuple[int, int]] = WeakKeyDictionary()

    def judged(machine: Machine, events: Sequence[Event], now: float) -> list[Effect]:
        effects = handle(machine, events, now)
        due = machine.next_deadline()
        if effects or due is None or due > now or not all(isinstance(event, TimePassed) for event in events):
            idle.pop(machine, None)
            return effects
        calls, least = idle.get(machine, (0, unfinished(machine)))
        idle[machine] = (calls + 1, least) if unfinished(machine) >= least else (0, unfinished(machine))
        assert idle[machine][0] <= MOST_IDLE_CALLS, f"due at once for {MOST_IDLE_CALLS} calls that change nothing"
        return effects

    return judged


def unfinished(machine: Machine) -> int:
    """The number of gangs that are to be reconciled or tried."""
    state = machine._state  # noqa: SLF001 - a machine tells only whether it rests
    opened = sum(len(bucket.waiting) for _, bucket in state.queue._open.values())  # noqa: SLF001
    return len(state.members.dirty) + len(state.queue._since) + opened  # noqa: SLF001
