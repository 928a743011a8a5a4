from __future__ import annotations

import numpy as np
import pytest

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Viewer
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.quantity import MAX_AMOUNT
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import HostPort, PodTerm
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MOST, MemberClass
from gangsched.core.planning.filling import classify
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.row_cache import MOST_CACHED
from gangsched.core.planning.topology import RecentRequests
from tests.builders import GPU, node, pod, shape
from tests.verdicts import class_of, closed

SHUNS_ZONE = PodTerm(topology_key="zone", selector=(), namespaces=("default",))
SHUNS_RACK = PodTerm(topology_key="rack", selector=(), namespaces=("default",))
SHUNS_OTHERS = PodTerm(topology_key="zone", selector=(), namespaces=("other",))


def see_nominated(cluster, heir):
    cluster.set_pod(heir)
    cluster.nominate(heir)


def member(*args, **fields):
    return MemberClass(shape(*args, **fields))


def caps(snapshot, asked):
    return snapshot.caps(asked).tolist()


def test_taking_what_no_node_ever_had_is_an_error(cluster_of):
    snapshot = Snapshot(cluster_of(node("n1")))
    with pytest.raises(ValueError, match="no node has ever had all of"):
        snapshot.take(0, member(None, gpu=1), 1)


def test_the_host_ports_of_a_pod_that_leaves_are_free_for_who_takes_its_place_until_that_is_undone(cluster_of):
    local, other = HostPort(80, ip="127.0.0.1"), HostPort(80, ip="10.0.0.1")
    cluster = cluster_of(
        node("n1"),
        pod("a", node="n1", host_ports=[local, 90]),
        pod("b", node="n1", host_ports=[other]),
    )
    snapshot = Snapshot(cluster)
    before = snapshot.mark()
    snapshot.leave([cluster.ledger.claims["uid-default/a"]])
    assert [caps(snapshot, member(host_ports=ports)) for ports in ([local], [90], [other], [80])] == [
        [1],
        [1],
        [0],
        [0],
    ]
    assert snapshot.fits(member(host_ports=[local]), 0)
    snapshot.take(0, member(host_ports=[90]), 1)
    assert [caps(snapshot, member(host_ports=ports)) for ports in ([local], [90])] == [[1], [0]]
    snapshot.undo(before)
    assert [caps(snapshot, member(host_ports=ports)) for ports in ([local], [90])] == [[0], [0]]
    snapshot.leave([cluster.ledger.claims["uid-default/a"]])
    assert caps(snapshot, member(host_ports=[90])) == [1]


@pytest.mark.parametrize(
    ("heir", "asked", "room"),
    [
        pytest.param({"cpu": 3}, {}, [5, 8, 8], id="its share"),
        pytest.param({"cpu": 3, "priority": 4}, {}, [8, 8, 8], id="nothing, if its priority is lower"),
        pytest.param({"requests": {"cpu": 3, "x.io/none": 1}}, {}, [5, 8, 8], id="its share, if no node has the rest"),
        pytest.param({"requests": {"x.io/none": 1}}, {"cpu": None}, [109, 110, 110], id="its place among pods"),
        pytest.param({"host_ports": [80]}, {"host_ports": [80]}, [0, 1, 1], id="its host port"),
        pytest.param({"anti_affinity": [SHUNS_ZONE]}, {"cpu": None}, [0, 0, 110], id="the domain that it wants alone"),
        pytest.param({"anti_affinity": [SHUNS_OTHERS]}, {}, [7, 8, 8], id="no domain to pods that it does not mean"),
        pytest.param({"anti_affinity": [SHUNS_RACK]}, {}, [7, 8, 8], id="no domain where its node has none"),
    ],
)
def test_a_nominated_pod_of_equal_or_higher_priority_keeps_all_that_it_asks_of_its_node(cluster_of, heir, asked, room):
    """Regression: a pod with a request for an unknown resource kept nothing, and anti-affinity was never kept."""
    zones = [node(name, labels={"zone": zone}) for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"))]
    cluster = cluster_of(*zones)
    see_nominated(cluster, pod("heir", nominated_node="n1", **{"priority": 5, **heir}))
    see_nominated(cluster, pod("heir-of-nothing", nominated_node="gone", priority=5, anti_affinity=[SHUNS_ZONE]))
    snapshot = Snapshot(cluster)

    def room_now():
        member = classify(snapshot, [pod("new", **asked)])["uid-default/new"]
        fits = [snapshot.fits(member, row) for row in range(3)]
        assert fits == [number > 0 for number in caps(snapshot, member)]
        return caps(snapshot, member)

    before = room_now()
    snapshot.stand_for(Viewer(5))
    assert room_now() == room
    snapshot.stand_for(Viewer(6))
    assert room_now() == before


def test_a_domain_that_a_pod_has_and_another_is_nominated_to_stays_closed_while_either_is_there(cluster_of):
    cluster = cluster_of(
        node("n1", labels={"zone": "a"}),
        node("n2", labels={"zone": "b"}),
        node("n3", labels={"zone": "c"}),
        pod("there", node="n1", anti_affinity=[SHUNS_ZONE]),
        pod("there-too", node="n3", anti_affinity=[SHUNS_ZONE]),
    )
    for name, where in (("first", "n1"), ("second", "n2")):
        see_nominated(cluster, pod(name, nominated_node=where, anti_affinity=[SHUNS_ZONE]))
    snapshot = Snapshot(cluster)

    def closed_to(name):
        found = closed(snapshot, class_of(snapshot, pod(name)), NodeReason.ANTI_AFFINITY)
        return {snapshot.name(row) for row in found}

    assert closed_to("new") == {"n1", "n3"}
    snapshot.stand_for(Viewer(0))
    assert closed_to("new") == {"n1", "n2", "n3"}
    assert closed_to("other/new") == set()
    snapshot.stand_for(Viewer(1))
    assert closed_to("new") == {"n1", "n3"}


def test_an_emptied_snapshot_has_the_same_nodes_without_any_pod_or_cordon(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=4, labels={"zone": "a"}),
        node("n2", cpu=2, unschedulable=True),
        pod("a", cpu=3, node="n1", host_ports=[80], anti_affinity=[SHUNS_ZONE]),
    )
    full = Snapshot(cluster)
    full.take(0, member("1"), 1)
    ever = full.emptied()
    assert not ever.counts_pods
    assert full.counts_pods
    assert caps(ever, member("1")) == [4, 2]
    assert caps(ever, class_of(ever, pod("new", host_ports=[80]))) == [1, 1]


