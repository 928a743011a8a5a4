"""A group whose workload is suspended, scaled to 0 or deleted has not failed, because none of its members failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import OnDegraded, TimeoutPolicy
from gangsched.core.objects.results import EvictionRefused, Spared
from gangsched.core.objects.workload import Workload
from tests.builders import group, key, node, pod, pods
from tests.harness import Harness
from tests.served import served_workload

SIZE = 3
NAME, UID = "t", "uid-t"

Json = dict[str, Any]
WANTS: dict[str, Json] = {
    "job": {"parallelism": SIZE, "completions": SIZE},
    "statefulset": {"replicas": SIZE, "podManagementPolicy": "Parallel"},
}
"""The spec of an object of each kind that wants SIZE pods."""
PAUSES: dict[str, tuple[str, Json, str]] = {
    "Job, suspended": ("job", {"suspend": True}, "Job t is suspended: resume it"),
    "StatefulSet": ("statefulset", {"replicas": 0}, "StatefulSet t has 0 replicas: scale it up"),
}
"""Workloads that come to want no pods, and what the status says about it; `tests/kube` has each kind's ways."""


class Story:
    """Group `a`, with a PodGroup written by hand, of a workload with SIZE pods, in a cluster with room for them."""

    def __init__(self, kind: str = "job", *, cpu: int = SIZE, known: bool = True, **spec: Any) -> None:
        self.kind, self.known = kind, known
        self.made = 0
        self.harness = Harness()
        if cpu:
            self.harness.add(node(cpu=str(cpu)))
        self.harness.add(group("a", **{"min_member": SIZE, **spec}))
        self.tell()
        self.make()
        self.harness.wait(2)

    def tell(self, *, status: Json | None = None, deleted: bool = False, **spec: Any) -> None:
        """The watch shows the workload's object."""
        if not self.known:
            return
        leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
        found = served_workload(self.kind, NAME, WANTS[self.kind] | spec, status=status, uid=UID, **leaving)
        self.harness.add(found)

    def make(self, number: int = SIZE) -> None:
        """The controller creates this many pods."""
        for _ in range(number):
            workload = Workload(self.kind, NAME, None, UID)
            self.harness.add(pod(f"a-{self.made}", created=self.harness.now, workload=workload))
            self.made += 1

    @property
    def alive(self) -> list[Pod]:
        return [each for each in self.harness.pods.values() if not each.terminal and each.name.startswith("a-")]

    def end(self, phase: PodPhase, number: int = 1) -> None:
        for each in self.alive[:number]:
            self.harness.change(f"default/{each.name}", phase=phase)
        self.harness.wait(1)

    def drop(self) -> None:
        """The controller deletes the live pods, and they are gone."""
        self.harness.delete(*(f"default/{each.name}" for each in self.alive))
        self.harness.wait(2)

    @property
    def phase(self) -> str:
        return str(self.harness.status("default/a").phase)

    @property
    def message(self) -> str:
        return self.harness.condition("default/a").message

    @property
    def told_failed(self) -> bool:
        return bool(self.harness.events("GangFailed"))


# The states of a group when its workload is suspended: each is a story up to then, with the phase it has reached.


def bound(kind: str) -> Story:
    return Story(kind)


def running(kind: str) -> Story:
    story = Story(kind)
    story.harness.run_pods()
    story.harness.wait(2)
    return story


def waiting(kind: str) -> Story:
    return Story(kind, cpu=0)


def incomplete(kind: str) -> Story:
    return Story(kind, min_member=SIZE + 1)


def timed_out(kind: str) -> Story:
    story = Story(kind, cpu=0, max_schedule_time_s=10.0)
    story.harness.wait(9)
    return story


def failed_by_time_out(kind: str) -> Story:
    story = Story(kind, cpu=0, max_schedule_time_s=10.0, timeout_policy=TimeoutPolicy.FAIL)
    story.harness.wait(10)
    return story


def degraded(kind: str) -> Story:
    story = running(kind)
    story.harness.delete(f"default/{story.alive[0].name}")
    story.harness.wait(5)
    return story


def partly_succeeded(kind: str) -> Story:
    story = running(kind)
    story.end(PodPhase.SUCCEEDED)
    return story


def damaged(kind: str) -> Story:
    """A member has failed, and its controller should replace it."""
    story = running(kind)
    story.end(PodPhase.FAILED)
    story.harness.wait(5)
    return story


