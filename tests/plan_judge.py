"""Judges whole-gang preemption (contract rule 13): who was evicted for whom, whether it was needed, and what it led to.

The machine's own state is never read: it is judged by what it was told (`tests.ledger`), by its effects and by the
objects of the API server. `tests.naive` says what fits. For whom a pod leaves is seen from the places that groups have
reserved; where several groups have reserved places on its node, one of them must justify the eviction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import BindPod, Effect, EvictPod, PatchPodCondition, PatchStatus
from gangsched.core.objects.events import (
    BudgetGone,
    BudgetSeen,
    BudgetsReplaced,
    Event,
    PriorityClassesReplaced,
    PriorityClassGone,
    PriorityClassSeen,
)
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.record import Outcome
from gangsched.core.objects.results import BindRefused, EvictionRefused, PodBound, PodEvicted, Spared
from gangsched.core.objects.selectors import matches
from gangsched.core.objects.status import PREEMPTION, TIME
from tests.harness import Harness
from tests.ledger import Told
from tests.naive import World, quorum_exists
from tests.promises import Terms, is_live, key_of, terms_of

OVERDUE_S = 60.0
"""A terminating pod counts as leaving until so many seconds after it should be gone."""
REFUSED_S = 60.0
"""A plan may end once an eviction has been refused for so long."""
WRITTEN_S = 2.0
"""Longest time, in seconds, until a status says that a plan has ended."""
CRITICAL = 2_000_000_000


class Seen(Told):
    """What one machine was told, also of PriorityClasses and PodDisruptionBudgets."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: dict[str, PriorityClass] = {}
        self.budgets: dict[str, DisruptionBudget] = {}

    def hear(self, event: Event) -> None:
        super().hear(event)
        match event:
            case PriorityClassSeen(name, found):
                self.classes[name] = found
            case PriorityClassGone(name):
                self.classes.pop(name, None)
            case PriorityClassesReplaced(classes):
                self.classes = dict(classes)
            case BudgetSeen(budget):
                self.budgets[budget.key] = budget
            case BudgetGone(key):
                self.budgets.pop(key, None)
            case BudgetsReplaced(budgets):
                self.budgets = {each.key: each for each in budgets}

    def copy(self) -> Seen:
        """The same, for later."""
        other = Seen()
        other.pods, other.nodes, other.groups = dict(self.pods), dict(self.nodes), dict(self.groups)
        other.foreign, other.classes, other.budgets = dict(self.foreign), dict(self.classes), dict(self.budgets)
        return other

    def members(self, key: GroupKey) -> list[Pod]:
        """The live pods of the group, or the pod without one."""
        return [pod for pod in self.pods.values() if key_of(pod) == key and is_live(pod)]

    def standing(self) -> list[Pod]:
        """The pods that are on nodes."""
        return [pod for pod in self.pods.values() if pod.node and not pod.terminal]

    def terms(self, key: GroupKey) -> Terms:
        """How many members the group needs."""
        return terms_of(self, key, self.members(key)) or Terms(1, {})

    def needed(self, key: GroupKey) -> Terms:
        """How many members the group needs at least: of a larger minimum, those that it was scheduled with."""
        terms, group = self.terms(key), self.groups.get(key)
        record = group.status.record if group is not None else None
        if record is None or not record.scheduled_at:
            return terms
        return terms.least(Terms(record.satisfied.total, dict(record.satisfied.roles)))

    def priority(self, key: GroupKey) -> int:
        """The priority by which the group is ordered."""
        group = self.groups.get(key)
        if group is not None and group.spec is not None:
            if group.spec.priority is not None:
                return group.spec.priority
            if group.spec.priority_class in self.classes:
                return self.classes[group.spec.priority_class].value
        return max((pod.priority for pod in self.members(key)), default=0)

    def rank(self, key: GroupKey) -> tuple[int, float, str, str]:
        """Its place in the order: the first is the least."""
        group, members = self.groups.get(key), self.members(key)
        created = group.created if group is not None else min((pod.created for pod in members), default=0.0)
        return -self.priority(key), created, key.namespace, key.name

    def is_before(self, pod: Pod, holder: GroupKey) -> bool:
        """Whether a bound pod may have been bound on what this group has reserved: repairs are before all others."""
        group = self.groups.get(key_of(pod))
        scheduled = group.status.scheduled_time if group is not None else 0.0
        repairs = bool(scheduled) and pod.bound_at > int(scheduled)
        return repairs or self.rank(key_of(pod)) < self.rank(holder)

    def may_preempt(self, key: GroupKey) -> bool:
        """Whether its class allows that others leave for the group."""
        group = self.groups.get(key)
        if group is not None and group.spec is not None:
            if not group.spec.preempts:
                return False
            if group.spec.priority_class:
                named = self.classes.get(group.spec.priority_class)
                return named is not None and named.preempts
            if group.spec.priority is not None:
                return False
        important = [pod for pod in self.members(key) if pod.priority == self.priority(key)]
        return bool(important) and all(pod.lifetime.preempts for pod in important)

    def budgets_of(self, pod: Pod) -> list[DisruptionBudget]:
        """The budgets that select the pod."""
        return [
            each
            for each in self.budgets.values()
            if each.namespace == pod.namespace
            and each.selector is not None
            and matches(each.selector, dict(pod.labels))
        ]

    def drawn_by(self, pod: Pod) -> list[str]:
        """The keys of those that count an eviction of the pod."""
        runs = pod.phase is not PodPhase.PENDING
        counts = (each.key for each in self.budgets_of(pod) if pod.lifetime.ready or (runs and each.counts_unready))
        return [*counts]


