"""No part of a gang stays bound: a quorum that cannot be completed in time is evicted whole (contract rules 1, 13)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import BindPod, EvictPod, LookUpOwner
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.results import BindRefused, EvictionRefused, OwnerSeen, Refused, Spared, StatusRefused
from tests.builders import group, node, pod, pods
from tests.harness import START, Harness

SET = Owner("StatefulSet", "a", "set-a", "apps")
JOB = Owner("Job", "a", "job-a", "batch")


def never(*names: str, why: Refused = Refused.UNAVAILABLE) -> Callable[[BindPod], BindRefused | None]:
    """Refuse every binding of these pods."""
    return lambda effect: BindRefused(effect.uid, effect.node, why, "no luck") if effect.name in names else None


def half_bound(owner: Owner | None = SET, **spec: Any) -> Harness:
    """Two of three members are bound, the third cannot be."""
    harness = Harness()
    harness.refuse_bind = never("a-2")
    harness.wait(15, node("n1", cpu=3), group("a", min_member=3, **spec), *pods("a", 3, owner=owner))
    assert harness.bound() == ["default/a-0", "default/a-1"]
    return harness


@pytest.mark.without("leaderless", why="a new leader has the whole time to complete a part")
def test_what_could_not_be_completed_is_evicted_before_the_repair_deadline():
    harness = half_bound()
    assert harness.evicted == []
    harness.wait(10)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]
    assert harness.bound() == ["default/a-0", "default/a-1"], "they terminate"
    harness.end_terminating()
    harness.settle()
    assert harness.bound() == []
    assert harness.gang("default/a").operations.bindings == {}
    assert harness.gang("default/a").roster.leaving == set(), "evicted members that have gone must not be kept in mind"


def test_an_undone_group_starts_over_whole_when_its_members_are_made_again():
    harness = half_bound()
    harness.wait(10)
    harness.end_terminating()
    harness.refuse_bind = lambda _: None
    harness.wait(60, *pods("a", 2, first=3, owner=SET))
    assert len(harness.bound()) == 3
    assert harness.status("default/a").phase == "Scheduled"


@pytest.mark.without("restarts", "standbys", why="a new leader has the whole time to complete a part")
def test_while_members_are_evicted_no_other_is_bound():
    harness = half_bound()
    harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.UNAVAILABLE, "try later")
    harness.wait(10)
    harness.refuse_bind = lambda _: None
    harness.wait(20, pod("a-3", owner=SET))
    assert harness.bound() == ["default/a-0", "default/a-1"]
    harness.refuse_eviction = lambda _: None
    harness.wait(20)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


@pytest.mark.without("leaderless", why="a new leader has the whole time to complete a part")
@pytest.mark.without("standbys", why="each leader goes before it has written the rollback")
def test_members_that_nothing_would_make_again_are_left_and_the_group_says_so():
    harness = half_bound(owner=None)
    harness.wait(8)
    assert harness.evicted == []
    assert harness.status("default/a").phase == "Degraded"
    degraded = harness.condition("default/a", "Degraded")
    assert degraded.status
    assert degraded.reason == "PartlyBound"
    assert "no controller would recreate it" in degraded.message
    assert harness.condition("default/a").reason == "BindingUndone"
    assert not harness.condition("default/a").status


@pytest.mark.without("all", why="it changes leaders itself")
def test_members_left_are_not_said_to_be_evicted_after_a_restart():
    harness = half_bound(owner=None)
    harness.wait(9)
    assert harness.status("default/a").phase == "Degraded"
    harness.restart()
    harness.wait(3)
    assert "those were evicted" not in harness.condition("default/a").message
    assert harness.status("default/a").phase == "Degraded"


@pytest.mark.without("restarts", why="each leader goes before it has written the rollback")
def test_of_a_mixed_group_only_members_with_a_controller_are_evicted():
    harness = Harness()
    harness.refuse_bind = never("a-2")
    harness.add(node("n1", cpu=3), group("a", min_member=3))
    harness.wait(25, pod("a-0", owner=SET), pod("a-1"), pod("a-2", owner=SET))
    assert harness.evicted == ["default/a-0"]
    harness.end_terminating()
    harness.wait(5)
    assert harness.bound() == ["default/a-1"]
    assert harness.condition("default/a", "Degraded").reason == "PartlyBound"


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has the whole time to complete a part")
def test_a_job_that_would_count_the_eviction_as_a_failure_keeps_its_members():
    harness = half_bound(owner=JOB)
    harness.jobs["job-a"] = OwnerSeen("job-a", why="the Job has no podFailurePolicy that ignores it")
    harness.wait(8)
    assert harness.evicted == []
    assert "the Job has no podFailurePolicy that ignores it" in harness.condition("default/a", "Degraded").message
    assert sum(isinstance(effect, LookUpOwner) for effect in harness.effects) == 1, "one question for one Job"


@pytest.mark.parametrize("api_group", ["batch", "batch.volcano.sh"])
def test_a_job_that_ignores_disruptions_is_undone_and_one_of_another_api_group_unasked(api_group):
    harness = half_bound(owner=replace(JOB, api_group=api_group))
    harness.jobs["job-a"] = OwnerSeen("job-a")
    harness.wait(15)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]
    assert any(isinstance(effect, LookUpOwner) for effect in harness.effects) is (api_group == "batch")


@pytest.mark.without("restarts", "standbys", why="a new leader has the whole time to complete a part")
def test_a_question_about_a_job_that_is_never_answered_is_asked_again():
    harness = half_bound(owner=JOB)
    harness.jobs["job-a"] = None
    harness.wait(19)
    assert sum(isinstance(effect, LookUpOwner) for effect in harness.effects) == 1
    harness.jobs["job-a"] = OwnerSeen("job-a")
    harness.wait(2)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


@pytest.mark.parametrize("why", [Spared.BUDGET, Spared.FORBIDDEN])
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has the whole time to complete a part")
def test_an_eviction_that_a_disruption_budget_or_the_server_forbids_is_tried_again_and_told(why):
    harness = half_bound()
    harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, why, "the budget b forbids it")
    harness.wait(8)
    degraded = harness.condition("default/a", "Degraded")
    assert (degraded.status, degraded.reason) == (True, "EvictionRefused")
    assert "the budget b forbids it" in degraded.message
    tries = sum(isinstance(effect, EvictPod) for effect in harness.effects)
    assert tries > 2
    harness.refuse_eviction = lambda _: None
    harness.wait(60)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has the whole time to complete a part")
def test_retries_of_an_eviction_come_ever_more_slowly_and_as_the_server_asks():
    harness = half_bound()
    harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.UNAVAILABLE, "busy", 7.0)
    harness.wait(25)
    times = [
        now
        for _, now, effects in harness.history
        for effect in effects
        if isinstance(effect, EvictPod) and effect.name == "a-0"
    ]
    assert [later - earlier for earlier, later in pairwise(times)] == [7.0, 7.0]


@pytest.mark.without("leaderless", why="a new leader has the whole time to complete a part")
def test_a_group_whose_evictions_are_refused_becomes_whole_instead_when_that_is_possible():
    harness = half_bound()
    harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.BUDGET, "the budget forbids it")
    harness.wait(15)
    harness.refuse_bind = lambda _: None
    harness.wait(300)
    assert len(harness.bound()) == 3
    assert harness.evicted == []
    assert harness.status("default/a").phase == "Scheduled"


@pytest.mark.without("restarts", "standbys", why="counts what one leader does")
def test_a_binding_still_on_its_way_is_awaited_before_anything_is_evicted():
    harness = Harness()
    harness.withhold = lambda effect: effect.name == "a-2"
    harness.wait(19, node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    assert harness.gang("default/a").operations.rollback is None
    harness.wait(2)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]
    assert sum(isinstance(effect, BindPod) and effect.name == "a-2" for effect in harness.effects) == 1


@pytest.mark.without("leaderless", why="a new leader has the whole time to complete a part")
def test_a_binding_that_arrives_at_the_last_moment_completes_the_group():
    harness = half_bound()
    gang = harness.gang("default/a")
    harness.wait(2)
    harness.lose_answer = lambda effect: effect.name == "a-2"
    harness.refuse_bind = lambda _: None
    harness.wait(10)
    assert len(harness.bound()) == 3
    assert gang.record.scheduled_at
    assert harness.evicted == []


def test_a_member_bound_late_while_the_others_are_evicted_is_evicted_too():
    harness = half_bound()
    harness.wait(6)
    assert len(harness.evicted) == 2
    late = harness.pod("default/a-2")
    harness.wait(25, replace(late, node="n1"))
    assert "default/a-2" in harness.evicted


@pytest.mark.without("restarts", why="a new leader has the whole time to complete a part")
def test_an_incomplete_group_of_which_a_part_is_bound_is_undone():
    harness = half_bound()
    harness.delete("default/a-2")
    harness.wait(10)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


def test_after_a_restart_a_group_found_partly_bound_is_completed_first_or_undone():
    harness = half_bound()
    harness.restart()
    harness.wait(9)
    assert harness.evicted == [], "half of the time is left to complete it"
    harness.wait(3)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


@pytest.mark.without("leaderless", why="a new leader has the whole time to complete a part")
def test_after_a_restart_the_time_counts_on_from_the_first_binding():
    harness = Harness()
    harness.refuse_bind = never("a-2")
    harness.wait(4, node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.restart()
    harness.wait(15)
    assert harness.evicted == []
    harness.wait(2)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


def test_after_a_restart_without_a_podgroup_a_quorum_that_was_begun_is_undone_but_a_loss_is_not():
    said = Declaration("a", min_member=3)
    for waits_since, undone in [(START - 100, True), (START - 10, False)]:
        harness = Harness.of(node("n1", cpu=2))
        for name in ("a-0", "a-1"):
            bound = pod(name, declaration=said, owner=SET, node="n1", created=START - 100)
            harness.add(replace(bound, bound_at=START - 20))
        harness.add(pod("a-2", declaration=said, owner=SET, created=waits_since))
        harness.restart()
        harness.wait(100)
        assert bool(harness.evicted) is undone


@pytest.mark.without("restarts", "standbys", why="a new leader has the whole time to complete a part")
def test_members_bound_by_somebody_else_without_the_rest_are_undone():
    harness = Harness.settled(node("n1", cpu=2), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.change("default/a-0", node="n1")
    harness.wait(15)
    assert harness.evicted == []
    harness.wait(10)
    assert harness.evicted == ["default/a-0"]


@pytest.mark.without("leaderless", why="a new leader has the whole time to complete a part")
def test_a_podgroup_that_is_deleted_in_mid_flight_has_its_transaction_finished():
    harness = half_bound()
    harness.delete_group("default/a")
    harness.add(pod("a-3", owner=SET))
    harness.delete("default/a-2")
    harness.wait(4)
    assert len(harness.bound()) == 3
    harness.wait(300, pod("a-4", owner=SET))
    assert len(harness.bound()) == 3, "what was not part of it waits"
    assert harness.evicted == []


@pytest.mark.without("restarts", "standbys", why="a new leader has the whole time to complete a part")
def test_a_podgroup_that_is_deleted_in_mid_flight_and_cannot_be_finished_is_undone():
    harness = half_bound()
    harness.delete_group("default/a")
    harness.wait(10)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.without("restarts", "standbys", "leaderless", why="the story has its own changes of leader")
def test_a_quorum_whose_podgroup_is_made_anew_meanwhile_is_undone_by_a_new_leader_too(*, written: bool):
    """Regression: its bound members are older than the PodGroup, and stayed bound for ever."""
    harness = half_bound()
    harness.delete_group("default/a")
    harness.wait(2)
    if not written:
        harness.refuse_status = lambda effect: StatusRefused(effect.key, stale=False)
    harness.wait(2, group("a", min_member=3, uid="again", created=harness.server_time))
    harness.restart()
    harness.wait(1)
    harness.restart()
    harness.wait(25)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


@pytest.mark.without("restarts", "standbys", "leaderless", why="the story has its own changes of leader")
def test_a_part_that_a_new_leader_finds_without_a_podgroup_is_undone_by_the_next_one_with_it():
    """Regression: nothing said that a quorum was under way, and its bound members stayed bound for ever."""
    harness = half_bound()
    harness.delete_group("default/a")
    harness.restart()
    harness.wait(2)
    harness.wait(2, group("a", min_member=3, uid="again", created=harness.server_time))
    harness.restart()
    harness.wait(25)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


@pytest.mark.without("restarts", "standbys", "leaderless", why="the story has its own change of leader")
def test_what_was_whole_before_its_podgroup_was_made_anew_is_not_undone_with_a_part_of_another_quorum():
    """Two ran under the former PodGroup; the new one wants four, of which the last cannot be bound."""
    harness = Harness.waited(15, node("n1", cpu=4), group("a", min_member=2), *pods("a", 2, owner=SET))
    harness.delete_group("default/a")
    harness.refuse_bind = never("a-3")
    harness.wait(5, group("a", min_member=4, uid="again", created=harness.server_time))
    harness.wait(5, *pods("a", 2, first=2, owner=SET, created=harness.server_time))
    assert len(harness.bound()) == 3
    harness.restart()
    harness.wait(25)
    assert harness.evicted == ["default/a-2"]


@pytest.mark.without("restarts", "standbys", "leaderless", why="the story has its own change of leader")
def test_a_whole_group_whose_podgroup_is_made_anew_with_a_larger_minimum_keeps_what_runs():
    """Regression: a member above the minimum had waited since before, so a new leader took the others for a part.

    The former leader goes before it has written anything about the new PodGroup.
    """
    harness = Harness.waited(40, node("n1", cpu=3), group("a", min_member=3), *pods("a", 4, owner=SET))
    assert len(harness.bound()) == 3
    harness.delete_group("default/a")
    harness.add(group("a", min_member=4, uid="again", created=harness.server_time))
    harness.restart()
    harness.wait(60)
    assert harness.evicted == []


@pytest.mark.without("restarts", "standbys", "leaderless", why="the story has its own change of leader")
def test_what_ran_before_a_quorum_is_not_undone_with_it_if_the_podgroup_is_made_anew_while_its_bindings_are_sent():
    """Regression: the waiting members were as old as those that ran, and counted as bound since then."""
    harness = Harness.of(node("n1", cpu=2), group("a", min_member=2))
    harness.wait(15, *pods("a", 4, owner=SET, created=START))
    assert len(harness.bound()) == 2
    harness.delete_group("default/a")
    harness.wait(60, group("a", min_member=4, uid="again", created=harness.server_time))
    harness.refuse_bind = never("a-3")
    harness.withhold = lambda effect: effect.name == "a-2"
    harness.wait(2, node("n2", cpu=2))
    harness.delete_group("default/a")
    harness.wait(2, group("a", min_member=4, uid="third", created=harness.server_time))
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.wait(2)
    assert len(harness.bound()) == 3
    harness.restart()
    harness.wait(25)
    assert harness.evicted == ["default/a-2"]


def running(on_degraded: OnDegraded = OnDegraded.RESTART) -> Harness:
    harness = Harness.of(node("n1", cpu=3), group("a", min_member=3, on_degraded=on_degraded))
    harness.settle(*pods("a", 3, owner=SET))
    harness.run_pods()
    harness.wait(2)
    assert harness.status("default/a").phase == "Running"
    return harness


def test_under_restart_a_lost_member_takes_all_others_with_it_after_two_seconds():
    harness = running()
    harness.delete("default/a-1")
    harness.wait(1.9)
    assert harness.evicted == []
    harness.wait(0.2)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-2"]
    assert harness.condition("default/a", "Degraded").reason == "Restarting"


def test_under_restart_a_loss_that_is_made_good_at_once_restarts_nothing():
    harness = running()
    harness.delete("default/a-1")
    harness.wait(1)
    harness.wait(60, pod("a-1", owner=SET, uid="again"))
    assert harness.evicted == []
    assert len(harness.bound()) == 3


def test_a_restarted_group_is_bound_again_whole_or_not_at_all():
    harness = running()
    harness.delete("default/a-1")
    harness.wait(3)
    harness.end_terminating()
    harness.wait(30, *(pod(f"a-{number}", owner=SET, uid=f"again-{number}") for number in range(2)))
    assert harness.bound() == []
    harness.wait(30, pod("a-2", owner=SET, uid="again-2"))
    assert len(harness.bound()) == 3
    assert harness.status("default/a").attempts == 1


def test_no_replacement_is_bound_while_the_old_members_are_being_evicted():
    harness = running()
    harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.BUDGET, "the budget forbids it")
    harness.delete("default/a-1")
    harness.wait(3)
    harness.wait(60, pod("a-1", owner=SET, uid="again"))
    assert len(harness.bound()) == 2
    assert harness.condition("default/a", "Degraded").reason == "EvictionRefused"
    harness.refuse_eviction = lambda _: None
    harness.wait(30)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-2"]


def test_ignore_evicts_nothing():
    harness = running()
    harness.change_spec("default/a", on_degraded=OnDegraded.IGNORE)
    harness.delete("default/a-1")
    harness.wait(60)
    assert harness.evicted == []


def test_a_restart_goes_on_after_the_operator_has_been_restarted():
    harness = running()
    harness.refuse_eviction = lambda effect: (
        EvictionRefused(effect.uid, Spared.BUDGET, "no") if effect.name == "a-2" else None
    )
    harness.delete("default/a-1")
    harness.wait(3)
    assert harness.evicted == ["default/a-0"]
    harness.refuse_eviction = lambda _: None
    harness.end_terminating()
    harness.restart()
    harness.wait(3)
    assert harness.evicted == ["default/a-0", "default/a-2"]


@pytest.mark.parametrize("kind", ["undo", "restart"])
def test_nothing_is_evicted_twice_while_it_terminates(kind):
    harness = half_bound() if kind == "undo" else running()
    if kind == "restart":
        harness.delete("default/a-1")
    harness.wait(60)
    sent = [effect.uid for effect in harness.effects if isinstance(effect, EvictPod)]
    assert len(sent) == len(set(sent)) == 2
