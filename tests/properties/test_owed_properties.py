"""A Job's gang is bound with all that the Job owes or not at all, whatever fails for good, and if it comes again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.kube.workloads.workload_kind import Mark
from tests.builders import node, pod
from tests.harness import Harness
from tests.served import KINDS, served_workload

KIND = KINDS["job"]
SIZE = 4
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("node", "give up", "create")), st.integers(0, SIZE - 1)),
        st.tuples(st.just("create all"), st.just(0)),
        st.tuples(st.just("again"), st.integers(0, 1)),
        st.tuples(st.just("orphans go"), st.just(0)),
        st.tuples(st.just("plain"), st.integers(1, 2)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    min_size=1,
    max_size=25,
)


class Job:
    """An indexed Job without retries, and all generations of it; the pods of earlier ones may be left behind."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.generation = 0
        self.failed: set[int] = set()
        self.began = False
        self.tell()

    @property
    def uid(self) -> str:
        return f"job-{self.generation}"

    def tell(self) -> None:
        """The watch shows the Job."""
        spec = {"parallelism": SIZE, "completions": SIZE, "backoffLimitPerIndex": 0}
        status = {"failedIndexes": ",".join(map(str, sorted(self.failed)))}
        self.harness.add(served_workload("job", "train", spec, status=status, uid=self.uid))

    def pods(self, *, mine: bool = True) -> list[Pod]:
        """The live pods of this generation, or of earlier ones."""
        there = [each for each in self.harness.pods.values() if each.owner is not None and not each.terminal]
        return [each for each in there if each.owner is not None and (each.owner.uid == self.uid) is mine]

    def create(self, index: int) -> None:
        name = f"train-{self.generation}-{index}"
        if index not in self.failed and all(each.name != name for each in self.harness.pods.values()):
            owner, workload = Owner("Job", "train", self.uid, "batch"), KIND.workload(Mark("train", self.uid))
            self.harness.add(pod(name, group="", owner=owner, workload=workload, created=self.harness.now))

    def give_up(self, index: int) -> None:
        """The index has failed for good; its pod, if there is one, has failed."""
        for each in self.pods():
            if each.name.endswith(f"-{index}"):
                self.harness.change(f"default/{each.name}", phase=PodPhase.FAILED)
        self.failed.add(index)
        self.tell()

    def come_again(self, *, orphans: bool) -> None:
        """The Job is deleted and created again under its name; its pods go at once, or later."""
        self.harness.delete_foreign("job", "default/train")
        if not orphans:
            self.harness.delete(*(f"default/{each.name}" for each in self.pods()))
        self.generation, self.failed, self.began = self.generation + 1, set(), False
        self.tell()

    def check(self) -> None:
        """At its first binding, all pods that the present Job owes are bound, and it needs no pod of an earlier one."""
        bound = sum(bool(each.node) for each in self.pods())
        if bound and not self.began:
            assert bound >= SIZE - len(self.failed), (bound, self.failed)
        self.began = self.began or bool(bound)


@given(STEPS)
def test_a_job_is_bound_with_all_that_it_owes_or_not_at_all(steps: list[tuple[str, int]]) -> None:
    harness = Harness()
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})
    job = Job(harness)
    for number, (what, how) in enumerate(steps):
        if what == "node":
            harness.add(node(f"n{number}", cpu=how + 1))
        elif what == "create":
            job.create(how)
        elif what == "create all":
            for index in range(SIZE):
                job.create(index)
        elif what == "give up" and len(job.failed) < SIZE - 1:
            job.give_up(how)
        elif what == "again":
            job.come_again(orphans=bool(how))
        elif what == "orphans go":
            harness.delete(*(f"default/{each.name}" for each in job.pods(mine=False)))
        elif what == "plain":
            harness.add(pod(f"plain-{number}", group="", cpu=how, created=harness.now))
        elif what == "wait":
            harness.wait(float(how))
        elif what == "restart":
            harness.restart()
        harness.settle()
        assert harness.machine.validate() == []
        job.check()


def test_with_room_the_rest_of_a_job_is_bound_whatever_failed_and_whatever_is_left_of_earlier_ones() -> None:
    harness = Harness()
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})
    job = Job(harness)
    for index in range(SIZE):
        job.create(index)
    harness.settle()
    job.come_again(orphans=True)
    harness.add(node("n", cpu=3))
    for index in (0, 1, 2):
        job.create(index)
    job.give_up(3)
    harness.wait(5)
    assert sum(bool(each.node) for each in job.pods()) == SIZE - 1
    assert not any(each.node for each in job.pods(mine=False))
