"""Members that their controller creates only once others are ready: their places are reserved, whatever else waits."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.core.objects.workload import Workload
from gangsched.kube.workloads.statefulset import ROLE
from gangsched.kube.workloads.workload_kind import Mark
from tests.builders import group, node, pod
from tests.harness import Harness
from tests.served import KINDS, served_workload

READY_S = 20.0
CONTAINERS = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}


def stateful_set(name: str = "web", *, replicas: int = 5, cpu: str = "1", **annotations: str) -> ForeignGroup:
    """A StatefulSet in the namespace default, whose pods are created one after the other."""
    notes = {f"gangsched.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
    return served_workload("statefulset", name, {"replicas": replicas, "template": template}, annotations=notes)


def replica(number: int, name: str = "web", **fields: Any) -> Pod:
    owner = Owner("StatefulSet", name, f"uid-{name}", "apps")
    workload = KINDS["statefulset"].workload(Mark(name, owner.uid, role=ROLE))
    labels = {"app": name, "controller-revision-hash": "1"}
    return pod(f"default/{name}-{number}", group="", owner=owner, workload=workload, labels=labels, **fields)


class Controller:
    """Creates the pods of StatefulSets as Kubernetes does: each once the previous one has been running for a while."""

    def __init__(self, harness: Harness, **fields: Any) -> None:
        self._harness = harness
        self._fields = fields

    def create(self, name: str = "web", *, replicas: int = 5, first: int = 0, **fields: Any) -> None:
        self._harness.add(stateful_set(name, replicas=replicas, **fields))
        self._next(name, first, replicas)

    def _next(self, name: str, number: int, replicas: int) -> None:
        if number < replicas:
            self._harness.add(replica(number, name, created=self._harness.now, **self._fields))
            self._harness.after(READY_S, lambda: self._look(name, number, replicas))

    def _look(self, name: str, number: int, replicas: int) -> None:
        last = self._harness.pod(f"default/{name}-{number}")
        if last.node and last.phase is PodPhase.RUNNING:
            self._next(name, number + 1, replicas)
            return
        if last.node:
            self._harness.add(replace(last, phase=PodPhase.RUNNING))
        self._harness.after(READY_S, lambda: self._look(name, number, replicas))


@pytest.fixture
def auto() -> Harness:
    return labelled(Harness())


def labelled(harness: Harness) -> Harness:
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})
    return harness


def bound(harness: Harness, name: str = "web") -> int:
    return sum(bool(each.node) for each in harness.pods.values() if each.name.startswith(f"{name}-"))


def held(harness: Harness, name: str = "web") -> int:
    """Number of places reserved for members that do not exist yet."""
    return len(harness.gang(f"default/statefulset.{name}").operations.placeholders())


def test_of_two_sets_with_room_for_one_one_becomes_whole_and_the_other_waits_whole(auto):
    auto.add(node(cpu="7"))
    controller = Controller(auto)
    controller.create("one")
    controller.create("two")
    for _ in range(12):
        auto.wait(READY_S)
        assert 0 in (bound(auto, "one"), bound(auto, "two"))
    assert sorted((bound(auto, "one"), bound(auto, "two"))) == [0, 5]


def test_what_a_pod_asks_for_counts_more_than_the_template(auto):
    auto.add(node("n1", cpu="6"), node("n2", cpu="5"))
    auto.settle(stateful_set(replicas=3, cpu="1"), replica(0, cpu=3))
    assert (bound(auto), held(auto)) == (1, 2)
    auto.settle(*(pod(f"plain-{number}", group="", created=auto.now) for number in range(5)))
    assert len(auto.bound("default/plain-")) == 2
    auto.settle(replica(1, cpu=3), replica(2, cpu=3))
    assert bound(auto) == 3
    assert not auto.events("TemplateMismatch")


def test_places_heed_what_members_ask_of_each_other(auto):
    apart = [PodTerm("host", (Requirement("controller-revision-hash", "In", ("1",)),), namespaces=("default",))]
    auto.add(*(node(f"n{number}", cpu="4", labels={"host": f"n{number}"}) for number in range(2)))
    auto.wait(2, stateful_set(replicas=3), replica(0, anti_affinity=apart))
    before = bound(auto)
    auto.settle(node("n2", cpu="4", labels={"host": "n2"}))
    after = (bound(auto), held(auto))
    auto.settle(replica(1, anti_affinity=apart))
    auto.settle(replica(2, anti_affinity=apart))
    assert (before, after) == (0, (1, 2))
    assert {each.node for each in auto.pods.values()} == {"n0", "n1", "n2"}
    assert not auto.events("TemplateMismatch")


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("PodGroup", "give the PodGroup a role with a template"),
        ("annotation", 'annotate it gangsched.io/gang: "true" instead of naming a group on its pods'),
    ],
)
def test_a_group_of_ones_own_without_a_template_says_why_its_members_do_not_come(kind, remedy):
    """Regression: who has no PodGroup was told to give it a role."""
    harness = Harness()
    harness.label_namespace("default", {})
    said = Declaration(group="a", min_member=None if kind == "PodGroup" else 5)
    if kind == "PodGroup":
        harness.add(group("default/a", min_member=5))
    owner = Owner("StatefulSet", "web", "uid-web", "apps")
    harness.wait(3, node(), stateful_set(), pod("default/web-0", declaration=said, owner=owner))
    told = harness.pod("default/web-0")
    assert told.condition_reason == "GangIncomplete"
    assert told.condition_message == (
        "Group a: 1 of 5 members exist; 4 more members are needed, or a lower minimum. The StatefulSet web "
        "creates each pod only once the "
        f"ones before it are ready: create the StatefulSet again with podManagementPolicy: Parallel, or {remedy}."
    )


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"cpu": "much"}, "uses spec.containers[].resources.requests (cpu: 'much' is not an amount)"),
        (7, "cannot be read (Expected `object | null`, got `int`"),
    ],
)
def test_a_template_that_cannot_be_honoured_is_named_with_the_remedy(auto, broken, why):
    containers = [{"name": "main", "resources": {"requests": broken}}]
    spec = {"replicas": 3, "template": {"spec": {"containers": containers}}}
    auto.wait(3, node(), served_workload("statefulset", "web", spec), replica(0))
    told = auto.pod("default/web-0")
    assert bound(auto) == 0
    assert told.condition_reason == "InvalidDeclaration"
    assert "StatefulSet web: no places can be reserved for pods that are created only once others are ready" in (
        told.condition_message
    )
    assert why in told.condition_message
    assert told.condition_message.endswith("create the StatefulSet again with podManagementPolicy: Parallel.")


def of_kind(kind: str, spec: dict[str, Any], status: dict[str, Any] | None = None) -> ForeignGroup:
    """The object w in the namespace default."""
    return served_workload(kind, "w", spec, status=status)


def of_role(kind: str, role: str, number: int = 0, *, size: int | None = None, **fields: Any) -> Pod:
    workload = KINDS[kind].workload(Mark("w", part="0" if kind == "lws" else "", role=role, size=size))
    return pod(f"default/{role}-{number}", group="", workload=workload, **fields)


def asking(cpu: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}


def vacant(harness: Harness, name: str) -> int:
    return len(harness.gang(f"default/{name}").operations.placeholders())


def leader_ready(size: int) -> ForeignGroup:
    template = {"size": size, "workerTemplate": asking("1")}
    return of_kind("lws", {"replicas": 2, "startupPolicy": "LeaderReady", "leaderWorkerTemplate": template})


def of_replica(worker: int, size: int, *, replica: int = 0, **fields: Any) -> Pod:
    """The leader, whose number is 0, or a worker of a replica that says this size."""
    mark = Mark("w", part=str(replica), role="worker" if worker else "leader", size=size, early=not worker)
    carried = KINDS["lws"].workload(mark)
    return pod(f"default/w-{replica}-{worker}", group="", workload=carried, labels={"w": str(replica)}, **fields)


def vacant_of(harness: Harness, replica: int = 0) -> int:
    return vacant(harness, f"lws.w.{replica}")


def test_a_replica_that_was_made_before_a_resize_holds_no_places_for_workers_that_never_come(auto):
    """Regression: the replica that a rolling update had made anew waited for 10 minutes for what these held."""
    auto.wait(5, node(cpu="8"), leader_ready(3), of_replica(0, 3), of_replica(0, 3, replica=1))
    auto.wait(5, *(of_replica(worker, 3, replica=replica) for replica in (0, 1) for worker in (1, 2)))
    auto.run_pods()
    auto.wait(5, leader_ready(5))
    before = bound(auto, "w"), vacant_of(auto), vacant_of(auto, 1)
    auto.delete(*(f"default/w-1-{worker}" for worker in range(3)))
    auto.wait(1)
    auto.wait(3, of_replica(0, 5, replica=1, uid="new"))
    assert before == (6, 0, 0)
    assert (bound(auto, "w"), vacant_of(auto), vacant_of(auto, 1)) == (4, 0, 4)
    auto.wait(3, *(of_replica(worker, 5, replica=1, uid=f"new-{worker}") for worker in range(1, 5)))
    assert (bound(auto, "w"), vacant_of(auto, 1)) == (8, 0)
    assert auto.status("default/lws.w.0").phase == "Running"


@pytest.mark.parametrize(("now", "expected"), [(5, 2), (3, 2), (2, 2)])
def test_a_replica_some_of_whose_workers_exist_holds_places_for_as_many_as_it_was_made_with(auto, now, expected):
    auto.wait(2, node(cpu="8"), leader_ready(4), of_replica(0, 4))
    auto.wait(2, of_replica(1, 4))
    auto.wait(2, leader_ready(now))
    assert (bound(auto, "w"), vacant_of(auto)) == (2, expected)
    auto.wait(2, of_replica(2, 4), of_replica(3, 4))
    assert (bound(auto, "w"), vacant_of(auto)) == (4, 0)


def test_a_leader_without_workers_has_places_for_as_many_as_the_object_says_now(auto):
    """It was made anew at its old revision."""
    auto.wait(2, node(cpu="8"), leader_ready(5), of_replica(0, 3))
    before = bound(auto, "w"), vacant_of(auto)
    auto.wait(2, of_replica(1, 5))
    assert (before, bound(auto, "w"), vacant_of(auto)) == ((1, 4), 2, 3)


def test_a_resize_while_a_replica_has_only_a_leader_adds_places_once_it_has_those_it_was_planned_with(auto):
    auto.wait(2, node(cpu="8"), leader_ready(3), of_replica(0, 3))
    auto.wait(2, leader_ready(5))
    before = bound(auto, "w"), vacant_of(auto)
    auto.wait(2, of_replica(1, 5), of_replica(2, 5))
    assert (before, bound(auto, "w"), vacant_of(auto)) == ((1, 2), 3, 2)
    auto.wait(2, of_replica(3, 5), of_replica(4, 5))
    assert (bound(auto, "w"), vacant_of(auto)) == (5, 0)


@pytest.mark.parametrize("lost", [1, 2])
def test_an_old_replica_gets_back_the_workers_that_it_has_lost_and_no_more(auto, lost):
    """The StatefulSet of its workers makes them again, for the size that it had."""
    auto.wait(2, node(cpu="8"), leader_ready(3), of_replica(0, 3))
    auto.wait(2, of_replica(1, 3), of_replica(2, 3))
    auto.wait(2, leader_ready(5))
    auto.delete(*(f"default/w-0-{worker}" for worker in range(1, 1 + lost)))
    auto.wait(2)
    auto.wait(2, *(of_replica(worker, 3, uid=f"again-{worker}") for worker in range(1, 1 + lost)))
    assert (bound(auto, "w"), vacant_of(auto)) == (3, 0)


def test_a_launcher_that_waits_for_its_workers_has_a_place(auto):
    types = {"Launcher": {"template": asking("2")}, "Worker": {"replicas": 2}}
    auto.add(of_kind("mpijob", {"mpiReplicaSpecs": types, "launcherCreationPolicy": "WaitForWorkersReady"}))
    auto.wait(2, node(cpu="3"), *(of_role("mpijob", "worker", number) for number in range(2)))
    before = bound(auto, "worker")
    auto.settle(node("n2", cpu="1"))
    assert (before, bound(auto, "worker"), vacant(auto, "mpijob.w")) == (0, 2, 1)
    auto.settle(of_role("mpijob", "launcher", cpu=2))
    assert bound(auto, "launcher") == 1


def replicated(name: str, *awaited: tuple[str, str]) -> dict[str, Any]:
    spec = {"parallelism": 2, "completions": 2, "template": asking("1")}
    return {
        "name": name,
        "template": {"spec": spec},
        "dependsOn": [{"name": other, "status": status} for other, status in awaited],
    }


def test_pods_that_follow_others_wait_until_the_object_shows_that_those_are_complete(auto):
    """Regression: the pods came before the object's status; the gang asked for none of them, and bound one by one."""
    spec = {"replicatedJobs": [replicated("load"), replicated("train", ("load", "Complete"))]}
    auto.settle(node(cpu="3"), of_kind("jobset", spec), *(of_role("jobset", "load", number) for number in range(2)))
    auto.run_pods()
    auto.run_pods(PodPhase.SUCCEEDED)
    auto.add(pod("other", group="", cpu="2", node="n1"), of_role("jobset", "train", 0), of_role("jobset", "train", 1))
    auto.wait(20)
    assert bound(auto, "train") == 0
    assert auto.pod("default/train-0").condition_reason == "OwnerUnknown"
    auto.wait(5, of_kind("jobset", spec, {"replicatedJobsStatus": [{"name": "load", "succeeded": 1}]}))
    assert bound(auto, "train") == 0
    auto.settle(node("n2", cpu="1"))
    assert bound(auto, "train") == 2


