"""CSIStorageCapacity: kube-scheduler's rule for one pod, less the capacity reserved for earlier members."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.objects.prebindings import SelectNode, ShareVolume
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import NodeTerm, Requirement
from gangsched.core.objects.volumes import CsiDriver, StorageCapacity, StorageClass
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from gangsched.core.planning.needed_prebindings import prebindings
from tests.builders import claim, node, pod, volume
from tests.core.test_volumes import known, provide, refused, withdraw
from tests.verdicts import class_of

LATER = StorageClass("later", "csi", waits=True, provisions=True)
TELLS = CsiDriver("csi", capacity=True)
NODES = [node(f"{zone}{at}", cpu="64", labels={"zone": zone}) for zone in "ab" for at in range(2)]
IN_A = NodeTerm((Requirement("zone", "In", ("a",)),))
IN_B = NodeTerm((Requirement("zone", "In", ("b",)),))


def segment(name: str, topology: NodeTerm | None, capacity: int | None = None, **fields) -> StorageCapacity:
    return StorageCapacity(
        "kube-system", name, **{"storage_class": "later"} | fields, topology=topology, capacity=capacity
    )


def wanting(*sizes: int, name: str = "x", **fields) -> list[object]:
    """A pod and its claims with these sizes."""
    claims = [
        claim(f"default/{name}-{at}", storage_class="later", size=size, uid=f"{name}-{at}", **fields)
        for at, size in enumerate(sizes)
    ]
    return [*claims, pod(f"default/{name}", volume_claims=[each.name for each in claims])]


def rooms(cluster: Cluster, asking) -> dict[str, int]:
    snapshot = Snapshot(cluster)
    caps = snapshot.caps(class_of(snapshot, asking))
    return {name: min(int(caps[row]), 9) for name, row in cluster.capacity.rows.items()}


@pytest.mark.parametrize(
    ("there", "accepting"),
    [
        ([TELLS], ""),
        ([], "ab"),
        ([CsiDriver("csi")], "ab"),
        ([CsiDriver("another", capacity=True)], "ab"),
        ([TELLS, segment("a", IN_A, 5)], "a"),
        ([TELLS, segment("a", IN_A, 4)], ""),
        ([TELLS, segment("a", IN_A, 4), segment("larger", IN_A, 5)], "a"),
        ([TELLS, segment("a", IN_A)], ""),
        ([TELLS, segment("a", None, 9)], ""),
        ([TELLS, segment("a", IN_A, 9, storage_class="another")], ""),
        ([TELLS, segment("a", IN_A, 9, largest=4)], ""),
        ([TELLS, segment("a", IN_A, 1, largest=5)], "a"),
        ([TELLS, segment("a", IN_A, None, largest=5)], "a"),
        ([TELLS, segment("a", IN_A, 9), segment("b", IN_B, 5)], "ab"),
    ],
)
def test_a_node_takes_a_claim_if_one_of_its_segments_is_large_enough(there, accepting):
    cluster = known(*NODES, LATER, *there, *wanting(5))
    why = refused(cluster, pod("default/x", volume_claims=["x-0"]))
    assert {name[0] for name in cluster.nodes.keys() - why.keys()} == {*accepting}
    assert set(why.values()) <= {NodeReason.STORAGE_CAPACITY}


def test_a_claim_that_asks_for_no_amount_needs_no_storage():
    cluster = known(*NODES, LATER, TELLS, *wanting(0))
    assert not refused(cluster, pod("default/x", volume_claims=["x-0"]))


def test_a_class_of_a_plug_in_that_a_driver_has_replaced_is_not_limited():
    cluster = known(*NODES, StorageClass("later", "csi", waits=True, provisions=True, in_tree=True), TELLS)
    waiting, asking = wanting(5)
    provide(cluster, waiting)
    assert not refused(cluster, asking)


def test_a_claim_that_another_scheduler_has_given_a_node_needs_storage_there_too():
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, 4), *wanting(5, selected="a0"))
    asking = pod("default/x", volume_claims=["x-0"])
    assert refused(cluster, asking)["a0"] == NodeReason.STORAGE_CAPACITY
    provide(cluster, segment("a", IN_A, 5))
    assert "a0" not in refused(cluster, asking)


def test_storage_that_our_own_claim_may_have_taken_already_is_not_asked_for_again():
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, 0), *wanting(5, selected="a0", ours=True))
    assert "a0" not in refused(cluster, pod("default/x", volume_claims=["x-0"]))


@pytest.mark.parametrize(
    ("told", "sizes", "room"),
    [
        (segment("a", IN_A, 11), [5], 2),
        (segment("a", IN_A, 15), [5], 3),
        (segment("a", IN_A, 4, largest=5), [5], 1),
        (segment("a", IN_A, 15, largest=4), [5], 0),
        (segment("a", IN_A, None, largest=5), [5], 9),
        (segment("a", IN_A, 15), [5, 2], 2),
        (segment("a", IN_A, 13), [5, 2], 2),
        (segment("a", IN_A, 11), [5, 2], 1),
        (segment("a", IN_A, 5), [5, 5], 1),
        (segment("a", IN_A, 2**63 - 1), [2**63 - 1, 2**63 - 1], 9),
        (segment("a", IN_A, 2**61), [2**60, 2**60], 1),
        (segment("a", IN_A, -5), [5], 0),
    ],
)
def test_a_segment_has_room_for_as_many_members_as_its_storage_suffices_for(told, sizes, room):
    """Each claim of a pod is checked on its own, as in kube-scheduler: 5 are enough for a pod with two claims of 5."""
    cluster = known(*NODES, LATER, TELLS, told, *wanting(*sizes))
    found = rooms(cluster, cluster.pods["uid-default/x"])
    assert found == {"a0": room, "a1": room, "b0": 0, "b1": 0}


def test_what_members_take_of_a_segment_is_missing_on_all_its_nodes_and_comes_back():
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, 12), segment("b", IN_B, 5), *wanting(5))
    snapshot = Snapshot(cluster)
    member = class_of(snapshot, cluster.pods["uid-default/x"])
    before = snapshot.caps(member).tolist()
    mark = snapshot.mark()
    snapshot.take(cluster.capacity.rows["a0"], member, 1)
    assert snapshot.caps(member).tolist() == [1, 1, 1, 1]
    snapshot.take(cluster.capacity.rows["b1"], member, 1)
    assert snapshot.caps(member).tolist() == [1, 1, 0, 0]
    snapshot.take(cluster.capacity.rows["a1"], member, 1)
    assert snapshot.caps(member).tolist() == [0, 0, 0, 0]
    snapshot.undo(mark)
    assert snapshot.caps(member).tolist() == before == [2, 2, 1, 1]


def test_a_promise_counts_from_the_decision_until_the_claim_has_its_volume():
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, 12), *wanting(5, name="first"), *wanting(5))
    first, asking = cluster.pods["uid-default/first"], cluster.pods["uid-default/x"]
    asked = SelectNode("default", "first-0", "first-0", "a1")
    cluster.assume(first.uid, "a1", (asked,))
    assert rooms(cluster, asking)["a0"] == 1
    ordered = claim("default/first-0", storage_class="later", size=5, uid="first-0", selected="a1", ours=True)
    provide(cluster, ordered)
    assert rooms(cluster, asking)["a0"] == 1
    cluster.forget(first.uid)
    assert rooms(cluster, asking)["a0"] == 1, "what was written counts though no reservation asks for it any more"
    provide(cluster, claim("default/first-0", "v", storage_class="later", uid="first-0", selected="a1", ours=True))
    assert rooms(cluster, asking)["a0"] == 2
    provide(cluster, replace(ordered, ours=False))
    assert rooms(cluster, asking)["a0"] == 2, "another scheduler's order is no promise of ours"


def test_a_segment_that_grows_helps_those_that_wait_for_it_and_one_that_shrinks_does_not():
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, 3), *wanting(5))

    def helps(found) -> bool:
        cluster.relief.take()
        provide(cluster, found)
        return cluster.relief.take().everywhere

    assert helps(segment("a", IN_A, 5))
    assert not helps(segment("a", IN_A, 5))
    assert not helps(segment("a", IN_A, 4))
    assert not helps(segment("a", IN_A, 4, largest=2))
    assert helps(segment("a", IN_A, 4, largest=3))
    assert helps(segment("a", IN_B, 4, largest=3))
    assert helps(segment("a", IN_B, None, largest=3))
    assert not helps(segment("a", IN_B, 4, largest=3))
    assert helps(segment("a", IN_B, 4, largest=3, storage_class="another"))
    assert helps(CsiDriver("csi"))
    assert not helps(CsiDriver("csi"))
    waiting = claim("default/x-0", storage_class="later", size=5, uid="x-0")
    assert not helps(replace(waiting, selected="a0", ours=True))
    assert helps(waiting), "a promise that is taken back may help anybody"


def told(cluster: Cluster, asking) -> list[str]:
    snapshot = Snapshot(cluster)
    member = classify(snapshot, [asking])[asking.uid]
    rows = snapshot.cluster.capacity.rows
    for name in ("a0", "a1"):
        while snapshot.fits(member, rows[name]):
            snapshot.take(rows[name], member, 1)
    return [
        f"{int(where.sum())} {resource}"
        for plan in snapshot.plans
        for reason, resource, where in plan.refusals(member, np.arange(snapshot.size)[: len(rows)])
        if reason == NodeReason.STORAGE_CAPACITY and where.any()
    ]


GI = 1 << 30


def test_a_refusal_names_the_segment_what_is_left_there_and_what_was_promised():
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, 9 * GI), segment("b", IN_B, GI), *wanting(4 * GI))
    asking = cluster.pods["uid-default/x"]
    assert told(cluster, asking) == [
        "2 later (zone=a: 1Gi left after 2 promised volumes, 4Gi wanted)",
        "2 later (zone=b: 1Gi left, 4Gi wanted)",
    ]
    withdraw(cluster, segment("b", IN_B))
    assert told(cluster, asking)[0] == "2 later (no CSIStorageCapacity selects them; 4Gi wanted)"
    names = [NodeTerm((Requirement("kubernetes.io/hostname", "In", (name,)),)) for name in "abcde"]
    provide(cluster, segment("a", IN_A, None))
    several = known(LATER, TELLS, *wanting(4 * GI))
    for at, (name, where) in enumerate(zip("abcde", names, strict=True)):
        provide(several, node(f"a{at}", labels={"kubernetes.io/hostname": name}))
        provide(several, segment(name, where, at * GI // 2))
    assert told(several, several.pods["uid-default/x"]) == ["5 later (5 segments with at most 2Gi left; 4Gi wanted)"]


def sharing(cluster: Cluster, number: int, **fields) -> list:
    """Members that share one unbound claim."""
    provide(cluster, claim("default/shared", storage_class="later", size=5, uid="shared", **fields))
    members = [pod(f"default/s-{at}", volume_claims=["shared"]) for at in range(number)]
    for each in members:
        provide(cluster, each)
    return members


def test_a_shared_volume_is_ordered_once_for_one_member_and_the_others_wait_for_it():
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, 5), segment("b", IN_B, 4))
    members = sharing(cluster, 3, modes=("ReadWriteMany",))
    snapshot = Snapshot(cluster)
    rows = cluster.capacity.rows
    member = class_of(snapshot, members[0])
    assert [name for name, row in rows.items() if snapshot.fits(member, row)] == ["a0", "a1"]
    snapshot.take(rows["a0"], member, 1)
    assert [name for name, row in rows.items() if snapshot.fits(member, row)] == [*rows], "it may be used anywhere"
    snapshot.take(rows["b0"], member, 1)
    snapshot.take(rows["a0"], member, 1)
    asked = prebindings(snapshot, [(members[0], "a0"), (members[1], "b0"), (members[2], "a0")])
    order, wait = SelectNode("default", "shared", "shared", "a0"), ShareVolume("default", "shared", "shared")
    assert [asked[each.uid] for each in members] == [[order], [wait], [order]]


def test_a_shared_volume_for_one_node_at_a_time_keeps_all_its_members_there():
    cluster = known(*NODES, LATER)
    members = sharing(cluster, 2, modes=("ReadWriteOnce",))
    snapshot = Snapshot(cluster)
    member = class_of(snapshot, members[0])
    snapshot.take(cluster.capacity.rows["a1"], member, 1)
    assert [name for name, row in cluster.capacity.rows.items() if snapshot.fits(member, row)] == ["a1"]


def test_where_a_shared_volume_is_being_made_already_one_member_goes_there_and_the_others_anywhere():
    cluster = known(*NODES, LATER)
    members = sharing(cluster, 2, modes=("ReadWriteMany",), selected="b0", ours=True)
    snapshot = Snapshot(cluster)
    rows = cluster.capacity.rows
    member = class_of(snapshot, members[0])
    assert [name for name, row in rows.items() if snapshot.fits(member, row)] == ["b0"]
    snapshot.take(rows["b0"], member, 1)
    assert [name for name, row in rows.items() if snapshot.fits(member, row)] == [*rows]


def test_shared_volumes_are_made_only_where_the_class_allows_it():
    cluster = known(*NODES, StorageClass("later", "csi", waits=True, provisions=True, topologies=(IN_A,)))
    members = sharing(cluster, 2, modes=("ReadOnlyMany",))
    snapshot = Snapshot(cluster)
    member = class_of(snapshot, members[0])
    snapshot.take(cluster.capacity.rows["a0"], member, 1)
    assert [name for name, row in cluster.capacity.rows.items() if snapshot.fits(member, row)] == ["a0", "a1"]


def test_a_member_that_waits_for_a_shared_volume_is_lost_with_the_one_for_which_it_is_made():
    cluster = known(*NODES, LATER, volume("v"))
    one, other = sharing(cluster, 2, modes=("ReadWriteMany",))
    wait, order = ShareVolume("default", "shared", "shared"), SelectNode("default", "shared", "shared", "a0")
    cluster.assume(one.uid, "a0", (order,))
    cluster.assume(other.uid, "b0", (wait,))
    assert cluster.prebindings.state_of(wait).name == "MADE"
    cluster.forget(one.uid)
    assert cluster.prebindings.state_of(wait).name == "LOST"
    provide(cluster, claim("default/shared", "v", storage_class="later", uid="shared"))
    assert cluster.prebindings.state_of(wait).name == "DONE"
    provide(cluster, claim("default/shared", "v", storage_class="later", uid="another"))
    assert cluster.prebindings.state_of(wait).name == "LOST"


def test_only_orders_of_ours_for_this_very_claim_that_has_no_volume_yet_are_promises():
    there = [*NODES, LATER, TELLS, segment("a", IN_A, 12), *wanting(5, name="first"), *wanting(5)]
    cluster = known(*there)
    first, asking = cluster.pods["uid-default/first"], cluster.pods["uid-default/x"]
    cluster.assume(first.uid, "a1", (SelectNode("default", "first-0", "first-0", "a1"),))
    ordered = claim("default/first-0", storage_class="later", size=5, uid="first-0")
    for found, room in (
        (ordered, 1),
        (replace(ordered, selected="a1"), 2),
        (replace(ordered, storage_class="another"), 2),
        (replace(ordered, uid="another"), 2),
        (replace(ordered, volume="v", bound=True), 2),
        (replace(ordered, selected="a1", ours=True), 1),
    ):
        provide(cluster, found)
        assert rooms(cluster, asking)["a0"] == room, found
    assert "2 later (zone=a: 2 left after 2 promised volumes, 5 wanted)" in told(cluster, asking)


def test_where_storage_is_short_no_volume_is_said_to_be():
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, 4), *wanting(5))
    snapshot = Snapshot(cluster)
    member = class_of(snapshot, cluster.pods["uid-default/x"])
    rows = np.arange(len(NODES))
    reasons = {reason for plan in snapshot.plans for reason, _, where in plan.refusals(member, rows) if where.any()}
    assert reasons == {NodeReason.STORAGE_CAPACITY}


def sharing_and_own(cluster: Cluster, number: int) -> list:
    """Members that share one unbound claim of 5 and have their own claim of 3 each."""
    provide(cluster, claim("default/shared", storage_class="later", size=5, uid="shared", modes=("ReadWriteMany",)))
    members = [pod(f"default/s-{at}", volume_claims=["shared", f"own-{at}"]) for at in range(number)]
    for at, each in enumerate(members):
        provide(cluster, claim(f"default/own-{at}", storage_class="later", size=3, uid=f"own-{at}"))
        provide(cluster, each)
    return members


@pytest.mark.parametrize(("capacity", "room"), [(5, 1), (10, 1), (11, 2), (13, 2), (14, 3)])
def test_the_first_of_members_that_share_a_claim_takes_its_storage_too(capacity, room):
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, capacity), segment("b", IN_B, 3))
    members = sharing_and_own(cluster, 9)
    snapshot = Snapshot(cluster)
    member = class_of(snapshot, members[0])
    rows = cluster.capacity.rows
    assert {name: int(snapshot.caps(member)[row]) for name, row in rows.items()} == {
        "a0": room,
        "a1": room,
        "b0": 0,
        "b1": 0,
    }
    for taken in range(1, room + 1):
        snapshot.take(rows["a0"], member, 1)
        left = room - taken
        assert [int(snapshot.caps(member)[rows[name]]) for name in ("a0", "a1", "b0")] == [left, left, 1]


def test_a_domain_looks_another_once_storage_is_taken_of_it_on_another_node():
    everywhere = NodeTerm((Requirement("zone", "Exists"),))
    cluster = known(*NODES, LATER, TELLS, segment("s", everywhere, 10), *wanting(5))
    snapshot = Snapshot(cluster)
    member = class_of(snapshot, cluster.pods["uid-default/x"])
    look, mark = snapshot.digest((("zone", "b"),)), snapshot.mark()
    snapshot.take(cluster.capacity.rows["a0"], member, 1)
    assert snapshot.digest((("zone", "b"),)) != look
    snapshot.undo(mark)
    assert snapshot.digest((("zone", "b"),)) == look


def test_a_claim_that_another_scheduler_has_given_a_node_takes_no_storage_of_others():
    cluster = known(*NODES, LATER, TELLS, segment("a", IN_A, 5), *wanting(5, name="first", selected="a0"), *wanting(5))
    snapshot = Snapshot(cluster)
    first, asking = (class_of(snapshot, cluster.pods[f"uid-default/{name}"]) for name in ("first", "x"))
    snapshot.take(cluster.capacity.rows["a0"], first, 1)
    assert snapshot.fits(asking, cluster.capacity.rows["a0"])


@pytest.mark.parametrize(("volumes", "accepting"), [(1, False), (2, True)])
def test_two_claims_that_are_both_shared_need_a_volume_each(volumes, accepting):
    cluster = known(node("n0"), StorageClass("local", waits=True))
    for name in ("c", "d"):
        provide(cluster, claim(f"default/{name}", storage_class="local", size=1, uid=name))
    for at in range(volumes):
        provide(cluster, volume(f"v{at}", available=True, storage_class="local", size=1))
    provide(cluster, pod("default/other", volume_claims=["c", "d"]))
    assert (not refused(cluster, pod("default/x", volume_claims=["c", "d"]))) is accepting


def test_a_volume_for_one_claim_and_storage_for_another_suffice_for_as_many_members_as_the_lesser():
    cluster = known(node("n0", cpu="64", labels={"zone": "a"}), LATER, TELLS, segment("a", IN_A, 6))
    provide(cluster, StorageClass("local", waits=True))
    for at in range(3):
        provide(cluster, volume(f"v{at}", available=True, storage_class="local", size=1))
    provide(cluster, claim("default/c", storage_class="local", size=1, uid="c"))
    provide(cluster, claim("default/d", storage_class="later", size=3, uid="d"))
    provide(cluster, pod("default/x", volume_claims=["c", "d"]))
    assert rooms(cluster, cluster.pods["uid-default/x"]) == {"n0": 2}
    provide(cluster, segment("a", IN_A, 99))
    assert rooms(cluster, cluster.pods["uid-default/x"]) == {"n0": 3}
    provide(cluster, LATER)
    provide(cluster, StorageClass("local", waits=True, provisions=True))
    provide(cluster, segment("a", IN_A, 15))
    assert rooms(cluster, cluster.pods["uid-default/x"]) == {"n0": 5}


def test_a_member_that_shares_a_claim_may_go_anywhere_if_no_pod_were_there():
    cluster = known(*NODES, LATER)
    [asking, _] = sharing(cluster, 2, modes=("ReadWriteMany",), selected="b0", ours=True)
    emptied = Snapshot(cluster).emptied()
    assert all(emptied.accepts(class_of(emptied, asking))[row] for row in cluster.capacity.rows.values())


def test_of_several_volumes_for_one_claim_the_first_by_name_is_taken_in_whatever_order_they_come():
    waiting = claim("default/c", storage_class="local", size=1, uid="c")
    cluster = known(node("n0", labels={"zone": "a"}), StorageClass("local", waits=True), waiting)
    for name, zone in (("w", "b"), ("v", "a")):
        meant = volume(name, zone=zone, available=True, storage_class="local", size=1, claimed_by=("default", "c", ""))
        provide(cluster, meant)
    assert not refused(cluster, pod("default/x", volume_claims=["c"]))


@pytest.mark.parametrize(
    "term",
    [
        IN_A,
        NodeTerm((Requirement("zone", "In", ("a", "b")),)),
        NodeTerm((Requirement("zone", "In", ("-",)),)),
        NodeTerm((Requirement("zone", "NotIn", ("a",)),)),
        NodeTerm((Requirement("zone", "In", ("a",)), Requirement("pool", "Exists"))),
        NodeTerm((Requirement("zone", "In", ("a",)),), (Requirement("metadata.name", "In", ("n1",)),)),
        NodeTerm(),
    ],
)
def test_the_rows_of_a_term_are_those_that_match_it_also_after_a_node_has_changed(term):
    cluster = known(*(node(f"n{at}", labels={"zone": "aba"[at]}) for at in range(3)))
    constraint = next(each for each in cluster.constraints if isinstance(each, NodeAffinity))
    every = np.arange(3)
    assert constraint.rows(term).tolist() == np.flatnonzero(constraint.among((term,), every)).tolist()
    for changed in (node("n0", labels={"zone": "b"}), node("n2", labels={"zone": "a", "pool": "x"})):
        provide(cluster, changed)
        assert constraint.rows(term).tolist() == np.flatnonzero(constraint.among((term,), every)).tolist()
