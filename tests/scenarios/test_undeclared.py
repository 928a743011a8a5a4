"""Pods that name no group and belong to a Job or another workload are gangs where a namespace or the
workload says so.
"""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.record import Minima
from gangsched.kube.workloads.workload_kind import Mark
from tests.builders import node, pod
from tests.harness import Harness
from tests.served import KINDS, served_workload

AUTO = {"gangsched.io/gang": "auto"}


def job(
    name: str = "train", *, size: int = 3, uid: str = "", annotations: dict[str, str] | None = None
) -> ForeignGroup:
    """The Job, in the namespace default."""
    spec = {"parallelism": size, "completions": size}
    return served_workload("job", name, spec, uid=uid or f"uid-{name}", annotations=annotations or {})


def of_job(number: int, name: str = "train", *, uid: str = "", **fields: Any) -> Pod:
    """A pod of the Job."""
    uid = uid or f"uid-{name}"
    owner = Owner("Job", name, uid, "batch")
    workload = KINDS["job"].workload(Mark(name, uid))
    return pod(f"default/{name}-{number}", group="", owner=owner, workload=workload, **fields)


def pods_of_job(count: int, name: str = "train", **fields: Any) -> list[Pod]:
    return [of_job(number, name, **fields) for number in range(count)]


@pytest.fixture
def auto() -> Harness:
    harness = Harness()
    harness.label_namespace("default", AUTO)
    return harness


@pytest.fixture
def usual() -> Harness:
    harness = Harness()
    harness.label_namespace("default", {})
    return harness


def bound(harness: Harness, name: str = "train") -> int:
    return sum(bool(each.node) for each in harness.pods.values() if each.name.startswith(f"{name}-"))


def told(harness: Harness, name: str = "train-0") -> tuple[str, str]:
    found = harness.pod(f"default/{name}")
    return found.condition_reason, found.condition_message


class TestInALabelledNamespace:
    def test_a_job_is_bound_whole_once_all_its_pods_are_there(self, auto):
        auto.wait(5, node(cpu="8"), job(), *pods_of_job(2))
        before = bound(auto)
        reason, message = told(auto)
        auto.settle(of_job(2))

        assert before == 0
        assert (reason, message.partition(":")[0]) == ("GangIncomplete", "Group job.train")
        assert bound(auto) == 3

    @pytest.mark.parametrize("said", [{"gangsched.io/gang": "false"}, {"gangsched.io/min-member": "2"}])
    def test_a_job_may_decline_or_say_its_minimum(self, auto, said):
        """Regression: who had declined was told to ask for a gang, by the label that the namespace had."""
        auto.settle(node(cpu="2"), job(annotations=said), *pods_of_job(3))
        assert bound(auto) == 2
        assert [event.note for event in auto.emitted if event.reason == "NoGang"] == []


class TestElsewhere:
    def test_a_job_without_an_annotation_is_bound_pod_by_pod(self, usual):
        usual.wait(3, node(cpu="2"), job(), *pods_of_job(3))
        assert bound(usual) == 2
        assert told(usual, next(each.name for each in usual.pods.values() if not each.node))[0] == "Unschedulable"

    @pytest.mark.without("all", why="a process that begins tells it again")
    def test_one_event_for_each_job_says_how_to_have_gangs(self, usual):
        usual.add(node(cpu="8"), job(), *pods_of_job(3), job("other"), *pods_of_job(2, "other"), job("one", size=1))
        usual.settle(of_job(0, "one"))
        usual.settle(*(of_job(number) for number in (3, 4)))
        notes = [event.note for event in usual.emitted if event.reason == "NoGang"]
        assert len(notes) == 2
        assert notes[0] == (
            "The pods of Job train are scheduled one by one. To have them bound all together or not at all, label the "
            'namespace default gangsched.io/gang=auto, or annotate Job train gangsched.io/gang: "true".'
        )

    @pytest.mark.without("all", why="it is about the order of events")
    def test_a_wrong_value_of_the_label_is_named(self, usual):
        usual.label_namespace("default", {"gangsched.io/gang": "true"})
        usual.settle(node(cpu="8"), job(), *pods_of_job(3))
        [note] = [event.note for event in usual.emitted if event.reason == "NoGang"]
        assert "label the namespace default gangsched.io/gang=auto (it is 'true')" in note


