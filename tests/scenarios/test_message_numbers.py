"""Counts and durations in messages: no count exceeds its total, and durations read the way people write them."""

from __future__ import annotations

import pytest

from tests.builders import group, node, pods
from tests.harness import Harness
from tests.told import miscounted


def test_more_members_than_the_minimum_are_bound_beside_it():
    harness = Harness.waited(40, group("a", min_member=2), *pods("a", 4), node())
    assert harness.condition("default/a").message == "4 members are bound or done; 2 needed."


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("4 of 1 member exists; it waits.", True),
        ("The run ended with 7 of 5 members succeeded.", True),
        ("3 of 3 members exist.", False),
        ("For 1 of 3 without a place, of 1 node: 1 with too little cpu.", False),
        ("cpu 2500m of 10", False),
        ("12 of 10Gi", False),
        ("of pod-12 of 3 groups", False),
    ],
)
def test_the_harness_finds_a_count_above_its_total_in_every_message(said, wrong):
    assert bool(miscounted([said])) is wrong
