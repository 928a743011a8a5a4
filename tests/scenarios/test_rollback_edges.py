"""Edge cases of the rollback; each docstring gives the steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.effects import BindPod, EvictPod, LookUpOwner
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, EvictionRefused, OwnerSeen, Refused, Spared
from tests.builders import group, node, pod, pods
from tests.harness import START, Harness
from tests.scenarios.test_rollback import JOB, SET, half_bound, never, running


def forbidden_by_a_budget(effect: EvictPod) -> EvictionRefused:
    return EvictionRefused(effect.uid, Spared.BUDGET, "the budget forbids it")


def restarting() -> Harness:
    """A member is lost under onDegraded Restart, and a budget refuses the evictions of the others."""
    harness = running()
    harness.refuse_eviction = forbidden_by_a_budget
    harness.delete("default/a-1")
    harness.wait(5)
    return harness


def ran_before(harness: Harness, count: int) -> None:
    """Add pods of the group that were bound and running long before the test begins."""
    for number in range(count):
        there = pod(f"a-{number}", owner=SET, node="n1", phase=PodPhase.RUNNING)
        harness.add(replace(there, bound_at=START - 1000))


def test_a_restart_of_the_operator_evicts_no_pods_that_ran_before_their_podgroup():
    """Two pods run; a PodGroup with minMember 3 is created; the operator is restarted."""
    harness = Harness.of(node("n1", cpu=3))
    ran_before(harness, 2)
    harness.wait(60, group("a", min_member=3, created=START - 10))
    harness.restart()
    harness.wait(100)
    assert harness.evicted == []


def test_pods_that_ran_before_their_podgroup_stay_when_another_member_cannot_be_bound():
    """Two pods run; a PodGroup with minMember 3 is created; the binding of the third always fails."""
    harness = Harness()
    harness.refuse_bind = never("a-2")
    harness.add(node("n1", cpu=3))
    ran_before(harness, 2)
    harness.add(group("a", min_member=3, created=START - 10))
    harness.wait(100, pod("a-2", owner=SET))
    assert harness.evicted == []


def test_of_a_group_partly_running_before_its_podgroup_only_what_a_rival_bound_is_evicted():
    """One pod runs; a PodGroup with minMember 3 is created; another scheduler binds a second one."""
    harness = Harness.of(node("n1", cpu=2))
    ran_before(harness, 1)
    harness.settle(group("a", min_member=3, created=START - 10), pod("a-1", owner=SET), pod("a-2", owner=SET))
    harness.change("default/a-1", node="n1")
    harness.wait(100)
    assert harness.evicted == ["default/a-1"]


@pytest.mark.without("restarts", "standbys", why="a new leader has the whole time to complete a part")
def test_a_quorum_that_began_in_the_second_in_which_its_podgroup_was_created_is_rolled_back_by_a_new_leader():
    """Times are in whole seconds: a PodGroup is created, two of three are bound, and the operator is restarted."""
    harness = Harness()
    harness.refuse_bind = never("a-2")
    harness.wait(0.5, node("n1", cpu=3))
    made = harness.server_time
    harness.settle(group("a", min_member=3, created=made), *pods("a", 3, owner=SET, created=made))
    harness.restart()
    harness.wait(21)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


@pytest.mark.without("restarts", "standbys", why="a new leader that finds nobody bound begins another run")
def test_a_group_whose_minimum_another_scheduler_had_bound_is_restarted_whole_once_it_loses_it():
    """A pod of a group of one is bound before it is first seen, and deleted. The other, of no owner, fits nowhere."""
    harness = Harness.of(node("n1", cpu=1), group("a", min_member=1, on_degraded=OnDegraded.RESTART))
    harness.wait(2, pod("a-0", owner=SET, node="n1"), pod("a-1", cpu=2))
    harness.delete("default/a-0")
    harness.wait(3)
    assert harness.evicted == ["default/a-1"]


@pytest.mark.parametrize("policy", OnDegraded)
def test_a_restart_of_the_operator_does_not_take_shifted_roles_for_a_loss(policy):
    """Two pods of each role run; the roles' minima change to three and one; the operator is restarted."""
    harness = Harness()
    roles = (Role("w", 2), Role("p", 2))
    harness.add(node("n1", cpu=4), group("a", min_member=4, roles=roles, on_degraded=policy))
    for number in range(4):
        harness.add(pod(f"a-{number}", role="w" if number < 2 else "p", owner=SET))
    harness.settle()
    harness.run_pods()
    harness.wait(5)
    harness.change_spec("default/a", roles=(Role("w", 3), Role("p", 1)))
    harness.wait(30)
    harness.restart()
    harness.wait(60)
    assert harness.evicted == []
    assert harness.status("default/a").phase == "Running"


