"""Preferences about other pods: placed members count as bound, and preferences never decide whether a gang fits."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm, Requirement, Soft, Spread
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify, preferring
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.strategies import STRATEGIES
from tests.builders import node, pod
from tests.clusters import cluster_of
from tests.effort import examples

HOST, ZONE = "kubernetes.io/hostname", "zone"
APPS = ("a", "b")
terms = st.builds(
    PodTerm,
    topology_key=st.sampled_from([HOST, ZONE]),
    selector=st.sampled_from([None, (), *((Requirement("app", "In", (app,)),) for app in APPS)]),
    namespaces=st.just(("default",)),
)
weights = st.integers(-3, 3).filter(bool)
softs = st.none() | st.builds(
    Soft,
    pod_terms=st.lists(st.tuples(weights, terms), max_size=2).map(tuple),
    spread=st.lists(st.builds(Spread, term=terms, max_skew=st.integers(1, 3)), max_size=2).map(tuple),
)


@st.composite
def pods_like(draw: st.DrawFn, name: str) -> Pod:
    labels = draw(st.sampled_from([{}, *({"app": app} for app in APPS)]))
    affinity = draw(st.sampled_from([(), (), (draw(terms),)])) if name.startswith("old") else ()
    return replace(pod(name, labels=labels, affinity=affinity), soft=draw(softs))


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Node], list[Pod], list[Pod]]:
    """Nodes, pods on them, and members."""
    zones = st.sampled_from(["x", "y", None])
    there = []
    for at in range(draw(st.integers(2, 5))):
        zone = draw(zones)
        labels = {HOST: f"n{at}"} | ({ZONE: zone} if zone else {})
        there.append(node(f"n{at}", cpu=draw(st.integers(1, 6)), labels=labels))
    old = [
        replace(draw(pods_like(f"old-{at}")), node=draw(st.sampled_from(there)).name, declaration=None)
        for at in range(draw(st.integers(0, 4)))
    ]
    members = [draw(pods_like(f"m-{at}")) for at in range(draw(st.integers(1, 5)))]
    return there, old, members


def weighed(snapshot: Snapshot, member: Pod, among: list[Pod]) -> dict[str, list[int]]:
    """Each plug-in's scores by row; None if it has none."""
    known = preferring(snapshot, among, classify(snapshot, among), {})[member.uid]
    rows = np.flatnonzero(snapshot.accepts(known))
    return {
        type(plan).__name__: plan.score(known, rows).tolist() if plan.prefers(known) else [0] * len(rows)
        for plan in snapshot.plans
        if plan.weight
    }


@given(problems(), st.data())
@settings(max_examples=examples(300))
def test_members_placed_count_as_if_they_were_bound_and_taken_back_as_if_they_never_were(problem, data):
    there, old, members = problem
    cluster = cluster_of(*there, *old)
    snapshot = Snapshot(cluster)
    classes = preferring(snapshot, members, classify(snapshot, members), {})
    before = {pod.uid: snapshot.scores.ranking(classes[pod.uid]) for pod in members}
    mark, bound = snapshot.mark(), []
    for each in members[:-1]:
        row = data.draw(st.integers(0, len(there) - 1))
        snapshot.take(row, classes[each.uid], 1)
        bound.append(replace(each, node=there[row].name))
    last = members[-1]
    fresh = Snapshot(cluster_of(*there, *old, *bound))
    found, expected = weighed(snapshot, last, members), weighed(fresh, last, [last])
    event("some node is preferred" if any(len(set(scores)) > 1 for scores in expected.values()) else "all are equal")
    for name, scores in expected.items():
        if len(set(scores)) > 1 or len(set(found[name])) > 1:
            assert found[name] == scores, name
    snapshot.undo(mark)
    for uid, ranking in before.items():
        after = snapshot.scores.ranking(classes[uid])
        assert (ranking.behind is None) == (after.behind is None)
        assert ranking.behind is None or after.behind is None or np.array_equal(ranking.behind, after.behind)


@given(problems(), st.sampled_from(list(STRATEGIES.values())), st.data())
@settings(max_examples=examples(200))
def test_what_members_prefer_of_pods_does_not_decide_whether_a_gang_fits(problem, strategy, data):
    there, old, members = problem
    need = data.draw(st.integers(1, len(members)))
    found = place(Snapshot(cluster_of(*there, *old)), Ask(members=members, need=need, strategy=strategy))
    impartial = [[replace(each, soft=None) for each in some] for some in (old, members)]
    without = place(
        Snapshot(cluster_of(*there, *impartial[0])), Ask(members=impartial[1], need=need, strategy=strategy)
    )
    event(type(found).__name__)
    assert type(found) is type(without)
    if isinstance(found, Placement) and isinstance(without, Placement):
        assert {pod.uid for pod, _ in found.assignments} == {pod.uid for pod, _ in without.assignments}


@given(problems(), st.data())
@settings(max_examples=examples(200))
def test_pods_that_come_and_go_leave_nothing_behind(problem, data):
    there, old, members = problem
    assume(old)
    cluster = cluster_of(*there, *old)
    weighed(Snapshot(cluster), members[0], members)
    for each in data.draw(st.permutations(old))[: data.draw(st.integers(0, len(old)))]:
        change = data.draw(st.sampled_from(["ends", "terminates", "relabelled", "its node leaves"]))
        if change == "ends":
            cluster.remove_pod(each.uid)
        elif change == "its node leaves":
            cluster.remove_node(each.node)
        else:
            cluster.set_pod(replace(each, terminating=True) if change == "terminates" else replace(each, labels=()))
    assert cluster.validate() == []
    if cluster.nodes:
        anew = cluster_of(*sorted(cluster.nodes.values(), key=lambda node: node.name), *cluster.pods.values())
        rows = [by_name(Snapshot(each), members) for each in (cluster, anew)]
        assert rows[0] == rows[1]


def by_name(snapshot: Snapshot, members: list[Pod]) -> dict[str, int]:
    classes = preferring(snapshot, members, classify(snapshot, members), {})
    behind, _ = snapshot.scores.ranking(classes[members[0].uid])
    rows = snapshot.cluster.capacity.rows
    return {name: 0 if behind is None else int(behind[row]) for name, row in rows.items()}
