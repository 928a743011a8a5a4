"""Lost and recreated members of a scheduled group: their places are reserved against groups that wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gangsched.core.membership import restarts
from gangsched.core.membership.restarts import HOUR_S, MOST_S
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.faults import Fault
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.policy import NamespaceLimits, Policy
from gangsched.core.objects.workload import Workload
from gangsched.kube.workloads.workload_kind import Mark
from tests.builders import group, node, pod, pods
from tests.harness import Harness
from tests.served import KINDS, served_workload

SIZE, HOLD_S, SLOWLY_S = 4, 30.0, 12.0
SAID = {
    "job": Declaration("t", min_member=SIZE),
    "statefulset": Declaration("t", min_member=SIZE),
}

pytestmark = pytest.mark.without("all", why="a process that begins knows of no lost members")


class Race:
    """A scheduled gang of a workload, in a cluster with room for it alone, and a waiting group of one."""

    def __init__(self, kind: str = "job", *, policy: Policy | None = None) -> None:
        self.kind = kind
        self.made = 0
        self.harness = Harness(policy)
        self.harness.add(node(cpu=str(SIZE)))
        self.tell()
        self.make(SIZE)
        self.harness.settle()
        self.harness.wait(1, group("default/b", min_member=1), *pods("b", 1))

    def tell(self, *, uid: str = "uid-t", deleted: bool = False, status: Any = None, **spec: Any) -> None:
        """The watch shows the workload."""
        leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
        sizes = {"parallelism": SIZE, "completions": SIZE} if self.kind == "job" else {"replicas": SIZE}
        found = served_workload(self.kind, "t", {**sizes, **spec}, status=status, uid=uid, **leaving)
        self.harness.add(found)

    def make(self, number: int) -> None:
        """The controller creates this many pods."""
        title, api_group = ("Job", "batch") if self.kind == "job" else ("StatefulSet", "apps")
        for _ in range(number):
            fields: dict[str, Any] = {"declaration": SAID[self.kind], "created": self.harness.now}
            owner = Owner(title, "t", "uid-t", api_group)
            self.harness.add(
                pod(f"t-{self.made}", owner=owner, workload=Workload(self.kind, "t", None, "uid-t"), **fields)
            )
            self.made += 1

    def lose(self, number: int = SIZE, *, how: str = "gone") -> None:
        """This many members vanish or end."""
        for name in self.bound[:number]:
            if how == "terminating":
                self.harness.change(name, terminating=True)
            elif how == "gone":
                self.harness.delete(name)
            else:
                self.harness.change(name, phase=PodPhase(how))

    @property
    def bound(self) -> list[str]:
        return self.harness.bound("default/t-")

    @property
    def alive(self) -> list[Pod]:
        members = (each for each in self.harness.pods.values() if each.name.startswith("t-"))
        return [each for each in members if not each.terminal]

    @property
    def rival(self) -> bool:
        return bool(self.harness.bound("default/b-"))


@pytest.mark.parametrize("kind", ["job", "statefulset"])
@pytest.mark.parametrize("how", ["gone", "Failed"])
@pytest.mark.parametrize("number", [1, 3, SIZE])
def test_members_that_are_made_again_have_their_room_before_a_group_that_waits(kind: str, how: str, number: int):
    race = Race(kind)
    race.lose(number, how=how)
    race.harness.wait(SLOWLY_S)
    for _ in range(number):
        assert not race.rival
        race.make(1)
        race.harness.wait(1)
    assert (len(race.bound), race.rival) == (SIZE, False)


@pytest.mark.parametrize("made", ["while they terminate", "then"])
def test_members_that_terminate_before_they_are_gone_leave_their_places_to_the_new_ones(made: str):
    """The new pods of a Job arrive while the old ones terminate; those of a StatefulSet once each old one is gone."""
    race = Race()
    race.lose(how="terminating")
    race.harness.wait(1)
    old = race.bound
    if made == "while they terminate":
        race.make(SIZE)
    for name in old:
        race.harness.wait(SLOWLY_S)
        race.harness.delete(name)
        race.harness.settle()
        assert not race.rival
        if made == "then":
            race.make(1)
    race.harness.wait(1)
    assert (len(race.bound), race.rival) == (SIZE, False)


@pytest.mark.faults
def test_a_fault_holds_nothing_and_concerns_no_other_gang(monkeypatch: pytest.MonkeyPatch):
    race = Race()
    monkeypatch.setattr(restarts, "classify", lambda *_: {})
    race.lose(1)
    race.harness.wait(1)
    assert race.rival
    (found,) = race.harness.machine.take_faults()
    assert isinstance(found, Fault)
    assert (found.gang, type(found.error)) == ("default/t", KeyError)


def taken(race: Race) -> None:
    """A member vanishes, and another scheduler uses its room before anything is decided."""
    race.lose(1)
    race.harness.add(pod("other", group="", scheduler="other", node="n1"))


Deed = Callable[[Race], None]
NOT_HELD: dict[str, tuple[list[Deed], bool]] = {
    "of one that succeeded": ([lambda race: race.lose(1, how="Succeeded")], True),
    "on a node that refused the pod": (
        [lambda race: race.harness.change(race.bound[0], phase=PodPhase.FAILED, rejected=True)],
        True,
    ),
    "without a known workload": (
        [lambda race: race.harness.delete_foreign("job", "default/t"), lambda race: race.lose(1)],
        True,
    ),
    "of a gang of two workloads": (
        [
            lambda race: race.harness.change(race.bound[0], workload=Workload("job", "u", None, "uid-u")),
            lambda race: race.lose(2),
        ],
        True,
    ),
    "that another scheduler has taken": ([taken], False),
    "on a node that goes": ([lambda race: race.lose(1), lambda race: race.harness.delete_node("n1")], False),
}


@pytest.mark.parametrize(("deeds", "leaves_room"), NOT_HELD.values(), ids=NOT_HELD)
def test_no_place_is_held(deeds: list[Deed], *, leaves_room: bool):
    """What is left in the end may have room for the group that waits."""
    race = Race()
    for deed in deeds:
        deed(race)
        race.harness.settle()
    assert not race.harness.machine.cluster.holdings.of("default")
    assert race.rival is leaves_room


def test_a_member_above_the_minimum_has_no_place_held():
    race = Race()
    race.harness.add(node("n2", cpu="1"))
    race.harness.delete("default/b-0")
    race.make(1)
    race.harness.settle()
    race.lose(1)
    race.harness.settle()
    assert not race.harness.machine.cluster.holdings.of("default")


def test_only_what_the_minimum_needs_is_held_beside_members_that_terminate():
    """Six members with a minimum of four: two members are gone and four terminate."""
    race = Race("statefulset")
    race.harness.delete("default/b-0")
    race.harness.add(node("n2", cpu="2"))
    race.tell(replicas=SIZE + 2)
    race.make(2)
    race.harness.settle()
    names = race.bound
    race.harness.delete(*names[:2])
    for name in names[2:]:
        race.harness.change(name, terminating=True)
    race.harness.settle()
    assert (len(names), race.harness.machine.cluster.holdings.of("default")) == (SIZE + 2, {})


def test_places_of_members_that_are_lost_again_and_again_are_not_held_for_longer_than_allowed():
    race = Race()
    race.harness.delete("default/b-0")
    longest = 0.0
    began = race.harness.now
    race.lose(1)
    while race.harness.now < began + 2 * MOST_S:
        race.harness.wait(10)
        race.lose(1)
        race.harness.settle()
        if race.harness.machine.cluster.holdings.of("default"):
            longest = race.harness.now - began
        race.make(1)
    assert MOST_S - 10 <= longest <= MOST_S


def test_each_loss_begins_the_time_anew():
    race = Race()
    race.lose(1)
    race.harness.wait(HOLD_S - 1)
    race.lose(1)
    race.harness.wait(HOLD_S - 1)
    before = race.rival
    race.harness.wait(1)
    assert (before, race.rival) == (False, True)


@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "None"])
def test_a_new_leader_is_not_bound_beside_workers_that_still_terminate(policy: str):
    """One worker is not terminating yet, so the run goes on; where pods are recreated one by one, this is a repair."""
    harness = Harness()
    template = {"size": 3, "restartPolicy": policy}
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})
    harness.add(node(cpu="3"), served_workload("lws", "s", {"leaderWorkerTemplate": template}))
    carried = KINDS["lws"].workload(Mark("s", part="0", size=3))
    old, new = (
        [pod(f"s-{each}", uid=f"{run}-{each}", group="", workload=carried) for each in range(3)] for run in "ab"
    )
    harness.settle(*old)
    harness.delete("default/s-0")
    harness.change("default/s-1", terminating=True)
    harness.settle(new[0])
    alone = "default/s-0" in harness.bound()
    harness.change("default/s-2", terminating=True)
    harness.settle()
    harness.delete("default/s-1", "default/s-2")
    harness.settle()
    still_alone = "default/s-0" in harness.bound()
    harness.settle(*new[1:])
    assert (alone, still_alone) == ((True, True) if policy == "None" else (False, False))
    assert len(harness.bound("default/s-")) == 3


@pytest.mark.parametrize(("policy", "held_s"), [(None, HOLD_S), (Policy(restart_hold_s=3.0), 3.0)])
def test_what_is_not_made_again_is_held_for_no_longer_than_the_time(policy: Policy | None, held_s: float):
    race = Race(policy=policy)
    race.lose()
    race.harness.wait(held_s - 0.1)
    before = race.rival
    race.harness.wait(0.1)
    assert (before, race.rival) == (False, True)


ENDS: dict[str, dict[str, Any]] = {
    "deleted": {"deleted": True},
    "another of that name": {"uid": "another"},
    "suspended": {"suspend": True},
    "failed": {"status": {"conditions": [{"type": "Failed", "status": "True"}]}},
    "failing": {"status": {"conditions": [{"type": "FailureTarget", "status": "True"}]}},
    "complete": {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
    "none wanted": {"parallelism": 0},
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_held_for_a_workload_that_makes_no_pods(end: str, when: str):
    race = Race()
    if when == "before":
        race.tell(**ENDS[end])
        race.harness.settle()
    race.lose()
    race.harness.settle()
    race.tell(**ENDS[end])
    race.harness.settle()
    assert race.rival


def test_only_what_the_workload_still_wants_is_held():
    race = Race("statefulset")
    race.tell(replicas=SIZE - 1)
    race.harness.settle()
    race.lose(2)
    race.harness.settle()
    assert race.rival
    race.make(1)
    race.harness.settle()
    assert len(race.bound) == SIZE - 1


def test_no_more_is_held_than_the_namespace_may():
    limits = NamespaceLimits(held_percent=0, free_places=0)
    race = Race(policy=Policy(namespace_limits=limits))
    race.lose(1)
    race.harness.settle()
    assert race.rival


def test_a_group_holds_for_five_minutes_in_an_hour():
    race = Race(policy=Policy(restart_hold_s=MOST_S - 10))
    race.harness.delete("default/b-0")
    spans = []
    for _ in range(3):
        race.lose(1)
        began = race.harness.now
        race.harness.wait(1)
        while race.harness.machine.cluster.holdings.of("default"):
            race.harness.wait(1)
        spans.append(round(race.harness.now - began) - 1)
        race.make(1)
        race.harness.wait(1)
    race.harness.wait(HOUR_S)
    race.lose(1)
    race.harness.wait(1)
    assert spans == [MOST_S - 11, 9, 0]
    assert race.harness.machine.cluster.holdings.of("default")


def test_pods_that_nobody_declares_are_held_for_too():
    harness = Harness()
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})
    spec = {"replicas": SIZE, "podManagementPolicy": "Parallel"}
    harness.add(node(cpu=str(SIZE)), served_workload("statefulset", "t", spec))

    def members(first: int) -> None:
        owner = Owner("StatefulSet", "t", "uid-t", "apps")
        carried = KINDS["statefulset"].workload(Mark("t", "uid-t"))
        harness.add(
            *(
                pod(f"t-{number}", uid=f"{first}-{number}", group="", owner=owner, workload=carried)
                for number in range(SIZE)
            )
        )

    members(0)
    harness.settle()
    harness.settle(group("default/b", min_member=1), *pods("b", 1))
    harness.delete(*(f"default/t-{number}" for number in range(SIZE)))
    harness.wait(SLOWLY_S)
    held = not harness.bound("default/b-")
    members(1)
    harness.wait(1)
    assert (held, len(harness.bound("default/t-"))) == (True, SIZE)
