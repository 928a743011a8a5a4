"""No gang starves: it starts by the time that was reserved first, whatever arrives (docs/backfill.md)."""

from __future__ import annotations

from collections.abc import Collection
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.contention.overdue import needed
from gangsched.core.planning import budget
from tests.effort import seeded
from tests.streams import LASTS_S, PROMISES, longest_left_s, played, stream

PASS_S = 1.0
"""How long a pass may take until the group is bound; in a replay nothing takes time."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["exact", "long", PROMISES])
@seeded(8)
def test_a_large_gang_starts_by_the_time_that_was_reserved_first(seed, kind):
    large, _ = played(stream(seed, kind))
    assert large.bound_s is not None
    assert large.reserved_s is not None
    assert large.bound_s <= large.reserved_s + PASS_S


@pytest.mark.slow
@seeded(8)
def test_it_starves_without_a_reservation(seed):
    large, _ = played(stream(seed, "exact"), age_s=0.0)
    assert large.bound_s is None or large.bound_s > LASTS_S


@pytest.mark.slow
@seeded(8)
def test_without_any_known_run_time_it_starts_once_what_was_on_its_nodes_has_ended(seed):
    large, gangs = played(stream(seed, "none"))
    assert large.bound_s is not None
    assert large.reserved_s is None
    at_s = large.gang.arrival_s
    assert large.bound_s <= longest_left_s([each for each in gangs if each is not large], at_s + 60.0) + PASS_S


@pytest.mark.slow
@seeded(4)
def test_promises_count_for_nothing_where_only_limits_do(seed):
    large, _ = played(stream(seed, PROMISES, lasts_s=900.0), by_promises=False)
    assert large.reserved_s is None


@pytest.mark.slow
@seeded(4)
def test_what_is_decided_does_not_depend_on_where_calls_end(seed):
    trace, found = stream(seed, "long", lasts_s=900.0), []
    for call in (budget.CALL, 60_000, 20_000):
        with mock.patch.object(budget, "CALL", call):
            large, gangs = played(trace)
            found.append((large.reserved_s, [(each.bound_s, each.nodes) for each in gangs]))
    assert found[0] == found[1] == found[2]


@given(st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=3), st.integers(8, 12))
def test_of_those_who_overstay_nobody_leaves_who_could_stay(ways, number):
    """Any of the `ways`, each of which needs some of the units, suffices."""
    units = [frozenset((str(at),)) for at in range(number)]

    def suffices(uids: Collection[str]) -> bool:
        return any({str(at) for at in way} <= {*uids} for way in ways)

    found = needed(units, frozenset(), suffices)
    assert suffices(frozenset().union(*found))
    assert not any(suffices(frozenset().union(*(other for other in found if other != each))) for each in found)


def test_few_who_are_needed_of_many_are_found_with_few_questions():
    asked = []

    def suffices(uids: Collection[str]) -> bool:
        asked.append(uids)
        return "700" in uids

    assert needed([frozenset((str(at),)) for at in range(1000)], frozenset(), suffices) == (frozenset(("700",)),)
    assert len(asked) < 25
