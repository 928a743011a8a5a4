"""Single cases of the cluster; tests/properties/test_cluster_properties.py checks arbitrary sequences of changes."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints import node_affinity
from gangsched.core.constraints.inter_pod_affinity import InterPodAffinity
from gangsched.core.constraints.node_ports import NodePorts
from gangsched.core.constraints.taint_toleration import TaintToleration
from gangsched.core.constraints.tally import of_term
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.core.planning.classes import MemberClass
from tests.builders import node, pod, shape, taint

HOST = "kubernetes.io/hostname"
TEAM_A = (Requirement("team", "In", ("a",)),)


def anti(key=HOST, selector=(), namespaces=("default",), namespace_selector=None):
    return PodTerm(topology_key=key, selector=selector, namespaces=namespaces, namespace_selector=namespace_selector)


@pytest.fixture
def cluster():
    """An empty cluster whose accounting is checked when the test ends."""
    made = Cluster()
    yield made
    assert made.validate() == []


def free(cluster, name, resource="cpu"):
    return cluster.capacity.free_of(cluster.capacity.rows[name], resource)


def accepting(cluster, asked):
    return {cluster.capacity.names[row] for row in np.flatnonzero(cluster.accepting(MemberClass(asked)))}


def known_by(cluster, kind):
    (constraint,) = (each for each in cluster.constraints if isinstance(each, kind))
    return constraint


# Nodes


def test_a_node_that_comes_again_unchanged_changes_nothing(cluster):
    assert cluster.set_node(node("n1"))
    cluster.relief.take()
    assert not cluster.set_node(node("n1"))
    assert not cluster.relief


def test_answers_that_were_given_out_do_not_change_afterwards(cluster):
    asked = MemberClass(shape(node_selector={"zone": "a"}))
    cluster.set_node(node("n1", labels={"zone": "a"}))
    before = cluster.accepting(asked)
    cluster.set_node(node("n1"))
    assert cluster.accepting(asked).tolist() == [False]
    assert before.tolist() == [True]


def test_matching_nodes_are_kept_for_the_selectors_asked_for_last(cluster, monkeypatch):
    monkeypatch.setattr(node_affinity, "_KEPT", 2)
    kept_by = known_by(cluster, node_affinity.NodeAffinity)
    for at in range(20):
        cluster.set_node(node(f"n{at}", labels={"zone": "a"}))
    for zone in "abacada":
        assert len(accepting(cluster, shape(node_selector={"zone": zone}))) == (20 if zone == "a" else 0)
    assert list(kept_by._known) == [((("zone", zone),), None) for zone in "da"]  # noqa: SLF001 - memory


def test_verdicts_are_right_for_more_nodes_than_there_was_room_for_at_first(cluster):
    for at in range(70):
        cluster.set_node(node(f"n{at}", unschedulable=at % 3 == 0))
        accepting(cluster, shape())
    assert cluster.accepting(MemberClass(shape())).tolist() == [at % 3 != 0 for at in range(70)]


@pytest.mark.parametrize("changing", ["labels", "taints"])
def test_values_that_come_and_go_are_forgotten(cluster, changing):
    """Regression: a taint whose value is a time left an entry for each time, for ever."""
    asked = shape(node_selector={"zone": "a"}) if changing == "labels" else shape()
    for at in range(300):
        fields = {"labels": {"zone": f"z{at}"}} if changing == "labels" else {"taints": [f"ends={at}:NoSchedule"]}
        cluster.set_node(node("n1", **fields))
        assert accepting(cluster, asked) == set()
    by_label = [cluster.nodes_by_row.by_label("zone")]
    of_taints = [each.column for each in cluster.constraints if isinstance(each, TaintToleration)]
    columns = by_label if changing == "labels" else of_taints
    assert all(len(column._values) < 100 for column in columns)  # noqa: SLF001 - memory shows nowhere else


def test_rank_is_the_order_of_names_after_every_change_of_the_nodes(cluster):
    def ranked():
        names = [cluster.capacity.names[row] for row in np.argsort(cluster.labels.rank())]
        return [name for name in names if name]

    for name in ("n2", "n3", "n1"):
        cluster.set_node(node(name))
        assert ranked() == sorted(cluster.nodes)
    cluster.remove_node("n3")
    assert ranked() == ["n1", "n2"]
    cluster.set_node(node("n0"))
    assert ranked() == ["n0", "n1", "n2"]


# Pods


def test_all_pods_count_whoever_scheduled_them(cluster):
    cluster.set_node(node("n1", cpu=8))
    cluster.set_pod(pod("a", node="n1", scheduler="other"))
    cluster.set_pod(pod("b", node="n1", terminating=True))
    cluster.set_pod(pod("c", node="n1", phase="Unknown"))
    cluster.set_pod(pod("waiting"))
    cluster.set_pod(pod("done", node="n1", phase="Succeeded"))
    cluster.set_pod(pod("done", node="n1", phase="Succeeded", terminating=True))
    cluster.set_pod(pod("broken", node="n1", phase="Failed"))
    assert free(cluster, "n1") == 5000
    assert free(cluster, "n1", "pods") == 107


def test_a_pod_that_ends_frees_its_node_at_once(cluster):
    cluster.set_node(node("n1", cpu=8))
    running = pod("a", node="n1", phase="Running", host_ports=[80])
    cluster.set_pod(running)
    cluster.relief.take()
    cluster.set_pod(replace(running, phase=PodPhase.SUCCEEDED))
    assert free(cluster, "n1") == 8000
    assert cluster.relief.rows == {0}
    assert cluster.on_node == {}
    cluster.remove_pod(running.uid)
    assert free(cluster, "n1") == 8000


def test_a_pod_that_only_changes_its_status_is_not_counted_anew(cluster):
    cluster.set_node(node("n1"))
    cluster.set_pod(pod("a", node="n1"))
    cluster.set_pod(pod("b"))
    cluster.assume("uid-default/b", "n1")
    cluster.relief.take()
    former = cluster.set_pod(pod("a", node="n1", phase="Running", terminating=True))
    assert former == pod("a", node="n1")
    assert cluster.pods["uid-default/a"].terminating
    cluster.set_pod(pod("b", terminating=True))
    assert cluster.pods["uid-default/b"].terminating
    assert cluster.node_of("uid-default/b") == "n1"
    assert not cluster.relief


# Relief


def node_added(cluster):
    cluster.set_node(node("n9", labels={"zone": "a"}))
    return {"n9"}, False


def node_changed(cluster):
    cluster.set_node(node("n1", cpu=9, labels={"zone": "a"}))
    return {"n1"}, False


def pod_gone(cluster):
    cluster.remove_pod("uid-default/free")
    return {"n1"}, False


def pod_moved(cluster):
    cluster.set_pod(pod("free", node="n2"))
    return {"n1"}, False


def forbidding_pod_gone(cluster):
    cluster.remove_pod("uid-default/strict")
    return {"n2"}, True


def forbidding_node_gone(cluster):
    """The zone that the node's pod closed has other nodes."""
    cluster.remove_node("n2")
    return set(), True


