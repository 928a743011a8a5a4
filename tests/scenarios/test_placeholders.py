"""Edge cases of reservations for future members, Spark applications and strict FIFO; docstrings give the steps."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.events import NodeSeen
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import Group, OnDegraded
from gangsched.core.objects.policy import FifoRules, Policy
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.core.queueing import lines
from gangsched.core.queueing.lines import _holds_up as holds_up
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import group, node, pod, pods, shape
from tests.harness import Harness

TIME_S = 120.0
SET = Owner("StatefulSet", "s", "set", "apps")
POOL = {"resource_channel": "batch"}
IN_TURN = Policy(fifo=FifoRules(groups=frozenset({"batch"})))


def app(**spec: Any) -> Group:
    """A driver and four workers of 2 CPU each."""
    roles = (Role("driver", 1), Role("worker", 4, template=shape(2)))
    return group("a", min_member=5, roles=roles, max_schedule_time_s=TIME_S, **spec)


def workers(count: int, *, first: int = 0) -> list[Pod]:
    return [pod(f"worker-{number}", role="worker", cpu=2, owner=SET) for number in range(first, first + count)]


def holding(owner: Owner | None = SET, **spec: Any) -> Harness:
    """The application with its driver bound and all four places reserved."""
    harness = Harness.of(node("n1", cpu=5), node("n2", cpu=4), app(**spec), pod("driver", role="driver", owner=owner))
    harness.settle()
    assert (harness.bound(), len(harness.gang("default/a").operations.placeholders())) == (["default/driver"], 4)
    return harness


@pytest.mark.without("restarts", why="a new leader tries again at once")
def test_a_binding_without_an_answer_beside_held_places_leaves_the_machine_at_rest_when_the_places_would_expire():
    """Places are held, the driver's binding waits in the shell, and maxScheduleTime passes: no deadline is due then."""
    harness = Harness()
    harness.withhold = lambda _: True
    harness.wait(TIME_S + 5, node("n1", cpu=9), app(), pod("driver", role="driver"))
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.wait(5)
    assert harness.bound() == ["default/driver"]
    assert harness.status("default/a").phase == "Degraded", "the places had waited long enough"


def test_who_is_bound_stays_after_the_time_is_over_under_on_degraded_restart():
    """The places expire before the group was ever whole, then an event touches it: by rule 11 the members stay."""
    harness = holding(on_degraded=OnDegraded.RESTART)
    harness.wait(TIME_S + 5)
    harness.change("default/driver", labels=(("touched", "yes"),))
    harness.wait(5)
    assert not harness.evicted
    assert harness.condition("default/a", "Degraded").reason == "MembersMissing"
    harness.settle(*workers(4))
    assert harness.status("default/a").phase == "Scheduled"


def spark(kind: str, *, executors: int = 4, name: str = "app-driver", **fields: Any) -> Pod:
    """A driver of 1 CPU that wants executors of 2 CPU, or one of those."""
    said = {"spark-executor-count": str(executors), "spark-executor-cpu": "2", "spark-executor-mem": "1Gi"}
    labels = {"spark-role": kind, "spark-app-id": "app"}
    declaration = DEFAULT.declaration(labels, said if kind == "driver" else {})
    return pod(name, cpu=1 if kind == "driver" else 2, memory="1Gi", declaration=declaration, **fields)


def two_drivers(*, restarted: bool = False) -> Harness:
    """An application with four places reserved, and a second driver of the same name that asks for five."""
    harness = Harness(Policy(default_max_schedule_time_s=TIME_S))
    harness.settle(node("n1", cpu=9), spark("driver", owner=SET))
    assert harness.bound() == ["default/app-driver"]
    harness.wait(5, *pods("", 9), spark("driver", executors=5, name="second"))
    if restarted:
        harness.restart()
    harness.wait(50)
    return harness


@pytest.mark.parametrize("restarted", [False, True])
def test_a_contradiction_takes_no_places_away(restarted):
    """A second driver of an application with reserved places declares another number of executors, then is deleted."""
    harness = two_drivers(restarted=restarted)
    assert harness.bound() == ["default/app-driver"], "nobody has taken the places"
    assert not harness.evicted
    assert harness.condition("default/app").reason == "Contradiction"
    harness.delete("default/second")
    harness.settle(*(spark("executor", name=f"exec-{number}") for number in range(4)))
    assert len(harness.bound("default/exec")) == 4
    assert harness.status("default/app").phase == "Scheduled"


@pytest.mark.parametrize("restarted", [False, True])
def test_places_expire_under_a_contradiction_and_the_group_lacks_what_it_lacked_before(restarted):
    """The second driver stays: other groups get the room when the time is over, and the group is not whole."""
    harness = two_drivers(restarted=restarted)
    harness.wait(TIME_S)
    assert len(harness.bound("default/-")) == 8
    assert not harness.evicted
    assert (harness.status("default/app").phase, harness.status("default/app").minimum) == ("Degraded", 5)


