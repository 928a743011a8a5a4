from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Viewer
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.observed import Observed
from gangsched.core.gang.reconcile import reconcile
from gangsched.core.gang.wants import Want
from gangsched.core.objects.declaration import GroupKey, Role, Topology
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.shape import PodTerm, Requirement, Spread
from gangsched.core.objects.status import Demand
from gangsched.core.objects.volumes import StorageKind
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.queueing.queue import Queue
from gangsched.core.status.ahead import MOST as MOST_KINDS
from gangsched.core.status.ahead import Ahead, wanted_by
from gangsched.core.status.explanation import ahead_of, demanded, incomplete, refused
from gangsched.core.status.holders import NAMED, STUCK_S, Holders, amounts
from gangsched.views.decided_copy import decided
from gangsched.views.findings import Findings
from gangsched.views.group_rows import rows
from tests.builders import GPU, claim, group, key, node, pod, pods
from tests.clusters import listed


def refuse(cluster, members, *, need=None):
    found = place(Snapshot(cluster), Ask(members=members, need=len(members) if need is None else need))
    assert isinstance(found, Refusal), found
    return found


def members(number, **fields):
    return [pod(f"m{at}", **fields) for at in range(number)]


def assess(spec, pods) -> Assessment:
    gang = Gang(spec.key, Observed(spec, pods={each.uid: each for each in pods}))
    assessment, _ = reconcile(
        gang, Cluster(), policy=Policy(), priority_classes={}, foreign=Foreign(), avoidance=Avoidance(), now=1.0
    )
    return assessment


# Members that do not exist yet


@pytest.mark.parametrize(
    ("spec", "pods", "said"),
    [
        pytest.param(
            group(min_member=3),
            members(2),
            "2 of 3 members exist; 1 more member is needed, or a lower minimum.",
            id="one",
        ),
        pytest.param(
            group(min_member=5),
            members(2),
            "2 of 5 members exist; 3 more members are needed, or a lower minimum.",
            id="several",
        ),
        pytest.param(
            group(min_member=2, roles=(Role("ps", 1), Role("w", 1))),
            members(2, role="w"),
            "2 of 2 members exist; missing by role: 1 of role ps.",
            id="of a role",
        ),
        pytest.param(
            group(min_member=1, roles=(Role("ps", 1), Role("w", 0))),
            members(1, role="w"),
            "1 of 1 member exists; missing by role: 1 of role ps.",
            id="of a role, in the singular",
        ),
        pytest.param(
            group(min_member=1, roles=(Role("ps", 1), Role("w", 0))),
            members(4, role="w"),
            "4 members exist; missing by role: 1 of role ps.",
            id="of a role, with more members than the minimum",
        ),
        pytest.param(
            group(min_member=4, roles=(Role("w", 1), Role("ps", 2))),
            members(1, role="w"),
            "1 of 4 members exist; 3 more members are needed, or a lower minimum; missing by role: 2 of role ps.",
            id="both",
        ),
    ],
)
def test_an_incomplete_group_is_told_how_many_members_are_missing(spec, pods, said):
    assert incomplete(assess(spec, pods)) == said


def test_a_group_whose_roles_are_capped_below_its_minimum_is_told_so():
    spec = group(min_member=3, roles=(Role("w", 1, 2),))
    assert incomplete(assess(spec, members(3, role="w"))) == (
        "3 of 3 members exist; some of them exceed maxMember and do not count."
    )


# Refusals


def test_a_fragmented_cluster_is_explained_with_the_largest_number_that_fits(cluster_of):
    cluster = cluster_of(*(node(f"n{at}", cpu=3) for at in range(4)), node("n4", taints=["dedicated=x:NoSchedule"]))
    assert refused(refuse(cluster, members(6, cpu=2))) == (
        "Only 4 of 6 members fit, and the present nodes could not take them even if they were empty; enough is free in "
        "total, but no node that accepts them has cpu 2 left for one more. Of 5 nodes: 4 with too little cpu; "
        "1 with a taint that is not tolerated: dedicated=x:NoSchedule."
    )


def test_what_lacks_in_all_is_explained_with_the_amount(cluster_of):
    cluster = cluster_of(node("n1", cpu=8, gpu=8), pod("old", cpu=2, gpu=4, node="n1"))
    assert refused(refuse(cluster, members(8, cpu="1500m", gpu=1))) == (
        f"Only 4 of 8 members fit, and the present nodes could not take them even if they were empty; missing on the "
        f"nodes that accept them: cpu 6, {GPU} 4. Of 1 node: 1 with too little cpu; "
        f"1 with too little {GPU}."
    )


