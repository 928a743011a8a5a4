from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.declaration import Declaration, Preference
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.quantity import MAX_AMOUNT
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import HostPort, PodTerm, Requirement, Shape, Toleration
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.strategies import STRATEGIES
from tests import naive
from tests.builders import pod
from tests.effort import examples
from tests.naive import World
from tests.strategies import label_maps, nodes, pod_terms, shapes
from tests.verdicts import class_of, closed

COLOURS = ("red", "blue")
PORTS = ((), (), (), (HostPort(80),), (HostPort(81),), (HostPort(80), HostPort(81)), (HostPort(80, ip="10.0.0.1"),))

strategies = st.sampled_from(list(STRATEGIES.values()))


@st.composite
def small_shapes(draw: st.DrawFn) -> Shape:
    """Shapes that meet on few nodes: small numbers of two resources, a colour, a port."""
    requests = {"cpu": draw(st.integers(0, 4)), "x.io/device": draw(st.integers(0, 3))}
    return Shape(
        requests=tuple((name, amount) for name, amount in requests.items() if amount),
        node_selector=draw(st.sampled_from(((), (), (), (("colour", "red"),)))),
        host_ports=draw(st.sampled_from(PORTS)),
    )


@st.composite
def small_nodes(draw: st.DrawFn, name: str) -> Node:
    given_ = {"cpu": draw(st.integers(0, 8)), "pods": draw(st.integers(1, 5)), "x.io/device": draw(st.integers(0, 6))}
    colour = (("colour", draw(st.sampled_from(COLOURS))),)
    return Node(name=name, allocatable=tuple((key, amount) for key, amount in given_.items() if amount), labels=colour)


ANTI = PodTerm(topology_key="colour", selector=(Requirement("team", "In", ("a",)),), namespaces=("default",))


@st.composite
def small_problems(draw: st.DrawFn) -> tuple[Cluster, World, Ask]:
    """At most four nodes, three pods on them, six members of few shapes, and the quorum's terms."""
    number = draw(st.integers(1, 4))
    cluster = Cluster()
    world = World()
    for at in range(number):
        node = draw(small_nodes(f"n{at}"))
        cluster.set_node(node)
        world.nodes[node.name] = node
    for at in range(draw(st.integers(0, 3))):
        there = replace(
            pod(f"old-{at}", group="", node=f"n{draw(st.integers(0, number - 1))}"),
            shape=replace(draw(small_shapes()), anti_affinity=(ANTI,) if draw(st.integers(0, 7)) == 0 else ()),
        )
        cluster.set_pod(there)
        world.put(there, there.node)
    palette = draw(st.lists(small_shapes(), min_size=1, max_size=4))
    members = [
        replace(
            pod(f"m-{at}", created=float(at), labels={"team": draw(st.sampled_from(("a", "b")))}),
            shape=draw(st.sampled_from(palette)),
            declaration=Declaration(group="a", role=draw(st.sampled_from(("", "w", "ps")))),
        )
        for at in range(draw(st.integers(1, 6)))
    ]
    there_are = {role: sum(naive.role_of(member) == role for member in members) for role in ("w", "ps")}
    role_needs = {role: draw(st.integers(0, count)) for role, count in there_are.items()}
    need = draw(st.integers(1, len(members)))
    strategy = draw(strategies)
    own = draw(st.dictionaries(st.sampled_from(("n0", "n1", "gone")), st.integers(0, 3), max_size=2))
    avoided = draw(st.frozensets(st.sampled_from(("n0", "n1", "gone"))))
    refused = avoided & draw(st.frozensets(st.sampled_from(("n0", "n1"))))
    ask = Ask(
        members=members,
        need=need,
        role_needs=role_needs,
        strategy=strategy,
        own=own,
        avoided=avoided,
        refused=refused,
    )
    return cluster, world, ask


def wanted(ask: Ask) -> int:
    return max(ask.need, sum(ask.role_needs.values()))


def check(world: World, ask: Ask, found: Placement) -> None:
    """The placement is a quorum, and each member may run on its node beside all other pods."""
    assert len(found.assignments) == wanted(ask)
    chosen = [member for member, _ in found.assignments]
    assert len({member.uid for member in chosen}) == len(chosen)
    assert {member.uid for member in chosen} <= {member.uid for member in ask.members}
    for role, need in ask.role_needs.items():
        assert sum(naive.role_of(member) == role for member in chosen) >= need
    for member, node in found.assignments:
        assert world.objection(member, node) == ""
        world.put(member, node)


PROBES = [
    MemberClass(Shape(host_ports=(HostPort(*port),)))
    for port in product((80, 81, 443), ("TCP", "UDP"), ("0.0.0.0", "127.0.0.1", "10.0.0.1", "::"))
]


