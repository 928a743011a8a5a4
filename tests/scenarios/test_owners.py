"""The owner guard: a group name that two owners use is flagged, and free again later."""

from __future__ import annotations

import pytest

from gangsched.core.objects.pod import Owner, PodPhase
from tests.builders import group, node, pods
from tests.harness import Harness

BLUE = Owner(kind="StatefulSet", name="blue", uid="1", api_group="apps")
GREEN = Owner(kind="StatefulSet", name="green", uid="2", api_group="apps")


def cluster(**spec) -> Harness:
    return Harness.of(node(cpu="16"), group("a", **({"min_member": 2} | spec)))


def blue(count: int, **fields):
    return pods("a", count, owner=BLUE, **fields)


def green(count: int, **fields):
    return pods("a", count, first=10, owner=GREEN, created=1.0, **fields)


def names(harness: Harness) -> list[str]:
    return sorted(name.partition("/")[2] for name in harness.bound())


@pytest.mark.without("restarts", "leaderless", why="a new leader tells anew or not at all")
def test_by_default_two_owners_are_flagged_once_and_all_members_bound():
    harness = cluster(min_member=4)
    harness.wait(100, *blue(2), *green(2))
    harness.change("default/a-10", labels=(("late", "yes"),))
    harness.wait(100)
    assert len(harness.bound()) == 4
    [event] = harness.events("SeveralOwners")
    assert (event.kind, event.name, event.type) == ("PodGroup", "a", "Warning")
    assert "StatefulSet.apps blue (2), StatefulSet.apps green (2)" in event.note


def test_an_owner_made_again_under_its_name_takes_over_and_is_not_flagged():
    harness = cluster()
    harness.wait(5, *blue(2))
    harness.delete("default/a-0")
    again = Owner(kind="StatefulSet", name="blue", uid="3", api_group="apps")
    harness.wait(5, *pods("a", 1, owner=again))
    harness.delete("default/a-1")
    harness.wait(5, *pods("a", 1, first=1, owner=again))
    assert names(harness) == ["a-0", "a-1"]
    assert harness.events("SeveralOwners") == []


def test_the_name_is_free_for_another_owner_once_the_run_has_ended():
    harness = cluster()
    harness.wait(5, *blue(2))
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.wait(5)
    assert harness.status("default/a").phase == "Succeeded"
    harness.wait(5, *green(2))
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.events("SeveralOwners") == []
