"""A JobSet with a Job of more completions than pods at a time: its gang is whole, or its replacements go first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.workload import Workload
from gangsched.kube.workloads.workload_kind import Mark
from tests.builders import group, node, pod, pods
from tests.harness import Harness
from tests.served import KINDS, served_workload

JOBS = {"train-lead-0": ("lead", 1, 1), "train-work-0": ("work", 2, 4), "train-work-1": ("work", 2, 4)}
"""Role, number of pods at a time and completions of each Job."""
WHOLE, OWED = 5, 9

Declare = Callable[[Harness], Declaration | None]


def by_nobody(harness: Harness) -> None:
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})


def by_pod_group(harness: Harness) -> Declaration:
    harness.add(group("default/t", min_member=WHOLE))
    return Declaration("t")


class JobSet:
    """The JobSet `train` as its controllers see it, in a cluster with room for the pods that it runs at a time."""

    def __init__(self, declare: Declare) -> None:
        self.harness = Harness()
        self.harness.add(node(cpu=str(WHOLE)))
        self.said = declare(self.harness)
        self.ended: list[str] = []
        self.made = dict.fromkeys(JOBS, 0)
        self.counted = dict.fromkeys(JOBS, 0)
        self.generation = 0
        self.tell()
        self.replace()

    def tell(self) -> None:
        """The watches show the current JobSet and its Jobs."""
        work = {"parallelism": 2, "completions": 4}
        jobs = [
            {"name": "lead", "replicas": 1, "template": {"spec": {"parallelism": 1, "completions": 1}}},
            {"name": "work", "replicas": 2, "template": {"spec": work}},
        ]
        status = {"conditions": [{"type": each, "status": "True"} for each in self.ended]}
        self.harness.add(served_workload("jobset", "train", {"replicatedJobs": jobs}, status=status))
        for name, (_, parallelism, completions) in JOBS.items():
            complete = [{"type": "Complete", "status": "True"}] if self.counted[name] == completions else []
            spec = {"parallelism": parallelism, "completions": completions}
            counted = {"succeeded": self.counted[name], "conditions": complete}
            self.harness.add(served_workload("job", name, spec, status=counted, uid=self.uid(name)))

    def uid(self, job: str) -> str:
        return f"{job}-{self.generation}"

    def of(self, job: str, *, alive: bool = True) -> list[Pod]:
        """The Job's live pods, or with `alive=False` those that have ended."""
        mine = [each for each in self.harness.pods.values() if each.owner and each.owner.uid == self.uid(job)]
        return [each for each in mine if each.terminal != alive]

    @property
    def bound(self) -> int:
        return sum(bool(each.node) for job in JOBS for each in self.of(job))

    @property
    def phase(self) -> str:
        return str(self.harness.status("default/t").phase)

    def replace(self) -> None:
        """The Jobs create pods until as many are alive as can run at a time, or as completions remain."""
        for name, (role, parallelism, completions) in JOBS.items():
            owed = completions - max(self.counted[name], len(self.of(name, alive=False)))
            while len(self.of(name)) < min(parallelism, owed):
                mark = Mark("train", "uid-train", role=role)
                workload = (
                    Workload("jobset", "train", None, "uid-train") if self.said else KINDS["jobset"].workload(mark)
                )
                fields: dict[str, Any] = {"declaration": self.said} if self.said else {"group": ""}
                owner = Owner("Job", name, self.uid(name), "batch")
                place = f"train-{name}-{self.generation}-{self.made[name]}"
                self.made[name] += 1
                self.harness.add(pod(place, owner=owner, workload=workload, created=self.harness.now, **fields))

    def succeed(self, job: str, number: int = 1) -> None:
        for each in self.of(job)[:number]:
            self.harness.change(f"default/{each.name}", phase=PodPhase.SUCCEEDED)

    def count(self) -> None:
        self.counted = {name: max(self.counted[name], len(self.of(name, alive=False))) for name in JOBS}
        self.tell()


DECLARED = pytest.mark.parametrize("declare", [by_nobody, by_pod_group])
ORDER = ["train-work-0"] * 4 + ["train-lead-0"] + ["train-work-1"] * 4
LEFT = [5, 5, 4, 3, 2, 2, 2, 1, 0]
"""Number of live pods after each completion in this order: the first Job makes two more pods, then none; and so on."""


@DECLARED
def test_at_each_completion_the_replacement_goes_before_a_group_that_waits(declare: Declare) -> None:
    """A waiting group of 2 needs no more than each completion frees, so it would be bound at once without this rule."""
    train = JobSet(declare)
    train.harness.settle()
    train.harness.settle(group("default/b", min_member=2), *pods("b", 2, cpu="500m"))
    seen = []
    for job in ORDER:
        train.succeed(job)
        train.replace()
        train.harness.settle()
        train.count()
        train.harness.settle()
        seen.append((train.bound, len(train.harness.bound("default/b-"))))
    assert [bound for bound, _ in seen] == LEFT
    assert [rival for _, rival in seen] == [0, 0, *[2] * 7]


def test_the_minimum_is_what_its_jobs_still_run_and_the_run_ends_with_the_jobset() -> None:
    train = JobSet(by_pod_group)
    train.harness.settle()
    train.harness.run_pods()
    seen = []
    for job in ORDER[:-1]:
        train.succeed(job)
        train.replace()
        train.harness.settle()
        train.harness.run_pods()
        train.count()
        train.harness.wait(5)
        seen.append((train.harness.status("default/t").minimum, train.phase))
    train.succeed(ORDER[-1])
    train.count()
    train.harness.settle()
    train.ended = ["Completed"]
    train.tell()
    train.harness.wait(5)
    assert seen == [(number, "Running") for number in LEFT[:-1]]
    assert train.phase == "Succeeded"