def forbidding_node_relabelled(cluster):
    """The only forbidding pod leaves its domain with its node: the domain's other nodes open."""
    cluster.set_node(node("n2"))
    return {"n2"}, True


def node_relabelled_beside_it(cluster):
    """Other nodes' labels may decide which pods a constraint keeps off a node."""
    cluster.set_node(node("n1", labels={"zone": "b"}))
    return {"n1"}, True


def namespace_relabelled(cluster):
    cluster.set_namespace("other", (("team", "b"),))
    return set(), True


def namespace_gone(cluster):
    cluster.remove_namespace("other")
    return set(), True


@pytest.mark.parametrize(
    "happens",
    [
        node_added,
        node_changed,
        pod_gone,
        pod_moved,
        forbidding_pod_gone,
        forbidding_node_gone,
        forbidding_node_relabelled,
        node_relabelled_beside_it,
        namespace_relabelled,
        namespace_gone,
    ],
)
def test_relief_tells_what_has_become_better(cluster, happens):
    cluster.set_namespace("other", (("team", "a"),))
    cluster.set_node(node("n1", labels={"zone": "a"}))
    cluster.set_node(node("n2", labels={"zone": "a"}))
    cluster.set_pod(pod("free", node="n1"))
    cluster.set_pod(pod("strict", node="n2", anti_affinity=[anti("zone", namespace_selector=TEAM_A)]))
    cluster.relief.take()
    names, everywhere = happens(cluster)
    assert cluster.relief
    relief = cluster.relief.take()
    assert {cluster.capacity.names[row] for row in relief.rows} == names
    assert relief.everywhere is everywhere
    assert not cluster.relief


