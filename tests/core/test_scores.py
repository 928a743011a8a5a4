"""The scores of each kube-scheduler plug-in, and how they are weighted."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from gangsched.core.constraints import registry
from gangsched.core.constraints.constraint import Constraint, Member, Plan
from gangsched.core.constraints.image_locality import ImageLocality
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.pod_preferences import PodPreferencesPlan
from gangsched.core.constraints.taint_toleration import TaintToleration
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.shape import NodeTerm, PodTerm, Requirement
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.filling import classify, preferring
from gangsched.core.planning.placement import Ask, Placement, place
from tests.builders import node, pod


def wants(*pairs, **labels):
    """A term that requires these labels' values; a tuple (key, operator, values …) is any other requirement."""
    found = [Requirement(key, "In", (value,)) for key, value in labels.items()]
    return NodeTerm(tuple(found) + tuple(Requirement(key, operator, tuple(rest)) for key, operator, *rest in pairs))


def asked(snapshot, **fields) -> MemberClass:
    one = pod("a", **fields)
    return preferring(snapshot, [one], classify(snapshot, [one]), {})[one.uid]


def scores(cluster, kind, **fields) -> list[int] | None:
    """The score of each node in the order of addition; None if the plug-in does not score the pod."""
    snapshot = Snapshot(cluster)
    member = asked(snapshot, **fields)
    [plan] = [plan for plan in snapshot.plans if isinstance(plan, kind)]
    return plan.score(member, np.arange(snapshot.size)).tolist() if plan.prefers(member) else None


def test_a_changed_label_changes_the_score(cluster_of):
    cluster = cluster_of(node("n1"), node("n2", labels={"disk": "ssd"}))
    assert scores(cluster, NodeAffinity, likes={1: wants(disk="ssd")}) == [0, 100]
    cluster.set_node(node("n1", labels={"disk": "ssd"}))
    cluster.set_node(node("n2"))
    assert scores(cluster, NodeAffinity, likes={1: wants(disk="ssd")}) == [100, 0]


def test_where_no_node_has_such_a_taint_nobody_has_a_preference(cluster_of):
    cluster = cluster_of(node("n1", taints=["a:NoSchedule"]), node("n2", taints=["a:PreferNoSchedule"]))
    assert scores(cluster, TaintToleration) == [100, 0]
    cluster.set_node(node("n2"))
    assert scores(cluster, TaintToleration) is None
    cluster.set_node(node("n3", taints=["a:PreferNoSchedule"]))
    cluster.remove_node("n3")
    assert scores(cluster, TaintToleration) is None


def test_an_image_that_comes_or_goes_is_counted_at_once_and_is_no_reason_to_try_again(cluster_of):
    cluster = cluster_of(node("n1", images={"x": 500}), node("n2"))
    assert scores(cluster, ImageLocality, images=["x"]) == [23, 0]
    cluster.relief.take()
    cluster.worsened.clear()
    assert not cluster.set_node(node("n2", images={"x": 500, "y": 1}))
    assert (cluster.relief.take().rows, cluster.worsened) == (set(), {})
    assert scores(cluster, ImageLocality, images=["x"]) == [48, 48]
    cluster.set_node(node("n1", cpu=9, images={}))
    assert scores(cluster, ImageLocality, images=["x"]) == [0, 23]
    cluster.remove_node("n2")
    assert scores(cluster, ImageLocality, images=["x"]) is None
    for number in range(40):
        cluster.set_node(node(f"new-{number}", images={"x": 500}))
    assert scores(cluster, ImageLocality, images=["x"]) == [0] + [47] * 40
    assert cluster.validate() == []


def behind(cluster, **fields) -> list[int] | None:
    snapshot = Snapshot(cluster)
    found = snapshot.scores.ranking(asked(snapshot, **fields)).behind
    return None if found is None else found.tolist()


def test_preferences_that_tell_no_nodes_apart_are_none(cluster_of):
    cluster = cluster_of(node("n1", labels={"disk": "ssd"}), node("n2", labels={"disk": "ssd"}, images={"x": 500}))
    assert behind(cluster, likes={5: wants(disk="ssd")}) is None
    assert behind(cluster, images=["x"]) is None, "images only break ties"


def test_pods_whose_images_no_node_has_are_of_one_class(cluster_of):
    snapshot = Snapshot(cluster_of(node("n1")))
    members = [pod(f"a-{image}", images=[image]) for image in "xyz"]
    classes = classify(snapshot, members)
    assert preferring(snapshot, members, classes, {}) is classes


def test_neither_the_domain_that_is_tried_nor_avoided_nodes_change_the_order(cluster_of):
    cluster = cluster_of(
        node("n1", labels={"disk": "ssd", "zone": "a"}), node("n2", labels={"x": "y", "zone": "b"}), node("n3")
    )
    snapshot = Snapshot(cluster)
    member = asked(snapshot, likes={9: wants(disk="ssd"), 3: wants(x="y")})
    for other in (replace(member, within=(("zone", "b"),)), replace(member, avoided=frozenset({"n1"}))):
        found = snapshot.scores.ranking(other).behind
        assert found is not None
        assert found.tolist() == [0, 134, 200]