@dataclass(frozen=True)
class Promise:
    """The places that a group has reserved: each a node and the pod for which it is, or the like of it.

    `since` is the number of things that had happened in the world before, `in_flight` are groups that were being bound.
    """

    places: tuple[tuple[str, Pod], ...]
    since: int
    at: float
    in_flight: frozenset[GroupKey]

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(node for node, _ in self.places)


@dataclass
class Batch:
    """Pods that are told to leave at one time, while nothing else happens, and what the machine knew before."""

    seen: Seen
    promises: Mapping[GroupKey, Promise]
    number: int
    at: float
    drawn: Counter[str]
    finishing: frozenset[GroupKey]
    leaving: Mapping[str, Sequence[GroupKey]]
    asked_under: Mapping[str, Sequence[Promise]]
    victims: dict[str, Pod] = field(default_factory=dict)

    def units(self) -> dict[GroupKey, list[Pod]]:
        """The victims by what they belong to."""
        found: dict[GroupKey, list[Pod]] = {}
        for pod in self.victims.values():
            found.setdefault(key_of(pod), []).append(pod)
        return found

    def is_whole(self, key: GroupKey) -> bool:
        """Whether all of a gang leave."""
        return all(pod.uid in self.victims or not pod.node for pod in self.seen.members(key))

    def going_on(self, promise: Promise) -> set[str]:
        """Pods, by UID, that were told to leave before and still are: for the same plan, or with all of their gang."""
        found, groups = set[str](), self.seen.groups
        for uid, under in self.asked_under.items():
            group = groups.get(key_of(self.seen.pods[uid])) if uid in self.seen.pods else None
            if any(each is promise for each in under) or (group is not None and _marked(group)):
                found.add(uid)
        return found

    def candidates(self, key: GroupKey, pods: Iterable[Pod]) -> tuple[GroupKey, ...]:
        """The groups for which these may leave: those with places reserved on their nodes."""
        nodes = {pod.node for pod in pods}
        return tuple(each for each, promise in self.promises.items() if each != key and promise.nodes & nodes)


@dataclass
class Owed:
    """Groups, one of which must be bound because `victims` have left for it; `causes` say for each why it is not.

    `before` is what the machine knew then, `members` are the pods of each group for which places were reserved.
    """

    victims: Mapping[str, Pod]
    before: Seen
    at: float
    nodes: Mapping[GroupKey, frozenset[str]]
    members: Mapping[GroupKey, frozenset[str]]
    causes: dict[GroupKey, set[str]]
    refused: dict[str, float] = field(default_factory=dict)


