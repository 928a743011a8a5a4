"""The contract's race on the real API server, with pods created by kube-controller-manager."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from demo.race import Race, RaceError
from testbed.control_plane import ControlPlane
from testbed.operator import Operator

ROUNDS = 4


@pytest.fixture
def race(with_crd: ControlPlane, namespace: str) -> Iterator[Race]:
    race = Race(with_crd, namespace)
    race.prepare()
    yield race
    race.tidy()


@pytest.mark.timeout(900)
def test_of_two_groups_one_runs_whole_the_other_waits_whole_and_runs_once_the_first_is_deleted(
    race: Race, operator: Operator
) -> None:
    winners = set()
    for seed in range(ROUNDS):
        entries = list(race.entries)
        Random(seed).shuffle(entries)
        try:
            race.start(entries)
            winner = race.until(lambda scene: scene.winner(), what="one whole and one waiting group").winner()
            [loser] = {entry["metadata"]["name"] for entry in entries} - {winner}
            race.delete(winner)
            race.until(lambda scene: scene.groups[loser].runs_whole, what=f"the run of {loser}")  # noqa: B023
            race.clear()
        except RaceError as error:
            order = ", ".join(f"{entry['kind']} {entry['metadata']['name']}" for entry in entries)
            pytest.fail(f"round {seed} (created: {order}): {error}\n{operator.child.log_tail(40)}")
        winners.add(winner)

    assert winners == {"blue", "green"}, "the order of creation made no difference"
