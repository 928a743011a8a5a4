"""No gang stays half-bound, whatever fails: a faulty API server, crashes, rival schedulers and lost nodes."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.minima import role_minima
from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.effects import BindPod, EvictPod
from gangsched.core.objects.pod import Owner, role_of
from gangsched.core.objects.podgroup import OnDegraded, TimeoutPolicy
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Outcome, Phase
from gangsched.core.objects.results import OwnerSeen
from gangsched.core.objects.status import TIME
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from tests.builders import node, pod
from tests.faulty import BIND_MOODS, EVICT_MOODS, STATUS_MOODS, WATCHES, Faulty
from tests.living import Death
from tests.promises import is_live, key_of
from tests.properties.stories import Story, effort

POLICY = Policy(default_max_schedule_time_s=20.0)
HEIRS = ("restarted", "same process", "standby", "late standby")
GROUPS = ("a", "b", "c")
UNDECLARED = "d"
"""A group without a PodGroup: its members' annotations declare it."""
OWNERS = {
    "set": Owner("StatefulSet", "s", "set", "apps"),
    "job": Owner("Job", "j", "job", "batch"),
    "careless job": Owner("Job", "k", "careless", "batch"),
    "": None,
}
ROLES = (Role("r", 1), Role("s", 1))


class Faults(Story):
    """Users, controllers, rivals and accidents around one machine and its standby.

    Unless `replays`, the machine's decisions do not follow from its input alone.
    """

    harness: Faulty
    replays = True

    def __init__(self) -> None:
        super().__init__()

    @initialize(seed=st.none() | st.integers(0, 2**16), cpus=st.lists(st.integers(1, 4), min_size=1, max_size=3))
    def begin(self, seed, cpus):
        self.harness = Faulty(POLICY, seed=seed)
        self.harness.jobs["careless"] = OwnerSeen("careless", why="it counts evictions as failures")
        for cpu in cpus:
            self.add_node(cpu)
        self.harness.settle()

    def chosen(self, pod):
        return is_live(pod) and pod.declaration is not None

    # Users

    @rule(cpu=st.integers(1, 4))
    def add_node(self, cpu):
        if len(self.harness.nodes) < 4:
            self.harness.add(node(self.name(), cpu=cpu))

    @rule(
        name=st.sampled_from(GROUPS),
        size=st.integers(2, 4),
        minimum=st.integers(1, 4),
        roles=st.sampled_from(((), (), ROLES)),
        owner=st.sampled_from(("set", "set", "set", "job", "careless job", "")),
        degraded=st.sampled_from(OnDegraded),
        policy=st.sampled_from((TimeoutPolicy.RETRY, TimeoutPolicy.RETRY, TimeoutPolicy.FAIL)),
    )
    def add_gang(self, name, size, minimum, roles, owner, degraded, policy):
        self.write_group(name, minimum, roles, degraded, policy)
        names = ("r", "s") if roles else ("",)
        self.add_members(name, size, names, owner)

    @rule(
        name=st.sampled_from(GROUPS),
        lucky=st.integers(1, 2),
        roles=st.sampled_from(((), ROLES)),
        owner=st.sampled_from(("set", "set", "job", "careless job", "")),
        mood=st.sampled_from(("unavailable", "forbidden", "queued for long")),
        degraded=st.sampled_from((OnDegraded.REPAIR, OnDegraded.RESTART)),
        seconds=st.sampled_from((5.0, 19.5, 21.0, 31.0)),
    )
    def bind_in_part(self, name, lucky, roles, owner, mood, degraded, seconds):
        """A group with one or two bound members whose rest cannot be bound until after the repair deadline."""
        self.add_node(4)
        self.write_group(name, 3, roles, degraded, TimeoutPolicy.RETRY)
        self.harness.foresee("bind", [""] * lucky + [mood] * 40)
        self.add_members(name, 3, ("r", "s") if roles else ("",), owner)
        self.harness.wait(seconds)

    @rule(size=st.integers(2, 4), owner=st.sampled_from(("set", "")))
    def add_undeclared(self, size, owner):
        for found in self.harness.pods.values():
            if found.declaration is not None and found.declaration.group == UNDECLARED:
                return
        self.add_members(UNDECLARED, size, ("",), owner, minimum=3)

    @rule(
        name=st.sampled_from(GROUPS),
        size=st.integers(1, 2),
        roles=st.sampled_from((("",), ("r", "s"))),
        owner=st.sampled_from(("set", "job", "")),
    )
    def add_members(self, name, size, roles, owner, minimum=None):
        for number in range(size):
            said = Declaration(name, role=roles[number % len(roles)], min_member=minimum)
            self.harness.add(pod(self.name(), declaration=said, owner=OWNERS[owner], created=self.harness.server_time))

    @rule(
        name=st.sampled_from(GROUPS),
        minimum=st.integers(1, 4),
        roles=st.sampled_from(((), ROLES)),
        degraded=st.sampled_from(OnDegraded),
        policy=st.sampled_from(TimeoutPolicy),
    )
    def write_group(self, name, minimum, roles, degraded, policy):
        spec = {"min_member": minimum, "roles": roles, "on_degraded": degraded, "timeout_policy": policy}
        self.put_group(name, **spec)

    @rule(name=st.sampled_from(GROUPS))
    def delete_group(self, name):
        self.drop_group(name)

    @rule(name=st.sampled_from((*GROUPS, UNDECLARED)))
    def delete_members(self, name):
        """Delete all members at once; their controllers recreate them."""
        for found in list(self.harness.pods.values()):
            if found.declaration is not None and found.declaration.group == name:
                self.harness.delete(f"default/{found.name}")

    # Kubelets, other schedulers, accidents

    @rule(which=st.integers(0, 9), cpu=st.integers(1, 2))
    def foreign_pod(self, which, cpu):
        names = sorted(self.harness.nodes)
        if names:
            landed = names[which % len(names)]
            self.harness.add(pod(self.name(), group="", cpu=cpu, scheduler="default-scheduler", node=landed))

    @rule()
    def foreign_pods_end(self):
        for found in list(self.harness.pods.values()):
            if found.declaration is None:
                self.harness.delete(f"default/{found.name}")

    @rule(which=st.integers(0, 99), where=st.integers(0, 9))
    def rival_binds(self, which, where):
        found = self.some(which, bound=False)
        names = sorted(self.harness.nodes)
        if found is not None and names:
            self.harness.add(replace(found, node=names[where % len(names)], bound_at=self.harness.server_time))

    @rule(which=st.integers(0, 9))
    def lose_node(self, which):
        names = sorted(self.harness.nodes)
        if not names:
            return
        lost = names[which % len(names)]
        self.harness.delete_node(lost)

        def collect() -> None:
            if lost not in self.harness.nodes:
                for found in list(self.harness.pods.values()):
                    if found.node == lost:
                        self.harness.delete(f"default/{found.name}")

        self.harness.after(5.0, collect)

    # The API server

    @rule(moods=st.lists(st.sampled_from(BIND_MOODS), min_size=1, max_size=8))
    def bind_moods(self, moods):
        self.harness.foresee("bind", moods)

    @rule(moods=st.lists(st.sampled_from(("unavailable", "forbidden", "")), min_size=1, max_size=2), times=st.just(20))
    def refuse_for_long(self, moods, times):
        self.harness.foresee("bind", moods * times)

    @rule(moods=st.lists(st.sampled_from(EVICT_MOODS), min_size=1, max_size=4))
    def evict_moods(self, moods):
        self.harness.foresee("evict", moods)

    @rule(moods=st.lists(st.sampled_from(STATUS_MOODS), min_size=1, max_size=4))
    def status_moods(self, moods):
        self.harness.foresee("status", moods)

    @rule()
    def slow_owner(self):
        self.harness.foresee("owner", ["slow"])

    @rule(watch=st.sampled_from(sorted(WATCHES)), seconds=st.sampled_from((1.0, 10.0)), gap=st.booleans())
    def stall(self, watch, seconds, gap):
        self.harness.stall(watch, seconds, gap=gap)

    # The leading process

    @rule(
        effects=st.integers(0, 6),
        death=st.sampled_from(Death),
        heir=st.sampled_from(HEIRS),
        late=st.booleans(),
    )
    def crash(self, effects, death, heir, late):
        harness = self.harness
        harness.crash_in, harness.death = effects, death

        def follow(dying) -> None:
            if late and isinstance(dying, BindPod | EvictPod):
                harness.carry_out_late(dying, 3.0)
            self.follow(heir)

        harness.succeed = follow

    @rule(heir=st.sampled_from(HEIRS))
    def crash_now(self, heir):
        self.harness.crash_in = None
        self.follow(heir)

    def follow(self, heir):
        if heir == "restarted":
            self.harness.restart()
        elif heir == "same process":
            self.harness.lead_again()
        else:
            self.harness.fail_over(lag=3 if heir == "late standby" else 0)

    @rule(seconds=st.sampled_from((0.0, 0.25, 1.0, 3.0, 10.0, 31.0, 120.0)))
    def wait(self, seconds):
        self.harness.wait(seconds)

    # Invariants

    def check_rest(self) -> None:
        """No gang waits that would fit into the free room."""
        machine = self.harness.machine
        cluster = Cluster()
        for held in self.harness.nodes.values():
            cluster.set_node(held)
        for found in self.harness.pods.values():
            cluster.set_pod(found)
        for key, gang in machine.gangs.items():
            assessment = machine.assessments[key]
            if gang.record.outcome is Outcome.OUT_OF_TIME or assessment.terms.hindrance is not None:
                continue
            live = [found for found in self.harness.pods.values() if is_live(found) and key_of(found) == key]
            waiting = [found for found in live if not found.node]
            spec = assessment.terms.spec
            if gang.record.scheduled_at:
                want = assessment.want
                asks = [want.quorum] if want.quorum is not None else []
                asks += [Ask(members=(member,), need=1) for member in (*want.repairs, *want.extras)]
            else:
                bound = Counter(role_of(found) for found in live if found.node)
                roles = {role: max(0, number - bound[role]) for role, number in role_minima(spec).items()}
                there = Counter(map(role_of, waiting))
                need = max(spec.minimum - bound.total(), sum(roles.values()))
                if len(waiting) < need or any(there[role] < number for role, number in roles.items()):
                    continue
                asks = [Ask(members=waiting, need=need, role_needs=roles)] if need > 0 else []
            for ask in asks:
                assert isinstance(place(Snapshot(cluster), ask), Refusal), f"{key} would fit"

    def end(self) -> None:
        harness = self.harness
        harness.crash_in = None
        harness.calm()
        harness.wait(1000.0)
        machine = harness.machine
        assert not harness.stalled
        assert not harness.inbox
        assert harness.groups.keys() <= machine.gangs.keys(), "a group is lost"
        for found in harness.pods.values():
            if is_live(found) and not found.node:
                assert any(found.uid in gang.observed.pods for gang in machine.gangs.values()), "a pod is lost"
        self.check_rest()
        for key, gang in machine.gangs.items():
            assert gang.operations.unconfirmed() == [], "a binding never ended"
            if gang.operations.rollback is not None:
                left = [found for found in gang.live() if found.node]
                assert left
                assert all(harness.rule_one.spared(found) for found in left), "an undo never ended"
                assert gang.record.phase in (Phase.DEGRADED, Phase.FAILED)
            if key in harness.groups and harness.now >= gang.reason_since + POLICY.fold_s:
                status = harness.groups[key].status
                assert status.phase == gang.record.phase, "the status is out of date"
                kept, plan = status.reservation, gang.operations.plan
                assert kept is None or (kept.kind == TIME and plan is not None and plan.start is not None)
        if self.replays:
            self.check_replay()


TestFaults = Faults.TestCase
TestFaults.settings = effort(steps=30)
