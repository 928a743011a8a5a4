from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.queueing.agenda import Agenda, Due
from tests.builders import key

INFINITY = float("inf")


def due(made, now, what=Due.STATUS):
    """All keys for which this is due, one after the other."""
    return list(iter(lambda: made.take_due(what, now), None))


def agenda(**at):
    made = Agenda()
    for name, when in at.items():
        made.set(Due.STATUS, key(name), when)
    return made


def test_what_is_due_is_taken_once_and_in_order_of_time():
    made = agenda(c=3.0, a=1.0, b=2.0)
    assert made.next() == 1.0
    assert due(made, 0.5) == []
    assert due(made, 2.0) == [key("a"), key("b")]
    assert due(made, 2.0) == []
    assert made.next() == 3.0


def test_times_that_are_put_off_again_and_again_take_no_more_and_more_memory():
    made = agenda(**{f"far-{at}": 2e9 - at for at in range(50)})
    for step in range(10_000):
        made.set(Due.STATUS, key("a"), 1e6 + step % 7)
        assert len(made._heaps[Due.STATUS]) < 200  # noqa: SLF001 - memory is what this is about
    assert due(made, 1e9) == [key("a")]
    assert due(made, 3e9) == [key(f"far-{at}") for at in reversed(range(50))]


def test_what_is_due_and_not_taken_stays_due_until_it_is_put_off():
    made = agenda(a=1.0, b=2.0)
    assert due(made, 2.0, Due.RECONCILE) == []
    assert made.next() == 1.0
    made.set(Due.STATUS, key("a"), 5.0)
    made.drop(Due.STATUS, key("b"))
    assert (due(made, 2.0), made.next()) == ([], 5.0)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("set", "drop", "due")),
        st.sampled_from((Due.STATUS, Due.RECONCILE)),
        st.sampled_from("abc"),
        st.integers(0, 9) | st.just(INFINITY),
    ),
    min_size=1,
    max_size=200,
)


@given(_STEPS)
def test_it_behaves_as_a_plain_table_of_times(steps):
    made, table, passed = Agenda(), {}, -1.0
    for do, what, name, at in steps:
        entry = (what, key(name))
        if do == "set":
            made.set(*entry, float(at))
            table[entry] = float(at)
        elif do == "drop":
            made.drop(*entry)
            table.pop(entry, None)
        elif at != INFINITY:
            passed = max(passed, float(at))
            ready = {each for each, when in table.items() if each[0] is what and when <= passed}
            assert {(what, found) for found in due(made, passed, what)} == ready
            table = {each: when for each, when in table.items() if each not in ready}
        left = min((when for when in table.values() if when != INFINITY), default=INFINITY)
        assert made.next() == left
