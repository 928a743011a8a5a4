"""Crowds that one tenant can create: no call of the machine costs more because of them, and nothing floods anybody."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

import pytest
from msgspec.structs import replace

from bench import bytecodes
from gangsched.core.machine import Machine
from gangsched.core.membership import rechecking, restarts
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import BindPod, Effect, EmitEvent, WithdrawBinding
from gangsched.core.objects.events import (
    Event,
    ForeignGroupSeen,
    ForeignGroupsReplaced,
    GroupSeen,
    NodeSeen,
    PodGone,
    PodSeen,
    Synced,
    TimePassed,
)
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.podgroup import ForeignGroup, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.core.objects.shape import PodTerm, Requirement, Spread
from gangsched.core.objects.workload import Workload, WorkloadFacts
from gangsched.core.planning import budget as units
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.status import pod_events
from tests.builders import group, key, node, pod, pods, taint
from tests.harness import Harness
from tests.served import served_workload

pytestmark = pytest.mark.without("all", why="only the number is new, and most have no harness")


class Counted:
    """A machine, and the number of function calls that each call of it takes: a measure without a clock."""

    def __init__(self, *events: Event) -> None:
        self.machine = Machine(Policy())
        self.now = 1000.0
        self.machine.handle([*events, Synced()], self.now)
        self.work: list[int] = []
        self.effects: list[Effect] = []

    def handle(self, *events: Event) -> None:
        number = 0

        def count(_frame: FrameType, what: str, _arg: object) -> None:
            nonlocal number
            number += what in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            effects = self.machine.handle(events, self.now)
        finally:
            sys.setprofile(before)
        self.work.append(number)
        self.effects += effects

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while (due := self.machine.next_deadline()) is not None and due <= end:
            self.now = max(due, self.now)
            self.handle(TimePassed())
        self.now = end


def misspelt(number: int, groups: int) -> list[Event]:
    """Pods of as many groups, whose schedulerName nobody serves."""
    return [PodSeen(pod(f"p-{at}", group=f"g{at % groups}", scheduler="gang-sched")) for at in range(number)]


def told(counted: Counted) -> list[EmitEvent]:
    return [effect for effect in counted.effects if isinstance(effect, EmitEvent) and effect.reason == "ForeignMember"]


@contextmanager
def snapshots(monkeypatch: pytest.MonkeyPatch, module: object) -> Iterator[list[int]]:
    """The number of snapshots that the module takes."""
    taken = [0]

    def snapshot(*args: object, **kwargs: object) -> Snapshot:
        taken[0] += 1
        return Snapshot(*args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(module, "Snapshot", snapshot)
        yield taken


# Pods that no scheduler notices


@pytest.mark.parametrize("pods_of_a_group", [1, 400])
def test_pods_that_nobody_schedules_cost_as_much_each_however_many_there_are(pods_of_a_group):
    work = {}
    for number in (100, 400):
        counted = Counted()
        counted.handle(*misspelt(number, max(1, number // pods_of_a_group)))
        counted.wait(100)
        work[number] = sum(counted.work)
    assert work[400] < 5 * work[100]


def test_pods_that_nobody_schedules_share_the_budget_of_calls(monkeypatch):
    monkeypatch.setattr(units, "CALL", 16_000)
    counted = Counted()
    counted.handle(*misspelt(700, 700))
    counted.handle(TimePassed())  # whose the groups are is settled
    counted.work.clear()
    counted.wait(20)
    assert len(counted.work) > 8
    assert max(counted.work) < 6_000
    counted.wait(100)
    assert counted.machine.validate() == []


def test_a_new_leader_looks_at_pods_that_nobody_schedules_within_its_budget(monkeypatch):
    monkeypatch.setattr(units, "CALL", 16_000)
    counted = Counted(*misspelt(400, 400))
    counted.wait(10)
    assert max(counted.work) < 6_000
    counted.wait(20)
    assert told(counted)


def test_of_one_groups_pods_that_nobody_schedules_one_is_told():
    counted = Counted()
    counted.handle(*misspelt(50, 1))
    counted.wait(100)
    assert [event.name for event in told(counted)] == ["p-0"]
    counted.handle(PodGone("uid-default/p-0"))
    counted.handle(PodSeen(pod("p-0", group="g0", scheduler="gang-sched", uid="again")))
    counted.wait(100)
    assert len(told(counted)) == 2


def test_events_on_pods_that_nobody_schedules_keep_to_the_limit_and_end_after_a_minute(monkeypatch):
    monkeypatch.setattr(pod_events, "PER_S", 2)
    counted = Counted()
    counted.handle(*misspelt(200, 200))
    counted.wait(20.9)
    assert len(told(counted)) <= 2
    counted.wait(100)
    assert 100 < len(told(counted)) <= 130
    assert counted.machine.validate() == []


def test_pods_of_other_schedulers_that_name_a_group_are_told_by_name_not_by_number():
    harness = Harness.of(node(), group("a", min_member=2), pod("a-0"))
    harness.wait(60, *(pod(f"x-{at}", group="a", scheduler="default-scheduler") for at in range(50)))
    assert len(harness.events("ForeignMember")) == 1
    harness.wait(3, *(pod(f"y-{at}", group="a", scheduler=f"other-{at}", created=9.0) for at in range(50)))
    assert 2 <= len(harness.events("ForeignMember")) <= 10
    assert len(harness.condition("default/a").message) < 300


# A pod of another scheduler in a large group


def test_a_pod_of_another_scheduler_makes_events_of_a_large_groups_members_no_dearer():
    work = []
    for foreign in (0, 1):
        counted = Counted(NodeSeen(node(cpu=2000, pods=2000)), GroupSeen(group("a", min_member=1)))
        members = [replace(each, node="n1") for each in pods("a", 1000)]
        counted.handle(*map(PodSeen, members))
        counted.handle(*(PodSeen(pod(f"x-{at}", group="a", scheduler="other", created=9.0)) for at in range(foreign)))
        counted.wait(60)
        counted.work.clear()
        for member in members[:20]:
            counted.handle(PodSeen(replace(member, labels=(("x", "y"),))))
        work.append(sorted(counted.work)[10])
    assert work[1] < work[0] + 200


# Nodes that become worse while bindings are on their way


def on_their_way(number: int) -> Counted:
    """A group with a binding on its way to each of as many nodes."""
    counted = Counted(*(NodeSeen(node(f"n{at}", cpu=1)) for at in range(number)))
    counted.handle(GroupSeen(group("a", min_member=number)), *map(PodSeen, pods("a", number)))
    assert sum(isinstance(effect, BindPod) for effect in counted.effects) == number
    return counted


def test_all_nodes_that_become_worse_in_a_call_are_rechecked_on_one_snapshot(monkeypatch):
    counted = on_their_way(20)
    with snapshots(monkeypatch, rechecking) as taken:
        counted.handle(*(NodeSeen(node(f"n{at}", cpu=1, labels={"x": "y"})) for at in range(20)))
    assert taken == [1]
    assert not [effect for effect in counted.effects if isinstance(effect, WithdrawBinding)]


def test_nodes_that_become_worse_are_rechecked_call_by_call_until_none_is_left(monkeypatch):
    counted = on_their_way(40)
    monkeypatch.setattr(units, "CALL", 160_000)
    closed = [NodeSeen(node(f"n{at}", cpu=1, taints=[taint("x:NoSchedule")])) for at in range(40)]
    counted.handle(*closed)
    withdrawn = [effect.uid for effect in counted.effects if isinstance(effect, WithdrawBinding)]
    assert 0 < len(withdrawn) < 20
    counted.wait(0.0)
    withdrawn = [effect.uid for effect in counted.effects if isinstance(effect, WithdrawBinding)]
    assert Counter(withdrawn) == Counter(each.uid for each in pods("a", 40))
    assert counted.machine.validate() == []


def test_members_that_keep_apart_are_all_found_to_fit_when_their_nodes_are_rechecked_together():
    """Spread over zones: none fits before those of the other zones are back."""
    harness = Harness()
    harness.withhold = lambda _: True
    harness.add(*(node(f"n{at}", labels={"zone": f"z{at % 3}"}) for at in range(6)))
    spread = [Spread(PodTerm("zone", (Requirement("app", "In", ("a",)),), ("default",)), max_skew=1)]
    harness.wait(1, group("a", min_member=6), *(pod(f"a-{at}", spread=spread, labels={"app": "a"}) for at in range(6)))
    assert sum(isinstance(effect, BindPod) for effect in harness.effects) == 6
    harness.wait(1, *(node(f"n{at}", labels={"zone": f"z{at % 3}", "x": "y"}) for at in range(6)))
    assert not [effect for effect in harness.effects if isinstance(effect, WithdrawBinding)]
    harness.send_withheld()
    harness.wait(2)
    assert len(harness.bound()) == 6


# Large groups


def test_our_own_status_does_not_end_the_pause_of_a_large_group():
    counted = Counted(NodeSeen(node(cpu=600, pods=600)), GroupSeen(group("a", min_member=1)))
    members = pods("a", 500)
    counted.handle(*map(PodSeen, members))
    counted.wait(5)
    before = counted.machine.assessments[key("a")]
    counted.handle(PodSeen(replace(members[0], labels=(("x", "1"),))))
    looked = counted.machine.assessments[key("a")]
    assert looked is not before
    counted.now += 0.001
    seen = counted.machine.gangs[key("a")].observed.group
    assert seen is not None
    status = counted.machine.gangs[key("a")].written.status
    assert status is not None
    counted.handle(
        GroupSeen(replace(seen, status=status, resource_version="2")),
        PodSeen(replace(members[1], labels=(("x", "1"),))),
    )
    assert counted.machine.assessments[key("a")] is looked
    counted.wait(0.1)
    assert counted.machine.assessments[key("a")] is not looked


# Groups that lose members


def test_all_groups_that_lose_members_in_a_call_hold_their_places_on_one_snapshot(monkeypatch):
    """A node is lost, and with it a member of each of ten Jobs; all ten places are held."""
    harness = Harness.of(node(cpu=20), group("b", min_member=4), *pods("b", 4))
    for at in range(10):
        harness.add(served_workload("job", f"t{at}", {"parallelism": 2, "completions": 2}))
        workload, owner = Workload("job", f"t{at}", None, f"uid-t{at}"), Owner("Job", f"t{at}", f"uid-t{at}", "batch")
        said = Declaration(f"t{at}", min_member=2)
        harness.add(*(pod(f"t{at}-{of}", declaration=said, owner=owner, workload=workload) for of in range(2)))
    harness.delete("default/b-0", "default/b-1", "default/b-2", "default/b-3")
    harness.wait(2)
    assert len(harness.bound()) == 20
    with snapshots(monkeypatch, restarts) as taken:
        harness.delete(*(f"default/t{at}-0" for at in range(10)))
        harness.step()
    assert taken == [1]
    held = [pod for pod in harness.machine.cluster.pods.values() if not pod.name]
    assert len(held) == 10


def test_a_large_gang_that_has_just_become_complete_goes_before_a_less_important_one_that_comes_with_its_last_members():
    """Regression: it was reconciled a moment ago, so it was put off, and the other one was bound before it."""
    machine = Machine(Policy())
    members = [PodSeen(pod(f"large-{at}", group="large")) for at in range(600)]
    machine.handle([NodeSeen(node(cpu=600, pods=2000)), Synced()], 100.0)
    machine.handle([GroupSeen(group("large", min_member=600, priority=10)), *members[:300]], 100.0)
    other = [GroupSeen(group("other", min_member=1)), PodSeen(pod("other-0", group="other"))]
    effects = machine.handle([*members[300:], *other], 100.001)
    effects += machine.handle([TimePassed()], 100.001)
    assert {effect.name.partition("-")[0] for effect in effects if isinstance(effect, BindPod)} == {"large"}


# Refused bindings


def test_refused_bindings_cost_as_much_each_however_many_there_are():
    """Regression: each of them looked at the bindings of all members, thousands of times thousands."""
    work = {}
    for number in (50, 200):
        machine = Machine(Policy())
        nodes = [NodeSeen(node(f"n{at}", cpu=50)) for at in range(number // 50)]
        members = [GroupSeen(group("a", min_member=number)), *map(PodSeen, pods("a", number))]
        sent = machine.handle([*nodes, *members, Synced()], 1000.0)
        refused = [BindRefused(each.uid, each.node, Refused.DENIED, "no") for each in sent if isinstance(each, BindPod)]
        assert len(refused) == number
        work[number] = bytecodes.counted(partial(machine.handle, refused, 1000.1)).total()
    assert work[200] < 5 * work[50]


# Changes of workloads


def test_many_changes_of_a_workload_at_once_mark_its_gang_once(monkeypatch):
    """The counts in a Job's status may change hundreds of times while the machine is busy, for thousands of pods."""
    touched: list[str] = []
    facts = WorkloadFacts("Job", api_version="batch/v1", size=4, completions=4, gang=True)
    job = ForeignGroup("job", key("a"), "uid-a", 0.0, GroupSpec(4), workload=facts)
    owner = Owner("Job", "a", "uid-a", "batch")
    workload = Workload("job", "a", Declaration("a", objects=("job",)), uid="uid-a")
    members = [pod(f"a-{at}", declaration=None, group="", owner=owner, workload=workload) for at in range(4)]
    counted = Counted(NodeSeen(node(cpu=8)), ForeignGroupsReplaced("job", ()))
    counted.handle(ForeignGroupSeen(job), *map(PodSeen, members))
    counted.wait(5)
    monkeypatch.setattr(Members, "touch", lambda _, uid: touched.append(uid))
    counted.handle(*(ForeignGroupSeen(replace(job, workload=replace(facts, succeeded=at))) for at in range(1, 20)))
    assert touched == [each.uid for each in members]
