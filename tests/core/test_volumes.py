from __future__ import annotations

import pytest

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import Disk, NodeTerm, Requirement
from gangsched.core.objects.volumes import (
    CsiDriver,
    CsiNode,
    StorageClass,
    StorageObject,
    Trouble,
    Unready,
    VolumeAttachment,
)
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.dependence import any_couples, couples
from gangsched.core.planning.filling import classify
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.topology import RecentRequests
from tests import clusters
from tests.builders import claim, node, pod, volume
from tests.harness import KINDS
from tests.verdicts import class_of, verdicts

LATER, AT_ONCE = StorageClass("later", "csi", waits=True, provisions=True), StorageClass("at-once", "csi")


def known(*found: object) -> Cluster:
    """A cluster with these objects; pods and nodes among them."""
    cluster = Cluster()
    for each in found:
        provide(cluster, each)
    return cluster


def provide(cluster: Cluster, found) -> None:
    clusters.provide(cluster, found)
    assert cluster.validate() == []


def withdraw(cluster: Cluster, found: StorageObject) -> None:
    cluster.set_storage(KINDS[type(found)], found.key, None)
    assert cluster.validate() == []


def refused(cluster: Cluster, asking) -> dict[str, str]:
    """Why each node refuses the pod, which the cluster knows."""
    cluster.set_pod(asking)
    snapshot = Snapshot(cluster)
    member = class_of(snapshot, asking)
    why = verdicts(snapshot, member)
    assert {name for name, row in cluster.capacity.rows.items() if not snapshot.caps(member)[row]} == why.keys()
    return why


@pytest.mark.parametrize(
    ("there", "trouble"),
    [
        ([claim("c", "v"), volume("v")], None),
        ([], Unready("c", Trouble.MISSING)),
        ([claim("other/c", "v"), volume("v")], Unready("c", Trouble.MISSING)),
        ([claim("c", "v", lost=True), volume("v")], Unready("c", Trouble.LOST, "v")),
        ([claim("c", "v", lost=True, terminating=True), volume("v")], Unready("c", Trouble.LOST, "v")),
        ([claim("c", "v", terminating=True), volume("v")], Unready("c", Trouble.TERMINATING)),
        ([claim("c", "v")], Unready("c", Trouble.NO_VOLUME, "v")),
        ([claim("c", "v", bound=False), volume("v")], Unready("c", Trouble.UNBOUND)),
        ([claim("c", bound=True), volume("v")], Unready("c", Trouble.UNBOUND)),
        ([claim("c", storage_class="at-once"), AT_ONCE], Unready("c", Trouble.UNBOUND, "at-once")),
        ([claim("c", storage_class="none")], Unready("c", Trouble.UNBOUND, "none")),
        ([claim("c", storage_class="later"), LATER], None),
        ([claim("c", "v", bound=False, storage_class="later"), LATER], Unready("c", Trouble.UNBOUND, "later")),
        ([claim("c", "v", storage_class="later"), LATER, volume("v")], None),
        ([claim("c", "v"), volume("v", in_tree="cinder")], Unready("c", Trouble.IN_TREE, "v (cinder)")),
    ],
)
def test_a_pod_can_be_placed_only_with_claims_that_are_ready(there, trouble):
    cluster, asking = known(node(), *there), pod(volume_claims=["c"])
    assert cluster.volumes.unready(asking) == trouble
    if cluster.volumes.claims:
        assert refused(cluster, asking) == ({} if trouble is None else {"n1": NodeReason.VOLUME_CLAIM})


def test_the_first_claim_that_is_not_ready_is_told_and_ephemeral_ones_last():
    cluster = known(claim("c", "v"), volume("v"))
    both = pod(volume_claims=["c", "d", "e"], own_volume_claims=["f"])
    assert cluster.volumes.unready(both) == Unready("d", Trouble.MISSING)
    assert cluster.volumes.unready(pod(volume_claims=["c"], own_volume_claims=["f"])) == Unready("f", Trouble.NOT_MADE)
    provide(cluster, claim("f", "v", owner="uid-default/other"))
    own = pod(own_volume_claims=["f"])
    assert cluster.volumes.unready(own) == Unready("f", Trouble.NOT_OWNED)
    provide(cluster, claim("f", owner=own.uid))
    assert cluster.volumes.unready(own) == Unready("f", Trouble.UNBOUND)
    provide(cluster, claim("f", "v", owner=own.uid))
    assert cluster.volumes.unready(own) is None


