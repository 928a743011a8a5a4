"""Whatever happens to claims, volumes and their pods: the accounting agrees, and plans are checked like clusters."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.shape import Disk, NodeTerm, Requirement
from gangsched.core.objects.volumes import (
    CsiDriver,
    CsiNode,
    StorageCapacity,
    StorageClass,
    StorageKind,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from gangsched.core.planning.needed_prebindings import prebindings
from tests.builders import node, pod
from tests.effort import examples
from tests.harness import KINDS
from tests.verdicts import class_of

NODES = ("n0", "n1", "n2")
CLAIMS = ("c0", "c1", "c2", "c3")
VOLUMES = ("v0", "v1", "v2", "v3")

affinities = st.sampled_from(
    (None, None, None, (NodeTerm((Requirement("zone", "In", ("a",)),)),), (NodeTerm((Requirement("zone", "Exists"),)),))
)
attachments = st.sampled_from((None, ("csi", "h0"), ("csi", "h1"), ("csi", "h2"), ("other", "h0")))
claims = st.builds(
    VolumeClaim,
    st.just("default"),
    st.sampled_from(CLAIMS),
    st.sampled_from(("", "", "", "", *VOLUMES * 2)),
    storage_class=st.sampled_from(("", "later")),
    size=st.sampled_from((0, 1, 2)),
    modes=st.sampled_from(((), (), ("ReadWriteMany",))),
    selected=st.sampled_from(("", "", "", "", "n1")),
    ours=st.sampled_from((False, False, True)),
    bound=st.sampled_from((True, True, True, False)),
    lost=st.sampled_from((False, False, False, True)),
    single_pod=st.booleans(),
    owner=st.sampled_from(("", "p0")),
)
volumes = st.builds(
    Volume,
    st.sampled_from((*VOLUMES, "v4", "v5")),
    affinities,
    attachment=attachments,
    available=st.booleans(),
    storage_class=st.sampled_from(("later", "later", "")),
    size=st.sampled_from((1, 2, 3)),
    modes=st.sampled_from(((), ("ReadWriteMany",))),
    claimed_by=st.sampled_from((None, None, None, ("default", "c1", ""))),
)
zonal = st.sampled_from((None, None, (NodeTerm((Requirement("zone", "In", ("a",)),)),)))
classes = st.builds(
    StorageClass, st.just("later"), st.sampled_from(("csi", "other")), st.booleans(), st.booleans(), zonal
)
csi_nodes = st.builds(
    CsiNode,
    st.sampled_from(NODES),
    st.sampled_from(((), (("csi", 0),), (("csi", 1),), (("csi", 2), ("other", 1)))),
    st.sampled_from((frozenset(), frozenset({"csi"}), frozenset({"csi", "other"}))),
)
volume_attachments = st.builds(
    VolumeAttachment,
    st.sampled_from(("a0", "a1", "a2")),
    st.sampled_from((*NODES, "ghost")),
    st.sampled_from(("", *VOLUMES)),
    st.sampled_from(("csi", "csi", "other", "")),
)
drivers = st.builds(CsiDriver, st.just("csi"), st.booleans(), st.booleans())
segments = st.sampled_from(
    (None, NodeTerm((Requirement("zone", "In", ("a",)),)), NodeTerm((Requirement("zone", "NotIn", ("a",)),)))
)
capacities = st.builds(
    StorageCapacity,
    st.just("kube-system"),
    st.sampled_from(("s0", "s1", "s2")),
    st.just("later"),
    segments,
    st.sampled_from((None, 0, 1, 2, 3, 4, 5)),
    st.sampled_from((None, None, 1, 2, 3)),
)
objects = (
    claims | claims | volumes | volumes | classes | csi_nodes | volume_attachments | drivers | capacities | capacities
)
disks = st.builds(
    Disk,
    st.sampled_from(("iscsi", "rbd")),
    st.sampled_from((("x",), ("y",), ("x", "y"))),
    st.booleans(),
    st.sampled_from((None, None, ("csi", "h0"))),
)
pods = st.builds(
    lambda uid, where, named, own, found, ended: pod(
        uid,
        uid=uid,
        group="",
        node=where,
        volume_claims=named,
        own_volume_claims=own,
        disks=found,
        phase="Succeeded" if ended else "Pending",
    ),
    st.sampled_from(("p0", "p1", "p2", "p3", "p4", "p5")),
    st.sampled_from(("", "", *NODES, "ghost")),
    st.lists(st.sampled_from(CLAIMS), max_size=3, unique=True),
    st.sampled_from(((), (), (), ("c0",))),
    st.lists(disks, max_size=1),
    st.sampled_from((False, False, False, False, True)),
)
steps = st.lists(
    st.tuples(st.sampled_from(("provide", "provide", "provide", "withdraw")), objects)
    | st.tuples(st.sampled_from(("see", "see", "lose")), pods)
    | st.tuples(st.sampled_from(("node", "node gone")), st.sampled_from(NODES)),
    min_size=8,
    max_size=40,
)


def after(steps) -> Cluster:
    """A cluster of roomy nodes after these steps, checked after each step."""
    cluster = Cluster()
    for at, name in enumerate(NODES):
        cluster.set_node(node(name, cpu="64", labels={"zone": "ab"[at]} if at < 2 else {}))
    for what, value in steps:
        match what:
            case "provide":
                cluster.set_storage(KINDS[type(value)], value.key, value)
            case "withdraw":
                cluster.set_storage(KINDS[type(value)], value.key, None)
            case "see":
                cluster.set_pod(value)
            case "lose":
                cluster.remove_pod(value.uid)
            case "node":
                cluster.set_node(node(value, cpu="64", labels={"zone": "b"}))
            case "node gone":
                cluster.remove_node(value)
        assert cluster.validate() == []
    return cluster


def shares_a_claim(one, other) -> bool:
    return bool({*one.volume_claims, *one.own_volume_claims} & {*other.volume_claims, *other.own_volume_claims})


def rooms(snapshot: Snapshot, asking) -> dict[str, bool]:
    member = class_of(snapshot, asking)
    caps = snapshot.caps(member)
    found = {}
    for name, row in snapshot.cluster.capacity.rows.items():
        assert snapshot.fits(member, row) == (caps[row] > 0)
        found[name] = bool(caps[row] > 0)
    return found


@given(steps)
@settings(max_examples=examples(300))
def test_nothing_is_left_of_objects_and_pods_that_are_gone(steps):
    cluster = after(steps)
    for uid in list(cluster.pods):
        cluster.remove_pod(uid)
    for kind in StorageKind:
        for key in list(cluster.volumes.known(kind)):
            cluster.set_storage(kind, key, None)
    assert cluster.validate() == []
    fresh = Cluster()
    assert vars(cluster.volumes) == vars(fresh.volumes)


@given(steps, st.data())
@settings(max_examples=examples(300))
def test_members_on_a_plan_are_judged_as_they_would_be_in_the_cluster_and_are_taken_back_exactly(steps, data):
    cluster = after(steps)
    waiting = [each for each in cluster.pods.values() if not each.node and not each.terminal]
    snapshot = Snapshot(cluster)
    members = classify(snapshot, waiting)
    every = sorted(cluster.capacity.rows.values())
    before = {uid: snapshot.caps(member).tolist() for uid, member in members.items()}
    looks = [snapshot.digest((("zone", zone),)) for zone in "ab"]
    mark = snapshot.mark()
    placed = []
    for each in waiting:
        now = Snapshot(cluster)
        open_ = []
        for name, row in cluster.capacity.rows.items():
            fits = snapshot.fits(members[each.uid], row)
            assert fits == rooms(now, each)[name], (each.name, name)
            assert fits == bool(snapshot.caps(members[each.uid])[row]), (each.name, name)
            if fits:
                open_.append((name, row))
        if open_:
            name, row = data.draw(st.sampled_from(open_))
            snapshot.take(row, members[each.uid], 1)
            asked = tuple(prebindings(snapshot, [(each, name)]).get(each.uid, ()))
            cluster.assume(each.uid, name, asked)
            once = [taken for one in asked for taken in one.takes if taken[0] == "PersistentVolume"]
            others = {uid for taken in once for uid in cluster.ledger.pending_prebindings[taken]} - {each.uid}
            assert all(shares_a_claim(each, cluster.pods[uid]) for uid in others), "a volume is taken twice"
            assert cluster.validate() == []
            placed.append(each.uid)
    for uid in placed:
        cluster.forget(uid)
    snapshot.undo(mark)
    assert {uid: snapshot.caps(member).tolist() for uid, member in members.items()} == before
    assert [snapshot.digest((("zone", zone),)) for zone in "ab"] == looks
    assert [snapshot.fits(members[each.uid], row) for each in waiting for row in every] == [
        bool(before[each.uid][row]) for each in waiting for row in every
    ]


@given(steps)
@settings(max_examples=examples(200))
def test_room_is_how_many_members_a_node_takes_one_after_another(steps):
    cluster = after(steps)
    cluster.set_pod(pod("waits", group="", volume_claims=CLAIMS[:1]))
    cluster.set_node(node("n0", cpu="64", labels={"zone": "a"}))
    snapshot = Snapshot(cluster)
    waiting = [each for each in cluster.pods.values() if not each.node and not each.terminal]
    assert waiting
    for each in waiting:
        member = class_of(snapshot, each)
        for row in cluster.capacity.rows.values():
            most = min(int(snapshot.caps(member)[row]), 4)
            mark = snapshot.mark()
            number = 0
            while number < 4 and snapshot.fits(member, row):
                snapshot.take(row, member, 1)
                number += 1
            assert number == most
            snapshot.undo(mark)
