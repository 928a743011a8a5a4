"""Hostile input that users can write: it neither ends the machine nor costs it a second of CPU in one call."""

from __future__ import annotations

import time
from random import Random

import pytest
from msgspec.structs import replace

from gangsched.api.status_conversion import status_from_object, status_to_object
from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.taint_toleration import tolerated
from gangsched.core.declarations import resolution
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.effects import BindPod, PatchStatus
from gangsched.core.objects.events import Event, GroupSeen, NodeSeen, PodGone, PodSeen, Synced, TimePassed
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.record import Minima, Phase, Record
from gangsched.core.objects.selectors import field_holds, matches
from gangsched.core.objects.shape import NodeTerm, PodTerm, Requirement, Shape, Spread, Toleration
from gangsched.core.objects.status import Condition, GroupStatus
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from tests.builders import group, node, pod, pods, shape, toleration
from tests.effort import seeded
from tests.harness import Harness
from tests.verdicts import verdicts

MOST = 2**31 - 1
NODES = 600
MOST_CPU_S = 1.0
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def seen(*things: Pod | Node | Group) -> list[Event]:
    return [
        PodSeen(thing) if isinstance(thing, Pod) else NodeSeen(thing) if isinstance(thing, Node) else GroupSeen(thing)
        for thing in things
    ]


def test_members_of_one_gang_that_all_declare_something_else_leave_nothing_behind():
    """Each member that comes makes another set of declarations; of all of them together thousands were kept."""
    before = resolution.joined.cache_info().currsize
    harness = Harness.of(node())
    for number in range(40):
        harness.settle(pod(f"a-{number}", declaration=Declaration(group="a", max_schedule_time_s=float(number + 60))))
    assert resolution.joined.cache_info().currsize - before <= resolution.MOST_KEPT


# Input that ended the machine


@pytest.mark.parametrize("digits", ["9" * 5000, "-" + "0" * 5000, "+" + "0" * 5000 + "7"])
def test_a_number_of_thousands_of_digits_in_a_node_affinity_is_judged_like_any_other(digits):
    """Python converts no text of more than 4,300 digits to an integer; a label value holds 63 at most."""
    harness = Harness()
    term = NodeTerm(expressions=(Requirement("zone", "Gt", (digits,)),))
    harness.wait(2, node("n1", labels={"zone": "8"}), pod("a-0", group="", node_affinity=[term]), pod("b-0", group=""))
    assert harness.bound() == ["default/b-0"]


@pytest.mark.without("all", why="only its size is new; small groups take the courses")
@pytest.mark.slow
def test_a_group_of_a_thousand_different_shapes_that_fits_only_in_part_is_refused():
    """Regression: each kind of member took one call on the stack, although the search was abandoned before it began."""
    harness = Harness.of(*(node(f"n{number}", cpu=4) for number in range(600)), group("a", min_member=1000))
    harness.wait(2, *(pod(f"a-{number}", requests={"cpu": f"{1800 + number}m"}) for number in range(1000)))
    assert harness.bound() == []
    assert harness.condition("default/a").reason == "SearchExhausted"


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
@pytest.mark.without("all", why="it has no harness")
def test_a_status_that_claims_millions_of_ended_members_is_taken_over_at_once(phase):
    """Regression: one entry was created for each member; the largest number the field can hold used up all memory."""
    machine = Machine(Policy())
    claimed = 3_000_000
    status = GroupStatus(
        Record(
            phase=Phase(phase),
            run_start=4.0,
            scheduled_at=5.0,
            satisfied=Minima(MOST),
            succeeded=(("", claimed),),
            failed=claimed,
        )
    )
    roles = (Role("r", min_member=claimed),)
    began = time.process_time()
    machine.handle([*seen(group("a", min_member=1, roles=roles, status=status)), Synced()], 10.0)
    assert time.process_time() - began < 0.5
    gang = next(iter(machine.gangs.values()))
    assert (gang.record.successes, gang.record.failed) == (claimed, claimed)
    assert not gang.roster.recorded


@pytest.mark.parametrize(
    "text",
    ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00Z"],
)
@pytest.mark.without("all", why="it has no harness")
def test_every_time_that_is_read_from_a_status_can_be_written_again(text):
    """Regression: a time outside the years 1 to 9999 in UTC ended the process when the status was next written."""
    status_to_object(status_from_object({"phase": "Queued", "scheduleStartTime": text}))


