"""The life cycle of a group: all phases, and all transitions between them, in one table.

Events never set a group's phase directly. After each batch of events the machine derives the group's `Facts` (what is
true of its members, bindings, clock and run) and walks `TABLE` from the current phase: it takes the first row that
starts there and whose fact holds, and repeats until no row applies. So a lost or repeated event cannot leave a group in
a wrong phase, and after a restart the same facts lead to the same phase.

Two rules make the walk end at the right phase. Rows whose facts can hold at the same time must not form a cycle. Each
fact is computed from the cluster and the record (`core.objects.record`) alone, never from the phase. The record says
when the group was scheduled, how often it timed out, and whether it failed for good; the steps that change it are
those of another table (`core.gang.life`).

If you change a phase or a row, also change the list of phases in the contract, the enum in `api`, the generated diagram
in docs/ (run `make docs`) and the scenario tests.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from gangsched.core.objects.record import Phase


class Facts(Struct, frozen=True, kw_only=True):
    """What is true of a group now: the conditions on which the rows of `TABLE` depend."""

    complete: bool = False
    """There are enough live members for the minimum and for each role's minimum, and nothing keeps the group from being
    tried."""
    held: bool = False
    """Nodes are reserved and no binding is in flight; or members are bound, and a cap has released the reservations
    beside them."""
    binding: bool = False
    """A binding that the quorum needs is in flight."""
    quorum_running: bool = False
    """The minimum is running or has succeeded."""
    was_scheduled: bool = False
    """The quorum was bound in this run."""
    degraded: bool = False
    """For longer than the policy tolerates, the group has been below the minimum it was scheduled with, or a rollback
    has been under way."""
    backing_off: bool = False
    """The group timed out, and the back-off has not ended."""
    failed_for_good: bool = False
    """The group timed out under timeoutPolicy Fail."""
    ended_well: bool = False
    """The last run ended, and at least as many members as the minimum succeeded."""
    ended_badly: bool = False
    """The last run was scheduled and then ended in failure, not because its members were deleted."""
    suspended: bool = False
    """No member is left, and the workload that creates them is suspended or scaled to 0."""

    @property
    def failed(self) -> bool:
        """Whether the group has failed, by a time-out or by the end of its run."""
        return self.failed_for_good or self.ended_badly


class Transition(NamedTuple):
    """One row: leads from any of `starts` to `then` if `fact` holds (with `unless`, if it does not hold)."""

    starts: tuple[Phase, ...]
    fact: str
    then: Phase
    unless: bool = False

    def holds(self, facts: Facts) -> bool:
        """Whether the row applies to these facts."""
        return bool(getattr(facts, self.fact)) is not self.unless


_P = Phase
WAITING = (_P.PENDING, _P.QUEUED, _P.RESERVED, _P.BINDING, _P.TIMED_OUT)
"""Phases of a run whose quorum is not bound yet."""
PLACED = (_P.SCHEDULED, _P.RUNNING, _P.DEGRADED)
"""Phases of a run whose quorum has been bound."""

TABLE: tuple[Transition, ...] = (
    # The run ends when no live member is left.
    Transition((*WAITING, *PLACED, _P.FAILED, _P.SUSPENDED), "ended_well", _P.SUCCEEDED),
    Transition((*WAITING, *PLACED, _P.SUCCEEDED, _P.SUSPENDED), "ended_badly", _P.FAILED),
    # Under timeoutPolicy Fail, a run that times out has failed for good.
    Transition((*WAITING, _P.SUSPENDED), "failed_for_good", _P.FAILED),
    # No member is left because the workload is suspended or scaled to 0.
    Transition((*WAITING, *PLACED), "suspended", _P.SUSPENDED),
    # The quorum is bound, by gangsched or by another scheduler.
    Transition(WAITING, "was_scheduled", _P.SCHEDULED),
    # A scheduled group runs, falls below its minimum, and recovers. A quorum that cannot be completed is rolled back.
    Transition((*WAITING, _P.SCHEDULED, _P.RUNNING), "degraded", _P.DEGRADED),
    Transition((_P.DEGRADED,), "degraded", _P.SCHEDULED, unless=True),
    Transition((_P.SCHEDULED,), "quorum_running", _P.RUNNING),
    Transition((_P.RUNNING,), "quorum_running", _P.SCHEDULED, unless=True),
    # On the way to being scheduled.
    Transition((_P.PENDING, _P.QUEUED, _P.RESERVED, _P.TIMED_OUT), "binding", _P.BINDING),
    Transition((_P.PENDING, _P.QUEUED, _P.TIMED_OUT), "held", _P.RESERVED),
    Transition((_P.PENDING, _P.QUEUED), "backing_off", _P.TIMED_OUT),
    Transition((_P.PENDING,), "complete", _P.QUEUED),
    # And back again: members left, the back-off ended, reservations were released or bindings withdrawn.
    Transition((_P.QUEUED,), "complete", _P.PENDING, unless=True),
    Transition((_P.TIMED_OUT,), "backing_off", _P.QUEUED, unless=True),
    Transition((_P.BINDING,), "binding", _P.QUEUED, unless=True),
    Transition((_P.RESERVED,), "held", _P.QUEUED, unless=True),
    # A new run begins, a change of the spec lets a failed group try again, or the workload wants pods again.
    Transition((_P.SCHEDULED, _P.RUNNING), "was_scheduled", _P.QUEUED, unless=True),
    Transition((_P.SUCCEEDED,), "ended_well", _P.PENDING, unless=True),
    Transition((_P.FAILED,), "failed", _P.PENDING, unless=True),
    Transition((_P.SUSPENDED,), "suspended", _P.PENDING, unless=True),
)
"""The rows in order of precedence."""
_FROM = {phase: tuple(row for row in TABLE if phase in row.starts) for phase in Phase}


class NoRest(Exception):  # noqa: N818 - names the defect
    """The table contains a cycle for the given facts: two rows contradict each other (a defect of gangsched)."""


def settle(phase: Phase, facts: Facts) -> Phase:
    """The phase that the facts lead to from the current one.

    Raises:
        NoRest: the table contains a cycle for these facts.
    """
    for _ in range(2 * len(Phase)):
        for row in _FROM[phase]:
            if bool(getattr(facts, row.fact)) is not row.unless:
                phase = row.then
                break
        else:
            return phase
    raise NoRest(f"from {phase} with {facts}")