STATES: dict[Callable[[str], Story], str] = {
    bound: "Scheduled",
    running: "Running",
    waiting: "Queued",
    incomplete: "Pending",
    timed_out: "TimedOut",
    failed_by_time_out: "Failed",
    degraded: "Degraded",
    partly_succeeded: "Running",
    damaged: "Degraded",
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("order", ["object first", "pods first"])
def test_a_group_of_a_suspended_workload_is_suspended_whatever_it_was(state: Callable[[str], Story], order: str):
    """The watch of pods can be ahead of the watch of the workload."""
    story = state("job")
    before, failed = story.phase, story.told_failed
    if order == "pods first":
        story.drop()
    story.tell(suspend=True)
    story.harness.wait(2)
    story.drop()
    assert (before, story.phase) == (STATES[state], "Suspended")
    assert story.told_failed == (failed or (state is damaged and order == "pods first"))
    assert not story.harness.condition("default/a").status


@pytest.mark.parametrize(("kind", "spec", "said"), PAUSES.values(), ids=PAUSES)
def test_the_condition_names_the_workload_and_once_that_is_resumed_a_new_run_begins(kind: str, spec: Json, said: str):
    story = running(kind)
    began = story.harness.status("default/a").scheduled_time
    story.tell(**spec)
    story.drop()
    assert (story.phase, story.harness.condition("default/a").reason) == ("Suspended", "Suspended")
    assert story.message == f"No member is left, because the {said} to begin the next run."
    [event] = story.harness.events("Suspended")
    assert (event.type, event.note) == ("Normal", story.message)
    story.tell()
    story.harness.wait(2)
    resumed = story.phase
    story.make()
    story.harness.wait(2)
    status = story.harness.status("default/a")
    assert (resumed, story.phase, status.bound, status.attempts) == ("Pending", "Scheduled", SIZE, 1)
    assert status.scheduled_time > began


@pytest.mark.parametrize("state", [timed_out, failed_by_time_out])
def test_the_new_run_knows_nothing_of_time_outs_of_the_last(state: Callable[[str], Story]):
    story = state("job")
    story.tell(suspend=True)
    story.drop()
    story.tell()
    story.make()
    story.harness.wait(2)
    status = story.harness.status("default/a")
    assert (story.phase, status.attempts) == ("Queued", 1)
    assert status.schedule_start_time >= story.harness.now - 2


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("state", [bound, running, partly_succeeded])
def test_a_group_whose_members_are_deleted_is_pending(state: Callable[[str], Story], *, known: bool):
    """The workload is being deleted, or unknown, like a Deployment: no object says that its pods are gone for good."""
    story = state("job")
    if known:
        story.tell(deleted=True)
    else:
        story.harness.delete_foreign("job", "default/t")
    story.harness.wait(1)
    story.drop()
    how = "have ended or were" if state is partly_succeeded else "were"
    said = f"All members {how} deleted, so this run is over: the next one begins with the next member."
    assert (story.phase, story.told_failed) == ("Pending", False)
    assert (story.harness.condition("default/a").reason, story.message) == ("NoMembers", said)


@pytest.mark.parametrize("restart", [False, True])
def test_a_failure_that_was_not_made_good_fails_the_run_whose_other_members_are_deleted(*, restart: bool):
    """A Job that gives up deletes its other pods."""
    story = damaged("job")
    story.harness.delete_foreign("job", "default/t")
    [failed] = [each for each in story.harness.pods.values() if each.phase is PodPhase.FAILED]
    story.harness.delete(f"default/{failed.name}")
    story.harness.wait(1)
    if restart:
        story.harness.restart()
    story.drop()
    assert (story.phase, story.told_failed) == ("Failed", True)
    assert story.message == "The run ended with 0 of 3 members succeeded."


ENDED = {"conditions": [{"type": "Failed", "status": "True"}]}


COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


@pytest.mark.parametrize(("status", "phase"), [(ENDED, "Failed"), (COMPLETE, "Succeeded")])
@pytest.mark.parametrize("order", ["object first", "pods first"])
def test_a_workload_that_has_ended_and_deletes_its_pods_says_how_the_run_went(order: str, status: Json, phase: str):
    """A Job fails at its activeDeadlineSeconds, and its success policy makes it complete: its other pods go."""
    story = running("job")
    story.end(PodPhase.SUCCEEDED)
    if order == "pods first":
        story.drop()
    story.tell(status=status)
    story.harness.wait(2)
    story.drop()
    assert (story.phase, story.told_failed) == (phase, phase == "Failed")


def test_a_workload_that_is_suspended_while_its_quorum_is_bound_holds_nothing():
    """The bindings of two members are in flight when the pods are deleted."""
    story = Story(cpu=0)
    story.harness.withhold = lambda _: True
    story.harness.wait(1, node(cpu=str(SIZE)))
    story.tell(suspend=True)
    story.drop()
    story.harness.add(group("b", min_member=SIZE), *pods("b", SIZE))
    story.harness.withhold = lambda _: False
    story.harness.wait(2)
    assert (story.phase, len(story.harness.bound("default/b-"))) == ("Suspended", SIZE)


def test_the_workload_of_the_last_run_counts_though_pods_of_an_earlier_one_are_left():
    story = running("job")
    story.end(PodPhase.SUCCEEDED, SIZE)
    story.harness.add(served_workload("job", "u", WANTS["job"]))
    story.harness.add(*(pod(f"a-u{number}", workload=Workload("job", "u", None, "uid-u")) for number in range(SIZE)))
    story.harness.wait(2)
    before = story.phase
    story.harness.add(served_workload("job", "u", WANTS["job"] | {"suspend": True}))
    story.drop()
    assert (before, story.phase) == ("Scheduled", "Suspended")
    assert story.message.startswith("No member is left, because the Job u is suspended")


def test_a_group_that_is_gone_is_remembered_of_no_workload():
    def kept() -> list[GroupKey]:
        resting = story.harness.machine._state.surroundings.resting  # noqa: SLF001 - what is kept shows nowhere
        return resting.of("job", key("t"))

    story = running("job")
    story.tell(suspend=True)
    story.drop()
    before = kept()
    story.harness.delete_group("default/a")
    story.harness.wait(2)
    assert (before, kept()) == ([key("a")], [])


@pytest.mark.without("disorder", why="the workload of the last member counts")
def test_a_group_of_two_workloads_is_suspended_with_neither():
    story = Story(cpu=SIZE + 1)
    story.harness.wait(2, pod("a-other", workload=Workload("job", "other", None, "uid-other")))
    story.tell(suspend=True)
    story.drop()
    assert story.phase == "Pending"


def test_a_restart_under_way_ends_with_the_suspension():
    story = Story(on_degraded=OnDegraded.RESTART)
    story.harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.BUDGET, "a budget")
    story.harness.delete(f"default/{story.alive[0].name}")
    story.harness.wait(5)
    before = story.phase
    story.tell(suspend=True)
    story.drop()
    story.harness.wait(60)
    conditions = {each.type for each in story.harness.status("default/a").conditions}
    assert (before, story.phase, conditions) == ("Degraded", "Suspended", {"Scheduled"})