class TestWhatIsNotKnownYet:
    def test_pods_wait_for_their_job(self, usual):
        usual.wait(1.5, node(cpu="8"), *pods_of_job(3))
        soon = told(usual)
        usual.wait(2)
        later = told(usual)
        usual.settle(job())

        assert soon == ("", "")
        assert later[0] == "OwnerUnknown"
        assert "The Job train in namespace default, to which the pods belong, has not been seen: check" in later[1]
        assert bound(usual) == 3

    def test_pods_of_a_new_job_do_not_follow_the_former_one_of_that_name(self, auto):
        auto.wait(3, node(cpu="8"), job(size=1, uid="former"), *pods_of_job(2, uid="latter"))
        before = bound(auto), told(auto)[0]
        auto.wait(3, job(size=3, uid="latter"))
        assert before == (0, "OwnerUnknown")
        assert (bound(auto), told(auto)[0]) == (0, "GangIncomplete")

    def test_a_kind_that_may_not_be_read_makes_gangs_wait_and_no_others(self, auto):
        auto.hide("job", "gangsched may not read jobs.batch: grant it.", denied=True)
        auto.wait(3, node(cpu="8"), *pods_of_job(3))
        reason, message = told(auto)
        auto.label_namespace("default", {})
        auto.settle()
        assert reason == "OwnerUnknown"
        assert message == (
            "Group job.train: It is unknown what the Job train declares for its pods: gangsched may not read "
            "jobs.batch: grant it."
        )
        assert bound(auto) == 3

    @pytest.mark.parametrize("labels", [AUTO, {}])
    def test_pods_of_a_kind_that_is_not_listed_yet_wait_whatever_their_namespace_says(self, labels):
        harness = Harness()
        harness.label_namespace("default", labels)
        harness.hide("job", "gangsched has not been able to list jobs.batch yet.")
        harness.wait(1.5, node(cpu="8"), *pods_of_job(3))
        soon = told(harness)
        harness.wait(2)
        later = told(harness)
        harness.foreign["job", GroupKey("default", "train")] = job(size=3)
        harness.show("job")
        harness.wait(1)
        assert soon == ("", "")
        assert later[0] == "OwnerUnknown"
        assert later[1].endswith("declares for its pods: gangsched has not been able to list jobs.batch yet.")
        assert bound(harness) == 3

    @pytest.mark.without("all", why="it is about one order of events, in which a list comes after the decision")
    def test_a_gang_that_ran_before_a_restart_is_known_to_have_run_once_its_kind_is_listed(self, auto):
        """A Job of 3 was scheduled. A member is lost without a leader, and Jobs cannot be listed at the start."""
        auto.wait(600, node(cpu="3"), job(), *pods_of_job(3))
        auto.delete("default/train-2")
        auto.hide("job", "not listed yet")
        auto.restart()
        auto.wait(2)
        before = auto.gang("default/job.train").record.scheduled_at
        auto.show("job")
        auto.wait(2)
        assert not before
        assert auto.gang("default/job.train").record.scheduled_at


