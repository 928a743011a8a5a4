"""Groups with minResources start only once as much is free; their other members may come later, as in Spark."""

from __future__ import annotations

import pytest

from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import GPU, foreign_group, group, node, pod, pods
from tests.harness import Harness
from tests.served import served_group

NAMES = {
    "volcano": "scheduling.k8s.io/group-name",
    "scheduler-plugins": "",
    "koordinator": "gang.scheduling.koordinator.sh/name",
}
"""The annotations that name the application, except where a label does."""


def app(name: str = "app", dialect: str = "volcano", **resources: str) -> ForeignGroup:
    """The object of an application of which one member must exist."""
    spec = {"minMember": 1, "minResources": resources or {"cpu": "5"}}
    return served_group(dialect, name, spec)


def member(name: str, dialect: str = "volcano", **fields) -> Pod:
    """A member of the application before the hyphen."""
    whose = name.partition("-")[0]
    labels = {"scheduling.x-k8s.io/pod-group": whose} if dialect == "scheduler-plugins" else {}
    key = NAMES[dialect]
    return pod(name, declaration=DEFAULT.declaration(labels, {key: whose} if key else {}), **fields)


def executors(number: int, name: str = "app", *, first: int = 1) -> list[Pod]:
    return [member(f"{name}-{at}") for at in range(first, first + number)]


def told(harness: Harness, name: str = "app-0") -> str:
    return harness.pod(f"default/{name}").condition_message


def reason(harness: Harness) -> str:
    """Why the application does not start."""
    refusal = harness.gang("default/app").wait.refusal
    return refusal.reason if refusal is not None else ""


@pytest.mark.parametrize("dialect", NAMES)
class TestTheCheck:
    def test_with_room_for_all_the_driver_is_bound_and_its_executors_when_they_come(self, dialect):
        harness = Harness.waited(5, node(cpu=8), app(dialect=dialect), member("app-0", dialect))
        assert harness.bound() == ["default/app-0"]
        harness.wait(5, *(member(f"app-{at}", dialect) for at in range(1, 5)))
        assert len(harness.bound()) == 5
        assert harness.gang("default/app").record.phase == "Scheduled"

    def test_without_it_the_driver_waits_names_the_amount_and_starts_once_it_is_free(self, dialect):
        harness = Harness.waited(5, node(cpu=8), *pods("", 6))
        harness.wait(5, app(dialect=dialect), member("app-0", dialect))
        assert not harness.bound("default/app-0")
        assert harness.pod("default/app-0").condition_reason == "Unschedulable"
        assert "its minResources (cpu 5) are free: missing cpu 3" in told(harness)
        harness.delete("default/-0", "default/-1")
        harness.wait(20)
        assert not harness.bound("default/app-0")
        harness.delete("default/-2")
        harness.wait(20)
        assert harness.bound("default/app-0")


def test_more_than_the_present_nodes_have_is_never_free():
    harness = Harness.waited(5, node(cpu=2), node("n2", cpu=2), app(), member("app-0"))
    assert reason(harness) == "NeverFits"
    harness.wait(20, node("n3", cpu=1))
    assert harness.bound("default/app-0")


def test_what_is_free_on_nodes_that_take_no_new_pod_does_not_count_but_may_come():
    harness = Harness.waited(5, node(cpu=2), node("n2", cpu=4, unschedulable=True))
    harness.wait(5, app(), member("app-0"))
    assert not harness.bound()
    assert reason(harness) == "Unschedulable"
    harness.wait(20, node("n2", cpu=4, taints=["node.kubernetes.io/not-ready:NoSchedule"]))
    assert not harness.bound()
    harness.wait(20, node("n2", cpu=4, taints=["team=a:NoSchedule"]))
    assert harness.bound("default/app-0")


def test_each_resource_counts_and_a_resource_that_no_node_has_is_missing():
    harness = Harness.waited(5, node(cpu=9), app(**{"cpu": "5", GPU: "1"}), member("app-0"))
    assert f"missing {GPU} 1" in told(harness)
    harness.wait(20, node("n2", cpu=1, gpu=1))
    assert harness.bound("default/app-0")


def started() -> Harness:
    """The application one has started, and two waits because the rest of one's five CPUs is promised to it."""
    harness = Harness.waited(5, node(cpu=8), app("one"), member("one-0"))
    harness.wait(20, app("two"), member("two-0"))
    return harness


