"""Work split into bounded calls: the same placements, no gang forgotten, every gang reached."""

from __future__ import annotations

from collections import Counter
from unittest import mock

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.claims import Viewer
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Preference, Topology
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import (
    Event,
    GroupGone,
    GroupSeen,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
    Synced,
    TimePassed,
)
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import NamespaceLimits, Policy
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.further import Found, place_each
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.strategies import STRATEGIES
from gangsched.core.planning.topology import RecentRequests
from gangsched.core.queueing import parking
from gangsched.core.queueing import queue as queue_module
from tests.builders import group, key, label_pairs, node, pod, pods, shape
from tests.clusters import cluster_of
from tests.effort import examples


def one_by_one(snapshot, ask):
    """The reference: each member is placed on its own, as a quorum of one that the others follow."""
    own = Counter(ask.own)
    found = Found()
    for at, member in enumerate(ask.members):
        placed = place(snapshot, replace(ask, members=(member,), following=ask.members[at + 1 :], own=own))
        if isinstance(placed, Placement):
            found.places += placed.assignments
            own.update(where for _, where in placed.assignments)
        else:
            assert isinstance(placed, Refusal)
            found.refused[member.uid] = placed
    return found


@st.composite
def crowds(draw):
    """A few nodes, most of them in zones, and members of few shapes, in runs."""
    nodes = [
        node(
            f"n{at}",
            cpu=draw(st.integers(0, 7)),
            memory=draw(st.integers(1, 9)),
            pods=draw(st.integers(1, 6)),
            labels={"disk": draw(st.sampled_from("ab"))} | draw(st.sampled_from(({"zone": "x"}, {"zone": "y"}, {}))),
        )
        for at in range(draw(st.integers(1, 5)))
    ]
    kinds = [
        shape(
            draw(st.integers(0, 3)), memory=draw(st.integers(0, 2)), host_ports=draw(st.sampled_from(((), (), (80,))))
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    which = [draw(st.integers(0, len(kinds) - 1))] * draw(st.integers(1, 9))
    which += draw(st.lists(st.integers(0, len(kinds) - 1), max_size=6))
    members = [replace(pod(f"m-{at:02}", created=float(at)), shape=kinds[kind]) for at, kind in enumerate(which)]
    names = [each.name for each in nodes]
    return nodes, Ask(
        members=members,
        need=1,
        strategy=draw(st.sampled_from(list(STRATEGIES.values()))),
        prefer=draw(st.sampled_from(((), (Preference("disk", "Ascending"),)))),
        topology=draw(st.sampled_from((None, None, Topology("zone"), Topology("zone", required=False)))),
        own=draw(st.dictionaries(st.sampled_from(names), st.integers(1, 3), max_size=2)),
        avoided=draw(st.frozensets(st.sampled_from(names), max_size=1)),
    )


@given(crowds())
@settings(max_examples=examples(300))
def test_members_placed_by_class_stand_where_each_alone_would_stand(problem):
    """On the same nodes if all are of one kind; otherwise as many, and if not all fit, the same members."""
    nodes, ask = problem
    cluster = cluster_of(*nodes)
    single, several = Snapshot(cluster), Snapshot(cluster)
    expected, found = one_by_one(single, ask), place_each(several, ask, RecentRequests())
    assert not found.left
    event(f"{'some' if expected.refused else 'none'} refused, {len(found.places)} placed")
    if expected.refused and not found.refused:
        # Class by class, out of order, all of them fit; one by one, some are left out.
        return
    assert {member.uid for member, _ in found.places} == {member.uid for member, _ in expected.places}
    assert found.refused.keys() == expected.refused.keys()
    if len({member.shape for member in ask.members}) == 1:
        spread = ask.strategy is STRATEGIES["Spread"]
        # Spread evens out the numbers on nodes; among equal nodes, it does not recompute the emptiest each time.
        of_both = [Counter(where for _, where in each.places) for each in (found, expected)]
        if spread:
            of_both = [Counter((each + Counter(ask.own)).values()) for each in of_both]
        assert of_both[0] == of_both[1]
    assert (several.free >= 0).all() or (Snapshot(cluster).free < 0).any()


@given(crowds(), st.integers(1, 5))
@settings(max_examples=examples(100))
def test_what_the_budget_leaves_is_gone_on_with_until_all_is_placed_or_refused(problem, most):
    """Not always as many as with a budget for all: members placed together go class by class, out of order."""
    nodes, ask = problem
    ask = replace(ask, topology=None, avoided=frozenset())
    cluster = cluster_of(*nodes)
    snapshot = Snapshot(cluster)
    own, places, left = Counter(ask.own), [], ask.members
    refused: set[str] = set()
    while left:
        snapshot.budget = Budget(left=most * units.MEMBER)
        found = place_each(snapshot, replace(ask, members=left, own=own), RecentRequests())
        assert len(found.left) < len(left)
        places += found.places
        refused |= found.refused.keys()
        own.update(where for _, where in found.places)
        left = found.left
    assert {member.uid for member, _ in places} | refused == {member.uid for member in ask.members}
    snapshot.budget = Budget()
    late = [member for member in ask.members if member.uid in refused]
    assert not place_each(snapshot, replace(ask, members=late, own=own), RecentRequests()).places


priorities = st.integers(0, 2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("gang"), st.integers(1, 4), st.integers(1, 4), st.sampled_from((None, "a", "b")), priorities),
        st.tuples(st.just("node"), st.integers(0, 3), st.integers(0, 8), st.sampled_from("ab"), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 50), st.just(0), st.none(), st.just(0)),
        st.tuples(st.just("mixed"), st.integers(1, 3), st.integers(1, 4), st.none(), priorities),
        st.tuples(st.just("kept"), st.integers(0, 3), st.integers(1, 8), st.none(), priorities),
    ),
    min_size=4,
    max_size=30,
)


