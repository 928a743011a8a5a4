"""Invariants that hold for every history of a cluster, in whatever order its events arrive."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from msgspec.structs import replace

from gangsched.core.declarations.minima import minima, role_minima
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.declaration import Role
from gangsched.core.objects.effects import BindPod, Effect, PatchStatus
from gangsched.core.objects.events import Event
from gangsched.core.objects.pod import role_of
from gangsched.core.objects.podgroup import OnDegraded, TimeoutPolicy
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Phase
from gangsched.core.objects.results import BindRefused, Refused, StatusRefused
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.strategies import STRATEGIES
from tests.builders import node, pod
from tests.harness import Harness
from tests.properties.stories import Story, effort

GROUPS = ("a", "b", "c", "d")
POLICY = Policy(default_max_schedule_time_s=20.0)


class Watched(Harness):
    """Checks each step against the machine's state before it and the effects that it sent."""

    def _hand_over(self, events: list[Event]) -> list[Effect]:
        refused = {event.uid for past, _, _ in self.history for event in past if isinstance(event, BindRefused)}
        refused |= {event.uid for event in events if isinstance(event, BindRefused)}
        written = {key: found.status.reservation for key, found in self.groups.items()}
        effects = super()._hand_over(events)
        for effect in effects:
            if isinstance(effect, BindPod):
                gang = next(gang for gang in self.machine.gangs.values() if effect.uid in gang.observed.pods)
                if not gang.record.scheduled_at:
                    self.check_whole(gang)
                    if (
                        effect.uid in refused
                        and gang.operations.bindings[effect.uid].tries > 1
                        and gang.observed.group is not None
                    ):
                        reservation = written.get(gang.key)
                        assert reservation is not None, "sent again before its place was durable"
                        assert effect.name in {name for place in reservation.placements for name in place.pods}
        return effects

    def check_whole(self, gang: Gang) -> None:
        """If no member of a group is bound, the first bindings cover its whole quorum."""
        states = {binding.state for binding in gang.operations.bindings.values()}
        if BindState.BOUND in states or any(member.node for member in gang.live()):
            return
        spec = self.machine.assessments[gang.key].terms.spec
        there = [member for member in gang.live() if member.uid in gang.operations.bindings]
        roles = Counter(role_of(member) for member in there)
        quorum = gang.record.quorum or minima(spec)
        done = sum(number for _, number in gang.record.quorum_done)
        assert len(there) + done >= min(spec.minimum, quorum.total), f"{gang.key} is bound in part"
        for role, minimum in role_minima(spec).items():
            owed = min(minimum, dict(quorum.roles).get(role, 0)) - done
            assert roles[role] >= owed, f"{gang.key} lacks {role}"


