from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import fields

from gangsched.core.gang import states
from gangsched.core.gang.attempt import Attempt
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.states import TABLE, Facts, NoRest, Transition, settle
from gangsched.core.gang.steps import Step, apply
from gangsched.core.objects.record import NO_RECORD, Minima, Phase, Record
from tests.builders import key

NAMES = tuple(field.name for field in fields(Facts))
CORE = Path(states.__file__).parent.parent
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
    monkeypatch.setattr(states, "TABLE", circle)
    with pytest.raises(NoRest, match="from Pending with Facts"):
        settle(Phase.PENDING, facts("complete"))


# The actions of each transition

FULL = Record(
    phase=Phase.DEGRADED,
    run_start=1.0,
    scheduled_at=2.0,
    quorum=Minima(2),
    quorum_done=(("", 1),),
    satisfied=Minima(2),
    timeouts=3,
    level=4,
    retry_at=5.0,
    rollback_note="why",
    clock_start=6.0,
)


@pytest.mark.parametrize("step", Step)
def test_a_step_forgets_what_its_row_says_and_nothing_else(step):
    gang = Gang(key("a"), record=FULL)
    apply(gang, step)
    changed = {name for name in Record.__struct_fields__ if getattr(gang.record, name) != getattr(FULL, name)}
    assert changed == {name for name in step.value.forgets if getattr(FULL, name) != getattr(NO_RECORD, name)}


def test_a_step_sets_what_its_row_says():
    gang = Gang(key("a"), record=FULL)
    gang.attempt.refused(None)
    apply(gang, Step.SCHEDULED, scheduled_at=9.0, satisfied=Minima(3))
    assert (gang.record.scheduled_at, gang.record.satisfied, gang.record.timeouts) == (9.0, Minima(3), 3)
    assert (gang.record.quorum, gang.record.rollback_note, gang.record.clock_start) == (None, "", 0.0)


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (Step.SCHEDULED, Attempt(parked=True)),
        (Step.SPEC_CHANGES, Attempt(held_up_by=key("b"), vanguard=("a-0",))),
        (Step.INCOMPLETE, Attempt(parked=True, vanguard=("a-0",))),
        (Step.QUORUM_PLACED, Attempt(parked=True, server_said="no", vanguard=("a-0",))),
        (Step.BACK_OFF_ENDS, Attempt(held_up_by=key("b"), server_said="no", vanguard=("a-0",))),
        (Step.CLOCK_STARTS, Attempt(parked=True, held_up_by=key("b"), server_said="no", vanguard=("a-0",))),
    ],
)
def test_what_is_left_of_the_last_attempt_after_a_step(step, left):
    gang = Gang(key("a"), attempt=Attempt(parked=True, held_up_by=key("b"), server_said="no", vanguard=("a-0",)))
    apply(gang, step)
    assert gang.attempt == left


FIELDS = {*Record.__struct_fields__}


@pytest.mark.parametrize("step", [step for step in Step if FIELDS.difference(step.sets)])
def test_a_step_that_is_not_in_the_table_cannot_happen(step):
    for name in FIELDS.difference(step.sets):
        gang = Gang(key("a"), record=FULL)
        with pytest.raises(TypeError, match=f"{step.name} does not set {name}"):
            apply(gang, step, **{name: getattr(NO_RECORD, name)})
        assert gang.record is FULL


def test_every_step_of_the_table_is_taken_somewhere_and_sets_fields_of_the_record():
    code = "".join(path.read_text(encoding="utf-8") for path in CORE.rglob("*.py"))
    assert [step.name for step in Step if f"Step.{step.name}" not in code] == []
    assert {name for step in Step for name in step.sets} <= {*Record.__struct_fields__}