class TestAChange:
    def test_a_label_that_goes_frees_pods_that_wait_for_others(self, auto):
        auto.wait(2, node(cpu="2"), job(), *pods_of_job(3))
        before = bound(auto)
        auto.label_namespace("default", {})
        auto.settle()
        assert (before, bound(auto)) == (0, 2)

    def test_a_replicas_own_size_counts_until_its_set_says_a_minimum(self, auto):
        replica = [of_set(number, size=3) for number in range(2)]
        auto.wait(3, node(cpu="8"), lws(size=5), *replica)
        before = bound(auto, "serve"), told(auto, "serve-0")[1]
        auto.settle(lws(size=5, annotations={"gangsched.io/min-member": "2"}))
        assert before[0] == 0
        assert "1 more member is needed" in before[1]
        assert bound(auto, "serve") == 2

    def test_a_minimum_that_cannot_be_read_stops_a_replica_that_says_its_size(self, auto):
        wish = {"gangsched.io/gang": "true"}
        auto.settle(node(cpu="1"), lws(size=2, annotations=wish), *(of_set(number, size=2) for number in range(2)))
        auto.wait(3, lws(size=2, annotations=wish | {"gangsched.io/min-member": "x"}), node("n2", cpu="1"))
        assert bound(auto, "serve") == 0
        assert told(auto, "serve-0")[0] == "InvalidDeclaration"


class TestAResize:
    """A leader says the size of its revision. Its workers are made for that of the object at the time, and stay."""

    @pytest.mark.parametrize(("leader", "now"), [(3, 5), (5, 3), (1, 3)])
    def test_a_replica_that_restarts_at_its_old_revision_is_as_large_as_its_workers_say(self, auto, leader, now):
        """Regression: with a partition, or amid the rollout, its members were said to contradict each other."""
        auto.add(node(cpu="8"), lws(size=now), of_set(0, size=leader, role="leader"))
        auto.wait(5, *(of_set(number, size=now, role="worker") for number in range(1, now - 1)))
        before = bound(auto, "serve"), told(auto, "serve-0")[0]
        auto.settle(of_set(now - 1, size=now, role="worker"))
        assert before == (0, "GangIncomplete")
        assert bound(auto, "serve") == now

    @pytest.mark.parametrize(("leader", "now", "expected"), [(3, 1, 1), (1, 3, 0), (3, 3, 0)])
    def test_a_leader_without_workers_has_as_many_as_the_object_says(self, auto, leader, now, expected):
        auto.wait(5, node(cpu="8"), lws(size=now), of_set(0, size=leader, role="leader"))
        assert bound(auto, "serve") == expected

    @pytest.mark.parametrize("now", [2, 5])
    @pytest.mark.parametrize("first", ["the resize", "the binding"])
    def test_a_replica_that_was_made_before_keeps_its_size(self, auto, now, first):
        auto.add(lws(size=3))
        auto.add(of_set(0, size=3, role="leader"), of_set(1, size=3, role="worker"))
        if first == "the resize":
            auto.wait(5, lws(size=now), node(cpu="8"))
            assert bound(auto, "serve") == 0
        auto.wait(5, node(cpu="8"), of_set(2, size=3, role="worker"))
        auto.wait(5, lws(size=now))
        gang = auto.gang("default/lws.serve.0")
        assert bound(auto, "serve") == 3
        assert (gang.record.phase, gang.record.satisfied) == ("Scheduled", Minima(3))

    def test_a_minimum_that_is_larger_than_an_old_replica_does_not_stop_it(self, auto):
        auto.add(node(cpu="8"), lws(size=5, annotations={"gangsched.io/min-member": "4"}))
        auto.settle(of_set(0, size=3, role="leader"), *(of_set(number, size=3, role="worker") for number in (1, 2)))
        assert bound(auto, "serve") == 3

    def test_workers_tell_the_size_also_where_their_object_may_not_be_read(self, auto):
        auto.hide("lws", "gangsched may not read it.", denied=True)
        auto.add(node(cpu="8"), of_set(0, size=3, role="leader"))
        auto.wait(5, *(of_set(number, size=5, role="worker") for number in range(1, 4)))
        before = bound(auto, "serve")
        auto.settle(of_set(4, size=5, role="worker"))
        assert (before, bound(auto, "serve")) == (0, 5)


TRAIN_JOB = [{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "train", "controller": True}]