def test_another_gang_begins_with_its_own_members_and_undo_returns_to_the_former_ones(cluster_of):
    snapshot = Snapshot(cluster_of(node("n1"), node("n2")))
    mark = snapshot.mark()
    snapshot.begin({"n2": 3, "gone": 1})
    assert snapshot.own.tolist() == [0, 3]
    snapshot.take(1, member(), 2)
    inner = snapshot.mark()
    snapshot.begin({})
    snapshot.take(0, member(), 1)
    assert snapshot.own.tolist() == [1, 0]
    snapshot.undo(inner)
    assert snapshot.own.tolist() == [0, 5]
    snapshot.undo(mark)
    assert snapshot.own.tolist() == [0, 0]


def test_fullness_is_the_largest_share_in_use_of_a_requested_resource(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=8, memory="8Gi", pods=10),
        node("n2", cpu=8, memory="8Gi", pods=10),
        node("n3", cpu=8, memory="8Gi", pods=10),
        pod("a", cpu=4, memory="6Gi", node="n1"),
        pod("b", cpu=6, node="n2"),
    )
    snapshot = Snapshot(cluster)
    rows = np.arange(3)
    assert snapshot.fullness(shape("1"))[rows].tolist() == [0.5, 0.75, 0.0]
    assert snapshot.fullness(shape("1", memory="1Gi"))[rows].tolist() == [0.75, 0.75, 0.0]
    assert snapshot.fullness(shape(None))[rows].tolist() == [0.1, 0.1, 0.0]
    assert snapshot.fullness(shape(None, gpu=1))[rows].tolist() == [0.0, 0.0, 0.0]
    assert snapshot.fullness(shape("1"))[rows[1:2]].tolist() == [0.75]


def test_the_pod_count_does_not_make_a_node_fuller_for_who_requests_something(cluster_of):
    snapshot = Snapshot(cluster_of(node("n1", cpu=8, pods=2), pod("a", cpu=2, node="n1")))
    assert snapshot.fullness(shape("1"))[np.array([0])].tolist() == [0.25]
    assert snapshot.fullness(shape(None))[np.array([0])].tolist() == [0.5]


def test_fullness_of_a_node_overcommitted_beyond_measure_is_a_large_number(cluster_of):
    huge = {"memory": MAX_AMOUNT}
    cluster = cluster_of(node("n1", memory=MAX_AMOUNT), *(pod(f"a-{at}", requests=huge, node="n1") for at in range(3)))
    assert Snapshot(cluster).fullness(shape(None, memory=1))[np.array([0])].tolist() == [2.0]


