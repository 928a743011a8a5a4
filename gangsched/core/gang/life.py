"""The life of a gang as one table: which facts lead to which step, in order of precedence.

`go_on` is called at each turn of a gang, and again once places were looked for. It goes through the rows from the top
and takes the step of each whose fact is true, and goes through them again if a step has changed what rows above it
read: so what a row relies on has been settled by those, and no order of events and no lost event can leave a gang in a
wrong state. Each step makes its fact false. The phase follows from the result (`gang.states`).

The facts and steps are those of the modules that the rows name; the numbers in those are the contract's rules. Whoever
adds a row says there what is true and what the step does about it. `Gang.story` tells the last steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gangsched.core.gang import bindings, caps, parts, placeholders, prebinding, preempted, rollback, runs, waiting
from gangsched.core.gang.turn import Changes, Turn

MOST_ROUNDS = 20
"""More rounds than this in one turn mean that two rows contradict each other."""


class Row(NamedTuple):
    """Leads from a `fact` to a `step`, in a gang whose quorum is not bound yet, was bound (`SCHEDULED`), or either.

    `changes` says what the step changes of all that rows above it read.
    """

    name: str
    fact: Callable[[Turn], bool]
    step: Callable[[Turn], None]
    stage: str = ""
    changes: Changes = Changes.MEMBERS


class Chapter(NamedTuple):
    """Rows about one thing; most gangs have nothing to do with it, which `concerns` finds out for all rows at once.

    It is None if every gang has.
    """

    about: str
    concerns: Callable[[Turn], bool] | None
    rows: tuple[Row, ...]


WAITING, SCHEDULED = "waiting", "scheduled"
NOTHING, PLANS = Changes.NOTHING, Changes.PLANS
TABLE = (
    Chapter(
        "Caps on reservations for members to come",
        caps.concern,
        (
            Row("the back-off of a cap is over", caps.is_back_off_over, caps.end_back_off, changes=NOTHING),
            Row("places were held too long", caps.are_held_too_long, caps.release),
            Row("a cap pauses the clock", caps.is_to_pause, caps.pause, changes=NOTHING),
        ),
    ),
    Chapter(
        "The first and the last member of a run",
        runs.border,
        (
            Row("the restarted members have left", rollback.is_restarted, rollback.end_restart),
            Row("the next run begins", runs.is_followed, runs.follow),
            Row("the first member lives", runs.is_to_begin, runs.begin, changes=NOTHING),
            Row("members have ended", runs.have_ended, runs.note_all_ended),
            Row("others came after the last had gone", runs.is_emptied, runs.end_emptied),
            Row("all members are made again", runs.is_made_again, runs.end),
        ),
    ),
    Chapter(
        "What is bound",
        runs.goes_on,
        (
            Row("the quorum is bound", runs.is_quorum_bound, runs.schedule, WAITING, changes=PLANS),
            Row("other parts are enough", runs.are_others_enough, runs.schedule_by_others, WAITING),
            Row("nothing of the quorum is left", runs.is_quorum_gone, runs.drop_quorum, WAITING),
            Row("other minima are satisfied", runs.satisfies_others, runs.note_satisfied, SCHEDULED),
        ),
    ),
    Chapter(
        "The end of a run",
        runs.has_no_member,
        (
            Row("no live member is left", runs.is_deserted, runs.end),
            Row("the workload shows another end", runs.is_reviewed, runs.review_end, changes=PLANS),
        ),
    ),
    Chapter(
        "Reservations for members to come",
        placeholders.concern,
        (
            Row("no place is held", placeholders.are_none_held, placeholders.note_none_held, changes=NOTHING),
            Row("places are held", placeholders.are_held, placeholders.note_held, changes=NOTHING),
            Row("places expire", waiting.is_clock_of_places_to_start, waiting.start, changes=PLANS),
            Row("places have expired", placeholders.have_expired, placeholders.give_up_expired),
        ),
    ),
    Chapter(
        "What is bound together above the minimum",
        parts.concern,
        (
            Row("parts end with the gang", parts.are_to_end, parts.end_all),
            Row("a part goes on", parts.are_unsettled, parts.settle),
        ),
    ),
    Chapter(
        "What leaves for another group",
        preempted.concern,
        (
            Row("all of it is to leave", preempted.is_to_leave, preempted.leave, changes=PLANS),
            Row("nobody of it can be evicted", preempted.is_refused, preempted.stay, changes=PLANS),
            Row("all of it has left", preempted.is_over, preempted.end, changes=PLANS),
            Row("single members have left", preempted.have_parted, preempted.end_parting, changes=NOTHING),
        ),
    ),
    Chapter(
        "Below the minimum, or bound in part",
        rollback.concerns,
        (
            Row("the minimum is lost", runs.is_short, runs.note_shortness, SCHEDULED, changes=PLANS),
            Row("the minimum is whole again", runs.is_whole_again, runs.forget_shortness, changes=PLANS),
            Row("the restart is called off", rollback.is_restart_off, rollback.call_off, changes=PLANS),
            Row("inherited members have left", rollback.have_inherited_left, rollback.keep_inherited, changes=NOTHING),
            Row("the quorum is bound in part", rollback.is_partial_now, rollback.note_partial, WAITING, changes=PLANS),
            Row("it is bound in part no longer", rollback.is_partial_no_longer, rollback.end_partial, changes=PLANS),
            Row("it was in part for too long", rollback.is_quorum_overdue, rollback.begin, WAITING, changes=PLANS),
            Row("the restart is due", rollback.is_restart_due, rollback.begin_restart, SCHEDULED, changes=PLANS),
            Row("members are evicted", rollback.holds_beside, rollback.release_held),
        ),
    ),
    Chapter(
        "Before bindings are sent",
        prebinding.concern,
        (
            Row("those above the minimum are needed", prebinding.needs_others, prebinding.take_others, WAITING),
            Row("pre-bindings are awaited", prebinding.is_awaited, prebinding.begin, WAITING, changes=NOTHING),
            Row("pre-bindings hold", prebinding.is_over, prebinding.end, changes=NOTHING),
        ),
    ),
    Chapter(
        "What keeps the gang waiting",
        None,
        (
            Row("no other node is left", waiting.is_nowhere_left, waiting.back_off, changes=PLANS),
            Row("a member may be tried again", bindings.is_bar_over, bindings.lift_bars, changes=PLANS),
            Row("the reservations are of no use", waiting.is_hopeless, waiting.give_up, WAITING),
            Row("it asks for something else", waiting.asks_anew, waiting.ask_anew, changes=NOTHING),
            Row("members are missing", waiting.is_incomplete, waiting.wait_for_members, WAITING, changes=PLANS),
        ),
    ),
    Chapter(
        "How long a complete gang waits",
        waiting.is_complete,
        (
            Row("it is complete", waiting.is_newly_complete, waiting.note_complete, WAITING, changes=NOTHING),
            Row("the back-off is over", waiting.is_back_off_over, waiting.end_back_off, WAITING, changes=PLANS),
        ),
    ),
    Chapter(
        "Its clock",
        waiting.is_timed,
        (
            Row("no time counts", waiting.is_held_up, waiting.stop, WAITING, changes=NOTHING),
            Row("the clock starts", waiting.is_to_start, waiting.start, WAITING, changes=NOTHING),
            Row("the time is up", waiting.has_run_out, waiting.time_out, WAITING),
        ),
    ),
    Chapter(
        "What is left of a gang that has failed",
        waiting.has_failed,
        (Row("it holds though it has failed", waiting.holds_though_failed, rollback.release_held, WAITING),),
    ),
    Chapter("The end of a cap", caps.concern, (Row("the cap is lifted", caps.is_lifted, caps.lift, changes=NOTHING),)),
)
"""The rows in order of precedence."""


class NoRest(Exception):  # noqa: N818 - names the defect
    """The steps of a gang come to no end: two rows contradict each other (a defect of gangsched)."""


def go_on(turn: Turn) -> None:
    """Take all steps that are due.

    Raises:
        NoRest: there is no end of them.
    """
    for _ in range(MOST_ROUNDS):
        if not _changed(turn, _STAGES[bool(turn.gang.record.scheduled_at)]):
            return
    raise NoRest(f"{turn.gang.key}: {', '.join(told for _, told in turn.gang.story)}")


_STAGES = tuple(
    tuple((chapter.concerns, tuple(row for row in chapter.rows if row.stage in ("", stage))) for chapter in TABLE)
    for stage in (WAITING, SCHEDULED)
)


def _changed(turn: Turn, chapters: Sequence[tuple[Callable[[Turn], bool] | None, Sequence[Row]]]) -> bool:
    """Take all steps that are due in one round through the table. Returns whether another round is needed."""
    gang, again = turn.gang, False
    scheduled = bool(gang.record.scheduled_at)
    for concerns, rows in chapters:
        if concerns is not None and not concerns(turn):
            continue
        for row in rows:
            if not row.fact(turn):
                continue
            row.step(turn)
            gang.tell(turn.now, row.name)
            if row.changes:
                turn.went_on(row.changes)
                again = True
                if bool(gang.record.scheduled_at) is not scheduled:
                    return True
    return again