def terms(*values: str) -> tuple[NodeTerm, ...]:
    return tuple(NodeTerm((Requirement("zone", "In", (value,)),)) for value in values)


ZONED = (node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}), node("none"))


@pytest.mark.parametrize(
    ("volumes", "accepting"),
    [
        ([volume("v0"), volume("v1")], {"a", "b", "none"}),
        ([volume("v0", zone="a"), volume("v1")], {"a"}),
        ([volume("v0", zone="a"), volume("v1", zone="a")], {"a"}),
        ([volume("v0", zone="a"), volume("v1", zone="b")], set()),
        ([volume("v0", node_affinity=terms("a", "b")), volume("v1")], {"a", "b"}),
        ([volume("v0", node_affinity=()), volume("v1")], set()),
    ],
)
def test_a_node_must_match_the_affinity_of_all_volumes(volumes, accepting):
    cluster = known(*ZONED, claim("c0", "v0"), claim("c1", "v1"), *volumes)
    why = refused(cluster, pod(volume_claims=["c0", "c1"]))
    assert why == dict.fromkeys({"a", "b", "none"} - accepting, NodeReason.VOLUME_AFFINITY)


ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "zones", "taken"),
    [
        ({}, ((ZONE, ("a",)),), True),
        ({"zone": "x"}, ((ZONE, ("a",)),), True),
        ({ZONE: "a"}, ((ZONE, ("a",)),), True),
        ({ZONE: "a"}, ((ZONE, ("a", "b")),), True),
        ({ZONE: "c"}, ((ZONE, ("a", "b")),), False),
        ({REGION: "r"}, ((ZONE, ("a",)),), False),
        ({ZONE: "a", REGION: "r"}, ((ZONE, ("a",)), (REGION, ("q",))), False),
        ({ZONE: "a"}, ((BETA, ("a",)),), True),
        ({BETA: "a"}, ((ZONE, ("a",)),), False),
        ({BETA: "b", ZONE: "a"}, ((BETA, ("a",)),), False),
        ({ZONE: "a"}, (), True),
    ],
)
def test_a_node_with_a_zone_must_be_in_that_of_the_volume(labels, zones, taken):
    cluster = known(node(labels=labels), claim("c", "v"), volume("v", zones=zones))
    assert refused(cluster, pod(volume_claims=["c"])) == ({} if taken else {"n1": NodeReason.VOLUME_ZONE})
    provide(cluster, claim("own", "v", owner="uid-default/a-0"))
    provide(cluster, claim("else", "w"))
    provide(cluster, volume("w"))
    assert refused(cluster, pod(volume_claims=["else"], own_volume_claims=["own"])) == {}


def attached(*limits: int | None) -> list[object]:
    """Nodes with these attachment limits, and claims: c0 … c4 with a volume each, and `twin` with the volume of c0."""
    return [
        *(node(f"n{at}", cpu=64) for at in range(len(limits))),
        *(CsiNode(f"n{at}", (("csi", limit),)) for at, limit in enumerate(limits) if limit is not None),
        *(volume(f"v{at}") for at in range(5)),
        volume("twin", attachment=("csi", "v0")),
        volume("files", attachment=None),
        volume("other", driver="other"),
        *(claim(f"c{at}", f"v{at}") for at in range(5)),
        *(claim(name, name) for name in ("twin", "files", "other")),
    ]


@pytest.mark.parametrize(
    ("there", "asked", "taken"),
    [
        ([], ["c0"], True),
        ([], ["c0", "c1"], True),
        ([], ["c0", "c1", "c2"], False),
        ([["c0"]], ["c1"], True),
        ([["c0"], ["c1"]], ["c2"], False),
        ([["c0"], ["c1"]], ["c1"], True),
        ([["c0"], ["c1"]], ["twin"], True),
        ([["c0"], ["c0"]], ["c1"], True),
        ([["c0"], ["twin"]], ["c1", "c2"], False),
        ([["c0", "c1", "c2"]], ["c0"], True),
        ([["c0", "c1", "c2"]], ["c0", "c3"], False),
        ([["c0", "c1", "c2"]], ["files"], True),
        ([["c0", "c1", "c2"]], ["other"], True),
        ([["c0"], ["missing"]], ["c1"], True),
        ([], ["c0", "twin", "c1"], True),
    ],
)
def test_a_node_takes_as_many_different_volumes_as_it_can_attach(there, asked, taken):
    cluster = known(*attached(2, None))
    for number, claims in enumerate(there):
        provide(cluster, pod(f"there-{number}", node="n0", volume_claims=claims))
    assert refused(cluster, pod(volume_claims=asked)) == ({} if taken else {"n0": NodeReason.VOLUME_LIMIT})


