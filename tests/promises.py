"""The invariants that hold under any fault, checked against the API server's objects and the machine's input.

The machine's own state is never read: see `tests.ledger`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gangsched.core.objects.declaration import GroupKey, Role
from gangsched.core.objects.effects import BindPod, Effect, EvictPod
from gangsched.core.objects.events import Event
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import Group, OnDegraded
from gangsched.core.objects.results import BindRefused, EvictionRefused, PodBound, Spared, StatusRefused
from gangsched.core.objects.status import PREEMPTION
from tests.harness import Harness
from tests.ledger import Ledger, Told

TELLING_S = 3.0
"""Longest time, in seconds, until a degraded group's status says so; the machine waits 2 s before it reports it."""
UNTOLD_S = 15.0
"""Longest time, in seconds, until a status that the API server refused is written again."""
HELD_S = 10.0
"""Longest time, in seconds, until a refused binding is sent again: until then the quorum may still be in progress."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The number of members that must be bound together, in all and for each role."""

    minimum: int
    roles: Mapping[str, int]

    @classmethod
    def of(cls, minimum: int, roles: Iterable[Role]) -> Terms:
        least = {role.name: role.min_member for role in roles if role.min_member}
        return cls(max(minimum, sum(least.values())), least)

    def least(self, other: Terms) -> Terms:
        """The lower of both terms' requirements."""
        roles = {role: min(number, other.roles.get(role, 0)) for role, number in self.roles.items()}
        return Terms(min(self.minimum, other.minimum), roles)

    def met_by(self, roles: Counter[str]) -> bool:
        """Whether these numbers of members by role are enough."""
        return roles.total() >= self.minimum and all(roles[role] >= number for role, number in self.roles.items())


def terms_of(there: Told | Harness, key: GroupKey, pods: Iterable[Pod]) -> Terms | None:
    """The group's terms from its PodGroup, another system's object, or else these pods; None if none of them says."""
    group = there.groups.get(key)
    says = [pod.declaration for pod in pods if pod.declaration is not None]
    objects = [there.foreign.get((dialect, key)) for say in says for dialect in say.objects]
    for spec in (each.spec for each in (group, *objects) if each is not None):
        if spec is not None:
            return Terms.of(spec.min_member, spec.roles)
    for say in says:
        if say.min_member is not None or say.roles:
            return Terms.of(say.min_member or 0, say.roles)
    return None


@dataclass(slots=True)
class Quorum:
    """A quorum whose first binding has been requested: its terms, its bound members, and since when it is partial.

    `done` holds its members that succeeded, by UID. `ours`: the machine began it. `touched` is when one of its bindings
    was last requested or answered. `refused` is when its status was last refused.
    """

    terms: Terms
    landed: set[str] = field(default_factory=set)
    done: dict[str, str] = field(default_factory=dict)
    declared: bool = False
    ours: bool = False
    touched: float = 0.0
    since: float = 0.0
    refused: float = float("-inf")
    excused: bool = False
    free: bool = False

    def met_by(self, bound: Iterable[Pod]) -> bool:
        """Whether these pods and the succeeded members are enough."""
        there = {pod.uid: role_of(pod) for pod in bound} | self.done
        return self.terms.met_by(Counter(there.values()))


