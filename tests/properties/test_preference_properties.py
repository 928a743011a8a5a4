"""Members' preferences order nodes as kube-scheduler's scores do, and never decide whether a gang fits."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.taint_toleration import tolerated
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.selectors import matches
from gangsched.core.objects.shape import Images, Soft
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify, preferring
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.strategies import STRATEGIES
from tests.builders import pod
from tests.clusters import cluster_of
from tests.effort import examples
from tests.strategies import node_terms, nodes, shapes

MIB = 1 << 20
IMAGES = ("a:1", "b:1", "c:1")
strategies = st.sampled_from(list(STRATEGIES.values()))
images: st.SearchStrategy[Images] = st.dictionaries(
    st.sampled_from(IMAGES), st.integers(1, 3000).map(lambda size: size * MIB)
).map(lambda sizes: tuple(sorted(sizes.items())))
softs = st.none() | st.builds(
    Soft,
    node_terms=st.lists(st.tuples(st.integers(1, 100), node_terms), max_size=3).map(tuple),
    images=st.lists(st.sampled_from(IMAGES), max_size=3).map(sorted).map(tuple),
    containers=st.integers(3, 4),
)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """Nodes with images, and members of few shapes with different preferences."""
    there = [replace(draw(nodes(f"n{at}")), images=draw(images)) for at in range(draw(st.integers(1, 5)))]
    palette = draw(st.lists(shapes, min_size=1, max_size=2))
    members = [
        replace(pod(f"m-{at}", created=float(at)), shape=draw(st.sampled_from(palette)), soft=draw(softs))
        for at in range(draw(st.integers(1, 6)))
    ]
    return there, members


def plain(node: Node) -> Node:
    """The node without any property that a pod may prefer, except its labels."""
    return replace(node, images=(), taints=tuple(taint for taint in node.taints if taint.effect != "PreferNoSchedule"))


@given(problems(), strategies, st.data())
@settings(max_examples=examples(300))
def test_preferences_do_not_decide_whether_a_gang_fits(problem, strategy, data):
    there, members = problem
    need = data.draw(st.integers(1, len(members)))
    found = place(Snapshot(cluster_of(*there)), Ask(members=members, need=need, strategy=strategy))
    impartial = [replace(member, soft=None) for member in members]
    without = place(
        Snapshot(cluster_of(*[plain(node) for node in there])), Ask(members=impartial, need=need, strategy=strategy)
    )
    event(type(found).__name__)
    assert type(found) is type(without)
    if isinstance(found, Refusal) and isinstance(without, Refusal):
        assert (found.asked, found.fits, found.never, found.obstacles) == (
            without.asked,
            without.fits,
            without.never,
            without.obstacles,
        )


@given(problems(), strategies)
@settings(max_examples=examples(200))
def test_where_members_go_does_not_depend_on_the_order_in_which_nodes_were_seen(problem, strategy):
    there, members = problem
    ask = Ask(members=members, need=len(members), strategy=strategy)
    found = [place(Snapshot(cluster_of(*order)), ask) for order in (there, there[::-1])]
    assert [each.assignments if isinstance(each, Placement) else None for each in found] == [
        found[0].assignments if isinstance(found[0], Placement) else None
    ] * 2


@given(problems())
@settings(max_examples=examples(200))
def test_scores_are_those_of_kube_scheduler_computed_pod_by_pod_and_node_by_node(problem):
    there, members = problem
    snapshot = Snapshot(cluster_of(*there))
    classes = preferring(snapshot, members, classify(snapshot, members), {})
    for member in members:
        behind, rank = snapshot.scores.ranking(classes[member.uid])
        accepting = [at for at in range(len(there)) if snapshot.accepts(classes[member.uid])[at]]
        weighed = [
            3 * taint + 2 * affinity
            for taint, affinity in zip(
                reverse([repelling(member, there[at]) for at in accepting]),
                normal([liked(member, there[at]) for at in accepting]),
                strict=True,
            )
        ]
        expected = [max(weighed, default=0) - score for score in weighed]
        assert [0 if behind is None else int(behind[at]) for at in accepting] == expected
        local = [(-locality(member, there, there[at]), there[at].name, at) for at in accepting]
        assert sorted(accepting, key=rank.tolist().__getitem__) == [at for _, _, at in sorted(local)]


def repelling(member: Pod, node: Node) -> int:
    taints = [taint for taint in node.taints if taint.effect == "PreferNoSchedule"]
    return sum(not tolerated(member.shape.tolerations, taint) for taint in taints)


def liked(member: Pod, node: Node) -> int:
    terms = member.soft.node_terms if member.soft is not None else ()
    return sum(weight for weight, term in terms if term.expressions and matches(term.expressions, dict(node.labels)))


def normal(scores: list[int]) -> list[int]:
    most = max(scores, default=0)
    return [100 * score // most if most else 0 for score in scores]


def reverse(scores: list[int]) -> list[int]:
    return [100 - score for score in normal(scores)]


def locality(member: Pod, there: list[Node], node: Node) -> int:
    if member.soft is None:
        return 0
    have = {image: sum(image in dict(each.images) for each in there) for image in IMAGES}
    size = sum(int(dict(node.images).get(image, 0) * (have[image] / len(there))) for image in member.soft.images)
    least, most = 23 * MIB, 1000 * MIB * member.soft.containers
    return 100 * (min(max(size, least), most) - least) // (most - least)


@given(problems(), st.data())
@settings(max_examples=examples(200))
def test_the_order_is_the_same_while_nodes_fill_up(problem, data):
    there, members = problem
    snapshot = Snapshot(cluster_of(*there))
    [first, *_] = members
    member = preferring(snapshot, members, classify(snapshot, members), {})[first.uid]
    before = snapshot.scores.ranking(member)
    rows = np.flatnonzero(snapshot.caps(member))
    if not len(rows):
        return
    snapshot.take(int(data.draw(st.sampled_from(rows.tolist()))), member, 1)
    after = snapshot.scores.ranking(member)
    assert (before.behind is None) == (after.behind is None) or member.shape.host_ports
    if before.behind is not None and after.behind is not None and not member.shape.host_ports:
        assert np.array_equal(before.behind, after.behind)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.tuples(images, st.booleans())), min_size=1, max_size=12)
)
@settings(max_examples=examples(200))
def test_images_that_come_and_go_with_nodes_are_counted_as_if_seen_for_the_first_time(steps):
    cluster = Cluster()
    for name, found in steps:
        if found is None:
            cluster.remove_node(name)
        else:
            cluster.set_node(Node(name, labels=(("x", str(found[1])),), images=found[0]))
        anew = cluster_of(*sorted(cluster.nodes.values(), key=lambda node: node.name))
        for image in IMAGES:
            assert ranked(cluster, image) == ranked(anew, image)
        assert cluster.validate() == []


def ranked(cluster: Cluster, image: str) -> list[str]:
    """The nodes in the order of preference of a pod with this image."""
    snapshot = Snapshot(cluster)
    one = replace(pod("a"), soft=Soft(images=(image,), containers=1))
    member = preferring(snapshot, [one], classify(snapshot, [one]), {})[one.uid]
    rank = snapshot.scores.ranking(member).rank
    rows = cluster.capacity.rows
    return sorted(rows, key=lambda name: int(rank[rows[name]]))
