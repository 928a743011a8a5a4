"""Plays a trace on nodes: the core decides as it would in a cluster, on a simulated clock.

A gang arrives with all its members, a PodGroup and its priority. Its bindings succeed at once; it ends `run_s` seconds
after its last member was bound, and its pods and PodGroup are deleted then. Nothing fails, and nothing else happens.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, GroupKey, Role
from gangsched.core.objects.effects import BindPod, Effect, PatchStatus
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
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound, StatusWritten
from gangsched.core.objects.shape import Shape
from gangsched.whatif.trace import Gang, Trace

START = 946684800.0
"""The start of the simulated clock, 2000-01-01, in epoch seconds."""
_FOREVER_S = 7 * 24 * 3600.0


@dataclass(slots=True, kw_only=True)
class Played:
    """The course of one gang, in seconds since the start; `bound_s` and `ended_s` are None until that happens.

    `nodes` counts its members by node.
    """

    gang: Gang
    bound_s: float | None = None
    ended_s: float | None = None
    nodes: dict[str, int] = field(default_factory=dict)

    @property
    def waited_s(self) -> float | None:
        """The time from its arrival to its last binding; None if it is not bound."""
        return None if self.bound_s is None else self.bound_s - self.gang.arrival_s


@dataclass(frozen=True, slots=True)
class Change:
    """At `at_s`, a member of part number `part` of a gang was bound to the node, or ended there (`taken` is False)."""

    at_s: float
    node: str
    gang: int
    part: int
    taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The result of a trace with one strategy; `gangs` in order of arrival, `changes` in chronological order."""

    strategy: str
    gangs: Sequence[Played]
    changes: Sequence[Change]
    nodes: Sequence[Node]


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
    scheduler: str = "gangsched",
    progress: Callable[[int, float], None] | None = None,
) -> Replay:
    """Play the trace until every gang that fits has ended.

    `progress` is called regularly with the number of gangs that have ended and the seconds since the start.
    """
    return _Player(trace, nodes, policy, strategy, scheduler, progress).play()


class _Player:
    def __init__(
        self,
        trace: Trace,
        nodes: Sequence[Node],
        policy: Policy,
        strategy: str,
        scheduler: str,
        progress: Callable[[int, float], None] | None,
    ) -> None:
        # A replay does not use the reasons why gangs wait, and finding them would take longer than all decisions.
        silent = replace(policy, fold_s=_FOREVER_S, message_interval_s=_FOREVER_S)
        self._machine = Machine(silent, reconcile_pause_s_per_pod=0.0)
        self._nodes = nodes
        self._strategy = strategy
        self._scheduler = scheduler
        self._progress = progress
        self._played = [Played(gang=gang) for gang in trace.gangs]
        self._pods: dict[str, tuple[Pod, int, int]] = {}
        self._left = [gang.members for gang in trace.gangs]
        self._members: dict[int, list[str]] = {}
        self._agenda = [(gang.arrival_s, _Kind.ARRIVAL, number) for number, gang in enumerate(trace.gangs)]
        heapq.heapify(self._agenda)
        self._changes: list[Change] = []
        self._now = 0.0
        self._ended = 0

    def play(self) -> Replay:
        namespaces = {played.gang.namespace for played in self._played}
        self._decide(
            [
                NamespacesReplaced(tuple((name, (("kubernetes.io/metadata.name", name),)) for name in namespaces)),
                PriorityClassesReplaced(()),
                NodesReplaced(tuple(self._nodes)),
                PodsReplaced(()),
                Synced(),
            ]
        )
        while self._agenda:
            due = self._machine.next_deadline()
            at = self._agenda[0][0]
            if due is not None and due - START < at:
                self._now = max(self._now, due - START)
                self._decide([TimePassed()])
                continue
            self._now = max(self._now, at)
            events: list[Event] = []
            while self._agenda and self._agenda[0][0] <= self._now:
                _, kind, number = heapq.heappop(self._agenda)
                events += self._arrive(number) if kind is _Kind.ARRIVAL else self._end(number)
            self._decide(events)
            if self._progress is not None:
                self._progress(self._ended, self._now)
        return Replay(strategy=self._strategy, gangs=self._played, changes=self._changes, nodes=self._nodes)

    def _decide(self, events: list[Event]) -> None:
        """Let the machine decide until nothing is left to do at this time."""
        while events:
            following: list[Event] = []
            for effect in self._machine.handle(events, START + self._now):
                following += self._carry_out(effect)
            due = self._machine.next_deadline()
            if not following and due is not None and due <= START + self._now:
                following = [TimePassed()]
            events = following

    def _carry_out(self, effect: Effect) -> Iterator[Event]:
        if isinstance(effect, BindPod):
            pod, number, part = self._pods[effect.uid]
            self._pods[effect.uid] = replace(pod, node=effect.node), number, part
            self._take(number, part, effect.node)
            yield PodBound(effect.uid, effect.node)
        elif isinstance(effect, PatchStatus):
            yield StatusWritten(effect.key, "1", effect.status.reservation is not None)

    def _take(self, number: int, part: int, node: str) -> None:
        played = self._played[number]
        played.nodes[node] = played.nodes.get(node, 0) + 1
        self._changes.append(Change(self._now, node, number, part, taken=True))
        self._left[number] -= 1
        if not self._left[number]:
            played.bound_s = self._now
            heapq.heappush(self._agenda, (self._now + played.gang.run_s, _Kind.END, number))

    def _arrive(self, number: int) -> Iterator[Event]:
        gang = self._played[number].gang
        name = f"{gang.name}-{number}"
        created = START + self._now
        roles = tuple(Role(part.role, part.members) for part in gang.parts if part.role)
        spec = GroupSpec(
            min_member=gang.members,
            max_schedule_time_s=_FOREVER_S,
            priority=gang.priority,
            roles=roles,
            strategy=self._strategy,
        )
        yield GroupSeen(Group(GroupKey(gang.namespace, name), f"group-{number}", "1", 1, created, spec))
        uids = self._members[number] = []
        for place, part in enumerate(gang.parts):
            shape = Shape(requests=part.requests)
            declaration = Declaration(name, part.role)
            for member in range(part.members):
                uid = f"{number}.{place}.{member}"
                pod = Pod(
                    uid=uid,
                    namespace=gang.namespace,
                    name=f"{name}-{place}-{member}",
                    shape=shape,
                    created=created,
                    scheduler=self._scheduler,
                    declaration=declaration,
                )
                self._pods[uid] = pod, number, place
                uids.append(uid)
                yield PodSeen(pod)

    def _end(self, number: int) -> Iterator[Event]:
        played = self._played[number]
        played.ended_s = self._now
        self._ended += 1
        for uid in self._members.pop(number):
            pod, _, part = self._pods.pop(uid)
            self._changes.append(Change(self._now, pod.node, number, part, taken=False))
            yield PodGone(uid)
        yield GroupGone(GroupKey(played.gang.namespace, f"{played.gang.name}-{number}"))
