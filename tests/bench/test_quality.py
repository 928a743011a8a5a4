"""The optimum is a placement that pods can really have, and gangsched comes near it on random gangs."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.quality.figures import TITLE
from bench.quality.instances import Instance, drawn
from bench.quality.outcomes import Outcome
from bench.quality.planners import DEFAULT, FIRST_FIT, PLANNERS
from gangsched.core.objects.pod import role_of
from tests import naive

_INSTANCES = 8


def world_of(instance: Instance) -> naive.World:
    world = naive.World({each.name: each for each in instance.nodes})
    for pod in instance.standing:
        world.put(pod, pod.node)
    return world


def put(outcome: Outcome) -> None:
    """Put all members on their nodes, in some order; fail if no order works."""
    world = world_of(outcome.instance)
    for gang in outcome.instance.gangs:
        names = {role: [*outcome.placed.get((gang.name, role), Counter()).elements()] for role in ("worker", "driver")}
        pods = {role: [pod for pod in gang.pods() if role_of(pod) == role] for role in names}
        chosen = [(pod, [name]) for role in names for pod, name in zip(pods[role], names[role], strict=False)]
        assert naive.one_by_one(world, chosen, len(chosen)), (outcome.instance.seed, gang)
        for pod, [name] in chosen:
            world.put(pod, name)


def kept(outcome: Outcome) -> None:
    """Check that every gang has its minimum and that of each role, or no member placed."""
    for gang in outcome.instance.gangs:
        if outcome.of(gang):
            assert outcome.of(gang) >= gang.need
            assert all(outcome.numbers.get((gang.name, kind.role), 0) >= kind.least for kind in gang.kinds)


@pytest.mark.parametrize("seed", [1, 5, 9])
@pytest.mark.slow
def test_the_optimum_and_every_planner_place_whole_gangs_where_pods_can_be_put_one_by_one(seed):
    from bench.quality.optimum import optimum

    instance = drawn(seed)
    for outcome in (optimum(instance), *(planner(instance) for planner in PLANNERS.values())):
        put(outcome)
        kept(outcome)


@pytest.mark.slow
def test_pack_admits_nearly_as_many_members_as_the_optimum_and_no_fewer_than_first_fit():
    from bench.quality import comparison

    lines = {line["scenario"]: line for line in comparison.compared(range(1, _INSTANCES + 1))}
    assert lines[TITLE + DEFAULT]["members"] >= lines[TITLE + FIRST_FIT]["members"]
    assert lines[TITLE + DEFAULT]["members"] >= 0.9
    assert lines[TITLE + comparison.OPTIMUM]["members"] == 1.0
