"""Random worlds in which groups preempt others, and what happens in them meanwhile; `tests.plan_judge` watches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey, Role, Topology
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import BindPod, Effect, EvictPod, PatchStatus
from gangsched.core.objects.events import Event
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.pod import Owner, Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import Group, GroupSpec, OnDegraded, TimeoutPolicy
from gangsched.core.objects.policy import Policy, Preemption, Reservations
from gangsched.core.objects.results import EvictionRefused, Spared, StatusRefused
from gangsched.core.objects.shape import Requirement
from tests.builders import group, node, pod
from tests.harness import START, Harness, History, Standby
from tests.plan_judge import PlanJudge
from tests.preempting import SET

JOB = Owner("Job", "j", "job", "batch")
CLASSES = {"c0": 0, "c10": 10, "c20": 20, "c30": 30}
REMADE_S = 0.5
"""Time, in seconds, until a controller creates a pod again."""
CALM_S = 900.0
"""Time, in seconds, after the last step of a world: longer than anything waits after a refusal."""
PORT = 80
NOT_READY = Taint("node.kubernetes.io/not-ready", "NoSchedule")

Step = tuple[Any, ...]


@dataclass
class World:
    """What there is at first, the groups that come then, and the steps after that."""

    nodes: Sequence[Node]
    things: Sequence[Pod | Group]
    budgets: Sequence[DisruptionBudget]
    asking: Sequence[Sequence[Pod | Group]]
    steps: Sequence[Step]
    preemption: Preemption = field(default_factory=Preemption)

    def __repr__(self) -> str:
        """What differs from a world's defaults, a thing a line."""
        asked = [thing for several in self.asking for thing in (*several, "then")]
        return "\n".join(map(_said, (*self.nodes, *self.things, *self.budgets, *asked, *self.steps, self.preemption)))