@pytest.mark.without("restarts", why="each leader goes before it has written the rollback")
def test_places_are_held_again_when_there_is_room_though_an_undo_had_to_leave_who_is_bound():
    """A node with reserved places is lost; no controller would replace the driver, and a new node comes later."""
    harness = holding(owner=None)
    harness.delete_node("n2" if harness.pod("default/driver").node == "n1" else "n1")
    harness.wait(40)
    assert harness.condition("default/a", "Degraded").reason == "PartlyBound"
    harness.wait(40, node("n3", cpu=8))
    assert len(harness.gang("default/a").operations.placeholders()) == 4
    harness.settle(*workers(4))
    assert harness.status("default/a").phase == "Scheduled"


@pytest.mark.without("all", why="the story has its own change of leader")
def test_a_new_leader_that_can_evict_nobody_holds_places_again_as_soon_as_there_is_room():
    """Regression: it learned in its first call that the driver is spared, and looked at the group no more."""
    harness = holding(owner=None)
    harness.delete_node("n2" if harness.pod("default/driver").node == "n1" else "n1")
    harness.wait(40)
    harness.restart()
    harness.settle()
    harness.settle(node("n3", cpu=8))
    assert len(harness.gang("default/a").operations.placeholders()) == 4


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_who_waits_for_its_turn_may_be_helped_and_called_at_once():
    """B's further member was refused, B lost its node and waits behind A; A leaves at the moment when a node arrives.

    Regression: the queue woke B twice, and failed the second time.
    """
    harness = Harness(IN_TURN)
    harness.now += 100
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no", 100)
    harness.add(node("n1", cpu=2, labels=POOL), group("b", min_member=2, created=50.0))
    harness.wait(1, *pods("b", 2, node_selector=POOL), pod("b-2", group="b", cpu=5, node_selector=POOL, created=1.0))
    harness.wait(1, group("a", min_member=2, created=10.0), *pods("a", 2, cpu=3, node_selector=POOL))
    harness.delete_node("n1")
    harness.add(node("n2", cpu=4, labels=POOL), node("n3", cpu=3, labels=POOL))
    harness.wait(1, pod("old", group="", cpu=3, node="n3"))
    assert str(harness.gang("default/b").wait.behind) == "default/a"
    harness.refuse_bind = lambda _: None
    harness.delete("default/a-0")
    harness.settle(node("n4", cpu=16, labels=POOL))
    assert len(harness.bound("default/b")) == 3


@pytest.mark.without("all", why="only its size is new; small groups take the courses")
def test_a_long_line_costs_little_for_every_event(monkeypatch):
    """Three hundred groups wait behind one: neither the first cycle nor a later event checks each against
    all before it.
    """
    asked = 0

    def counting(*args: Any) -> bool:
        nonlocal asked
        asked += 1
        return holds_up(*args)

    monkeypatch.setattr(lines, "_holds_up", counting)
    harness = Harness(IN_TURN)
    harness.now += 5000
    harness.add(node("n1", cpu=4, labels=POOL), pod("old", group="", cpu=2, node="n1"))
    harness.add(group("first", min_member=1, created=1.0), pod("first-0", group="first", cpu=4, node_selector=POOL))
    for number in range(300):
        harness.add(group(f"g{number}", min_member=1, created=2.0 + number))
        harness.add(*pods(f"g{number}", 1, node_selector=POOL))
    harness.step()
    assert asked <= 900
    harness.settle()
    asked = 0
    harness.machine.handle([NodeSeen(node("n1", cpu=4, labels=POOL))], harness.now)
    assert asked <= 10
    harness.delete("default/first-0")
    harness.settle()
    assert len(harness.bound("default/g")) == 2


def test_a_status_that_claims_any_number_of_places_costs_no_more_than_the_minimum():
    """A user writes a reservation of two thousand million places into the status, and the operator restarts."""
    harness = holding()
    found = harness.group("default/a")
    assert found.status.reservation is not None
    claimed = tuple(replace(place, count=2**31 - 1) for place in found.status.reservation.placements)
    reservation = replace(found.status.reservation, placements=claimed)
    harness.groups[found.key] = replace(found, status=replace(found.status, reservation=reservation))
    harness.restart()
    harness.settle()
    assert len(harness.gang("default/a").operations.placeholders()) == 4