class Crowded(Constraint):
    """Members prefer rows where fewer of them were placed: a score that depends on pods."""

    words = ()

    def plan(self, *, emptied: bool) -> Plan:  # noqa: ARG002 - the interface
        return CrowdedPlan()


class CrowdedPlan(Plan):
    weight = 1

    def __init__(self) -> None:
        self.there = np.zeros(2, dtype=np.int64)

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray:  # noqa: ARG002 - the interface
        self.there[rows] += counts
        return np.arange(2)

    def prefers(self, member: Member) -> bool:  # noqa: ARG002 - the interface
        return True

    def score(self, member: Member, rows: IntArray) -> IntArray:  # noqa: ARG002 - the interface
        return 100 - self.there[rows]


def test_a_score_that_depends_on_pods_is_taken_again_when_its_plan_says_so(cluster_of, monkeypatch):
    monkeypatch.setattr(registry, "CONSTRAINTS", [*registry.CONSTRAINTS, Crowded])
    snapshot = Snapshot(cluster_of(node("n1"), node("n2")))
    member = asked(snapshot)
    assert snapshot.scores.ranking(member).behind is None
    mark = snapshot.mark()
    snapshot.take(1, member, 3)
    found = snapshot.scores.ranking(member).behind
    assert found is not None
    assert found.tolist() == [0, 3]
    snapshot.undo(mark)
    assert snapshot.scores.ranking(member).behind is None


@pytest.mark.parametrize("likes", [{}, {1: wants(disk="ssd")}], ids=["without preferences", "with them"])
def test_a_gang_that_fits_only_without_its_preferences_is_placed_without_them(cluster_of, likes):
    """More nodes than are searched. Large members that take their preferred nodes leave too little for small ones."""
    labels = {"a": {"large": "yes"}, "b": {"large": "yes", "disk": "ssd", "small": "yes"}, "c": {"small": "yes"}}
    sizes = {"a": (100, 2), "b": (100, 2), "c": (25, 4)}
    nodes = [
        node(f"{kind}-{at}", cpu=cpu, labels=labels[kind])
        for kind, (count, cpu) in sizes.items()
        for at in range(count)
    ]
    large = [pod(f"large-{at}", cpu=2, node_selector={"large": "yes"}, likes=likes) for at in range(150)]
    small = [pod(f"small-{at}", cpu=1, node_selector={"small": "yes"}) for at in range(200)]
    found = place(Snapshot(cluster_of(*nodes)), Ask(members=[*large, *small], need=350))
    assert isinstance(found, Placement)


@pytest.mark.parametrize("likes", [{}, {1: wants(disk="ssd")}], ids=["without preferences", "with them"])
def test_the_same_members_are_passed_over_whatever_they_prefer(cluster_of, likes):
    members = [
        pod("a-0", cpu=2, likes=likes),
        pod("a-1", cpu=3, created=1.0),
        pod("a-2", cpu=1, created=2.0, likes=likes),
        pod("a-3", cpu=1, created=3.0),
    ]
    found = place(
        Snapshot(cluster_of(node("n1", cpu=4, labels={"disk": "ssd"}), node("n2", cpu=0))), Ask(members=members, need=2)
    )
    assert isinstance(found, Placement)
    assert [member.name for member, _ in found.assignments] == ["a-0", "a-2"]


def test_pods_are_counted_again_for_what_is_preferred_when_a_namespace_has_other_labels(cluster_of):
    cluster = cluster_of(node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}))
    cluster.set_pod(pod("team/there", node="n2"))
    term = PodTerm("zone", (), namespace_selector=(Requirement("old", "Exists"),))
    assert scores(cluster, PodPreferencesPlan, near={1: term}) == [0, 0]
    cluster.set_namespace("team", (("old", ""),))
    assert scores(cluster, PodPreferencesPlan, near={1: term}) == [0, 100]
    assert cluster.validate() == []


def test_members_that_fit_only_the_other_way_round_count_for_what_others_prefer(cluster_of):
    """Placing the large members first, as usual, would leave no room for the last small one."""
    snapshot = Snapshot(cluster_of(node("n1", cpu=4, labels={"x": "1"}), node("n2", cpu=6, labels={"x": "2"})))
    fond = asked(snapshot, near={1: PodTerm("x", (Requirement("app", "In", ("a",)),), ("default",))})
    small = [pod(f"small-{at}", cpu=2, labels={"app": "a"}) for at in range(2)]
    large = [pod(f"large-{at}", cpu=3) for at in range(2)]
    found = place(snapshot, Ask(members=[*large, *small], need=4))
    assert isinstance(found, Placement)
    assert {node for member, node in found.assignments if member in small} == {"n1"}
    behind = snapshot.scores.ranking(fond).behind
    assert behind is not None
    assert behind.tolist() == [0, 200]
