"""The condition of each PodGroup by itself: in a tree, beside another group of its name, and of an automatic gang."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.effects import PatchPodCondition
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.policy import Policy
from gangsched.core.phases import LONGEST_RETRY_S
from tests.builders import node, pod
from tests.harness import Harness
from tests.scenarios.test_conditions import SCHEDULED, condition, puts, read
from tests.scenarios.test_native_of_jobs import ASKED, job, of_job
from tests.scenarios.test_trees import ROOT, bound, told
from tests.trees import inner, members_of


def leaf(name: str, parent: str = "", *, least: int = 3) -> ForeignGroup:
    """A PodGroup below `parent` without a condition."""
    above = {"parentCompositePodGroupName": parent} if parent else {}
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}} | above
    return read(spec, name=name, uid=f"uid-{name}")


def said(harness: Harness, name: str) -> tuple[bool, str] | None:
    found = condition(harness, name)
    return (found.scheduled, found.reason) if found is not None else None


class TestTrees:
    """kube-scheduler 1.37 writes it on every PodGroup of a tree (submitPodGroupAlgorithmResult in its
    pkg/scheduler/schedule_one_podgroup.go), and on no CompositePodGroup."""

    def test_none_before_an_attempt_then_false_and_true_once_the_tree_is_bound(self):
        harness = Harness.waited(60, inner("root"), leaf("pg1", "root"), leaf("pg2", "root"), *members_of("pg1", 3))
        assert puts(harness) == []
        harness.wait(5, node(cpu=3), *members_of("pg2", 3))
        assert said(harness, "pg1") == said(harness, "pg2") == (False, "Unschedulable")
        harness.wait(5, node("n2", cpu=3))
        assert condition(harness, "pg1") == condition(harness, "pg2") == SCHEDULED
        assert {(effect.key.name, effect.uid) for effect in puts(harness)} == {("pg1", "uid-pg1"), ("pg2", "uid-pg2")}

    def test_the_time_of_a_group_of_one_is_renewed_with_the_tree_that_it_is_a_part_of(self):
        harness = Harness.of(node(cpu=3), inner("root"), leaf("pg1", "root", least=2), leaf("pg2", "root", least=1))
        first = [*members_of("pg1", 2), *members_of("pg2", 1)]
        harness.wait(60, *first)
        harness.delete(*(f"default/{each.name}" for each in first))
        harness.wait(5)
        harness.wait(60, *(replace(each, uid=f"new-{each.uid}", created=harness.now) for each in first))
        then = {int(each.bound_at) for each in harness.pods.values()}
        assert {effect.key.name for effect in puts(harness) if effect.since in then} == {"pg1", "pg2"}

    def test_a_group_that_the_tree_does_not_need_is_scheduled_when_its_own_minimum_is_bound(self):
        harness = Harness.of(node(cpu=4), inner("root", least=1), leaf("pg1", "root"), leaf("pg2", "root", least=2))
        harness.wait(5, *members_of("pg1", 3))
        assert (condition(harness, "pg1"), condition(harness, "pg2")) == (SCHEDULED, None)
        harness.wait(40, *members_of("pg2", 1))
        assert condition(harness, "pg2") is None
        harness.wait(40, *members_of("pg2", 1, first=1))
        refused = condition(harness, "pg2")
        assert refused is not None
        assert (refused.scheduled, refused.reason) == (False, "Unschedulable")
        assert refused.message == told(harness, "pg2-0")[1]
        harness.wait(5, node("n2", cpu=1))
        assert condition(harness, "pg2") == SCHEDULED


class TestWhoseGroupItIs:
    def group(self) -> ForeignGroup:
        return replace(read({"schedulingPolicy": {"gang": {"minCount": 5}}}, name="train-7fk2p"), made_for="uid-train")

    @pytest.mark.parametrize(("before", "after"), [(ASKED, {}), ({}, ASKED)], ids=["native", "automatic"])
    def test_after_an_automatic_gang_has_become_a_native_one_or_the_other_way_round(self, before, after):
        harness = Harness()
        harness.label_namespace("default", before)
        harness.wait(60, node("n1", cpu=2), job(), self.group(), *(of_job(number, owned=True) for number in range(5)))
        assert said(harness, "train-7fk2p") == (False, "Unschedulable")
        harness.label_namespace("default", after)
        harness.wait(60)
        harness.wait(60, node("n2", cpu=5))
        assert len(harness.bound()) == 5
        assert condition(harness, "train-7fk2p") == SCHEDULED

    def test_after_a_group_has_joined_a_tree(self):
        harness = Harness.waited(60, node(cpu=2), leaf("pg1"), *members_of("pg1", 3))
        assert said(harness, "pg1") == (False, "Unschedulable")
        seen = harness.foreign[NATIVE, GroupKey("default", "pg1")].phase
        harness.wait(5, inner("root", least=1), replace(leaf("pg1", "root"), phase=seen))
        assert harness.machine.assessments.keys() == {ROOT}
        harness.wait(LONGEST_RETRY_S, node("n2", cpu=1))
        assert condition(harness, "pg1") == SCHEDULED


def test_once_a_pod_that_has_ended_is_gone_the_condition_is_written():
    harness = Harness.of(node(cpu=3), leaf("g"), *members_of("g", 3))
    harness.wait(60, *members_of("g", 1, first=3, scheduler="default-scheduler", phase=PodPhase.SUCCEEDED))
    assert puts(harness) == []
    harness.delete("default/g-3")
    harness.wait(5)
    assert condition(harness, "g") == SCHEDULED


@pytest.mark.without("standbys", "leaderless", "disorder", why="a leader fails by itself, at a given time")
def test_a_group_half_bound_before_a_long_time_without_a_leader_is_not_scheduled():
    harness = Harness.of(node(cpu=9), leaf("g"))
    harness.withhold = lambda effect: effect.name != "g-0"
    harness.wait(1, *members_of("g", 3))
    harness.withhold = lambda _: False
    harness.now += 400
    harness.add(pod("rival", group="", cpu=7, node="n1", scheduler="other"))
    harness.restart()
    harness.wait(300)
    assert bound(harness).get("g", 0) < 3
    found = condition(harness, "g")
    assert found is None or not found.scheduled


def test_members_say_what_the_declaration_lacks_now_and_not_what_it_lacked_before():
    """Nothing else says it where the group is another system's: first the PodGroup is missing, then what it names."""
    harness = Harness.waited(60, node(cpu=3), *members_of("pg1", 3))
    missing = {f"default/{each.name}": harness.pod(f"default/{each.name}") for each in members_of("pg1", 3)}
    assert {(each.condition_reason, "root" in each.condition_message) for each in missing.values()} == {
        ("PodGroupNotFound", False)
    }
    harness.wait(5, leaf("pg1", "root"))
    said_now = [harness.pod(name) for name in missing]
    assert {(each.condition_reason, "root" in each.condition_message) for each in said_now} == {
        ("PodGroupNotFound", True)
    }
    harness.effects.clear()
    harness.wait(120)
    assert [effect for effect in harness.effects if isinstance(effect, PatchPodCondition)] == []
    harness.wait(5, inner("root", least=1))
    assert bound(harness)


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader writes what it does not see")
@pytest.mark.parametrize("waited_s", [0, 60])
def test_a_sentence_that_was_lost_is_written_again_though_nothing_happens(waited_s: float) -> None:
    """The executor gives up after some attempts, and nobody else tells a group without a PodGroup."""
    harness = Harness.waited(waited_s, node(cpu=3), *members_of("pg1", 3))
    until = harness.now + 20
    harness.lose_unanswered = lambda effect: isinstance(effect, PatchPodCondition) and harness.now < until
    harness.wait(60 + 2 * Policy().message_interval_s, leaf("pg1", "root"))
    told = {pod.condition_message for pod in harness.pods.values()}
    assert len(told) == 1
    assert "root" in told.pop()
