"""The race's evaluation of hand-made scenes, the demo's display of them, and its steps before a cluster exists."""

from __future__ import annotations

import pytest

from demo.race import Group, Member, RaceError, Scene

MESSAGE = "Only 2 of 5 members fit: cpu 2.9 more is needed. Held by default/blue (cpu 5)."


def group(name, *, bound=0, running=0, members=5, phase="Queued", message=""):
    pods = tuple(
        Member(name=f"{name}-{number}", node="node-1" if number < bound else "", running=number < running)
        for number in range(members)
    )
    return Group(name=name, minimum=5, phase=phase, reason="", message=message, members=pods)


def scene(*groups):
    return Scene(groups={each.name: each for each in groups}, nodes={"node-1": ("blue-0",), "node-2": ()})


RUNS = group("blue", bound=5, running=5, phase="Running")
WAITS = group("green", message=MESSAGE)


def test_one_running_whole_and_one_waiting_whole_that_knows_why_is_a_race_won():
    assert scene(RUNS, WAITS).winner() == "blue"


@pytest.mark.parametrize(
    "groups",
    [
        (RUNS,),
        (group("blue", bound=5, running=4, phase="Running"), WAITS),
        (group("blue", bound=5, running=5, phase="Scheduled"), WAITS),
        (group("blue", bound=4, running=4, members=4, phase="Running"), WAITS),
        (RUNS, group("green", members=4, message=MESSAGE)),
        (RUNS, group("green", bound=1, message=MESSAGE)),
        (RUNS, group("green", message="Held by default/blue.")),
        (RUNS, group("green", message="cpu 2.9 more is needed.")),
        (group("blue", message="cpu, green"), WAITS),
    ],
)
def test_anything_less_is_none(groups):
    assert scene(*groups).winner() == ""


@pytest.mark.parametrize("bound", [1, 4])
def test_room_divided_among_two_groups_is_a_promise_broken(bound):
    with pytest.raises(RaceError, match=rf"members of two groups were bound at the same time: {bound} of blue and 1"):
        scene(group("blue", bound=bound), group("green", bound=1)).check()