@pytest.mark.without("all", why="a restart forgets that a binding was withheld")
def test_a_clock_that_ran_while_all_members_were_there_ends_no_places(auto):
    auto.wait(20, node(cpu="2"), stateful_set(replicas=3), *map(replica, range(3)))
    auto.withhold = lambda effect: effect.name == "web-2"
    auto.settle(node("n2", cpu="1"))
    auto.delete("default/web-2")
    auto.settle()
    assert (bound(auto), held(auto)) == (2, 1)
    auto.wait(100)
    assert (bound(auto), held(auto)) == (2, 1)


def test_a_member_of_a_growing_set_that_does_not_fit_its_place_is_placed_elsewhere(auto):
    auto.settle(node(cpu="2"), stateful_set(replicas=1), replica(0))
    auto.settle(node("big", cpu="3"), stateful_set(replicas=3), replica(1))
    assert (bound(auto), held(auto)) == (2, 1)
    auto.settle(node("bigger", cpu="4"), replica(2, cpu=4))
    assert (bound(auto), held(auto)) == (3, 0)
    assert auto.pod("default/web-2").node == "bigger"


@pytest.mark.without("all", why="a process that begins knows of no lost members")
@pytest.mark.parametrize("declared", ["by nobody", "by a PodGroup"])
def test_a_set_that_loses_all_its_pods_at_once_gets_its_room_back_with_its_first_pod(auto, declared):
    """The controller creates the second pod only once the first runs, and a group of one waits for any room."""
    fields: dict[str, Any] = {}
    if declared == "by a PodGroup":
        roles = (Role("r", min_member=5, template=pod().shape),)
        auto.add(group("default/statefulset.web", min_member=5, roles=roles, max_schedule_time_s=600.0))
        named = Workload("statefulset", "web", None, "uid-web")
        fields = {"declaration": Declaration("statefulset.web", role="r"), "workload": named}
    auto.add(node(cpu="5"), stateful_set())
    auto.settle(*(replace(replica(number), **fields) for number in range(5)))
    whole = bound(auto)
    auto.settle(group("default/b", min_member=1), pod("b-0", group="b"))
    auto.delete(*(f"default/web-{number}" for number in range(5)))
    auto.wait(3)
    seen = []
    for number in range(5):
        auto.wait(1, replace(replica(number, uid=f"again-{number}", created=auto.now), **fields))
        seen.append((bound(auto), len(auto.bound("default/b-"))))
        auto.run_pods()
        auto.wait(READY_S)
    assert (whole, seen) == (5, [(number, 0) for number in range(1, 6)])


