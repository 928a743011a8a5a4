from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import Preference
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.strategies import STRATEGIES
from tests.builders import node, pod


def gang(number, **fields):
    return [pod(f"m{at}", created=float(at), **fields) for at in range(number)]


def ask(members, *, need=None, strategy="Pack", **fields):
    need = len(members) if need is None else need
    return Ask(members=members, need=need, strategy=STRATEGIES[strategy], **fields)


def run(cluster, members, **fields):
    return place(Snapshot(cluster), ask(members, **fields))


def spread_over(found):
    """The number of members on each node."""
    assert isinstance(found, Placement), found
    counts: dict[str, int] = {}
    for _, name in found.assignments:
        counts[name] = counts.get(name, 0) + 1
    return counts


# Strategies


def test_the_scarcest_requested_resource_decides_best_fit_and_most_used(cluster_of):
    """GPUs are scarcer than CPUs here: judged by CPUs, the other node would be the tighter and fuller one."""
    cluster = cluster_of(
        node("a", cpu=64, gpu=8),
        node("b", cpu=64, gpu=4),
        pod("old-a", cpu=50, gpu=4, node="a"),
        pod("old-b", cpu=3, gpu=3, node="b"),
    )
    wanted = [pod("m", gpu=1)]
    assert spread_over(run(cluster, wanted, strategy="BestFit")) == {"b": 1}
    assert spread_over(run(cluster, wanted, strategy="MostUsed")) == {"a": 1}
    assert spread_over(run(cluster, [pod("m", cpu=1)], strategy="BestFit")) == {"a": 1}


@pytest.mark.parametrize("strategy", ["BestFit", "MostUsed"])
def test_a_node_without_room_is_no_fit_however_little_is_left_of_it(cluster_of, strategy):
    cluster = cluster_of(node("a", gpu=4), node("b", gpu=8), pod("old", gpu=4, node="a"))
    assert spread_over(run(cluster, [pod("m", gpu=1)], strategy=strategy)) == {"b": 1}
    assert isinstance(run(cluster, [pod("m", gpu=9)], strategy=strategy), Refusal)


def test_nodes_that_are_preferred_by_label_come_first_and_the_others_are_used_all_the_same(cluster_of):
    cluster = cluster_of(
        node("dear", cpu=4, labels={"cost": "5"}),
        node("cheap", cpu=4, labels={"cost": "1"}),
        node("unknown", cpu=4),
        pod("old", cpu=1, node="dear"),
    )
    prefer = (Preference("cost", "Ascending"),)
    assert spread_over(run(cluster, gang(3), prefer=prefer)) == {"cheap": 3}
    assert spread_over(run(cluster, gang(9), prefer=prefer)) == {"cheap": 4, "dear": 3, "unknown": 2}


def test_a_second_wish_decides_only_among_nodes_that_are_equal_by_the_first(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=1, labels={"pool": "b", "cost": "1"}),
        node("n2", cpu=1, labels={"pool": "a", "cost": "2"}),
        node("n3", cpu=1, labels={"pool": "a", "cost": "1"}),
        node("n4", cpu=1),
    )
    prefer = (Preference("pool", values=("a", "b")), Preference("cost", "Ascending"))
    found = [sorted(spread_over(run(cluster, gang(count), prefer=prefer))) for count in (1, 2, 3)]
    assert found == [["n3"], ["n2", "n3"], ["n1", "n2", "n3"]]


def test_gpus_are_what_matters_to_whoever_asks_for_them_however_scarce_cpus_are(cluster_of):
    cluster = cluster_of(
        node("many-free", cpu=16, extra={"amd.com/gpu": "8"}),
        node("one-free", cpu=32, extra={"amd.com/gpu": "1"}),
        node("no-gpu", cpu=4),
    )
    wanted = [pod("m", requests={"cpu": "8", "amd.com/gpu": "1"})]
    assert spread_over(run(cluster, wanted, strategy="BestFit")) == {"one-free": 1}


def test_scarce_counts_only_nodes_that_accept_the_members_and_no_debts(cluster_of):
    """The closed node has plenty of slots; the overcommitted node lacks more CPUs than the others have free."""
    slots = "example.com/slot"
    cluster = cluster_of(
        node("closed", cpu=64, extra={slots: "1000"}, unschedulable=True),
        node("owing", cpu=1, extra={slots: "9"}),
        node("a", cpu=32, extra={slots: "6"}),
        node("b", cpu=32, extra={slots: "6"}),
        pod("old", cpu=60, node="owing"),
        pod("old-a", requests={"cpu": "1", slots: "4"}, node="a"),
        pod("old-b", requests={"cpu": "8"}, node="b"),
    )
    wanted = [pod("m", requests={"cpu": "1", slots: "1"})]
    assert spread_over(run(cluster, wanted, strategy="BestFit")) == {"a": 1}


class Nothing:
    """A strategy that places no member, like a broken plug-in."""

    def distribute(self, _room, _count):
        return []


