from __future__ import annotations

import pytest

from gangsched.core.objects.quantity import MAX_AMOUNT
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Obstacle, Refusal, fragmented, obstacles, shortage
from gangsched.core.status.explanation import refused as told
from tests.builders import GPU, node, pod, shape

ANTI = PodTerm(topology_key="zone", selector=(), namespaces=("default",))


def member(*args, **fields):
    return MemberClass(shape(*args, **fields))


def refuse(cluster, members, *, need=None):
    found = place(Snapshot(cluster), Ask(members=members, need=len(members) if need is None else need))
    assert isinstance(found, Refusal), found
    return found


def gang(number, **fields):
    return [pod(f"m{at}", **fields) for at in range(number)]


def counted(found):
    return {(obstacle.reason, obstacle.resource): obstacle.nodes for obstacle in found}


def test_obstacles_are_counted_per_reason(cluster_of):
    cluster = cluster_of(
        node("cordoned", unschedulable=True, gpu=1, taints=["a:NoSchedule"]),
        node("tainted-1", taints=["a:NoSchedule"], gpu=1),
        node("tainted-2", taints=["a:NoExecute"], gpu=1),
        node("tainted-3", taints=["a:NoSchedule"], gpu=1),
        node("elsewhere-1", labels={"disk": "slow"}, gpu=1),
        node("elsewhere-2", gpu=1),
        node("small-1", cpu="500m", labels={"disk": "fast"}),
        node("small-2", labels={"disk": "fast"}),
        node("full", cpu=8, pods=1, gpu=1, labels={"disk": "fast"}),
        node("port", gpu=1, labels={"disk": "fast"}),
        node("strict", gpu=1, labels={"disk": "fast", "zone": "a"}),
        node("good", gpu=1, labels={"disk": "fast"}),
        pod("a", node="full"),
        pod("b", node="port", host_ports=[80]),
        pod("c", node="elsewhere-1", host_ports=[80]),
        pod("d", node="strict", anti_affinity=[ANTI]),
    )
    asked = shape("1", gpu=1, node_selector={"disk": "fast"}, host_ports=[80])
    snapshot = Snapshot(cluster)
    seen = [plan.sees(pod("new")) for plan in snapshot.selective()]
    found = obstacles(snapshot, MemberClass(asked, tuple(filter(None, seen))))
    assert counted(found) == {
        (NodeReason.UNSCHEDULABLE, ""): 1,
        (NodeReason.TAINT, "a:NoExecute, a:NoSchedule"): 3,
        (NodeReason.AFFINITY, "nodeSelector disk=fast"): 2,
        (NodeReason.INSUFFICIENT, "cpu"): 1,
        (NodeReason.INSUFFICIENT, GPU): 2,
        (NodeReason.TOO_MANY_PODS, ""): 1,
        (NodeReason.HOST_PORT, "80/TCP"): 1,
        (NodeReason.ANTI_AFFINITY, "zone (a): default/a"): 1,
    }
    assert [obstacle.nodes for obstacle in found] == [3, 2, 2, 1, 1, 1, 1, 1]


def test_nodes_that_are_gone_are_no_obstacle(cluster_of):
    cluster = cluster_of(node("n1"), node("n2"))
    cluster.remove_node("n1")
    assert obstacles(Snapshot(cluster), member("99")) == (Obstacle(NodeReason.INSUFFICIENT, 1, "cpu"),)


def test_an_unheard_of_resource_is_an_obstacle_on_every_node_that_accepts(cluster_of):
    cluster = cluster_of(node("n1"), node("n2"), node("n3", unschedulable=True))
    assert counted(obstacles(Snapshot(cluster), member(requests={"x.io/y": 1}))) == {
        (NodeReason.INSUFFICIENT, "x.io/y"): 2,
        (NodeReason.UNSCHEDULABLE, ""): 1,
    }


