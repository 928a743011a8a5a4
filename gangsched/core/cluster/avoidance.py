"""Avoidance of nodes for which the API server or the kubelet refuses pods: other nodes are preferred for a while.

A gang avoids a node that has refused one of its members. All gangs avoid it once the refusal counts against the node:
the same pod was accepted elsewhere, or pods of two namespaces, each refused nowhere else, are refused there. A refusal
that is the fault of the pod or its namespace does not count, so that no tenant can turn others away from a node: such a
pod is refused on every node, and the nodes that refuse it accept other members of its gang. The duration doubles with
each further refusal, and avoidance ends when the node accepts a pod. It is a preference: gangs that fit nowhere else
are tried on such a node (`placement.place`). It is not persisted; after a restart it is learned again. What makes pods
that fail at once is paused beside it (`failures`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from gangsched.core.cluster.failures import Failures
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.duration import doubled, format_duration
from gangsched.core.objects.effects import EmitEvent
from gangsched.core.objects.indexes import drop, drop_oldest
from gangsched.core.objects.reasons import Reason

FIRST_S = 60.0
LONGEST_S = 1920.0
"""A node is avoided for FIRST_S seconds, doubled each time that it refuses again afterwards, up to LONGEST_S. The
number of repetitions is remembered for another LONGEST_S."""
EVIDENCE_S = 60.0
"""Time, in seconds, for which a refusal may still come to count against the node."""
TRIES_ON_A_NODE = 2
"""Number of permanent refusals of a quorum's member on one node after which the member is placed again."""
MOST_BLAMED = 5
"""If more nodes refused a pod before one accepted it, the cause was in the pod and is gone: none is blamed."""
MOST_GANGS = 10_000
MOST_NODES_OF_A_GANG = 100
MOST_PODS = 10_000
MOST_PODS_ON_A_NODE = 1_000
"""Bounds on what is remembered: gangs, nodes of a gang, refused pods, and refused pods on a node. Beyond them, the
oldest entries are dropped."""
EVENTS_A_MINUTE = 10
"""Maximum number of Events on nodes per minute: if more nodes refuse pods, no single node is at fault."""
_MINUTE_S = 60.0


class Tries(NamedTuple):
    """How often a pod was refused on the node in question, and on how many nodes in total."""

    here: int
    nodes: int


class _Note(Struct):
    """A node is avoided until this time, for the `times`-th time in a row."""

    until: float
    times: int


class _Case(Struct):
    """The refusals of a pod on one node: how often, the time and message of the last, and whether by the kubelet."""

    namespace: str
    at: float
    message: str
    by_kubelet: bool
    times: int = 0