def test_a_gang_whose_strategy_finds_nothing_is_packed(cluster_of):
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4))
    found = place(Snapshot(cluster), Ask(members=gang(5), need=5, strategy=Nothing()))
    assert spread_over(found) == {"n1": 4, "n2": 1}


def test_a_changed_label_changes_what_is_preferred(cluster_of):
    cluster = cluster_of(node("a", labels={"cost": "1"}), node("b", labels={"cost": "2"}))
    prefer = (Preference("cost", "Ascending"),)
    assert spread_over(run(cluster, gang(1), prefer=prefer)) == {"a": 1}
    cluster.set_node(node("a", labels={"cost": "3"}))
    assert spread_over(run(cluster, gang(1), prefer=prefer)) == {"b": 1}
    cluster.set_node(node("c", labels={"cost": "0"}))
    assert spread_over(run(cluster, gang(1), prefer=prefer)) == {"c": 1}
    cluster.remove_node("c")
    assert spread_over(run(cluster, gang(1), prefer=prefer)) == {"b": 1}


def test_spread_counts_the_members_that_are_bound_already(cluster_of):
    cluster = cluster_of(*(node(f"n{at}", cpu=8) for at in range(3)))
    found = run(cluster, gang(2), strategy="Spread", own={"n0": 1, "n1": 1, "gone": 4})
    assert spread_over(found) == {"n2": 1, "n0": 1}


def test_spread_counts_members_of_all_classes_together(cluster_of):
    cluster = cluster_of(node("n0", cpu=8), node("n1", cpu=8))
    members = [*gang(1), pod("other", cpu=2), pod("third", cpu=3)]
    assert sorted(spread_over(run(cluster, members, strategy="Spread")).values()) == [1, 2]


def test_one_gangs_members_do_not_count_as_anothers_own(cluster_of):
    cluster = cluster_of(node("n0", cpu=8), node("n1", cpu=8))
    snapshot = Snapshot(cluster)
    first = place(snapshot, ask(gang(1), strategy="Spread"))
    second = place(snapshot, ask([pod("b0", cpu=2)], strategy="Spread"))
    assert spread_over(first) == {"n0": 1}
    assert spread_over(second) == {"n1": 1}
    third = place(snapshot, ask([pod("c0", cpu=5)], strategy="Pack"))
    assert spread_over(third) == {"n1": 1}


# Room


def test_a_resource_that_no_node_has_fits_never(cluster_of):
    refused = run(cluster_of(node("n1")), gang(2, requests={"x.io/unheard-of": 1}))
    assert (refused.fits, refused.never) == (0, True)
    assert refused.short == (("x.io/unheard-of", 2),)


def test_enough_in_sum_but_not_per_node_is_refused_with_the_largest_number_that_fits(cluster_of):
    cluster = cluster_of(*(node(f"n{at}", cpu=3) for at in range(4)))
    refused = run(cluster, gang(6, cpu=2))
    assert (refused.wanted, refused.fits) == (6, 4)
    assert refused.short == ()
    assert refused.fragmented


# Constraints


def test_equal_classes_are_one_object(cluster_of):
    snapshot = Snapshot(cluster_of(node("n1")))
    classes = classify(snapshot, [*gang(3), pod("x", cpu=2)])
    assert len({id(member) for member in classes.values()}) == 2
    assert classes["uid-default/m0"] is classes["uid-default/m2"]


# Quorum (contract rule 8)


# What is left behind


@pytest.mark.parametrize(
    ("resource", "amount", "fits"),
    [
        pytest.param("alpha.kubernetes.io/nvidia-gpu", 1, True, id="as large as the one that is there"),
        pytest.param("alpha.kubernetes.io/nvidia-gpu", 101, False, id="too many GPUs"),
        pytest.param("tencent.cr/tencentip", 101, False, id="too many addresses"),
    ],
)
def test_any_resource_counts_as_in_tenstacks_table(cluster_of, resource, amount, fits):
    gpu, address = "alpha.kubernetes.io/nvidia-gpu", "tencent.cr/tencentip"
    one = {"cpu": 1, gpu: 1, address: 1}
    cluster = cluster_of(
        node("n1", cpu=10, pods=100, extra={gpu: 10, address: 20}), pod("there", group="", requests=one, node="n1")
    )
    found = run(cluster, [pod("m0", requests=one | {resource: amount})])
    assert isinstance(found, Placement) == fits


@pytest.mark.parametrize("idle", [True, False])
def test_a_resource_that_nobody_uses_yet_is_there_for_a_gang(cluster_of, idle):
    """Unlike tenstack's scheduler, which treats a resource that no pod has requested as missing."""
    used = [] if idle else [pod("there", group="", gpu=1, node="n1")]
    cluster = cluster_of(node("n1", gpu=4), node("n2", gpu=4), *used)
    assert isinstance(run(cluster, gang(6, gpu=1)), Placement)
