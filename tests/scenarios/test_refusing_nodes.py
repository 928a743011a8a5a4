"""Nodes that refuse pods: all gangs avoid them for a while, but a tenant's own refusals turn no other tenant away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gangsched.core.objects.effects import BindPod, PatchStatus
from gangsched.core.objects.events import Synced
from gangsched.core.objects.pod import Owner, PodPhase
from gangsched.core.objects.results import BindRefused, Refused
from tests.builders import group, node, pod, pods
from tests.harness import START, Harness

SET = Owner("StatefulSet", "a", "set-a", "apps")
Refusing = Callable[[BindPod], bool]


def refusing(when: Refusing, why: Refused = Refused.FORBIDDEN) -> Callable[[BindPod], BindRefused | None]:
    """Refuse the bindings for which `when` is true."""
    return lambda effect: BindRefused(effect.uid, effect.node, why, f"no {effect.name}") if when(effect) else None


def harness_with(*nodes: str, when: Refusing, why: Refused = Refused.FORBIDDEN, cpu: int = 9) -> Harness:
    """A harness with nodes that are filled in this order."""
    harness = Harness()
    harness.refuse_bind = refusing(when, why)
    harness.add(*(node(name, cpu=cpu) for name in nodes))
    return harness


def at(node_name: str) -> Refusing:
    return lambda effect: effect.node == node_name


def everything(_: BindPod) -> bool:
    return True


def nothing(_: BindPod) -> bool:
    return False


def binds(harness: Harness) -> list[BindPod]:
    return [effect for effect in harness.effects if isinstance(effect, BindPod)]


def plain(harness: Harness, name: str, **fields) -> str:
    """Create a pod without a group. Returns the node named in its first binding."""
    before = len(binds(harness))
    harness.settle(pod(name, group="", **fields))
    return binds(harness)[before].node


def told(harness: Harness) -> list[tuple[str, str, str]]:
    return [(event.kind, event.namespace, event.name) for event in harness.events("BindingsRefused")]


def avoided(harness: Harness) -> int:
    return harness.machine.stats().avoided_nodes


# The behaviour that the issue asks for


def forty(count: int) -> Harness:
    """Gangs of 20 in four namespaces on 50 nodes of 25 CPUs."""
    harness = Harness.of(*(node(f"n{number:02}", cpu=25) for number in range(50)))
    for number in range(count):
        name, namespace = f"g{number:02}", f"team-{number % 4}"
        harness.add(group(f"{namespace}/{name}", min_member=20))
        owner = Owner("StatefulSet", name, f"set-{name}", "apps")
        harness.add(*pods(name, 20, namespace=namespace, owner=owner))
    return harness


def partly_bound(harness: Harness) -> set[str]:
    """Groups in which some of the 20 members have a node."""
    counts = Counter(name.rpartition("-")[0] for name in harness.bound())
    return {name for name, number in counts.items() if number < 20}


@pytest.mark.without("restarts", "leaderless", why="what nodes have refused is in memory")
def test_beside_five_nodes_that_refuse_everything_forty_gangs_are_whole_within_seconds():
    harness = forty(40)
    bad = {f"n{number:02}" for number in range(0, 50, 10)}
    harness.refuse_bind = refusing(lambda effect: effect.node in bad)
    since: dict[str, float] = {}
    while len(harness.bound()) < 800 and harness.now < START + 60:
        harness.wait(0.25)
        partial = partly_bound(harness)
        since = {name: since.get(name, harness.now) for name in partial}
        assert all(harness.now - began < harness.policy.repair_deadline_s for began in since.values())
    assert len(harness.bound()) == 800
    assert harness.now < START + 5
    assert harness.evicted == []
    assert {name for _, _, name in told(harness)} <= bad


@pytest.mark.without("restarts", "standbys", why="what nodes have refused is in memory")
def test_a_gang_one_of_whose_pods_is_refused_everywhere_says_so_holds_nothing_and_evicts_nobody_twice():
    """An admission policy refuses one named pod of each gang of 20; the set recreates evicted pods by name."""
    harness = forty(3)
    harness.refuse_bind = refusing(lambda effect: effect.name.endswith("-13"))
    end = harness.now + 420
    while harness.now < end:
        harness.wait(1)
        gone = [found for found in harness.pods.values() if found.terminating]
        harness.end_terminating()
        for old in gone:
            again = replace(old, uid=f"{old.uid}+", node="", terminating=False, created=harness.now, bound_at=0.0)
            harness.add(again)
        if harness.now == START + 25:
            before = len(binds(harness))
        if harness.now > START + 30:
            harness.settle()
            assert harness.bound() == []
            assert all(not gang.operations.bindings for gang in harness.machine.gangs.values())
    assert set(Counter(harness.evicted).values()) == {1}
    assert len(harness.evicted) == 3 * 19
    attempts = sum(gang.record.timeouts - 1 for gang in harness.machine.gangs.values())
    assert len(binds(harness)) - before == attempts > 3 * 3, "one binding for each attempt after the first"
    condition = harness.condition("team-0/g00")
    assert condition.reason == "BindingRefused"
    assert condition.message == (
        "The API server refuses to bind g00-13 on every node that was tried, so no other member is bound and no place "
        "is held: find what refuses it, most often an admission policy, or delete the pod; it is retried before the "
        "others after a back-off. Last response: no g00-13"
    )
    assert avoided(harness) == 0
    harness.refuse_bind = lambda _: None
    harness.wait(330)
    assert len(harness.bound()) == 60
    assert avoided(harness) == 0, "a pod that was refused everywhere says nothing of nodes once it is accepted"


# The reaction of a gang


@pytest.mark.without("restarts", "standbys", "leaderless", why="what nodes have refused is in memory")
def test_a_gang_that_is_wholly_refused_is_planned_anew_at_once_elsewhere():
    harness = harness_with("n1", "n2", "n3", when=lambda effect: effect.node != "n3")
    harness.settle(group("a", min_member=3), *pods("a", 3))
    assert harness.now == START
    assert {found.node for found in harness.pods.values()} == {"n3"}
    assert len(binds(harness)) == 9


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="what nodes have refused is in memory")
def test_where_everything_refuses_a_gang_backs_off_after_so_many_nodes_and_goes_on_with_others():
    harness = harness_with(*(f"n{number:02}" for number in range(25)), when=everything)
    harness.settle(group("a", min_member=2), *pods("a", 2))
    tried = [effect.node for effect in binds(harness)]
    assert len(tried) == 2 * len(set(tried)) == 22
    assert harness.gang("default/a").record.phase == "TimedOut"
    assert harness.gang("default/a").operations.bindings == {}
    harness.wait(10)
    again = {effect.node for effect in binds(harness)[22:]}
    assert len(again) == 11
    assert not again & set(tried)


def test_members_on_a_node_that_refuses_all_move_though_the_rest_is_bound():
    harness = harness_with("n1", "n2", "n3", when=at("n2"), cpu=10)
    harness.add(pod("old", group="", node="n1", cpu=4))
    harness.wait(1, group("a", min_member=16), *pods("a", 16))
    assert len(harness.bound("default/a-")) == 16
    assert harness.evicted == []


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "leaderless", why="what nodes have refused is in memory")
@pytest.mark.parametrize("minimum", [6, 4])
def test_what_fits_nowhere_else_is_tried_on_a_node_that_is_avoided_with_one_member_first(minimum):
    """Members above the minimum wait for that member too."""
    harness = harness_with("n1", "n2", when=at("n1"), cpu=4)
    assert plain(harness, "x/p") == "n1"
    assert avoided(harness) == 1
    harness.add(group("a", min_member=minimum), *pods("a", 6))
    before = len(binds(harness))
    harness.settle()
    sent = binds(harness)[before:]
    assert [effect.node for effect in sent] == ["n1"]
    assert harness.bound("default/a-") == []
    assert harness.gang("default/a").operations.bindings == {}
    harness.refuse_bind = lambda _: None
    harness.wait(11)
    assert len(harness.bound("default/a-")) == 6
    assert avoided(harness) == 0, "a success there ends it"


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="what nodes have refused is in memory")
def test_of_avoided_nodes_one_that_has_not_refused_the_gang_is_tried_before_one_that_has():
    harness = harness_with("n1", "n2", when=at("n1"))
    plain(harness, "x/p")
    assert avoided(harness) == 1
    harness.refuse_bind = refusing(everything)
    before = len(binds(harness))
    harness.settle(group("a", min_member=2), *pods("a", 2))
    assert [effect.node for effect in binds(harness)[before:]] == ["n2", "n2", "n1"]


@pytest.mark.without("restarts", "standbys", why="what nodes have refused is in memory")
def test_members_that_the_gang_can_do_without_are_left_out_once_they_are_refused_wherever_tried():
    harness = harness_with("n1", when=lambda effect: effect.name == "a-0", cpu=3)
    harness.wait(21, group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.end_terminating()
    harness.wait(11, *pods("a", 3, first=3, owner=SET))
    assert harness.gang("default/a").record.phase == "Scheduled"
    assert harness.bound() == ["default/a-3", "default/a-4", "default/a-5"]


@pytest.mark.without("restarts", "standbys", "leaderless", why="what nodes have refused is in memory")
def test_of_two_members_that_are_refused_everywhere_one_binding_is_sent_in_each_later_attempt_and_no_place_written():
    harness = harness_with("n1", "n2", when=lambda effect: effect.name in {"a-0", "a-1"})
    harness.wait(21, group("a", min_member=4), *pods("a", 4, owner=SET))
    harness.end_terminating()
    harness.settle(*(pod(f"a-{number}", uid=f"again-{number}", owner=SET) for number in (2, 3)))
    before = len(harness.effects)
    harness.wait(9)
    assert harness.gang("default/a").record.timeouts == 2
    later = harness.effects[before:]
    assert sum(isinstance(effect, BindPod) for effect in later) == 1
    assert not any(isinstance(effect, PatchStatus) and effect.status.reservation for effect in later)
    assert "a-0 and 1 more" in harness.condition("default/a").message


def test_once_a_part_is_bound_the_rest_goes_back_to_nodes_that_have_refused_it_and_does_not_back_off():
    """All are refused on n1, then one is bound on n2 and one refused on n3; three seconds later no node refuses."""
    harness = harness_with("n1", when=nothing, cpu=2)
    harness.add(node("n2", cpu=1), node("n3", cpu=1))
    busy = [pod(f"busy-{name}", group="", node=name, scheduler="somebody-else") for name in ("n2", "n3")]
    harness.add(*busy)

    def refuse(effect: BindPod) -> BindRefused | None:
        if busy and effect.name == "a-1":
            harness.delete(*(f"default/{busy.pop().name}" for _ in (1, 2)))
        refused = effect.node != "n2"
        return BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "no") if refused else None

    harness.refuse_bind = refuse
    harness.wait(3, group("a", min_member=2), *pods("a", 2, owner=SET))
    assert len(harness.bound("default/a-")) == 1
    harness.refuse_bind = lambda _: None
    harness.wait(5)
    assert len(harness.bound("default/a-")) == 2


def test_a_gang_that_finds_no_room_when_it_is_planned_anew_is_tried_again_where_it_was_refused_once_there_is_room():
    harness = harness_with("n1", when=nothing, cpu=2)

    def refuse(effect: BindPod) -> BindRefused:
        if effect.name == "a-1":
            harness.add(pod("busy", group="", node="n1", scheduler="somebody-else", cpu=2))
        return BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "no")

    harness.refuse_bind = refuse
    harness.wait(2, group("a", min_member=2), *pods("a", 2))
    assert harness.condition("default/a").reason == "Unschedulable"
    harness.refuse_bind = lambda _: None
    harness.delete("default/busy")
    harness.settle()
    assert len(harness.bound("default/a-")) == 2


# What all gangs learn from it


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="what nodes have refused is in memory")
def test_a_refusal_counts_once_the_same_pod_is_accepted_elsewhere_for_a_time_that_doubles_and_ends_with_a_success():
    harness = harness_with("n1", "n2", when=at("n1"))
    assert plain(harness, "x/p0") == "n1"
    assert told(harness) == [("Node", "", "n1")]
    assert "next 1m or" in harness.events("BindingsRefused")[0].note
    assert avoided(harness) == 1
    harness.wait(59)
    assert plain(harness, "y/p1") == "n2"
    harness.delete("y/p1", "x/p0")
    harness.wait(1)
    assert avoided(harness) == 0
    assert plain(harness, "y/p2") == "n1"
    assert "next 2m or" in harness.events("BindingsRefused")[1].note
    harness.delete("y/p2")
    harness.wait(119)
    assert plain(harness, "z/p3") == "n2"
    harness.delete("z/p3")
    harness.wait(1)
    harness.refuse_bind = lambda _: None
    assert plain(harness, "z/p4") == "n1"
    harness.refuse_bind = refusing(at("n1"))
    harness.delete("z/p4")
    harness.settle()
    plain(harness, "z/p5")
    assert "next 1m or" in harness.events("BindingsRefused")[2].note


@pytest.mark.parametrize(
    ("when", "why", "pinned"),
    [
        (everything, Refused.DENIED, True),
        (everything, Refused.FORBIDDEN, False),
        (lambda effect: effect.name == "a-1", Refused.FORBIDDEN, False),
        (lambda effect: effect.namespace == "x", Refused.FORBIDDEN, True),
    ],
    ids=["namespaces that are being deleted", "a policy on two namespaces", "on one pod of each", "on one namespace"],
)
@pytest.mark.without("restarts", "standbys", "leaderless", why="what nodes have refused is in memory")
def test_a_tenants_own_refusals_turn_nobody_else_away(when, why, pinned):
    harness = harness_with("n2", "n3", when=lambda effect: effect.namespace != "z" and when(effect), why=why)
    harness.add(node("n1", cpu=9, labels={"own": "yes"}))
    for namespace in ("x", "y"):
        harness.add(group(f"{namespace}/a", min_member=2))
        selector = {"own": "yes"} if pinned else {}
        harness.add(*pods("a", 2, namespace=namespace, owner=SET, node_selector=selector))
    for _ in range(40):
        harness.wait(1)
        assert avoided(harness) == 0
    assert told(harness) == []
    assert sum(effect.namespace in {"x", "y"} for effect in binds(harness)) >= 4


@pytest.mark.without("restarts", "standbys", why="what nodes have refused is in memory")
def test_a_gang_whose_namespace_is_being_deleted_is_not_tried_on_other_nodes():
    harness = harness_with("n1", "n2", when=everything, why=Refused.DENIED)
    harness.settle(group("a", min_member=2), *pods("a", 2))
    assert len(binds(harness)) == 2
    assert harness.gang("default/a").record.phase == "TimedOut"


@pytest.mark.without("restarts", why="what nodes have refused is in memory")
def test_after_a_restart_nothing_is_remembered_and_all_is_learned_anew():
    harness = harness_with("n1", "n2", when=at("n1"))
    plain(harness, "x/p0")
    harness.delete("x/p0")
    harness.restart()
    assert avoided(harness) == 0
    assert plain(harness, "y/p1") == "n1"
    assert avoided(harness) == 1


def rejected_in_two_namespaces(harness: Harness, scheduler: str = "gangsched") -> None:
    for namespace in ("x", "y"):
        harness.settle(pod(f"{namespace}/p", group="", node="n1", scheduler=scheduler))
        harness.settle(replace(harness.pod(f"{namespace}/p"), phase=PodPhase.FAILED, rejected=True))


@pytest.mark.without("restarts", "standbys", "leaderless", why="what nodes have refused is in memory")
def test_a_kubelet_that_refuses_pods_of_two_namespaces_is_avoided_by_all_until_it_starts_one():
    harness = harness_with("n1", "n2", when=nothing)
    rejected_in_two_namespaces(harness)
    assert plain(harness, "z/p") == "n2"
    harness.settle(pod("z/q", group="", node="n1"))
    harness.change("z/q", phase=PodPhase.RUNNING)
    harness.settle()
    assert avoided(harness) == 0


def test_what_a_kubelet_does_with_another_schedulers_pods_is_no_reason():
    harness = harness_with("n1", "n2", when=nothing)
    rejected_in_two_namespaces(harness, scheduler="somebody-else")
    assert avoided(harness) == 0


@pytest.mark.without("restarts", "standbys", "leaderless", why="what nodes have refused is in memory")
def test_a_standby_learns_of_kubelets_and_does_not_tell_of_them_later():
    harness = harness_with("n1", "n2", when=nothing)
    harness.inbox.pop(0)
    rejected_in_two_namespaces(harness)
    harness.report(Synced())
    harness.settle()
    assert avoided(harness) == 1
    assert told(harness) == []
