"""The leader dies at each boundary between two effects: afterwards every group is whole or entirely unbound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.devices import AllocatedDevice, Allocation
from gangsched.core.objects.effects import (
    BindPod,
    DeleteGroup,
    DropDemand,
    Effect,
    EmitEvent,
    EvictPod,
    MakeGroup,
    PatchStatus,
    PutCondition,
    PutDemand,
    PutPhase,
)
from gangsched.core.objects.events import Event, GroupSeen, NodeSeen, PodSeen, Synced
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.podgroup import ForeignGroup, Group, OnDegraded, SeenCondition, SeenPhase, TimeoutPolicy
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, OwnerSeen, PodBound, PrebindRefused, Refused
from gangsched.core.objects.volumes import StorageClass
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import claim, foreign_group, group, key, node, pod, pods, shape
from tests.effort import some
from tests.faulty import Faulty
from tests.gadgets import DRIVER, GPUS, device_claim, gpus
from tests.living import Death, Living
from tests.scenarios.test_shared_claims import NAMED, claims_without_their_group, member, native, shared
from tests.scenarios.test_spark import driver, executors

pytestmark = pytest.mark.without("all", why="these stories end the leader at every effect")
CHANNEL = {"resource_channel": "batch"}
SET = Owner("StatefulSet", "a", "set-a", "apps")
OTHER = Owner("StatefulSet", "b", "set-b", "apps")
RUNNING = SeenPhase("Running", ours=True)
"""What gangsched has written to another system's object of a group that is whole."""


@dataclass(frozen=True)
class Story:
    """A sequence of events, and the groups that run whole at its end.

    `repaired`: groups that were scheduled once lose no further members. `calm`: no pod is evicted unless bindings fail
    for a long time.
    """

    tell: Callable[[Living], None]
    whole: tuple[tuple[str, int], ...]
    repaired: bool = True
    calm: bool = False


def refuse(*names: str) -> Callable[[BindPod], BindRefused | None]:
    def answer(effect: BindPod) -> BindRefused | None:
        return BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "busy") if effect.name in names else None

    return answer


def five_at_once(harness: Living) -> None:
    harness.wait(5, node("n1", cpu=3), node("n2", cpu=3), group("a", min_member=5), *pods("a", 5, owner=SET))
    harness.run_pods()
    harness.wait(5)


