"""A Job with more completions than pods at a time: while it goes on, its gang is whole or its replacements go first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.results import BindRefused, OwnerSeen, Refused
from gangsched.core.objects.workload import Workload
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.workloads.workload_kind import Mark
from tests.builders import group, node, pod, pods
from tests.harness import Harness
from tests.served import KINDS, served_workload
from tests.trees import inner, leaf

COMPLETIONS, PARALLELISM = 10, 5
UID = "uid-train"

Declare = Callable[[Harness], Declaration | None]


def by_nobody(harness: Harness) -> None:
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})


def by_pod_group(harness: Harness) -> Declaration:
    harness.add(group("default/t", min_member=PARALLELISM))
    return Declaration("t")


def by_size(size: int) -> Declare:
    """By a PodGroup with this minimum."""

    def declare(harness: Harness) -> Declaration:
        harness.add(group("default/t", min_member=size))
        return Declaration("t")

    return declare


def by_annotations(_: Harness) -> Declaration:
    return Declaration("t", min_member=PARALLELISM)


def by_tree(harness: Harness) -> Declaration | None:
    harness.add(inner("root", least=1), leaf("t", "root", least=PARALLELISM))
    return DEFAULT.declaration({}, {}, scheduling_group="t")


class Job:
    """The Job `train` as its controller sees it, in a cluster with room for one wave."""

    def __init__(self, declare: Declare, *, uid: str = UID) -> None:
        self.harness = Harness()
        self.harness.add(node(cpu=str(PARALLELISM)))
        self.said = declare(self.harness)
        self.uid = uid
        self.made = self.counted = 0
        self.ended: dict[str, str] = {}
        self.idle: dict[str, Any] = {}
        self.tell()
        self.replace()

    def tell(self) -> None:
        """The watch shows the current Job."""
        self.harness.add(self.object())

    def object(self) -> ForeignGroup:
        conditions = [{"type": name, "status": status} for name, status in self.ended.items()]
        spec = {"parallelism": PARALLELISM, "completions": COMPLETIONS, **self.idle}
        status = {"succeeded": self.counted, "conditions": conditions}
        return served_workload("job", "train", spec, status=status, uid=self.uid)

    @property
    def members(self) -> list[Pod]:
        return [each for each in self.harness.pods.values() if each.name.startswith("train-")]

    @property
    def alive(self) -> list[Pod]:
        return [each for each in self.members if not each.terminal]

    @property
    def bound(self) -> int:
        return sum(bool(each.node) for each in self.alive)

    @property
    def succeeded(self) -> int:
        return sum(each.phase is PodPhase.SUCCEEDED for each in self.members)

    def replace(self) -> None:
        """Create pods until as many are alive as can run at a time, or as completions remain."""
        while len(self.alive) < min(PARALLELISM, COMPLETIONS - self.succeeded):
            workload = Workload("job", "train", None, UID) if self.said else KINDS["job"].workload(Mark("train", UID))
            owner = Owner("Job", "train", UID, "batch")
            fields: dict[str, Any] = {"declaration": self.said} if self.said else {"group": ""}
            self.harness.add(
                pod(f"train-{self.made}", owner=owner, workload=workload, created=self.harness.now, **fields)
            )
            self.made += 1

    def succeed(self, number: int = 1) -> None:
        """The oldest members succeed."""
        for each in self.alive[:number]:
            self.harness.change(f"default/{each.name}", phase=PodPhase.SUCCEEDED)

    def count(self) -> None:
        """The Job counts the pods that have succeeded."""
        self.counted = self.succeeded
        if self.counted == COMPLETIONS:
            self.ended["Complete"] = "True"
        self.tell()


DECLARED = pytest.mark.parametrize("declare", [by_nobody, by_pod_group, by_annotations, by_tree])


@DECLARED
def test_at_each_of_ten_completions_the_replacement_goes_before_a_group_that_waits(declare: Declare) -> None:
    """A waiting group of 2 needs no more than each completion frees, so it would be bound at once without this rule."""
    job = Job(declare)
    job.harness.settle()
    job.harness.settle(group("default/b", min_member=2), *pods("b", 2, cpu="500m"))
    seen = []
    for _ in range(COMPLETIONS):
        job.succeed()
        job.replace()
        job.harness.settle()
        job.count()
        job.harness.settle()
        seen.append((job.bound, len(job.harness.bound("default/b-"))))
    assert seen == [(5, 0)] * 5 + [(4, 2), (3, 2), (2, 2), (1, 2), (0, 2)]


def phase(job: Job) -> str:
    return str(job.harness.status("default/t").phase)


def minimum(job: Job) -> int:
    return job.harness.status("default/t").minimum


def test_the_minimum_is_what_the_job_still_owes_once_that_is_less() -> None:
    job = Job(by_pod_group)
    job.harness.settle()
    job.harness.run_pods()
    seen = []
    for _ in range(COMPLETIONS - 1):
        job.succeed()
        job.replace()
        job.harness.settle()
        job.harness.run_pods()
        job.count()
        job.harness.wait(5)
        seen.append((minimum(job), phase(job)))
    assert seen == [(number, "Running") for number in (5, 5, 5, 5, 5, 4, 3, 2, 1)]


@DECLARED
def test_a_wave_of_which_all_succeed_at_once_is_followed_by_a_whole_one(declare: Declare) -> None:
    """There is room for four: the second wave waits as a whole until there is room for all of it."""
    job = Job(declare)
    job.harness.settle()
    job.succeed(PARALLELISM)
    job.harness.settle()
    job.harness.add(pod("other", group="", node="n1", uid="other"))
    job.replace()
    job.count()
    job.harness.wait(5)
    before = job.bound
    job.harness.delete("default/other")
    job.harness.wait(5)
    assert (before, job.bound) == (0, PARALLELISM)


@DECLARED
def test_a_last_wave_that_is_smaller_than_the_minimum_is_bound(declare: Declare) -> None:
    """Regression: below a tree of groups it waited for ever."""
    job = Job(declare)
    job.harness.settle()
    for number in (3, PARALLELISM):
        job.succeed(number)
        job.harness.settle()
        job.replace()
        job.count()
        job.harness.wait(5)
    assert (len(job.alive), job.bound) == (2, 2)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("at_once", [1, PARALLELISM])
def test_the_run_ends_well_when_the_job_is_complete(at_once: int, *, counted: bool) -> None:
    """This holds even while the Job has not counted its last pods yet."""
    job = Job(by_pod_group)
    job.harness.settle()
    while job.succeeded < COMPLETIONS:
        job.succeed(at_once)
        job.replace()
        job.harness.settle()
        if counted:
            job.count()
            job.harness.settle()
    job.harness.wait(5)
    assert phase(job) == "Succeeded"


def test_the_run_ends_badly_when_the_job_fails_though_as_many_as_the_minimum_have_succeeded() -> None:
    job = Job(by_pod_group)
    job.harness.settle()
    for _ in range(PARALLELISM + 1):
        job.succeed()
        job.replace()
        job.harness.settle()
    job.count()
    job.ended["FailureTarget"] = "True"
    job.tell()
    job.harness.settle()
    job.harness.run_pods(PodPhase.FAILED, prefix="default/train-")
    job.harness.wait(5)
    assert phase(job) == "Failed"
    assert job.harness.condition("default/t").message == f"The run ended with {PARALLELISM + 1} members succeeded."


def test_a_wave_that_fails_as_a_whole_ends_the_run_badly_once_the_job_gives_up() -> None:
    """Until it gives up, the Job may recreate its pods, within its backoffLimit."""
    job = Job(by_pod_group)
    job.harness.settle()
    job.harness.run_pods(PodPhase.FAILED, prefix="default/train-")
    job.harness.wait(5)
    before = phase(job)
    job.ended["Failed"] = "True"
    job.tell()
    job.harness.wait(5)
    assert (before, phase(job)) == ("Pending", "Failed")


def test_the_run_ends_well_when_a_success_policy_ends_the_job() -> None:
    job = Job(by_pod_group)
    job.harness.settle()
    job.succeed(2)
    job.harness.settle()
    job.ended["SuccessCriteriaMet"] = "True"
    job.tell()
    job.harness.settle()
    job.harness.run_pods(PodPhase.FAILED, prefix="default/train-")
    job.harness.wait(5)
    assert phase(job) == "Succeeded"


@pytest.mark.parametrize("other", ["another Job of that name", "of no Job"])
def test_members_that_do_not_all_belong_to_the_job_have_no_waves(other: str) -> None:
    """Members that have succeeded then count, as in any group."""
    job = Job(by_pod_group, uid="another" if other == "another Job of that name" else UID)
    job.harness.add(node("n2", cpu="1"))
    if other == "of no Job":
        job.harness.add(pod("side", group="t"))
    job.harness.settle()
    job.succeed(2)
    job.harness.wait(5)
    assert phase(job) == "Scheduled"


def test_a_role_to_which_no_pod_of_the_job_belongs_is_not_left_out() -> None:
    """The Job still owes two completions, and one member of the role `lead` is missing."""
    job = Job(by_roles)
    job.made = COMPLETIONS - 2
    job.counted = COMPLETIONS - 2
    job.tell()
    job.harness.settle()
    assert job.bound == 0


def by_roles(harness: Harness) -> Declaration:
    roles = (Role("work", min_member=2), Role("lead", min_member=1))
    harness.add(group("default/t", min_member=3, roles=roles))
    return Declaration("t", role="work")


def test_a_group_of_two_jobs_waits_for_both_though_one_alone_comes_in_waves():
    """After a suspension the pods of one Job come first; no more than 3 of them are alive at a time."""
    harness = Harness.of(node(cpu="4"), group("a", min_member=4))
    specs = {"w": {"parallelism": 3, "completions": 4}, "l": {"parallelism": 1, "completions": 1}}

    def show(name: str, *, suspend: bool = False, succeeded: int = 0) -> None:
        status = {"succeeded": succeeded}
        harness.add(served_workload("job", name, {**specs[name], "suspend": suspend}, status=status))

    def make(job: str, *numbers: int) -> None:
        for number in numbers:
            workload = Workload("job", job, None, f"uid-{job}")
            harness.add(pod(f"{job}-{number}", workload=workload, declaration=Declaration("a"), created=harness.now))

    show("w")
    show("l")
    make("w", 0, 1, 2)
    make("l", 0)
    harness.wait(2)
    harness.run_pods()
    harness.change("default/w-0", phase=PodPhase.SUCCEEDED)
    for name, succeeded in (("w", 1), ("l", 0)):
        show(name, suspend=True, succeeded=succeeded)
    harness.delete(*(f"default/{each.name}" for each in list(harness.pods.values()) if not each.terminal))
    harness.wait(40)
    harness.wait(1, group("x", min_member=1), *pods("x", 1, cpu="1"))
    show("w", succeeded=1)
    make("w", 4, 5, 6)
    harness.wait(1)
    show("l")
    make("l", 1)
    harness.wait(5)
    before = len(harness.bound("default/w-")) + len(harness.bound("default/l-"))
    harness.change("default/x-0", phase=PodPhase.SUCCEEDED)
    harness.wait(2)
    after = len(harness.bound("default/w-")) + len(harness.bound("default/l-"))
    assert (before, after) == (0, 4)


def bound_but_for_one(
    declare: Declare, size: int, spec: dict[str, Any], why: Refused, owner_seen: OwnerSeen
) -> Harness:
    """A Job whose pods come at once, and the last of which the API server refuses to bind, on the node n2."""
    harness = Harness.of(node("n1", cpu=str(size - 1)), node("n2", cpu="1"))
    harness.jobs[UID] = owner_seen
    said, owner = declare(harness), Owner("Job", "train", UID, "batch")
    workload = Workload("job", "train", None, UID) if said else KINDS["job"].workload(Mark("train", UID))
    fields: dict[str, Any] = {"declaration": said} if said else {"group": ""}
    harness.add(job_with(spec, active=size))
    harness.add(*(pod(f"train-{at}", owner=owner, workload=workload, **fields) for at in range(size)))
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, why, "no") if effect.node == "n2" else None
    )
    harness.step()
    return harness


def job_with(spec: dict[str, Any], **status: int) -> ForeignGroup:
    return served_workload("job", "train", spec, status=status, uid=UID)


@pytest.mark.without("disorder", why="two are bound before the node is gone")
@pytest.mark.parametrize("completions", [3, None])
@pytest.mark.parametrize("declare", [by_nobody, by_size(3)], ids=["undeclared", "PodGroup"])
def test_what_has_succeeded_before_the_gang_was_whole_is_not_waited_for_again(
    declare: Declare, completions: int | None
) -> None:
    """Regression: the last pod waited for two more members, which the Job does not create again.

    The node of its binding was gone, and the Job would have counted the eviction of the other two as failures.
    """
    spec = {"parallelism": 3} | ({"completions": completions} if completions else {})
    counted = OwnerSeen(UID, why="the Job has no podFailurePolicy that ignores DisruptionTarget")
    harness = bound_but_for_one(declare, 3, spec, Refused.DENIED, counted)
    harness.delete_node("n2")
    harness.wait(120)
    early = [each.name for each in harness.pods.values() if each.node]
    assert (len(early), harness.evicted) == (2, [])
    for name in early:
        harness.change(f"default/{name}", phase=PodPhase.SUCCEEDED)
    harness.wait(2)
    harness.wait(60, job_with(spec, active=1, succeeded=2))
    assert all(each.node for each in harness.pods.values())


@pytest.mark.without("disorder", why="three are bound before the last one")
@pytest.mark.parametrize("declare", [by_nobody, by_size(4)], ids=["undeclared", "PodGroup"])
def test_a_success_while_the_rest_of_the_quorum_is_being_bound_does_not_make_it_whole(declare: Declare) -> None:
    spec = {"parallelism": 4, "completions": 4}
    harness = bound_but_for_one(declare, 4, spec, Refused.UNAVAILABLE, OwnerSeen(UID))
    harness.wait(3)
    early = [each.name for each in harness.pods.values() if each.node]
    assert len(early) == 3
    harness.change(f"default/{early[0]}", phase=PodPhase.SUCCEEDED)
    harness.wait(1)
    (gang,) = (each for key, each in harness.machine.gangs.items() if not key.pod_uid)
    assert not gang.record.scheduled_at