@given(steps, st.sampled_from((0, 32)))
@settings(max_examples=examples(200))
def test_at_rest_nobody_waits_who_could_have_a_place(story, renewed):
    """As if every event woke every gang: the current state refuses each parked gang."""
    with mock.patch.object(parking, "RENEWED", renewed):
        machine = played(story)
    waiting = [gang for gang in machine.gangs.values() if gang.wait.parked]
    event(f"{min(len(waiting), 3)} parked")
    for gang in waiting:
        terms, want = machine.assessments[gang.key].terms, machine.assessments[gang.key].want
        asks = [want.quorum] if want.quorum is not None else []
        asks += [Ask(members=(each,), need=1) for each in want.extras]
        for ask in asks:
            snapshot = Snapshot(machine.cluster)
            snapshot.stand_for(Viewer(terms.priority))
            assert isinstance(place(snapshot, ask), Refusal), gang.key
    assert machine.validate() == []


def played(story):
    """A machine that has handled the whole story and has nothing left to do."""
    machine = Machine(Policy(default_max_schedule_time_s=1e6))
    machine.handle([Synced()], 1.0)
    there: dict[str, Pod] = {}
    now = 1.0
    for at, (what, number, cpu, label, priority) in enumerate(story):
        events: list[Event] = []
        if what in ("gang", "mixed"):
            name = f"g{at}"
            selector = {"disk": label} if label else None
            members = pods(name, number, cpu=cpu, node_selector=selector)
            if what == "mixed":
                members += pods(name, 1, first=number, cpu=5 - cpu)
            there |= {each.uid: each for each in members}
            minimum = max(1, len(members) - at % 2)
            events = [GroupSeen(group(name, min_member=minimum, priority=priority)), *map(PodSeen, members)]
        elif what == "node":
            events = [NodeSeen(node(f"n{number}", cpu=cpu, labels={"disk": label}))]
        elif what == "kept":
            heir = pod(f"k{at}", group="", cpu=cpu, scheduler="x", nominated_node=f"n{number}", priority=priority)
            there[heir.uid] = heir
            events = [PodSeen(heir)]
        elif there:
            uid = sorted(there)[number % len(there)]
            del there[uid]
            events = [PodGone(uid)]
        while events:
            effects = machine.handle(events, now)
            events = []
            for effect in effects:
                if isinstance(effect, BindPod):
                    there[effect.uid] = replace(there[effect.uid], node=effect.node)
                    events.append(PodSeen(there[effect.uid]))
            due = machine.next_deadline()
            if not events and due is not None and due <= now:
                events = [TimePassed()]
        now += 2.0
    return machine


def test_room_that_is_freed_bit_by_bit_is_added_up():
    """Three slots on three nodes, a minute apart; each alone is too little to retry a gang of three."""
    with mock.patch.object(parking, "RENEWED", 0):
        machine = Machine(Policy(default_max_schedule_time_s=1e6))
        blocking = [pod(f"x{at}", group="", node=f"n{at}", cpu=4) for at in range(3)]
        waiting: list[Event] = [GroupSeen(group("a", min_member=3)), *map(PodSeen, pods("a", 3, cpu=2))]
        nodes = [NodeSeen(node(f"n{at}", cpu=4)) for at in range(3)]
        machine.handle([*nodes, *map(PodSeen, blocking), *waiting, Synced()], 1.0)
        for at, each in enumerate(blocking):
            shrunk = replace(each, shape=shape(2))
            effects = machine.handle([PodSeen(shrunk)], 60.0 * at + 60.0)
            machine.handle([TimePassed()], 60.0 * at + 61.0)
            assert machine.stats().refusals == {"Unschedulable": 1}
    assert sum(isinstance(effect, BindPod) for effect in effects) == 3