def test_a_restart_holds_the_places_beside_a_member_that_has_taken_one_on_the_same_node():
    """A worker takes one of two places on a node, a fuller node arrives, the operator restarts: no place
    moves there.
    """
    harness = holding()
    harness.wait(2, *workers(1))
    before = sorted(binding.node for binding in harness.gang("default/a").operations.placeholders())
    harness.wait(2, node("n3", cpu=10), pod("other", group="", cpu=8, node="n3"))
    harness.restart()
    harness.wait(2)
    assert sorted(binding.node for binding in harness.gang("default/a").operations.placeholders()) == before


def scheduled() -> Harness:
    """The application with all its members bound."""
    harness = holding()
    harness.settle(*workers(4))
    harness.run_pods()
    harness.wait(2)
    assert harness.status("default/a").phase == "Running"
    return harness


def test_a_place_held_over_a_restart_for_a_scheduled_group_begins_no_quorum():
    """A worker is lost and replaced, with a restart between; then the PodGroup and another worker go: no eviction."""
    harness = scheduled()
    harness.delete("default/worker-2")
    harness.wait(5)
    harness.restart()
    harness.wait(5, *workers(1, first=4))
    assert len(harness.bound()) == 5
    harness.delete_group("default/a")
    harness.delete("default/worker-0")
    harness.wait(100)
    assert not harness.evicted


def test_a_restart_holds_no_place_again_whose_time_is_over():
    """A scheduled group loses a worker, the place expires, and the operator restarts twice: the room stays free."""
    harness = scheduled()
    harness.delete("default/worker-2")
    harness.wait(TIME_S + 3)
    assert harness.gang("default/a").operations.placeholders() == []
    for _ in range(2):
        harness.restart()
        harness.wait(10)
        assert harness.gang("default/a").operations.placeholders() == []
    harness.settle(*workers(1, first=4))
    harness.delete("default/worker-4")
    harness.wait(1)
    assert len(harness.gang("default/a").operations.placeholders()) == 1, "the group has been whole in between"


def test_a_lost_place_is_held_elsewhere_though_a_member_that_fits_nowhere_waits():
    """Four places are held; a worker too large for every node arrives, and another node replaces one with places."""
    harness = holding()
    harness.wait(3, pod("giant", role="worker", cpu=64, owner=SET))
    harness.delete_node("n2" if harness.pod("default/driver").node == "n1" else "n1")
    harness.wait(40, node("n3", cpu=4))
    assert not harness.evicted
    assert len(harness.gang("default/a").operations.placeholders()) == 4
    harness.settle(*workers(4))
    assert harness.status("default/a").phase == "Scheduled"


def test_a_group_that_times_out_again_and_again_behind_another_says_once_that_it_is_not_its_turn():
    """Two groups in one FIFO lane wait for ever with short timeouts: each timeout is reported, its cause only once."""
    harness = Harness(IN_TURN)
    harness.now += 100
    harness.add(node("n1", cpu=4, labels=POOL), pod("old", group="", cpu=3, node="n1"))
    for name, minimum in (("a", 2), ("b", 1)):
        harness.add(group(name, min_member=minimum, created=float(minimum == 1), max_schedule_time_s=20.0))
        harness.add(*pods(name, minimum, node_selector=POOL))
    harness.wait(1000)
    assert len(harness.events("Unschedulable")) == 1
    assert [event.name for event in harness.events("NotItsTurn")] == ["b"]


# States that the soak test produced


def worker(number: int, **fields: Any) -> Pod:
    return pod(f"worker-{number}", role="worker", **fields)


def test_a_role_that_is_lost_while_nobody_looks_is_degraded_and_holds_no_further_member_up():
    roles = (Role("chief", 1), Role("worker", 1))
    harness = Harness.settled(
        node("n1", cpu=8), group("a", min_member=1, roles=roles), pod("chief", role="chief"), worker(1), worker(2)
    )
    harness.run_pods()
    harness.wait(3)
    assert harness.status("default/a").phase == "Running"
    del harness.pods[harness.pod("default/chief").uid]
    harness.add(worker(3))
    harness.restart()
    harness.wait(4)
    assert "default/worker-3" in harness.bound()
    assert harness.status("default/a").phase == "Degraded"
    assert harness.condition("default/a", "Degraded").reason == "MembersMissing"


@pytest.mark.parametrize("restarted", [False, True])
def test_members_with_gates_are_of_the_next_run_when_the_last_member_without_goes(restarted):
    harness = Harness()
    gated = [pod(f"worker-{number}", gated=True) for number in (1, 2)]
    harness.wait(2, node("n1", cpu=8), group("a", min_member=2), pod("first"), *gated)
    harness.delete("default/first")
    harness.wait(2)
    if restarted:
        harness.restart()
        harness.wait(2)
    for each in gated:
        harness.change(f"default/{each.name}", gated=False)
    harness.settle()
    assert harness.bound() == ["default/worker-1", "default/worker-2"]