def test_what_a_job_has_counted_counts_also_once_the_pods_are_gone() -> None:
    """The watch of Jobs can be behind the watch of pods."""
    train = JobSet(by_pod_group)
    train.harness.settle()
    train.harness.run_pods()
    for _ in range(2):
        train.succeed("train-work-0", 2)
        train.harness.settle()
        gone = train.of("train-work-0", alive=False)
        train.counted["train-work-0"] += len(gone)
        train.harness.delete(*(f"default/{each.name}" for each in gone))
        train.harness.settle()
        train.tell()
        train.replace()
        train.harness.settle()
        train.harness.run_pods()
    train.harness.wait(5)
    assert (train.harness.status("default/t").minimum, train.phase) == (3, "Running")


def test_jobs_that_the_jobset_makes_again_owe_all_of_their_completions() -> None:
    """The failure policy restarts the JobSet after three completions; the succeeded pods still exist."""
    train = JobSet(by_pod_group)
    train.harness.settle()
    train.succeed("train-work-0", 2)
    train.replace()
    train.harness.settle()
    train.succeed("train-work-0", 1)
    train.harness.settle()
    for each in [each for job in JOBS for each in train.of(job)]:
        train.harness.delete(f"default/{each.name}")
    train.generation, train.counted = 1, dict.fromkeys(JOBS, 0)
    train.tell()
    train.replace()
    train.harness.wait(5)
    assert (train.bound, train.harness.status("default/t").minimum) == (WHOLE, WHOLE)


@DECLARED
@pytest.mark.parametrize("gone", [True, False])
def test_a_whole_wave_is_followed_by_the_next_one_without_the_roles_that_are_done(
    declare: Declare, *, gone: bool
) -> None:
    train = JobSet(declare)
    train.harness.settle()
    train.succeed("train-lead-0")
    train.harness.settle()
    if gone:
        train.count()
        train.harness.delete(*(f"default/{each.name}" for each in train.of("train-lead-0", alive=False)))
        train.harness.settle()
    train.succeed("train-work-0", 2)
    train.succeed("train-work-1", 2)
    train.harness.settle()
    train.replace()
    train.count()
    train.harness.wait(5)
    assert train.bound == 4


def test_the_run_ends_well_when_a_success_policy_ends_the_jobset() -> None:
    train = JobSet(by_pod_group)
    train.harness.settle()
    train.succeed("train-lead-0")
    train.ended = ["Completed"]
    train.tell()
    train.harness.settle()
    train.harness.run_pods(PodPhase.FAILED, prefix="default/train-")
    train.harness.wait(5)
    assert train.phase == "Succeeded"


def half_done() -> JobSet:
    """The first Job with waves is complete and has been counted."""
    train = JobSet(by_pod_group)
    train.harness.settle()
    train.harness.run_pods()
    for _ in range(2):
        train.succeed("train-work-0", 2)
        train.replace()
        train.harness.settle()
        train.harness.run_pods()
        train.count()
        train.harness.wait(1)
    return train


def make_again(train: JobSet, *, ended: bool) -> None:
    """The failure policy recreates all Jobs; their pods are seen first. With `ended`, pods that ended
    earlier remain.
    """
    left = [each for each in train.harness.pods.values() if each.terminal] if ended else []
    gone = [each for each in train.harness.pods.values() if each not in left]
    train.harness.delete(*(f"default/{each.name}" for each in gone))
    train.harness.wait(40)
    train.harness.wait(1, group("x", min_member=1), *pods("x", 1, cpu="2"))
    train.generation, train.counted = 1, dict.fromkeys(JOBS, 0)
    train.replace()
    train.harness.wait(1)


@pytest.mark.without("all", why="the pods of Jobs that are made again are seen before the Jobs")
@pytest.mark.parametrize("jobs", ["of before", "gone"])
@pytest.mark.parametrize("ended", [True, False])
def test_what_jobs_of_before_have_counted_does_not_count_for_those_that_are_made_again(jobs: str, *, ended: bool):
    """There is room for 3 of 5 pods: as many as would be alive if the first Job had nothing left to do."""
    train = half_done()
    if jobs == "gone":
        for name in JOBS:
            train.harness.delete_foreign("job", f"default/{name}")
    make_again(train, ended=ended)
    assert train.bound == 0
    train.tell()
    train.harness.wait(1)
    assert train.bound == 0
    train.harness.change("default/x-0", phase=PodPhase.SUCCEEDED)
    train.harness.wait(2)
    assert train.bound == WHOLE


@pytest.mark.without("all", why="the count is seen after the pods")
def test_a_count_that_a_job_shows_after_its_pods_were_made_counts_at_once():
    """The JobSet was suspended after three completions of a Job, whose pods are gone; it creates one for the last."""
    train = JobSet(by_pod_group)
    train.harness.settle()
    train.harness.run_pods()
    train.succeed("train-work-0", 2)
    train.replace()
    train.harness.settle()
    train.harness.run_pods()
    train.count()
    train.succeed("train-work-0", 1)
    train.harness.delete(*(f"default/{each.name}" for each in list(train.harness.pods.values())))
    train.harness.wait(60)
    train.counted["train-work-0"] = 3
    train.replace()
    train.harness.wait(40)
    before = train.bound
    train.tell()
    train.harness.wait(1)
    assert (before, train.bound) == (0, 4)