@pytest.mark.without("all", why="a process that begins knows of no lost members")
def test_first_pods_that_are_not_all_there_yet_do_not_take_the_room_back():
    """In an ordered JobSet the two pods of the first Job are created at once, those of the second once these run."""
    harness = labelled(Harness())
    jobs = [
        {"name": name, "template": {"spec": {"parallelism": 2, "completions": 2, "template": {"spec": CONTAINERS}}}}
        for name in ("a", "b")
    ]
    spec = {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": "InOrder"}}
    harness.add(node(cpu="4"), served_workload("jobset", "w", spec))

    def make(run: int, *numbers: int) -> None:
        for number in numbers:
            carried = KINDS["jobset"].workload(Mark("w", "uid-w", role="ab"[number // 2]))
            owner = Owner("Job", f"w-{number // 2}", "uid-job", "batch")
            uid = f"{run}-{number}"
            harness.add(pod(f"w-{number}", uid=uid, group="", owner=owner, workload=carried, created=harness.now))
        harness.wait(1)

    make(1, 0, 1, 2, 3)
    harness.wait(1, group("default/rival", min_member=1), pod("rival-0", group="rival"))
    harness.delete(*(f"default/w-{number}" for number in range(4)))
    harness.wait(1)
    seen = []
    for numbers in ((0,), (1,), (2,), (3,)):
        make(2, *numbers)
        seen.append((bound(harness, "w"), len(harness.bound("default/rival-"))))
    assert seen == [(0, 0), (2, 0), (3, 0), (4, 0)]


def test_a_set_that_is_scaled_to_0_is_suspended_and_comes_back_whole(auto):
    """The group's PodGroup is one that gangsched made, and shows the phase."""
    auto.wait(1, node(cpu="5"), stateful_set(), replica(0))
    for number in range(1, 5):
        auto.add(replica(number))
    auto.wait(2)
    whole = bound(auto)
    auto.add(stateful_set(replicas=0))
    for number in reversed(range(5)):
        auto.delete(f"default/web-{number}")
        auto.wait(1)
    auto.wait(2)
    told = auto.condition("default/statefulset.web")
    assert (whole, auto.status("default/statefulset.web").phase, held(auto)) == (5, "Suspended", 0)
    assert told.message.startswith("No member is left, because the StatefulSet web has 0 replicas: scale it up")
    auto.wait(2, stateful_set(), replica(0, uid="again-0"))
    assert (bound(auto), held(auto)) == (1, 4)
