"""Whole-gang preemption in random worlds: nobody leaves in vain, nobody who could stay, and no gang in part."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from gangsched.core.planning import budget as units
from tests.effort import examples
from tests.plan_worlds import play, worlds

# `make nightly` tries 10,000 worlds.
pytestmark = pytest.mark.timeout(7200)


@given(worlds())
@settings(max_examples=examples(500), print_blob=True)
def test_who_leaves_is_needed_and_nobody_leaves_in_vain_or_in_part(world):
    harness = play(world)
    for what in harness.judge.found:
        event(what)
    for ending in harness.machine.stats().ended:
        event(ending)


@given(worlds())
@settings(max_examples=examples(60), print_blob=True)
def test_the_size_of_slices_changes_no_decision(world):
    logs = []
    for share in (1, 2, 4):
        with mock.patch.object(units, "CALL", units.CALL // share):
            logs.append(play(world, settled=True).log)
    assert logs[0] == logs[1] == logs[2]


@given(worlds(), st.sampled_from((20_000, 60_000)))
@settings(max_examples=examples(100), print_blob=True)
def test_nobody_leaves_in_vain_or_in_part_where_searches_take_many_calls(world, call):
    """What may leave is collected in several calls, and kept for some seconds while the cluster changes."""
    with mock.patch.object(units, "CALL", call):
        play(world, exact=False)


@given(worlds(classes=False))
@settings(max_examples=examples(60), print_blob=True)
def test_where_all_priorities_are_equal_preemption_changes_nothing(world):
    # Places are reserved for later only when the search for victims has found none, and thus with another delay.
    on, off = play(world, reserves=False), play(world, enabled=False, reserves=False)
    assert on.effects == off.effects
    assert not on.machine.stats().ended