def test_a_single_pod_is_told_of_room_and_not_of_members(cluster_of):
    cluster = cluster_of(node("n1", cpu=2), pod("old", cpu=2, node="n1"))
    assert refused(refuse(cluster, members(1))) == (
        "No node has room; missing on the nodes that accept it: cpu 1. Of 1 node: 1 with too little cpu."
    )
    assert refused(refuse(cluster, members(1, cpu=3))) == (
        "No node has room: it asks cpu 3, and the largest node that accepts it has cpu 2; ask for less or add a larger "
        "node. Of 1 node: 1 with too little cpu."
    )


def test_members_that_are_larger_than_any_node_that_accepts_them_are_told_its_size(cluster_of):
    small, large = node("n1", cpu=32), node("n2", cpu=64, taints=["pool=x:NoSchedule"])
    cluster = cluster_of(small, large, pod("old", cpu=30, node="n1"))
    assert refused(refuse(cluster, members(2, cpu=40)), holders="Held by a/b (cpu 30)") == (
        "None of 2 members fits: each member asks cpu 40, and the largest node that accepts them has cpu 32; ask for "
        "less or add a larger node. Of 2 nodes: 1 with too little cpu; 1 with a taint that is not "
        "tolerated: pool=x:NoSchedule."
    )


def test_a_resource_that_no_node_has_is_named_with_its_usual_cause(cluster_of):
    cluster = cluster_of(node("n1", cpu=32))
    assert refused(refuse(cluster, members(2, cpu=1, gpu=1))) == (
        f"None of 2 members fits: no node that accepts them offers {GPU} (is its device plug-in running?). Of 1 node: "
        f"1 with too little {GPU}."
    )


@pytest.mark.parametrize(
    ("others", "said"),
    [
        pytest.param(
            [{"node_selector": {"x": "y"}}],
            "Only 2 of 3 members fit: no node accepts the others. Of 1 node: 1 not matched by nodeSelector x=y.",
            id="a node",
        ),
        pytest.param(
            [{"cpu": 8}],
            "Only 2 of 3 members fit: each of the others asks cpu 8, and the largest node that accepts them has cpu 4; "
            "ask for less or add a larger node. Of 1 node: 1 with too little cpu.",
            id="an amount",
        ),
        pytest.param(
            [{"gpu": 1}],
            f"Only 2 of 3 members fit: no node that accepts the others offers {GPU} (is its device plug-in running?). "
            f"Of 1 node: 1 with too little {GPU}.",
            id="a resource",
        ),
        pytest.param(
            [{"cpu": 8}, {"cpu": 9}],
            "Only 2 of 4 members fit: some of the others ask cpu 8, and the largest node that accepts them has cpu 4; "
            "ask for less or add a larger node. Of 1 node: 1 with too little cpu.",
            id="several amounts",
        ),
    ],
)
def test_what_is_true_of_the_members_without_a_place_only_is_not_said_of_all(cluster_of, others, said):
    different = [pod(f"other{at}", **{"cpu": 1, **fields}) for at, fields in enumerate(others)]
    assert refused(refuse(cluster_of(node("n1", cpu=4)), [*members(2, cpu=1), *different])) == said


def test_a_cluster_without_nodes_is_explained_as_such(cluster_of):
    assert refused(refuse(cluster_of(), members(2))) == ("None of 2 members fits: there are no nodes.")


def test_that_a_new_node_would_not_help_is_said(cluster_of):
    cluster = cluster_of(node("n1"))
    found = refuse(cluster, members(2, node_selector={"kubernetes.io/hostname": "n9"}))
    assert "; a new node would not help: only nodes named beforehand take them. Of 1 node: " in refused(found)
    assert "a new node" not in refused(refuse(cluster, members(2, cpu=64)))


def test_what_new_nodes_must_bring_is_written_as_a_person_would():
    demand = (Demand(count=3, requests=(("cpu", 2000), ("memory", 4 << 30)), domain="a"), Demand(count=1, requests=()))
    assert demanded(demand) == "3 × {cpu 2, memory 4Gi} in domain a, 1 × {}"