def jobset(*, annotations: dict[str, str] | None = None, top: str = "top", **spec: Any) -> ForeignGroup:
    """The JobSet train of 1 + 2 pods, created by the TrainJob of that name and this UID."""
    owners = [{**TRAIN_JOB[0], "uid": top}]
    jobs = [{"name": name, "template": {"spec": {"parallelism": size}}} for name, size in (("lead", 1), ("work", 2))]
    spec = {"replicatedJobs": jobs, **spec}
    return served_workload("jobset", "train", spec, ownerReferences=owners, annotations=annotations or {})


def train_job(*, annotations: dict[str, str] | None = None, uid: str = "top", **spec: Any) -> ForeignGroup:
    return served_workload("trainjob", "train", spec, uid=uid, annotations=annotations or {})


def pods_of_jobset() -> list[Pod]:
    roles = ("lead", "work", "work")
    carried = [KINDS["jobset"].workload(Mark("train", "uid-train", role=role)) for role in roles]
    return [pod(f"default/train-{number}", group="", workload=each) for number, each in enumerate(carried)]


GANG = {"gangsched.io/gang": "true"}


class TestAnObjectAboveTheWorkload:
    @pytest.mark.without("all", why="a process that begins tells it again")
    def test_the_event_names_the_object_to_annotate(self, usual):
        usual.settle(node(cpu="2"), train_job(), jobset(), *pods_of_jobset())
        [note] = [event.note for event in usual.emitted if event.reason == "NoGang"]
        assert note.startswith("The pods of JobSet train are scheduled one by one.")
        assert note.endswith('or annotate TrainJob train gangsched.io/gang: "true".')

    @pytest.mark.parametrize(
        ("above", "own", "expected"),
        [
            ({}, GANG, 0),
            ({"gangsched.io/gang": "false"}, GANG, 2),
            (GANG, {"gangsched.io/gang": "false"}, 0),
            (GANG | {"gangsched.io/min-member": "2"}, {}, 2),
            (GANG | {"gangsched.io/min-member": "3"}, {"gangsched.io/min-member": "2"}, 0),
            (GANG, {"gangsched.io/min-member": "2"}, 2),
        ],
    )
    def test_its_annotations_come_before_those_of_what_it_has_made(self, usual, above, own, expected):
        usual.wait(3, node(cpu="2"), train_job(annotations=above), jobset(annotations=own), *pods_of_jobset())
        assert bound(usual) == expected

    @pytest.mark.parametrize("first", ["above", "below"])
    def test_pods_wait_until_both_are_seen(self, usual, first):
        objects = [train_job(annotations=GANG), jobset()]
        early, late = objects if first == "above" else reversed(objects)
        usual.wait(3, node(cpu="3"), early, *pods_of_jobset())
        before = bound(usual), *told(usual)
        usual.settle(late)
        assert before[:2] == (0, "OwnerUnknown")
        what = "The JobSet train in" if first == "above" else "The TrainJob train in"
        assert before[2].startswith(f"Group jobset.train: {what} namespace default, to which the ")
        assert bound(usual) == 3

    def test_another_one_of_that_name_does_not_count(self, usual):
        usual.wait(3, node(cpu="3"), train_job(uid="former"), jobset(), *pods_of_jobset())
        assert (bound(usual), told(usual)[0]) == (0, "OwnerUnknown")

    def test_an_annotation_that_cannot_be_read_is_named_as_its_own(self, usual):
        usual.add(node(), train_job(annotations={"gangsched.io/min-member": "x"} | GANG), jobset(), *pods_of_jobset())
        usual.wait(3)
        assert bound(usual) == 0
        assert told(usual)[0] == "InvalidDeclaration"
        assert "TrainJob train: The annotation gangsched.io/min-member is 'x'" in told(usual)[1]

    def test_one_that_may_not_be_read_says_nothing(self, usual):
        usual.hide("trainjob", "gangsched may not read it.", denied=True)
        usual.settle(node(cpu="2"), jobset(annotations=GANG | {"gangsched.io/min-member": "2"}), *pods_of_jobset())
        assert bound(usual) == 2

    def test_while_its_kind_is_not_listed_yet_the_pods_wait_also_without_a_label(self, usual):
        usual.hide("trainjob", "trainjobs are not listed yet.")
        usual.wait(3, node(cpu="3"), jobset(), *pods_of_jobset())
        before = bound(usual), *told(usual)
        usual.foreign["trainjob", GroupKey("default", "train")] = train_job(annotations=GANG)
        usual.show("trainjob")
        usual.settle()
        unknown = "It is unknown what the TrainJob train declares for its pods"
        assert before == (0, "OwnerUnknown", f"Group jobset.train: {unknown}: trainjobs are not listed yet.")
        assert bound(usual) == 3

    @pytest.mark.without("all", why="it asks the machine itself")
    def test_one_that_goes_and_comes_leaves_a_gang_that_runs_as_it_is(self, usual):
        usual.wait(10, node(cpu="3"), train_job(annotations=GANG), jobset(), *pods_of_jobset())
        since = usual.gang("default/jobset.train").record.scheduled_at
        usual.delete_foreign("trainjob", "default/train")
        usual.wait(5)
        usual.wait(5, train_job(annotations=GANG))
        assert since
        assert usual.gang("default/jobset.train").record.scheduled_at == since


