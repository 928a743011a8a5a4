"""The race's evaluation of hand-made scenes, the demo's display of them, and its steps before a cluster exists."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from demo import show as demo
from demo.race import Group, Member, RaceError, Scene
from demo.show import Stage, build_while_simulating, table
from testbed.cache import SetupError

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


def test_a_person_sees_groups_members_nodes_and_why_one_waits():
    first, blue, green, *rest = table(scene(RUNS, WAITS))
    assert first.split() == ["GROUP", "PHASE", "MEMBERS", "BOUND", "RUNNING", "NODES"]
    assert blue.split() == ["blue", "Running", "5", "of", "5", "5", "5", "node-1", "(5)"]
    assert green.split() == ["green", "Queued", "5", "of", "5", "0", "0", "-"]
    assert rest == [f"green: {MESSAGE}", "node-1: blue-0", "node-2: -"]


@pytest.mark.slow
class TestWhileBuilding:
    @pytest.fixture
    def build(self, monkeypatch):
        """Run this Python code in place of the build."""
        return lambda code: monkeypatch.setattr(demo, "BUILD", (sys.executable, "-u", "-c", code))

    def test_the_race_is_played_in_memory_and_the_progress_is_told(self, build, capfd):
        build("print('[1/5] building etcd')")
        build_while_simulating(Stage())
        out = capfd.readouterr().out
        assert "] [1/5] building etcd" in out
        assert "meanwhile the race without a cluster: gangsched simulate examples/race/blue.yaml" in out
        assert "Completely bound: 1 of 2 groups" in out

    def test_a_build_that_fails_ends_the_demo_after_what_it_said(self, build, capfd):
        build("import sys; sys.exit('error: no Go here')")
        with pytest.raises(SetupError):
            build_while_simulating(Stage())
        assert "] error: no Go here" in capfd.readouterr().out

    def test_a_demo_broken_off_ends_the_build(self, build, monkeypatch, tmp_path):
        pid = tmp_path / "pid"
        build(f"import os, pathlib, time; pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(60)")

        def interrupt(*_: str) -> str:
            deadline = time.monotonic() + 10
            while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
                os.sched_yield()
            raise KeyboardInterrupt

        monkeypatch.setattr(demo, "_gangsched", interrupt)
        with pytest.raises(KeyboardInterrupt):
            build_while_simulating(Stage())
        assert not Path(f"/proc/{pid.read_text()}").exists()
