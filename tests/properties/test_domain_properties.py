"""Which domains a gang gets, compared with trying every domain and every choice of domains."""

from __future__ import annotations

from itertools import combinations

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.declaration import Declaration, Topology
from gangsched.core.objects.node import Node
from gangsched.core.objects.shape import Shape
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.further import place_each
from gangsched.core.planning.levels import divided
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.topology import RecentRequests
from tests import naive
from tests.builders import pod
from tests.effort import examples
from tests.naive import World

KEY = "rack"
Racks = dict[str, list[Node]]


@st.composite
def racked(draw: st.DrawFn, *, sizes: int) -> tuple[Racks, Ask]:
    """Up to five racks of at most two nodes, and members of so many sizes, in roles or none."""
    racks: Racks = {}
    for rack in "abcde"[: draw(st.integers(2, 5))]:
        for at in range(draw(st.integers(1, 2))):
            given_ = {"cpu": draw(st.integers(1, 3)), "pods": 5, "x.io/device": draw(st.integers(0, 2))}
            amounts = tuple(each for each in given_.items() if each[1])
            racks.setdefault(rack, []).append(Node(f"{rack}{at}", amounts, ((KEY, rack),)))
    palette = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1)), min_size=1, max_size=sizes))
    members = []
    for at in range(draw(st.integers(2, 6))):
        cpu, devices = draw(st.sampled_from(palette))
        requests = (("cpu", cpu), *((("x.io/device", devices),) if devices else ()))
        declared = Declaration(group="a", role=draw(st.sampled_from(("", "", "w"))))
        members.append(replace(pod(f"m-{at}", created=float(at)), shape=Shape(requests), declaration=declared))
    owed = draw(st.integers(0, sum(naive.role_of(each) == "w" for each in members)))
    need = draw(st.sampled_from((len(members), draw(st.integers(1, len(members))))))
    return racks, Ask(members=members, need=need, role_needs={"w": owed})


def cluster_of(racks: Racks) -> Cluster:
    cluster = Cluster()
    for node in (node for nodes in racks.values() for node in nodes):
        cluster.set_node(node)
    return cluster


def world_of(racks: Racks, chosen: tuple[str, ...]) -> World:
    return World(nodes={node.name: node for rack in chosen for node in racks[rack]})


def bound(racks: Racks, ask: Ask) -> int:
    """How many members get a node: the quorum, then the others one by one; 0 if the quorum gets none."""
    snapshot = Snapshot(cluster_of(racks))
    before, mark = snapshot.free.copy(), snapshot.mark()
    found = place(snapshot, ask)
    if not isinstance(found, Placement):
        assert ((snapshot.free == before).all(), snapshot.mark()) == (True, mark), "trying domains leaves something"
        return 0
    there = {member.uid for member, _ in found.assignments}
    rest = [member for member in ask.members if member.uid not in there]
    own: dict[str, int] = {}
    for _, node in found.assignments:
        own[node] = own.get(node, 0) + 1
    if not rest:
        return len(there)
    more = place_each(snapshot, Ask(members=rest, need=1, topology=ask.topology, own=own), RecentRequests())
    return len(there) + len(more.places)


@given(racked(sizes=2))
@settings(max_examples=examples(150))
def test_a_required_domain_takes_as_many_members_as_any_domain_that_takes_the_quorum(problem):
    racks, ask = problem
    wanted = Ask(members=ask.members, need=ask.need, role_needs=ask.role_needs, topology=Topology(KEY))
    alone = [bound({rack: nodes}, wanted) for rack, nodes in racks.items()]
    event("a choice" if len({number for number in alone if number}) > 1 else "no choice")
    assert bound(racks, wanted) == max(alone)


@given(racked(sizes=3))
@settings(max_examples=examples(150))
def test_a_preferred_domain_becomes_as_few_domains_as_take_the_quorum(problem):
    racks, ask = problem
    wanted = Ask(members=ask.members, need=ask.need, role_needs=ask.role_needs, topology=Topology(KEY, required=False))
    fewest = next(
        (
            number
            for number in range(1, len(racks) + 1)
            for chosen in combinations(racks, number)
            if naive.quorum_exists(world_of(racks, chosen), ask.members, ask.need, ask.role_needs)
        ),
        0,
    )
    found = place(Snapshot(cluster_of(racks)), wanted)
    event(f"{fewest} domains")
    assert isinstance(found, Placement) is (fewest > 0)
    assume(isinstance(found, Placement))
    assert isinstance(found, Placement)
    assert len({node[0] for _, node in found.assignments}) == fewest


@given(st.dictionaries(st.integers(0, 5), st.integers(1, 3), min_size=1), st.booleans())
def test_a_member_joins_the_domain_with_most_members_and_just_those_in_several_are_told(placed, required):
    """Six nodes in three racks; others have bound the members that are there."""
    nodes = [Node(f"n{at}", (("cpu", 9000), ("pods", 9)), ((KEY, "abc"[at // 2]),)) for at in range(6)]
    snapshot = Snapshot(cluster_of({"": nodes}))
    counts = {rack: placed.get(2 * at, 0) + placed.get(2 * at + 1, 0) for at, rack in enumerate("abc")}
    there = [rack for rack, count in counts.items() if count]
    own = {f"n{at}": count for at, count in placed.items()}
    ask = Ask(members=[pod("m")], need=1, topology=Topology(KEY, required=required), own=own)
    assert list(divided(snapshot, ask)) == ([(KEY, tuple(there))] if required and len(there) > 1 else [])
    [(_, node)] = place_each(snapshot, ask, RecentRequests()).places
    assert counts["abc"[int(node[1:]) // 2]] == max(counts.values())