def test_a_volume_that_comes_concerns_the_claims_that_may_be_bound_to_it_and_one_that_goes_does_not():
    waiting = [claim(f"default/{name}", storage_class="local", size=1, uid=name) for name in ("c", "d")]
    users = [pod(f"default/p-{each.name}", volume_claims=[each.name]) for each in waiting]
    cluster = known(node("n0"), StorageClass("local", waits=True), *waiting, *users)

    def concerned(claimed_by=None, *, available: bool = True):
        found = volume("v", available=available, storage_class="local", size=1, claimed_by=claimed_by)
        return cluster.set_storage(KINDS[type(found)], found.key, found)

    assert concerned() == ["uid-default/p-c", "uid-default/p-d"]
    assert concerned(("default", "d", "d")) == ["uid-default/p-d"]
    assert concerned(("default", "d", "d"), available=False) == ["uid-default/p-d"]
    assert concerned() == ["uid-default/p-c", "uid-default/p-d"]
    assert concerned(available=False) == []


def test_no_claim_is_bound_to_a_volume_that_no_pod_may_use_then():
    old = volume("v", in_tree="cinder", available=True, storage_class="local", size=1)
    waiting = claim("default/c", storage_class="local", size=1, uid="c")
    cluster = known(node("n0"), StorageClass("local", waits=True), waiting, old)
    assert refused(cluster, pod("default/p", volume_claims=["c"])) == {"n0": NodeReason.VOLUME_SHORTAGE}


def test_a_claim_counts_as_what_its_class_will_make_until_it_is_bound():
    cluster = known(*attached(1), LATER, claim("later", storage_class="later"))
    provide(cluster, pod("there", node="n0", volume_claims=["later"]))
    assert refused(cluster, pod(volume_claims=["c0"])) == {"n0": NodeReason.VOLUME_LIMIT}
    provide(cluster, claim("later", "files"))
    assert refused(cluster, pod(volume_claims=["c0"])) == {}
    withdraw(cluster, volume("files"))
    assert refused(cluster, pod(volume_claims=["c0"])) == {}
    provide(cluster, claim("later", "v0"))
    assert refused(cluster, pod(volume_claims=["c0"])) == {}
    assert refused(cluster, pod(volume_claims=["c1"])) == {"n0": NodeReason.VOLUME_LIMIT}


def taking(cluster: Cluster, *members):
    """A snapshot and the classes of these pods, which the cluster knows."""
    for each in members:
        cluster.set_pod(each)
    snapshot = Snapshot(cluster)
    classes = classify(snapshot, members)
    return snapshot, [classes[each.uid] for each in members]


def test_a_volume_that_members_share_is_counted_once_on_each_node():
    shares = [pod(f"a-{at}", volume_claims=["c0"]) for at in range(2)]
    own, more = pod("a-2", volume_claims=["c1"]), pod("a-3", volume_claims=["c2"])
    snapshot, (shared, _, single, _) = taking(known(*attached(2)), *shares, own, more)
    assert couples(snapshot, shared, shared)
    assert couples(snapshot, shared, single)
    assert not couples(snapshot, single, single)
    mark = snapshot.mark()
    snapshot.take(0, shared, 1)
    snapshot.take(0, shared, 1)
    assert snapshot.caps(single)[0] == 1
    snapshot.take(0, single, 1)
    assert (snapshot.caps(single)[0], bool(snapshot.caps(shared)[0])) == (0, True)
    snapshot.undo(mark)
    assert snapshot.caps(single)[0] == 2