def test_under_constant_events_a_gang_is_reached_within_the_calls_that_are_promised(monkeypatch):
    """More urgent gangs than one call has time for keep arriving.

    A call reconciles two gangs, and after PATIENCE calls one of them is an old one: after PATIENCE + n calls the last
    old one is in the queue. By then 3 new gangs have come with each call, and at least one of those that wait to be
    reconciled is, or of those that wait to be tried is tried, in each call.
    """
    patience = 5
    monkeypatch.setattr(units, "CALL", 4 * units.GANG)
    monkeypatch.setattr(queue_module, "PATIENCE", patience)
    machine = Machine(Policy())
    machine.handle([NodeSeen(node(cpu=1000, pods=1000)), Synced()], 1.0)
    waiting = 20
    old: list[Event] = [GroupSeen(group(f"old{at:02}", min_member=1, priority=0)) for at in range(waiting)]
    old += [PodSeen(pod(f"old{at:02}-0", group=f"old{at:02}")) for at in range(waiting)]
    bound = Counter(effect.name[:3] for effect in machine.handle(old, 1.0) if isinstance(effect, BindPod))
    filed = patience + waiting + 1
    for call in range(filed + patience + 2 * waiting + 3 * filed):
        name = f"new{call}"
        events = [
            each
            for at in range(3)
            for each in (
                GroupSeen(group(f"{name}-{at}", min_member=1, priority=9)),
                PodSeen(pod(f"{name}-{at}-0", group=f"{name}-{at}")),
            )
        ]
        for effect in machine.handle(events, 2.0 + call / 100):
            if isinstance(effect, BindPod):
                bound[effect.name[:3]] += 1
        if bound["old"] == waiting:
            break
    assert bound["old"] == waiting
    assert bound["new"]
    assert machine.gangs[key("old19")].operations.bindings


def test_a_group_of_many_different_members_without_room_is_tried_once_for_each_relief():
    """More kinds of requests than are distinguished: the group has its own bucket, which must not stay open."""
    machine = Machine(Policy(default_max_schedule_time_s=1e6))
    several = [pod(f"a-{at}", cpu=50 + at) for at in range(parking.MOST_ASKED + 4)]
    first = pod("a-first", cpu=1)
    blocking = pod("x", group="", node="n1", cpu=2)
    seen: list[Event] = [NodeSeen(node(cpu=8)), GroupSeen(group("a", min_member=1))]
    machine.handle([*seen, *map(PodSeen, (first, blocking, *several)), Synced()], 1.0)
    now = 1.0
    events: list[Event] = [PodSeen(replace(first, node="n1")), PodGone(blocking.uid)]
    for _ in range(20):
        machine.handle(events, now)
        due = machine.next_deadline()
        if due is None:
            break
        now, events = max(now, due), [TimePassed()]
    assert machine.next_deadline() is None
    machine.handle([NodeSeen(node("large", cpu=52))], now)
    machine.handle([TimePassed()], now)
    assert sum(bool(machine.cluster.node_of(each.uid)) for each in several) == 1


def test_a_search_for_many_different_members_that_takes_many_calls_ends(monkeypatch):
    """Regression: the group's own bucket was made behind the search, and open at once."""
    monkeypatch.setattr(units, "CALL", 6_000)
    machine = Machine(Policy(default_max_schedule_time_s=1e6))
    several = [pod(f"a-{at:02}", cpu=50 + at) for at in range(2 * parking.MOST_ASKED)]
    events = [NodeSeen(node(cpu=8)), GroupSeen(group("a", min_member=1)), *map(PodSeen, [pod("a-first"), *several])]
    assert at_rest(machine, 1.0, *events, Synced()) == ["a-first"]
    at_rest(machine, 2.0, TimePassed())
    assert sum(machine.stats().refusals.values()) == len(several)
    assert at_rest(machine, 3.0, NodeSeen(node("large", cpu=51))) == ["a-00"]


