"""Groups named by the labels and annotations of other schedulers, and what happens where those disagree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gangsched.core.objects.declaration import GroupKey, Role
from gangsched.core.objects.pod import Pod
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import group, node, pod, pods
from tests.harness import Harness

KOORDINATOR = "gang.scheduling.koordinator.sh"
PFNET = "gang-scheduling.preferred.jp/gang"
KUEUE = "kueue.x-k8s.io/pod-group-name"
YUNIKORN = "yunikorn.apache.org"
WORKERS = json.dumps([{"name": "worker", "minMember": 2}])


def speaking(name: str, annotations: dict[str, str], labels: dict[str, str] | None = None, **fields) -> Pod:
    """A pod with these labels and annotations, as the operator reads it."""
    return pod(name, group="", declaration=DEFAULT.declaration(labels or {}, annotations), **fields)


def koordinator(name: str, minimum: int | None = 2, **fields) -> Pod:
    least = {} if minimum is None else {f"{KOORDINATOR}/min-available": str(minimum)}
    return speaking(name, {f"{KOORDINATOR}/name": "g"} | least, **fields)


def yunikorn(name: str, *, task_groups: str = "", task_group: str = "", **fields) -> Pod:
    said = {f"{YUNIKORN}/task-groups": task_groups, f"{YUNIKORN}/task-group-name": task_group}
    return speaking(name, {key: text for key, text in said.items() if text}, {f"{YUNIKORN}/app-id": "g"}, **fields)


def told(harness: Harness, name: str) -> tuple[str, str]:
    found = harness.pod(f"default/{name}")
    return found.condition_reason, found.condition_message


class TestSparkOnYunikorn:
    """The driver lists the task groups, and makes its executors once it runs."""

    LISTED = json.dumps(
        [
            {"name": "driver", "minMember": 1, "minResource": {"cpu": "1"}},
            {
                "name": "executor",
                "minMember": 4,
                "minResource": {"cpu": "1", "memory": "1Gi"},
                "nodeSelector": {"pool": "spark"},
                "tolerations": [{"key": "spot", "operator": "Exists"}],
            },
        ]
    )

    def spark(self, name: str, role: str, **said: str) -> Pod:
        annotations = {f"{YUNIKORN}/task-group-name": role} | {f"{YUNIKORN}/{key}": text for key, text in said.items()}
        return speaking(name, annotations, {"spark-app-selector": "spark-1", "spark-role": role})

    def driver(self) -> Pod:
        return self.spark("driver", "driver", **{"task-groups": self.LISTED})

    def test_the_driver_is_bound_with_places_for_its_executors_which_take_them_when_they_come(self):
        harness = Harness()
        harness.add(node("n1", cpu=1), node("n2", cpu=4, labels={"pool": "spark"}, taints=["spot=a:NoSchedule"]))
        harness.wait(5, self.driver())
        assert harness.bound() == ["default/driver"]
        harness.add(pod("other", group="", node_selector={"pool": "spark"}, tolerations=["spot:NoSchedule"]))
        spot: dict[str, Any] = {"node_selector": {"pool": "spark"}, "tolerations": ["spot:"]}
        says = self.spark("e", "executor").declaration
        harness.wait(5, *(pod(f"e-{at}", memory="1Gi", declaration=says, **spot) for at in range(4)))
        assert len(harness.bound("default/e-")) == 4
        assert not harness.bound("default/other")


class TestOneDialect:
    @pytest.mark.parametrize(
        ("spec", "asked", "seconds"),
        [({"max_schedule_time_s": 300.0}, None, 300.0), ({}, None, 30.0), ({}, "60", 60.0), (None, None, 30.0)],
    )
    def test_pfnets_default_time_holds_where_neither_the_podgroup_nor_a_member_says_another(self, spec, asked, seconds):
        said = {f"{PFNET}-name": "g", f"{PFNET}-size": "2"}
        more = {f"{PFNET}-schedule-timeout-seconds": asked} if asked else {}
        harness = Harness.of(speaking("g-0", said), speaking("g-1", said | more))
        if spec is not None:
            harness.add(group("g", min_member=2, **spec))
        harness.settle()
        assessment = harness.machine.assessments[GroupKey("default", "g")]
        assert assessment.terms.hindrance is None
        assert assessment.terms.max_schedule_time_s == seconds

    def test_pods_of_another_scheduler_in_a_dialect_of_others_are_left_in_peace(self):
        harness = Harness.waited(60, node(), koordinator("g-0", scheduler="koord-scheduler"))
        assert harness.emitted == []
        assert harness.machine.gangs == {}
        harness.wait(60, pod("a-0", scheduler="koord-scheduler"))
        assert [event.reason for event in harness.emitted] == ["ForeignMember"]


class TestRolesFromPods:
    def test_the_task_groups_of_one_pod_are_the_roles_of_all(self):
        harness = Harness()
        listed = json.dumps([{"name": "driver", "minMember": 1}, {"name": "worker", "minMember": 2}])
        harness.add(node(), yunikorn("driver", task_groups=listed, task_group="driver"))
        harness.wait(2, *(yunikorn(f"extra-{number}") for number in range(3)), yunikorn("w-0", task_group="worker"))
        assert harness.bound() == [f"default/extra-{number}" for number in range(3)], "those have no group"
        assert told(harness, "driver")[0] == "GangIncomplete"
        spec = harness.machine.assessments[next(iter(harness.machine.gangs))].terms.spec
        assert (spec.minimum, spec.roles) == (3, (Role(name="driver", min_member=1), Role(name="worker", min_member=2)))
        harness.wait(2, yunikorn("w-1", task_group="worker"))
        assert len(harness.bound()) == 6

    def test_lists_that_differ_bind_nobody(self):
        harness = Harness()
        other = json.dumps([{"name": "worker", "minMember": 1}, {"name": "ps", "minMember": 1}])
        harness.add(node(), yunikorn("w-0", task_groups=WORKERS, task_group="worker"))
        harness.wait(2, yunikorn("w-1", task_groups=other, task_group="worker"))
        assert harness.bound() == []
        reason, message = told(harness, "w-0")
        assert reason == "Contradiction"
        assert message.endswith(
            f"disagree on the annotation {YUNIKORN}/task-groups; give all members that have it the same value."
        )

    def test_a_task_group_that_is_not_listed_is_told(self):
        harness = Harness.waited(2, node(), yunikorn("lead", task_groups=WORKERS), yunikorn("w-0", task_group="wroker"))
        assert told(harness, "w-0") == (
            "RoleUnknown",
            (
                "Group g: Pod w-0 names the role wroker, but the group g has only worker: correct the annotation "
                f"{YUNIKORN}/task-group-name or add the role to the annotation {YUNIKORN}/task-groups."
            ),
        )

    def test_a_podgroup_with_the_same_roles_is_joined(self):
        harness = Harness.of(node(), group("g", min_member=2, roles=(Role(name="worker", min_member=2),)))
        harness.wait(2, *(yunikorn(f"w-{number}", task_groups=WORKERS, task_group="worker") for number in range(2)))
        assert len(harness.bound()) == 2
        assert harness.status("default/g").source == "gangsched PodGroup, yunikorn pods"

    @pytest.mark.parametrize(
        ("roles", "said"),
        [
            (
                (Role(name="worker", min_member=1), Role(name="ps", min_member=1)),
                f"The PodGroup's roles are not those that the pods list by the annotation {YUNIKORN}/task-groups",
            ),
            (
                (Role(name="worker", min_member=3),),
                f"The PodGroup says minMember 3, the pods say 2 by the annotation {YUNIKORN}/task-groups",
            ),
        ],
    )
    def test_a_podgroup_with_other_roles_contradicts(self, roles, said):
        harness = Harness.of(node(), group("g", min_member=2, roles=roles))
        harness.wait(2, *(yunikorn(f"w-{number}", task_groups=WORKERS, task_group="worker") for number in range(3)))
        assert harness.bound() == []
        assert harness.condition("default/g").reason == "Contradiction"
        assert said in harness.condition("default/g").message


class TestSeveralDialects:
    @pytest.mark.parametrize("declared", [True, False])
    def test_members_by_different_dialects_may_be_two_groups_and_none_is_bound(self, declared):
        harness = Harness()
        harness.wait(2, node(), koordinator("k-0"), *pods("g", 2), *([group("g", min_member=2)] if declared else []))
        assert harness.bound() == []
        reason, message = told(harness, "k-0")
        assert reason == "Contradiction"
        assert "in different ways, by the annotation gang.scheduling.koordinator.sh/name and by the label" in message
        harness.delete("default/k-0")
        harness.wait(2, *([] if declared else [group("g", min_member=2)]))
        assert len(harness.bound()) == 2
