"""Groups whose terms are in another system's custom resource."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import GroupKey, Role
from gangsched.core.objects.effects import PatchStatus
from gangsched.core.objects.events import ForeignGroupsHidden, ForeignGroupsReplaced
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import foreign_group, group, node, pod
from tests.harness import Harness

KEY = GroupKey("default", "g")
NAMED = {
    "tenstack": ({"group.batch.scheduler.tencent.com": "g"}, {}, ""),
    "scheduler-plugins": ({"scheduling.x-k8s.io/pod-group": "g"}, {}, ""),
    "koordinator": ({"pod-group.scheduling.sigs.k8s.io": "g"}, {}, ""),
    "volcano": ({}, {"scheduling.k8s.io/group-name": "g"}, ""),
    "kai": ({}, {"pod-group-name": "g"}, ""),
    "native": ({}, {}, "g"),
}


def member(name: str, dialect: str = "volcano", *, labels=None, annotations=None, **fields) -> Pod:
    """A pod that names the group g the way pods of that system do."""
    own_labels, own_annotations, field = NAMED[dialect]
    declaration = DEFAULT.declaration(
        own_labels | (labels or {}), own_annotations | (annotations or {}), scheduling_group=field
    )
    return pod(name, group="", declaration=declaration, **fields)


def members(count: int, dialect: str = "volcano", *, first: int = 0, **fields) -> list[Pod]:
    return [member(f"g-{number}", dialect, **fields) for number in range(first, first + count)]


def told(harness: Harness, name: str) -> tuple[str, str]:
    found = harness.pod(f"default/{name}")
    return found.condition_reason, found.condition_message


def g(dialect: str = "volcano", **fields):
    return foreign_group(dialect, "default/g", **fields)


class TestTheTerms:
    @pytest.mark.parametrize("dialect", NAMED)
    def test_a_group_is_bound_whole_when_complete_and_not_before_and_nothing_is_written_but_to_its_pods(self, dialect):
        harness = Harness.waited(2, node(), g(dialect, min_member=3), *members(2, dialect))
        assert harness.bound() == []
        assert told(harness, "g-0")[0] == "GangIncomplete"
        harness.wait(2, *members(1, dialect, first=2))
        assert len(harness.bound()) == 3
        assert harness.machine.assessments[KEY].terms.source == f"{dialect} PodGroup"
        assert not any(isinstance(effect, PatchStatus) for effect in harness.effects)


class TestTheObject:
    def test_one_that_does_not_exist_is_named_with_its_kind_and_comes_later(self):
        harness = Harness.waited(2, node(), *members(2))
        assert told(harness, "g-0") == (
            "PodGroupNotFound",
            (
                "Group g: There is no podgroups.scheduling.volcano.sh g in namespace default: create it, or give the "
                "pods the annotation scheduling.volcano.sh/group-min-member."
            ),
        )
        harness.wait(2, g())
        assert len(harness.bound()) == 2

    def test_deleted_it_leaves_bound_members_and_lets_others_wait_and_made_again_it_goes_on(self):
        harness = Harness.waited(2, node(), g(), *members(2))
        harness.delete_foreign("volcano", "default/g")
        harness.wait(600, member("g-2"))
        assert not harness.gang("default/g").record.scheduled_at
        assert harness.bound() == ["default/g-0", "default/g-1"]
        assert told(harness, "g-2")[0] == "PodGroupNotFound"
        assert harness.evicted == []
        harness.wait(2, g(uid="another", min_member=3))
        assert len(harness.bound()) == 3


class TestSeveralSources:
    def test_a_podgroup_of_ours_that_agrees_is_joined(self):
        harness = Harness.waited(2, node(), group("g", min_member=2), g(max_schedule_time_s=9.0), *members(2))
        assert len(harness.bound()) == 2
        assert harness.status("default/g").source == "gangsched PodGroup, volcano PodGroup"
        assert harness.machine.assessments[KEY].terms.max_schedule_time_s == 9.0
        since = harness.gang("default/g").record.scheduled_at
        harness.wait(60)
        harness.delete_foreign("volcano", "default/g")
        harness.wait(60)
        assert harness.gang("default/g").record.scheduled_at == since

    @pytest.mark.parametrize(
        ("ours", "theirs", "counts"),
        [
            ({}, {"priority": 7}, 7),
            ({}, {"priority_class": "high"}, 1000),
            ({"priority": 5}, {"priority_class": "high"}, 5),
            ({"priority_class": "high"}, {"priority": 5}, 1000),
        ],
    )
    def test_the_priority_is_that_of_the_first_object_that_states_one(self, ours, theirs, counts):
        harness = Harness.of(node())
        harness.put_class("high", 1000)
        harness.wait(2, group("g", min_member=2, **ours), g(**theirs), *members(2))
        assert harness.machine.assessments[KEY].terms.priority == counts

    @pytest.mark.parametrize(
        ("ours", "theirs", "said"),
        [
            ({"min_member": 3}, {}, "minimum, 3 and 2"),
            ({"max_schedule_time_s": 60.0}, {"max_schedule_time_s": 90.0}, "longest wait, 1m and 90s"),
            (
                {"roles": (Role(name="a", min_member=1), Role(name="b", min_member=1))},
                {"roles": (Role(name="a", min_member=2),)},
                "roles, a 1, b 1 and a 2",
            ),
        ],
    )
    def test_one_that_differs_contradicts_until_either_goes(self, ours, theirs, said):
        harness = Harness.waited(2, node(), group("g", **{"min_member": 2} | ours), g(**theirs), *members(3))
        assert harness.bound() == []
        assert harness.condition("default/g").message == (
            f"The PodGroup and the volcano PodGroup of that name differ in their {said}: make them equal or delete "
            "one of them."
        )
        harness.delete_group("default/g")
        harness.wait(2)
        assert told(harness, "g-0")[0] != "Contradiction"

    def test_pods_that_say_another_minimum_contradict_the_object(self):
        harness = Harness.of(node(), g("scheduler-plugins", min_member=3))
        labels = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}
        harness.wait(2, *members(3, "scheduler-plugins", labels=labels))
        assert harness.bound() == []
        reason, message = told(harness, "g-0")
        assert reason == "Contradiction"
        assert message.startswith(
            "Group g: The scheduler-plugins PodGroup says minMember 3, the pods say 2 by the label "
        )


class TestRestart:
    def test_a_scheduled_group_is_known_as_such_and_a_lost_member_replaced_alone(self):
        harness = Harness.waited(600, node(cpu=3), g(min_member=3), *members(3))
        harness.delete("default/g-2")
        harness.restart()
        harness.wait(2)
        assert harness.gang("default/g").record.scheduled_at
        harness.wait(2, member("g-3", created=harness.now))
        assert "default/g-3" in harness.bound()
        assert harness.gang("default/g").record.minimum == 3
        assert harness.evicted == []


class TestHidden:
    WHY = "gangsched may not read podgroups.scheduling.volcano.sh: grant it."

    @pytest.mark.without("restarts", "leaderless", why="the story tells a watch what no list holds")
    def test_its_pods_wait_with_the_reason_and_others_go_on_and_they_are_bound_once_it_can_be_read(self):
        harness = Harness()
        harness.report(ForeignGroupsHidden("volcano", self.WHY))
        harness.wait(30, node(), *members(2), pod("plain", group=""))
        assert harness.bound() == ["default/plain"]
        assert told(harness, "g-0") == ("PodGroupUnreadable", f"Group g: {self.WHY}")
        harness.report(ForeignGroupsReplaced("volcano", (g(),)))
        harness.wait(2)
        assert len(harness.bound("default/g")) == 2


# Tests that the fault matrix refers to


@pytest.mark.parametrize("deleted", [True, False])
def test_deleted_or_hidden_while_part_of_the_quorum_is_bound_the_rest_is_bound_as_well(deleted):
    harness = Harness()
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "later") if effect.name == "g-1" else None
    )
    harness.settle(node("n1", cpu=1), node("n2", cpu=1), g(), *members(2))
    assert harness.bound() == ["default/g-0"]
    other = next(name for name in ("n1", "n2") if name != harness.pod("default/g-0").node)
    if deleted:
        harness.delete_foreign("volcano", "default/g")
    else:
        harness.report(ForeignGroupsHidden("volcano", "It cannot be read."))
    harness.settle()
    harness.refuse_bind = lambda _: None
    harness.delete_node(other)
    harness.settle()
    harness.wait(10, node("n3", cpu=1))
    assert len(harness.bound()) == 2
    assert harness.evicted == []


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", why="the story tells a watch what no list holds")
def test_hidden_for_a_while_a_scheduled_group_stays_one():
    harness = Harness.waited(2, node(), g(), *members(2))
    since = harness.gang("default/g").record.scheduled_at
    harness.report(ForeignGroupsHidden("volcano", "gangsched may not read it."))
    harness.wait(600, member("g-2"))
    assert told(harness, "g-2")[0] == "PodGroupUnreadable"
    harness.report(ForeignGroupsReplaced("volcano", (g(),)))
    harness.wait(2)
    assert len(harness.bound()) == 3
    assert harness.gang("default/g").record.scheduled_at == since
    assert harness.evicted == []