def lws(*, size: int, annotations: dict[str, str] | None = None) -> ForeignGroup:
    """The LeaderWorkerSet serve."""
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": size}}
    return served_workload("lws", "serve", spec, annotations=annotations or {})


def of_set(number: int, *, size: int, role: str = "") -> Pod:
    """A pod of its only replica."""
    workload = KINDS["lws"].workload(Mark("serve", part="0", role=role, size=size, early=role == "leader"))
    return pod(f"default/serve-{number}", group="", workload=workload)


@pytest.mark.without("all", why="it asks the machine itself")
def test_a_pod_that_is_seen_again_as_it_was_is_nothing_new(auto):
    auto.settle(node(), job(), *pods_of_job(2))
    members = auto.machine._state.members  # noqa: SLF001 - no decision shows it, only its cost
    assert members.is_known(of_job(0))
    assert not members.is_known(of_job(0, node="n1"))


@pytest.mark.parametrize(
    "uid", ["uid-ghost", "uid-default/plain", "uid-default/train-0"], ids=["gone", "of no workload", "of another one"]
)
@pytest.mark.without("all", why="it asks the machine itself")
def test_a_pod_remembered_as_one_of_a_workload_whose_it_is_not_is_a_contradiction(auto, uid):
    auto.settle(node(), job(), *pods_of_job(2), pod("default/plain", group=""))
    auto.machine._state.members.undeclared._pods.put(uid, ("default", "job", "other"))  # noqa: SLF001 - no defect is known
    assert [said.partition(":")[0] for said in auto.machine.validate()] == [uid]


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew or not at all")
def test_fields_of_a_workload_that_are_not_honoured_are_told_once_on_its_gang():
    """A queue in the schedulingPolicy would hold the job back in Volcano; gangsched has no queues."""
    harness = Harness()
    policy = {"queue": "research", "minAvailable": 2}
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}, "runPolicy": {"schedulingPolicy": policy}}
    workload = KINDS["pytorchjob"].workload(Mark("t", "u", role="worker"))
    harness.label_namespace("default", {})
    job = served_workload("pytorchjob", "t", spec, uid="u", annotations={"gangsched.io/gang": "true"})
    harness.add(node(cpu="2"), job)
    harness.wait(60, *(pod(f"t-{number}", group="", workload=workload) for number in range(3)))
    [event] = harness.events("FieldsIgnored")
    assert "spec.runPolicy.schedulingPolicy.queue" in event.note
    assert len(harness.bound()) == 2