def test_where_no_node_objects_to_one_more_nothing_is_said_of_nodes(cluster_of):
    """No member has the role: the refusal is not for lack of room."""
    found = place(Snapshot(cluster_of(node("n1"))), Ask(members=members(3), need=2, role_needs={"ps": 1}))
    assert isinstance(found, Refusal)
    assert "even if they were empty" in refused(found)
    assert "Of 1 node" not in refused(found)


ZONES = tuple(node(f"{zone}{at}", labels={"zone": zone, "host": f"{zone}{at}"}) for zone in "abcd" for at in (1, 2))
OF_ALL = PodTerm(topology_key="zone", selector=(), namespaces=("default",))
BY_APP = replace(OF_ALL, selector=(Requirement("app", "In", ("x",)),))
NEW: dict[str, Any] = {"labels": {"app": "x"}}


def running(*nodes):
    return [pod(f"r{at}", cpu="100m", node=name, **NEW) for at, name in enumerate(nodes)]


@pytest.mark.parametrize(
    ("there", "asked", "said"),
    [
        pytest.param(
            [*running("a1", "a2", "b1"), *[pod(f"big-{z}{at}", cpu=8, node=f"{z}{at}") for z in "cd" for at in (1, 2)]],
            {"spread": [Spread(BY_APP, 1)], **NEW},
            "4 where topology spread by zone (a has 2 of at most 1, b has 1 of at most 1; fewest in c: 0) "
            "allows no more",
            id="the fullest domains of topology spread",
        ),
        pytest.param(
            running("a1", "b1", "c1", "d1"),
            {"spread": [Spread(BY_APP, 1, min_domains=5)], **NEW},
            "8 where topology spread by zone (a has 1 of at most 1, b has 1 of at most 1, c has 1 of at most 1, "
            "1 more full; minDomains 5, there are 4) allows no more",
            id="too few domains",
        ),
        pytest.param(
            running(*(each.name for each in ZONES)),
            {"anti_affinity": [replace(BY_APP, topology_key="host")]},
            "8 with pods there that the required pod anti-affinity excludes from the same host: app=x",
            id="single nodes are not listed",
        ),
    ],
)
def test_the_domains_that_refuse_are_named_with_what_they_have(cluster_of, there, asked, said):
    cluster = cluster_of(*ZONES, *there)
    assert said in refused(refuse(cluster, members(9, **{"cpu": 3, **asked})))


def test_no_new_node_helps_before_a_claim_is_ready(cluster_of):
    cluster = cluster_of(node("n1"))
    cluster.set_storage(StorageKind.CLAIM, claim("c").key, claim("c"))
    said = refused(refuse(cluster, members(1, volume_claims=["c"])))
    assert "; a new node would not help before its PersistentVolumeClaims are ready. Of 1 node: " in said


def test_no_new_node_helps_members_that_must_join_others_on_one_node(cluster_of):
    host = "kubernetes.io/hostname"
    cluster = cluster_of(node("n1", cpu=2, labels={host: "n1"}), pod("m9", cpu=2, node="n1"))
    found = place(Snapshot(cluster), Ask(members=members(2), need=2, topology=Topology(key=host), own={"n1": 1}))
    assert isinstance(found, Refusal)
    assert "; a new node would not help: they must be on the node of those placed already" in refused(found)


@pytest.mark.parametrize(("number", "said"), [(1, "They fail."), (2, "They fail. Elsewhere 2 of 3 members fit.")])
def test_how_many_fit_beside_the_nodes_that_are_closed_for_now_is_said_where_there_are_others(cluster_of, number, said):
    refusal = refuse(cluster_of(*(node(f"n{at}", cpu=1) for at in range(number))), members(3))
    assert refused(replace(refusal, paused="They fail")) == said


def test_holders_and_who_is_ahead_close_the_message(cluster_of):
    cluster = cluster_of(node("n1", cpu=2), pod("old", cpu=2, node="n1"))
    said = refused(refuse(cluster, members(1)), holders="Held by default/x", ahead="Ahead of it: default/y")
    assert said.endswith(". Held by default/x. Ahead of it: default/y.")


def test_amounts_are_written_as_people_write_them():
    assert amounts([("cpu", 1500), ("memory", 2 << 30), (GPU, 8)]) == f"cpu 1.5, memory 2Gi, {GPU} 8"
    assert amounts([]) == ""