class Avoidance:
    """The nodes that are avoided. `counted` is the number of refusals that have counted against nodes so far.

    `failures` are the makers of pods that fail at once, for which nodes are closed.
    """

    def __init__(self) -> None:
        self.counted = 0
        self.failures = Failures()
        self._now = 0.0
        self._prune_at = 0.0
        self._by_all: dict[str, _Note] = {}
        self._kubelets: set[str] = set()
        self._by_gang: dict[GroupKey, dict[str, _Note]] = {}
        self._cases: dict[str, dict[str, _Case]] = {}
        self._on: dict[str, dict[str, _Case]] = {}
        self._events: list[EmitEvent] = []
        self._reported_at: list[float] = []

    def note_time(self, now: float) -> None:
        """Set the present time, in epoch seconds: expired entries have no effect, and are dropped later."""
        self._now = now
        self.failures.note_time(now)
        if now < self._prune_at:
            return
        self.failures.prune()
        self._prune_at = now + EVIDENCE_S
        for uid in [uid for uid, cases in self._cases.items() if not any(map(self._is_fresh, cases.values()))]:
            self._drop_pod(uid)
        self._by_all = self._remembered(self._by_all)
        self._kubelets &= self._by_all.keys() | self._on.keys()
        notes = ((key, self._remembered(notes)) for key, notes in self._by_gang.items())
        self._by_gang = {key: left for key, left in notes if left}

    def by_all(self) -> frozenset[str]:
        """The nodes that all gangs avoid now."""
        return self._active(self._by_all)

    def by_gang(self, key: GroupKey) -> frozenset[str]:
        """The nodes that have refused a member of the gang, and that it avoids now."""
        return self._active(self._by_gang[key]) if key in self._by_gang else frozenset()

    def next_end(self) -> float:
        """When the next node stops being avoided by all gangs, in epoch seconds; infinity if there is none."""
        return min((note.until for note in self._by_all.values() if note.until > self._now), default=float("inf"))

    def refused(self, key: GroupKey, uid: str, node: str, message: str, *, by_kubelet: bool = False) -> Tries:
        """The node has permanently refused a pod of the gang, for a reason that may be the node's fault."""
        self.given_up(key, node)
        cases = self._cases.setdefault(uid, {})
        case = cases.get(node)
        if case is None or not self._is_fresh(case):
            case = cases[node] = _Case(key.namespace, self._now, message, by_kubelet)
            self._on.setdefault(node, {})[uid] = case
        case.times += 1
        case.at, case.message = self._now, message
        tries = Tries(case.times, len(cases))
        if by_kubelet:
            self._kubelets.add(node)
        while len(self._cases) > MOST_PODS:
            self._drop_pod(next(iter(self._cases)))
        while len(self._on[node]) > MOST_PODS_ON_A_NODE:
            self._drop_case(next(iter(self._on[node])), node)
        if self._may_count(uid, case) and node not in self.by_all():
            counting = [other for uid, other in self._on[node].items() if self._may_count(uid, other)]
            if len({other.namespace for other in counting}) > 1:
                self._count(node, counting)
        return tries

    def given_up(self, key: GroupKey, node: str) -> None:
        """The gang avoids the node, because a volume or device that a member needs could not be provided there."""
        self._grow(self._by_gang.setdefault(key, {}), node)
        drop_oldest(self._by_gang[key], MOST_NODES_OF_A_GANG)
        drop_oldest(self._by_gang, MOST_GANGS)

    def accepted(self, uid: str, node: str) -> None:
        """The API server has bound the pod to the node: other nodes that have recently refused it are blamed."""
        self._succeeded(node, by_kubelet=False)
        cases = self._cases.get(uid, {})
        blamed = [(other, case) for other, case in cases.items() if not case.by_kubelet and self._is_fresh(case)]
        self._drop_pod(uid)
        if len(blamed) <= MOST_BLAMED:
            for other, case in blamed:
                self._count(other, [case, *self._on.get(other, {}).values()])

    def ran(self, node: str) -> None:
        """The node's kubelet has started a pod."""
        if node in self._kubelets:
            self._kubelets.discard(node)
            self._succeeded(node, by_kubelet=True)

    def take_events(self) -> list[EmitEvent]:
        """The Events on nodes since the last call."""
        events, self._events = self._events, []
        return events

    def validate(self) -> list[str]:
        """One sentence for each contradiction and each exceeded bound."""
        wrong = []
        by_pod = {(uid, node): case for uid, cases in self._cases.items() for node, case in cases.items()}
        on_node = {(uid, node): case for node, cases in self._on.items() for uid, case in cases.items()}
        if by_pod != on_node or not all((*self._cases.values(), *self._on.values(), *self._by_gang.values())):
            wrong.append("refusals by pod are not those by node, or empty ones are kept")
        if len(self._cases) > MOST_PODS or any(len(cases) > MOST_PODS_ON_A_NODE for cases in self._on.values()):
            wrong.append("more refused pods are remembered than may be")
        if len(self._by_gang) > MOST_GANGS or any(
            len(nodes) > MOST_NODES_OF_A_GANG for nodes in self._by_gang.values()
        ):
            wrong.append("more gangs or nodes that refused them are remembered than may be")
        return wrong

    def _succeeded(self, node: str, *, by_kubelet: bool) -> None:
        if by_kubelet or node not in self._kubelets:
            self._by_all.pop(node, None)
        for uid in [uid for uid, case in self._on.get(node, {}).items() if case.by_kubelet is by_kubelet]:
            self._drop_case(uid, node)

    def _may_count(self, uid: str, case: _Case) -> bool:
        """Whether the refusal is as likely the node's fault as the pod's own: no other node has refused the pod."""
        lasting = case.by_kubelet or case.times >= TRIES_ON_A_NODE
        return lasting and self._is_fresh(case) and len(self._cases[uid]) == 1

    def _count(self, node: str, cases: Sequence[_Case]) -> None:
        self.counted += 1
        if self._grow(self._by_all, node):
            self._report(node, cases)

    def _grow(self, notes: dict[str, _Note], node: str) -> bool:
        """Avoid the node, unless it is avoided already. Returns whether that is new."""
        note = notes.pop(node, None)
        if note is not None and note.until > self._now:
            notes[node] = note
            return False
        times = 1 if note is None else note.times + 1
        notes[node] = _Note(self._now + doubled(FIRST_S, times, longest=LONGEST_S), times)
        return True

    def _report(self, node: str, cases: Sequence[_Case]) -> None:
        self._reported_at = [at for at in self._reported_at if at + _MINUTE_S > self._now]
        if len(self._reported_at) >= EVENTS_A_MINUTE:
            return
        self._reported_at.append(self._now)
        number, namespaces = len(cases), len({case.namespace for case in cases})
        pods = "1 pod was" if number == 1 else f"{number} pods of {namespaces} namespaces were"
        lasts = format_duration(round(self._by_all[node].until - self._now))
        who = "its kubelet" if cases[0].by_kubelet else "the API server"
        self._events.append(
            EmitEvent(
                kind="Node",
                namespace="",
                name=node,
                uid=node,
                type="Warning",
                reason=Reason.BINDINGS_REFUSED,
                action="Scheduling",
                note=f"{pods} refused on this node by {who}, so other nodes are preferred for the next {lasts} "
                "or until a pod is accepted here: find what refuses them, most often an admission policy or webhook "
                f"that checks the node. Last response: {cases[0].message}",
            )
        )

    def _active(self, notes: dict[str, _Note]) -> frozenset[str]:
        return frozenset(node for node, note in notes.items() if note.until > self._now)

    def _remembered(self, notes: dict[str, _Note]) -> dict[str, _Note]:
        return {node: note for node, note in notes.items() if note.until + LONGEST_S > self._now}

    def _is_fresh(self, case: _Case) -> bool:
        return case.at + EVIDENCE_S > self._now

    def _drop_pod(self, uid: str) -> None:
        for node in list(self._cases.get(uid, ())):
            self._drop_case(uid, node)

    def _drop_case(self, uid: str, node: str) -> None:
        drop(self._cases, uid, node)
        drop(self._on, node, uid)