def picture(snapshot: Snapshot) -> tuple[object, ...]:
    """All observable state of a snapshot."""
    ports = [closed(snapshot, probe, NodeReason.HOST_PORT) for probe in PROBES]
    return snapshot.free.tolist(), snapshot.own.tolist(), ports, snapshot.mark()


@given(small_problems())
@settings(max_examples=examples(400))
def test_placing_agrees_with_trying_everything(problem):
    """On small problems no gang that fits is refused, whichever members may be left out, and refusals are correct.

    Avoided nodes exclude no member.
    """
    cluster, world, ask = problem
    snapshot = Snapshot(cluster)
    before = picture(snapshot)
    found = place(snapshot, ask)
    possible = naive.quorum_exists(world, ask.members, ask.need, ask.role_needs)
    if isinstance(found, Placement):
        event("fits")
        check(world, ask, found)
    else:
        event("never fits" if found.never else "refused")
        assert not possible
        assert picture(snapshot) == before
        assert found.wanted == wanted(ask)
        assert found.fits == naive.most_that_fit(world, ask.members, ask.need, ask.role_needs)
        empty = World(nodes=world.nodes)
        assert found.never is not naive.quorum_exists(empty, ask.members, ask.need, ask.role_needs)
    assert cluster.validate() == []


NAMES = ("n0", "n1", "n2", "n3", "n4")


@st.composite
def placed_terms(draw: st.DrawFn) -> tuple[PodTerm, ...]:
    return (draw(pod_terms),) if draw(st.integers(0, 3)) == 0 else ()


@st.composite
def lenient(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    """A shape or a node without most of its constraints, so that some pods fit."""
    value = draw(values)
    unconstrained: dict[str, Any] = (
        {"node_selector": (), "node_affinity": None, "host_ports": (), "tolerations": (Toleration("", "Exists"),)}
        if isinstance(value, Shape)
        else {"taints": (), "unschedulable": False}
    )
    return replace(value, **{field: none for field, none in unconstrained.items() if draw(st.integers(0, 3))})


@st.composite
def rich_problems(draw: st.DrawFn) -> tuple[Cluster, World, list[Pod]]:
    """Nodes, pods on them and waiting members with every kind of constraint, and labels that often match."""
    cluster = Cluster()
    world = World()
    for name in NAMES[: draw(st.integers(1, 5))]:
        node = draw(lenient(nodes(name)))
        cluster.set_node(node)
        world.nodes[name] = node
    for namespace in ("default", "other"):
        labels = tuple(sorted(draw(label_maps).items()))
        cluster.set_namespace(namespace, labels)
        world.namespaces[namespace] = labels
    for at in range(draw(st.integers(0, 4))):
        there = replace(
            pod(f"old-{at}", group="", node=draw(st.sampled_from(sorted(world.nodes)))),
            shape=replace(draw(lenient(shapes)), anti_affinity=draw(placed_terms())),
        )
        cluster.set_pod(there)
        world.put(there, there.node)
    palette = draw(st.lists(st.tuples(lenient(shapes), label_maps), min_size=1, max_size=3))
    members = []
    for at in range(draw(st.integers(1, 5))):
        shape, labels = draw(st.sampled_from(palette))
        members.append(replace(pod(f"m-{at}", created=float(at), labels=labels), shape=shape))
    return cluster, world, members


@given(rich_problems(), strategies, st.data())
@settings(max_examples=examples(300))
def test_a_placement_violates_nothing_and_a_refusal_leaves_the_snapshot_as_it_was(problem, strategy, data):
    cluster, world, members = problem
    snapshot = Snapshot(cluster)
    before = picture(snapshot)
    need = data.draw(st.integers(1, len(members)))
    ask = Ask(members=members, need=need, strategy=strategy)
    found = place(snapshot, ask)
    event(type(found).__name__)
    if isinstance(found, Refusal):
        assert picture(snapshot) == before
    else:
        check(world, ask, found)
        for name, row in cluster.capacity.rows.items():
            taken = [other.shape.requests for other, where in world.standing if where == name]
            for resource, column in cluster.capacity.columns.items():
                sums = len(taken) if resource == "pods" else sum(dict(one).get(resource, 0) for one in taken)
                assert snapshot.free[row, column] == dict(world.nodes[name].allocatable).get(resource, 0) - sums
        snapshot.undo(0)
        assert picture(snapshot) == before


@given(rich_problems(), st.randoms(use_true_random=False))
@settings(max_examples=examples(200))
def test_neither_the_strategy_nor_wishes_nor_the_order_of_members_decide_whether_all_fit(problem, random):
    cluster, _, members = problem
    verdicts = set()
    for strategy, wishes in product(STRATEGIES.values(), ((), (Preference("zone", "Descending"),))):
        ask = Ask(members=members, need=len(members), strategy=strategy, prefer=wishes)
        found = place(Snapshot(cluster), ask)
        verdicts.add(found.fits if isinstance(found, Refusal) else "fits")
        members = random.sample(members, len(members))
    event("fits" if "fits" in verdicts else "refused")
    assert len(verdicts) == 1


@given(rich_problems())
@settings(max_examples=examples(200))
def test_the_room_of_a_node_is_what_putting_members_there_one_by_one_finds(problem):
    cluster, world, members = problem
    member = members[0]
    snapshot = Snapshot(cluster)
    asked = class_of(snapshot, member)
    caps = snapshot.caps(asked)
    for name, row in cluster.capacity.rows.items():
        number = 0
        mark = snapshot.mark()
        while snapshot.fits(asked, row):
            assert world.objection(member, name) == ""
            world.put(member, name)
            snapshot.take(row, asked, 1)
            number += 1
        assert world.objection(member, name) != ""
        assert snapshot.caps(asked)[row] == 0
        assert number == caps[row]
        snapshot.undo(mark)
        del world.standing[len(world.standing) - number :]
    assert np.array_equal(snapshot.caps(asked), caps)


@given(rich_problems(), st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), min_size=1, max_size=12))
@settings(max_examples=examples(150))
def test_what_a_snapshot_knows_of_its_rows_is_what_a_fresh_look_finds(problem, steps):
    """Room and fullness are cached and updated for the rows that takes and undos have changed."""
    cluster, _, members = problem
    snapshot = Snapshot(cluster)
    every = np.arange(snapshot.size)
    marks = [snapshot.mark()]
    for which, looks, undoes in steps:
        asked = MemberClass(members[which % len(members)].shape)
        row = next((row for row in every.tolist() if snapshot.fits(asked, row)), None)
        if row is not None:
            marks.append(snapshot.mark())
            snapshot.take(row, asked, 1)
        if undoes:
            snapshot.undo(marks.pop() if len(marks) > 1 else 0)
        if looks:
            for each in {member.shape for member in members}:
                known = snapshot.caps(MemberClass(each))
                assert np.array_equal(known, snapshot._caps_of(MemberClass(each), every))  # noqa: SLF001
                assert np.array_equal(snapshot.fullness(each), snapshot._fullness_of(each, every))  # noqa: SLF001