@pytest.mark.parametrize(("limit", "room"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_room_counts_a_shared_volume_for_the_first_member_alone(limit, room):
    members = [pod("a-0", volume_claims=["c0", "c1"]), pod("a-1", volume_claims=["c0", "c2"])]
    snapshot, (member, other) = taking(known(*attached(limit)), *members)
    assert member is other
    assert snapshot.caps(member)[0] == room


def test_what_a_member_attaches_is_given_back_from_what_the_cluster_counts():
    there = pod("there", node="n0", volume_claims=["c0"])
    snapshot, (_, other) = taking(known(*attached(1)), there, pod("a-1", volume_claims=["c1"]))
    assert snapshot.caps(other)[0] == 0
    snapshot.leave([snapshot.cluster.ledger.claims["uid-default/there"]])
    assert snapshot.caps(other)[0] == 1


def test_a_volume_that_only_pods_used_which_have_left_is_to_be_attached_again_once_they_are_gone():
    """Regression: the users that had left were subtracted from those that the cluster no longer counted."""
    cluster = known(*attached(0))
    for each in (
        pod("there", node="n0", volume_claims=["c0"]),
        *(pod(f"a-{at}", volume_claims=["c0"]) for at in (0, 1)),
    ):
        cluster.set_pod(each)
    snapshot = Snapshot(cluster)
    snapshot.leave([cluster.ledger.claims["uid-default/there"]])
    cluster.remove_pod("uid-default/there")
    snapshot.settle()
    assert snapshot.caps(class_of(snapshot, cluster.pods["uid-default/a-0"]))[0] == 0


def test_disks_of_one_driver_that_nodes_limit_depend_on_each_other():
    disks = [Disk("cinder", (), False, ("csi", "v0"))]
    snapshot, (member,) = taking(known(*attached(1)), pod(disks=disks))
    assert any_couples(snapshot, [member])
    assert not any_couples(snapshot, [class_of(snapshot, pod())])


DEMANDING = CsiDriver("csi", demanding=True)


@pytest.mark.parametrize(
    ("asked", "fields", "taken"),
    [
        ([], {}, True),
        (["files"], {}, True),
        (["other"], {}, True),
        (["c0"], {}, False),
        (["c0", "other"], {}, False),
        (["later"], {}, False),
        ([], {"disks": [Disk("cinder", (), False, ("csi", "v0"))]}, False),
        ([], {"disks": [Disk("iscsi", ("iqn",))]}, True),
    ],
)
def test_a_pod_needs_a_node_with_the_drivers_that_demand_it(asked, fields, taken):
    had = pod("there", node="n0", volume_claims=["c0"])
    cluster = known(
        *attached(None, None), had, DEMANDING, CsiDriver("other"), LATER, claim("later", storage_class="later")
    )
    for each in (CsiNode("n0"), CsiNode("n1", drivers=frozenset({"csi"}))):
        provide(cluster, each)
    wanted = pod(volume_claims=asked, **fields)
    assert refused(cluster, wanted) == ({} if taken else {"n0": NodeReason.VOLUME_DRIVER})
    withdraw(cluster, DEMANDING)
    assert refused(cluster, wanted) == {}


def test_a_disk_is_of_a_driver_only_where_the_node_has_a_csi_node():
    cluster = known(*attached(None), DEMANDING)
    assert refused(cluster, pod(disks=[Disk("cinder", (), False, ("csi", "v0"))])) == {}
    assert refused(cluster, pod(volume_claims=["c0"])) == {"n0": NodeReason.VOLUME_DRIVER}


def test_a_driver_that_demands_it_makes_all_nodes_worse_and_one_that_is_installed_may_help():
    cluster = known(*attached(2, 2))
    cluster.worsened.clear()
    provide(cluster, DEMANDING)
    assert cluster.worsened.keys() == {"n0", "n1"}
    cluster.relief.take()
    provide(cluster, CsiNode("n0", (("csi", 2),), frozenset({"csi"})))
    assert cluster.relief.take().rows == {cluster.capacity.rows["n0"]}


def test_a_lower_limit_makes_a_node_worse_and_each_change_may_help():
    cluster = known(*attached(2))
    cluster.worsened.clear()
    cluster.relief.take()
    provide(cluster, CsiNode("n0", (("csi", 1),)))
    assert cluster.worsened.keys() == {"n0"}
    cluster.worsened.clear()
    assert cluster.relief.take().rows == {cluster.capacity.rows["n0"]}
    provide(cluster, CsiNode("n0", (("csi", 1),)))
    assert (cluster.worsened, cluster.relief.take().rows) == ({}, set())


@pytest.mark.parametrize("claims", [[], ["c1"], ["c0", "c1"]])
def test_a_pod_that_is_read_with_other_claims_counts_with_these(claims):
    cluster = known(*attached(2), pod("there", node="n0", volume_claims=["c0"]))
    provide(cluster, pod("there", node="n0", volume_claims=claims))
    provide(cluster, pod("there", node="n0", volume_claims=claims, own_volume_claims=["c2"]))
    provide(cluster, pod("there", node="n0"))


def on_node(node: str, volume: str, driver: str = "csi") -> VolumeAttachment:
    return VolumeAttachment(f"{volume}-{node}", node, volume, driver)


@pytest.mark.parametrize(
    ("attached_there", "there", "asked", "taken"),
    [
        ([on_node("n0", "v0")], [], ["c1"], True),
        ([on_node("n0", "v0"), on_node("n0", "v1")], [], ["c2"], False),
        ([on_node("n0", "v0"), on_node("n0", "v1")], [], ["c1"], False),
        ([on_node("n0", "v0"), on_node("n0", "twin")], [], ["c2"], True),
        ([on_node("n0", "v0"), on_node("n0", "v1")], ["c0"], ["c2"], False),
        ([on_node("n0", "v0")], ["c0"], ["c2"], True),
        ([on_node("n0", "v0"), on_node("n0", "unknown")], [], ["c2"], True),
        ([on_node("n0", "v0"), on_node("n0", "v1", driver="other")], [], ["c2"], True),
        ([on_node("n0", "v0"), on_node("n0", "v1", driver="")], [], ["c2"], True),
        ([on_node("n0", "v0"), on_node("n0", "translated")], [], ["c1"], True),
    ],
)
def test_what_is_still_attached_counts_though_no_pod_uses_it(attached_there, there, asked, taken):
    cluster = known(*attached(2, None), volume("translated", attachment=("csi", "x"), in_tree="cinder"))
    for each in attached_there:
        provide(cluster, each)
    if there:
        provide(cluster, pod("there", node="n0", volume_claims=there))
    assert refused(cluster, pod(volume_claims=asked)) == ({} if taken else {"n0": NodeReason.VOLUME_LIMIT})


def test_a_node_or_a_volume_that_comes_later_has_attached_what_is_said_of_it():
    cluster = known(on_node("n0", "v0"), *attached(1))
    assert refused(cluster, pod(volume_claims=["c1"])) == {"n0": NodeReason.VOLUME_LIMIT}
    withdraw(cluster, volume("v0"))
    assert refused(cluster, pod(volume_claims=["c1"])) == {}


def test_a_volume_that_is_detached_may_help_and_one_that_is_attached_does_not():
    cluster = known(*attached(1), pod("there", node="n0", volume_claims=["c0"]))
    cluster.relief.take()
    provide(cluster, on_node("n0", "v0"))
    assert ("n0" in cluster.worsened, cluster.relief.take().rows) == (True, set())
    withdraw(cluster, on_node("n0", "v0"))
    assert cluster.relief.take().rows == {cluster.capacity.rows["n0"]}


def disk(kind="iscsi", *names: str, read_only: bool = False) -> Disk:
    return Disk(kind, names or ("d",), read_only)


@pytest.mark.parametrize(
    ("there", "asked", "taken"),
    [
        (disk(), disk(), False),
        (disk(), disk(read_only=True), False),
        (disk(read_only=True), disk(), False),
        (disk(read_only=True), disk(read_only=True), True),
        (disk(), disk("rbd"), True),
        (disk(), disk("iscsi", "e"), True),
        (disk("rbd", "m1", "m2"), disk("rbd", "m2", "m3"), False),
        (disk("rbd", "m1", "m2"), disk("rbd", "m3"), True),
    ],
)
def test_a_disk_is_used_by_one_pod_of_a_node_unless_all_only_read(there, asked, taken):
    cluster = known(node(), node("n2"), pod("there", node="n1", disks=[there]))
    assert refused(cluster, pod(disks=[asked])) == ({} if taken else {"n1": NodeReason.VOLUME_IN_USE})
    [member] = {*classify(Snapshot(cluster), [pod(disks=[asked])]).values()}
    assert (Snapshot(cluster).caps(member)[1] == 1) is not asked.read_only
    snapshot = Snapshot(cluster)
    snapshot.leave([cluster.ledger.claims["uid-default/there"]])
    assert snapshot.caps(member)[0] > 0


def test_a_claim_for_a_single_pod_is_used_anywhere_or_nowhere():
    single = [claim("c", "v", single_pod=True), volume("v")]
    cluster = known(node(), node("n2"), *single, pod("there", node="n1", volume_claims=["c"]))
    everywhere = dict.fromkeys(("n1", "n2"), NodeReason.VOLUME_IN_USE)
    assert refused(cluster, pod(volume_claims=["c"])) == everywhere
    assert refused(cluster, pod("other/a", volume_claims=["c"])) == dict.fromkeys(everywhere, NodeReason.VOLUME_CLAIM)
    cluster.set_pod(pod("there", node="n1", volume_claims=["c"], phase="Succeeded"))
    assert refused(cluster, pod(volume_claims=["c"])) == {}
    provide(cluster, claim("c", "v"))
    assert cluster.volumes.contested == set()


def test_members_that_are_placed_use_their_claims_for_the_next():
    nodes = node(labels={"zone": "a"}), node("n2", labels={"zone": "b"})
    cluster = known(*nodes, claim("c", "v", single_pod=True), volume("v"))
    members = [pod(f"a-{at}", volume_claims=["c"]) for at in range(2)]
    for each in members:
        cluster.set_pod(each)
    snapshot = Snapshot(cluster)
    [member] = {*classify(snapshot, members).values()}
    assert couples(snapshot, member, member)
    assert snapshot.caps(member)[:2].tolist() == [1, 1]
    mark, look = snapshot.mark(), snapshot.digest((("zone", "b"),))
    snapshot.take(0, member, 1)
    assert snapshot.caps(member)[:2].tolist() == [0, 0]
    assert snapshot.digest((("zone", "b"),)) != look, "what is taken elsewhere closes the zone"
    snapshot.undo(mark)
    assert snapshot.digest((("zone", "b"),)) == look
    assert snapshot.caps(member)[:2].tolist() == [1, 1]


@pytest.mark.parametrize("single_pod", [False, True])
def test_many_members_with_a_volume_each_are_one_class_if_the_volumes_are_alike(single_pod):
    cluster = known(*(node(f"n{at}", labels={"zone": "a"}) for at in range(2)), CsiNode("n0", (("csi", 3),)))
    members = [pod(f"a-{at}", volume_claims=[f"c{at}"]) for at in range(20)]
    for at, each in enumerate(members):
        for found in (volume(f"v{at}", zone="a"), claim(f"c{at}", f"v{at}", single_pod=single_pod), each):
            provide(cluster, found)
    assert len({*classify(Snapshot(cluster), members).values()}) == 1
    provide(cluster, volume("v0", zone="b"))
    assert len({*classify(Snapshot(cluster), members).values()}) == 2


def test_many_members_whose_claims_are_not_ready_are_one_class_and_the_first_claim_is_told():
    cluster = known(node(), claim("else"))
    members = [pod(f"a-{at}", volume_claims=[f"c{at}"]) for at in range(20)]
    [member] = {*classify(Snapshot(cluster), members).values()}
    [plan] = [each for each in Snapshot(cluster).plans if type(each).__name__ == "VolumePlan"]
    assert [(reason, told) for reason, told, _ in plan.refusals(member, Snapshot(cluster).own)] == [
        (NodeReason.VOLUME_CLAIM, "c0")
    ]


def test_whether_a_member_with_a_volume_could_ever_fit_is_found_out_each_time():
    """The nodes alone do not decide it: the limits of their drivers matter too."""
    cluster, recent = known(node("n1"), claim("c", "v"), volume("v"), pod("there", cpu=8, node="n1")), RecentRequests()
    never = []
    for limit in (0, 1):
        provide(cluster, CsiNode("n1", (("csi", limit),)))
        found = place(Snapshot(cluster), Ask(members=[pod(volume_claims=["c"])], need=1), recent)
        assert isinstance(found, Refusal)
        never.append(found.never)
    assert never == [True, False]
