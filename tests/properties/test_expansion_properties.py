"""New nodes that match a refusal's demand exactly make the group fit, and the demand is no larger than needed."""

from __future__ import annotations

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.declaration import Declaration, Topology
from gangsched.core.objects.node import Node
from gangsched.core.objects.shape import Shape
from gangsched.core.objects.status import Demand
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.expansion import HOSTNAME
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.strategies import STRATEGIES
from tests import naive
from tests.builders import pod
from tests.effort import examples

ZONES = ("a", "b", "c")
RED = (("colour", "red"),)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Few shapes that compete for two resources; some accept red nodes only."""
    requests = {"cpu": draw(st.integers(0, 4)), "x.io/device": draw(st.integers(0, 3))}
    return Shape(
        requests=tuple((name, amount) for name, amount in requests.items() if amount),
        node_selector=draw(st.sampled_from(((), (), RED))),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    given_ = {"cpu": draw(st.integers(0, 8)), "pods": draw(st.integers(1, 5)), "x.io/device": draw(st.integers(0, 6))}
    labels = {HOSTNAME: name, "colour": draw(st.sampled_from(("red", "blue"))), "zone": draw(st.sampled_from(ZONES))}
    kept = draw(st.sets(st.sampled_from(["colour", "zone"])))
    return Node(
        name=name,
        allocatable=tuple((key, amount) for key, amount in given_.items() if amount),
        labels=tuple((key, value) for key, value in sorted(labels.items()) if key == HOSTNAME or key in kept),
    )


@st.composite
def problems(draw: st.DrawFn) -> tuple[Cluster, Ask]:
    """At most four nodes, pods on them, members with roles, and sometimes a topology domain that they must share."""
    number = draw(st.integers(0, 4))
    cluster = Cluster()
    for at in range(number):
        cluster.set_node(draw(nodes(f"n{at}")))
    for at in range(draw(st.integers(0, 3)) if number else 0):
        there = pod(f"old-{at}", group="", node=f"n{draw(st.integers(0, number - 1))}")
        cluster.set_pod(replace(there, shape=draw(shapes())))
    palette = draw(st.lists(shapes(), min_size=1, max_size=4))
    members = [
        replace(
            pod(f"m-{at}", created=float(at)),
            shape=draw(st.sampled_from(palette)),
            declaration=Declaration(group="a", role=draw(st.sampled_from(("", "w", "ps")))),
        )
        for at in range(draw(st.integers(1, 6)))
    ]
    there_are = {role: sum(naive.role_of(member) == role for member in members) for role in ("w", "ps")}
    topology = draw(
        st.sampled_from((None, Topology(key="zone"), Topology(key="zone", required=False), Topology(key=HOSTNAME)))
    )
    return cluster, Ask(
        members=members,
        need=draw(st.integers(1, len(members))),
        role_needs={role: draw(st.integers(0, count)) for role, count in there_are.items()},
        strategy=draw(st.sampled_from(list(STRATEGIES.values()))),
        own=draw(st.dictionaries(st.sampled_from(("n0", "n1")), st.integers(0, 2), max_size=2)),
        topology=topology,
    )


def added(demand: tuple[Demand, ...]) -> list[Node]:
    """One node for each member of the demand: exactly its requests, room for one pod, and the required labels."""
    return [
        Node(
            name=f"new-{entry}-{at}",
            allocatable=tuple(sorted(({"pods": 1} | dict(each.requests)).items())),
            labels=(*RED, (HOSTNAME, f"new-{entry}-{at}"), ("zone", each.domain or "fresh")),
        )
        for entry, each in enumerate(demand)
        for at in range(each.count)
    ]


@given(problems())
@settings(max_examples=examples(500))
def test_what_is_demanded_makes_the_group_fit(problem):
    cluster, ask = problem
    found = place(Snapshot(cluster), ask)
    assume(isinstance(found, Refusal))
    assert isinstance(found, Refusal)
    settled = ask.topology == Topology(key=HOSTNAME) and any(ask.own.get(name) for name in cluster.nodes)
    event("hopeless" if not found.demand else f"{sum(each.count for each in found.demand)} demanded")
    if not found.demand:
        assert settled
        return
    for node in added(found.demand):
        cluster.set_node(node)
    assert isinstance(place(Snapshot(cluster), ask), Placement)


@given(problems())
@settings(max_examples=examples(300))
def test_as_many_are_demanded_as_do_not_fit(problem):
    cluster, ask = problem
    found = place(Snapshot(cluster), ask)
    assume(isinstance(found, Refusal))
    assert isinstance(found, Refusal)
    assume(ask.topology != Topology(key=HOSTNAME))
    assert sum(each.count for each in found.demand) == found.wanted - found.fits
