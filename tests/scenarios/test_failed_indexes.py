"""Indexes of a Job that have failed for good (backoffLimitPerIndex) are owed by nobody, in Jobs and in JobSets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.pod import Owner, PodPhase
from gangsched.core.objects.workload import Workload
from gangsched.kube.workloads.workload_kind import Mark
from tests.builders import group, node, pod
from tests.harness import Harness
from tests.served import KINDS, served_workload

SIZE = 4

Declare = Callable[[Harness], Declaration | None]


def by_nobody(harness: Harness) -> None:
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})


def by_pod_group(harness: Harness) -> Declaration:
    harness.add(group("default/t", min_member=SIZE))
    return Declaration("t")


class Sweep:
    """An indexed Job `sweep` of four pods at once, on its own or as the only Job of the JobSet `set`."""

    def __init__(self, kind: str, declare: Declare, *, cpu: int = SIZE, completions: int = SIZE) -> None:
        self.harness = Harness()
        self.harness.add(node(cpu=str(cpu)))
        self.said = declare(self.harness)
        self.kind, self.completions = kind, completions
        self.name = "set-sweep-0" if kind == "jobset" else "sweep"
        self.key = "default/t" if self.said else f"default/{kind}.{'set' if kind == 'jobset' else 'sweep'}"
        self.failed: list[int] = []
        self.succeeded: list[int] = []
        self.conditions: list[str] = []
        self.suspended = False
        self.tell()

    @property
    def job(self) -> dict[str, Any]:
        return {"parallelism": SIZE, "completions": self.completions, "backoffLimitPerIndex": 0}

    def tell(self) -> None:
        """The watches show the current objects."""
        status = {
            "succeeded": len(self.succeeded),
            "failedIndexes": ",".join(map(str, self.failed)),
            "conditions": [{"type": each, "status": "True"} for each in self.conditions],
        }
        spec = {**self.job, "suspend": self.suspended}
        self.harness.add(served_workload("job", self.name, spec, status=status, uid="uid-sweep"))
        if self.kind == "jobset":
            jobs = [{"name": "sweep", "replicas": 1, "template": {"spec": self.job}}]
            spec = {"replicatedJobs": jobs, "suspend": self.suspended}
            self.harness.add(served_workload("jobset", "set", spec))

    def create(self, *indexes: int) -> None:
        """The Job controller creates the pods of these indexes."""
        name, uid, role = ("set", "uid-set", "sweep") if self.kind == "jobset" else ("sweep", "uid-sweep", "")
        for index in indexes:
            mark = Mark(name, uid, role=role)
            workload = Workload(self.kind, name, None, uid) if self.said else KINDS[self.kind].workload(mark)
            fields: dict[str, Any] = {"declaration": self.said} if self.said else {"group": ""}
            owner = Owner("Job", self.name, "uid-sweep", "batch")
            self.harness.add(pod(f"sweep-{index}", owner=owner, workload=workload, created=self.harness.now, **fields))

    def fail(self, index: int) -> None:
        """The pod of the index fails, and the Job counts the index as failed for good."""
        self.harness.change(f"default/sweep-{index}", phase=PodPhase.FAILED)
        self.failed.append(index)
        self.tell()

    def succeed(self, index: int) -> None:
        self.harness.change(f"default/sweep-{index}", phase=PodPhase.SUCCEEDED)
        self.succeeded.append(index)
        self.tell()

    @property
    def bound(self) -> int:
        return sum(bool(each.node) for each in self.harness.pods.values() if not each.terminal)


KIND = pytest.mark.parametrize("kind", ["job", "jobset"])
DECLARED = pytest.mark.parametrize("declare", [by_nobody, by_pod_group])


@KIND
@DECLARED
def test_two_of_three_owed_pods_are_no_gang(kind: str, declare: Declare):
    sweep = Sweep(kind, declare)
    sweep.failed = [3]
    sweep.tell()
    sweep.create(0, 1)
    sweep.harness.wait(5)
    assert sweep.bound == 0


@KIND
def test_a_running_gang_is_not_degraded_by_an_index_that_failed_for_good(kind: str):
    sweep = Sweep(kind, by_pod_group)
    sweep.create(0, 1, 2, 3)
    sweep.harness.settle()
    sweep.harness.run_pods()
    sweep.fail(3)
    sweep.harness.wait(40)
    status = sweep.harness.status("default/t")
    assert (status.phase, status.minimum, status.bound) == ("Running", 3, 3)


@pytest.mark.parametrize(
    ("ended", "phase"), [(["Failed"], "Failed"), (["Complete"], "Succeeded"), (["SuccessCriteriaMet"], "Succeeded")]
)
def test_the_run_ends_as_the_job_does(ended: list[str], phase: str):
    """Three of four indexes succeed. The Job has failed then, unless its successPolicy says otherwise."""
    sweep = Sweep("job", by_pod_group)
    sweep.create(0, 1, 2, 3)
    sweep.harness.settle()
    sweep.harness.run_pods()
    sweep.fail(3)
    sweep.harness.wait(5)
    for index in (0, 1, 2):
        sweep.succeed(index)
        sweep.harness.wait(1)
    sweep.conditions = ended
    sweep.tell()
    sweep.harness.wait(5)
    assert sweep.harness.status("default/t").phase == phase
