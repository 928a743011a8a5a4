"""Rules 16 and 17: what statuses and Events say, when they are written, and what is never written."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.effects import BindPod, PatchPodCondition, PatchStatus
from gangsched.core.objects.policy import Policy, Reservations
from gangsched.core.objects.results import BindRefused, Refused, StatusRefused
from gangsched.core.objects.status import MOST_FITTING, Fitting
from tests.builders import group, node, pod, pods
from tests.harness import START, Harness


def statuses(harness: Harness, name: str = "a") -> list[PatchStatus]:
    return [effect for effect in harness.effects if isinstance(effect, PatchStatus) and effect.key.name == name]


def conditions(harness: Harness, name: str) -> list[PatchPodCondition]:
    return [effect for effect in harness.effects if isinstance(effect, PatchPodCondition) and effect.name == name]


def refused(**spec) -> Harness:
    """A group of three with room for two."""
    harness = Harness.of(group("a", min_member=3, max_schedule_time_s=3600.0, **spec), *pods("a", 3))
    harness.settle(node(cpu=3), pod("busy", group="", node="n1"))
    return harness


def test_a_group_bound_at_once_costs_one_status_and_one_event():
    harness = Harness.waited(60, group("a", min_member=2), *pods("a", 2), node())
    (patch,) = statuses(harness)
    assert (patch.status.phase, patch.resource_version) == ("Scheduled", "")
    (event,) = harness.emitted
    assert (event.reason, event.type, event.kind, event.name) == ("Scheduled", "Normal", "PodGroup", "a")
    assert event.note == "Bound 2 members to n1 (2)."
    assert conditions(harness, "a-0") == []


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew or not at all")
def test_a_group_whose_members_run_at_once_is_still_told_at_once():
    """Steps: the members are bound and run before any status is written. The phase is then Running, never Scheduled."""
    harness = Harness.of(group("a", min_member=2), *pods("a", 2), node())
    harness.step()
    harness.run_pods()
    harness.step()

    assert [patch.status.phase for patch in statuses(harness)] == ["Running"]


@pytest.mark.without("leaderless", why="a new leader tells anew or not at all")
def test_a_members_condition_says_since_when_only_as_it_becomes_false():
    harness = refused()
    harness.wait(2)
    (first,) = conditions(harness, "a-0")
    harness.delete("default/a-2")
    harness.wait(2)

    assert first.since == harness.now - 3
    assert [patch.since for patch in conditions(harness, "a-0")[1:]] == [0.0]


def test_the_scheduled_event_names_at_most_thirty_nodes():
    harness = Harness()
    names = [f"n{number:02}" for number in range(32)]
    harness.settle(group("a", min_member=32), *pods("a", 32), *(node(name, cpu=1) for name in names))
    (event,) = harness.events("Scheduled")
    assert event.note.startswith("Bound 32 members to n00 (1), n01 (1), ")
    assert event.note.endswith("n29 (1) and 2 more nodes.")
    assert len(event.note) <= 1024


@pytest.mark.without("restarts", "standbys", why="a new leader tells anew or not at all")
def test_a_group_of_one_is_told_in_the_singular_all_along():
    harness = Harness()
    harness.withhold = lambda _: True
    harness.wait(2, group("a", min_member=1), *pods("a", 1), node())
    said = [harness.condition("default/a").message]
    harness.send_withheld()
    harness.wait(2)
    said.append(harness.condition("default/a").message)
    harness.add(pod("a-1", cpu=99))
    harness.delete("default/a-0")
    harness.wait(4)
    said.append(harness.condition("default/a", "Degraded").message.partition(":")[0])

    assert said == [
        "1 binding is under way.",
        "1 member is bound or done; 1 needed.",
        "0 of 1 member is left; 1 member is waiting for room",
    ]


def test_a_refusal_lifted_within_a_second_is_never_written():
    harness = refused()
    harness.wait(0.99)
    harness.wait(60, node("n2"))
    assert [patch.status.phase for patch in statuses(harness)] == ["Scheduled"]
    assert [event.reason for event in harness.emitted] == ["Scheduled"]
    assert conditions(harness, "a-0") == []


def test_a_refusal_that_begins_late_lasts_its_own_second_before_it_is_written():
    harness = Harness.waited(
        0.9, group("a", min_member=3), *pods("a", 2), node(cpu=3), pod("busy", group="", node="n1")
    )
    harness.wait(0.5, *pods("a", 1, first=2))
    assert statuses(harness) == []
    harness.wait(0.5)
    assert [patch.status.conditions[0].reason for patch in statuses(harness)] == ["Unschedulable"]


def test_a_members_condition_changes_with_its_reason_and_never_with_a_number():
    harness = refused()
    harness.wait(2)
    for number in range(5):
        harness.wait(31, node(f"m{number}", cpu="500m"))
    assert len(conditions(harness, "a-0")) == 1
    harness.delete("default/a-2")
    harness.wait(2)
    assert [told.reason for told in conditions(harness, "a-0")] == ["Unschedulable", "GangIncomplete"]


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew or not at all")
def test_a_groups_message_changes_at_most_every_thirty_seconds():
    harness = refused()
    harness.wait(1)
    first = harness.condition("default/a").message
    assert "Only 2 of 3 members fit" in first
    begun = harness.now
    harness.change_spec("default/a", min_member=3)
    harness.add(pod("busier", group="", node="n1"))
    harness.change("default/a-0", labels=(("changed", "yes"),))
    harness.wait(2)
    assert harness.condition("default/a").message == first
    harness.wait(29)
    assert "Only 1 of 3 members fit" in harness.condition("default/a").message
    times = [at for events, at, effects in harness.history for effect in effects if isinstance(effect, PatchStatus)]
    assert times[-1] == begun + 30


@pytest.mark.without("restarts", "standbys", why="a new leader tells anew or not at all")
def test_counts_are_written_while_the_message_keeps_its_number():
    harness = Harness.waited(2, group("a", min_member=2), *pods("a", 2), node())
    message = harness.condition("default/a").message
    harness.wait(2, *pods("a", 1, first=2))
    assert harness.status("default/a").bound == 3
    assert harness.condition("default/a").message == message
    harness.wait(30)
    assert harness.condition("default/a").message.startswith("3 members are bound")


def test_transitions_keep_their_time_while_only_the_reason_changes():
    harness = refused()
    harness.wait(2)
    since = harness.condition("default/a").since
    harness.delete("default/a-2")
    harness.wait(2)
    assert harness.condition("default/a").reason == "GangIncomplete"
    assert harness.condition("default/a").since == since
    harness.settle(node("n2"), pod("a-2"))
    assert harness.condition("default/a").since == harness.now


@pytest.mark.parametrize("change", [{"min_member": 2}, {"priority": 7}, {"max_schedule_time_s": 900.0}])
@pytest.mark.parametrize("size", [1, 3])
def test_the_observed_generation_is_that_of_the_spec(change: dict[str, Any], size: int):
    """Regression: a change without another effect was not observed, and `kubectl wait` waits until it is."""
    harness = Harness.settled(node(cpu=1), group("a", min_member=size), *pods("a", size))
    harness.change_spec("default/a", **change)
    harness.wait(2)
    assert {each.generation for each in harness.status("default/a").conditions} == {2}


def test_holders_are_named_at_most_three_of_the_own_namespace_and_others_counted():
    harness = Harness.of(node(cpu=8))
    for name in ("v", "w", "x", "y"):
        harness.add(group(name, min_member=1), *pods(name, 1))
    harness.settle(group("other/secret", min_member=1), *pods("secret", 1, namespace="other"))
    harness.wait(2, group("a", min_member=8), *pods("a", 8))
    message = harness.condition("default/a").message
    assert "Held by default/v (cpu 1), default/w (cpu 1), default/x (cpu 1) and 2 others" in message
    assert "secret" not in message


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_binding_is_written_only_if_it_lasts_over_a_second():
    harness = Harness()
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no") if effect.name == "a-1" else None
    )
    harness.add(group("a", min_member=2), *pods("a", 2), node())
    harness.step()
    assert harness.gang("default/a").record.phase == "Binding"
    assert statuses(harness) == []


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew or not at all")
def test_an_older_change_that_is_due_does_not_carry_binding_out_early():
    harness = Harness.waited(0.9, group("a", min_member=2), *pods("a", 1), node())
    harness.add(*pods("a", 1, first=1))
    harness.step()
    harness.now += 0.2
    harness.inbox, answers = [], harness.inbox
    harness.step()
    assert statuses(harness) == []
    harness.now += 0.9
    harness.step()
    assert [patch.status.phase for patch in statuses(harness)] == ["Binding"]
    harness.inbox = answers
    harness.settle()
    assert harness.status("default/a").phase == "Scheduled"


def test_a_status_that_was_refused_is_written_again_after_a_while_and_not_sooner():
    harness = Harness()
    refusals = []

    def refuse(effect: PatchStatus) -> StatusRefused:
        refusals.append(harness.now)
        return StatusRefused(effect.key, stale=False)

    harness.refuse_status = refuse
    harness.wait(20, group("a", min_member=2), *pods("a", 2), node())
    assert [at - refusals[0] for at in refusals] == [0, 5, 10, 15, 20]
    harness.refuse_status = lambda _: None
    harness.wait(5)
    assert harness.status("default/a").phase == "Scheduled"
    count = len(statuses(harness))
    harness.wait(100)
    assert len(statuses(harness)) == count
    assert len(harness.events("Scheduled")) == 1


def test_a_refused_status_keeps_its_times_of_transition():
    harness = Harness()
    harness.refuse_status = lambda effect: StatusRefused(effect.key, stale=False)
    harness.settle(group("a", min_member=2), *pods("a", 2), node())
    begun = harness.now
    harness.refuse_status = lambda _: None
    harness.wait(10)
    assert harness.condition("default/a").since == begun


def test_a_restart_repeats_no_event_no_condition_and_no_status():
    harness = Harness.of(group("b", min_member=1), *pods("b", 1), group("c", min_member=5), *pods("c", 1), node(cpu=3))
    harness.settle()
    harness.wait(40, group("a", min_member=3, max_schedule_time_s=3600.0), *pods("a", 3))
    effects, emitted = len(harness.effects), len(harness.emitted)
    harness.restart()
    harness.wait(5)
    assert harness.effects[effects:] == []
    assert len(harness.emitted) == emitted


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew or not at all")
def test_a_members_condition_that_never_arrived_is_written_again_when_something_happens_later():
    harness = refused()
    harness.wait(2)
    harness.change("default/a-0", condition_reason="", condition_message="")
    harness.wait(2)
    assert len(conditions(harness, "a-0")) == 1
    harness.wait(40)
    harness.change("default/a-0", labels=(("x", "y"),))
    harness.wait(2)
    assert len(conditions(harness, "a-0")) == 2


def test_a_changed_hindrance_of_the_same_reason_is_told_within_thirty_seconds():
    harness = Harness(Policy())
    harness.wait(2, group("a", min_member=2), pod("a-0", role="x"), pod("a-1"), node())
    assert "names the role x" in harness.condition("default/a").message
    harness.delete("default/a-0")
    harness.wait(31, pod("a-0", role="y"))
    assert "names the role y" in harness.condition("default/a").message


@pytest.mark.without("restarts", "leaderless", why="a new leader tells anew or not at all")
def test_nothing_is_decided_or_told_before_everything_was_listed():
    harness = Harness()
    harness.inbox = []
    harness.add(group("a", min_member=2), *pods("a", 2), node())
    assert harness.step() == []
    assert harness.machine.next_deadline() is None
    harness.restart()
    assert [effect.name for effect in harness.effects if isinstance(effect, BindPod)] == ["a-0", "a-1"]
    harness.settle()


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew or not at all")
def test_of_two_equal_groups_each_is_told_how_many_of_its_own_members_fit():
    harness = Harness.settled(node(cpu=3), pod("busy", group="", node="n1"))
    harness.add(group("a", min_member=3, created=1.0), *pods("a", 3))
    harness.add(group("b", min_member=1, created=2.0), *pods("b", 1))
    harness.wait(2, group("c", min_member=3, created=3.0), *pods("c", 3))
    assert "Only 2 of 3 members fit" in harness.condition("default/a").message
    assert "Only 1 of 3 members fit" in harness.condition("default/c").message


@pytest.mark.without("leaderless", why="asserts exact times")
def test_a_message_about_a_terminating_pod_is_renewed_when_that_pod_is_overdue_though_nothing_happens():
    """A pod terminates and a finalizer keeps it. No event says so: the message went on saying "coming free"."""
    harness = Harness()
    old = pod("old", cpu=4, group="", node="n1", terminating=True, gone_by=harness.now + 30)
    harness.wait(100, node("n1", cpu=4), old, group("a", min_member=4, max_schedule_time_s=3600.0), *pods("a", 4))
    assert "cpu 4 of terminating pods is coming free" in harness.condition("default/a").message
    harness.wait(100)
    assert "default/old is stuck terminating" in harness.condition("default/a").message


# Where members fit, and what would help


ZONE = "topology.kubernetes.io/zone"


@pytest.mark.without("disorder", why="a node that takes no member does not change a message that was written before")
def test_a_refused_group_says_where_members_fit_and_what_would_help_without_a_name_of_a_node():
    harness = Harness.of(group("a", min_member=5, max_schedule_time_s=3600.0), *pods("a", 5))
    harness.add(*(node(f"secret-{at}", cpu=2 - at // 2, labels={ZONE: "ab"[at // 2]}) for at in range(3)))
    harness.add(node("secret-3", cpu=2, labels={ZONE: "b"}, taints=["only=gpu:NoSchedule"]))
    harness.wait(60, pod("busy", group="", node="secret-0"))
    status = harness.group("default/a").status
    assert status.fitting == (
        Fitting(members=3, nodes=2, shared=(("allocatable", "cpu 2"), (ZONE, "a"))),
        Fitting(members=1, nodes=1, shared=(("allocatable", "cpu 1"), (ZONE, "b"))),
    )
    assert len(status.helps) == 3
    assert "a minimum of at most 4" in status.helps[-1]
    assert not any("secret" in said for said in status.helps)


def test_they_are_gone_once_the_group_is_bound():
    harness = refused()
    harness.wait(3)
    assert harness.group("default/a").status.helps
    harness.wait(3, node("n2"))
    status = harness.group("default/a").status
    assert (status.phase, status.fitting, status.helps) == ("Scheduled", (), ())


def test_at_most_eight_kinds_of_nodes_are_listed_and_the_others_are_summed():
    harness = Harness.of(group("a", min_member=13, max_schedule_time_s=3600.0), *pods("a", 13))
    harness.wait(3, *(node(f"n{at:02}", cpu=1, labels={ZONE: f"zone-{at:02}"}) for at in range(12)))
    fitting = harness.group("default/a").status.fitting
    assert len(fitting) == MOST_FITTING
    assert fitting[-1] == Fitting(members=5, nodes=5)
    assert sum(kind.members for kind in fitting) == 12


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew or not at all")
def test_where_members_fit_causes_no_write_of_its_own():
    """Steps: the pod on one node ends and another one starts on the other, so that members fit elsewhere."""
    harness = Harness.of(group("a", min_member=3, max_schedule_time_s=3600.0), *pods("a", 3))
    harness.add(*(node(f"n{at}", cpu=1, labels={ZONE: f"zone-{at}"}) for at in range(2)))
    harness.wait(60, pod("others/busy", group="", node="n0"))
    before = len(statuses(harness))
    harness.add(pod("others/next", group="", node="n1"))
    harness.delete("others/busy")
    harness.wait(120)
    assert len(statuses(harness)) == before


def test_who_is_named_as_stuck_is_named_no_more_once_it_has_gone_and_another_has_its_room():
    """Regression: the group said for ever what to remove of a pod that was gone, if nothing else happened to it."""
    harness = Harness(Policy(reservations=Reservations(starvation_age_s=0.0), forecasts=False))
    harness.add(node("n1", cpu=1), pod("stuck", group="", node="n1", terminating=True, gone_by=START - 500))
    waits = group("b", min_member=1, max_schedule_time_s=9999.0)
    harness.wait(40, pod("x", group="", priority=9), waits, *pods("b", 1))
    assert "default/stuck" in harness.condition("default/b").message
    harness.delete("default/stuck")
    harness.wait(200)
    assert harness.bound() == ["default/x"]
    assert "default/stuck" not in harness.condition("default/b").message
