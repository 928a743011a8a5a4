"""Reservations for future members never exceed a node, outlive their gang, last for ever or stay unused."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from msgspec.structs import replace

from gangsched.core.declarations.minima import role_minima
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.declaration import Declaration, GroupKey, Role, Topology
from gangsched.core.objects.effects import BindPod, Effect, EvictPod, MakeGroup, PatchStatus
from gangsched.core.objects.events import Event
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import GroupSpec, OnDegraded, TimeoutPolicy
from gangsched.core.objects.policy import NamespaceLimits, Policy
from gangsched.core.objects.record import Phase
from gangsched.core.objects.results import (
    BindRefused,
    EvictionRefused,
    GroupNotMade,
    PodEvicted,
    Refused,
    StatusRefused,
)
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import node, pod, shape
from tests.harness import Harness
from tests.properties.stories import Story, effort

POLICY = Policy(default_max_schedule_time_s=20.0)
CAPPED = Policy(
    default_max_schedule_time_s=20.0,
    max_hold_s=7.0,
    namespace_limits=NamespaceLimits(held_percent=40, held_places=4, free_places=1, waiting_groups=1),
)
"""A policy with low caps."""
GROUPS = ("a", "b")
"""Groups with a PodGroup made by users."""
SPARK = "s"
"""A Spark application: its PodGroup is made from its driver's annotations."""
SET = Owner("StatefulSet", "s", "set", "apps")
EXECUTORS = 2


class Watched(Harness):
    """Checks the reservations at every step, and deletes evicted pods after a second."""

    def __init__(self, policy: Policy, *, seed: int | None) -> None:
        super().__init__(policy, seed=seed)
        self.partial: dict[GroupKey, float] = {}
        self.held = 0

    def _hand_over(self, events: list[Event]) -> list[Effect]:
        effects = super()._hand_over(events)
        self.check_limits()
        for key, gang in self.machine.gangs.items():
            self.check_places(gang)
            if self.is_partial(gang):
                since = self.partial.setdefault(key, self.now)
                assert self.now - since <= POLICY.repair_deadline_s, f"{key} has been bound in part for too long"
            else:
                self.partial.pop(key, None)
        held = {binding.pod.uid for gang in self.machine.gangs.values() for binding in gang.operations.placeholders()}
        assert held == {uid for uid, found in self.machine.cluster.pods.items() if not found.name}
        return effects

    def check_places(self, gang: Gang) -> None:
        """Reservations exist only beside a live member, and only until they expire."""
        if not gang.operations.placeholders():
            return
        assert gang.live(), f"{gang.key} holds places for nobody"
        record = gang.record
        sent = any(binding.state is BindState.SENT for binding in gang.operations.bindings.values())
        assert record.clock_start, f"{gang.key} holds places for ever"
        assert sent or self.now < record.clock_start + POLICY.default_max_schedule_time_s + 1, (
            "a place has outlived its time"
        )
        assert record.held_since <= self.now < record.held_since + self.policy.max_hold_s, "held for too long"

    def check_limits(self) -> None:
        """No namespace's reservations grow beyond its cap; the cap itself may shrink later, with the nodes."""
        cluster = self.machine.cluster
        places = [found.shape for found in cluster.pods.values() if not found.name]
        limits = self.policy.namespace_limits
        assert len(places) <= limits.held_places
        if self.held < len(places) and len(places) > limits.free_places:
            asked = sum(dict(place.requests).get("cpu", 0) for place in places)
            given = sum(dict(each.allocatable)["cpu"] for each in cluster.nodes.values())
            assert asked <= given * limits.held_percent / 100, "a namespace holds more than its share"
        self.held = len(places)

    def is_partial(self, gang: Gang) -> bool:
        """Whether a part of a quorum is bound while the rest is neither bound nor reserved (rule 1).

        Members that no controller would recreate may stay, as may those of a group that has hit a cap.
        """
        record = gang.record
        if record.scheduled_at or record.ended or record.quorum is None or record.capped is not None:
            return False
        begun = gang.begun()
        bound = [found for found in gang.live() if found.node]
        if any(found.owner is None for found in bound):
            return False
        reserved = len(gang.operations.unconfirmed())
        done = sum(number for _, number in gang.record.quorum_done)
        return any(found.uid in begun for found in bound) and len(bound) + reserved + done < record.quorum.total

    def excuse(self) -> None:
        """Restart the count: something keeps the machine from seeing or doing what it must."""
        self.partial = dict.fromkeys(self.partial, self.now)

    def _answer_eviction(self, effect: EvictPod) -> PodEvicted | EvictionRefused:
        self.after(1.0, lambda: self._end(effect.uid))
        return super()._answer_eviction(effect)

    def _end(self, uid: str) -> None:
        found = self.pods.get(uid)
        if found is not None:
            self.delete(f"default/{found.name}")

    def restart(self) -> None:
        self.excuse()
        super().restart()