def test_a_refusal_tells_what_nodes_answer_once_those_that_fit_are_placed(cluster_of):
    cluster = cluster_of(node("n1", cpu=2), node("n2", cpu=3), node("n3", cpu=8, unschedulable=True))
    refused = refuse(cluster, gang(5, cpu=2))
    assert refused.fits == 2
    assert counted(refused.obstacles) == {(NodeReason.INSUFFICIENT, "cpu"): 2, (NodeReason.UNSCHEDULABLE, ""): 1}
    assert refused.lacking == ("cpu",)
    assert refused.nodes == 3


def test_a_host_port_that_the_gang_itself_takes_is_an_obstacle(cluster_of):
    refused = refuse(cluster_of(node("n1"), node("n2")), gang(3, host_ports=[80]))
    assert counted(refused.obstacles) == {(NodeReason.HOST_PORT, "80/TCP"): 2}
    assert not refused.fragmented
    assert refused.lacking == ()


@pytest.mark.parametrize(
    ("counts", "short"),
    [
        pytest.param({member("1"): 8}, (), id="just enough"),
        pytest.param({member("1"): 11}, (("cpu", 3000),), id="too little of one resource"),
        pytest.param({member("1", gpu=1): 11}, (("cpu", 3000), (GPU, 9)), id="of two"),
        pytest.param({member("1"): 6, member("2"): 2}, (("cpu", 2000),), id="of two classes together"),
        pytest.param({member("1", tolerations=[""]): 11}, (), id="where more nodes accept them"),
        pytest.param({member("1", tolerations=[""]): 1, member("2"): 5}, (), id="or accept one of the classes"),
        pytest.param({member("1", node_selector={"zone": "x"}): 1}, (("cpu", 1000),), id="where none accepts them"),
        pytest.param({member(requests={"x.io/y": 2}): 3}, (("x.io/y", 6),), id="of what no node has"),
        pytest.param({member(None): 999}, (), id="nothing is asked"),
    ],
)
def test_the_shortage_is_what_is_asked_beyond_what_is_free_where_it_is_accepted(cluster_of, counts, short):
    cluster = cluster_of(
        node("n1", cpu=5, gpu=2),
        node("n2", cpu=3),
        node("n3", cpu=8, taints=["a:NoSchedule"]),
        node("n4", cpu=1),
        pod("over", cpu=4, node="n4"),
    )
    assert shortage(Snapshot(cluster), counts) == short


def test_nothing_is_short_where_pods_close_all_nodes_to_others(cluster_of):
    """All that was asked was missing, and whoever held a little of it was named: 15.8 of 16 CPUs were free."""
    anti = [PodTerm("hostname", (), ("default",))]
    nodes = [node(name, labels={"hostname": name}) for name in ("n1", "n2")]
    by = [pod(f"by-{each.name}", group="", cpu=0.1, node=each.name, anti_affinity=anti) for each in nodes]
    closed = cluster_of(*nodes, *by)
    found = refuse(closed, gang(2))
    assert counted(found.obstacles) == {(NodeReason.ANTI_AFFINITY, "hostname: default/by-n1, default/by-n2"): 2}
    assert found.short == ()


def test_a_shortage_of_absurd_amounts_is_exact(cluster_of):
    cluster = cluster_of(node("n1", memory=MAX_AMOUNT), node("n2", memory=MAX_AMOUNT))
    counts = {member(None, memory=MAX_AMOUNT): 1000}
    assert shortage(Snapshot(cluster), counts) == (("memory", 998 * MAX_AMOUNT),)


def test_the_shortage_is_that_of_the_smallest_members_that_would_be_enough(cluster_of):
    cluster = cluster_of(node("n1", cpu=3), node("n2", cpu=3))
    members = [pod("big", cpu=9), *gang(4, cpu=2)]
    assert refuse(cluster, members, need=4).short == (("cpu", 2000),)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param(member("4"), True, id="every node that accepts it has too small a piece"),
        pytest.param(member("4", memory="1Gi"), True, id="of one resource or the other"),
        pytest.param(member("4", tolerations=[""]), False, id="one has enough"),
        pytest.param(member("4", node_selector={"zone": "x"}), False, id="none accepts it"),
        pytest.param(member(requests={"x.io/y": 1}), True, id="a resource that no node has"),
    ],
)
def test_fragmented_means_that_the_accepting_nodes_have_too_little_each(cluster_of, asked, said):
    cluster = cluster_of(
        node("n1", cpu=3), node("n2", cpu=3), node("n3", cpu=8, taints=["a:NoSchedule"]), node("n4", cpu=8, memory=0)
    )
    cluster.remove_node("n4")
    assert fragmented(Snapshot(cluster), asked) is said