@pytest.mark.parametrize(
    ("happens", "names"),
    [
        pytest.param(lambda it, _: it.remove_node("n2"), [], id="its node goes"),
        pytest.param(lambda it, _: it.set_namespace("other", (("team", "a"),)), [], id="a namespace has other labels"),
        pytest.param(lambda it, heir: it.nominate(replace(heir, nominated_node="")), ["n2"], id="nominated no more"),
    ],
)
def test_relief_tells_of_what_a_nominated_pod_was_going_to_close(cluster, happens, names):
    cluster.set_node(node("n1", labels={"zone": "a"}))
    cluster.set_node(node("n2", labels={"zone": "a"}))
    heir = pod("heir", nominated_node="n2", anti_affinity=[anti("zone", namespace_selector=TEAM_A)])
    cluster.set_pod(heir)
    cluster.nominate(heir)
    cluster.relief.take()
    happens(cluster, heir)
    relief = cluster.relief.take()
    assert [cluster.capacity.names[row] for row in relief.rows] == names
    assert relief.everywhere


@pytest.mark.parametrize(
    ("happens", "all_asked"),
    [
        (node_added, False),
        (node_changed, False),
        (forbidding_node_gone, True),
        (node_relabelled_beside_it, True),
        (namespace_relabelled, True),
        pytest.param(lambda it: it.set_node(node("n1", labels={"zone": "a"}, taints=[taint("t")])), True, id="tainted"),
    ],
)
def test_any_answer_about_pods_may_change_with_labels_and_taints_and_the_end_of_a_node(cluster, happens, all_asked):
    """A new node is empty and opens no other node; otherwise each one would cause a retry of thousands of gangs."""
    cluster.set_node(node("n1", labels={"zone": "a"}))
    cluster.set_node(node("n2", labels={"zone": "a"}))
    cluster.set_namespace("other", (("team", "a"),))
    cluster.tallies.of([of_term(anti("zone"))])
    cluster.relief.take()
    happens(cluster)
    assert cluster.relief.take().all_asked is all_asked


def test_nothing_gets_better_where_only_something_was_taken_or_no_anti_affinity_stands(cluster):
    cluster.set_node(node("n1", labels={"zone": "a"}))
    cluster.set_node(node("n2"))
    cluster.relief.take()
    cluster.set_pod(pod("a", node="n1"))
    cluster.set_pod(pod("b"))
    cluster.assume("uid-default/b", "n1")
    cluster.set_namespace("other", (("team", "a"),))
    cluster.set_namespace("other", (("team", "a"),))
    cluster.remove_namespace("other")
    cluster.remove_namespace("other")
    cluster.remove_node("n2")
    assert not cluster.relief


# Self-check


THERE = pod("a", node="n1", host_ports=[80], anti_affinity=[anti()])


def two_nodes(cluster):
    cluster.set_node(node("n1", cpu=8, labels={HOST: "n1"}))
    cluster.set_node(node("n2", cpu=8, labels={HOST: "n2"}))
    cluster.set_pod(THERE)
    cluster.set_pod(pod("b"))
    cluster.assume("uid-default/b", "n1")
    cluster.set_pod(pod("default/", uid="place"))
    cluster.assume("place", "n2")
    heir = pod("heir", nominated_node="n2")
    cluster.set_pod(heir)
    cluster.nominate(heir)
    cluster.labels.rank()
    cluster.labels.domains(HOST)
    accepting(cluster, shape(node_selector={HOST: "n1"}))
    return cluster


def node_replaced(**fields):
    def change(cluster):
        cluster.nodes["n1"] = node("n1", **{"cpu": 8, "labels": {HOST: "n1"}, **fields})

    return change


def replaced(uid, **fields):
    def change(cluster):
        cluster.pods[uid] = replace(cluster.pods[uid], **fields)

    return change


