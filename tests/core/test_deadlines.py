from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.queueing.deadlines import Deadlines
from tests.builders import key

INFINITY = float("inf")


def due(deadlines, now):
    """All entries that are due, one after the other."""
    return list(iter(lambda: deadlines.take_due(now), None))


def deadlines(**at):
    made = Deadlines()
    for name, when in at.items():
        made.set(key(name), when)
    return made


def test_what_is_due_is_taken_once_and_in_order_of_time():
    made = deadlines(c=3.0, a=1.0, b=2.0)
    assert made.next() == 1.0
    assert due(made, 0.5) == []
    assert due(made, 2.0) == [key("a"), key("b")]
    assert due(made, 2.0) == []
    assert made.next() == 3.0


def test_deadlines_that_are_put_off_again_and_again_take_no_more_and_more_memory():
    made = deadlines(**{f"far-{at}": 2e9 - at for at in range(50)})
    for step in range(10_000):
        made.set(key("a"), 1e6 + step % 7)
        assert len(made._heap) < 200  # noqa: SLF001 - memory is what this is about
    assert due(made, 1e9) == [key("a")]
    assert due(made, 3e9) == [key(f"far-{at}") for at in reversed(range(50))]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("set", "drop", "due")), st.sampled_from("abc"), st.integers(0, 9) | st.just(INFINITY)
        ),
        min_size=1,
        max_size=200,
    )
)
def test_it_behaves_as_a_plain_table_of_times(steps):
    made, table = Deadlines(), {}
    for what, name, at in steps:
        if what == "set":
            made.set(key(name), float(at))
            table[key(name)] = float(at)
        elif what == "drop":
            made.drop(key(name))
            table.pop(key(name), None)
        elif at != INFINITY:
            ready = {each for each, when in table.items() if when <= at}
            assert set(due(made, float(at))) == ready
            table = {each: when for each, when in table.items() if each not in ready}
        assert made.next() == min((when for when in table.values() if when != INFINITY), default=INFINITY)
