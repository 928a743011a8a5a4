"""The steps of a gang's life: every change of its record, as one table.

Only `apply` changes the record, so a step that is not a row of the table cannot happen, and a step can neither set nor
reset fields that its row does not name. The code that takes a step decides when it is due; the phase follows from the
record and the members (`core.gang.states`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from msgspec.structs import replace

from gangsched.core.gang.attempt import Attempt
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.record import NO_RECORD, Minima, Record


class Transition(NamedTuple):
    """One row: which fields of the record the step may set, which it resets, and how it changes the last attempt."""

    sets: tuple[str, ...] = ()
    forgets: tuple[str, ...] = ()
    attempt: Callable[[Attempt], None] | None = None


def _all_but(*kept: str) -> tuple[str, ...]:
    return tuple(name for name in Record.__struct_fields__ if name not in kept)


_QUORUM = ("quorum", "quorum_done")
_PREBINDING = ("prebinding_at", "prebinding_clock")


class Step(Enum):
    """The rows of the table; each docstring says when the step is taken."""

    def __init__(
        self, sets: tuple[str, ...], forgets: tuple[str, ...], attempt: Callable[[Attempt], None] | None
    ) -> None:
        self.sets = frozenset(sets)
        self.forgotten = {name: getattr(NO_RECORD, name) for name in forgets}
        self.attempt = attempt

    RUN_BEGINS = Transition(("run_start",))
    """The first live member exists."""
    BELONGS = Transition(("workload",))
    """The live members now belong to one workload, or no longer do."""
    MEMBER_ENDS = Transition(("succeeded", "failed", "led", "quorum_done", "damaged"))
    """A member of the run has succeeded or failed."""
    RUN_ENDS = Transition(("outcome",), _QUORUM)
    """A scheduled run has no live member left, or its workload has shown how the run ended."""
    NEXT_RUN = Transition((), _all_but("phase", "rollback_note", "workload"))
    """Another run begins, or the last one has ended without being scheduled."""
    REPLACED = Transition(("retry_at", "timeouts", "level"))
    """The new run begins with replacements of members that a rollback evicted; they wait out its back-off."""
    UNDECLARED = Transition((), _all_but("phase", "rollback_note", *_QUORUM), Attempt.try_again)
    """The object that declared the group is gone or was replaced: the run ends without an outcome."""
    SPEC_CHANGES = Transition(
        ("outcome", "capped"),
        ("retry_at", "level", "placeholders_expired", "caps", "rollback_note"),
        Attempt.spec_changed,
    )
    """The spec has changed: the back-off ends, and so does a failure by time-out."""
    QUORUM_BEGINS = Transition(("quorum",), ("quorum_done",))
    """A quorum with these minima is under way."""
    QUORUM_PLACED = Transition((), ("rollback_note",), Attempt.forget_refusal)
    """Nodes were found for the quorum."""
    QUORUM_DROPPED = Transition((), _QUORUM)
    """No quorum is under way any more."""
    SCHEDULED = Transition(
        ("scheduled_at", "satisfied"),
        ("clock_start", "retry_at", "outcome", "rollback_note", *_QUORUM),
        Attempt.succeeded,
    )
    """The quorum is bound."""
    SATISFIED = Transition(("satisfied", "late", "scheduled_at"))
    """A scheduled group was checked: other minima are satisfied, or a late group is whole."""
    NOT_SHORT = Transition((), ("placeholders_expired", "damaged"))
    """The group is whole again after members had failed or placeholders had expired."""
    INFERRED = Transition(("run_start", "scheduled_at", "satisfied", "late"))
    """After a restart, bound members show that a group without a record had been scheduled."""
    CLOCK_STARTS = Transition(("clock_start", "capped"), ("rollback_note",))
    """The group is complete and begins to wait, or resumes waiting after a cap."""
    CLOCK_STOPS = Transition((), ("clock_start",))
    """The group is complete but may not be tried yet."""
    PREBINDING_BEGINS = Transition(_PREBINDING, ("clock_start",))
    """The quorum begins to wait for its pre-bindings; the clock is paused."""
    PREBINDING_ENDS = Transition(("clock_start",), _PREBINDING)
    """The quorum no longer waits for pre-bindings; a clock that was running goes on."""
    CLOCK_PAUSES = Transition(("capped",), ("clock_start",))
    """A cap forbids placeholders."""
    INCOMPLETE = Transition(("clock_start", "retry_at"), _PREBINDING, Attempt.not_tried)
    """Members are missing. The clock goes on if the group has placeholders; the back-off after a rollback always goes
    on."""
    ROLLED_BACK = Transition(("rollback_note",), (), Attempt.wait)
    """A part of a quorum was bound, and the rest could not be bound in time."""
    BACKS_OFF = Transition(("timeouts", "level", "retry_at"), ("clock_start", *_PREBINDING))
    """The time is up, or a quorum was rolled back."""
    BACK_OFF_ENDS = Transition((), ("retry_at",), Attempt.try_again)
    """The back-off is over."""
    OUT_OF_TIME = Transition(("timeouts", "outcome", "settled_at"), ("clock_start", *_PREBINDING))
    """The time is up under timeoutPolicy Fail."""
    PLACES_HELD = Transition(("held_since", "clock_start"))
    """The first placeholder was reserved, or none is reserved any more."""
    PLACES_EXPIRE = Transition(("placeholders_expired", "timeouts"), ("clock_start",))
    """The reservations of placeholders beside bound members have expired."""
    LATE = Transition(("late", "scheduled_at", "satisfied"))
    """They expired before the group was scheduled: it counts as scheduled with the members it has."""
    CAPPED = Transition(("capped", "caps"))
    """A cap has released reservations of placeholders, or forbids them."""
    CAP_ENDS = Transition(("capped",), (), Attempt.try_again)
    """The back-off of a cap is over."""
    UNCAPPED = Transition((), ("capped",))
    """Placeholders are not wanted any more, or are reserved again."""
    RECALLED = Transition(_all_but())
    """A new leader restores the record from the status."""
    PHASE = Transition(("phase", "running_at"))
    """The facts lead to another phase."""


def apply(gang: Gang, step: Step, **values: object) -> None:
    """Change the gang's record by this step.

    Raises:
        TypeError: the step does not set these values (a defect of gangsched).
    """
    if not values.keys() <= step.sets:
        raise TypeError(f"{step.name} does not set {', '.join(values)}")
    changes = {**step.forgotten, **values}
    for name, value in changes.items():
        if getattr(gang.record, name) != value:
            gang.record = replace(gang.record, **changes)
            break
    if step.attempt is not None:
        step.attempt(gang.attempt)


def begin_run(gang: Gang, past: Iterable[str]) -> None:
    """Begin another run, to which the `past` members (by UID) do not belong."""
    apply(gang, Step.NEXT_RUN)
    gang.roster.begin_run(past)
    gang.written.another_run()


def forget_run(gang: Gang) -> None:
    """End the gang's run without an outcome, but keep a quorum that is under way.

    This also ends the back-off and unparks the gang, which nothing else would wake.
    """
    apply(gang, Step.UNDECLARED)
    gang.roster.begin_run(gang.roster.past)


def begin_quorum(gang: Gang, needed: Minima) -> None:
    """Begin a quorum with these minima; no member belongs to it yet."""
    apply(gang, Step.QUORUM_BEGINS, quorum=needed)
    gang.roster.choose((), replace=True)