def test_enough_in_all_is_not_called_fragmented_where_a_port_is_what_stands_in_the_way(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=1), node("n2", cpu=8), pod("a", node="n1"), pod("b", node="n2", host_ports=[80])
    )
    refused = refuse(cluster, gang(1, host_ports=[80]))
    assert refused.short == ()
    assert not refused.fragmented
    assert counted(refused.obstacles) == {(NodeReason.INSUFFICIENT, "cpu"): 1, (NodeReason.HOST_PORT, "80/TCP"): 1}


def test_too_little_in_all_is_not_called_fragmented(cluster_of):
    refused = refuse(cluster_of(node("n1", cpu=3), node("n2", cpu=3)), gang(4, cpu=2))
    assert refused.short == (("cpu", 2000),)
    assert not refused.fragmented


def test_the_failing_class_is_that_of_the_first_member_left_out(cluster_of):
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4))
    members = [pod("a", cpu=1), pod("b", cpu=4), pod("c", cpu=4)]
    refused = refuse(cluster, members)
    assert refused.failing.shape == members[1].shape
    assert refused.fits == 2
    assert {one.shape for one in refused.classes} == {members[0].shape, members[1].shape}


@pytest.mark.parametrize(("held", "never"), [(3, False), (0, True)])
def test_never_means_not_even_on_empty_nodes(cluster_of, held, never):
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4), pod("a", cpu=held, node="n1"))
    assert refuse(cluster, gang(9 if never else 8)).never is never


def test_a_cordon_passes_and_a_taint_of_the_administrators_does_not(cluster_of):
    assert not refuse(cluster_of(node("n1", cpu=4), node("n2", cpu=4, unschedulable=True)), gang(5)).never
    assert refuse(
        cluster_of(node("n1", cpu=4), node("n2", cpu=4, taints=["dedicated=other:NoSchedule"])), gang(5)
    ).never


WEB = PodTerm(topology_key="zone", selector=(Requirement("app", "In", ("web",)),), namespaces=("default",))


@pytest.mark.parametrize(
    ("others", "members", "number"),
    [
        pytest.param([], gang(2, affinity=[WEB]), 0, id="they are nowhere"),
        pytest.param([pod("w", labels={"app": "web"}, node="n1")], gang(9, affinity=[WEB]), 2, id="they are there"),
        pytest.param([pod("w", labels={"app": "web"}, node="n2")], gang(2, affinity=[WEB]), 0, id="outside any domain"),
        pytest.param([], [pod("w", cpu=9, labels={"app": "web"}), *gang(2, affinity=[WEB])], 3, id="among the members"),
        pytest.param([], gang(9, cpu=2, affinity=[WEB], labels={"app": "web"}), 5, id="each other"),
        pytest.param([], gang(2, cpu=99, affinity=[WEB], labels={"app": "web"}), 2, id="each other, and none is there"),
        pytest.param([], [*gang(1, affinity=[WEB]), pod("other", cpu=99)], 0, id="of one of several"),
    ],
)
def test_no_new_node_is_asked_for_before_the_pods_that_affinity_asks_for_are_there(cluster_of, others, members, number):
    cluster = cluster_of(node("n1", cpu=8, labels={"zone": "a"}), node("n2", cpu=8), *others)
    refused = refuse(cluster, members)
    assert sum(each.count for each in refused.demand) == number
    assert refused.waits_for_pods is (number == 0)
    said = "; a new node would not help before the pods that their affinity asks for are there"
    assert (said in told(refused)) is (number == 0)
