"""The promises that hold whatever fails, measured by what the API server holds and by what the machine was told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gangsched.core.gang.wants import role_minima
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect, EvictPod
from gangsched.core.objects.events import Event
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.record import Phase
from gangsched.core.objects.results import BindRefused, EvictionRefused, PodBound, Spared
from tests.harness import Harness

TELLING_S = 3.0
"""A degraded group says so after it has been degraded for 2 s."""


class Ledger:
    """What one deciding machine has asked for and been told: no pod is bound twice, no node is filled beyond its room.

    A binding that was refused counts no more; one without an answer that takes effect later is as good as a stranger.
    """

    def __init__(self) -> None:
        self._unanswered: dict[str, str] = {}
        self._confirmed: set[str] = set()
        self._asked: dict[str, str] = {}

    def hear(self, events: Iterable[Event]) -> None:
        """The machine is told this."""
        for event in events:
            if isinstance(event, PodBound | BindRefused):
                self._unanswered.pop(event.uid, None)
            if isinstance(event, PodBound):
                self._confirmed.add(event.uid)
            elif isinstance(event, BindRefused):
                self._asked.pop(event.uid, None)

    def check(self, effects: Iterable[Effect], machine: Machine) -> None:
        """The machine has decided this."""
        asked = [effect for effect in effects if isinstance(effect, BindPod)]
        for effect in asked:
            pod = machine.cluster.pods[effect.uid]
            assert not pod.node, f"{effect.name} is bound and is bound again"
            assert effect.uid not in self._confirmed, f"{effect.name} was bound and is bound again"
            assert effect.uid not in self._unanswered, f"{effect.name} is bound while its binding is on its way"
            self._unanswered[effect.uid] = effect.node
            self._asked[effect.uid] = effect.node
        for node in {effect.node for effect in asked}:
            self._check_node(node, machine)

    def _check_node(self, name: str, machine: Machine) -> None:
        pods = machine.cluster.pods
        there = [pod for uid, pod in pods.items() if not pod.terminal and (pod.node or self._asked.get(uid)) == name]
        taken = Counter({"pods": len(there)})
        for pod in there:
            taken.update(dict(pod.shape.requests))
        given = dict(machine.cluster.nodes[name].allocatable)
        for resource, amount in taken.items():
            assert amount <= given.get(resource, 0), f"{name} is made to hold {amount} {resource}"


@dataclass(slots=True)
class Quorum:
    """A quorum of which the first binding was asked for: its terms, who landed, and since when it is partial."""

    minimum: int
    roles: Mapping[str, int]
    landed: set[str] = field(default_factory=set)
    annotated: bool = False
    ours: bool = False
    since: float = 0.0
    excused: bool = False
    free: bool = False


class RuleOne:
    """No quorum stays partly bound for longer than the repair deadline (contract rule 1).

    Counted while the machine runs and the API server answers: `excuse` begins the count anew. Members that nothing
    would make again, and those whose eviction is refused, may stay; the group must say so. `longest` is the longest
    time that any quorum was partial, in seconds.
    """

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self.quorums: dict[GroupKey, Quorum] = {}
        self.whole: set[GroupKey] = set()
        self.longest = 0.0
        self._landed: dict[GroupKey, set[str]] = {}

    def excuse(self) -> None:
        """Begin to count anew: something kept the machine from knowing or doing what it must."""
        self.look()
        for quorum in self.quorums.values():
            quorum.since = self._harness.now if quorum.since else 0.0

    def forget(self) -> None:
        """Whoever leads now knows what is listed: without a PodGroup's status, a quorum begun shows only in the pods.

        It shows where a member still waits that existed when the others were bound. With a PodGroup, members that were
        bound before it existed are none of its quorum.
        """
        self.excuse()
        for key, quorum in list(self.quorums.items()):
            group = self._harness.groups.get(key)
            if group is not None:
                there = self._harness.pods
                quorum.landed = {uid for uid in quorum.landed & there.keys() if there[uid].bound_at >= group.created}
            else:
                live = [pod for pod in self._harness.pods.values() if key_of(pod) == key and is_live(pod)]
                first = min((pod.bound_at for pod in live if pod.node), default=0.0)
                if not quorum.annotated or not any(not pod.node and pod.created <= first for pod in live):
                    del self.quorums[key]

    def hear(self, events: Iterable[Event]) -> None:
        """The machine is told this."""
        for event in events:
            if isinstance(event, EvictionRefused):
                self.look()
                pod = self._harness.pods.get(event.uid)
                quorum = self.quorums.get(key_of(pod)) if pod is not None else None
                if quorum is not None:
                    quorum.since = self._harness.now if quorum.since else 0.0
                    quorum.excused = quorum.excused or event.why is not Spared.UNAVAILABLE

    def decided(self, effects: Iterable[Effect], machine: Machine) -> None:
        """The machine has decided this. An undo evicts nobody whom nothing would make again (rule 13)."""
        for effect in effects:
            if isinstance(effect, EvictPod):
                pod = machine.cluster.pods[effect.uid]
                gang = machine.gangs[key_of(pod)]
                undo = gang.undo
                assert undo is not None
                assert not gang.flying(), f"{pod.name} is evicted while bindings are on their way"
                assert undo.restart is not None or not self.spared(pod), f"{pod.name} is evicted and not made again"
            elif isinstance(effect, BindPod):
                pod = machine.cluster.pods[effect.uid]
                key = key_of(pod)
                begun = self.quorums.get(key)
                if key not in self.whole and not (begun and begun.landed):
                    decided = machine.gangs[key].record.quorum
                    spec = machine.assessments[key].terms.spec
                    minimum, roles = spec.minimum, role_minima(spec)
                    if decided is not None:
                        minimum, roles = decided.total, dict(decided.roles)
                    self.quorums[key] = Quorum(minimum, roles, ours=True)

    def landed(self, pod: Pod) -> None:
        """A pod has been bound. One that the machine first sees when it is bound already is nobody's quorum."""
        key = key_of(pod)
        machine = self._harness.machine
        if key in self.whole or pod.declaration is None or pod.uid not in machine.cluster.pods:
            return
        self._landed.setdefault(key, set()).add(pod.uid)
        group = self._harness.groups.get(key)
        gang = machine.gangs.get(key)
        if group is None and pod.declaration.min_member is None and (gang is None or gang.record.quorum is None):
            return
        begun = self.quorums.get(key)
        if begun is not None and not begun.landed and (gang is None or pod.uid not in gang.bindings):
            del self.quorums[key]
        if group is not None and group.spec is not None:
            quorum = self.quorums.setdefault(key, Quorum(group.spec.minimum, role_minima(group.spec)))
        else:
            quorum = self.quorums.setdefault(key, Quorum(pod.declaration.min_member or 1, {}))
        quorum.landed.add(pod.uid)
        quorum.annotated = pod.declaration.min_member is not None

    def look(self) -> None:
        """See how every quorum stands now. One begun by a rival is nobody's to finish once its PodGroup is gone."""
        live: dict[GroupKey, list[Pod]] = {}
        for pod in self._harness.pods.values():
            if pod.declaration is not None and is_live(pod):
                live.setdefault(key_of(pod), []).append(pod)
        # Told in another order, old and new members may seem to have met: to the machine the run goes on.
        goes_on = {key for key in self.whole if not self._harness.in_order and self._scheduled(key)}
        self.whole &= live.keys() | goes_on
        self._landed = {key: landed for key, landed in self._landed.items() if key in live}
        for key, quorum in list(self.quorums.items()):
            self._look_at(key, quorum, [pod for pod in live.get(key, ()) if pod.node])

    def _look_at(self, key: GroupKey, quorum: Quorum, bound: list[Pod]) -> None:
        now = self._harness.now
        group = self._harness.groups.get(key)
        minimum, roles = quorum.minimum, quorum.roles
        if group is not None and group.spec is not None:
            asked = role_minima(group.spec)
            minimum = min(minimum, group.spec.minimum)
            roles = {role: min(number, asked.get(role, 0)) for role, number in roles.items()}
        done = [self._harness.pods[uid] for uid in quorum.landed & self._harness.pods.keys()]
        there = [*bound, *(pod for pod in done if pod.phase is PodPhase.SUCCEEDED)]
        by_role = Counter(map(role_of, there))
        whole = len(there) >= minimum and all(by_role[role] >= number for role, number in roles.items())
        whole = whole or (len(self._landed.get(key, ())) >= minimum and self._scheduled(key))
        if quorum.since:
            if bound:
                free = quorum.excused or all(self.spared(pod) for pod in bound)
                quorum.since = now if quorum.free and not free else quorum.since
                quorum.free = free
            lasted = now - quorum.since
            limit = self._harness.policy.repair_deadline_s
            if quorum.free and bound and not whole:
                gang = self._harness.machine.gangs.get(key)
                told = gang is not None and gang.record.phase in (Phase.DEGRADED, Phase.FAILED)
                assert told or lasted <= limit + TELLING_S, f"{key} is bound in part and does not say so"
            elif not quorum.free:
                self.longest = max(self.longest, lasted)
                assert lasted <= limit, f"{key} has been bound in part for {lasted:.1f}s"
        nobodys = group is None and not (quorum.ours or quorum.annotated)
        begun = any(pod.uid in quorum.landed for pod in bound)
        if whole or nobodys or (quorum.landed and not bound):
            del self.quorums[key]
            if whole:
                self.whole.add(key)
        else:
            quorum.since = (quorum.since or now) if begun else 0.0

    def _scheduled(self, key: GroupKey) -> bool:
        """Whether the machine takes the quorum for bound: a loss of which it heard later is repaired, not undone."""
        gang = self._harness.machine.gangs.get(key)
        return gang is not None and bool(gang.record.scheduled_at)

    def spared(self, pod: Pod) -> bool:
        """Whether an undo leaves the pod where it is."""
        if pod.owner is None:
            return True
        answer = self._harness.jobs.get(pod.owner.uid)
        return pod.owner.kind == "Job" and answer is not None and not answer.replaces


def key_of(pod: Pod) -> GroupKey:
    """The pod's group, or a key of its own."""
    if pod.declaration is None:
        return GroupKey(pod.namespace, pod.name, pod.uid)
    return GroupKey(pod.namespace, pod.declaration.group)


def is_live(pod: Pod) -> bool:
    """Whether the pod is a member that has not ended and is not about to."""
    return not (pod.terminating or pod.gated or pod.terminal)