@pytest.mark.without("all", why="it has no harness")
def test_a_status_is_written_within_the_limits_of_its_schema():
    conditions = (Condition("Scheduled", status=False, reason="Contradiction", message="ü" * 40_000, since=1.0),)
    body = status_to_object(GroupStatus(Record(), conditions=conditions, attempts=MOST + 1))["status"]
    assert len(body["conditions"][0]["message"]) == 32_768
    assert body["attempts"] == MOST
    assert status_from_object(body).attempts == MOST


def test_nominated_pods_of_any_size_leave_no_more_room_than_there_is():
    """Regression: two of 8Ei each made the free amount of a node wrap around to more than it had ever had."""
    harness = Harness.of(node("n1", memory="32Gi"))
    harness.add(
        *(pod(f"x-{n}", group="", scheduler="x", nominated_node="n1", memory="8Ei", priority=9) for n in (1, 2))
    )
    harness.wait(2, pod("a-0", group="", memory="16Ei"), pod("b-0", group="", memory="1Gi"))
    assert harness.bound() == []


# Input that kept the machine busy for long


def quarrelling() -> list[list[Event]]:
    return [
        seen(*(pod(f"q-{n}", declaration=Declaration(group="q", min_member=n + 1)) for n in range(3000))),
        [TimePassed()],
    ]


def crowded() -> list[list[Event]]:
    """Full nodes, and pods that all request different amounts. Regression: each pod recomputed who holds the room."""
    there = [pod(f"b-{n}", group="", node=f"n{n % NODES}", cpu=2, scheduler="x") for n in range(4 * NODES)]
    return [
        seen(*there),
        seen(*(pod(f"w-{n}", group="", requests={"cpu": str(1 + n / 1000)}) for n in range(300))),
        [TimePassed()],
    ]


def many_waiting() -> list[list[Event]]:
    """The status of each group says how many of thousands are ahead of it in the order."""
    waiting = [
        thing for n in range(2500) for thing in (group(f"g{n}", min_member=1), pod(f"g{n}-0", group=f"g{n}", cpu=99))
    ]
    return [seen(*waiting), [TimePassed()]]


def many_going() -> list[list[Event]]:
    return [
        seen(*(pod(f"w-{n}", group="", cpu=99) for n in range(1500))),
        [PodGone(f"uid-default/w-{n}") for n in range(1000)],
    ]


def selecting() -> list[list[Event]]:
    """No two pods have the same nodeSelector, so each is checked against every node."""
    return [
        seen(*(pod(f"w-{n}", group="", node_selector={"app": f"v{n}"}) for n in range(1000))),
        [TimePassed()],
        seen(node("new")),
    ]


def tolerating() -> list[list[Event]]:
    many = [Toleration(key=f"k{n}", operator="Equal", value="v", effect="NoSchedule") for n in range(3000)]
    nodes = [node(f"t{n}", taints=[f"t{t}=x:NoSchedule" for t in range(40)]) for n in range(40)]
    accepted = [toleration(f"t{t}=x:NoSchedule") for t in range(40)]
    return [seen(*nodes), seen(*(pod(f"w-{n}", group="", tolerations=[*many, *accepted[n:]]) for n in range(5)))]


def choosy() -> list[list[Event]]:
    def terms(own: int) -> list[NodeTerm]:
        return [NodeTerm(expressions=(Requirement("zone", "In", (f"z{own}-{n}",)),)) for n in range(300)]

    return [seen(*(pod(f"w-{n}", group="", node_affinity=terms(n)) for n in range(20)))]


def numerous_values() -> list[list[Event]]:
    def term(own: int) -> NodeTerm:
        return NodeTerm(expressions=(Requirement("zone", "In", tuple(f"z{own}-{n}" for n in range(10_000))),))

    zoned = [node(f"z{n}", labels={"zone": f"z{n}"}) for n in range(400)]
    return [seen(*zoned), seen(*(pod(f"w-{n}", group="", node_affinity=[term(n)]) for n in range(5)))]


