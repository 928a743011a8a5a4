"""What a gang costs in bytecodes of Python, which no clock blurs."""

from __future__ import annotations

from functools import partial

from bench.bytecodes import Stream, by_room, counted


def test_preemption_and_reservations_cost_next_to_nothing_where_nobody_waits() -> None:
    """An eightieth with Python 3.11, a seventieth with 3.13, which executes fewer bytecodes elsewhere."""
    executed = by_room(counted(partial(Stream(3).run, 2)))
    assert executed["contention"] < executed.total() / 65
