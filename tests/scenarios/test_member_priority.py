"""Members are tried bound, pod priority, created, name, wherever there is a choice among them (contract rule 8)."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import Role
from tests.builders import group, node, pod, shape
from tests.harness import Harness

pytestmark = pytest.mark.without("disorder", why="whoever comes first is bound first")


def test_the_quorum_is_made_of_the_members_with_the_highest_priority():
    """Two of three fit; the youngest has the highest priority."""
    harness = Harness.of(node(cpu="2"), group("a", min_member=2))
    harness.add(pod("a-0", created=1.0, priority=1), pod("a-1", created=2.0, priority=1))
    harness.wait(5, pod("a-2", created=3.0, priority=9))

    assert harness.bound() == ["default/a-0", "default/a-2"]


def test_a_member_of_high_priority_is_not_passed_over_for_a_larger_one_behind_it():
    """The second in order does not fit beside the first, but would fit beside the third."""
    harness = Harness.of(node(cpu="5"), group("a", min_member=2))
    harness.wait(5, pod("a-0", cpu="2", priority=9), pod("a-1", cpu="4", priority=5), pod("a-2", cpu="1"))

    assert harness.bound() == ["default/a-0", "default/a-2"]


def test_repairs_replace_by_priority():
    """A scheduled group of two loses one; there is room for one of the two replacements."""
    harness = Harness.waited(5, node(cpu="2"), group("a", min_member=2), pod("a-0"), pod("a-1"))
    harness.delete("default/a-1")
    harness.wait(5, pod("a-2", priority=1), pod("a-3", priority=2))

    assert harness.bound() == ["default/a-0", "default/a-3"]


def test_held_places_are_taken_by_priority():
    """Two places are held for workers while the driver runs; three workers come at once."""
    harness = Harness()
    roles = (Role("driver", 1), Role("worker", 2, template=shape()))
    harness.wait(5, node(cpu="3"), group("a", min_member=3, roles=roles), pod("driver", role="driver"))
    harness.wait(5, *[pod(f"w-{at}", role="worker", created=float(at), priority=at) for at in range(3)])

    assert harness.bound() == ["default/driver", "default/w-1", "default/w-2"]