def a_binding_refused(harness: Living) -> None:
    harness.refuse_bind = refuse("a-1")
    harness.wait(3, node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.refuse_bind = lambda _: None
    harness.wait(10)


def an_undo(harness: Living) -> None:
    harness.refuse_bind = refuse("a-2")
    harness.wait(25, node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.refuse_bind = lambda _: None
    harness.wait(30)


def an_undo_while_a_binding_waits(harness: Living) -> None:
    harness.withhold = lambda effect: effect.name == "a-2"
    harness.wait(31, node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.withhold = lambda _: False
    harness.wait(30)


def a_restart(harness: Living) -> None:
    harness.add(node("n1", cpu=3), group("a", min_member=3, on_degraded=OnDegraded.RESTART), *pods("a", 3, owner=SET))
    harness.wait(1)
    harness.run_pods()
    harness.wait(1)
    harness.retired.add("set-a")
    harness.delete("default/a-1")
    harness.wait(2.5)
    harness.retired.clear()
    harness.wait(30, pod("a-1", owner=SET, uid="again"))


def a_repair(harness: Living) -> None:
    harness.wait(1, node("n1", cpu=2), node("n2", cpu=2), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.run_pods()
    harness.delete_node("n1")
    for name in harness.bound():
        if harness.pod(name).node == "n1":
            harness.delete(name)
    harness.wait(4)
    harness.wait(10, node("n3", cpu=2))


def a_podgroup_deleted(harness: Living) -> None:
    harness.refuse_bind = refuse("a-2")
    harness.wait(3, node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.delete_group("default/a")
    harness.wait(3)
    harness.wait(30, group("a", min_member=3, uid="again", created=harness.server_time))
    harness.refuse_bind = lambda _: None
    harness.wait(20)


def two_that_race(harness: Living) -> None:
    harness.add(node("n1", cpu=3), node("n2", cpu=2), group("a", min_member=4), group("b", min_member=4))
    for number in range(4):
        harness.add(pod(f"a-{number}", owner=SET), pod(f"b-{number}", owner=OTHER, group="b"))
    harness.wait(5)
    harness.retired.add("set-a")
    harness.delete(*harness.bound("default/a-"))
    harness.delete_group("default/a")
    harness.wait(10)


def roles(harness: Living) -> None:
    both = (Role("driver", 1), Role("worker", 2))
    harness.refuse_bind = refuse("a-2")
    harness.add(node("n1", cpu=2), node("n2", cpu=2), group("a", min_member=1, roles=both))
    harness.add(pod("a-0", owner=SET, role="driver"))
    harness.wait(3, *(pod(f"a-{number}", owner=SET, role="worker") for number in (1, 2, 3)))
    harness.refuse_bind = lambda _: None
    harness.wait(10)


def places_held(harness: Living) -> None:
    shapes = (Role("driver", 1), Role("worker", 3, template=shape()))
    harness.add(node("n1", cpu=2), node("n2", cpu=2), group("a", min_member=4, roles=shapes))
    harness.wait(3, pod("a-0", owner=SET, role="driver"))
    if harness.bound("default/a-0"):
        harness.add(pod("envious", group="", priority=10, preempts=False))
        harness.after(90, lambda: harness.delete(*(["default/envious"] if harness.evicted else [])))
    harness.refuse_bind = refuse("a-2")
    harness.wait(3, *(pod(f"a-{number}", owner=SET, role="worker", created=harness.now) for number in (1, 2)))
    harness.refuse_bind = lambda _: None
    harness.wait(10, pod("a-3", owner=SET, role="worker", created=harness.now))


def an_application_of_spark(harness: Living) -> None:
    harness.serve_demands()
    harness.wait(3, node("n1", cpu=2, labels=CHANNEL), driver("a", executors=2, owner=SET, node_selector=CHANNEL))
    harness.wait(3, node("n2", cpu=4, labels=CHANNEL))
    harness.refuse_bind = refuse("a-exec-1")
    harness.wait(3, *executors("a", 2, owner=SET, node_selector=CHANNEL, created=harness.now))
    harness.refuse_bind = lambda _: None
    harness.wait(10)


def a_group_of_volcano(harness: Living) -> None:
    said = DEFAULT.declaration({}, {"scheduling.k8s.io/group-name": "a"})
    harness.refuse_bind = refuse("a-1")
    harness.add(node("n1", cpu=3), foreign_group("volcano", "default/a", min_member=3, phase=SeenPhase()))
    harness.wait(3, *pods("a", 3, owner=SET, declaration=said))
    harness.refuse_bind = lambda _: None
    harness.wait(10)


def a_native_group(harness: Living) -> None:
    """It does not fit at first, so its condition is False before it is True."""
    said = DEFAULT.declaration({}, {}, scheduling_group="a")
    harness.refuse_bind = refuse("a-1")
    harness.add(node("n1", cpu=2), foreign_group("native", "default/a", min_member=3, phase=SeenCondition()))
    harness.wait(3, *pods("a", 3, owner=SET, declaration=said))
    harness.wait(3, node("n2", cpu=1))
    harness.refuse_bind = lambda _: None
    harness.wait(10)


def two_runs(harness: Living, declared: Group | ForeignGroup, *, between_s: float, **said: Any) -> None:
    """A group is bound, all of its members go, and as many come."""
    harness.wait(3, node("n1", cpu=3), declared, *pods("a", 3, owner=SET, **said))
    harness.retired.add("set-a")
    harness.delete(*(f"default/{there.name}" for there in harness.pods.values()))
    harness.wait(between_s)
    harness.retired.clear()
    harness.wait(10, *(pod(f"a-{at}", uid=f"again-{at}", owner=SET, created=harness.now, **said) for at in range(3)))


def a_second_run(harness: Living) -> None:
    """It begins before the end of the first one is written."""
    two_runs(harness, group("a", min_member=3), between_s=0.1)


def a_second_run_of_a_native_group(harness: Living) -> None:
    """The group keeps the condition True of its first run."""
    said = DEFAULT.declaration({}, {}, scheduling_group="a")
    declared = foreign_group("native", "default/a", min_member=3, phase=SeenCondition())
    two_runs(harness, declared, between_s=3.0, declaration=said)


def two_jobs(harness: Living) -> None:
    """For one Job an eviction counts as a failure, so its members stay; for the other it does not."""
    harness.jobs["careless"] = OwnerSeen("careless", why="it counts evictions as failures")
    harness.refuse_bind = refuse("a-2", "b-2")
    harness.add(node("n1", cpu=6), group("a", min_member=3), group("b", min_member=3))
    harness.add(*pods("a", 3, owner=Owner("Job", "a", "job", "batch")))
    harness.wait(25, *pods("b", 3, owner=Owner("Job", "b", "careless", "batch")))
    harness.refuse_bind = lambda _: None
    harness.wait(30)


def volumes_that_are_awaited(harness: Living) -> None:
    """The nodes chosen first are gone before the volumes are provisioned for them."""
    harness.add(StorageClass("fast", "csi", waits=True, provisions=True))
    harness.add(*(claim(f"a-{number}", storage_class="fast", uid=f"claim-{number}") for number in range(3)))
    harness.disks.busy = True
    harness.add(node("n1", cpu=3), group("a", min_member=3))
    harness.wait(3, *(pod(f"a-{number}", owner=SET, volume_claims=[f"a-{number}"]) for number in range(3)))
    harness.delete_node("n1")
    harness.wait(5)
    harness.wait(3, node("n2", cpu=3))
    harness.disks.busy = False
    harness.disks.work()
    harness.wait(10)


def of_a_claim(harness: Living, least: int) -> None:
    """A native group of three pods that share a claim for one of the devices of n1; n0 has room and no device."""
    harness.add(node("n0", cpu=8), node("n1", cpu=3), native(NAMED, least=least, name="a"))
    harness.add(GPUS, gpus("n1", 2), device_claim("c"))
    harness.add(*(member(f"a-{at}", shared(group="a"), group="a", owner=SET) for at in range(3)))


def a_shared_claim(harness: Living) -> None:
    of_a_claim(harness, 2)
    harness.wait(5)
    harness.run_pods()
    harness.wait(5)


def an_undo_with_a_shared_claim(harness: Living) -> None:
    harness.refuse_bind = refuse("a-2")
    of_a_claim(harness, 3)
    harness.wait(25)
    harness.refuse_bind = lambda _: None
    harness.wait(30)


def a_shared_claim_without_hope(harness: Living) -> None:
    """The device of a second claim is taken while the first has been written; the group can never be bound."""
    second = {"name": "second", "resourceClaimName": "d"}
    harness.add(node("n1", cpu=3), native(NAMED, second, least=3, name="b"))
    harness.add(GPUS, gpus("n1", 2), device_claim("c"), device_claim("d"))
    harness.refuse_prebinding = lambda effect: (
        PrebindRefused(effect.uid, effect.prebinding, "no") if getattr(effect.prebinding, "claim", "") == "d" else None
    )
    uses = shared(group="b"), shared("d", name="second", group="b")
    harness.wait(3, *(member(f"b-{at}", *uses, group="b", owner=SET) for at in range(3)))
    had = AllocatedDevice("gpu", (DRIVER, "n1", "gpu-1"))
    harness.wait(10, device_claim("other", allocation=Allocation((had,)), reserved=("somebody",)))


def preempted(harness: Living, *, low: Sequence[Any], high: Sequence[Any]) -> None:
    """The group `low` leaves for a more important one, `a`, and finds room elsewhere later."""
    harness.put_class("high", 100)
    harness.wait(2, node("n1", cpu=4), *low)
    harness.wait(10, *high)
    if harness.bound("default/a-"):
        harness.add(node("n2", cpu=4))
    else:
        harness.after(60, lambda: harness.add(node("n2", cpu=4)))
    harness.wait(10)


def a_preemption(harness: Living) -> None:
    """A member above the minimum and a pod without a group leave, and a whole group."""
    surplus = [group("b", min_member=1), *pods("b", 2, owner=OTHER)]
    loose = [pod("loose", group="", owner=OTHER)]
    low = [group("low", min_member=1), pod("low-0", group="low", owner=SET)]
    high = [group("a", min_member=3, priority_class="high"), *pods("a", 3, owner=SET)]
    preempted(harness, low=[*surplus, *loose, *low], high=high)


def a_preemption_of_a_group(harness: Living) -> None:
    low = [group("low", min_member=4), *pods("low", 4, owner=OTHER)]
    high = [group("a", min_member=3, priority_class="high"), *pods("a", 3, owner=SET)]
    preempted(harness, low=low, high=high)


def a_preemption_without_podgroups(harness: Living) -> None:
    says = {name: Declaration(group=name, min_member=4) for name in ("a", "low")}
    low = [pod(f"low-{at}", declaration=says["low"], owner=OTHER) for at in range(4)]
    high = [pod(f"a-{at}", declaration=says["a"], owner=SET, priority=100) for at in range(4)]
    preempted(harness, low=low, high=high)


STORIES = {
    "five at once": Story(five_at_once, (("a", 5),), calm=True),
    "a binding refused": Story(a_binding_refused, (("a", 3),), calm=True),
    "an undo": Story(an_undo, (("a", 3),)),
    "an undo while a binding waits to be sent": Story(an_undo_while_a_binding_waits, (("a", 3),)),
    "a restart": Story(a_restart, (("a", 3),), repaired=False),
    "a repair": Story(a_repair, (("a", 3),)),
    "a PodGroup deleted": Story(a_podgroup_deleted, (("a", 3),)),
    "two that race": Story(two_that_race, (("b", 4),)),
    "roles": Story(roles, (("a", 3),), calm=True),
    "places held for members to come": Story(places_held, (("a", 4),), calm=True),
    "an application of Spark": Story(an_application_of_spark, (("a", 3),), calm=True),
    "a group of Volcano": Story(a_group_of_volcano, (("a", 3),), calm=True),
    "a native group": Story(a_native_group, (("a", 3),), calm=True),
    "a second run": Story(a_second_run, (("a", 3),), calm=True),
    "a second run of a native group": Story(a_second_run_of_a_native_group, (("a", 3),), calm=True),
    "volumes that are awaited": Story(volumes_that_are_awaited, (("a", 3),), calm=True),
    "two Jobs": Story(two_jobs, (("a", 3), ("b", 3)), repaired=False),
    "a claim that a native group shares": Story(a_shared_claim, (("a", 3),), calm=True),
    "an undo with a claim that a native group shares": Story(an_undo_with_a_shared_claim, (("a", 3),)),
    "a preemption": Story(a_preemption, (("a", 3), ("low", 1), ("b", 1)), repaired=False),
    "a preemption of a group": Story(a_preemption_of_a_group, (("a", 3), ("low", 4)), repaired=False),
    "a preemption without PodGroups": Story(a_preemption_without_podgroups, (("a", 4), ("low", 4)), repaired=False),
    "a claim of a native group that cannot be bound": Story(a_shared_claim_without_hope, ()),
}
TWICE = ("a binding refused", "an undo", "roles")
LATE_S = 3.0
LATE = BindPod | EvictPod | MakeGroup | PutDemand | DropDemand | PutPhase | PutCondition


def decided_by_a_fresh_one(harness: Living) -> list[str]:
    """The first decisions of a process that has just listed everything."""
    return sorted(map(repr, Machine(harness.policy).handle([*harness.lists(), Synced()], harness.now)))


class Crash:
    """How the leader dies each time and which process takes over. `died` is the time of the last death.

    With `hopeless`, no member can be bound any more until the repair deadline has passed.
    """

    def __init__(
        self, harness: Living, *, death: Death, times: list[int], heir: str, late: bool = False, hopeless: bool = False
    ) -> None:
        self.harness = harness
        self.heir = heir
        self.late = late
        self.hopeless = hopeless
        self.times = times
        self.died = 0.0
        self.dying: Effect | None = None
        self.kept: list[str] | None = None
        harness.death = death
        harness.succeed = self.follow
        harness.crash_in = times.pop(0)

    def answer(self, effect: BindPod) -> BindRefused | None:
        if self.hopeless and self.harness.now <= self.died + self.harness.policy.repair_deadline_s:
            return BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "busy")
        return None

    def follow(self, dying: Effect) -> None:
        harness = self.harness
        self.died, self.dying = harness.now, dying
        scheduled = any(found.status.scheduled_time for found in harness.groups.values())
        self.kept = list(harness.evicted) if scheduled else None
        harness.refuse_bind = self.answer
        harness.withhold = lambda _: False
        if self.late and isinstance(dying, LATE):
            harness.carry_out_late(dying, LATE_S)
        harness.carried = []
        harness.crash_in = self.times.pop(0) if self.times else None
        if self.heir == "restarted":
            harness.restart()
            return
        expected = decided_by_a_fresh_one(harness)
        harness.fail_over()
        assert sorted(map(repr, harness.history[-1][2])) == expected, "the standby decides otherwise"


def ends_well(harness: Living, story: Story, crash: Crash | None = None) -> None:
    """Run the story to its end and check that every group is whole."""
    story.tell(harness)
    if crash is not None and crash.died:
        left = crash.died + harness.policy.repair_deadline_s - harness.now
        harness.wait(max(0.0, left))
        assert harness.rule_one.partial() == [], "partly bound after the repair deadline"
        assert len(harness.bound("default/low-")) in (0, dict(story.whole).get("low", 0)), "a part of the group is left"
        if story.repaired and crash.kept is not None:
            assert harness.evicted == crash.kept, "a group that was scheduled is repaired, not undone"
    harness.wait(400)
    if story.calm and not (crash is not None and crash.hopeless):
        assert harness.evicted == []
    assert claims_without_their_group(harness) == []
    assert not harness.machine.cluster.ledger.reserved
    assert not any(found.status.record and found.status.record.preempted_at for found in harness.groups.values())
    for each in harness.foreign.values():
        assert each.phase.scheduled if isinstance(each.phase, SeenCondition) else each.phase in (None, RUNNING)
    for name, count in story.whole:
        assert len(harness.bound(f"default/{name}-")) >= count
        assert harness.gang(f"default/{name}").operations.bindings == {}
        if key(name) in harness.groups:
            assert harness.status(f"default/{name}").phase in ("Scheduled", "Running")


@pytest.mark.parametrize("name", STORIES)
def test_the_stories_themselves_end_well(name):
    ends_well(Living(), STORIES[name])


@cache
def rehearsed(name: str) -> list[tuple[Effect, bool]]:
    """The effects of a story in which the process never dies, each with whether it is the last one of its batch."""
    rehearsal = Living()
    STORIES[name].tell(rehearsal)
    last = [at == size for size in rehearsal.batches for at in range(1, size + 1)]
    return list(zip(rehearsal.carried, last, strict=True))


def test_the_process_dies_at_every_kind_of_effect():
    """The sweep below kills the process at each effect of each story; the stories cover every kind of effect.

    No gang depends on the deletion of a PodGroup that is finished: test_expired.py has its courses.
    """
    kinds = set(Effect.__subclasses__()) - {DeleteGroup}
    assert {type(effect) for name in STORIES for effect, _ in rehearsed(name)} == kinds


DEATHS = {
    "before an effect": (Death.BEFORE, False),
    "before the answer to an effect": (Death.AFTER, False),
    "with all but one effect of a batch done": (Death.AMID, False),
    "with an effect in the server's hands": (Death.BEFORE, True),
}


@pytest.mark.explores
@pytest.mark.parametrize(
    ("heir", "hopeless"),
    [
        pytest.param("restarted", False, id="restarted-all goes well afterwards"),
        pytest.param("restarted", True, id="restarted-nothing is bound afterwards"),
        # Its first decisions are compared with those of a restarted process, which meets refusals in the case above.
        pytest.param("standby", False, id="standby-all goes well afterwards"),
    ],
)
@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("name", STORIES)
def test_wherever_the_process_dies_the_groups_are_whole_or_wholly_unbound_in_time(name, death, heir, hopeless):
    where, late = DEATHS[death]
    for boundary, (effect, last) in some(list(enumerate(rehearsed(name))), draw=f"{name}, {death}, {heir}, {hopeless}"):
        if where is (Death.AMID if last else Death.AFTER):
            continue  # the same as a death before this effect, or before the next
        harness = Living()
        crash = Crash(harness, death=where, heir=heir, late=late, hopeless=hopeless, times=[boundary])
        try:
            ends_well(harness, STORIES[name], crash)
        except AssertionError as broken:
            raise AssertionError(f"died at effect {boundary}: {broken}") from broken
        assert type(crash.dying) is type(effect)


@pytest.mark.explores
@pytest.mark.parametrize("name", TWICE)
def test_a_second_death_during_the_recovery_changes_nothing(name):
    for first in some(range(len(rehearsed(name))), draw=name):
        second = 0
        while True:
            harness = Living()
            crash = Crash(harness, death=Death.BEFORE, heir="restarted", times=[first, second])
            try:
                ends_well(harness, STORIES[name], crash)
            except AssertionError as broken:
                raise AssertionError(f"died at effects {first} and {second}: {broken}") from broken
            if crash.harness.crash_in is not None:
                break
            second += 1


# Bugs found by these stories and by the property tests under faults


def test_a_binding_to_be_withdrawn_that_is_refused_is_not_sent_again_where_there_is_no_room():
    """A binding is in flight when another scheduler's pod takes the room. It should be withdrawn, but it has been sent
    and the API server does not respond. Regression: it was kept for a retry on the node that is full.
    """
    harness = Faulty()
    harness.settle(node("n1", cpu=1), group("a", min_member=1), pod("a-0", owner=SET))
    harness.foresee("bind", ["unavailable after a while"])
    harness.settle(node("n2", cpu=1), pod("a-1", owner=SET))
    harness.wait(30, pod("thief", group="", scheduler="default-scheduler", node="n2"))
    assert sum(isinstance(effect, BindPod) and effect.name == "a-1" for effect in harness.effects) == 1
    assert harness.machine.cluster.node_of("uid-default/a-1") == ""


def test_a_member_that_a_rival_bound_before_the_podgroup_was_seen_is_undone_with_it():
    """Another scheduler binds one of three members; only then does the PodGroup appear, which needs more than one.
    Regression: the operator forgot who had bound the member while the minimum was unknown, and the member stayed for
    ever.
    """
    harness = Living()
    harness.settle(node("n1", cpu=1), *pods("a", 3, owner=SET))
    harness.retired.add("set-a")
    harness.change("default/a-0", node="n1", bound_at=harness.now)
    harness.wait(1)
    harness.wait(31, group("a", min_member=3, created=harness.now))
    assert harness.evicted == ["default/a-0"]


def test_a_quorum_found_partly_bound_is_undone_though_its_podgroup_is_deleted_soon_after():
    """The process dies in the middle of a quorum; the next one finds it partly bound, and the PodGroup is deleted
    before the repair deadline. Regression: without a transaction the minimum was lost, and the bound part stayed for
    ever.
    """
    harness = Living()
    harness.refuse_bind = refuse("a-2")
    harness.wait(3, node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.restart()
    harness.wait(3)
    harness.delete_group("default/a")
    harness.wait(25)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


def test_members_made_again_all_at_once_begin_a_run_of_their_own():
    """All members of a scheduled group are deleted and created again, and the watch reports it in one batch.
    Regression: the new ones were taken for replacements and bound one by one, with room for two of three.
    """
    harness = Living()
    harness.settle(node("n1", cpu=3), group("a", min_member=3), *pods("a", 3, owner=SET))
    harness.add(node("n1", cpu=2))
    harness.delete("default/a-0", "default/a-1", "default/a-2")
    harness.wait(10, *(pod(f"a-{number}", owner=SET, uid=f"again-{number}") for number in range(3)))
    assert harness.bound() == []
    assert harness.status("default/a").phase == "Queued"


def test_an_undo_in_a_group_that_failed_for_good_does_not_keep_the_machine_busy():
    """A group times out under timeoutPolicy Fail, and another scheduler binds a member, which is rolled back.
    Regression: the end of the back-off that followed was a deadline that stayed due for ever.
    """
    harness = Living()
    harness.add(node("n1", cpu=1), group("a", min_member=2, timeout_policy=TimeoutPolicy.FAIL))
    harness.wait(61, *pods("a", 2, owner=SET))
    assert harness.status("default/a").phase == "Failed"
    harness.change("default/a-0", node="n1", bound_at=harness.now)
    harness.wait(100)
    assert harness.evicted == ["default/a-0"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("unavailable", "slow"), ("unavailable after a while", "slow"), ("unavailable after a while", "slower")],
)
def test_a_place_that_is_held_yields_to_a_binding_on_its_way_when_somebody_else_takes_the_room(first, second):
    """Of two bindings to one node one is slow and the other is refused, at once or after another scheduler's pod has
    taken the room of one. Regression: the refused one was counted first, found to fit, and sent again while the other
    was in flight, even if that one was being withdrawn and arrived all the same, before or after.
    """
    harness = Faulty()
    harness.settle(node("n1", cpu=1), group("a", min_member=1), pod("a-9", owner=SET))
    harness.foresee("bind", [first, second])
    harness.settle(node("n2", cpu=2), pod("a-0", owner=SET), pod("a-1", owner=SET))
    harness.wait(30, pod("thief", group="", scheduler="default-scheduler", node="n2"))
    assert harness.bound("default/a-") == ["default/a-1", "default/a-9"]


def test_a_member_above_the_minimum_that_is_bound_alone_is_undone_too():
    """Three members of a group with minMember 2 are placed in one cycle; both bindings of the quorum are refused, that
    of the third is not. Regression: only the quorum's members counted as begun, and the third stayed bound alone for
    ever.
    """
    harness = Living()
    harness.refuse_bind = refuse("a-0", "a-1")
    harness.settle(node("n1", cpu=3), group("a", min_member=2), *pods("a", 3, owner=SET))
    assert harness.bound() == ["default/a-2"]
    harness.wait(31, node("n1", cpu=1))
    assert harness.evicted == ["default/a-2"]


@pytest.mark.parametrize("which", [1, 2])
def test_a_run_that_begins_before_the_end_of_the_last_one_is_written_is_not_left_in_part(which):
    """All members are made again at once, and the leader dies amid their bindings. Regression: the status still said
    that the group was scheduled, so the next leader took what was bound for a group that had lost members.
    """
    name = "a second run"
    bindings = [at for at, (effect, _) in enumerate(rehearsed(name)) if isinstance(effect, BindPod)]
    harness = Living()
    died_at = bindings[3 + which]
    crash = Crash(harness, death=Death.BEFORE, heir="restarted", hopeless=True, times=[died_at])
    ends_well(harness, STORIES[name], crash)


def test_nothing_is_written_before_the_bindings_of_a_run_that_begins_after_the_end_of_the_last_one_is_written():
    harness = Living()
    two_runs(harness, group("a", min_member=3), between_s=3.0)
    written = [type(effect) for effect in harness.carried if not isinstance(effect, EmitEvent)]
    assert written == [*[BindPod] * 3, PatchStatus, PatchStatus, *[BindPod] * 3, PatchStatus]


def test_a_watch_that_is_behind_a_confirmed_binding_does_not_unbind_the_pod():
    """There is room for one: a is bound, the result arrives, the API server is killed and the lease is lost. In the
    next term the watch resumes where it was and shows a first as it was before its binding, then as it is; b waits.
    """
    first, second = Machine(Policy()), Machine(Policy())
    there: list[Event] = [NodeSeen(node("n1", cpu=1)), GroupSeen(group("a", min_member=1))]
    waiting: list[Event] = [PodSeen(pod("a")), PodSeen(pod("b", created=5.0))]

    decided = [first.handle([*there, *waiting, Synced()], 1.0), first.handle([PodBound("uid-default/a", "n1")], 2.0)]
    decided.append(second.handle([*first.facts(), *waiting, Synced()], 20.0))
    decided.append(second.handle([PodSeen(pod("a", node="n1"))], 21.0))

    bound = [[effect.name for effect in effects if isinstance(effect, BindPod)] for effects in decided]
    assert bound == [["a"], [], [], []]
