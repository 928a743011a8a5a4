"""The scheduler's whole logic behind one door: `Machine.handle(events, now) -> effects`.

Each call applies the events to the cluster and the gangs, brings every gang they touched up to date, lets one pass
place what waits, and says what people must be told. Nothing here reads a clock, does I/O or depends on chance: the same
events at the same times give the same effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gangsched.core import bindings, clock, explain, life
from gangsched.core.cluster import Cluster
from gangsched.core.deadlines import Deadlines
from gangsched.core.declaration import resolve
from gangsched.core.effects import Effect
from gangsched.core.events import (
    BindRefused,
    Event,
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    NamespaceGone,
    NamespaceSeen,
    NamespacesReplaced,
    NodeGone,
    NodeSeen,
    NodesReplaced,
    PodBound,
    PodGone,
    PodSeen,
    PodsReplaced,
    PriorityClassesReplaced,
    PriorityClassGone,
    PriorityClassSeen,
    Refused,
    StatusRefused,
    StatusWritten,
    Synced,
    TimePassed,
)
from gangsched.core.gang import BindState, Gang
from gangsched.core.life import Assessment
from gangsched.core.members import Members
from gangsched.core.model import GroupKey
from gangsched.core.passing import run_pass
from gangsched.core.policy import Policy
from gangsched.core.queue import Queue
from gangsched.core.reasons import Reason
from gangsched.core.telling import Teller

STALE_RETRY_S = 0.25
"""A status write that lost a race is tried again once the newer object has had time to arrive."""
FAILED_RETRY_S = 5.0
"""A status write that failed for another reason is tried again after this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Plain numbers for metrics; `refusals` (by reason) and `timeouts` only ever grow."""

    pods: int
    nodes: int
    phases: Mapping[str, int]
    waiting: int
    parked: int
    refusals: Mapping[str, int]
    timeouts: int


class Machine:
    """Events in, effects out. The only owner of the state; see the module's docstring."""

    def __init__(self, policy: Policy) -> None:
        self.cluster = Cluster()
        self.gangs: dict[GroupKey, Gang] = {}
        self.assessments: dict[GroupKey, Assessment] = {}
        self._policy = policy
        self._members = Members(self.cluster, self.gangs, policy)
        self._queue = Queue()
        self._priority_classes: dict[str, int] = {}
        self._deadlines = Deadlines()
        self._synced = False
        self._holders = explain.Holders(self.cluster)
        self._teller = Teller(policy, self._holders, self._ahead)
        self._timeouts = 0
        self._refusals: Counter[str] = Counter()
        self._waits: list[float] = []

    def handle(self, events: Sequence[Event], now: float) -> list[Effect]:
        """Apply what has happened and decide; `now` is in epoch seconds and never goes back."""
        for event in events:
            self._apply(event, now)
        if not self._synced:
            return []
        self._holders.renew()
        effects: list[Effect] = []
        self._members.dirty.update(dict.fromkeys(self._deadlines.take_due(now)))
        touched = self._advance_dirty(effects, now)
        self._queue.wake(self.gangs, self.cluster)
        if self._queue.active:
            decided = run_pass(self.cluster, self.gangs, self.assessments, self._queue.in_order())
            effects += decided.effects
            self._refusals.update(decided.refusals)
            self._members.dirty.update(dict.fromkeys(decided.tried))
        touched.update(self._advance_dirty(effects, now))
        for key in touched:
            effects += self._tell(key, now)
        return effects

    def next_deadline(self) -> float | None:
        """When, in epoch seconds, something is due though nothing happens; None if nothing is."""
        return self._deadlines.next()

    def stats(self) -> Stats:
        """What metrics show of the present state."""
        phases = Counter(gang.phase.value for gang in self.gangs.values() if not gang.plain)
        return Stats(
            pods=len(self.cluster.pods),
            nodes=len(self.cluster.nodes),
            phases=phases,
            waiting=len(self._queue.parked) + len(self._queue.active),
            parked=len(self._queue.parked),
            refusals=self._refusals,
            timeouts=self._timeouts,
        )

    def take_waits(self) -> list[float]:
        """Seconds from complete to bound of the gangs scheduled since the last call."""
        waits, self._waits = self._waits, []
        return waits

    def validate(self) -> list[str]:
        """Contradictions in the state; empty when all is well (checked after every test)."""
        wrong = self.cluster.validate()
        for key, gang in self.gangs.items():
            wrong += [
                f"{key}: {uid} is bound to {binding.node} but counted on {self.cluster.node_of(uid)}"
                for uid, binding in gang.bindings.items()
                if self.cluster.node_of(uid) != binding.node
            ]
        return wrong

    # Events

    def _apply(self, event: Event, now: float) -> None:
        match event:
            case PodSeen(pod):
                self._members.pod_seen(pod)
            case PodGone(uid):
                self._members.pod_gone(uid)
            case PodsReplaced(pods):
                self._members.pods_replaced(pods)
            case GroupSeen(group):
                self._members.group_seen(group, now=now, synced=self._synced)
            case GroupGone(key):
                self._members.group_gone(key)
            case GroupsReplaced(groups):
                self._members.groups_replaced(groups, now=now, synced=self._synced)
            case PodBound() | BindRefused() | StatusWritten() | StatusRefused():
                self._result(event, now)
            case Synced():
                self._synced = True
                self._members.adopt_all(now)
            case TimePassed():
                pass
            case _:
                self._surroundings(event)

    def _surroundings(self, event: Event) -> None:
        cluster = self.cluster
        match event:
            case NodeSeen(node):
                cluster.set_node(node)
            case NodeGone(name):
                self._node_gone(name)
            case NodesReplaced(nodes):
                for name in cluster.nodes.keys() - {node.name for node in nodes}:
                    self._node_gone(name)
                for node in nodes:
                    cluster.set_node(node)
            case NamespaceSeen(name, labels):
                cluster.set_namespace(name, labels)
            case NamespaceGone(name):
                cluster.remove_namespace(name)
            case NamespacesReplaced(namespaces):
                for name in cluster.namespaces.keys() - {name for name, _ in namespaces}:
                    cluster.remove_namespace(name)
                for name, labels in namespaces:
                    cluster.set_namespace(name, labels)
            case PriorityClassSeen(name, value):
                self._set_priority_classes({**self._priority_classes, name: value})
            case PriorityClassGone(name):
                left = {other: value for other, value in self._priority_classes.items() if other != name}
                self._set_priority_classes(left)
            case PriorityClassesReplaced(classes):
                self._set_priority_classes(dict(classes))

    def _node_gone(self, name: str) -> None:
        """Held places on the node are worth nothing any more; their gangs are looked at anew."""
        for uid in self.cluster.on_node.get(name, ()):
            self._members.touch(uid)
        self.cluster.remove_node(name)

    def _set_priority_classes(self, classes: dict[str, int]) -> None:
        known = self._priority_classes
        changed = {name for name in classes.keys() | known.keys() if classes.get(name) != known.get(name)}
        self._priority_classes = classes
        for key, gang in self.gangs.items():
            if gang.group is not None and gang.group.spec is not None and gang.group.spec.priority_class in changed:
                self._members.dirty[key] = None

    def _result(self, event: PodBound | BindRefused | StatusWritten | StatusRefused, now: float) -> None:
        if isinstance(event, StatusWritten | StatusRefused):
            gang = self.gangs.get(event.key)
            if gang is None or gang.group is None:
                return
            self._members.dirty[event.key] = None
            if isinstance(event, StatusRefused):
                gang.told.unwritten = True
                gang.told.retry_at = now + (STALE_RETRY_S if event.stale else FAILED_RETRY_S)
                return
            gang.resource_version = event.resource_version
            gang.durable = gang.durable or (event.reserved and bool(gang.durable_asked_at))
            return
        key = self._members.touch(event.uid)
        gang = self.gangs.get(key) if key is not None else None
        if gang is None:
            return
        if isinstance(event, PodBound):
            bindings.note_bound(gang, event.uid, event.node)
        elif event.why in (Refused.GONE, Refused.CONFLICT):
            binding = gang.bindings.get(event.uid)
            if binding is not None and binding.node == event.node:
                bindings.release(gang, self.cluster, event.uid)
                self._members.set_aside(event.uid)
        elif bindings.note_refused(gang, self.cluster, event, now):
            bindings.release_all(gang, self.cluster)
            gang.complaint = event.message
            gang.parked = True
            clock.back_off(gang, now=now, policy=self._policy)

    # Deciding

    def _advance_dirty(self, effects: list[Effect], now: float) -> dict[GroupKey, None]:
        touched = dict(self._members.dirty)
        self._members.dirty.clear()
        for key in touched:
            gang = self.gangs.get(key)
            if gang is not None:
                self._advance(gang, effects, now)
        return touched

    def _advance(self, gang: Gang, effects: list[Effect], now: float) -> None:
        bindings.reconcile(gang, self.cluster)
        terms, hindrance = resolve(gang, gang.live(), policy=self._policy, priority_classes=self._priority_classes)
        gang.contradicted = hindrance is not None and hindrance.reason is Reason.CONTRADICTION
        assessment = life.advance(gang, terms, hindrance, now=now, policy=self._policy)
        self._timeouts += assessment.timed_out
        if assessment.hopeless:
            bindings.release_all(gang, self.cluster)
            gang.parked = assessment.timed_out
            assessment = life.advance(gang, terms, hindrance, now=now, policy=self._policy)
        self.assessments[gang.key] = assessment
        if assessment.newly_scheduled and gang.complete_since:
            self._waits.append(now - gang.complete_since)
        if self._must_be_durable(gang):
            gang.durable_asked_at = now
        effects += bindings.resend_due(gang, now)
        self._queue.file(gang, assessment)

    def _must_be_durable(self, gang: Gang) -> bool:
        """Places of a quorum that outlive the pass are written down before anything relies on them (design rule 4)."""
        return (
            gang.group is not None
            and not gang.durable_asked_at
            and not gang.run.scheduled_at
            and any(binding.state is BindState.HELD for binding in gang.bindings.values())
        )

    def _tell(self, key: GroupKey, now: float) -> list[Effect]:
        gang = self.gangs.get(key)
        if gang is None:
            self._forget(key)
            return []
        assessment = self.assessments[key]
        effects: list[Effect] = []
        self._teller.schedule(gang, assessment, now)
        if gang.tell_at <= now:
            effects = self._teller.tell(gang, assessment, now)
            self._teller.schedule(gang, assessment, now)
        if self._members.finished(gang):
            self._forget(key)
        else:
            self._deadlines.set(key, min(assessment.due, gang.tell_at, bindings.next_retry(gang)))
        return effects

    def _forget(self, key: GroupKey) -> None:
        self._members.drop(key)
        self.assessments.pop(key, None)
        self._queue.drop(key)
        self._deadlines.drop(key)

    def _ahead(self, gang: Gang) -> str:
        return explain.ahead_of(gang.key, self._queue.before(gang.key))