def anti_social() -> list[list[Event]]:
    """Bound pods with hundreds of anti-affinity terms. Regression: each new pod was checked against all of them."""

    def terms(own: int) -> tuple[PodTerm, ...]:
        return tuple(
            PodTerm("host", (Requirement(f"app{n}", "In", (f"v{own}",)),), namespaces=("default",)) for n in range(300)
        )

    nodes = [node(f"h{n}", labels={"host": f"h{n}"}) for n in range(100)]
    there = [pod(f"b-{n}", group="", scheduler="x", node=f"h{n}", anti_affinity=terms(n)) for n in range(100)]
    return [
        seen(*nodes, *there),
        seen(*(pod(f"w-{n}", group="", labels={f"app{n}": "v1", "own": str(n)}) for n in range(100))),
    ]


def exclusive_ports() -> list[list[Event]]:
    return [
        seen(*(pod(f"b-{n}", group="", scheduler="x", node=f"n{n}", host_ports=range(1, 300)) for n in range(NODES))),
        seen(*(pod(f"w-{n}", group="", host_ports=range(1 + n, 300)) for n in range(50))),
    ]


def kinds_of_their_own() -> list[list[Event]]:
    """Each node offers devices that no other has. Regression: each device got a column in the matrix of all nodes."""
    nodes = [node(f"k{n}", extra={f"u{n}-{m}.example/dev": 1 for m in range(40)}) for n in range(200)]
    return [seen(*nodes), seen(pod("w-0", group="")), seen(pod("w-1", group="", requests={"u7-7.example/dev": 1}))]


def odd_one_out() -> list[list[Event]]:
    return [
        seen(group("a", min_member=700), *(pod(f"a-{n}", requests={"cpu": f"{3900 + n}m"}) for n in range(700))),
        [TimePassed()],
    ]


def dependent_on_each_other() -> list[list[Event]]:
    """A hundred members, each in a class of its own, with terms that match the others."""
    everybody = PodTerm("host", (Requirement("app", "Exists"),), ("a",))
    several = [
        pod(
            f"a/a-{n}",
            requests={"cpu": f"{100 + n}m"},
            labels={"app": str(n)},
            spread=[Spread(everybody, 300)],
            affinity=[everybody],
            anti_affinity=[PodTerm("host", (Requirement("app", "In", (str(n + 1),)),), ("a",))],
        )
        for n in range(100)
    ]
    return [seen(group("a/a", min_member=100), *several), [TimePassed()]]


@pytest.mark.parametrize(
    "flood",
    [
        dependent_on_each_other,
        quarrelling,
        crowded,
        many_waiting,
        many_going,
        selecting,
        tolerating,
        choosy,
        numerous_values,
        anti_social,
        exclusive_ports,
        kinds_of_their_own,
        odd_one_out,
    ],
)
@pytest.mark.slow
@pytest.mark.without("all", why="it has no harness")
def test_no_flood_takes_the_machine_a_second_in_one_call(flood):
    machine = Machine(Policy())
    machine.handle([Synced(), *seen(*(node(f"n{n}", cpu=8) for n in range(NODES)))], 1.0)
    taken = []

    def call(events, now):
        """Handle the events, and call again as long as work is left."""
        found = []
        while events:
            began = time.process_time()
            found += machine.handle(events, now)
            taken.append(time.process_time() - began)
            due = machine.next_deadline()
            events = [TimePassed()] if due is not None and due <= now else []
        return found

    for number, events in enumerate(flood(), start=1):
        call(events, 3.0 * number)
    effects = call(seen(group("b/h", min_member=2), *pods("h", 2, namespace="b", cpu=0)), 100.0)
    assert {effect.name for effect in effects if isinstance(effect, BindPod)} >= {"h-0", "h-1"}
    assert machine.validate() == []
    assert max(taken) < MOST_CPU_S, taken


# Fast paths must be correct


@seeded(40)
@pytest.mark.without("all", why="it has no harness")
def test_all_nodes_at_once_are_judged_as_each_by_itself(seed):
    """Half of the nodes change, and some go, between two queries; each result equals that of the plain predicates."""
    random = Random(seed)
    cluster = Cluster()
    for number in range(20):
        cluster.set_node(some_node(random, number))
    shapes = [some_shape(random) for _ in range(20)]
    for remove in (False, False, True, True):
        for asked in shapes:
            snapshot = Snapshot(cluster)
            found = verdicts(snapshot, MemberClass(asked))
            for name, each in cluster.nodes.items():
                assert found.get(name) == plainly(asked, each), (asked, each)
                assert snapshot.fits(MemberClass(asked), cluster.capacity.rows[name]) is (name not in found)
        for number in random.sample(range(20), 12):
            if remove:
                cluster.remove_node(f"n{random.randrange(20)}")
            cluster.set_node(some_node(random, number))