def test_a_group_whose_workload_cannot_be_read_any_more_is_pending_until_it_can():
    story = running("job")
    story.tell(suspend=True)
    story.drop()
    story.harness.hide("job", "no right")
    story.harness.wait(2)
    hidden = story.phase
    story.harness.show("job")
    story.harness.wait(2)
    assert (hidden, story.phase) == ("Pending", "Suspended")


class Rest(Story):
    """A Job with as many completions as pods at a time, one of which has succeeded, and a waiting group."""

    def __init__(self, *, counted: bool = True, cleaned: bool = False) -> None:
        super().__init__("job")
        self.harness.run_pods()
        self.end(PodPhase.SUCCEEDED)
        [done] = [each for each in self.harness.pods.values() if each.terminal]
        self.status: Json = {"succeeded": 1} if counted else {}
        self.tell(status=self.status)
        if cleaned:
            self.harness.delete(f"default/{done.name}")
        self.harness.wait(1)


@pytest.mark.parametrize("known", [{}, {"counted": False}, {"cleaned": True}])
@pytest.mark.parametrize("how", ["suspended", "deleted", "failed"])
def test_a_run_of_which_a_member_has_succeeded_is_followed_by_one_of_the_rest(known: dict[str, bool], how: str):
    """The Job does not recreate a pod that has succeeded, so SIZE members never exist again."""
    story = Rest(**known)
    if how == "suspended":
        story.tell(status=story.status, suspend=True)
        story.harness.wait(1)
    if how == "failed":
        story.end(PodPhase.FAILED, SIZE - 1)
    else:
        story.drop()
    story.tell(status=story.status)
    story.make(1)
    story.harness.wait(2)
    incomplete = len(story.harness.bound())
    story.make(SIZE - 2)
    story.harness.wait(2)
    status = story.harness.status("default/a")
    assert (incomplete, len(story.harness.bound()), story.phase, status.minimum) == (0, SIZE - 1, "Scheduled", SIZE - 1)
    story.harness.run_pods()
    story.end(PodPhase.SUCCEEDED, SIZE)
    assert story.phase == "Succeeded"


@pytest.mark.without("all", why="a process that begins knows of no lost members")
def test_the_rest_has_its_room_before_a_group_that_waits():
    story = Rest()
    story.harness.wait(1, group("b", min_member=SIZE - 1), *pods("b", SIZE - 1))
    names = [f"default/{each.name}" for each in story.alive]
    story.harness.delete(*names)
    story.harness.wait(5)
    story.make(SIZE - 1)
    story.harness.wait(1)
    assert (len(story.harness.bound("default/a-")), story.harness.bound("default/b-")) == (SIZE - 1, [])


@pytest.mark.without("all", why="a process that begins knows of no lost members")
def test_no_room_is_held_for_what_has_succeeded():
    """One of two lost members is recreated; together with the one that succeeded, that makes the minimum."""
    story = Rest()
    story.harness.add(group("b", min_member=2), *pods("b", 2))
    story.harness.delete(f"default/{story.alive[0].name}")
    story.harness.wait(1)
    waiting = story.harness.bound("default/b-")
    story.make(1)
    story.harness.wait(1)
    assert (waiting, len(story.harness.bound("default/a-"))) == ([], SIZE - 1)
    story.harness.wait(1, group("c", min_member=1), *pods("c", 1))
    assert len(story.harness.bound("default/c-")) == 1