def test_what_is_freed_while_such_a_search_goes_on_counts(monkeypatch):
    """Others are parked, so that what was freed is forgotten once it has helped none of them."""
    monkeypatch.setattr(units, "CALL", 6_000)
    machine = Machine(Policy(default_max_schedule_time_s=1e6))
    several = [pod(f"a-{at:02}", cpu=50 + at) for at in range(2 * parking.MOST_ASKED)]
    other = [GroupSeen(group("b", min_member=1)), PodSeen(pod("b-0", gpu=1))]
    at_rest(machine, 1.0, NodeSeen(node(cpu=8)), *other, Synced())
    machine.handle([GroupSeen(group("a", min_member=1)), *map(PodSeen, [pod("a-first"), *several])], 2.0)
    refused = machine.gangs[key("a")].wait.refused_members
    while not refused:
        machine.handle([TimePassed()], 2.0)
    assert several[0].uid in refused
    assert several[-1].uid not in refused
    assert at_rest(machine, 2.0, NodeSeen(node("large", cpu=50))) == ["a-00"]


def at_rest(machine: Machine, now: float, *events: Event) -> list[str]:
    """Give the machine these events, let it finish, and return the names of the pods whose bindings it sends."""
    effects = machine.handle(list(events), now)
    for _ in range(100):
        due = machine.next_deadline()
        if due is None or due > now:
            return sorted(effect.name for effect in effects if isinstance(effect, BindPod))
        effects += machine.handle([TimePassed()], now)
    raise AssertionError("the machine does not come to rest")


def test_what_is_freed_right_after_a_refusal_wakes_though_many_nodes_had_just_changed():
    """Nodes with free CPU and nodes with free memory change together; the gang is refused; then memory is freed."""
    machine = Machine(Policy(default_max_schedule_time_s=1e6))
    nodes = [node(f"c{at}", cpu=8, memory=8) for at in range(5)] + [node(f"m{at}", cpu=4, memory=80) for at in range(5)]
    taken = [pod(f"c{at}", group="", node=f"c{at}", cpu="1m", memory=8) for at in range(5)]
    taken += [pod(f"m{at}", group="", node=f"m{at}", cpu=4, memory=1) for at in range(5)]
    waits: list[Event] = [GroupSeen(group("a", min_member=1)), PodSeen(pod("a-0", cpu=1, memory=1))]
    assert not at_rest(machine, 1.0, *map(NodeSeen, nodes), *map(PodSeen, taken), *waits, Synced())
    assert not at_rest(machine, 1.0, *(NodeSeen(replace(each, labels=label_pairs({"x": "y"}))) for each in nodes))
    assert at_rest(machine, 2.0, PodGone(taken[3].uid)) == ["a-0"]


def test_members_of_a_large_gang_that_were_refused_again_hear_of_what_is_freed_right_after():
    """A large gang is not updated again at once; another gang waits as well."""
    machine = Machine(Policy(default_max_schedule_time_s=1e6), reconcile_pause_s_per_pod=0.01)
    members = [pod(f"a-{at:03}", cpu=2) for at in range(300)]
    taken = [pod("x", group="", node="n1", cpu=2), pod("y", group="", node="n2", cpu=2)]
    groups: list[Event] = [GroupSeen(group("a", min_member=1)), GroupSeen(group("b", min_member=3))]
    groups += map(PodSeen, [*members, *pods("b", 3, cpu=3)])
    nodes = [NodeSeen(node("n1", cpu=4)), NodeSeen(node("n2", cpu=2))]
    assert at_rest(machine, 1.0, *nodes, *map(PodSeen, taken), *groups, Synced()) == ["a-000"]
    at_rest(machine, 1.0, PodSeen(replace(members[0], node="n1")))
    at_rest(machine, 9.0, TimePassed())
    assert not at_rest(machine, 10.0, NodeSeen(node("n3", cpu=1)))
    assert at_rest(machine, 11.0, PodGone(taken[1].uid)) + at_rest(machine, 20.0, TimePassed()) == ["a-001"]


def test_members_refused_for_more_requests_than_are_kept_apart_are_tried_when_anti_affinity_ends():
    """The node of the pod that closed their zone is deleted, which frees no room."""
    machine = Machine(Policy(default_max_schedule_time_s=1e6))
    term = PodTerm("zone", (Requirement("app", "Exists", ()),), ("default",))
    guard = pod("guard", group="", node="n1", anti_affinity=[term])
    several = [pod(f"a-{at:02}", cpu=f"{100 + at}m", labels={"app": "x"}) for at in range(parking.MOST_ASKED + 4)]
    first = pod("a-first", cpu="10m")
    nodes = [NodeSeen(node(name, cpu=8, labels={"zone": "z"})) for name in ("n1", "n2")]
    seen: list[Event] = [PodSeen(guard), GroupSeen(group("a", min_member=1)), *map(PodSeen, [first, *several])]
    assert at_rest(machine, 1.0, *nodes, *seen, Synced()) == ["a-first"]
    at_rest(machine, 1.0, PodSeen(replace(first, node="n2")))
    assert len(at_rest(machine, 2.0, NodeGone("n1"))) == len(several)