class Cluster(Story):
    """Users, kubelets and a faulty API server, with the harness between them and the machine."""

    harness: Watched

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 0
        self.why = Refused.UNAVAILABLE
        self.status_refusals = 0

    @initialize(seed=st.integers(0, 2**16), cpus=st.lists(st.integers(1, 6), max_size=3))
    def begin(self, seed, cpus):
        self.harness = Watched(POLICY, seed=seed)
        self.harness.refuse_bind = self.refuse_bind
        self.harness.refuse_status = self.refuse_status
        for cpu in cpus:
            self.add_node(cpu)
        self.harness.settle()

    def refuse_bind(self, effect: BindPod) -> BindRefused | None:
        if not self.refusals:
            return None
        self.refusals -= 1
        return BindRefused(effect.uid, effect.node, self.why, "no", retry_after_s=self.number % 3)

    def refuse_status(self, effect: PatchStatus) -> StatusRefused | None:
        if not self.status_refusals:
            return None
        self.status_refusals -= 1
        return StatusRefused(effect.key, stale=bool(self.status_refusals % 2))

    # Steps

    @rule(
        name=st.sampled_from(GROUPS),
        cpus=st.lists(st.sampled_from((1, 2, 3)), min_size=2, max_size=4),
        more=st.integers(0, 1),
        seconds=st.sampled_from((0.0, 0.0, 30.0)),
    )
    def add_gang(self, name, cpus, more, seconds):
        """Add a whole group at once, so that many later steps meet one."""
        self.write_group(name, len(cpus) - more, None, (), None, TimeoutPolicy.RETRY, OnDegraded.REPAIR, "Pack")
        self.add_pods(name, cpus, "", gated=False)
        self.wait(seconds)

    @rule(cpu=st.integers(1, 6))
    def add_node(self, cpu):
        if len(self.harness.nodes) < 5:
            self.harness.add(node(self.name(), cpu=cpu))

    @rule(which=st.integers(0, 9), gone=st.booleans())
    def lose_node(self, which, gone):
        names = sorted(self.harness.nodes)
        if names and gone:
            self.harness.delete_node(names[which % len(names)])
        elif names:
            old = self.harness.nodes[names[which % len(names)]]
            self.harness.add(replace(old, unschedulable=not old.unschedulable))

    @rule(
        name=st.sampled_from(GROUPS),
        minimum=st.integers(1, 4),
        more=st.none() | st.integers(0, 2),
        roles=st.sampled_from(((), (Role("r", 1),), (Role("r", 1, 2), Role("s", 2)))),
        priority=st.none() | st.integers(0, 2),
        policy=st.sampled_from(TimeoutPolicy),
        degraded=st.sampled_from((OnDegraded.REPAIR, OnDegraded.IGNORE)),
        strategy=st.sampled_from(sorted(STRATEGIES)),
    )
    def write_group(self, name, minimum, more, roles, priority, policy, degraded, strategy):
        floor = max(minimum, sum(role.min_member for role in roles))
        spec = {
            "min_member": minimum,
            "max_member": None if more is None else floor + more,
            "roles": roles,
            "priority": priority,
            "timeout_policy": policy,
            "on_degraded": degraded,
            "strategy": strategy,
        }
        self.put_group(name, **spec)

    @rule(name=st.sampled_from(GROUPS))
    def delete_group(self, name):
        self.drop_group(name)

    @rule(
        group_name=st.sampled_from(("", *GROUPS)),
        cpus=st.lists(st.sampled_from((1, 1, 2, 3)), min_size=1, max_size=4),
        role=st.sampled_from(("", "", "r", "s")),
        gated=st.sampled_from((False, False, False, True)),
    )
    def add_pods(self, group_name, cpus, role, gated):
        for cpu in cpus:
            name = self.name()
            made = pod(
                name, cpu=cpu, group=group_name, role=role, gated=gated, created=self.harness.server_time, uid=name
            )
            self.harness.add(made)

    @rule(which=st.integers(0, 99))
    def open_gate(self, which):
        found = self.some(which, bound=False)
        if found is not None:
            self.harness.add(replace(found, gated=False))

    @rule(which=st.integers(0, 99), group_name=st.sampled_from(GROUPS))
    def relabel(self, which, group_name):
        found = self.some(which)
        if found is not None and found.declaration is not None:
            self.harness.add(replace(found, declaration=replace(found.declaration, group=group_name)))

    @rule(times=st.integers(1, 9), why=st.sampled_from((Refused.UNAVAILABLE, Refused.FORBIDDEN)))
    def refuse_bindings(self, times, why):
        self.refusals, self.why = times, why

    @rule(times=st.integers(1, 3))
    def refuse_statuses(self, times):
        self.status_refusals = times

    @rule(seconds=st.sampled_from((0.0, 0.0, 0.25, 1.0, 3.0, 30.0, 400.0)))
    def wait(self, seconds):
        self.harness.wait(seconds)
        self.check_rest()

    @rule(anew=st.booleans())
    def restart(self, anew):
        bound = {uid: found.node for uid, found in self.harness.pods.items() if found.node}
        if anew:
            self.harness.restart()
        else:
            self.harness.lead_again()
        self.harness.settle()
        assert bound.items() <= {uid: found.node for uid, found in self.harness.pods.items()}.items()
        assert self.harness.groups.keys() <= self.harness.machine.gangs.keys()
        self.check_rest()

    # Invariants

    def check_rest(self) -> None:
        """No gang waits that would fit, and each gang that waits for a time has a deadline."""
        machine = self.harness.machine
        for key, assessment in machine.assessments.items():
            gang = machine.gangs[key]
            want = assessment.want
            asks = [want.quorum] if want.quorum is not None else []
            asks += [Ask(members=(member,), need=1) for member in (*want.repairs, *want.extras)]
            refused_by_server = gang.record.retry_at > self.harness.now and gang.wait.refusal is None
            for ask in asks:
                assert refused_by_server or isinstance(place(Snapshot(machine.cluster), ask), Refusal), key
            if gang.record.phase in (Phase.QUEUED, Phase.TIMED_OUT) and not assessment.census.bound and not gang.plain:
                assert assessment.due > self.harness.now
                assert assessment.due < float("inf")

    def end(self) -> None:
        self.refusals = self.status_refusals = 0
        self.harness.wait(700.0)
        self.check_rest()
        for gang in self.harness.machine.gangs.values():
            assert not gang.operations.unconfirmed(), "a binding never ended"
        for key, found in self.harness.groups.items():
            gang = self.harness.machine.gangs[key]
            if self.harness.now >= gang.reason_since + POLICY.fold_s:
                assert found.status.phase == gang.record.phase, "the status is out of date"
                assert found.status.reservation is None
        self.check_replay()


TestCluster = Cluster.TestCase
TestCluster.settings = effort(steps=40)