# Who is ahead, who holds


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ([], ""),
        ([key("b")], "Ahead of it: default/b"),
        ([key("b"), key("c"), key("d")], "Ahead of it: default/b, default/c, default/d"),
        ([key("b"), key("c"), key("d"), key("e")], "Ahead of it: default/b, default/c, default/d and 1 other"),
        ([key("b"), key("x/b"), key("x/c")], "Ahead of it: default/b and 2 others"),
        ([key("x/b")], "Ahead of it: 1 other group or pod"),
        ([key("x/b"), key("x/c")], "Ahead of it: 2 other groups or pods"),
        ([GroupKey("default", "pod", "uid-pod")], "Ahead of it: 1 other group or pod"),
    ],
)
def test_groups_ahead_are_named_in_the_own_namespace_and_counted_elsewhere(before, said):
    line = Ahead()
    queue = Queue(Cluster().capacity, line)
    for priority, each in enumerate([key("a"), *reversed(before)]):
        terms = SimpleNamespace(priority=priority, created=0.0, instance_group="")
        assessment: Any = SimpleNamespace(terms=terms, aged=0, want=Want(quorum=Ask(members=members(1), need=1)))
        queue.file(Gang(each), assessment)
    own, number = line.first(key("a"), lambda _: True, most=NAMED)
    assert ahead_of(own, number - len(own)) == said


def held(cluster, refusal, name="a"):
    return Holders(cluster).sentence(key(name), refusal, 0)


def test_holders_are_named_with_what_they_hold_most_first(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=16),
        node("n2", cpu=16),
        pod("x0", cpu=6, group="x", node="n1"),
        pod("x1", cpu=6, group="x", node="n2"),
        pod("y0", cpu=8, group="y", node="n1"),
        pod("z0", cpu=1, group="z", node="n2"),
        pod("single", cpu=1, group="", node="n2"),
        pod("w0", cpu="500m", group="w", node="n2"),
        pod("idle", cpu=None, memory="1Gi", group="idle", node="n2"),
    )
    refusal = refuse(cluster, members(2, cpu=9))
    assert held(cluster, refusal) == (
        "Held by default/x (cpu 12), default/y (cpu 8), default/single (cpu 1) and 2 others"
    )


def test_holders_of_other_namespaces_are_only_counted(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=8), pod("secret/x", cpu=4, node="n1"), pod("secret/y", cpu=3, group="b", node="n1")
    )
    refusal = refuse(cluster, members(2))
    assert held(cluster, refusal) == "Held by 2 other groups or pods"


def test_the_gangs_own_members_do_not_hold_against_it(cluster_of):
    cluster = cluster_of(node("n1", cpu=8), pod("old", cpu=8, group="a", node="n1"))
    refusal = refuse(cluster, members(2))
    assert held(cluster, refusal) == ""
    assert held(cluster, refusal, "other") == "Held by default/a (cpu 8)"


def test_only_nodes_that_accept_the_gang_are_looked_at(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=1),
        node("n2", cpu=8, unschedulable=True),
        pod("x", cpu=1, group="x", node="n1"),
        pod("y", cpu=8, group="y", node="n2"),
    )
    assert held(cluster, refuse(cluster, members(1))) == "Held by default/x (cpu 1)"


def test_where_no_resource_lacks_nobody_holds_it(cluster_of):
    cluster = cluster_of(node("n1"), pod("x", group="x", node="n1", host_ports=[80]))
    assert held(cluster, refuse(cluster, members(1, host_ports=[80]))) == ""


def test_a_fragmented_resource_has_holders_too(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=4), node("n2", cpu=4), pod("x", cpu=2, group="x", node="n1"), pod("y", group="y", node="n2")
    )
    assert held(cluster, refuse(cluster, members(1, cpu=4))) == "Held by default/x (cpu 2), default/y (cpu 1)"


def test_answers_are_remembered_until_they_are_renewed(cluster_of):
    cluster = cluster_of(node("n1", cpu=1), pod("x", group="x", node="n1"))
    holders = Holders(cluster)
    refusal = refuse(cluster, members(1))
    assert holders.sentence(key("a"), refusal, 0) == "Held by default/x (cpu 1)"
    cluster.remove_pod("uid-default/x")
    assert holders.sentence(key("a"), refusal, 0) == "Held by default/x (cpu 1)"
    holders.renew(1.0)
    assert holders.sentence(key("a"), refusal, 0) == ""


