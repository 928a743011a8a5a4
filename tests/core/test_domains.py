"""Which of several domains a gang gets, and how many where one is preferred but none has room for all."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import Level, Topology
from gangsched.core.objects.record import Choice, Minima
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.core.planning import budget as units
from gangsched.core.planning import topology
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.further import place_each
from gangsched.core.planning.placement import Ask, Placement, Unfinished, place
from gangsched.core.planning.strategies import STRATEGIES
from gangsched.core.planning.topology import RecentRequests
from tests.builders import node, pod

REQUIRED = Topology("rack")
PREFERRED = Topology("rack", required=False)


def racks(*cpus, **more):
    """One node in each of the racks a, b, c …, and further ones by name."""
    named = {f"{name}1": cpu for name, cpu in zip("abcdefgh", cpus, strict=False)} | more
    return [node(name, cpu=cpu, labels={"rack": name[0]}) for name, cpu in named.items()]


def gang(*cpus, **fields):
    return [pod(f"m{at}", cpu=cpu, created=float(at), **fields) for at, cpu in enumerate(cpus)]


def bound(cluster, members, need, *, topology, **fields):
    """Where the members get a node: the quorum, then the others one by one, in this order."""
    snapshot = Snapshot(cluster)
    found = place(snapshot, Ask(members=members, need=need, topology=topology, **fields))
    assert isinstance(found, Placement), found
    there = {member.name: where for member, where in found.assignments}
    own: dict[str, int] = dict(fields.get("own", {}))
    for where in there.values():
        own[where] = own.get(where, 0) + 1
    rest = [member for member in members if member.name not in there][: fields.get("most", 99) - len(there)]
    if rest:
        more = place_each(snapshot, Ask(members=rest, need=1, topology=topology, own=own), RecentRequests())
        there |= {member.name: where for member, where in more.places}
    return there


def racks_of(there):
    return "".join(sorted(where[0] for where in there.values()))


@pytest.mark.parametrize(
    ("cpus", "sizes", "need", "most", "chosen"),
    [
        pytest.param((1, 3), (1, 1, 1), 1, 1, "a", id="no more than maxMember matter"),
        pytest.param((3, 9), (1, 1, 1), 2, None, "aaa", id="the tighter of those that take all"),
    ],
)
def test_a_required_domain_is_chosen_for_the_members_that_exist(cluster_of, cpus, sizes, need, most, chosen):
    """tests/properties/test_domain_properties.py finds that it takes as many as any other."""
    there = bound(cluster_of(*racks(*cpus)), gang(*sizes), need, topology=REQUIRED, **({"most": most} if most else {}))
    assert racks_of(there) == chosen


def test_of_domains_that_take_equally_many_the_one_for_the_first_members_wins(cluster_of):
    """The first member fits into the second rack alone; either rack takes one member."""
    cluster = cluster_of(*racks(1, 2))
    assert bound(cluster, gang(2, 1), 1, topology=REQUIRED) == {"m0": "b1"}


def test_members_that_will_be_placed_one_by_one_choose_their_domain_together(cluster_of):
    """A quorum of a group that has lost all of its members is repaired one by one."""
    snapshot = Snapshot(cluster_of(*racks(1, 2, 3)))
    found = place_each(snapshot, Ask(members=gang(1, 1, 1), need=1, topology=REQUIRED), RecentRequests())
    assert [where for _, where in found.places] == ["c1"] * 3


def test_a_domain_that_affinity_requires_is_chosen_for_the_members_that_exist_too(cluster_of):
    near = PodTerm("rack", (Requirement("app", "In", ("a",)),), ("default",))
    members = gang(1, 1, 1, labels={"app": "a"}, affinity=[near])
    assert racks_of(bound(cluster_of(*racks(1, 3)), members, 1, topology=None)) == "bbb"
    mixed = [pod("free", cpu=1), *members]
    assert racks_of(bound(cluster_of(*racks(2, 1, 4), node("plain", cpu=0)), mixed, 2, topology=None)) == "cccc"


@pytest.mark.parametrize(
    ("cpus", "sizes", "need", "chosen"),
    [
        pytest.param((1, 1, 2), (1, 1, 1), 3, "acc", id="the largest and one more"),
        pytest.param((2, 3, 3, 4), (1,) * 6, 6, "bbbccc", id="the tightest two"),
        pytest.param((5, 3, 3), (3, 3, 1, 1), 4, "aaab", id="the roomiest with one of several"),
    ],
)
def test_of_as_few_preferred_domains_as_possible_the_tightest_are_taken(cluster_of, cpus, sizes, need, chosen):
    assert racks_of(bound(cluster_of(*racks(*cpus)), gang(*sizes), need, topology=PREFERRED)) == chosen


def test_classes_that_no_rack_takes_together_decide_which_racks_are_needed(cluster_of):
    """Three racks take most members each, but only d has the GPUs."""
    nodes = [
        node("a1", cpu=4, labels={"rack": "a"}),
        node("b1", cpu=3, labels={"rack": "b"}),
        node("c1", cpu=3, labels={"rack": "c"}),
        node("d1", cpu=1, gpu=2, labels={"rack": "d"}),
    ]
    members = [*gang(1, 1, 1, 1), pod("g0", cpu=0, gpu=1), pod("g1", cpu=0, gpu=1)]
    assert racks_of(bound(cluster_of(*nodes), members, 6, topology=PREFERRED)) == "bbbddd"


def test_racks_with_members_come_before_further_ones(cluster_of):
    """Two members are in a and one in b; the quorum of two does not fit into a, but into a and b."""
    cluster = cluster_of(*racks(1, 1, 2))
    assert racks_of(bound(cluster, gang(1, 1), 2, topology=PREFERRED, own={"a1": 2, "b1": 1})) == "ab"


def test_further_members_open_no_rack_while_one_in_use_has_room(cluster_of):
    """The quorum of three fills c and takes a; three more find room in b, which is used, before d is opened."""
    cluster = cluster_of(*racks(1, 3, 2, 9), pod("old", cpu=8, node="d1"))
    there = bound(cluster, gang(1, 1, 1, 1, 1), 5, topology=PREFERRED)
    assert racks_of(there) == "bbbcc"
    there = bound(cluster, gang(1, 1, 1, 1), 3, topology=PREFERRED, own={"c1": 1})
    assert racks_of(there) in ("bbbc", "bbcc")


def test_a_further_rack_is_the_one_that_takes_most_of_the_others(cluster_of):
    """The quorum is in a, which is full then; of three more, b takes one and c all."""
    there = bound(cluster_of(*racks(2, 1, 3)), gang(1, 1, 1, 1, 1), 2, topology=PREFERRED, own={"a1": 1})
    assert racks_of(there) == "aaccc"


def test_nodes_without_the_label_are_the_last_resort(cluster_of):
    cluster = cluster_of(*racks(1, 1), node("plain", cpu=9))
    assert sorted(bound(cluster, gang(1, 1), 2, topology=PREFERRED).values()) == ["a1", "b1"]
    assert "plain" in bound(cluster, gang(1, 1, 1), 3, topology=PREFERRED).values()


def test_many_racks_are_added_from_the_roomiest_and_dropped_where_others_are_enough(cluster_of, monkeypatch):
    monkeypatch.setattr(topology, "combinations", lambda *_: iter(()))
    cluster = cluster_of(*racks(1, 1, 2, 4))
    assert racks_of(bound(cluster, gang(1, 1, 1, 1, 1), 5, topology=PREFERRED)) == "ccddd"
    # The last in the order is needed for its GPU, and of those before it two are.
    members, gpus = [*gang(1, 1, 1, 1), pod("g0", cpu=0, gpu=1)], node("e1", cpu=0, gpu=1, labels={"rack": "e"})
    spread = {"topology": PREFERRED, "strategy": STRATEGIES["Spread"]}
    assert racks_of(bound(cluster_of(*racks(2, 2, 2, 2), gpus), members, 5, **spread)) == "aabbe"


def test_a_gang_that_many_racks_take_only_together_is_placed_within_the_budget(cluster_of):
    nodes = [node(f"n{at:03}", cpu=4, labels={"rack": f"r{at // 2:03}"}) for at in range(400)]
    snapshot = Snapshot(cluster_of(*nodes))
    before = snapshot.budget.spent
    members = [pod(f"m{at}", cpu=1 + at % 3) for at in range(300)]
    found = place(snapshot, Ask(members=members, need=300, topology=PREFERRED))
    assert isinstance(found, Placement)
    assert len({where[:4] for _, where in found.assignments}) <= 200
    assert snapshot.budget.spent - before < 3_000_000


@pytest.mark.parametrize("elsewhere", [1, 0])
def test_a_level_confines_a_further_member_also_where_the_preferred_domain_is_full(cluster_of, elsewhere):
    """Regression: once the preferred zone was full, a further member left the rack of its level as well.

    Steps: both zones have nodes of rack 1 and of rack 2; a member is in zone a and rack 1, where there is no more room.
    """
    nodes = [("a1", "a", "1", 1), ("a2", "a", "2", 8), ("b1", "b", "1", elsewhere), ("b2", "b", "2", 8)]
    cluster = cluster_of(
        *(node(name, cpu=cpu, labels={"zone": zone, "rack": rack}) for name, zone, rack, cpu in nodes),
        pod("m0", cpu=1, role="part", node="a1"),
    )
    ask = Ask(
        members=[pod("m1", cpu=1, role="part")],
        need=1,
        topology=Topology("zone", required=False),
        levels=(Level("rack", ("part",)),),
        own={"a1": 1},
        own_by_role={"part": {"a1": 1}},
    )
    found = place_each(Snapshot(cluster), ask, RecentRequests())
    assert [where for _, where in found.places] == ["b1"] * elsewhere


def test_a_part_that_fits_nowhere_does_not_stand_for_one_with_other_roles_in_one_domain(cluster_of):
    """Both have a role of 3 CPUs twice and one of 1 CPU twice; only of the second a rack takes what it must."""
    sizes = dict.fromkeys(("a1", "a2", "b1", "b2"), 3) | dict.fromkeys(("a3", "a4", "b3", "b4"), 1)
    parts = tuple(Minima(4, tuple((f"{name}{at}", 1) for at in (1, 2, 3, 4))) for name in "ab")
    levels = [Level("rack", roles) for roles in (("a1", "a2"), ("a3", "a4"), ("b1", "b3"), ("b2", "b4"))]
    members = [pod(role, cpu=size, role=role) for role, size in sizes.items()]
    ask = Ask(members=members, need=4, choices=(Choice(1, parts),), levels=tuple(levels))
    found = place(Snapshot(cluster_of(*racks(4, 4))), ask)
    assert isinstance(found, Placement)
    assert {member.name for member, _ in found.assignments} == {"b1", "b2", "b3", "b4"}


def test_domains_that_one_call_has_no_time_for_are_tried_in_the_next(cluster_of, monkeypatch):
    """By sums the racks a and b take all three members, and a trial of each takes longer than a call has for it."""
    monkeypatch.setattr(units, "DOMAINS", 3_000)
    cluster, recent = cluster_of(*racks(4, 4, 4, a2=4, b2=4, c2=4, c3=4)), RecentRequests()
    ask = Ask(members=gang(3, 3, 2), need=3, topology=REQUIRED)
    first, second, third = (place(Snapshot(cluster), ask, recent) for _ in range(3))
    assert isinstance(first, Unfinished)
    assert isinstance(second, Unfinished)
    assert isinstance(third, Placement)
    assert {where[0] for _, where in third.assignments} == {"c"}
