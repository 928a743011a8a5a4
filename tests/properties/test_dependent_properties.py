"""Members that depend on other pods: affinity, anti-affinity and topology spread, compared with a pod-by-pod check."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm, Requirement, Shape, Spread
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.strategies import STRATEGIES
from tests import naive
from tests.builders import amounts, label_pairs, node, pod
from tests.effort import examples
from tests.naive import World

KEYS = ("zone", "host", "rack")
APPS = ("a", "b")

selectors = st.sampled_from(
    (
        (Requirement("app", "In", ("a",)),),
        (Requirement("app", "In", ("b",)),),
        (Requirement("app", "In", APPS),),
        (Requirement("app", "NotIn", ("a",)),),
        (Requirement("app", "Exists"),),
        (Requirement("tier", "DoesNotExist"),),
        (),
    )
)
scopes = st.sampled_from(
    ((("default",), None), (("default", "other"), None), ((), ()), ((), (Requirement("team", "In", ("x",)),)))
)


@st.composite
def terms(draw: st.DrawFn) -> PodTerm:
    namespaces, selector = draw(scopes)
    return PodTerm(draw(st.sampled_from(KEYS)), draw(st.none() | selectors), namespaces, selector)


@st.composite
def spreads(draw: st.DrawFn) -> Spread:
    return Spread(
        PodTerm(draw(st.sampled_from(KEYS)), draw(st.none() | selectors), ("default",)),
        max_skew=draw(st.integers(1, 2)),
        min_domains=draw(st.integers(1, 3)),
        honors_affinity=draw(st.booleans()),
        honors_taints=draw(st.booleans()),
    )


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kind = draw(st.sampled_from(("none", "affinity", "anti", "spread", "spread", "mixed")))
    return Shape(
        requests=amounts({"cpu": draw(st.integers(0, 2))}),
        node_selector=draw(st.sampled_from(((), (), (), (("zone", "z1"),)))),
        affinity=tuple(draw(st.lists(terms(), min_size=1, max_size=2))) if kind in ("affinity", "mixed") else (),
        anti_affinity=tuple(draw(st.lists(terms(), min_size=1, max_size=2))) if kind == "anti" else (),
        spread=tuple(draw(st.lists(spreads(), min_size=1, max_size=2))) if kind in ("spread", "mixed") else (),
    )


pod_labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from(APPS), "tier": st.just("t")})


@st.composite
def problems(draw: st.DrawFn) -> tuple[Cluster, World, list[Pod]]:
    """Up to five nodes in two zones, pods on them that have terms of their own, and up to four members."""
    cluster, world = Cluster(), World()
    names = [f"n{at}" for at in range(draw(st.integers(1, 5)))]
    for at, name in enumerate(names):
        labels = {
            "zone": draw(st.sampled_from(("z1", "z2"))),
            "host": name,
            "rack": draw(st.sampled_from(("r1", "r2"))),
        }
        for key in draw(st.lists(st.sampled_from(KEYS), max_size=1)):
            del labels[key]
        made = node(name, cpu=draw(st.integers(1, 4)), labels=labels, taints=["t:NoSchedule"] if at == 4 else [])
        cluster.set_node(made)
        world.nodes[name] = made
    for namespace, team in (("default", {}), ("other", {"team": "x"})):
        cluster.set_namespace(namespace, label_pairs(team))
        world.namespaces[namespace] = label_pairs(team)
    for at in range(draw(st.integers(0, 4))):
        there = replace(
            pod(f"{draw(st.sampled_from(('default', 'other')))}/old-{at}", group="", node=draw(st.sampled_from(names))),
            shape=replace(draw(shapes()), requests=()),
            labels=label_pairs(draw(pod_labels)),
            terminating=draw(st.integers(0, 5)) == 0,
        )
        cluster.set_pod(there)
        world.put(there, there.node)
    palette = draw(st.lists(st.tuples(shapes(), pod_labels), min_size=1, max_size=2))
    members = []
    for at in range(draw(st.integers(1, 4))):
        shape, labels = draw(st.sampled_from(palette))
        members.append(replace(pod(f"m-{at}", created=float(at), labels=labels), shape=shape))
    return cluster, world, members


def answers(snapshot: Snapshot, members: list[Pod]) -> dict[str, list[str]]:
    """The nodes that accept each member now."""
    classes = classify(snapshot, members)
    return {
        member.uid: [snapshot.name(row) for row in np.flatnonzero(snapshot.caps(classes[member.uid])).tolist()]
        for member in members
    }


def expected(world: World, members: list[Pod]) -> dict[str, list[str]]:
    return {member.uid: [name for name in world.nodes if not world.objection(member, name)] for member in members}


@given(problems(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=6))
@settings(max_examples=examples(400))
def test_nodes_say_to_each_member_what_judging_pod_by_pod_finds(problem, steps):
    """Also while members are placed and removed again."""
    cluster, world, members = problem
    snapshot = Snapshot(cluster)
    assert answers(snapshot, members) == expected(world, members)
    classes = classify(snapshot, members)
    marks = [(snapshot.mark(), len(world.standing))]
    for which, where, undoes in steps:
        member = members[which % len(members)]
        takers = answers(snapshot, members)[member.uid]
        if takers:
            name = takers[where % len(takers)]
            marks.append((snapshot.mark(), len(world.standing)))
            snapshot.take(cluster.capacity.rows[name], classes[member.uid], 1)
            world.put(member, name)
        if undoes:
            mark, standing = marks.pop() if len(marks) > 1 else marks[0]
            snapshot.undo(mark)
            del world.standing[standing:]
        assert answers(snapshot, members) == expected(world, members)
    assert cluster.validate() == []


@given(problems(), st.sampled_from(sorted(STRATEGIES)), st.data())
@settings(max_examples=examples(400))
def test_what_is_placed_can_be_placed_pod_by_pod_and_what_is_refused_cannot_in_any_order(problem, strategy, data):
    cluster, world, members = problem
    need = data.draw(st.integers(1, len(members)))
    snapshot = Snapshot(cluster)
    found = place(snapshot, Ask(members=members, need=need, strategy=STRATEGIES[strategy]))
    if isinstance(found, Placement):
        event("fits")
        chosen = [(member, [name]) for member, name in found.assignments]
        assert len(chosen) == need
        assert naive.one_by_one(world, chosen, need)
        return
    anywhere = [(member, list(world.nodes)) for member in members]
    possible = naive.one_by_one(world, anywhere, need)
    event("never" if found.never else "impossible")
    assert not possible
    assert found.fits < need