class PlanJudge:
    """Asserts what docs/preemption.md promises; `happened` tells it of everything that the machine has not caused.

    `found` counts what it has judged, so that a test can see that it is not idle. Unless `exact`, what leaves may be
    known from some seconds before, so that somebody may leave who could stay.
    """

    def __init__(self, harness: Harness) -> None:
        self.exact = True
        self.found: Counter[str] = Counter()
        self._harness = harness
        self._seen = Seen()
        self._number = 0
        self._promises: dict[GroupKey, Promise] = {}
        # What is reserved for later, which only who waits is judged by.
        self._later: dict[GroupKey, Promise] = {}
        self._asked: dict[str, tuple[GroupKey, ...]] = {}
        self._asked_at: dict[str, float] = {}
        self._asked_under: dict[str, Sequence[Promise]] = {}
        self._unanswered: set[str] = set()
        self._binding: dict[str, float] = {}
        self._refused: set[str] = set()
        self._finishing: frozenset[GroupKey] = frozenset()
        self._batch: Batch | None = None
        self._owed: list[Owed] = []
        self._victims: set[GroupKey] = set()
        self._touched: set[GroupKey] = set()
        self._over: dict[tuple[str, GroupKey], float] = {}

    # What is seen

    def happened(self) -> None:
        """Something happens in the world."""
        self._close(at_rest=False)
        self._number += 1

    def rest(self) -> None:
        """The machine has nothing to do at this time."""
        self._close(at_rest=True)
        self._look_for_causes()
        self._check_claims()

    def hear(self, events: Iterable[Event]) -> None:
        """Record what the machine is told."""
        there = {pod.uid: pod for pod in self._seen.pods.values() if is_live(pod)}
        for event in events:
            self._seen.hear(event)
            if isinstance(event, PodBound | BindRefused):
                self._binding[event.uid] = self._harness.now
            if isinstance(event, PodEvicted | EvictionRefused):
                self._unanswered.discard(event.uid)
            if isinstance(event, EvictionRefused):
                self._refused.add(event.uid)
                self._note_refusal(event)
            elif isinstance(event, PodEvicted):
                for owed in self._owed:
                    owed.refused.pop(event.uid, None)
        for key, promise in list(self._promises.items()):
            if all(_is_placed(self._seen, pod) for _, pod in promise.places):
                del self._promises[key]
        for uid, pod in there.items():
            now = self._seen.pods.get(uid)
            if (now is None or not is_live(now)) and uid not in self._asked:
                self._touched.add(key_of(pod))
        self._look_for_causes()

    def change_leader(self, told: Iterable[Event]) -> None:
        """Another machine leads, which was told this so far."""
        self.happened()
        self._seen = Seen()
        for event in told:
            self._seen.hear(event)
        self._unanswered.clear()
        self._binding.clear()
        groups = self._harness.groups.items()
        self._finishing = frozenset(key for key, group in groups if _marked(group))

    def decided(self, effects: Iterable[Effect]) -> None:
        """Record what the machine does."""
        for effect in effects:
            if isinstance(effect, EvictPod) and effect.cause == PREEMPTION:
                self._evicts(effect)
            elif isinstance(effect, BindPod):
                self._binding[effect.uid] = 0.0
        for effect in effects:
            if isinstance(effect, PatchStatus):
                self._note_places(effect)
            elif isinstance(effect, PatchPodCondition) and effect.nominated is not None:
                self._note_nomination(effect.uid, effect.nominated)

    def _evicts(self, effect: EvictPod) -> None:
        pod = self._seen.pods[effect.uid]
        self._unanswered.add(pod.uid)
        if pod.uid in self._asked and not self._is_asked_anew(pod):
            return
        self._check_order(pod)
        if self._batch is None:
            self._batch = Batch(
                self._seen.copy(),
                dict(self._promises),
                self._number,
                self._harness.now,
                self._drawn({pod.uid}),
                self._finishing,
                dict(self._asked),
                dict(self._asked_under),
            )
        self._batch.promises = {**self._promises, **self._batch.promises}
        self._batch.victims[pod.uid] = pod
        self._asked[pod.uid] = self._batch.candidates(key_of(pod), [pod])
        self._asked_at[pod.uid] = self._harness.now
        self._asked_under[pod.uid] = self._promises_on(pod)
        self._victims.add(key_of(pod))

    def _is_asked_anew(self, pod: Pod) -> bool:
        """Whether a later plan asks a pod to leave whose eviction was refused before, and no gang goes on leaving."""
        group = self._harness.groups.get(key_of(pod))
        record = group.status.record if group is not None else None
        if record is not None and 0 < record.preempted_at <= self._asked_at[pod.uid]:
            return False
        under = self._asked_under[pod.uid]
        later = any(all(each is not other for other in under) for each in self._promises_on(pod))
        return self._asked_at[pod.uid] < self._harness.now and later

    def _promises_on(self, pod: Pod) -> Sequence[Promise]:
        """What is reserved on the pod's node."""
        return [each for each in self._promises.values() if pod.node in each.nodes]

    def _drawn(self, but: Collection[str]) -> Counter[str]:
        """Evictions under way that budgets do not show yet."""
        pods = [self._seen.pods[uid] for uid in self._unanswered - set(but) if uid in self._seen.pods]
        budgets = self._seen.budgets
        return Counter(
            key for pod in pods for key in self._seen.drawn_by(pod) if pod.name not in budgets[key].disrupted
        )

    def _note_places(self, effect: PatchStatus) -> None:
        held, members = effect.status.reservation, {pod.name: pod for pod in self._seen.members(effect.key)}
        placements = held.placements if held is not None else ()
        places = tuple((place.node, members[name]) for place in placements for name in place.pods if name in members)
        self._later.pop(effect.key, None)
        if held is not None and held.kind == PREEMPTION:
            self._note_promise(effect.key, places)
            return
        self._promises.pop(effect.key, None)
        if held is not None and held.kind == TIME:
            self._later[effect.key] = Promise(places, self._number, self._harness.now, frozenset())

    def _note_nomination(self, uid: str, node: str) -> None:
        pod = self._seen.pods.get(uid)
        if pod is not None and pod.declaration is None:
            if node:
                self._note_promise(key_of(pod), ((node, pod),))
            else:
                self._promises.pop(key_of(pod), None)

    def _note_promise(self, key: GroupKey, places: tuple[tuple[str, Pod], ...]) -> None:
        names = sorted((node, pod.uid) for node, pod in places)
        before = self._promises.get(key)
        if before is None or sorted((node, pod.uid) for node, pod in before.places) != names:
            pods, now = self._seen.pods, self._harness.now
            in_flight = frozenset(
                key_of(pods[uid])
                for uid, answered in self._binding.items()
                if uid in pods and (not answered or answered == now)
            )
            self._promises[key] = Promise(places, self._number, self._harness.now, in_flight)

    def _note_refusal(self, event: EvictionRefused) -> None:
        for owed in self._owed:
            if event.uid in owed.victims:
                owed.refused.setdefault(event.uid, self._harness.now)
                if event.why is Spared.FORBIDDEN:
                    for causes in owed.causes.values():
                        causes.add("refused")

    def _is_held_up(self, promise: Promise) -> bool:
        """Whether an eviction for the plan is refused so far: until it is not, nobody else is told to leave for it."""
        return any(each is promise for pod in self._refused_pods() for each in self._asked_under.get(pod.uid, ()))

    def _refused_pods(self) -> Iterator[Pod]:
        """The pods whose eviction is refused so far."""
        there = (self._seen.pods[uid] for uid in self._refused if uid in self._seen.pods)
        return filter(is_live, there)

    # At an eviction

    def _check_order(self, pod: Pod) -> None:
        """Before the first eviction the places are in the status of the group, and the mark in that of the victim."""
        key = key_of(pod)
        assert pod.scheduler in self._harness.policy.scheduler_names or self._harness.policy.preemption.all_victims
        group = self._harness.groups.get(key)
        if group is not None and _marked(group):
            return
        remaining = [each for each in self._seen.members(key) if each.node and each.uid not in self._asked]
        least = self._seen.needed(key)
        roles = Counter(role_of(each) for each in remaining if each.uid != pod.uid)
        if pod.declaration is not None and least.met_by(roles + Counter({role_of(pod): 1})):
            assert least.met_by(roles), f"{pod.name} is evicted, which its group needs, without a mark in its status"
        stored = [each for each in self._promises if self._is_stored(each)]
        assert stored, f"{pod.name} is evicted before a reservation is in a status"

    def _is_stored(self, key: GroupKey) -> bool:
        group = self._harness.groups.get(key)
        if group is not None:
            held = group.status.reservation
            return held is not None and held.kind == PREEMPTION
        return any(pod.uid == key.pod_uid and pod.nominated_node for pod in self._harness.pods.values())

    def _close(self, *, at_rest: bool) -> None:
        """Judge those that were told to leave."""
        batch, self._batch = self._batch, None
        if batch is None:
            return
        seen, units = batch.seen, batch.units()
        ours = {key: pods for key, pods in units.items() if key not in batch.finishing}
        of = {key: batch.candidates(key, pods) for key, pods in ours.items()}
        for key, holders in of.items():
            right = [each for each in holders if seen.may_preempt(each) and seen.priority(each) > seen.priority(key)]
            assert right, f"{key} leaves for none of {[*map(str, holders)]} of higher priority"
            of[key] = tuple(right)
        self._owe(batch, ours, of)
        if not at_rest:
            return
        self._check_quorums(batch, units)
        self._check_budgets(batch, ours)
        for holder in dict.fromkeys(each for holders in of.values() for each in holders):
            self._check_plan(batch, holder, {key: ours[key] for key, holders in of.items() if holder in holders}, of)

    def _owe(
        self, batch: Batch, ours: Mapping[GroupKey, list[Pod]], of: Mapping[GroupKey, tuple[GroupKey, ...]]
    ) -> None:
        for holders in of.values():
            beside = [key for key, others in of.items() if not set(holders).isdisjoint(others)]
            self._owed.append(
                Owed(
                    {pod.uid: pod for key in beside for pod in ours[key]},
                    batch.seen,
                    batch.at,
                    {each: batch.promises[each].nodes for each in holders},
                    {each: frozenset(pod.uid for _, pod in batch.promises[each].places) for each in holders},
                    {each: set() for each in holders},
                )
            )

    def _check_quorums(self, batch: Batch, units: Mapping[GroupKey, list[Pod]]) -> None:
        """No part of a gang is left by us."""
        for key in units:
            if key.pod_uid or key in self._touched:
                continue
            there = [pod for pod in batch.seen.members(key) if pod.node and pod.uid not in batch.leaving]
            least = batch.seen.needed(key)
            left = Counter(role_of(pod) for pod in there if pod.uid not in batch.victims)
            if least.met_by(Counter(map(role_of, there))) and left:
                assert least.met_by(left), f"{key} is left with {left.total()} of {least.minimum} members"

    def _check_budgets(self, batch: Batch, ours: Mapping[GroupKey, list[Pod]]) -> None:
        """No more pods leave than the budgets allow, all together."""
        if self._harness.policy.preemption.exceeds_budgets:
            return
        drawn = Counter(batch.drawn)
        for pod in (pod for pods in ours.values() for pod in pods):
            assert len(batch.seen.budgets_of(pod)) < 2, f"{pod.name} is under two budgets"
            drawn.update(batch.seen.drawn_by(pod))
        for key, number in drawn.items():
            if any(each.key == key for pod in batch.victims.values() for each in batch.seen.budgets_of(pod)):
                assert number <= batch.seen.budgets[key].allowed, f"{number} leave of the budget {key}"
                self.found["budgets"] += 1

    def _check_plan(
        self,
        batch: Batch,
        holder: GroupKey,
        units: Mapping[GroupKey, list[Pod]],
        of: Mapping[GroupKey, tuple[GroupKey, ...]],
    ) -> None:
        seen, opened = batch.seen, batch.promises[holder]
        gone = {pod.uid for pods in units.values() for pod in pods}
        if any(len(of[key]) > 1 for key in units):
            return
        if not self._is_held_up(opened):
            if self._fits(batch, holder, gone | batch.going_on(opened), others=False) is False:
                raise AssertionError(f"{sorted(map(str, units))} leave in vain for {holder}, which does not fit then")
            self.found["proven"] += 1
        if opened.since != batch.number or not self.exact:
            # Something has happened since the plan was made.
            return
        for key, pods in units.items():
            singles = [pods] if batch.is_whole(key) else [[pod] for pod in pods]
            for several in singles:
                spared = gone - {pod.uid for pod in several}
                assert not self._fits(batch, holder, spared, others=True), f"{several[0].name} need not leave"
                self.found["minimal"] += 1
        level = max(seen.priority(key) for key in units)
        sure = self._surely(batch.seen, holder, level)
        below = {uid for uid in sure if key_of(seen.pods[uid]) not in opened.in_flight}
        if self._fits(batch, holder, below, others=True) is not True:
            self.found["level"] += 1
            return
        raise AssertionError(f"those of priority {level} need not leave for {holder}")

    def _fits(self, batch: Batch, holder: GroupKey, gone: Collection[str], *, others: bool) -> bool | None:
        """Whether the group fits once these have left; with `others` beside all that is reserved, and those that leave
        for others stay. None where that is not judged.
        """
        return fits(
            batch.seen,
            holder,
            gone,
            now=batch.at,
            finishing=batch.finishing,
            promises=batch.promises if others else {},
            leaving=batch.leaving if others else {},
        )

    def _surely(self, seen: Seen, holder: GroupKey, level: int) -> set[str]:
        """Pods below this level, by UID, of which nothing could say that they may not leave."""
        policy, found = self._harness.policy.preemption, set[str]()
        if policy.min_runtime_s:
            return found
        for key in {key_of(pod) for pod in seen.standing()}:
            pods = [pod for pod in seen.pods.values() if key_of(pod) == key and not pod.terminal]
            group = self._harness.groups.get(key)
            if (
                key != holder
                and seen.priority(key) < level
                and all(self._is_sure(seen, pod) for pod in pods)
                and not (group is not None and (_marked(group) or not group.status.scheduled_time))
            ):
                found |= {pod.uid for pod in pods}
        return found

    def _is_sure(self, seen: Seen, pod: Pod) -> bool:
        policy = self._harness.policy
        return (
            bool(pod.node)
            and not pod.terminating
            and pod.uid not in self._asked
            and pod.uid not in self._refused
            and pod.scheduler in policy.scheduler_names
            and not (pod.owner is not None and pod.owner.kind in ("Node", "DaemonSet"))
            # The Jobs of these worlds are not known, so that each of them may count a failure.
            and not ((pod.owner is None or pod.owner.kind == "Job") and policy.preemption.spares_uncontrolled)
            and pod.priority < CRITICAL
            and not seen.budgets_of(pod)
        )

    # What becomes of it

    def _look_for_causes(self) -> None:
        for owed in self._owed:
            for holder, causes in owed.causes.items():
                causes.update(self._causes(owed, holder))
        self._owed = [owed for owed in self._owed if not any(self._is_bound(owed, key) for key in owed.causes)]

    def _is_bound(self, owed: Owed, key: GroupKey) -> bool:
        """Whether all for whom places were reserved have nodes, which may be replacements, or as many as are needed."""
        bound = [pod for pod in self._seen.members(key) if pod.node]
        enough = bool(bound) and self._seen.terms(key).met_by(Counter(map(role_of, bound)))
        return enough or owed.members[key] <= {pod.uid for pod in bound}

    def _causes(self, owed: Owed, holder: GroupKey) -> Iterator[str]:
        """Why the group may stay unbound though others have left for it."""
        seen, before, nodes, now = self._seen, owed.before, owed.nodes[holder], self._harness.now
        group, then = seen.groups.get(holder), before.groups.get(holder)
        if (group is None) != (then is None) or (group is not None and then is not None and group.spec != then.spec):
            yield "changed"
        if group is not None and group.status.record is not None and group.status.record.outcome is Outcome.OUT_OF_TIME:
            yield "out of time"
        live = {pod.uid for pod in seen.members(holder)}
        if not owed.members[holder] <= live or seen.priority(holder) != before.priority(holder):
            yield "changed"
        if not seen.may_preempt(holder):
            yield "changed"
        if any(seen.nodes.get(name) != before.nodes.get(name) for name in nodes):
            yield "node"
        for pod in seen.standing():
            known = before.pods.get(pod.uid)
            if pod.node in nodes and not (known is not None and known.node) and key_of(pod) != holder:
                if pod.scheduler not in self._harness.policy.scheduler_names:
                    yield "foreign"
                elif seen.is_before(pod, holder):
                    yield "overtaken"
        there = [seen.pods[uid] for uid in owed.victims if uid in seen.pods]
        if any(pod.terminating and pod.gone_by and pod.gone_by + OVERDUE_S <= now for pod in there):
            yield "overdue"
        if any(since + REFUSED_S <= now for since in owed.refused.values()):
            yield "refused"

    def _check_claims(self) -> None:
        """What is reserved and who stays never exceed what a node has, as far as nobody before the group is there.

        Who stays is known only once all are told to leave that are to.
        """
        seen, asked, before, self._over = self._seen, self._asked, self._over, {}
        ranked = sorted(self._promises, key=lambda key: (seen.rank(key), self._promises[key].at))
        for holder in ranked:
            promise = self._promises[holder]
            if not self._is_stored(holder) or holder not in {key for keys in asked.values() for key in keys}:
                continue
            ahead_of_it = ranked[: ranked.index(holder)]
            earlier = (key for key in ahead_of_it if self._promises[key].at <= promise.at)
            beside = [key for key in earlier if not self._is_lost(key, ranked)]
            if any(self._is_held_up(self._promises[key]) for key in (holder, *beside)):
                continue
            if any(pod.node in promise.nodes for pod in self._refused_pods()):
                # While who was told to leave for an earlier plan stays there, nobody else is told.
                continue
            bound = {pod.uid for pod in seen.standing() if key_of(pod) == holder}
            for name in promise.nodes & seen.nodes.keys():
                taken = Counter[str]()
                for pod in seen.standing():
                    later = pod.bound_at >= int(promise.at) and pod.node == name
                    ours = pod.scheduler in self._harness.policy.scheduler_names
                    ahead = later and (not ours or seen.is_before(pod, holder))
                    if pod.node == name and not pod.terminating and pod.uid not in asked and not ahead:
                        taken.update(dict(pod.shape.requests))
                for key in (holder, *beside):
                    for node, pod in self._promises[key].places:
                        if node == name and pod.uid not in bound and not _is_placed(seen, pod):
                            taken.update(dict(pod.shape.requests))
                given = dict(seen.nodes[name].allocatable)
                over = {what: amount for what, amount in taken.items() if amount > given.get(what, 0)}
                self.found["claims"] += 1
                if over:
                    since = self._over[name, holder] = before.get((name, holder), self._harness.now)
                    assert self._harness.now <= since + WRITTEN_S, f"{name} has {over} too much for {holder}"

    def _is_lost(self, key: GroupKey, ranked: Sequence[GroupKey]) -> bool:
        """Whether a group before it has reserved places on its nodes since, which may be the same room."""
        promise, before = self._promises[key], (self._promises[each] for each in ranked[: ranked.index(key)])
        return any(each.at > promise.at and each.nodes & promise.nodes for each in before)

    def end(self) -> None:
        """Nothing more happens, and all that terminates has ended: nobody has left in vain, and no gang is in part."""
        self.rest()
        for owed in self._owed:
            if all(uid in self._seen.pods and is_live(self._seen.pods[uid]) for uid in owed.victims):
                continue
            names = [pod.name for pod in owed.victims.values()]
            holders = {str(key): causes for key, causes in owed.causes.items()}
            assert any(owed.causes.values()), f"{names} have left in vain for {holders}"
            self.found[min(min(causes) for causes in owed.causes.values() if causes)] += 1
        seen = self._seen
        for key in self._victims - self._touched:
            members = seen.members(key)
            if key.pod_uid or any(pod.uid in self._refused for pod in members):
                continue
            bound = Counter(role_of(pod) for pod in members if pod.node)
            assert not bound or seen.needed(key).met_by(bound), f"{key} is left in part: {dict(bound)}"
        for key in {key_of(pod) for pod in seen.pods.values() if is_live(pod) and not pod.node}:
            self._check_nobody_waits(key)

    def _check_nobody_waits(self, key: GroupKey) -> None:
        """No group waits for which others may leave, and would suffice."""
        seen = self._seen
        group = self._harness.groups.get(key)
        if not self._harness.policy.preemption.enabled or not seen.may_preempt(key):
            return
        if group is not None and group.status.phase not in ("Queued", ""):
            return
        if not all(pod.scheduler in self._harness.policy.scheduler_names for pod in seen.members(key)):
            return
        sure = self._surely(seen, key, seen.priority(key))
        reserved = {**self._promises, **self._later}
        enough = fits(seen, key, sure, now=self._harness.now, promises=reserved, leaving=self._asked)
        assert not enough, f"{key} waits though others could leave: {sorted(seen.pods[uid].name for uid in sure)}"