CALLED_OFF: dict[str, Callable[[Harness], None]] = {
    "its policy is changed": lambda harness: harness.change_spec("default/a", on_degraded=OnDegraded.REPAIR),
    "its PodGroup is deleted": lambda harness: harness.delete_group("default/a"),
    "it is whole by a lowered minimum": lambda harness: harness.change_spec("default/a", min_member=2),
}


@pytest.mark.parametrize("change", CALLED_OFF.values(), ids=CALLED_OFF)
def test_a_restart_of_a_group_of_which_nobody_has_left_is_called_off_if(change: Callable[[Harness], None]):
    harness = restarting()
    change(harness)
    harness.wait(20)
    harness.refuse_eviction = lambda _: None
    harness.wait(60)
    assert harness.evicted == []


def test_a_restart_goes_on_under_a_new_leader_though_replacements_wait():
    """One of two is evicted, a budget keeps the other; replacements exist; the operator is restarted."""
    harness = running()
    harness.refuse_eviction = lambda effect: forbidden_by_a_budget(effect) if effect.name == "a-2" else None
    harness.delete("default/a-1")
    harness.wait(3)
    harness.end_terminating()
    harness.wait(5, *(pod(f"a-{number}", owner=SET, uid=f"again-{number}") for number in (0, 1)))
    harness.restart()
    harness.wait(5)
    assert harness.bound() == ["default/a-2"]
    harness.refuse_eviction = lambda _: None
    harness.wait(30)
    assert harness.evicted == ["default/a-0", "default/a-2"]


def test_an_annotated_group_that_has_run_for_long_and_lost_a_member_is_not_evicted_after_a_restart():
    """Three pods want two places; two run for 1,000 s and one of them is lost; the third has waited all the time."""
    said = Declaration("a", min_member=2)
    harness = Harness.settled(node("n1", cpu=2), *pods("a", 3, declaration=said, owner=SET))
    harness.run_pods()
    harness.wait(1000)
    harness.delete(harness.bound()[0])
    harness.add(node("n1", cpu=1))
    harness.restart()
    harness.wait(100)
    assert harness.evicted == []


def test_a_pod_of_a_namespace_that_is_not_ours_has_no_rivals():
    harness = Harness(Policy(namespace="default"))
    harness.wait(20, node("n1"))
    harness.settle(pod("other/x-0", group="x"))
    harness.change("other/x-0", node="n1")
    harness.settle()
    assert harness.machine.take_rivals() == []


def test_a_late_binding_of_ours_to_a_node_that_we_had_given_up_has_no_rival_either():
    """The result is lost, the node looks full, the member is assumed elsewhere; then the first binding appears."""
    harness = Harness.waited(20, node("n1", cpu=1), node("n2", cpu=1))
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no answer")
    harness.settle(group("a", min_member=1), pod("a-0", owner=SET))
    first = harness.gang("default/a").operations.bindings["uid-default/a-0"].node
    harness.wait(1, node(first, cpu=1, unschedulable=True))
    harness.change("default/a-0", node=first)
    harness.settle()
    assert harness.machine.take_rivals() == []


