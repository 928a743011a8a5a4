"""Competing groups: each is bound whole or not at all, in whatever order events arrive."""

from __future__ import annotations

import pytest

from gangsched.core.objects.results import BindRefused, Refused
from tests.builders import group, node, pod, pods
from tests.effort import seeded
from tests.harness import Harness


def race(seed: int) -> tuple[Harness, str, str]:
    """The race of the contract, run until it settles: the harness, the winner and the loser."""
    harness = Harness(seed=seed)
    harness.add(node("n1", cpu=4), node("n2", cpu=4))
    harness.settle(pod("kube-system/agent", cpu="900m", group="", node="n1", scheduler="default-scheduler"))
    for name in ("red", "blue"):
        harness.add(group(name, min_member=5), *pods(name, 5))
    harness.settle()
    winner, loser = sorted(("red", "blue"), key=lambda name: -len(harness.bound(f"default/{name}")))
    return harness, winner, loser


@seeded(50)
def test_of_two_groups_exactly_one_is_bound_whole_and_the_other_after_it_is_deleted(seed):
    harness, winner, loser = race(seed)
    assert len(harness.bound(f"default/{winner}")) == 5
    assert harness.bound(f"default/{loser}") == []
    harness.wait(3)
    assert harness.status(f"default/{winner}").phase == "Scheduled"
    assert harness.status(f"default/{loser}").phase == "Queued"
    assert harness.condition(f"default/{loser}").reason == "Unschedulable"
    assert f"Held by default/{winner} (cpu 5)" in harness.condition(f"default/{loser}").message
    harness.delete(*(f"default/{winner}-{number}" for number in range(5)))
    harness.delete_group(f"default/{winner}")
    harness.settle()
    assert len(harness.bound(f"default/{loser}")) == 5


@seeded(50)
def test_of_eight_groups_four_are_bound_whole_and_four_wait_whole(seed):
    harness = Harness(seed=seed)
    harness.settle(*(node(f"n{number}", cpu=4) for number in range(5)))
    names = [f"g{number}" for number in range(8)]
    for name in names:
        harness.add(group(name, min_member=5), *pods(name, 5))
    harness.settle()
    assert sorted(len(harness.bound(f"default/{name}-")) for name in names) == [0, 0, 0, 0, 5, 5, 5, 5]
    harness.wait(3)
    phases = [harness.status(f"default/{name}").phase for name in names]
    assert sorted(phases) == ["Queued"] * 4 + ["Scheduled"] * 4


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_lone_group_on_an_idle_cluster_is_bound_with_no_other_event():
    harness = Harness.of(node(cpu=8), group("a", min_member=3), *pods("a", 3))
    harness.step()
    assert harness.bound() == ["default/a-0", "default/a-1", "default/a-2"]


def test_a_gpu_group_is_bound_to_idle_gpu_nodes():
    harness = Harness.of(node("cpu-1", cpu=64), node("gpu-1", cpu=8, gpu=4), node("gpu-2", cpu=8, gpu=4))
    harness.settle(group("a", min_member=2), *pods("a", 2, gpu=4))
    assert {found.node for found in harness.pods.values()} == {"gpu-1", "gpu-2"}


def test_members_of_different_sizes_are_placed_where_what_can_fit_does_fit():
    harness = Harness.of(node("n1", cpu=5), node("n2", cpu=5), group("a", min_member=4))
    harness.settle(*(pod(f"a-{number}", cpu=cpu) for number, cpu in enumerate((2, 2, 3, 3))))
    assert len(harness.bound()) == 4


def test_a_fragmented_cluster_refuses_and_says_how_many_members_fit():
    harness = Harness()
    harness.wait(2, *(node(f"n{number}", cpu=3) for number in range(4)), group("a", min_member=6), *pods("a", 6, cpu=2))
    assert harness.bound() == []
    assert harness.condition("default/a").message.startswith("Only 4 of 6 members fit")


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader plans the group anew")
def test_a_member_that_a_rival_binds_elsewhere_takes_no_part_in_what_still_fits_on_its_new_node():
    """Regression: three members hold places; one was bound to the full node of the others, and all three stayed."""
    harness = Harness()
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "not now")
    harness.settle(node("n1", cpu=2), group("a", min_member=3), *pods("a", 3), node("n2", cpu=1))
    held = {uid: binding.node for uid, binding in harness.gang("default/a").operations.bindings.items()}
    [alone] = [uid for uid, where in held.items() if where == "n2"]
    harness.change(f"default/{harness.machine.cluster.pods[alone].name}", node="n1", bound_at=harness.now)
    harness.refuse_bind = lambda _: None
    harness.wait(5)
    assert sorted(pod.node for pod in harness.pods.values()) == ["n1", "n1", "n2"]
