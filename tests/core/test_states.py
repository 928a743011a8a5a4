from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import fields

from gangsched.core.gang import states
from gangsched.core.gang.states import TABLE, Facts, NoRest, Transition, settle
from gangsched.core.objects.record import Phase

NAMES = tuple(field.name for field in fields(Facts))
ALL = [Facts(**dict(zip(NAMES, values, strict=True))) for values in product((False, True), repeat=len(NAMES))]


def facts(*true):
    return Facts(**{name: name in true for name in NAMES})


def consistent(given):
    """Whether a group can be in this state.

    - a run ended well or badly, not both; one that has ended is not scheduled any more, and only one that was scheduled
      ends in either way, so that its clock had stopped and cannot have failed it for good;
    - only a scheduled run can be short or have a running quorum;
    - a scheduled run's bindings are repairs or extras, never the quorum's, and no clock runs against it;
    - bindings in flight are either all held or some are sent;
    - a group whose workload is suspended has no member left: it is neither complete nor scheduled;
    - a group that failed by its clock needs nothing any more: it has no reservation and no back-off.
    """
    ended = given.ended_well or given.ended_badly
    return not (
        (given.ended_well and given.ended_badly)
        or (ended and (given.was_scheduled or given.failed_for_good))
        or ((given.degraded or given.quorum_running) and not given.was_scheduled)
        or (given.was_scheduled and (given.held or given.binding or given.failed_for_good))
        or (given.held and given.binding)
        or (given.suspended and (given.complete or given.held or given.binding or given.was_scheduled))
        or (given.failed_for_good and (given.held or given.binding or given.backing_off))
    )


POSSIBLE = [given for given in ALL if consistent(given)]


def test_from_every_phase_all_facts_come_to_rest():
    """The only exception is a run that both succeeded and failed, which is impossible."""
    for given, phase in product(ALL, Phase):
        if given.ended_well and given.ended_badly:
            continue
        assert settle(phase, given) in Phase


def expected(given):
    """The phase that follows from the facts, without the table."""
    if given.ended_well or given.ended_badly:
        return Phase.SUCCEEDED if given.ended_well else Phase.FAILED
    if given.failed_for_good:
        return Phase.FAILED
    if given.suspended:
        return Phase.SUSPENDED
    if given.was_scheduled:
        placed = Phase.RUNNING if given.quorum_running else Phase.SCHEDULED
        return Phase.DEGRADED if given.degraded else placed
    waiting = Phase.QUEUED if given.complete else Phase.PENDING
    waiting = Phase.TIMED_OUT if given.backing_off else waiting
    waiting = Phase.RESERVED if given.held else waiting
    return Phase.BINDING if given.binding else waiting


@pytest.mark.parametrize("phase", Phase)
def test_the_facts_alone_decide_the_phase_wherever_the_group_comes_from(phase):
    """Therefore a lost event or a restart cannot leave the group in a wrong phase."""
    assert len(POSSIBLE) > len(Phase)
    for given in POSSIBLE:
        assert settle(phase, given) is expected(given), given


def test_every_row_of_the_table_is_the_first_that_holds_for_some_possible_facts():
    """A row that never decides would be dead, and the table's diagram would show a transition that never happens."""
    deciding = set()
    for given, phase in product(POSSIBLE, Phase):
        for at, step in enumerate(TABLE):
            if phase in step.starts and step.holds(given):
                deciding.add(at)
                break
    assert deciding == set(range(len(TABLE)))


def test_a_table_with_a_circle_is_told_and_not_walked_for_ever(monkeypatch):
    circle = (
        Transition((Phase.PENDING,), "complete", Phase.QUEUED),
        Transition((Phase.QUEUED,), "complete", Phase.PENDING),
    )
    monkeypatch.setattr(states, "_FROM", {phase: [row for row in circle if phase in row.starts] for phase in Phase})
    with pytest.raises(NoRest, match="from Pending with Facts"):
        settle(Phase.PENDING, facts("complete"))