def test_amounts_are_by_column_and_none_where_a_resource_is_unheard_of(cluster_of):
    cluster = cluster_of(node("n1", gpu=1))
    columns = cluster.capacity.columns
    snapshot = Snapshot(cluster)
    assert snapshot.resources.amounts(member("1", gpu=2)) == {columns["cpu"]: 1000, columns[GPU]: 2, columns["pods"]: 1}
    assert snapshot.resources.amounts(member(requests={"x.io/unheard-of": 1})) == {}


def test_room_is_bounded_so_that_sums_over_nodes_cannot_overflow(cluster_of):
    cluster = cluster_of(node("n1", pods=MAX_AMOUNT), node("n2", pods=MAX_AMOUNT), node("n3", memory=MAX_AMOUNT))
    room = Snapshot(cluster).caps(member(None))
    assert room.tolist() == [MOST, MOST, 110]
    assert int(room.sum()) == 2 * MOST + 110


def test_of_thousands_of_classes_only_the_last_are_kept_and_all_are_right():
    cluster = Cluster()
    cluster.set_node(node("n1", cpu=1000, pods=5000))
    snapshot = Snapshot(cluster)
    for number in range(1, 2 * MOST_CACHED):
        assert snapshot.caps(member(number)).tolist() == [1000 // number]
    assert snapshot.caps(member(1)).tolist() == [1000]
    assert len(snapshot._caps._known) == MOST_CACHED  # noqa: SLF001 - memory shows nowhere else


def test_the_nodes_without_pods_are_made_once_for_all_refusals_and_stay_empty():
    """Regression: they were rebuilt and planned on again for each refusal of a scheduling cycle."""
    cluster = Cluster()
    cluster.set_node(node("n1", cpu=4))
    cluster.set_pod(pod("there", cpu=4, node="n1"))
    snapshot = Snapshot(cluster)
    bare = snapshot.emptied()
    whole = bare.free.copy()
    for cpu, never in ((1, False), (3, False), (5, True)):
        found = place(snapshot, Ask(members=[pod("a", cpu=cpu)], need=1))
        assert isinstance(found, Refusal)
        assert found.never is never
        assert snapshot.emptied() is bare
        assert (bare.free == whole).all()


def test_whether_a_gang_could_ever_fit_is_found_out_once_until_the_nodes_change(monkeypatch):
    """Regression: each refusal in each call planned on the empty nodes again, though only nodes decide the result."""
    planned: list[Snapshot] = []
    emptied = Snapshot.emptied

    def counted(snapshot: Snapshot) -> Snapshot:
        planned.append(snapshot)
        return emptied(snapshot)

    monkeypatch.setattr(Snapshot, "emptied", counted)
    cluster, recent = Cluster(), RecentRequests()
    cluster.set_node(node("n1", cpu=4))

    def never(cpu: int) -> bool:
        found = place(Snapshot(cluster), Ask(members=[pod("a", cpu=cpu)], need=1), recent)
        assert isinstance(found, Refusal)
        return found.never

    assert [never(5), never(5)] == [True, True]
    cluster.set_pod(pod("there", cpu=4, node="n1"))
    assert [never(5), never(1), never(1)] == [True, False, False]
    assert len(planned) == 2
    cluster.set_node(node("n2", cpu=5))
    cluster.set_pod(pod("here", cpu=5, node="n2"))
    assert [never(5), never(5)] == [False, False]
    assert len(planned) == 3
    cluster.remove_node("n2")
    assert never(5)
    assert len(planned) == 4


def test_what_is_reserved_for_many_groups_is_counted_at_its_price(cluster_of):
    """Regression: a call went on for twice its time, because counting what others have reserved cost nothing."""
    members = [pod(f"h{at}") for at in range(40)]
    cluster = cluster_of(*(node(f"n{at}") for at in range(40)), *members)
    for at in range(20):
        places = [(members[each], f"n{each}") for each in (2 * at, 2 * at + 1)]
        cluster.ledger.reserve(GroupKey("default", f"h{at}"), places, ())
    snapshot = Snapshot(cluster)
    before = snapshot.budget.spent
    snapshot.stand_for(Viewer(0))
    all_of_them = snapshot.budget.spent - before
    snapshot.stand_for(Viewer(0))
    again = snapshot.budget.spent - before - all_of_them
    snapshot.stand_for(Viewer(0, hidden=frozenset({GroupKey("default", "h1")})))
    but_one = snapshot.budget.spent - before - all_of_them - again
    assert again == 0 < but_one < all_of_them
