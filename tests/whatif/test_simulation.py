"""The simulation of the core's decisions, without files."""

from __future__ import annotations

from collections import Counter

import pytest

from gangsched.core.objects.policy import Policy
from gangsched.core.status import explanation
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.contents import World
from tests.builders import group, node, pod, pods


def test_a_large_group_is_told_as_what_it_has_become_at_that_moment():
    """The core updates a large group less often, which must not show in simulated time."""
    world = World(
        nodes=[node("n1", cpu=300, pods=300)],
        groups=[group("a", min_member=300)],
        pods=pods("a", 300),
        start=1000.0,
    )
    told = [(each.at, each.finding.phase, len(each.placed)) for each in simulate(world, Policy()).decisions]
    assert told == [(0.0, "Scheduled", 300)]


def waiting_gangs(number: int) -> World:
    """So many gangs of two on a node with room for one of them."""
    names = [f"g{at}" for at in range(number)]
    return World(
        nodes=[node("n1", cpu=2)],
        groups=[group(name, min_member=2, created=float(at)) for at, name in enumerate(names)],
        pods=[pod for name in names for pod in pods(name, 2)],
        start=1000.0,
    )


@pytest.mark.parametrize("number", [10, 60])
def test_each_gang_is_explained_a_few_times_however_many_gangs_wait(number, monkeypatch):
    """Many gangs, whose time-outs are spread, wait for one node. The message of every gang was made after every step,
    so that 700 gangs took half a minute."""
    made: Counter[str] = Counter()
    refused = explanation.quorum_refused

    def counting(gang, *others):
        made[gang.key.name] += 1
        return refused(gang, *others)

    monkeypatch.setattr(explanation, "quorum_refused", counting)
    decisions = simulate(waiting_gangs(number), Policy()).decisions
    assert len(decisions) == 2 * number - 1
    assert max(made.values()) <= 12


@pytest.mark.parametrize(("late_s", "stuck"), [(-60.0, False), (60.0, False), (600.0, True)])
def test_of_terminating_pods_only_those_overdue_when_the_question_is_asked_are_told_as_stuck(late_s, stuck):
    """The files may have no times at all, so that the simulated clock starts in another year."""
    world = World(
        nodes=[node("n1", cpu=2)],
        groups=[group("a", min_member=2)],
        pods=[pod("old", cpu=2, group="", node="n1", terminating=True, gone_by=9e8 - late_s), *pods("a", 2)],
        start=1000.0,
    )
    messages = [each.finding.message for each in simulate(world, Policy(), today=9e8).decisions]
    assert ["default/old is stuck" in said for said in messages] == [stuck] * len(messages)