@pytest.mark.parametrize(
    ("break_it", "found"),
    [
        pytest.param(replaced("uid-default/a", shape=shape(cpu=2)), "uid-default/a: claims Bound n1", id="resized"),
        pytest.param(
            replaced("uid-default/a", shape=replace(THERE.shape, anti_affinity=())),
            "uid-default/a: claims Bound n1",
            id="other terms",
        ),
        pytest.param(replaced("uid-default/a", node="n2"), "uid-default/a: claims Bound n1", id="elsewhere"),
        pytest.param(replaced("uid-default/a", phase=PodPhase.FAILED), "uid-default/a: claims Bound n1", id="ended"),
        pytest.param(replaced("uid-default/b", node="n1"), "uid-default/b: claims Assumed n1", id="bound"),
        pytest.param(replaced("uid-default/b", name=""), "uid-default/b: claims Assumed n1", id="nameless"),
        pytest.param(replaced("uid-default/heir", nominated_node=""), "heir: claims Nominated n2", id="not nominated"),
        pytest.param(lambda it: it.pods.pop("uid-default/b"), "uid-default/b: claims Assumed n1", id="gone"),
        pytest.param(lambda it: it.ledger.release("uid-default/a"), "uid-default/a: is on n1 and", id="no claim"),
        pytest.param(lambda it: it.forget("place"), "place: a placeholder without a claim", id="no place"),
        pytest.param(lambda it: it.capacity.count(0, shape().requests), "n1: taken", id="taken"),
        pytest.param(lambda it: known_by(it, NodePorts).add(THERE, 0), "what NodePorts knows is not", id="ports"),
        pytest.param(
            lambda it: known_by(it, InterPodAffinity).remove(THERE, 0), "what InterPodAffinity knows is not", id="terms"
        ),
        pytest.param(lambda it: it.on_node["n1"].pop("uid-default/b"), "the lists of claims by node", id="lists"),
        pytest.param(lambda it: it.ledger.nominated.clear(), "the nominated claims", id="nominated"),
        pytest.param(lambda it: it.holdings.add(pod("default/")), "the amounts that namespaces hold", id="held"),
        pytest.param(lambda it: it.nodes.pop("n2"), "the rows are not those of the nodes", id="a node's row"),
        pytest.param(lambda it: it.labels.rank().fill(0), "the order of names", id="order"),
        pytest.param(lambda it: it.labels.domains(HOST).of_row.fill(0), "the domains of", id="domains"),
        pytest.param(node_replaced(labels={HOST: "n3"}), "labels and names by row are not", id="labels"),
        pytest.param(
            lambda it: it.nodes_by_row.by_label(HOST).set(0, "n3"),
            "labels and names by row are not",
            id="labels by row",
        ),
        pytest.param(node_replaced(cpu=3), "what nodes give is not what they say", id="allocatable"),
        pytest.param(node_replaced(taints=["a:NoSchedule"]), "what TaintToleration knows is not", id="taints"),
        pytest.param(node_replaced(unschedulable=True), "what NodeUnschedulable knows is not", id="cordon"),
    ],
)
def test_validate_finds_whatever_contradicts_the_nodes_and_the_pods(break_it, found):
    cluster = two_nodes(Cluster())
    assert cluster.validate() == []
    break_it(cluster)
    assert any(found in each for each in cluster.validate())


def test_a_port_that_nobody_takes_any_more_is_forgotten_with_its_row(cluster):
    """Regression: an empty entry remained for each row on which the port was ever in use."""
    cluster.set_node(node("n1"))
    cluster.set_pod(pod("a", node="n1", host_ports=[80]))
    cluster.remove_pod("uid-default/a")
    assert known_by(cluster, NodePorts).state() == ({}, {})


def test_pods_are_counted_again_only_when_a_question_about_the_labels_of_a_relabelled_namespace_is_asked(cluster):
    """Thousands of nodes or namespaces may be relabelled in a row; else each change would cost a scan of all pods."""
    cluster.set_node(node("a", labels={"zone": "east"}))
    cluster.set_pod(pod("x", node="a", labels={"app": "web"}))
    in_namespace, in_team = of_term(anti()), of_term(anti(namespaces=(), namespace_selector=TEAM_A))
    cluster.tallies.of([in_namespace])
    looks = cluster.tallies.examined
    cluster.set_node(node("a", labels={"zone": "west"}))
    cluster.set_namespace("default", (("team", "b"),))
    assert cluster.tallies.examined == looks
    row = cluster.capacity.rows["a"]
    assert cluster.tallies.of([in_namespace, in_team]) == {in_namespace: {row: 1}, in_team: {}}
    looks = cluster.tallies.examined
    for at in range(10):
        cluster.set_namespace(f"x{at}", (("team", "a"),))
    cluster.set_namespace("default", (("team", "a"),))
    assert cluster.tallies.examined == looks
    assert cluster.tallies.of([in_team]) == {in_team: {row: 1}}
    cluster.remove_namespace("default")
    assert cluster.tallies.of([in_team]) == {in_team: {}}


def test_a_new_question_about_a_label_examines_the_pods_that_have_it(cluster):
    """Each of a thousand groups may ask for its own pods, and would otherwise cost a scan of all."""
    cluster.set_node(node("a"))
    for at in range(50):
        cluster.set_pod(pod(f"x{at}", node="a", labels={"app": f"x{at}", "tier": "back"}))
    first, second = (of_term(anti(selector=(Requirement("app", "In", (f"x{at}",)),))) for at in range(2))
    cluster.tallies.of([first])
    looks, row = cluster.tallies.examined, cluster.capacity.rows["a"]
    assert cluster.tallies.of([second]) == {second: {row: 1}}
    assert cluster.tallies.examined <= looks + 2
    cluster.tallies.add(pod("y", labels={"app": "y"}), row)
    assert cluster.tallies.contradictions() == ["pods are not known by their label app"]
    cluster.tallies.remove(pod("y", labels={"app": "y"}), row)