@given(rich_problems(), st.lists(st.tuples(strategies, st.booleans()), max_size=6), st.data())
@settings(max_examples=examples(150))
def test_undo_restores_the_snapshot_exactly_whatever_was_placed_since(problem, gangs, data):
    cluster, _, members = problem
    snapshot = Snapshot(cluster)
    kept = []
    for strategy, back in gangs:
        kept.append((snapshot.mark(), picture(snapshot)))
        some = data.draw(st.lists(st.sampled_from(members), unique_by=lambda member: member.uid, min_size=1))
        own = dict.fromkeys(data.draw(st.sets(st.sampled_from(NAMES))), 1)
        place(snapshot, Ask(members=some, need=len(some), strategy=strategy, own=own))
        if back:
            at = data.draw(st.integers(0, len(kept) - 1))
            mark, before = kept[at]
            snapshot.undo(mark)
            assert picture(snapshot) == before
            del kept[at:]
    snapshot.undo(0)
    assert picture(snapshot) == picture(Snapshot(cluster))


huge = st.sampled_from((1, 2**31, 2**53 + 1, 2**61, 2**62 - 1, 2**62, 2**62 + 1, MAX_AMOUNT - 1, MAX_AMOUNT))


@given(
    st.lists(st.tuples(huge, huge), min_size=1, max_size=4),
    st.lists(huge, max_size=4),
    st.lists(huge, min_size=1, max_size=5),
    strategies,
)
@settings(max_examples=examples(300))
def test_absurd_quantities_neither_overflow_nor_overcommit(given_, there, asked, strategy):
    cluster = Cluster()
    world = World()
    for at, (memory, pods) in enumerate(given_):
        node = Node(name=f"n{at}", allocatable=(("memory", memory), ("pods", pods)))
        cluster.set_node(node)
        world.nodes[node.name] = node
    for at, memory in enumerate(there):
        old = replace(pod(f"old-{at}", node=f"n{at % len(given_)}"), shape=Shape(requests=(("memory", memory),)))
        cluster.set_pod(old)
        world.put(old, old.node)
    members = [replace(pod(f"m-{at}"), shape=Shape(requests=(("memory", memory),))) for at, memory in enumerate(asked)]
    ask = Ask(members=members, need=len(members), strategy=strategy)
    snapshot = Snapshot(cluster)
    found = place(snapshot, ask)
    assert isinstance(found, Placement) is naive.quorum_exists(world, members, len(members), {})
    if isinstance(found, Placement):
        check(world, ask, found)
        snapshot.undo(0)
    assert picture(snapshot) == picture(Snapshot(cluster))
    assert cluster.validate() == []
