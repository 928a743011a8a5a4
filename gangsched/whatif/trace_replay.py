"""Plays a trace on nodes: the core decides as it would in a cluster, on a simulated clock.

A gang arrives with all its members, a PodGroup and its priority. Its bindings succeed at once, and its pods start then;
it ends once its run time, or its limit if that is shorter, has passed since its last member was bound, and its pods and
PodGroup are deleted then. If it is preempted before that, its members are created again at once, and it runs from the
beginning once it is bound again. Nothing fails, and nothing else happens.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, GroupKey, Role
from gangsched.core.objects.effects import BindPod, Effect, EvictPod, PatchStatus
from gangsched.core.objects.events import (
    Event,
    GroupGone,
    GroupSeen,
    NamespacesReplaced,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    PriorityClassesReplaced,
    Synced,
    TimePassed,
)
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Lifetime, Pod
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.results import PodBound, StatusWritten
from gangsched.core.objects.shape import Shape
from gangsched.core.status.usage import reserved_idle
from gangsched.whatif.eviction_api import Evictions
from gangsched.whatif.played import Change, Idle, Played, Replay, Told
from gangsched.whatif.traces.trace_values import Gang, Trace
from gangsched.whatif.world.contents import namespace

START = 946684800.0
"""The start of the simulated clock, 2000-01-01, in epoch seconds."""
_FOREVER_S = 7 * 24 * 3600.0


class _Kind(IntEnum):
    """What can happen to a gang, in this order at the same time: a gang that ends makes room for one that arrives."""

    END = 0
    ARRIVAL = 1


def replay(
    trace: Trace,
    nodes: Sequence[Node],
    policy: Policy,
    *,
    strategy: str = "Pack",
    preempt: bool = False,
    forecasts: bool = False,
    progress: Callable[[int, float], None] | None = None,
) -> Replay:
    """Play the trace until every gang that fits has ended.

    With `preempt`, the priority of a gang is that of a PriorityClass, so that others are preempted for it; else it only
    orders gangs. With `forecasts` it is noted when gangs were told that they would start. `progress` is called
    regularly with the number of gangs that have ended and the seconds since the start.
    """
    # A replay does not use the reasons why gangs wait, and finding them would take longer than all decisions.
    silent = replace(policy, forecasts=forecasts, fold_s=_FOREVER_S, message_interval_s=_FOREVER_S)
    return _Player(trace, nodes, silent, strategy, preempt=preempt).play(progress)


class _Player:
    def __init__(self, trace: Trace, nodes: Sequence[Node], policy: Policy, strategy: str, *, preempt: bool) -> None:
        self._machine = Machine(policy, reconcile_pause_s_per_pod=0.0)
        self._nodes = nodes
        self._strategy = strategy
        self._scheduler = policy.scheduler_names[0]
        self._preempt = preempt
        self._played = [Played(gang=gang) for gang in trace.gangs]
        self._pods: dict[str, tuple[Pod, int, int]] = {}
        self._left = [gang.members for gang in trace.gangs]
        self._members: dict[int, list[str]] = {}
        self._runs = [0 for _ in trace.gangs]
        self._evictions = Evictions()
        self._agenda = [(gang.arrival_s, _Kind.ARRIVAL, number, 0) for number, gang in enumerate(trace.gangs)]
        heapq.heapify(self._agenda)
        self._changes: list[Change] = []
        self._idle = [Idle(0.0, {})]
        self._now = 0.0
        self._ended = 0

    def play(self, progress: Callable[[int, float], None] | None) -> Replay:
        classes = {_class_of(played.gang): PriorityClass(played.gang.priority) for played in self._played}
        namespaces = {played.gang.namespace for played in self._played}
        self._decide(
            [
                NamespacesReplaced(tuple(map(namespace, namespaces))),
                PriorityClassesReplaced(tuple(sorted(classes.items()))),
                NodesReplaced(tuple(self._nodes)),
                PodsReplaced(()),
                Synced(),
            ]
        )
        while (at := self._next()) < float("inf"):
            self._now = max(self._now, at)
            events: list[Event] = [*self._gone()]
            while self._agenda and self._agenda[0][0] <= self._now:
                _, kind, number, run = heapq.heappop(self._agenda)
                events += self._arrive(number) if kind is _Kind.ARRIVAL else self._end(number, run)
            self._decide(events or [TimePassed()])
            if progress is not None:
                progress(self._ended, self._now)
        return Replay(
            strategy=self._strategy, gangs=self._played, changes=self._changes, nodes=self._nodes, idle=self._idle
        )

    def _next(self) -> float:
        """When something happens next, in seconds since the start; infinity if no gang arrives or ends any more."""
        first = min(self._agenda[0][0] if self._agenda else float("inf"), self._evictions.next_end() - START)
        if first == float("inf") and not self._machine.plans:
            return first
        due = self._machine.next_deadline()
        return first if due is None else min(first, due - START)

    def _decide(self, events: list[Event]) -> None:
        """Let the machine decide until nothing is left to do at this time."""
        while events:
            following: list[Event] = []
            for effect in self._machine.handle(events, START + self._now):
                following += self._carry_out(effect)
            self._note_reservations()
            self._note_told()
            due = self._machine.next_deadline()
            if not following and due is not None and due <= START + self._now:
                following = [TimePassed()]
            events = following

    def _note_reservations(self) -> None:
        """Note the first start that is reserved for a gang, if it is known, and what is kept free for such gangs."""
        idle = reserved_idle(self._machine.cluster)
        if idle != self._idle[-1].amounts:
            self._idle.append(Idle(self._now, idle))
        for key, plan in self._machine.plans.items():
            played = self._played[int(key.name.rpartition("-")[2])]
            if played.reserved_s is None and plan.start is not None and plan.start < float("inf"):
                played.reserved_s = plan.start - START

    def _note_told(self) -> None:
        for key, start in self._machine.forecasting.told_starts.last.items():
            told = self._played[int(key.name.rpartition("-")[2])].told
            earliest, latest = (at - START if at else 0.0 for at in (start.earliest, start.latest))
            if not told or told[-1][1:] != (earliest, latest):
                told.append(Told(self._now, earliest, latest))

    def _carry_out(self, effect: Effect) -> Iterator[Event]:
        if isinstance(effect, BindPod):
            pod, number, part = self._pods[effect.uid]
            at = START + self._now
            bound = replace(pod, node=effect.node, bound_at=at, lifetime=replace(pod.lifetime, start=at))
            self._pods[effect.uid] = bound, number, part
            self._take(number, part, effect.node)
            yield from (PodBound(effect.uid, effect.node), PodSeen(bound))
        elif isinstance(effect, EvictPod):
            yield from self._evict(effect.uid)
        elif isinstance(effect, PatchStatus):
            yield StatusWritten(effect.key, "1", effect.status.is_relied_on)

    def _take(self, number: int, part: int, node: str) -> None:
        played = self._played[number]
        played.nodes[node] = played.nodes.get(node, 0) + 1
        self._changes.append(Change(self._now, node, number, part, taken=True))
        self._left[number] -= 1
        if not self._left[number]:
            played.bound_s = self._now
            heapq.heappush(self._agenda, (self._now + played.gang.duration_s, _Kind.END, number, self._runs[number]))

    def _evict(self, uid: str) -> Iterator[Event]:
        """Evict a member; once all of its gang are evicted, they are created again."""
        pod, number, part = self._pods[uid]
        left, events = self._evictions.evict(pod, START + self._now)
        yield from events
        if left is not None:
            self._pods[uid] = left, number, part
        if left is pod or uid not in self._members[number]:
            return
        played = self._played[number]
        played.lost_s += START + self._now - pod.bound_at
        self._members[number].remove(uid)
        if not self._members[number]:
            played.bound_s, played.nodes = None, {}
            played.preemptions += 1
            self._runs[number] += 1
            self._left[number] = played.gang.members
            yield from self._create(number)

    def _gone(self) -> Iterator[Event]:
        """The evicted members that are gone by now."""
        for uid in self._evictions.take_ended(START + self._now):
            pod, number, part = self._pods.pop(uid)
            self._changes.append(Change(self._now, pod.node, number, part, taken=False))
            yield PodGone(uid)

    def _arrive(self, number: int) -> Iterator[Event]:
        gang = self._played[number].gang
        roles = tuple(Role(part.role, part.members) for part in gang.parts if part.role)
        spec = GroupSpec(
            min_member=gang.members,
            max_schedule_time_s=_FOREVER_S,
            priority=None if self._preempt else gang.priority,
            priority_class=_class_of(gang) if self._preempt else "",
            roles=roles,
            strategy=self._strategy,
        )
        key = GroupKey(gang.namespace, _name_of(gang, number))
        yield GroupSeen(Group(key, f"group-{number}", "1", 1, START + self._now, spec))
        yield from self._create(number)

    def _create(self, number: int) -> Iterator[Event]:
        """The members of a run."""
        gang = self._played[number].gang
        name, created = _name_of(gang, number), START + self._now
        lifetime = Lifetime(deadline_s=gang.limit_s, expected_s=gang.expected_s)
        uids = self._members[number] = []
        for place, part in enumerate(gang.parts):
            shape = Shape(requests=part.requests)
            declaration = Declaration(name, part.role)
            for member in range(part.members):
                uid = f"{number}.{self._runs[number]}.{place}.{member}"
                pod = Pod(
                    uid=uid,
                    namespace=gang.namespace,
                    name=f"{name}-{place}-{member}-{self._runs[number]}",
                    shape=shape,
                    created=created,
                    scheduler=self._scheduler,
                    declaration=declaration,
                    lifetime=lifetime,
                )
                self._pods[uid] = pod, number, place
                uids.append(uid)
                yield PodSeen(pod)

    def _end(self, number: int, run: int) -> Iterator[Event]:
        if run != self._runs[number]:
            return
        played = self._played[number]
        played.ended_s = self._now
        self._ended += 1
        for uid in self._members.pop(number):
            pod, _, part = self._pods.pop(uid)
            self._changes.append(Change(self._now, pod.node, number, part, taken=False))
            yield PodGone(uid)
        yield GroupGone(GroupKey(played.gang.namespace, _name_of(played.gang, number)))


def _name_of(gang: Gang, number: int) -> str:
    return f"{gang.name}-{number}"


def _class_of(gang: Gang) -> str:
    """The name of the PriorityClass of the gang's priority."""
    return f"priority-{gang.priority}"
