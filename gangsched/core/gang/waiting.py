"""How long a gang waits that is not scheduled: rows of its life about its clock, time-out and back-off.

The time counts only while the gang is being tried and, if members do not exist yet, placeholders are reserved for them
(contract rules 4 and 5).
"""

from __future__ import annotations

from gangsched.core.gang import bindings, clock, prebinding
from gangsched.core.gang.turn import Turn, clock_runs
from gangsched.core.gang.wants import is_above
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.record import Outcome


def has_failed(turn: Turn) -> bool:
    """Whether the gang has failed for good: it is not scheduled in this run any more, and no clock of it runs."""
    return turn.gang.record.outcome is Outcome.OUT_OF_TIME


def is_incomplete(turn: Turn) -> bool:
    """Whether members are missing, and that is not noted yet."""
    gang = turn.gang
    if turn.progress.complete or has_failed(turn):
        return False
    record, wait = gang.record, gang.wait
    stage = record.prebinding_at or record.prebinding_clock
    noted = (record.clock_start, record.retry_at) == _left(turn) and not stage
    told = wait.refusal is not None or wait.behind is not None or gang.operations.attempt.server_said
    return not noted or bool(gang.operations.complete_since or told)


def wait_for_members(turn: Turn) -> None:
    """The clock goes on if the group has placeholders, which expire; the back-off after a rollback always goes on."""
    clock_start, retry_at = _left(turn)
    turn.gang.change(clock_start=clock_start, retry_at=retry_at, prebinding_at=0.0, prebinding_clock=0.0)
    turn.gang.wait.forget_refusal()
    turn.gang.operations.attempt.hear("")
    turn.gang.operations.note_complete(0.0)


def _left(turn: Turn) -> tuple[float, float]:
    """The start of the clock and the end of the back-off of a gang that is not complete."""
    record = turn.gang.record
    since = record.clock_start if turn.census.held else 0.0
    return since, record.retry_at if record.rollback_note and turn.now < record.retry_at else 0.0


def is_complete(turn: Turn) -> bool:
    """Whether the gang is complete, and may still be scheduled in this run."""
    return turn.progress.waits


def is_newly_complete(turn: Turn) -> bool:
    """Whether the gang has become complete."""
    return not turn.gang.operations.complete_since


def note_complete(turn: Turn) -> None:
    """Note since when the gang has been complete."""
    turn.gang.operations.note_complete(turn.now)


def is_back_off_over(turn: Turn) -> bool:
    """Whether the back-off of a complete gang is over."""
    retry_at = turn.gang.record.retry_at
    return bool(retry_at) and retry_at <= turn.now


def end_back_off(turn: Turn) -> None:
    """Try the gang again."""
    turn.gang.change(retry_at=0.0)
    turn.gang.wait.try_again()


def is_timed(turn: Turn) -> bool:
    """Whether a clock may run: the gang is complete, and neither backs off nor has bound members."""
    record = turn.gang.record
    if record.retry_at or turn.census.bound or not turn.progress.waits:
        return False
    return bool(record.prebinding_at) or not turn.gang.plain


def is_held_up(turn: Turn) -> bool:
    """Whether time does not count at present, but the clock runs."""
    record = turn.gang.record
    return bool(record.clock_start) and not record.prebinding_at and not clock_runs(turn)


def stop(turn: Turn) -> None:
    """Stop the clock: the group may not be tried, or members are to come for whom no place is held."""
    turn.gang.change(clock_start=0.0)


def is_to_start(turn: Turn) -> bool:
    """Whether the clock does not run, but time counts."""
    record = turn.gang.record
    return not (record.clock_start or record.prebinding_at) and clock_runs(turn)


def start(turn: Turn) -> None:
    """Start the clock."""
    clock.start(turn.gang, turn.now)


def is_clock_of_places_to_start(turn: Turn) -> bool:
    """Whether places are held and no clock runs, by which they expire.

    If a controller creates members only once others are ready, none does.
    """
    record = turn.gang.record
    if record.clock_start or turn.terms.sequential or not turn.census.held:
        return False
    if record.prebinding_at and not turn.census.bound:
        return False
    return bool(record.scheduled_at) or not is_timed(turn) or clock_runs(turn)


def has_run_out(turn: Turn) -> bool:
    """Whether the clock has run out."""
    return turn.now >= clock.runs_out(turn.gang, turn.census, turn.terms, turn.policy)


def time_out(turn: Turn) -> None:
    """End the attempt and give up all reservations: the group backs off or, under timeoutPolicy Fail, has failed."""
    gang = turn.gang
    overdue = prebinding.overdue(gang, turn.policy) if gang.record.prebinding_at else ""
    turn.note_timed_out()
    if turn.terms.spec.timeout_policy is TimeoutPolicy.FAIL:
        clock.fail(gang, gang.record.timeouts + 1)
    else:
        clock.back_off(gang, now=turn.now, policy=turn.policy)
    if overdue:
        # Undoing pre-bindings changes what the members ask for, which must not end the back-off early.
        gang.change(rollback_note=overdue)
        gang.wait.park()
    if gang.operations.bindings:
        bindings.give_up(gang, turn.cluster)
        gang.wait.park()


def holds_though_failed(turn: Turn) -> bool:
    """Whether it has reservations whose bindings are not in flight."""
    return any(binding.state is BindState.HELD for binding in turn.gang.operations.bindings.values())


def is_nowhere_left(turn: Turn) -> bool:
    """Whether all bindings were refused, and every node that is left has refused one."""
    return turn.gang.operations.attempt.exhausted


def back_off(turn: Turn) -> None:
    """Back off, because no other node is left."""
    turn.gang.operations.attempt.begin_count()
    clock.back_off(turn.gang, now=turn.now, policy=turn.policy)


def is_hopeless(turn: Turn) -> bool:
    """Whether the reservations are of no use: nothing is bound or in flight, and they are not what is wanted.

    They form no quorum, so that binding them would bind only a part of the gang, or none may be bound, or more is asked
    for than when they were made. After their release the gang is planned as a whole.
    """
    gang, under_way = turn.gang, turn.gang.operations.bindings.values()
    if not under_way or turn.census.bound:
        return False
    held = [binding.pod for binding in under_way if binding.state is BindState.HELD]
    if len(held) < len(under_way):
        return False
    complete, quorum = turn.progress.complete, gang.record.quorum
    # What was sent may be bound though no answer came, and ends under its own minimum (rule 9).
    begun = any(binding.tries for binding in under_way)
    if quorum is not None and not begun and turn.terms.minimum_known and is_above(turn.terms.spec, quorum):
        return True
    if gang.record.prebinding_at and complete and gang.wait.refusal is None:
        # A member whose pre-bindings failed may find another node beside the others.
        return False
    return not complete or not turn.need.met_by(held)


def give_up(turn: Turn) -> None:
    """Release them."""
    bindings.give_up(turn.gang, turn.cluster)


def asks_anew(turn: Turn) -> bool:
    """Whether the gang's spec, priority, members or bound members have changed (rule 5), or a pause has ended."""
    wait = turn.gang.wait
    return turn.now >= wait.pause.until or turn.asks != wait.asked


def ask_anew(turn: Turn) -> None:
    """Try it again."""
    turn.gang.wait.ask(turn.asks)
