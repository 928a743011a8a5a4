"""Random walks of groups that preempt each other, have places reserved, overstay, and change their leader meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from random import Random
from typing import Any
from unittest import mock

from msgspec.structs import replace

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import EmitEvent, EvictPod, PatchStatus
from gangsched.core.objects.node import Taint
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import GroupSpec, OnDegraded, TimeoutPolicy
from gangsched.core.objects.policy import Policy, Preemption, Reservations
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Phase
from gangsched.core.objects.results import EvictionRefused, Spared, StatusRefused
from gangsched.core.objects.shape import Requirement
from gangsched.core.planning import leavers
from gangsched.core.planning.strategies import STRATEGIES
from gangsched.core.queueing.order import order_key
from tests.builders import GPU, group, node, pod
from tests.effort import seeded
from tests.plan_judge import Promise, Seen, fits
from tests.preempting import SET, record
from tests.trees import leaf, members_of
from tests.walks import Happens, Walk

APP_P = (Requirement("app", "In", ("p",)),)
CLASSES = {"low": 10, "mid": 50, "high": 100}
MOST_GROUPS = 7
UNKNOWN = float("inf")
NOT_READY = Taint("node.kubernetes.io/not-ready", "NoSchedule")
LONG_S = 9.0
"""After so many seconds without a change enough is reserved."""
OF_RESERVATIONS = (Reason.RESERVED_LATER, Reason.RESERVATION_MOVED)


class ContentionWalk(Walk):
    """Groups of one to four on two to four nodes; their controller keeps as many pods as each wants."""

    def __init__(self, seed: int) -> None:
        draw = Random(f"settings of {seed}")
        preemption = Preemption(
            enabled=draw.random() < 0.75,
            delay_s=draw.choice((0, 0, 15)),
            exceeds_budgets=draw.random() < 0.15,
            victims_per_minute=draw.choice((600, 600, 6)),
        )
        reservations = Reservations(starvation_age_s=draw.choice((20.0, 60.0, 0.0)))
        super().__init__(seed, Policy(preemption=preemption, reservations=reservations))
        self.least: dict[str, int] = {}
        self.wanted: dict[str, int] = {}
        self.were_whole: set[str] = set()
        self.refused_until: dict[str, float] = {}
        self.deleted: dict[str, GroupSpec | None] = {}
        # What a walk is about decides what its groups are like. Members of native groups leave one by one.
        self.classes = draw.choice((["low"], ["low", "low", "mid", "high", ""]))
        self.promises = draw.choice(([None, None, 60.0, 300.0], [60.0, 300.0]))
        self.native_share, self.ready_share = draw.choice((0.0, 0.0, 0.3, 0.8)), draw.choice((0.0, 0.5, 1.0))
        self.allowed = draw.choice(((0, 1, 4), (1, 2), (0,)))
        self.gpu_share = draw.choice((0.0, 0.0, 0.0, 0.4))
        self.strategies = draw.choice((["Pack"], sorted(STRATEGIES)))
        self.native: set[str] = set()
        self.like: dict[str, dict[str, Any]] = {}
        self.marks: dict[tuple[object, ...], int] = {}
        # The pods that had nodes, and the groups for which others left, after the last call.
        self.known: set[str] = set()
        self.preempting: set[GroupKey] = set()
        self.harness.refuse_eviction, self.harness.refuse_status = self.refuse_eviction, self.refuse_status
        for name, value in CLASSES.items():
            self.harness.put_class(name, value)
        self.harness.add(*(node(f"n{at}", cpu=draw.randint(2, 5)) for at in range(draw.randint(2, 4))))
        for _ in range(3):
            self.arrive()

    def refuse_eviction(self, effect: EvictPod) -> EvictionRefused | None:
        if self.harness.now < self.refused_until.get(effect.name, 0.0):
            return EvictionRefused(effect.uid, Spared.BUDGET, "not now")
        return None

    def refuse_status(self, effect: PatchStatus) -> StatusRefused | None:
        refused = self.harness.now < self.refused_until.get(effect.key.name, 0.0)
        return StatusRefused(effect.key, stale=False) if refused else None

    def of(self, name: str) -> list[Pod]:
        """The pods of the group that are not gone."""
        return [each for each in self.harness.pods.values() if each.name.rpartition("-")[0] == name]

    def bound(self, name: str) -> int:
        return sum(bool(each.node) and not each.terminating for each in self.of(name))

    def needed(self, name: str) -> int:
        """How many bound members make the group whole."""
        gang, least = self.harness.machine.gangs.get(GroupKey("default", name)), self.least[name]
        # A quorum that was being bound when its minimum was raised is whole with the former one (rule 9).
        return min(least, gang.record.satisfied.total) if gang is not None and gang.record.scheduled_at else least

    def step(self) -> None:
        before = self.harness.now
        super().step()
        if self.harness.now >= before + LONG_S:
            self.check_places()

    # What happens

    def control(self) -> None:
        created = float(int(self.harness.now))
        for name, wanted in self.wanted.items():
            for _ in range(wanted - sum(not each.terminating for each in self.of(name))):
                self.made += 1
                like = {**self.like[name], "created": created, "owner": SET}
                if name in self.native:
                    self.harness.add(*members_of(name, 1, first=self.made, **like))
                else:
                    self.harness.add(pod(f"{name}-{self.made}", group=name, **like))
        for each in self.of("short"):
            if each.bound_at and each.bound_at + (each.lifetime.deadline_s or 0) <= self.harness.now:
                self.harness.delete(f"default/{each.name}")

    def arrive(self) -> None:
        """Another group comes."""
        draw, name = self.random, f"g{len(self.least)}"
        if len(self.least) >= MOST_GROUPS:
            return
        self.least[name] = draw.randint(1, 4)
        self.wanted[name] = self.least[name] + draw.choice((0, 0, 1))
        # Only what is under a budget is ready.
        ready = draw.random() < self.ready_share
        labels, ports = {"app": "p"} if ready else {}, draw.choice(([], [], [], [80]))
        gpu = draw.random() < self.gpu_share
        self.like[name] = {"ready": ready, "labels": labels, "host_ports": ports, "gpu": int(gpu)}
        if draw.random() < self.native_share:
            self.native.add(name)
            self.harness.add(leaf(name, least=self.least[name], priorityClassName=draw.choice(self.classes) or "mid"))
            self.control()
            return
        self.harness.add(
            group(
                name,
                min_member=self.least[name],
                created=float(int(self.harness.now)),
                priority_class=draw.choice(self.classes),
                max_schedule_time_s=draw.choice((15.0, 40.0, 9999.0)),
                timeout_policy=draw.choice((TimeoutPolicy.RETRY, TimeoutPolicy.RETRY, TimeoutPolicy.FAIL)),
                on_degraded=draw.choice([*OnDegraded]),
                expected_s=draw.choice(self.promises),
                strategy=draw.choice(self.strategies),
            )
        )
        self.control()

    def undeclare(self) -> None:
        """A PodGroup is deleted, if others are left."""
        for name in self.one_of(self.ours()) if len(self.ours()) > 1 else ():
            self.deleted[name] = self.harness.group(f"default/{name}").spec
            self.harness.delete_group(f"default/{name}")

    def declare_again(self) -> None:
        """A deleted PodGroup is created anew."""
        if self.deleted:
            self.made += 1
            name, spec = self.deleted.popitem()
            found = group(name, uid=f"again-{self.made}", created=float(int(self.harness.now)))
            self.harness.add(replace(found, spec=spec))

    def contradict(self) -> None:
        """A pod comes to contradict its PodGroup, or does so no more."""
        pods = [each for each in self.harness.pods.values() if each.declaration is not None]
        if pods:
            found = self.random.choice(pods)
            said = found.declaration
            assert said is not None
            self.harness.add(replace(found, declaration=replace(said, min_member=None if said.min_member else 9)))

    def arrive_alone(self) -> None:
        """A pod comes that its limit ends soon, so that it may be bound on what is reserved for later."""
        self.made += 1
        self.harness.add(pod(f"short-{self.made}", group="", deadline_s=self.random.choice((10, 60))))

    def one_of(self, names: Collection[str]) -> list[str]:
        """One of these groups, mostly one that has a plan or leaves for one."""
        plans = self.harness.machine.plans
        busy = (
            {key.name for key, plan in plans.items() for key in (key, *plan.whole)}
            if self.random.random() < 0.7
            else ()
        )
        several = sorted({*names}.intersection(busy) or names)
        return [self.random.choice(several)] if several else []

    def ours(self) -> list[str]:
        """The groups with a PodGroup that is not a native one."""
        return [name for name in self.least if name not in self.native and name not in self.deleted]

    def leave(self) -> None:
        """All pods of a group end while another one comes. Its controller makes them again, or wants none any more."""
        self.arrive_alone()
        for name in self.one_of(self.least):
            if self.random.random() < 0.3:
                self.wanted[name] = 0
            self.harness.delete(*(f"default/{each.name}" for each in self.of(name)))

    def raise_minimum(self) -> None:
        for name in self.one_of(self.ours()):
            self.least[name] = max(1, self.least[name] + self.random.choice((-1, 1, 1)))
            self.wanted[name] = max(self.wanted[name], self.least[name])
            self.harness.change_spec(f"default/{name}", min_member=self.least[name])
            if self.random.random() < 0.4:
                # Nobody led when it was changed.
                self.harness.restart()
            self.control()

    def change_class(self) -> None:
        for name in self.one_of(self.ours()):
            self.harness.change_spec(f"default/{name}", priority_class=self.random.choice(("low", "mid", "high", "")))

    def lose(self) -> None:
        """A bound pod is gone."""
        bound = [each.name for each in self.harness.pods.values() if each.node]
        if bound:
            self.harness.delete(f"default/{self.random.choice(bound)}")

    def refuse_some(self) -> None:
        """Evictions of a bound pod are refused for some time, or what is written to the status of a group."""
        bound = [each.name for each in self.harness.pods.values() if each.node]
        until = self.harness.now + self.random.choice((3, 20, 100))
        self.refused_until |= dict.fromkeys(
            self.random.choice((self.one_of(self.least), self.random.sample(bound, min(1, len(bound))))), until
        )

    def change_budget(self) -> None:
        if self.harness.budgets and self.random.random() < 0.3:
            self.harness.remove_budget(*self.harness.budgets)
        else:
            self.harness.add(DisruptionBudget("default", "p", APP_P, allowed=self.random.choice(self.allowed)))

    def cordon(self) -> None:
        found = self.random.choice([*self.harness.nodes.values()])
        self.harness.add(replace(found, unschedulable=not found.unschedulable))

    def fall_ill(self) -> None:
        """A node is not ready, or is again."""
        found = self.random.choice([*self.harness.nodes.values()])
        self.harness.add(replace(found, taints=() if found.taints else (NOT_READY,)))

    def list_gpus(self) -> None:
        """The plugin of a node lists GPUs, enough for all that fit, or none any more."""
        found = self.random.choice([*self.harness.nodes.values()])
        others = tuple(each for each in found.allocatable if each[0] != GPU)
        listed = others if len(others) < len(found.allocatable) else tuple(sorted((*others, (GPU, 9))))
        self.harness.shrunk |= {found.name}
        self.harness.add(replace(found, allocatable=listed))

    def happens(self) -> tuple[Happens, ...]:
        harness = self.harness
        changes = (
            (5, self.raise_minimum),
            (5, self.change_class),
            (6, self.change_budget),
            (4, self.cordon),
            (4, self.fall_ill),
            (4, self.list_gpus) if self.gpu_share else (0, self.fall_ill),
        )
        losses = ((5, self.lose), (5, self.refuse_some), (8, self.rival), (6, self.leave), (3, self.arrive_alone))
        declarations = ((3, self.undeclare), (5, self.declare_again), (4, self.contradict))
        return (8, self.arrive), (6, harness.restart), (5, self.lead_again), *changes, *losses, *declarations

    # What is judged

    def judge(self) -> None:
        self.note_whole()
        self.check_marks()
        self.check_room()
        self.check_what_fills_up()

    def note_whole(self) -> None:
        """A group that was whole in a run may be bound in part later on, until no member is left (rules 1 and 3)."""
        for name in self.least:
            if self.bound(name) >= self.needed(name):
                self.were_whole.add(name)
            elif all(each.terminating for each in self.of(name)):
                self.were_whole.discard(name)

    def check_marks(self) -> None:
        """A group is marked once for a plan, and only if the budgets allow that all of it leave."""
        harness, machine = self.harness, self.harness.machine
        for holder, plan in machine.plans.items():
            for key in plan.whole.keys() & machine.gangs.keys():
                record, mark = machine.gangs[key].record, (id(machine), holder, plan.opened_at, key)
                if record.preempted_at != harness.now or self.marks.get(mark) == record.preemptions:
                    continue
                assert mark not in self.marks, f"{key} is marked again for the plan of {holder}"
                self.marks[mark] = record.preemptions
                ready = [
                    each for each in self.of(key.name) if each.node and each.lifetime.ready and not each.terminating
                ]
                allowed = min((each.allowed for each in harness.budgets.values()), default=len(ready))
                exceeds = harness.policy.preemption.exceeds_budgets
                assert exceeds or len(ready) <= allowed, f"{key} is marked, and a budget protects it"

    def check_room(self) -> None:
        """What is reserved for a group for which others leave is free, or used by those who leave."""
        machine = self.harness.machine
        for key, plan in machine.plans.items():
            if plan.start is None and not plan.former and plan.lost_at == UNKNOWN and machine.gangs[key].wait.parked:
                for where, number in Counter(where for _, where in plan.places).items():
                    assert number <= self.free(where, plan.leaving), f"the room of {key} on {where} is lost"

    def check_what_fills_up(self) -> None:
        """Where nobody knows the start of a reservation, what is free of it is not taken by those behind its group."""
        machine = self.harness.machine
        state = machine._state  # noqa: SLF001 - who was placed has no other door
        ranks = {key: order_key(state.gangs[key], found) for key, found in state.assessments.items()}
        for holder, plan in machine.plans.items():
            # What is bound in part comes before all others, and what is repaired.
            gangs = [state.gangs[key] for key in ranks]
            begun = {each.key for each in gangs if each.record.scheduled_at or self.known & each.observed.pods.keys()}
            behind = {key for key in ranks if ranks[key] > ranks[holder]} - begun - self.preempting
            # What others leave for a group behind the holder is not the holder's: who is before that group may take it.
            behind -= {key for key in behind for each in self.preempting & ranks.keys() if ranks[key] < ranks[each]}
            fills_up = plan.start == UNKNOWN and not plan.former and plan.opened_at < self.harness.now
            for where, number in Counter(where for _, where in plan.places).items() if fills_up else ():
                there = machine.cluster.on_node.get(where, {})
                new = map(state.members.gang_of, there.keys() - self.known)
                taken, free = sum(gang is not None and gang.key in behind for gang in new), self.free(where)
                assert free >= min(number, free + taken) or not taken, f"what fills up for {holder} is taken"
        self.known = {uid for there in machine.cluster.on_node.values() for uid in there}
        self.preempting = {key for key, plan in machine.plans.items() if plan.start is None}

    def free(self, where: str, gone: Collection[str] = ()) -> int:
        """For so many pods there is room on the node once these have left."""
        there = self.harness.machine.cluster.on_node.get(where, {})
        taken = sum(dict(claim.pod.shape.requests).get("cpu", 0) for uid, claim in there.items() if uid not in gone)
        return (dict(self.harness.nodes[where].allocatable)["cpu"] - taken) // 1000

    def keep_quiet(self) -> None:
        """Nothing happens any more: whoever waits then waits for something that may come."""
        harness = self.harness
        self.refused_until.clear()
        while self.deleted:
            self.declare_again()
        for said in [*harness.pods.values()]:
            if said.declaration is not None and said.declaration.min_member:
                harness.add(replace(said, declaration=replace(said.declaration, min_member=None)))
        self.heal()
        self.control()
        harness.run_pods()
        for _ in range(5):
            harness.wait(300)
            harness.end_terminating()
        self.check_statuses()
        self.check_places()
        before, so_far = self.who(), len(harness.effects)
        harness.wait(700)
        # If the API server refuses more than the budgets say, a plan that exceeds them begins anew every five minutes.
        if self.who() == before and not harness.policy.preemption.exceeds_budgets:
            events = (each for each in harness.effects[so_far:] if isinstance(each, EmitEvent))
            told = Counter((each.name, each.reason) for each in events if each.reason in OF_RESERVATIONS)
            assert max(told.values(), default=0) < 2, f"told again and again: {told}"
        for each in [*harness.budgets.values()]:
            harness.add(replace(each, allowed=9))
        harness.wait(400)
        for name in self.ours():
            # Only what some declare is new.
            harness.change_spec(f"default/{name}", expected_s=self.random.choice(self.promises))
        harness.wait(400)
        before, starts = self.who(), self.starts()
        harness.settle(node("tiny", cpu=0))
        assert (self.who(), self.starts()) == (before, starts), "nobody had noticed that it can"

    def starts(self) -> dict[GroupKey, float | None]:
        """The starts of the open plans."""
        return {key: plan.start for key, plan in self.harness.machine.plans.items()}

    def who(self) -> tuple[list[str], list[str]]:
        """Who was evicted so far, and who is bound."""
        return [*self.harness.evicted], self.harness.bound()

    def check_statuses(self) -> None:
        """Each status is about the group as it is."""
        for name in self.ours():
            status, there = self.harness.status(f"default/{name}"), self.harness.group(f"default/{name}")
            assert {each.generation for each in status.conditions} <= {there.generation}, f"{name} has an old status"

    def check_places(self) -> None:
        """Enough is reserved for later for a group, if anything is."""
        for key, plan in self.harness.machine.plans.items():
            nobody_is_bound = not any(each.node for each in self.of(key.name))
            if plan.start is not None and key.name in self.ours() and nobody_is_bound:
                assert len(plan.places) >= self.least[key.name], f"too few places are reserved for {key}"

    def check_nobody_waits(self) -> None:
        """No group waits that fits, or for which those of lower priority may leave."""
        seen, promises = Seen(), dict[GroupKey, Promise]()
        for event in self.harness.lists():
            seen.hear(event)
        for key, plan in self.harness.machine.plans.items():
            promises[key] = Promise(tuple((where, each) for each, where in plan.places), 0, 0.0, frozenset())
        keys, gangs = [self.harness.group(f"default/{name}").key for name in self.ours()], self.harness.machine.gangs
        for key in keys:
            # One that was called in takes no place that is reserved for another group, and nobody leaves for it there.
            if self.harness.groups[key].status.phase == Phase.QUEUED and not gangs[key].operations.overstayed:
                may = self.harness.policy.preemption.enabled and seen.may_preempt(key)
                lower = [each for each in keys if may and seen.priority(each) < seen.priority(key)]
                below = {pod.uid for each in lower for pod in seen.members(each)}
                fit = fits(seen, key, below, now=self.harness.now, promises=promises, leaving={})
                assert not fit, f"{key} waits though it fits, or others could leave"

    def calm_down(self) -> None:
        """Nothing fails or changes any more, and nobody overstays: those who promised take turns by design."""
        self.refused_until.clear()
        if self.harness.budgets:
            self.harness.remove_budget(*self.harness.budgets)
        for found in [*self.harness.nodes.values()]:
            self.harness.add(replace(found, unschedulable=False, taints=()))
        for name in self.ours():
            self.harness.change_spec(f"default/{name}", expected_s=None)
        self.calm(40)


@seeded(200)
def test_contention_comes_to_rest_and_leaves_whole_groups(seed):
    """Every call that is due at once again and again, and every contradiction in the state, fails as well."""
    # Those who leave are prepared for several snapshots if they are many, or in every second walk in any case.
    with mock.patch.object(leavers, "_MORE", 0 if seed % 2 else leavers._MORE):  # noqa: SLF001
        walk_and_rest(seed)


def walk_and_rest(seed: int) -> None:
    walk = ContentionWalk(seed)
    for _ in range(30):
        walk.step()
    walk.keep_quiet()
    walk.calm_down()
    evicted = len(walk.harness.evicted)
    walk.calm(15)
    assert walk.harness.evicted[evicted:] == []
    walk.check_nobody_waits()
    plans = walk.harness.machine.plans
    assert [key for key, plan in plans.items() if plan.start is None] == []
    assert walk.harness.machine.cluster.ledger.reserved.keys() <= plans.keys()
    for name in walk.ours():
        bound, kept = walk.bound(name), record(walk.harness, name)
        assert name in walk.were_whole or not 0 < bound < walk.needed(name), f"{name} is bound in part"
        if bound >= walk.least[name]:
            assert kept.phase in (Phase.SCHEDULED, Phase.RUNNING)
            assert not kept.preempted_at


def test_a_gang_that_was_called_in_is_not_called_in_again_for_a_member_that_is_being_bound():
    """Regression: a call was due at once until the binding was seen."""
    walk_and_rest(1300086)
