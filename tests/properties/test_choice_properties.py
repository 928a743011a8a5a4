from __future__ import annotations

from itertools import combinations

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import member_order
from gangsched.core.objects.shape import Shape
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, Placement, place
from tests import naive
from tests.builders import pod
from tests.clusters import cluster_of
from tests.effort import examples
from tests.naive import World


@st.composite
def scarce(draw: st.DrawFn) -> tuple[World, Ask]:
    """At most three nodes and seven members of few sizes, roles and priorities, more of them than the quorum."""
    world = World()
    for at in range(draw(st.integers(1, 3))):
        given_ = {"cpu": draw(st.integers(1, 6)), "pods": 5, "x.io/device": draw(st.integers(0, 3))}
        world.nodes[f"n{at}"] = Node(name=f"n{at}", allocatable=tuple(each for each in given_.items() if each[1]))
    sizes = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=4))
    members = []
    for at in range(draw(st.integers(2, 7))):
        cpu, devices = draw(st.sampled_from(sizes))
        made = pod(f"m-{at}", created=float(draw(st.integers(0, 2))), priority=draw(st.integers(0, 2)))
        requests = (("cpu", cpu), *((("x.io/device", devices),) if devices else ()))
        role = draw(st.sampled_from(("", "", "w")))
        members.append(replace(made, shape=Shape(requests=requests), declaration=Declaration(group="a", role=role)))
    owed = draw(st.integers(0, sum(naive.role_of(each) == "w" for each in members)))
    ask = Ask(
        members=sorted(members, key=member_order), need=draw(st.integers(1, len(members))), role_needs={"w": owed}
    )
    return world, ask


def first_that_fits(world: World, ask: Ask) -> list[str]:
    """The first choice of members, in their order, that makes a quorum and fits; empty if there is none."""
    number = max(ask.need, ask.role_needs["w"])
    for chosen in combinations(ask.members, number):
        enough = sum(naive.role_of(each) == "w" for each in chosen) >= ask.role_needs["w"]
        if enough and naive.most_that_fit(world, chosen, number, {}) == number:
            return [each.name for each in chosen]
    return []


@given(scarce())
@settings(max_examples=examples(400))
def test_the_quorum_is_the_first_choice_of_members_that_fits(problem):
    """Rule 8: a member is passed over only if no quorum fits that has it beside those chosen before it."""
    world, ask = problem
    cluster = cluster_of(*world.nodes.values())
    found = place(Snapshot(cluster), ask)
    names = {pod.name for pod, _ in found.assignments} if isinstance(found, Placement) else set()
    expected = first_that_fits(world, ask)
    number = max(ask.need, ask.role_needs["w"])
    passed = bool(expected) and set(expected) != {each.name for each in ask.members[:number]}
    event("passes some over" if passed else "the first ones" if expected else "refused")
    assert names == set(expected)
