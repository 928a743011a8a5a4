"""A recording of a machine is complete and replays with equal effects, and the replay finds a difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects.events import PodGone
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.policy import Policy
from tests.builders import group, node, pods
from tests.faults.recording import RecordedMachine, read, recorder, replay
from tests.harness import Harness

POLICY = Policy(seed=7, repair_deadline_s=10.0)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The recording of a machine that has bound, waited, lost nodes and pods, and timed out."""
    path = tmp_path / "machine.rec"
    harness = Harness(POLICY, seed=3)
    harness.machine = recorder(path)(POLICY)  # type: ignore[assignment]
    harness.add(*(node(f"n{number}", cpu="4") for number in range(6)))
    for name in ("a", "b", "c", "d", "e", "f"):
        harness.add(group(name), *pods(name, 6))
    harness.settle()
    harness.run_pods(PodPhase.RUNNING)
    harness.settle()
    for number in (0, 2, 4):
        harness.delete_node(f"n{number}")
    harness.delete("default/a-1", "default/b-1")
    harness.wait(100)
    return path


def test_a_machine_that_decides_otherwise_is_found(recorded: Path) -> None:
    def other(policy: Policy) -> Machine:
        return Machine(Policy(seed=policy.seed, default_max_schedule_time_s=5.0))

    assert "replayed it is" in replay(read(recorded), make=other)


def test_the_events_that_made_a_machine_fail_are_there(tmp_path: Path) -> None:
    class Failing(Machine):
        def handle(self, events, now):
            raise RuntimeError(f"a bug at {now} with {events}")

    path = tmp_path / "machine.rec"
    machine = RecordedMachine(Failing(POLICY), POLICY, path)
    with pytest.raises(RuntimeError, match="a bug at 5"):
        machine.handle([PodGone("u1")], 5.0)

    (turn,) = read(path).turns
    assert turn.events == (PodGone("u1"),)
    assert turn.effects is None
    with pytest.raises(RuntimeError, match="a bug at 5"):
        replay(read(path), make=Failing)