class Playing(Harness):
    """A harness with a judge, kubelets that end pods after their grace period, and controllers that create them again.

    Pods whose names are in `stuck` never end, evictions are refused by `moods`, and statuses are `unwritten` until
    these times. Evictions are shown `late_s` after they were answered. `log` holds when which pods were bound and
    evicted, sorted within a time.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.standby = Standby(Machine(policy))
        self.judge = PlanJudge(self)
        self.stuck: set[str] = set()
        self.moods: dict[str, tuple[Spared, float]] = {}
        self.log: list[tuple[float, list[tuple[str, str, str]]]] = []
        self.unwritten: dict[str, float] = {}
        self.late_s = 0.0
        self.refuse_eviction = self._refused
        self.eviction_is_shown_after_s = lambda _: self.late_s
        self.refuse_status = self._refused_status
        self._made = 10
        self._plans = Counter[str]()
        self._machine = self.machine

    def _refused(self, effect: EvictPod) -> EvictionRefused | None:
        why, until = self.moods.get(effect.name, (Spared.BUDGET, 0.0))
        return EvictionRefused(effect.uid, why, "no") if self.now < until else None

    def _refused_status(self, effect: PatchStatus) -> StatusRefused | None:
        refused = self.now < self.unwritten.get(effect.key.name, 0.0)
        return StatusRefused(effect.key, stale=False) if refused else None

    # What is judged

    def _decide(self, events: list[Event]) -> list[Effect]:
        self.judge.hear(events)
        effects = super()._decide(events)
        self.judge.decided(effects)
        self._count_plans()
        said = sorted(
            (type(each).__name__, each.name, each.node if isinstance(each, BindPod) else each.cause)
            for each in effects
            if isinstance(each, BindPod | EvictPod)
        )
        if said and self.log and self.log[-1][0] == self.now:
            self.log[-1] = (self.now, sorted(self.log[-1][1] + said))
        elif said:
            self.log.append((self.now, said))
        return effects

    def _replace(self, machine: Machine, history: History) -> None:
        super()._replace(machine, history)
        self.judge.change_leader(event for events, *_ in history for event in events)

    def _count_plans(self) -> None:
        """A plan ends once: as many have been opened as are open or have ended, so that this sum never decreases."""
        stats = self.machine.stats()
        now = Counter(stats.ended) + Counter(open=stats.plans)
        if self.machine is self._machine:
            assert now.total() >= self._plans.total(), f"{self._plans} and then {now}"
        self._plans, self._machine = now, self.machine

    def _settle(self, *, rounds: int = 50) -> None:
        super()._settle(rounds=4 * rounds)
        self.judge.rest()

    # What happens beside the machine

    def add(self, *things: Any) -> None:
        for thing in things:
            before = self.pods.get(thing.uid) if isinstance(thing, Pod) else None
            if isinstance(thing, Pod) and thing.terminating and not (before is not None and before.terminating):
                self.after(max(0.1, thing.gone_by - self.now), partial(self._end, thing.uid))
        super().add(*things)

    def _end(self, uid: str) -> None:
        found = self.pods.get(uid)
        if found is not None and found.name not in self.stuck:
            self.judge.happened()
            self.delete(f"{found.namespace}/{found.name}")

    def delete(self, *names: str) -> None:
        for name in names:
            lost = self.pod(name)
            super().delete(name)
            if lost.owner == SET and lost.scheduler == "gangsched":
                self.after(REMADE_S, partial(self._make_again, lost))

    def made(self) -> int:
        """A number for something that is new."""
        self._made += 1
        return self._made

    def _make_again(self, lost: Pod) -> None:
        key = GroupKey(lost.namespace, lost.declaration.group) if lost.declaration is not None else None
        if key is not None and key not in self.groups:
            return
        self.judge.happened()
        self.add(
            replace(
                lost,
                uid=f"again-{self.made()}",
                created=self.server_time,
                node="",
                nominated_node="",
                bound_at=0.0,
                gone_by=0.0,
                phase=PodPhase.PENDING,
                terminating=False,
                condition_reason="",
                condition_message="",
            )
        )


def _said(thing: object) -> str:
    """The thing in a line, as far as worlds differ."""
    match thing:
        case Node():
            return f"node {thing.name}: {dict(thing.allocatable)['cpu'] // 1000}"
        case Group(spec=GroupSpec() as spec):
            fields = {name: getattr(spec, name) for name in spec.__struct_fields__}
            given = {name: value for name, value in fields.items() if value != getattr(GroupSpec(0), name)}
            return f"group {thing.key.name}: {given}"
        case Pod():
            life, owner = thing.lifetime, thing.owner.kind if thing.owner is not None else "nobody"
            flags = "".join(f" {name}" for name in ("terminating", "gated") if getattr(thing, name))
            says = f"{_group_of(thing)} {role_of(thing)} {owner} {thing.scheduler} {dict(thing.labels)}"
            asked = f"cpu {dict(thing.shape.requests)['cpu'] // 1000} port {bool(thing.shape.host_ports)}"
            since = f"since {START - thing.bound_at if thing.node else 0}"
            return (
                f"pod {thing.name} on {thing.node}: {says} {asked} priority {thing.priority} "
                f"{thing.phase} ready {life.ready} grace {life.grace_s} {since}{flags}"
            )
        case DisruptionBudget():
            return f"budget {thing.name}: {thing.allowed}{' also of unready pods' * thing.counts_unready}"
        case _:
            return str(thing)


def play(
    world: World, *, enabled: bool = True, reserves: bool = True, settled: bool = False, exact: bool = True
) -> Playing:
    """Play the world to its end, while the judge watches; if `settled`, nothing happens before the machine rests."""
    policy = Policy(
        preemption=replace(world.preemption, enabled=enabled),
        reservations=Reservations() if reserves else Reservations(starvation_age_s=0.0),
        default_max_schedule_time_s=1e6,
    )
    harness = Playing(policy)
    harness.judge.exact = exact
    for name, value in CLASSES.items():
        harness.put_class(name, value)
    harness.add(*world.budgets)
    harness.wait(2, *world.nodes, *world.things)
    asking = list(world.asking)
    if asking:
        harness.judge.happened()
        harness.add(*asking.pop(0))
    for step in world.steps:
        if step[0] == "group" and asking:
            harness.judge.happened()
            harness.add(*asking.pop(0))
        elif not (settled and step[0] == "step"):
            take(harness, step)
        if settled:
            harness.settle()
    harness.judge.happened()
    harness.add(*(thing for several in asking for thing in several))
    _calm(harness)
    harness.judge.end()
    return harness


def _calm(harness: Playing) -> None:
    """No more faults, and time for everything that waits."""
    harness.moods.clear()
    harness.unwritten.clear()
    harness.late_s = 0.0
    harness.judge.happened()
    if harness.budgets_hidden:
        harness.show_budgets()
    harness.wait(1)
    for uid in [uid for uid, each in harness.pods.items() if each.name in harness.stuck and each.terminating]:
        harness.stuck.clear()
        harness._end(uid)  # noqa: SLF001 - as a kubelet that is back
    harness.stuck.clear()
    harness.wait(CALM_S)


NEED_SOMETHING = frozenset(
    {"node gone", "cordon", "not ready", "budget", "foreign", "ends", "terminates", "stuck", "refuse", "group"}
)
"""Steps that change something that is there, or let the next group come, if there is one."""


def take(harness: Playing, step: Step) -> None:  # noqa: C901, PLR0912, PLR0915 - a table
    """Take one step."""
    judge, there = harness.judge, sorted(harness.pods.values(), key=lambda each: (each.name, each.uid))
    bound = [each for each in there if each.node and not each.terminal]
    match step:
        case "step", number:
            for _ in range(number):
                harness.step()
        case "wait", seconds:
            harness.wait(seconds)
        case "restart", how:
            judge.happened()
            harness.settle() if how == "rested" else None
            harness.fail_over() if how == "standby" else harness.restart()
        case "node gone", at if len(harness.nodes) > 1:
            name = _one(sorted(harness.nodes), at)
            judge.happened()
            harness.delete_node(name)
            for each in bound:
                if each.node == name:
                    harness.delete(f"default/{each.name}")
        case "node", cpu:
            judge.happened()
            harness.add(_node(harness.made(), cpu))
        case "cordon", at if harness.nodes:
            judge.happened()
            found = harness.nodes[_one(sorted(harness.nodes), at)]
            harness.add(replace(found, unschedulable=not found.unschedulable))
        case "not ready", at if harness.nodes:
            judge.happened()
            found = harness.nodes[_one(sorted(harness.nodes), at)]
            harness.add(replace(found, taints=() if found.taints else (NOT_READY,)))
        case "budget", at, allowed if harness.budgets:
            judge.happened()
            harness.add(replace(harness.budgets[_one(sorted(harness.budgets), at)], allowed=allowed))
        case "foreign", at, cpu if harness.nodes:
            name = _one(sorted(harness.nodes), at)
            if _free(harness, name) >= 1000 * cpu:
                judge.happened()
                harness.add(_foreign(f"foreign-{harness.made()}", name, cpu, harness.server_time))
        case "ends", at if bound:
            judge.happened()
            harness.delete(f"default/{_one(bound, at).name}")
        case "terminates", at if bound:
            found = _one(bound, at)
            judge.happened()
            harness.add(replace(found, terminating=True, gone_by=harness.server_time + found.lifetime.grace_s))
        case "stuck", at if bound:
            harness.stuck.add(_one(bound, at).name)
        case "refuse", at, why, seconds if bound:
            harness.moods[_one(bound, at).name] = (why, harness.now + seconds)
        case "late", seconds:
            harness.late_s = seconds
        case "hide budgets", *_:
            judge.happened()
            harness.show_budgets() if harness.budgets_hidden else harness.hide_budgets("403 Forbidden")
        case (("group gone" | "group changed" | "priority" | "class" | "unwritten"), *_):
            _change_group(harness, step)
        case kind, *_:
            assert kind in NEED_SOMETHING, kind


def _change_group(harness: Playing, step: Step) -> None:
    names = sorted(each.name for each in harness.groups)
    match step:
        case "group gone", at if names:
            name = _one(names, at)
            harness.judge.happened()
            harness.delete_group(f"default/{name}")
            harness.delete(*(f"default/{each.name}" for each in [*harness.pods.values()] if _group_of(each) == name))
        case "group changed", at, number if names:
            harness.judge.happened()
            harness.change_spec(f"default/{_one(names, at)}", min_member=number, roles=())
        case "priority", at, value if names:
            harness.judge.happened()
            harness.change_spec(f"default/{_one(names, at)}", priority_class=value)
        case "unwritten", at, seconds if names:
            harness.unwritten[_one(names, at)] = harness.now + seconds
        case "class", name, value, preempts:
            harness.judge.happened()
            harness.put_class(name, value, preempts=preempts)


def _group_of(each: Pod) -> str:
    return each.declaration.group if each.declaration is not None else ""


def _one(those: Sequence[Any], at: int) -> Any:
    return those[at % len(those)]


def _free(harness: Harness, name: str) -> int:
    taken = sum(dict(each.shape.requests).get("cpu", 0) for each in harness.pods.values() if each.node == name)
    return dict(harness.nodes[name].allocatable)["cpu"] - taken


def _node(at: int, cpu: int) -> Node:
    return node(f"n{at}", cpu=cpu, labels={"rack": f"r{at % 2}"})


def _foreign(name: str, where: str, cpu: int, bound_at: float) -> Pod:
    return pod(name, group="", cpu=cpu, node=where, scheduler="other", bound_at=bound_at)


# The worlds

seldom = st.sampled_from((True, False, False, False, False, False))
numbers = st.integers(0, 20)
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.sampled_from((0.3, 1.0, 5.0, 40.0, 200.0))),
        st.just(("group",)),
        st.tuples(st.just("restart"), st.sampled_from(("at once", "rested", "standby"))),
        st.tuples(st.just("node gone"), numbers),
        st.tuples(st.just("node"), st.integers(1, 5)),
        st.tuples(st.just("cordon"), numbers),
        st.tuples(st.just("not ready"), numbers),
        st.tuples(st.just("budget"), numbers, st.integers(0, 4)),
        st.tuples(st.just("foreign"), numbers, st.integers(1, 2)),
        st.tuples(st.just("ends"), numbers),
        st.tuples(st.just("terminates"), numbers),
        st.tuples(st.just("stuck"), numbers),
        st.tuples(st.just("refuse"), numbers, st.sampled_from(Spared), st.sampled_from((20.0, 50.0, 1e6))),
        st.tuples(st.just("unwritten"), numbers, st.sampled_from((3.0, 30.0, 100.0))),
        st.tuples(st.just("late"), st.sampled_from((0.1, 1.0, 3.0))),
        st.just(("hide budgets",)),
        st.tuples(st.just("group gone"), numbers),
        st.tuples(st.just("group changed"), numbers, st.integers(1, 4)),
        st.tuples(st.just("priority"), numbers, st.sampled_from(("", *CLASSES))),
        st.tuples(st.just("class"), st.sampled_from([*CLASSES]), st.sampled_from([*CLASSES.values()]), st.booleans()),
    ),
    max_size=8,
)
policies = st.builds(
    Preemption,
    delay_s=st.sampled_from((0.0, 0.0, 0.0, 20.0)),
    all_victims=seldom,
    exceeds_budgets=seldom,
    min_runtime_s=st.sampled_from((0.0, 0.0, 0.0, 60.0)),
    victims_per_minute=st.sampled_from((600, 600, 600, 6)),
    spares_uncontrolled=seldom,
)


@dataclass
class _Room:
    """Nodes by name with the CPUs that are free, and those whose port is taken."""

    free: dict[str, int]
    ports: set[str] = field(default_factory=set)

    def take(self, draw: st.DrawFn, cpu: int, *, port: bool) -> str | None:
        """A node with room for a pod, which it has from now on."""
        found = [name for name, free in self.free.items() if free >= cpu and not (port and name in self.ports)]
        if not found:
            return None
        name = draw(st.sampled_from(found))
        self.free[name] -= cpu
        if port:
            self.ports.add(name)
        return name


@st.composite
def worlds(draw: st.DrawFn, *, classes: bool = True) -> World:
    """Small full nodes; without `classes` all priorities are equal."""
    nodes = [_node(at, draw(st.integers(2, 6))) for at in range(draw(st.integers(1, 4)))]
    room = _Room({each.name: dict(each.allocatable)["cpu"] // 1000 for each in nodes})
    things: list[Pod | Group] = []
    for at in range(draw(st.integers(1, 4))):
        things += _running(draw, f"v{at}", room, classes=classes)
    spare = draw(st.sampled_from((0, 0, 0, 1, 2)))
    while sum(room.free.values()) > spare:
        things += _alone(draw, f"p{len(things)}", room, classes=classes)
    budgets = [
        DisruptionBudget(
            "default",
            f"b{at}",
            (Requirement("app", "In", (f"a{at}",)),),
            allowed=draw(st.integers(0, 3)),
            counts_unready=draw(st.booleans()),
        )
        for at in range(draw(st.sampled_from((0, 1, 2))))
    ]
    asking = [_asking(draw, f"h{at}", 10.0 + at, classes=classes) for at in range(draw(st.integers(1, 3)))]
    if not draw(st.booleans()):
        asking = [[thing for several in asking for thing in several]]
    taken = [each for each in draw(steps) if classes or each[0] != "priority"]
    return World(nodes, things, budgets, asking, taken, draw(policies))


def _labels(draw: st.DrawFn) -> dict[str, str]:
    return {"app": draw(st.sampled_from(("a0", "a0", "a1", "none")))}


def _running(draw: st.DrawFn, name: str, room: _Room, *, classes: bool) -> Iterable[Pod | Group]:
    """A group that is bound, with members above its minimum or without; nothing where it has no room."""
    least, cpu = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    size, port = least + draw(st.sampled_from((0, 0, 0, 1, 2))), draw(seldom)
    roles = (Role("r", 1),) if draw(seldom) else ()
    like: dict[str, Any] = {
        "labels": _labels(draw),
        "ready": draw(st.booleans()),
        "phase": draw(st.sampled_from((PodPhase.RUNNING, PodPhase.RUNNING, PodPhase.PENDING))),
        "grace_s": draw(st.sampled_from((0, 5, 30, 100))),
        "owner": draw(st.sampled_from((SET, SET, SET, JOB, None))),
        "bound_at": START - draw(st.sampled_from((10, 100, 5000))),
        "host_ports": [PORT] if port else [],
    }
    members = []
    for at in range(size):
        where = room.take(draw, cpu, port=port)
        if where is not None:
            role = "r" if roles and at == 0 else ""
            members.append(pod(f"{name}-{at}", group=name, role=role, node=where, cpu=cpu, created=1.0, **like))
    if len(members) < least:
        for each in members:
            room.free[each.node] += cpu
        return []
    asked: dict[str, Any] = {"priority_class": draw(st.sampled_from(("c0", "c10", "c20")))} if classes else {}
    if classes and draw(seldom):
        asked = {"priority": draw(st.sampled_from((-5, 15, 40)))}
    degraded = draw(st.sampled_from((OnDegraded.REPAIR, OnDegraded.REPAIR, OnDegraded.RESTART)))
    return [group(name, min_member=least, roles=roles, created=1.0, on_degraded=degraded, **asked), *members]


def _alone(draw: st.DrawFn, name: str, room: _Room, *, classes: bool) -> Iterable[Pod]:
    """A pod without a group that is bound; some are of another scheduler, and some terminate."""
    cpu = draw(st.sampled_from((1, 2))) if max(room.free.values()) > 1 else 1
    where = room.take(draw, cpu, port=False)
    assert where is not None
    terminates, grace_s = draw(seldom), draw(st.sampled_from((0, 30, 100)))
    yield pod(
        name,
        group="",
        cpu=cpu,
        node=where,
        labels=_labels(draw),
        ready=draw(st.booleans()),
        phase=draw(st.sampled_from((PodPhase.RUNNING, PodPhase.RUNNING, PodPhase.PENDING))),
        grace_s=grace_s,
        owner=draw(st.sampled_from((SET, SET, None, Owner("DaemonSet", "d", "d", "apps")))),
        priority=draw(st.sampled_from((0, 10, 20))) if classes else 0,
        scheduler="other" if draw(seldom) else "gangsched",
        terminating=terminates,
        gone_by=START + grace_s if terminates else 0.0,
        bound_at=START - draw(st.sampled_from((10, 100, 5000))),
    )


def _asking(draw: st.DrawFn, name: str, created: float, *, classes: bool) -> list[Pod | Group]:
    """A group that may preempt others, or a pod."""
    cpu, ports = draw(st.integers(1, 3)), [PORT] if draw(seldom) else []
    if draw(seldom):
        priority = draw(st.sampled_from((10, 20, 30))) if classes else 0
        return [pod(name, group="", cpu=cpu, priority=priority, created=created, owner=SET, host_ports=ports)]
    least, roles = draw(st.integers(1, 4)), (Role("r", 1),) if draw(seldom) else ()
    members = [
        pod(
            f"{name}-{at}",
            group=name,
            role="r" if roles and at == 0 else "",
            cpu=cpu,
            created=created,
            owner=draw(st.sampled_from((SET, None))),
            host_ports=ports,
        )
        for at in range(least + draw(st.sampled_from((0, 0, 1))))
    ]
    asked: dict[str, Any] = {"priority_class": draw(st.sampled_from(("c10", "c20", "c30", "c30")))} if classes else {}
    return [
        group(
            name,
            min_member=least,
            created=created,
            roles=roles,
            topology=Topology("rack") if draw(seldom) else None,
            max_schedule_time_s=draw(st.sampled_from((None, None, None, 30.0))),
            timeout_policy=draw(st.sampled_from((TimeoutPolicy.RETRY, TimeoutPolicy.RETRY, TimeoutPolicy.FAIL))),
            preempts=not draw(seldom),
            **asked,
        ),
        *members,
    ]