def test_answers_for_which_many_pods_were_examined_are_remembered_longer(cluster_of):
    """4,000 pods and a node are examined, for a quarter of a millisecond each."""
    there = [pod(f"x-{at}", group="x", cpu="1m", node="n1") for at in range(4000)]
    cluster = cluster_of(node("n1", cpu=4, pods=5000), *there)
    holders = Holders(cluster)
    refusal = refuse(cluster, members(1))
    assert holders.of(refusal).by == {key("x"): 4000}
    cluster.remove_pod("uid-default/x-0")
    holders.renew(1.0)
    assert holders.of(refusal).by == {key("x"): 4000}
    holders.renew(1.1)
    assert holders.of(refusal).by == {key("x"): 3999}


def test_where_no_node_accepts_them_no_amount_is_called_missing(cluster_of):
    """Two empty, cordoned nodes: uncordoning one would be enough, so cpu is not missing."""
    cluster = cluster_of(node("n1", cpu=4, unschedulable=True), node("n2", cpu=4, unschedulable=True))
    assert refused(refuse(cluster, members(2))) == (
        "None of 2 members fits: no node accepts them. Of 2 nodes: 2 cordoned."
    )


# Room that is not free although no group holds it


def said_about(cluster, refusal, *, priority=0, now=0.0, name="a"):
    return Holders(cluster, now).sentence(key(name), refusal, priority)


DUE = 1000.0


@pytest.mark.parametrize(
    ("late_s", "stuck"),
    [(-30, False), (0, False), (STUCK_S - 1, False), (STUCK_S, True), (6 * 86400, True)],
)
def test_a_terminating_pod_is_named_as_stuck_only_long_after_its_grace_period(cluster_of, late_s, stuck):
    """A pod days beyond its grace period was told as "coming free" (volcano#3000, kueue#13830)."""
    cluster = cluster_of(node("n1", cpu=4), pod("old", cpu=4, node="n1", terminating=True, gone_by=DUE))
    said = said_about(cluster, refuse(cluster, members(4)), now=DUE + late_s)
    assert ("default/old is stuck" in said, "coming free" in said.replace("not coming free", "")) == (stuck, not stuck)


def test_what_is_stuck_and_what_is_coming_free_are_told_apart(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=4),
        pod("old", cpu=1, node="n1", terminating=True, gone_by=DUE),
        pod("x/old", cpu=2, node="n1", terminating=True, gone_by=DUE),
        pod("new", cpu=1, node="n1", terminating=True, gone_by=DUE + 3600),
    )
    assert said_about(cluster, refuse(cluster, members(4)), now=DUE + 3700) == (
        "cpu 1 of terminating pods is coming free; cpu 3 is not coming free: default/old and 1 other are stuck "
        "terminating and should have been gone by 1970-01-01T00:16:40Z: remove what keeps them, such as a finalizer or "
        "an unreachable node"
    )


def test_the_answer_is_found_again_as_soon_as_a_pod_is_overdue(cluster_of):
    cluster = cluster_of(node("n1", cpu=4), pod("old", cpu=4, node="n1", terminating=True, gone_by=DUE))
    refusal, holders = refuse(cluster, members(4)), Holders(cluster)
    holders.renew(DUE + STUCK_S - 0.1)
    assert holders.of(refusal).until == DUE + STUCK_S
    assert not holders.of(refusal).stuck
    holders.renew(DUE + STUCK_S)
    assert [pod.name for pod, _ in holders.of(refusal).stuck] == ["old"]
    # It may have gone by then, which wakes nobody if another takes its room.
    assert holders.of(refusal).until == DUE + 2 * STUCK_S


@pytest.mark.parametrize(
    ("web", "priority", "told"),
    [
        ("web", 0, "cpu 2 is kept for the pod that another scheduler has nominated to a node: default/web"),
        ("web", 1000, "cpu 2 is kept for the pod that another scheduler has nominated to a node: default/web"),
        ("web", 1001, ""),
        (
            "x/web",
            0,
            "cpu 2 is kept for the pod that another scheduler has nominated to a node: 1 pod of other namespaces",
        ),
    ],
)
def test_the_pod_for_which_room_is_kept_is_named(cluster_of, web, priority, told):
    """Nobody was named where room was kept for a nominated pod (KAI-Scheduler#1454, koordinator#2864)."""
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=1, unschedulable=True))
    for name, on in ((web, "n1"), ("elsewhere", "n2")):
        waits = pod(name, cpu=2, nominated_node=on, priority=1000, scheduler="other")
        cluster.set_pod(waits)
        cluster.nominate(waits)
    snapshot = Snapshot(cluster)
    snapshot.stand_for(Viewer(0))
    refusal = place(snapshot, Ask(members=members(4), need=4))
    assert said_about(cluster, refusal, priority=priority) == told