def test_a_domain_in_which_only_a_host_port_was_freed_is_looked_at_again():
    """The pod that replaces it requests the same resources, but no port."""
    machine = Machine(Policy(default_max_schedule_time_s=1e6))
    nodes = [NodeSeen(node(f"{name}{at}", cpu=2, labels={"rack": f"r{at}"})) for at in range(2) for name in "xy"]
    taken = [pod(f"f{at}", group="", node=f"y{at}", host_ports=[80]) for at in range(2)]
    members = [pod("a-0", host_ports=[80]), pod("a-1", cpu=2)]
    gang = GroupSeen(group("a", min_member=2, topology=Topology("rack")))
    assert not at_rest(machine, 1.0, *nodes, gang, *map(PodSeen, [*taken, *members]), Synced())
    other = PodSeen(pod("other", group="", node="y1"))
    assert at_rest(machine, 1.0, PodGone(taken[1].uid), other) == ["a-0", "a-1"]


def test_it_comes_to_rest_beside_room_that_is_kept_for_a_nominated_pod(monkeypatch):
    """Room for more gangs than one call has time for exists, but is reserved for another pod."""
    monkeypatch.setattr(units, "CALL", 6_000)
    monkeypatch.setattr(parking, "FEW", 1)
    machine = Machine(Policy(default_max_schedule_time_s=1e6))
    nodes = [node(f"n{at}", cpu=4) for at in range(3)]
    kept = [pod(f"k{at}", group="", cpu=4, scheduler="x", nominated_node=f"n{at}", priority=9) for at in range(3)]
    gangs = [GroupSeen(group(f"g{at}", min_member=1)) for at in range(9)]
    members = [pod(f"g{at}-0", group=f"g{at}", cpu=f"{1000 + at}m") for at in range(9)]
    assert not at_rest(
        machine, 1.0, *map(NodeSeen, nodes), *map(PodSeen, kept), *gangs, *map(PodSeen, members), Synced()
    )
    assert not at_rest(machine, 1.0, *(NodeSeen(replace(each, labels=label_pairs({"x": "y"}))) for each in nodes))


def test_what_is_kept_for_those_who_wait_goes_with_them():
    """Pods that request resources of no node come and go, as do groups that are never tried; one such group stays."""
    policy = Policy(default_max_schedule_time_s=1e6, namespace_limits=NamespaceLimits(waiting_groups=1))
    machine = Machine(policy)
    first: list[Event] = []
    for name in ("a", "z"):
        first += [GroupSeen(group(name, min_member=1)), PodSeen(pod(f"{name}-0", group=name, cpu=9))]
    at_rest(machine, 1.0, NodeSeen(node(cpu=1)), *first, Synced())
    for at in range(200):
        plain = pod(f"x{at}", group="", requests={f"example.com/{at}": 1})
        outside = pod(f"b{at}-0", group=f"b{at}")
        coming: list[Event] = [PodSeen(plain), GroupSeen(group(f"b{at}", min_member=1)), PodSeen(outside)]
        at_rest(machine, 1.0 + at, *coming)
        at_rest(machine, 1.0 + at, PodGone(plain.uid), PodGone(outside.uid), GroupGone(key(f"b{at}")))
    assert len(machine._state.queue._refused._unknown) < 10  # noqa: SLF001 - nothing else shows memory
    assert len(machine._state.admission._outside) < 10  # noqa: SLF001 - nothing else shows memory


def test_further_members_are_tried_though_the_time_ended_with_a_repair_that_was_refused(monkeypatch):
    """A scheduled gang has lost a member. The first replacement fits nowhere, the second one fits."""
    monkeypatch.setattr(units, "CALL", units.GANG)
    machine = Machine(Policy())
    members = [pod(f"a-{at}", created=float(at)) for at in range(2)]
    seen: list[Event] = [NodeSeen(node(cpu=8)), GroupSeen(group("a", min_member=2)), *map(PodSeen, members)]
    assert at_rest(machine, 10.0, *seen, Synced()) == ["a-0", "a-1"]
    at_rest(machine, 11.0, *(PodSeen(replace(each, node="n1")) for each in members))
    replacements = [PodSeen(pod("a-2", cpu=99, created=2.0)), PodSeen(pod("a-3", created=3.0))]
    assert at_rest(machine, 12.0, PodGone(members[0].uid), *replacements) == ["a-3"]