class RuleOne:
    """No quorum stays partly bound for longer than the repair deadline (contract rule 1).

    The time counts only while the machine runs and the API server answers: `excuse` restarts the count. Members that no
    controller would recreate, and members whose eviction is refused, may stay; the group's status must say so.
    `longest` is the longest time that any quorum was partial, in seconds. `whole` holds the groups that had their
    minimum bound in this run, either at the API server or as the machine saw it: it may learn of a loss only later and
    then repairs it.
    """

    def __init__(self, harness: Harness, ledger: Ledger) -> None:
        self._harness = harness
        self._ledger = ledger
        self.quorums: dict[GroupKey, Quorum] = {}
        self.whole: set[GroupKey] = set()
        self.longest = 0.0
        # Groups that the machine saw whole when it was last told something.
        self._shown: set[GroupKey] = set()
        # Quorums that were whole at the API server: a member may end before the machine learns of it.
        self._last: dict[GroupKey, Quorum] = {}

    def excuse(self) -> None:
        """Restart the count: something kept the machine from seeing or doing what it must."""
        self.look()
        for quorum in self.quorums.values():
            quorum.since = self._harness.now if quorum.since else 0.0

    def forget(self, ledger: Ledger) -> None:
        """A new leader knows only what it lists: without a PodGroup's status, only pods show that a quorum has begun.

        They show it if a member that existed when the others were bound is still waiting; otherwise bound members look
        like those of a group that was whole. With a PodGroup, members that were bound before it existed do not belong
        to its quorum, unless its status says that one was under way.
        """
        self._ledger = ledger
        self.excuse()
        for key, quorum in list(self.quorums.items()):
            group = self._harness.groups.get(key)
            record = group.status.record if group is not None else None
            if group is not None:
                there, under_way = self._harness.pods, record is not None and record.quorum is not None
                since = 0.0 if under_way else group.created
                quorum.landed = {uid for uid in quorum.landed & there.keys() if there[uid].bound_at >= since}
                quorum.touched = self._harness.now
            else:
                live = members_of(self._harness, key)
                first = min((pod.bound_at for pod in live if pod.node), default=0.0)
                if not quorum.declared or not any(not pod.node and pod.created <= first for pod in live):
                    del self.quorums[key]
                    if quorum.declared and first:
                        self.whole.add(key)

    def hear(self, events: Iterable[Event]) -> None:
        """Record events that the machine has received."""
        now = self._harness.now
        for event in events:
            if isinstance(event, StatusRefused) and event.key in self.quorums:
                self.quorums[event.key].refused = now
            elif isinstance(event, EvictionRefused | PodBound | BindRefused):
                pod = self._harness.pods.get(event.uid)
                quorum = self.quorums.get(key_of(pod)) if pod is not None else None
                if quorum is None:
                    continue
                quorum.touched = now
                if isinstance(event, EvictionRefused):
                    self.look()
                    quorum.since = now if quorum.since else 0.0
                    quorum.excused = quorum.excused or event.why is not Spared.UNAVAILABLE
        if not self._harness.in_order:
            self.whole = {key for key in self.whole if members_of(self._ledger.told, key)}
        shown = self._shown_whole()
        self.whole |= shown - self._shown
        self._shown = shown
        for key, quorum in list(self.quorums.items()):
            if key in self.whole or quorum.met_by(pod for pod in members_of(self._ledger.told, key) if pod.node):
                del self.quorums[key]
                self.whole.add(key)

    def _shown_whole(self) -> set[GroupKey]:
        """The groups whose minimum is bound as the machine sees it, whoever bound it and whatever was begun."""
        told = self._ledger.told
        bound: dict[GroupKey, list[Pod]] = {}
        for pod in told.pods.values():
            if pod.node and pod.declaration is not None and is_live(pod):
                bound.setdefault(key_of(pod), []).append(pod)
        terms = {key: terms_of(told, key, pods) for key, pods in bound.items()}
        return {key for key, least in terms.items() if least and least.met_by(Counter(map(role_of, bound[key])))}

    def decided(self, effects: Iterable[Effect]) -> None:
        """Check and record the machine's effects. A rollback evicts no pod that nothing would recreate (rule 13).

        No eviction is sent before all bindings have their results, but for what a raised minimum adds to a group that
        was whole: that is rolled back alone, while others of the group are bound.
        `tests.plan_judge` judges preemption.
        """
        told = self._ledger.told
        for effect in effects:
            if isinstance(effect, EvictPod) and effect.cause not in (PREEMPTION, "Overdue"):
                pod = told.pods[effect.uid]
                key = key_of(pod)
                there = (told.pods[uid] for uid in self._ledger.unanswered.keys() & told.pods.keys())
                sent = [other for other in there if key_of(other) == key and not other.node]
                whole = key in self.whole
                alone = whole and effect.cause == "Rollback"
                assert alone or not sent, f"{pod.name} is evicted while bindings are on their way"
                group = told.groups.get(key)
                restarts = group is not None and group.spec is not None and group.spec.on_degraded is OnDegraded.RESTART
                assert (restarts and whole) or not self.spared(pod), f"{pod.name} is evicted and not made again"
            elif isinstance(effect, BindPod):
                key = key_of(told.pods[effect.uid])
                begun = self.quorums.get(key)
                if key not in self.whole and not (begun and begun.landed):
                    self._begin(key, begun)
                elif key not in self.whole and begun is not None and not begun.ours:
                    self._take_over(key, begun)

    def _begin(self, key: GroupKey, begun: Quorum | None) -> None:
        """Begin a quorum under the terms that the machine knows; one in progress ends under its own terms (rule 9)."""
        terms = terms_of(self._ledger.told, key, members_of(self._ledger.told, key)) or Terms(1, {})
        self.quorums[key] = Quorum(self._eased(terms, key, begun), ours=True, touched=self._harness.now)

    def _take_over(self, key: GroupKey, begun: Quorum) -> None:
        """The machine continues a quorum that a rival began, under the terms that it knows, which may be stale."""
        known = terms_of(self._ledger.told, key, members_of(self._ledger.told, key))
        begun.terms = known.least(begun.terms) if known is not None else begun.terms
        begun.ours = True
        begun.touched = self._harness.now

    def _eased(self, terms: Terms, key: GroupKey, begun: Quorum | None) -> Terms:
        """The terms; while a quorum of the machine is in progress, no more than those that it began with (rule 9)."""
        under_way = begun or self._last.get(key)
        if under_way is None or not under_way.ours:
            return terms
        there = self._ledger.told.pods
        waits = any(key_of(there[uid]) == key for uid in self._ledger.unanswered.keys() & there.keys())
        if not waits and self._harness.now - under_way.touched > HELD_S:
            return terms
        return terms.least(under_way.terms)

    def landed(self, pod: Pod) -> None:
        """Record a binding. A pod that is already bound when the machine first sees it belongs to no quorum."""
        key = key_of(pod)
        if key in self.whole or pod.declaration is None or pod.uid not in self._ledger.told.pods:
            return
        terms = terms_of(self._harness, key, members_of(self._harness, key))
        begun = self.quorums.get(key)
        if terms is None and not (begun is not None and begun.ours):
            return
        if begun is not None and not begun.landed and pod.uid not in self._ledger.tried:
            terms = self._eased(terms, key, begun) if terms is not None else None
            del self.quorums[key]
        quorum = self.quorums.setdefault(key, Quorum(terms or Terms(1, {})))
        quorum.landed.add(pod.uid)
        quorum.declared = terms is not None and key not in self._harness.groups

    def look(self) -> None:
        """Check every quorum now. Once its PodGroup is gone, a quorum that a rival began need not be completed."""
        live: dict[GroupKey, list[Pod]] = {}
        for pod in self._harness.pods.values():
            if pod.declaration is not None and is_live(pod):
                live.setdefault(key_of(pod), []).append(pod)
        # Events out of order may make old and new members seem to overlap: for the machine the run continues.
        if self._harness.in_order:
            self.whole &= live.keys()
        for key, quorum in list(self.quorums.items()):
            self._look_at(key, quorum, [pod for pod in live.get(key, ()) if pod.node])

    def _look_at(self, key: GroupKey, quorum: Quorum, bound: list[Pod]) -> None:
        now = self._harness.now
        group = self._harness.groups.get(key)
        if group is not None and group.spec is not None:
            quorum.terms = quorum.terms.least(Terms.of(group.spec.min_member, group.spec.roles))
        for uid in quorum.landed & self._harness.pods.keys():
            if self._harness.pods[uid].phase is PodPhase.SUCCEEDED:
                quorum.done[uid] = role_of(self._harness.pods[uid])
        whole = quorum.met_by(bound)
        if quorum.since:
            if bound:
                free = quorum.excused or all(self.spared(pod) for pod in bound)
                quorum.since = now if quorum.free and not free else quorum.since
                quorum.free = free
            lasted = now - quorum.since
            limit = self._harness.policy.repair_deadline_s
            if quorum.free and bound and not whole:
                told = group is None or degraded(group) or now - max(quorum.refused, group.created) <= UNTOLD_S
                assert told or lasted <= limit + TELLING_S, f"{key} is bound in part and does not say so"
            elif not quorum.free:
                self.longest = max(self.longest, lasted)
                assert lasted <= limit, f"{key} has been bound in part for {lasted:.1f}s"
        nobodys = group is None and not (quorum.ours or quorum.declared)
        begun = any(pod.uid in quorum.landed for pod in bound)
        if whole or nobodys or (quorum.landed and not bound and not quorum.done):
            self._last[key] = self.quorums.pop(key)
            if whole:
                self.whole.add(key)
        elif begun and not self._held(key, quorum.terms, bound):
            quorum.since = quorum.since or now
        else:
            quorum.since = 0.0

    def _held(self, key: GroupKey, terms: Terms, bound: list[Pod]) -> bool:
        """Whether the status has an unexpired reservation for the missing members: rule 1 counts bound and reserved."""
        group = self._harness.groups.get(key)
        held = group.status.reservation if group is not None else None
        if held is None or held.expires < self._harness.now:
            return False
        roles = Counter(map(role_of, bound))
        for place in held.placements:
            roles[place.role] += place.count - len(place.pods)
        return terms.met_by(roles)

    def partial(self) -> list[str]:
        """Groups never whole in this run that are partly bound, under current terms, with members that may not stay."""
        found = []
        for key in {key_of(pod) for pod in self._harness.pods.values() if pod.declaration is not None} - self.whole:
            live = members_of(self._harness, key)
            bound = [pod for pod in live if pod.node]
            terms = terms_of(self._harness, key, live)
            if terms is None or terms.met_by(Counter(map(role_of, bound))) or self._held(key, terms, bound):
                continue
            if not all(map(self.spared, bound)):
                found.append(str(key))
        return sorted(found)

    def spared(self, pod: Pod) -> bool:
        """Whether a rollback leaves the pod where it is."""
        if pod.owner is None:
            return True
        answer = self._harness.jobs.get(pod.owner.uid)
        return pod.owner.kind == "Job" and answer is not None and bool(answer.why)


def members_of(there: Told | Harness, key: GroupKey) -> list[Pod]:
    """The group's live members."""
    return [pod for pod in there.pods.values() if pod.declaration is not None and key_of(pod) == key and is_live(pod)]


def degraded(group: Group) -> bool:
    """Whether the PodGroup's phase is Degraded or Failed."""
    return group.status.phase in ("Degraded", "Failed")


def key_of(pod: Pod) -> GroupKey:
    """The pod's group, or a key of its own."""
    if pod.declaration is None:
        return GroupKey(pod.namespace, pod.name, pod.uid)
    return GroupKey(pod.namespace, pod.declaration.group)


def is_live(pod: Pod) -> bool:
    """Whether the pod is neither terminating nor gated nor terminal."""
    return not (pod.terminating or pod.gated or pod.terminal)