# Who is really ahead


def waiting_line(*things):
    """A machine with these nodes, groups and pods; the groups wait."""
    return decided(listed(*things), policy=Policy(), now=100.0)


def ahead_in(machine, name):
    return [other.name for other in Findings(machine).ahead(key(name))]


BUSY = [node("n1", cpu=4), pod("busy", cpu=3, group="busy", node="n1")]


def test_a_group_that_can_never_fit_is_not_ahead_of_others():
    machine = waiting_line(
        *BUSY,
        *(group(name, min_member=2, created=float(at)) for at, name in enumerate(["huge", "b", "c"])),
        *(pod(f"huge-{at}", cpu=8, group="huge") for at in range(2)),
        *(pod(f"{name}-{at}", group=name) for name in "bc" for at in range(2)),
    )
    assert machine.gangs[key("huge")].wait.refusal.never
    assert (ahead_in(machine, "b"), ahead_in(machine, "c")) == ([], ["b"])
    assert ahead_in(machine, "huge") == []
    said = {finding.key.name: finding.message for finding in Findings(machine).all()}
    assert "Ahead of it" not in said["b"]
    assert "Ahead of it: default/b." in said["c"]
    assert [each.key.name for each in rows(machine) if each.turn] == ["b", "c"]


@pytest.mark.parametrize(
    ("selector", "ahead"), [({"pool": "x"}, []), ({"pool": "y"}, ["first"]), ({}, ["first"]), ({"pool": "none"}, [])]
)
def test_a_group_that_only_other_nodes_accept_is_not_ahead(selector, ahead):
    machine = waiting_line(
        *(node(f"n-{pool}", cpu=4, labels={"pool": pool}) for pool in "xy"),
        *(pod(f"busy-{pool}", cpu=3, group=f"busy-{pool}", node=f"n-{pool}") for pool in "xy"),
        group("first", min_member=3),
        group("second", min_member=2, created=1.0),
        *(pod(f"first-{at}", group="first", node_selector=selector) for at in range(3)),
        *(pod(f"second-{at}", group="second", node_selector={"pool": "y"}) for at in range(2)),
    )
    assert ahead_in(machine, "second") == ahead
    assert machine.ahead.first(key("second"), lambda _: True, most=3)[1] == ("none" not in selector.values())


def test_nodes_that_are_added_before_the_answer_is_forgotten_count_for_who_is_ahead(cluster_of):
    """Regression: masks of different lengths were combined, and the group was parked after an internal error."""
    cluster = cluster_of(node("n0"), node("n1", labels={"pool": "x"}))
    holders = Holders(cluster)
    mine, other = (refuse(cluster, members(1, cpu=1000, node_selector={"pool": pool})) for pool in "xy")
    assert not holders.contending(mine)(wanted_by(other))
    cluster.set_node(node("n2", labels={"pool": "y"}))
    cluster.set_node(node("n3", labels={"pool": "x"}))
    anything = refuse(cluster, members(1, cpu=1000))
    assert holders.contending(mine)(wanted_by(anything))
    assert not holders.contending(mine)(wanted_by(other))


def test_an_incomplete_group_has_no_turn():
    groups = [group("a", min_member=3, created=1.0), group("b", min_member=2, created=2.0)]
    machine = waiting_line(*BUSY, *groups, *pods("a", 2), *pods("b", 2))
    assert [each.key.name for each in rows(machine) if each.turn] == ["b"]


def test_with_very_many_kinds_of_groups_all_of_them_count_as_ahead():
    """Counting by kinds of nodes must not make a message cost what all groups cost."""
    many = range(MOST_KINDS + 1)
    machine = waiting_line(
        *BUSY,
        *(group(f"g{at}", min_member=2, created=float(at)) for at in many),
        *(pod(f"g{at}-{n}", group=f"g{at}", tolerations=[f"k{at}=v:NoSchedule"]) for at in many for n in range(2)),
    )
    assert len(ahead_in(machine, f"g{MOST_KINDS}")) == MOST_KINDS
