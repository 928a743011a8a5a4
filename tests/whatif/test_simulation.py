"""The simulation of the core's decisions, without files."""

from __future__ import annotations

from gangsched.core.objects.policy import Policy
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.contents import World
from tests.builders import group, node, pods


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