@pytest.mark.parametrize("what", ["node gone", "contradiction", "PodGroup deleted"])
def test_bindings_that_wait_to_be_sent_are_withdrawn_when_their_ground_goes(what):
    harness = Harness()
    harness.withhold = lambda _: True
    harness.settle(node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    if what == "node gone":
        harness.delete_node("n1")
    elif what == "contradiction":
        harness.change("default/a-0", declaration=Declaration("a", min_member=2))
    else:
        harness.delete_group("default/a")
    harness.settle()
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.settle()
    assert harness.bound() == []


def test_a_conflict_that_arrives_before_the_watch_shows_a_rivals_binding_leaves_no_half_bound_group():
    """One binding gets CONFLICT, all others are refused and their node goes; then the watch shows the
    rival's binding.
    """
    harness = Harness.of(node("n1", cpu=2), node("n9", cpu=1, unschedulable=True), group("a", min_member=2))
    harness.add(*pods("a", 2, owner=SET))

    def refuse(effect: BindPod) -> BindRefused:
        why = Refused.CONFLICT if effect.name == "a-0" else Refused.FORBIDDEN
        return BindRefused(effect.uid, effect.node, why, "bound to n9")

    harness.refuse_bind = refuse
    harness.step()
    harness.step()
    harness.delete_node("n1")
    harness.change("default/a-0", node="n9")
    harness.refuse_bind = lambda _: None
    harness.wait(100)
    assert harness.evicted == ["default/a-0"]


@pytest.mark.without("restarts", why="a binding that is withheld dies with its leader")
def test_a_member_relabelled_with_its_binding_on_the_way_does_not_leave_its_new_group_half_bound():
    harness = Harness()
    harness.withhold = lambda _: True
    harness.settle(node("n1", cpu=3), group("a", min_member=3), group("b", min_member=2), *pods("a", 3, owner=SET))
    harness.change("default/a-0", declaration=Declaration("b"))
    harness.settle()
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.wait(100)
    assert "default/a-0" in harness.evicted


def test_an_undo_and_a_new_plan_are_never_decided_together():
    """Refused evictions are due for a retry at the same moment at which an event unparks the group."""
    harness = half_bound()
    harness.refuse_eviction = forbidden_by_a_budget
    harness.wait(60)
    for events, _, effects in harness.history:
        sent = {type(effect).__name__ for effect in effects}
        assert not {"BindPod", "EvictPod"} <= sent, events
    assert any(isinstance(effect, EvictPod) for effect in harness.effects)


def test_a_member_whose_eviction_was_accepted_counts_no_more_when_a_late_binding_arrives():
    """The eviction is accepted, its watch event is late, and the result of the last binding was lost."""
    harness = half_bound()
    harness.wait(4)
    while not any(isinstance(effect, EvictPod) for effect in harness.effects):
        harness.wait(0.1)
        if harness.machine.gangs and harness.gang("default/a").operations.rollback is not None:
            harness.step()
    harness.change("default/a-2", node="n1")
    harness.wait(5)
    assert not harness.gang("default/a").record.scheduled_at
    assert harness.events("Scheduled") == []


def test_an_undo_that_is_repeated_backs_off_ever_longer():
    """One member's binding is always refused, and a controller recreates every evicted member at once."""
    harness = Harness()
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no luck") if effect.name.endswith("x") else None
    )
    harness.add(node("n1", cpu=3), group("a", min_member=3), *pods("a", 2, owner=SET), pod("ax", owner=SET))
    made = 2
    for _ in range(900):
        harness.wait(4)
        gone = [found for found in harness.pods.values() if found.terminating]
        harness.end_terminating()
        harness.add(*(pod(f"a-{made + number}", owner=SET) for number in range(len(gone))))
        made += len(gone)
    undone = harness.gang("default/a").record.timeouts
    assert 10 <= undone <= 20, "every five minutes in the end"
    assert len(harness.evicted) == 2 * undone


def test_an_undo_long_ago_is_not_told_of_a_later_time_out():
    """A group is rolled back, never scheduled, and its members are recreated; later it times out for lack of room."""
    harness = half_bound(max_schedule_time_s=60.0)
    harness.wait(10)
    harness.end_terminating()
    harness.refuse_bind = lambda _: None
    harness.wait(70, node("n1", cpu=1), *pods("a", 2, first=7, owner=SET))
    assert harness.status("default/a").phase == "TimedOut"
    assert harness.condition("default/a").reason == "NeverFits"


@pytest.mark.without("leaderless", why="a new leader has the whole time to complete a part")
@pytest.mark.without("restarts", why="each new leader asks about the Job")
def test_a_job_that_is_resumed_is_asked_about_again():
    """A suspended Job would recreate no pod; there is no room, so no other plan causes a new rollback."""
    harness = half_bound()
    for found in list(harness.pods.values()):
        harness.add(replace(found, owner=JOB))
    harness.jobs["job-a"] = OwnerSeen("job-a", why="Job default/a is suspended: resume it")
    harness.wait(60, node("n1", cpu=2))
    assert harness.evicted == []
    harness.jobs["job-a"] = OwnerSeen("job-a")
    harness.wait(70)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]
    assert sum(isinstance(effect, LookUpOwner) for effect in harness.effects) < 6


def test_a_group_without_a_podgroup_is_known_to_have_been_scheduled_after_a_failover():
    """Three annotated members run; one succeeds, one is lost and recreated; then another process leads."""
    said = Declaration("a", min_member=3)
    harness = Harness.settled(node("n1", cpu=3), *pods("a", 3, declaration=said, owner=JOB, created=START - 10))
    harness.run_pods()
    harness.wait(20)
    harness.change("default/a-2", phase=PodPhase.SUCCEEDED)
    harness.delete("default/a-1")
    harness.restart()
    harness.wait(5, pod("a-3", declaration=said, owner=JOB, created=harness.now))
    assert harness.bound() == ["default/a-0", "default/a-3"]
    assert harness.evicted == []


def test_a_group_that_nothing_declares_is_not_taken_for_scheduled_after_a_failover():
    """Two members run, their PodGroup is deleted, another process leads, a PodGroup of three is created."""
    harness = running(on_degraded=OnDegraded.REPAIR)
    harness.delete("default/a-2")
    harness.delete_group("default/a")
    harness.restart()
    harness.wait(5)
    harness.wait(60, group("a", min_member=3, uid="again", created=harness.now))
    assert harness.status("default/a").phase == "Pending"
    assert harness.evicted == []
