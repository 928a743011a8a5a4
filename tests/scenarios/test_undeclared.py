"""Pods that name no group and belong to a Job or another workload: gangs where a namespace or the workload says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import ForeignGroupsHidden, NamespaceSeen
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.workloads.kind import Mark
from gangsched.kube.workloads.table import chosen
from tests.builders import group, node, pod
from tests.harness import Harness

KINDS = chosen(Settings()).kinds
AUTO = {"gangsched.io/gang": "auto"}


def job(
    name: str = "train", *, size: int = 3, uid: str = "", annotations: dict[str, str] | None = None
) -> ForeignGroup:
    """The Job, in the namespace default."""
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"}
    body = {"metadata": meta | {"annotations": annotations or {}}, "spec": {"parallelism": size, "completions": size}}
    return KINDS["job"].read(json.dumps(body).encode())[1]


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
    return found.told_reason, found.told_message


class TestInALabelledNamespace:
    def test_a_job_is_bound_whole_once_all_its_pods_are_there(self, auto):
        auto.add(node(cpu="8"), job(), *pods_of_job(2))
        auto.wait(5)
        before = bound(auto)
        reason, message = told(auto)
        auto.add(of_job(2))
        auto.settle()

        assert before == 0
        assert (reason, message.partition(":")[0]) == ("GangIncomplete", "Group job.train")
        assert bound(auto) == 3

    def test_of_two_jobs_with_room_for_one_and_a_half_one_is_bound_whole(self, auto):
        auto.add(node(cpu="5"), job("one"), job("two"), *pods_of_job(3, "one"), *pods_of_job(3, "two"))
        auto.wait(3)
        assert sorted((bound(auto, "one"), bound(auto, "two"))) == [0, 3]

    def test_a_job_that_declines_is_bound_pod_by_pod_and_nobody_is_told_how_to_change_that(self, auto):
        auto.add(node(cpu="2"), job(annotations={"gangsched.io/gang": "false"}), *pods_of_job(3))
        auto.settle()
        assert bound(auto) == 2

    def test_the_minimum_on_the_job_counts(self, auto):
        auto.add(node(cpu="2"), job(annotations={"gangsched.io/min-member": "2"}), *pods_of_job(3))
        auto.settle()
        assert bound(auto) == 2

    def test_a_minimum_that_cannot_be_read_is_named_and_nothing_is_bound(self, auto):
        auto.add(node(), job(annotations={"gangsched.io/min-member": "many"}), *pods_of_job(3))
        auto.wait(3)
        assert bound(auto) == 0
        assert told(auto)[0] == "InvalidDeclaration"
        assert "Job train: The annotation gangsched.io/min-member is 'many': write a whole number" in told(auto)[1]

    def test_a_group_that_the_pods_name_wins(self, auto):
        named = [
            pod(f"default/train-{number}", group="a", owner=Owner("Job", "train", "u", "batch")) for number in (0, 1)
        ]
        auto.add(node(), job(), group("default/a", min_member=2), *named)
        auto.settle()
        assert bound(auto) == 2

    def test_the_size_follows_the_job(self, auto):
        auto.add(node(cpu="8"), job(size=5), *pods_of_job(3))
        auto.wait(2)
        before = bound(auto)
        auto.add(job(size=3))
        auto.settle()
        assert (before, bound(auto)) == (0, 3)

    def test_pods_of_another_scheduler_are_no_members(self, auto):
        auto.add(node(cpu="8"), job(size=2), of_job(0), of_job(1, scheduler="other"))
        auto.wait(3)
        assert told(auto)[0] == "GangIncomplete"


class TestElsewhere:
    def test_an_annotated_job_is_bound_whole(self, usual):
        usual.add(node(cpu="2"), job(annotations={"gangsched.io/gang": "true"}), *pods_of_job(3))
        usual.wait(3)
        before = bound(usual)
        usual.add(node("n2", cpu="1"))
        usual.settle()
        assert (before, bound(usual)) == (0, 3)

    def test_an_annotation_that_means_nothing_is_named_and_nothing_is_bound(self, usual):
        usual.add(node(cpu="2"), job(annotations={"gangsched.io/gang": "yes"}), *pods_of_job(3))
        usual.wait(3)
        assert bound(usual) == 0
        assert 'The annotation gangsched.io/gang is \'yes\': write "true" or "false"' in told(usual)[1]

    def test_a_job_without_an_annotation_is_bound_pod_by_pod(self, usual):
        usual.add(node(cpu="2"), job(), *pods_of_job(3))
        usual.wait(3)
        assert bound(usual) == 2
        assert told(usual, next(each.name for each in usual.pods.values() if not each.node))[0] == "Unschedulable"

    @pytest.mark.without("all", why="a process that begins tells it again")
    def test_one_event_for_each_job_says_how_to_have_gangs(self, usual):
        usual.add(node(cpu="8"), job(), *pods_of_job(3), job("other"), *pods_of_job(2, "other"), job("one", size=1))
        usual.add(of_job(0, "one"))
        usual.settle()
        usual.add(*(of_job(number) for number in (3, 4)))
        usual.settle()
        notes = [event.note for event in usual.emitted if event.reason == "NoGang"]
        assert len(notes) == 2
        assert notes[0] == (
            "The pods of Job train are scheduled one by one. To have them bound all together or not at all, label the "
            'namespace default gangsched.io/gang=auto, or annotate Job train gangsched.io/gang: "true".'
        )

    @pytest.mark.without("all", why="it is about the order of events")
    def test_a_wrong_value_of_the_label_is_named(self, usual):
        usual.label_namespace("default", {"gangsched.io/gang": "true"})
        usual.add(node(cpu="8"), job(), *pods_of_job(3))
        usual.settle()
        [note] = [event.note for event in usual.emitted if event.reason == "NoGang"]
        assert "label the namespace default gangsched.io/gang=auto (it is 'true')" in note


class TestWhatIsNotKnownYet:
    def test_pods_wait_for_their_job(self, usual):
        usual.add(node(cpu="8"), *pods_of_job(3))
        usual.wait(1.5)
        soon = told(usual)
        usual.wait(2)
        later = told(usual)
        usual.add(job())
        usual.settle()

        assert soon == ("", "")
        assert later[0] == "OwnerUnknown"
        assert "The Job train in namespace default, to which the pods belong, has not been seen: check" in later[1]
        assert bound(usual) == 3

    @pytest.mark.without("restarts", "standbys", "leaderless", why="an operator that begins has seen all namespaces")
    def test_pods_wait_for_their_namespace(self):
        harness = Harness()
        harness.add(node(cpu="8"), job(size=2), *pods_of_job(1))
        harness.wait(0.5)
        before = bound(harness)
        harness.report(NamespaceSeen("default", tuple(AUTO.items())))
        harness.wait(3)
        assert (before, bound(harness)) == (0, 0)
        harness.add(of_job(1))
        harness.settle()
        assert bound(harness) == 2

    def test_pods_of_a_new_job_do_not_follow_the_former_one_of_that_name(self, auto):
        auto.add(node(cpu="8"), job(size=1, uid="former"), *pods_of_job(2, uid="latter"))
        auto.wait(3)
        before = bound(auto), told(auto)[0]
        auto.add(job(size=3, uid="latter"))
        auto.wait(3)
        assert before == (0, "OwnerUnknown")
        assert (bound(auto), told(auto)[0]) == (0, "GangIncomplete")

    def test_a_kind_that_cannot_be_read_makes_gangs_wait_and_no_others(self, auto):
        auto.hidden["job"] = "gangsched may not read jobs.batch."
        auto.foreign["job", GroupKey("default", "train")] = job()
        auto.report(ForeignGroupsHidden("job", auto.hidden["job"]))
        auto.add(node(cpu="8"), *pods_of_job(3))
        auto.wait(3)
        reason = told(auto)[0]
        auto.label_namespace("default", {})
        auto.settle()
        assert reason == "PodGroupUnreadable"
        assert bound(auto) == 3


class TestAChange:
    def test_a_label_that_comes_makes_gangs_of_pods_that_wait(self, usual):
        usual.add(node(cpu="1"), job(), *pods_of_job(3))
        usual.settle()
        usual.label_namespace("default", AUTO)
        usual.add(node("n2", cpu="1"))
        usual.wait(1)
        before = bound(usual)
        usual.add(node("n3", cpu="1"))
        usual.settle()
        assert (before, bound(usual)) == (1, 3)

    def test_a_label_that_goes_frees_pods_that_wait_for_others(self, auto):
        auto.add(node(cpu="2"), job(), *pods_of_job(3))
        auto.wait(2)
        before = bound(auto)
        auto.label_namespace("default", {})
        auto.settle()
        assert (before, bound(auto)) == (0, 2)

    def test_an_annotation_that_comes_makes_a_gang_and_one_that_goes_ends_it(self, usual):
        usual.add(job(), *pods_of_job(3))
        usual.settle()
        usual.add(job(annotations={"gangsched.io/gang": "true"}), node(cpu="2"))
        usual.wait(2)
        before = bound(usual)
        usual.add(job())
        usual.settle()
        assert (before, bound(usual)) == (0, 2)

    def test_a_job_that_goes_leaves_pods_that_wait_without_terms(self, auto):
        auto.add(node(cpu="2"), job(), *pods_of_job(3))
        auto.wait(3)
        auto.delete_foreign("job", "default/train")
        auto.wait(3)
        assert told(auto)[0] == "OwnerUnknown"
        assert bound(auto) == 0

    def test_a_replicas_own_size_counts_until_its_set_says_a_minimum(self, auto):
        replica = [of_set(number, size=3) for number in range(2)]
        auto.add(node(cpu="8"), lws(size=5), *replica)
        auto.wait(3)
        before = bound(auto, "serve"), told(auto, "serve-0")[1]
        auto.add(lws(size=5, annotations={"gangsched.io/min-member": "2"}))
        auto.settle()
        assert before[0] == 0
        assert "1 more member is needed" in before[1]
        assert bound(auto, "serve") == 2

    def test_a_minimum_that_cannot_be_read_stops_a_replica_that_says_its_size(self, auto):
        wish = {"gangsched.io/gang": "true"}
        auto.add(node(cpu="1"), lws(size=2, annotations=wish), *(of_set(number, size=2) for number in range(2)))
        auto.settle()
        auto.add(lws(size=2, annotations=wish | {"gangsched.io/min-member": "x"}), node("n2", cpu="1"))
        auto.wait(3)
        assert bound(auto, "serve") == 0
        assert told(auto, "serve-0")[0] == "InvalidDeclaration"


def lws(*, size: int, annotations: dict[str, str] | None = None) -> ForeignGroup:
    """The LeaderWorkerSet serve."""
    meta = {"name": "serve", "namespace": "default", "uid": "uid-serve", "annotations": annotations or {}}
    body = {"metadata": meta, "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": size}}}
    return KINDS["lws"].read(json.dumps(body).encode())[1]


def of_set(number: int, *, size: int) -> Pod:
    """A pod of its only replica."""
    workload = KINDS["lws"].workload(Mark("serve", part="0", size=size))
    return pod(f"default/serve-{number}", group="", workload=workload)


@pytest.mark.without("all", why="it asks the machine itself")
def test_a_pod_that_is_seen_again_as_it_was_is_nothing_new(auto):
    auto.add(node(), job(), *pods_of_job(2))
    auto.settle()
    members = auto.machine._state.members  # noqa: SLF001 - nothing that it decides shows it, only what it costs
    assert members.is_known(of_job(0))
    assert not members.is_known(of_job(0, node="n1"))
