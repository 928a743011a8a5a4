"""What is measured of gangs, for the metrics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.pod import PodPhase
from tests import preempting, reserving
from tests.builders import group, node, pod
from tests.harness import Harness
from tests.scenarios.test_rollback import half_bound

pytestmark = pytest.mark.without(
    "all", why="a new leader measures only what it has seen itself, and in another order other runs are seen"
)


def waits(harness: Harness) -> list[float]:
    """How long the gangs waited that have been bound since the last look."""
    return [round(waited_s) for _, waited_s in harness.machine.take_measured().waits]


def test_the_time_partial_of_an_attempt_that_is_retried_is_counted_from_its_beginning():
    """Two of three members are bound and stay, because nothing would make them again; the third is refused. Then it
    finds a node after all: only the time since then was counted."""
    harness = half_bound(owner=None)
    harness.wait(60)
    assert harness.machine.take_measured().partial_s == []
    harness.refuse_bind = lambda _: None
    harness.wait(60)
    assert len(harness.bound()) == 3
    [lasted_s] = harness.machine.take_measured().partial_s
    assert lasted_s >= 70


def test_how_long_plans_of_preemption_take_is_measured_and_not_how_long_places_were_reserved_for_later():
    harness = preempting.cluster(node("n1", cpu=1), preempting.alone("p", node="n1"))
    harness.wait(7, *preempting.gang("g", 1, priority_class="high"))
    preempting.end(harness)
    assert harness.bound("default/g") == ["default/g-0"]
    [lasted_s] = harness.machine.take_measured().plans_s
    assert 5 <= lasted_s <= 8
    harness = reserving.cluster(reserving.runs("p", 0, 300), nodes=1)
    reserving.starve(harness, *reserving.gang("g", 1))
    reserving.finish(harness, "default/p")
    harness.wait(5)
    assert harness.bound("default/g") == ["default/g-0"]
    assert harness.machine.take_measured().plans_s == []


SECONDS = st.integers(0, 400)


@given(runs=st.lists(st.tuples(SECONDS, SECONDS, SECONDS, st.sampled_from(PodPhase)), min_size=1, max_size=4))
def test_the_wait_of_each_run_is_from_its_last_member_to_its_first_schedule(
    runs: list[tuple[int, int, int, PodPhase]],
) -> None:
    """A run: seconds without its last member, without room, and bound, and the phase in which its members end."""
    harness = Harness.of(group("a", min_member=2, max_schedule_time_s=7200.0))
    for number, (incomplete_s, waiting_s, bound_s, end) in enumerate(runs):
        names = [f"a-{2 * number}", f"a-{2 * number + 1}"]
        harness.wait(incomplete_s, pod(names[0]))
        harness.wait(waiting_s, pod(names[1]))
        assert waits(harness) == []
        harness.wait(1, node(f"n{number}", cpu=2))
        [waited_s] = waits(harness)
        assert waiting_s <= waited_s <= waiting_s + 1
        harness.wait(bound_s)
        if end in {PodPhase.SUCCEEDED, PodPhase.FAILED}:
            harness.run_pods(end)
        else:
            harness.delete(*(f"default/{name}" for name in names))
        harness.wait(1)
        harness.delete_node(f"n{number}")
    assert waits(harness) == []
