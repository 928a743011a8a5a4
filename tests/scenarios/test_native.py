"""What Kubernetes' own PodGroups say: priority, a changed minCount, the policy basic; and pods of other schedulers."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.events import PriorityClassSeen
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.priority_class import PriorityClass
from tests.builders import group, node, pods
from tests.harness import Harness
from tests.scenarios.test_foreign import member, members
from tests.scenarios.test_native_of_jobs import ASKED, BASIC, GANG, job, native_group, of_job
from tests.served import served_group


def native(least: int = 2, **spec: Any) -> ForeignGroup:
    """The PodGroup g with the policy gang, or with another one in `spec`, as the API server shows it."""
    return served_group("native", "g", {"schedulingPolicy": {"gang": {"minCount": least}}} | spec)


def bound(harness: Harness) -> list[str]:
    return [name.removeprefix("default/") for name in harness.bound()]


class TestPriority:
    """Admission sets spec.priority of each PodGroup: plugin/pkg/admission/priority/admission.go (1.37)."""

    def test_a_group_without_a_class_has_the_priority_of_its_pods_and_not_the_zero_of_admission(self):
        harness = Harness.of(native(priority=0), group("other", min_member=2, priority=3))
        harness.wait(1, *members(2, "native", priority=7), *pods("other", 2))
        harness.wait(5, node(cpu=2))
        assert bound(harness) == ["g-0", "g-1"]

    @pytest.mark.parametrize(("value", "first"), [(0, "other"), (2, "other"), (5, "g")])
    def test_the_value_of_its_class_counts_whatever_its_pods_have(self, value, first):
        harness = Harness()
        harness.report(PriorityClassSeen("mine", PriorityClass(value)))
        harness.add(native(priority=value, priorityClassName="mine"), group("other", min_member=2, priority=3))
        harness.wait(1, *members(2, "native", priority=7), *pods("other", 2))
        harness.wait(5, node(cpu=2))
        assert bound(harness) == [f"{first}-0", f"{first}-1"]


@pytest.mark.parametrize(
    ("mode", "left"),
    [({"single": {}}, 1), ("Pod", 1), (None, 1), ({"all": {}}, 2), ("PodGroup", 2)],
)
def test_the_disruption_mode_says_whether_all_members_are_preempted_together(mode, left):
    """A pod of higher priority needs the room of one member."""
    harness = Harness()
    harness.put_class("high", 100)
    harness.wait(5, node(cpu=2), native(disruptionMode=mode), *members(2, "native"))
    assert len(bound(harness)) == 2
    assert not [event for event in harness.emitted if event.reason == "FieldsIgnored"]
    harness.wait(5, group("high", min_member=1, priority_class="high"), *pods("high", 1))
    assert len(harness.evicted) == left


class TestPodsOfAnotherScheduler:
    """kube-scheduler refuses a group with several schedulerNames for ever; gangsched counts its own pods alone."""

    def test_no_pod_is_bound_as_if_those_of_the_other_scheduler_were_members(self):
        harness = Harness.of(node(cpu=9), native(3), *members(2, "native"))
        harness.wait(5, member("theirs", "native", scheduler="default-scheduler", node="n1"))
        assert bound(harness) == ["theirs"]
        said = harness.pod("default/g-0").condition_message
        assert "2 of 3 members exist" in said
        assert "1 pod does not count, because its schedulerName is default-scheduler" in said
        harness.wait(5, *members(1, "native", first=2))
        assert len(bound(harness)) == 4


def notes(harness: Harness) -> list[str]:
    return [event.note for event in harness.emitted if event.reason == "NoGang"]


class TestPolicyBasicWhereAGangIsAskedFor:
    """The user's template names a group whose pods are scheduled one by one, though the namespace asks for gangs."""

    @pytest.mark.parametrize("last", ["pods", "job", "group", "label"])
    def test_it_is_said_once_that_the_pods_are_no_gang(self, last):
        harness = Harness()
        parts = {
            "label": lambda: harness.label_namespace("default", ASKED),
            "job": lambda: harness.add(job()),
            "group": lambda: harness.add(native_group(BASIC, by_job=False)),
            "pods": lambda: harness.add(*(of_job(number, owned=False) for number in range(5))),
        }
        for name in sorted(parts, key=lambda name: name == last):
            parts[name]()
            harness.wait(3)
        harness.wait(5, node("n1", cpu=4))
        assert len(harness.bound()) == 4
        [note] = set(notes(harness))
        assert "the PodGroup train-7fk2p of scheduling.k8s.io" in note
        assert "policy is basic" in note

    @pytest.mark.parametrize(
        ("policy", "asked", "by_job"),
        [(GANG, ASKED, False), (BASIC, {}, False), (BASIC, ASKED, True), (BASIC, {}, True)],
    )
    def test_nothing_is_said_where_nobody_asks_or_the_group_is_a_gang_or_its_controller_added_it(
        self, policy, asked, by_job
    ):
        harness = Harness()
        harness.label_namespace("default", asked)
        harness.add(node("n1", cpu=4), job(), native_group(policy, by_job=by_job))
        harness.wait(60, *(of_job(number, owned=by_job) for number in range(5)))
        assert notes(harness) == []