class Places(Story):
    """Users who write templates and create members now or later, and what may happen to these."""

    harness: Watched

    def __init__(self) -> None:
        super().__init__()
        self.refusals = {"bind": 0, "status": 0, "making": 0}
        self.why = Refused.UNAVAILABLE
        self.lost = 0

    @initialize(
        seed=st.none() | st.integers(0, 2**16),
        cpus=st.lists(st.integers(3, 6), min_size=1, max_size=3),
        policy=st.sampled_from((POLICY, CAPPED)),
    )
    def begin(self, seed, cpus, policy):
        self.harness = Watched(policy, seed=seed)
        self.harness.refuse_bind = self.refuse_bind
        self.harness.refuse_status = self.refuse_status
        self.harness.refuse_making = self.refuse_making
        self.harness.lose_answer = self.lose_answer
        for cpu in cpus:
            self.add_node(cpu)
        self.harness.settle()

    def refuse_bind(self, effect: BindPod) -> BindRefused | None:
        return BindRefused(effect.uid, effect.node, self.why, "no") if self.refuses("bind") else None

    def refuse_status(self, effect: PatchStatus) -> StatusRefused | None:
        return StatusRefused(effect.key, stale=self.refusals["status"] % 2 == 0) if self.refuses("status") else None

    def refuse_making(self, effect: MakeGroup) -> GroupNotMade | None:
        return GroupNotMade(effect.key, "no") if self.refuses("making") else None

    def refuses(self, kind: str) -> bool:
        self.refusals[kind] -= 1
        return self.refusals[kind] >= 0

    def lose_answer(self, _: BindPod) -> bool:
        self.lost -= 1
        return self.lost >= 0

    # Users

    @rule(
        name=st.sampled_from(GROUPS),
        workers=st.integers(0, 3),
        more=st.integers(0, 2),
        cpu=st.integers(1, 2),
        policy=st.sampled_from((TimeoutPolicy.RETRY, TimeoutPolicy.RETRY, TimeoutPolicy.FAIL)),
        degraded=st.sampled_from((OnDegraded.REPAIR, OnDegraded.REPAIR, OnDegraded.RESTART, OnDegraded.IGNORE)),
        strategy=st.sampled_from(("Pack", "Spread", "MinimalFragmentation")),
        zone=st.sampled_from((None, None, Topology("zone"))),
        driver=st.sampled_from((None, shape(1))),
    )
    def write_group(self, *, name, workers, more, cpu, policy, degraded, strategy, zone, driver):
        roles = (
            Role("driver", 1, template=driver),
            Role("executor", workers, template=shape(cpu)),
        )
        spec = {
            "min_member": 1 + workers + (0 if driver else more),
            "roles": roles,
            "timeout_policy": policy,
            "on_degraded": degraded,
            "strategy": strategy,
            "topology": zone,
        }
        self.put_group(name, **spec)

    @rule(
        name=st.sampled_from((*GROUPS, SPARK)),
        workers=st.integers(1, 3),
        owned=st.booleans(),
        there=st.integers(0, 2),
        seconds=st.sampled_from((0.0, 1.0, 19.0)),
    )
    def begin_app(self, name, workers, owned, there, seconds):
        """Add a driver with room for its workers, some of which exist: many later steps meet reservations."""
        self.add_node(6, "z")
        if name != SPARK:
            self.write_group(
                name=name,
                workers=workers,
                more=0,
                cpu=1,
                policy=TimeoutPolicy.RETRY,
                degraded=OnDegraded.REPAIR,
                strategy="Pack",
                zone=None,
                driver=None,
            )
        self.harness.add(self.member(name, "driver", cpu=1, owner=SET if owned else None))
        for _ in range(there):
            self.harness.add(self.member(name, "executor", cpu=1))
        self.wait(seconds)

    @rule(name=st.sampled_from((*GROUPS, SPARK)))
    def delete_group(self, name):
        self.drop_group(name)

    @rule(
        name=st.sampled_from((*GROUPS, SPARK)),
        role=st.sampled_from(("driver", "executor", "executor")),
        count=st.integers(1, 3),
        cpu=st.sampled_from((1, 1, 2, 3)),
        gated=st.sampled_from((False, False, False, True)),
    )
    def add_members(self, name, role, count, cpu, gated):
        for _ in range(1 if role == "driver" else count):
            self.harness.add(self.member(name, role, cpu=cpu, gated=gated))

    def member(self, name: str, role: str, *, cpu: int, gated: bool = False, owner: Owner | None = SET) -> Pod:
        said = Declaration(name, role=role)
        if name == SPARK:
            wants = {"spark-executor-count": str(EXECUTORS), "spark-executor-cpu": "1", "spark-executor-mem": "0"}
            labels = {"spark-role": role, "spark-app-id": name}
            found = DEFAULT.declaration(labels, wants if role == "driver" else {})
            assert found is not None
            said = found
        return pod(self.name(), declaration=said, cpu=cpu, gated=gated, owner=owner, created=self.harness.server_time)

    @rule(count=st.integers(1, 4), priority=st.sampled_from((0, 100)))
    def add_plain(self, count, priority):
        for _ in range(count):
            self.harness.add(pod(self.name(), group="", priority=priority, created=self.harness.server_time))

    @rule(
        which=st.integers(0, 99), name=st.sampled_from(GROUPS), role=st.sampled_from(("driver", "executor", "", "odd"))
    )
    def relabel(self, which, name, role):
        found = self.some(which)
        if found is not None and found.declaration is not None:
            self.harness.add(replace(found, declaration=Declaration(name, role=role)))

    @rule(which=st.integers(0, 99))
    def open_gate(self, which):
        found = self.some(which, bound=False)
        if found is not None:
            self.harness.add(replace(found, gated=False))

    # Nodes

    @rule(cpu=st.integers(1, 6), zone=st.sampled_from(("", "z")))
    def add_node(self, cpu, zone=""):
        if len(self.harness.nodes) < 4:
            self.harness.add(node(self.name(), cpu=cpu, labels={"zone": zone} if zone else {}))

    @rule(which=st.integers(0, 9), how=st.sampled_from(("gone", "cordoned", "relabelled", "foreign pod")))
    def worsen_node(self, which, how):
        # Another scheduler may overfill a node before the watch shows it, which gangsched cannot prevent.
        self.harness.settle()
        names = sorted(self.harness.nodes)
        if not names:
            return
        old = self.harness.nodes[names[which % len(names)]]
        if how == "gone":
            self.harness.delete_node(old.name)
        elif how == "cordoned":
            self.harness.add(replace(old, unschedulable=not old.unschedulable))
        elif how == "relabelled":
            self.harness.add(replace(old, labels=(("zone", self.name()),)))
        elif self.room(old.name) > 0:
            self.harness.add(pod(self.name(), group="", cpu=1, scheduler="other", node=old.name))
        self.harness.settle()

    def room(self, name: str) -> int:
        """CPUs without a binding, made or in flight."""
        on_their_way = [
            binding.pod
            for gang in self.harness.machine.gangs.values()
            for binding in gang.operations.bindings.values()
            if binding.node == name and not binding.placeholder
        ]
        there = {found.uid: found for found in self.harness.pods.values() if found.node == name and not found.terminal}
        there |= {found.uid: found for found in on_their_way}
        asked = sum(dict(found.shape.requests).get("cpu", 0) for found in there.values())
        return (dict(self.harness.nodes[name].allocatable)["cpu"] - asked) // 1000

    # The API server and the process

    @rule(
        kind=st.sampled_from(("bind", "bind", "status", "making")),
        times=st.integers(1, 6),
        why=st.sampled_from((Refused.UNAVAILABLE, Refused.FORBIDDEN)),
    )
    def refuse(self, kind, times, why):
        self.refusals[kind], self.why = times, why

    @rule(times=st.integers(1, 2))
    def lose_answers(self, times):
        self.lost = times

    @rule(seconds=st.sampled_from((1.0, 25.0)))
    def withhold(self, seconds):
        self.harness.withhold = lambda _: True
        self.harness.wait(seconds)
        self.harness.withhold = lambda _: False
        self.harness.excuse()
        self.harness.send_withheld()

    @rule(seconds=st.sampled_from((0.0, 0.0, 1.0, 3.0, 15.0, 19.9, 31.0)))
    def wait(self, seconds):
        self.harness.wait(seconds)

    @rule()
    def restart(self):
        self.harness.restart()

    def end(self) -> None:
        self.refusals = dict.fromkeys(self.refusals, 0)
        self.lost = 0
        harness = self.harness
        harness.wait(100)
        for _ in range(3):
            harness.add(node(self.name(), cpu=64, labels={"zone": "z"}))
        for key in [key for key, found in harness.groups.items() if not found.made]:
            self.complete(key)
        harness.wait(700)
        for key in [key for key, found in harness.groups.items() if not found.made]:
            gang = harness.machine.gangs[key]
            assert gang.record.phase in (Phase.SCHEDULED, Phase.RUNNING), (
                f"{key} has room and all members and is {gang.record.phase}"
            )
        for gang in harness.machine.gangs.values():
            assert not gang.operations.unconfirmed(), "a place or a binding never ended"
        assert all(found.name for found in harness.machine.cluster.pods.values())
        for found in harness.groups.values():
            assert found.status.reservation is None
        self.check_replay()

    def complete(self, key: GroupKey) -> None:
        """Replace a group's pods by the members of its quorum, under plain policies."""
        harness = self.harness
        spec = harness.groups[key].spec
        assert isinstance(spec, GroupSpec)
        mine = [found for found in harness.pods.values() if found.declaration and found.declaration.group == key.name]
        harness.delete(*(f"default/{found.name}" for found in mine))
        harness.change_spec(str(key), on_degraded=OnDegraded.REPAIR, timeout_policy=TimeoutPolicy.RETRY, topology=None)
        minima = Counter(role_minima(spec))
        minima["executor"] += spec.minimum - minima.total()
        for role, number in minima.items():
            for _ in range(number):
                harness.add(self.member(key.name, role, cpu=1))


TestPlaces = Places.TestCase
TestPlaces.settings = effort(steps=30)