def some_node(random: Random, number: int) -> Node:
    labels = {
        key: random.choice(("", "1", "7", "zone-1")) for key in random.sample(("zone", "disk"), random.randint(0, 2))
    }
    taints = [
        f"{random.choice('ab')}={random.choice('12')}:{random.choice(EFFECTS)}" for _ in range(random.randint(0, 2))
    ]
    return node(f"n{number}", labels=labels, taints=taints, unschedulable=random.random() < 0.2)


def some_shape(random: Random) -> Shape:
    def requirement() -> Requirement:
        values = random.choices(("", "1", "7", "zone-1", "not a value!"), k=random.randint(0, 2))
        operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd"))
        return Requirement(random.choice(("zone", "disk")), operator, tuple(values))

    def name() -> Requirement:
        values = random.choices(("n0", "n1", "gone"), k=random.randint(0, 2))
        return Requirement(
            random.choice(("metadata.name", "metadata.uid")), random.choice(("In", "NotIn")), tuple(values)
        )

    def term() -> NodeTerm:
        fields = [name()] if random.random() < 0.2 else []
        return NodeTerm(tuple(requirement() for _ in range(random.randint(0, 2))), tuple(fields))

    keys = ("", "a", "b", "node.kubernetes.io/unschedulable")
    tolerated = [
        Toleration(
            random.choice(keys), random.choice(("", "Equal", "Exists", "Gt")), random.choice(("", "1", "2")), effect
        )
        for effect in random.choices(("", *EFFECTS), k=random.randint(0, 4))
    ]
    return shape(
        node_selector={"zone": "1"} if random.random() < 0.2 else {},
        node_affinity=[term() for _ in range(random.randint(0, 3))] if random.random() < 0.5 else None,
        tolerations=tolerated,
    )


def plainly(asked: Shape, each: Node) -> NodeReason | None:
    """The reason found by checking one toleration, taint and term after another."""

    def kept_out(taint: Taint) -> bool:
        return not tolerated(asked.tolerations, taint)

    if each.unschedulable and kept_out(Taint("node.kubernetes.io/unschedulable", "NoSchedule")):
        return NodeReason.UNSCHEDULABLE
    if any(taint.effect != "PreferNoSchedule" and kept_out(taint) for taint in each.taints):
        return NodeReason.TAINT
    labels = dict(each.labels)
    matched = all(labels.get(key) == value for key, value in asked.node_selector)
    if asked.node_affinity is not None:
        matched &= any(
            (term.expressions or term.fields)
            and matches(term.expressions, labels)
            and all(field_holds(field, each.name) for field in term.fields)
            for term in asked.node_affinity
        )
    return None if matched else NodeReason.AFFINITY


@pytest.mark.without("all", why="it has no harness")
def test_members_that_end_after_a_status_has_claimed_the_largest_number_leave_it_readable():
    record = Record(phase=Phase.RUNNING, run_start=4.0, scheduled_at=5.0, satisfied=Minima(2))
    status = GroupStatus(replace(record, succeeded=(("", MOST),), failed=MOST))
    members = [pod(f"a-{number}", group="a", node="n1", phase="Running") for number in range(3)]
    machine = Machine(Policy())
    machine.handle([*seen(node("n1"), group("a", min_member=2, status=status), *members), Synced()], 10.0)
    ended = [
        replace(members[0], phase=PodPhase.FAILED),
        replace(members[1], phase=PodPhase.SUCCEEDED),
    ]
    effects = machine.handle([PodSeen(each) for each in ended], 11.0)
    effects += machine.handle([TimePassed()], 20.0)

    (written, *_) = [effect.status for effect in effects if isinstance(effect, PatchStatus)]
    read = status_from_object(status_to_object(written)["status"])
    assert (read.phase, read.succeeded, read.failed) == ("Running", MOST, MOST)