class TestPromises:
    """Two drivers that start together on room for one and a half would leave each other without executors."""

    def test_what_a_started_group_still_needs_is_not_free_for_the_start_of_another(self):
        harness = started()
        assert harness.bound() == ["default/one-0"]
        assert "cpu 4 of what is free is needed by groups that have started" in told(harness, "two-0")
        harness.wait(20, *executors(4, "one"))
        assert len(harness.bound()) == 5
        assert "missing cpu 2" in told(harness, "two-0")
        harness.run_pods()
        for at in range(5):
            harness.change(f"default/one-{at}", phase=PodPhase.SUCCEEDED)
        harness.wait(20)
        assert harness.bound("default/two-0")

    def test_executors_that_have_ended_were_there_and_nothing_is_promised_for_them_again(self):
        harness = Harness.waited(5, node(cpu=8), app("one"), member("one-0"), *executors(4, "one"))
        harness.run_pods()
        for at in range(1, 5):
            harness.change(f"default/one-{at}", phase=PodPhase.SUCCEEDED)
        harness.wait(20, app("two"), member("two-0"))
        assert harness.bound("default/two-0")

    def test_a_promise_that_shrinks_lets_another_group_start(self):
        harness = started()
        harness.wait(5, app("one", cpu="2"))
        assert harness.bound("default/two-0")

    @pytest.mark.parametrize("how", ["delete the object", "delete the driver"])
    def test_the_end_of_a_started_group_lets_another_one_start(self, how):
        harness = started()
        if how == "delete the object":
            harness.delete_foreign("volcano", "default/one")
        else:
            harness.delete("default/one-0")
        harness.wait(20)
        assert harness.bound("default/two-0")

    def test_groups_without_minresources_may_take_what_is_promised(self):
        harness = Harness.waited(5, node(cpu=8), app("one"), member("one-0"))
        harness.wait(5, *pods("", 7))
        assert len(harness.bound()) == 8


def test_a_podgroup_of_gangscheds_is_completed_by_the_objects_minresources():
    harness = Harness.waited(5, node(cpu=4), group("app", min_member=1), app(), member("app-0"))
    assert not harness.bound()
    harness.wait(20, node("n2", cpu=1))
    assert harness.bound("default/app-0")


def test_what_a_raised_minimum_adds_does_not_wait_for_the_minresources_to_be_free_again():
    harness = Harness.waited(5, node(cpu=6), app(), member("app-0"), *executors(1))
    assert len(harness.bound()) == 2
    harness.add(served_group("volcano", "app", {"minMember": 4, "minResources": {"cpu": "5"}}))
    harness.wait(5, *executors(2, first=2))
    assert len(harness.bound()) == 4


def test_objects_of_two_systems_with_different_minresources_contradict_each_other():
    harness = Harness()
    says = DEFAULT.declaration({}, {"scheduling.k8s.io/group-name": "g", "pod-group-name": "g"})
    cpu, more = (("cpu", 1000),), (("cpu", 2000),)
    harness.add(node(), foreign_group("volcano", "g", min_member=1, min_resources=cpu))
    harness.wait(5, foreign_group("kai", "g", min_member=1, min_resources=more), pod("g-0", declaration=says))
    assert harness.pod("default/g-0").condition_reason == "Contradiction"


def test_a_start_is_tried_whenever_anything_is_freed_however_many_members_there_are():
    """Regression: it was not where the nodes with what was freed had fewer places for pods than it has members."""
    harness = Harness.of(node("n1", cpu=500, pods=12), pod("busy", cpu=500, node="n1", group=""), node("n2", cpu=1))
    harness.add(foreign_group("volcano", "app", min_member=20, min_resources=(("cpu", 400_000),)))
    harness.add(*(member(f"app-{at}", cpu="1m") for at in range(20)))
    # As many others that the freed room helps partly hide it.
    for at in range(40):
        harness.add(group(f"g{at}", min_member=15), *pods(f"g{at}", 15, cpu=20 + at))
    harness.wait(5)
    assert harness.bound("default/app") == []
    harness.delete("default/busy")
    harness.wait(5)
    assert len(harness.bound("default/app")) == 20
