"""Other schedulers on the same nodes: the first to come gets the room, and a stale plan is given up."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.effects import WithdrawBinding
from gangsched.core.objects.events import NamespaceSeen, PodSeen, PriorityClassSeen, Synced
from gangsched.core.objects.pod import Owner, PodPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.shape import PodTerm, Requirement
from tests.builders import group, node, pod, pods, taint
from tests.harness import Harness

SET = Owner("StatefulSet", "a", "set-a", "apps")


def foreign(name: str, **fields):
    return pod(name, group="", scheduler="default-scheduler", **fields)


def waiting_to_be_sent(*nodes, count=3, **spec) -> Harness:
    """A group of three whose bindings wait in the queue."""
    harness = Harness()
    harness.withhold = lambda _: True
    harness.settle(*(nodes or (node("n1", cpu=3),)), group("a", min_member=count, **spec), *pods("a", count, owner=SET))
    return harness


def test_a_pod_of_another_scheduler_that_lands_first_withdraws_the_place_it_took():
    harness = waiting_to_be_sent()
    harness.settle(foreign("thief", node="n1"))
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.wait(2)
    assert harness.bound("default/a-") == [], "the rest is not sent either"
    assert harness.condition("default/a").reason == "Unschedulable"
    harness.delete("default/thief")
    harness.settle()
    assert len(harness.bound("default/a-")) == 3


def test_a_member_that_lost_its_place_is_placed_elsewhere_at_once():
    harness = waiting_to_be_sent(node("n1", cpu=3), node("n2", cpu=1))
    harness.settle(foreign("thief", node="n1"))
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.settle()
    assert len(harness.bound("default/a-")) == 3
    assert sorted(found.node for found in harness.pods.values() if found.declaration) == ["n1", "n1", "n2"]


@pytest.mark.parametrize(
    "worse",
    [
        node("n1", cpu=3, unschedulable=True),
        node("n1", cpu=2),
        node("n1", cpu=3, taints=[taint("sick=:NoSchedule")]),
    ],
)
def test_a_node_that_becomes_worse_before_the_bindings_are_sent_is_not_used(worse):
    harness = waiting_to_be_sent()
    harness.settle(worse)
    harness.send_withheld()
    harness.settle()
    assert harness.bound() == []


def test_a_host_port_taken_by_somebody_else_withdraws_the_binding():
    harness = Harness()
    harness.withhold = lambda _: True
    harness.settle(node("n1", cpu=9), group("a", min_member=1), pod("a-0", host_ports=[80]))
    harness.settle(foreign("thief", node="n1", host_ports=[80]))
    assert any(isinstance(effect, WithdrawBinding) for effect in harness.effects)
    harness.send_withheld()
    harness.settle()
    assert harness.bound("default/a-") == []


def test_a_binding_that_had_been_sent_stands_and_the_kubelets_refusal_is_a_loss_like_any_other():
    harness = Harness.settled(node("n1", cpu=3), node("n2", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    assert {found.node for found in harness.pods.values()} == {"n1"}
    harness.add(replace(harness.pod("default/a-1"), phase=PodPhase.FAILED, rejected=True))
    harness.settle(pod("a-3", owner=SET))
    assert harness.pod("default/a-3").node == "n2", "the node that refused is left alone for a while"


def test_a_rejected_member_goes_back_to_the_same_node_after_a_pause_if_there_is_no_other():
    harness = Harness.settled(node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.add(replace(harness.pod("default/a-1"), phase=PodPhase.FAILED, rejected=True))
    harness.settle(pod("a-3", owner=SET))
    assert harness.pod("default/a-3").node == ""
    harness.wait(11)
    assert harness.pod("default/a-3").node == "n1"


@pytest.mark.without("restarts", "standbys", why="a binding that is withheld dies with its leader")
def test_a_rejection_before_the_quorum_is_bound_is_a_failure_of_its_binding():
    harness = Harness()
    harness.withhold = lambda effect: effect.name == "a-2"
    harness.settle(node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.settle(replace(harness.pod("default/a-1"), phase=PodPhase.FAILED, rejected=True))
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.wait(25)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-2"], "nobody made another one in time"


# A scheduler that preempts names the node that it keeps for a pod in status.nominatedNodeName.


@pytest.mark.parametrize(("priority", "bound"), [(0, 2), (5, 2), (6, 3)])
def test_room_kept_for_a_nominated_pod_of_equal_or_higher_priority_is_not_taken(priority, bound):
    harness = Harness.of(node("n1", cpu=3), foreign("heir", nominated_node="n1", priority=5))
    harness.settle(group("a", min_member=2, priority=priority), *pods("a", 3))
    assert len(harness.bound("default/a-")) == bound


@pytest.mark.parametrize("end", ["withdrawn", "bound elsewhere", "gone"])
def test_a_nominated_pod_that_needs_its_room_no_more_leaves_it(end):
    harness = Harness.of(node("n1", cpu=3), foreign("heir", nominated_node="n1"))
    harness.settle(group("a", min_member=3, priority=0), *pods("a", 3))
    assert harness.bound("default/a-") == []
    if end == "gone":
        harness.delete("default/heir")
    else:
        harness.change("default/heir", **({"nominated_node": ""} if end == "withdrawn" else {"node": "elsewhere"}))
    harness.settle()
    assert len(harness.bound("default/a-")) == 3


@pytest.mark.parametrize("end", ["withdrawn", "relabelled node", "removed node", "relabelled namespace"])
def test_a_zone_that_a_nominated_pod_wants_alone_is_left_to_it_for_as_long_as_it_does(end):
    """Regression: members ignored its required anti-affinity, took its zone and closed its node to it."""
    no_team = (Requirement("team", "DoesNotExist"),)
    shuns = PodTerm(topology_key="zone", selector=(), namespaces=(), namespace_selector=no_team)
    harness = Harness.of(node("n1", cpu=0, labels={"zone": "a"}), node("n2", cpu=3, labels={"zone": "a"}))
    harness.add(foreign("heir", cpu=None, nominated_node="n1", priority=5, anti_affinity=[shuns]))
    harness.wait(5, group("a", min_member=3, priority=5), *pods("a", 3))
    assert harness.bound("default/a-") == []
    assert "anti-affinity" in harness.condition("default/a").message
    match end:
        case "withdrawn":
            harness.change("default/heir", nominated_node="")
        case "relabelled node":
            harness.add(node("n1", cpu=0, labels={"zone": "b"}))
        case "removed node":
            harness.delete_node("n1")
        case "relabelled namespace":
            harness.report(NamespaceSeen("default", (("team", "x"),)))
    harness.settle()
    assert len(harness.bound("default/a-")) == 3


def test_groups_of_different_priority_in_one_pass_heed_different_nominations():
    harness = Harness.of(node("n1", cpu=4), foreign("heir", nominated_node="n1", priority=5))
    harness.add(group("low", min_member=2, priority=1), *pods("low", 2))
    harness.settle(group("high", min_member=2, priority=9), *pods("high", 2))
    assert len(harness.bound("default/high-")) == 2
    assert harness.bound("default/low-") == [], "one place is kept for the heir"


def waiting_for_a_kept_node(*, cpu=3, **high) -> Harness:
    """A full node is kept for a pod of priority 5. A quorum of priority 0 waits for `cpu` CPUs of it, and a further
    member of another group for all of it; that member comes after the quorum, whatever its priority.
    """
    harness = Harness.of(node("n1", cpu=1), node("n2", cpu=3), foreign("there", cpu=3, node="n2"))
    harness.add(foreign("heir", cpu=3, nominated_node="n2", priority=5))
    harness.settle(group("high", min_member=1, **high), pod("high-0", group="high"), pod("high-1", group="high", cpu=3))
    harness.settle(group("low", min_member=1, priority=0), pod("low-0", group="low", cpu=cpu))
    assert harness.bound() == ["default/high-0", "default/there"]
    return harness


@pytest.mark.parametrize("cpu", [2, 3])
def test_room_that_a_nominated_pod_keeps_from_one_who_waits_is_given_to_another_of_higher_priority_behind_it(cpu):
    """Steps: both wait, with the same request or not, and the node's pod ends. The quorum is tried first, but may not
    use any of the room that this frees.
    """
    harness = waiting_for_a_kept_node(cpu=cpu, priority=9)
    harness.delete("default/there")
    harness.settle()
    assert harness.bound() == ["default/high-0", "default/high-1"]


def test_one_refused_in_the_same_pass_as_one_of_higher_priority_does_not_stand_for_those_of_that_priority():
    """Steps: two quorums and a further member of the higher priority are refused for the same reason in one scheduling
    cycle. The node is then kept for a nominated pod, the quorum of higher priority goes, and the node's pod ends.
    """
    harness = Harness.of(node("n1", cpu=1), node("n2", cpu=3), foreign("there", cpu=3, node="n2"))
    harness.add(
        group("high", min_member=1, priority=9), pod("high-0", group="high"), pod("high-1", group="high", cpu=3)
    )
    harness.add(group("leaver", min_member=1, priority=9), pod("leaver-0", group="leaver", cpu=3))
    harness.settle(group("low", min_member=1, priority=0), pod("low-0", group="low", cpu=3))
    harness.add(foreign("heir", cpu=3, nominated_node="n2", priority=5))
    harness.delete("default/leaver-0")
    harness.settle()
    harness.delete("default/there")
    harness.settle()
    assert harness.bound() == ["default/high-0", "default/high-1"]


def test_who_waits_is_tried_again_when_the_value_of_its_priority_class_grows_beyond_that_of_a_nominated_pod():
    """Steps: the group waits for room that is kept from it; then only the value of its PriorityClass changes."""
    harness = Harness()
    harness.report(PriorityClassSeen("c", PriorityClass(1)))
    harness.add(node("n1", cpu=3), foreign("heir", nominated_node="n1", priority=5))
    harness.settle(group("a", min_member=3, priority_class="c"), *pods("a", 3))
    assert harness.bound() == []
    harness.report(PriorityClassSeen("c", PriorityClass(9)))
    harness.settle()
    assert len(harness.bound()) == 3


# Another scheduler that serves the same schedulerName


@pytest.mark.without("restarts", "standbys", why="rivals are counted in memory")
def test_a_pod_of_ours_that_somebody_else_binds_is_told():
    harness = Harness.waited(20, node("n1", cpu=3), group("a", min_member=3), pod("a-0"))
    harness.change("default/a-0", node="n1")
    harness.settle()
    assert harness.machine.take_rivals() == [("default/a-0", "n1")]
    assert harness.machine.take_rivals() == []


def test_our_own_bindings_are_no_rivals():
    harness = Harness.waited(20, node("n1", cpu=4))
    harness.lose_answer = lambda effect: effect.name == "a-1"
    harness.wait(20, group("a", min_member=3), *pods("a", 3), foreign("b"))
    harness.change("default/b", node="n1")
    harness.restart()
    harness.wait(20)
    assert len(harness.bound("default/a-")) == 3
    assert harness.machine.take_rivals() == []


# A standby sees everything and decides nothing.


def test_a_standby_keeps_nothing_of_what_has_gone():
    machine = Machine(Policy())
    for round_ in range(3):
        uid = f"uid-{round_}"
        machine.handle([PodSeen(pod(f"p-{round_}", group="", uid=uid))], 1.0)
        machine.handle([PodSeen(pod(f"p-{round_}", group="", uid=uid, node="n1"))], 2.0)
    assert machine.gangs == {}


@pytest.mark.without("restarts", "standbys", why="the story is about a change of leaders at one moment")
def test_a_standby_that_becomes_the_leader_decides_on_everything_it_has_seen():
    harness = Harness()
    harness.inbox = []
    harness.settle(node("n1", cpu=3), group("a", min_member=3), *pods("a", 2))
    harness.settle(pod("a-9"))
    assert harness.effects == []
    harness.inbox = [Synced()]
    harness.settle()
    assert len(harness.bound()) == 3


def test_a_nominated_pod_that_is_labelled_otherwise_wakes_whom_it_kept_out():
    """Its labels decide whether members may be beside it. Regression: a change of them woke no group."""
    harness = Harness()
    apart = PodTerm("kubernetes.io/hostname", (Requirement("app", "In", ("x",)),), ("default",))
    harness.add(node("n1", cpu=3, labels={"kubernetes.io/hostname": "n1"}))
    harness.add(foreign("heir", nominated_node="n1", priority=5, labels={"app": "x"}))
    harness.wait(3, group(min_member=1), pod("a-0", anti_affinity=[apart]))
    assert harness.bound() == []
    harness.change("default/heir", labels=(("app", "y"),))
    harness.wait(3)
    assert harness.bound() == ["default/a-0"]