def fits(
    seen: Seen,
    holder: GroupKey,
    gone: Collection[str],
    *,
    now: float,
    finishing: Collection[GroupKey] = (),
    promises: Mapping[GroupKey, Promise],
    leaving: Mapping[str, Sequence[GroupKey]],
) -> bool | None:
    """Whether the quorum of the group fits, all that terminates apart, beside what the `promises` of others reserve.

    Pods that are `leaving` for others with such promises stay. None if a part of the group is bound.
    """
    members = seen.members(holder)
    terms, group = seen.terms(holder), seen.groups.get(holder)
    if any(pod.node for pod in members) or len(members) < terms.minimum:
        return None
    standing = []
    for pod in seen.standing():
        promised = any(each != holder and each in promises for each in leaving.get(pod.uid, ()))
        about = pod.terminating and not (pod.gone_by and pod.gone_by + OVERDUE_S <= now) and not promised
        if not (about or pod.uid in gone or key_of(pod) in finishing):
            standing.append((pod, pod.node))
    for key, promise in promises.items():
        if key != holder:
            standing += [(pod, node) for node, pod in promise.places if not _is_placed(seen, pod)]
    topology = group.spec.topology if group is not None and group.spec is not None else None
    if topology is None or not topology.required:
        domains = [dict(seen.nodes)]
    else:
        by_label: dict[str, dict[str, Node]] = {}
        for name, node in seen.nodes.items():
            if topology.key in dict(node.labels):
                by_label.setdefault(dict(node.labels)[topology.key], {})[name] = node
        domains = [*by_label.values()]
    return any(quorum_exists(World(nodes, list(standing)), members, terms.minimum, terms.roles) for nodes in domains)


def _is_placed(seen: Seen, pod: Pod) -> bool:
    return pod.uid in seen.pods and bool(seen.pods[pod.uid].node)


def _marked(group: Group) -> bool:
    return group.status.record is not None and bool(group.status.record.preempted_at)
