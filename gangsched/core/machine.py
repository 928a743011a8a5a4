"""The scheduler's whole logic behind one door: `Machine.handle(events, now) -> effects`.

Each call applies the events to the cluster and the gangs, brings every gang they touched up to date, lets one pass
place what waits, and says what people must be told. Nothing here reads a clock, does I/O or depends on chance: the same
events at the same times give the same effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gangsched.core.autoscaling.scaling import Scaling
from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.cycle import Pass
from gangsched.core.gang.caps import Caps
from gangsched.core.gang.foreign_objects import ForeignObjects
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.gang.membership import Members
from gangsched.core.gang.rechecking import recheck_worsened
from gangsched.core.gang.results import Answers
from gangsched.core.gang.surroundings import Surroundings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect
from gangsched.core.objects.events import (
    DemandFact,
    Event,
    ForeignFact,
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    Synced,
    TimePassed,
)
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import Answer
from gangsched.core.objects.stats import Stats
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.hunts import Hunts
from gangsched.core.planning.snapshot import Snapshot
from gangsched.core.queueing.admission import Entrance
from gangsched.core.queueing.deadlines import Deadlines
from gangsched.core.queueing.queue import Queue
from gangsched.core.status import explanation
from gangsched.core.status.writer import Teller
from gangsched.core.upkeep import LOOK_S_PER_POD, Upkeep

FORMER_LEADER_S = 15.0
"""For so long after it begins to decide, bindings by somebody else may be a former leader's last ones."""


class Machine:
    """Events in, effects out. The only owner of the state; see the module's docstring."""

    def __init__(self, policy: Policy, *, look_s_per_pod: float = LOOK_S_PER_POD) -> None:
        self.cluster = Cluster()
        self.gangs: dict[GroupKey, Gang] = {}
        self.assessments: dict[GroupKey, Assessment] = {}
        self._policy = policy
        self._avoidance = Avoidance()
        self._members = Members(self.cluster, self.gangs, self._avoidance, policy)
        self._foreign_objects = ForeignObjects(self._members, policy)
        self._queue = Queue(self.cluster.capacity)
        self._hunts = Hunts()
        self._resting = True
        self._called = 0.0
        self._caps = Caps(self.cluster, policy)
        self._entrance = Entrance(policy.namespace_limits.waiting_groups)
        self._answers = Answers(self.cluster, self._members, self._avoidance, policy)
        self._surroundings = Surroundings(self.cluster, self._members, self.assessments)
        self._deadlines = Deadlines()
        self._tellings = Deadlines()
        self._upkeep = Upkeep(
            self.cluster,
            self._members,
            self.assessments,
            surroundings=self._surroundings,
            queue=self._queue,
            entrance=self._entrance,
            deadlines=self._deadlines,
            tellings=self._tellings,
            policy=policy,
            look_s_per_pod=look_s_per_pod,
        )
        self._scaling = Scaling(self.cluster, policy, self._deadlines)
        self._synced = False
        self._alone_from = float("inf")
        self._holders = explanation.Holders(self.cluster)
        self._teller = Teller(policy, self._holders, self._ahead)
        self._refusals: Counter[str] = Counter()

    def handle(self, events: Sequence[Event], now: float) -> list[Effect]:
        """Apply what has happened and decide; `now` is in epoch seconds and never goes back.

        Events are applied whatever they cost. Beyond that one call does no more than its budget allows, and whoever
        calls lets others work and calls again while `next_deadline` is due.
        """
        if self._is_nothing_new(events, now):
            return []
        self._avoidance.note_time(now)
        waiting = len(self._members.dirty)
        for event in events:
            self._apply(event, now)
        if now < self._alone_from:
            self._members.take_rivals()
        if not self._synced:
            self._avoidance.take_events()
            self._forget_finished()
            return []
        self._called = now
        self._holders.renew(now)
        budget = Budget(units.TURN)
        effects: list[Effect] = [*self._avoidance.take_events()]
        effects += recheck_worsened(self.cluster, self._members)
        touched, to_be_told = self._upkeep.some(waiting, effects, now, budget)
        self._upkeep.let_in()
        self._queue.wake(self.cluster)
        self._queue.wake_whose_turn_it_is(self.gangs, self.assessments, now)
        self._upkeep.try_again(self._caps.take_eased(self.gangs))
        for key in self._try_some(effects, now, budget):
            self._upkeep.if_due(key, touched, effects, now)
        entered = self._upkeep.let_in()
        for key in dict.fromkeys((*touched, *to_be_told)):
            effects += self._tell(key, now)
        self._upkeep.set_deadlines(touched)
        for key in entered:
            # Others have left in this pass: they are tried in the next one, at once.
            self._deadlines.hasten(key, now)
        effects += self._scaling.decide(touched, self.gangs, self.assessments, now)
        for effect in effects:
            if isinstance(effect, BindPod):
                self._members.note_sent(effect.uid, effect.node)
        self._resting = not (self._members.dirty or self._queue.waits or self.cluster.relief)
        return effects

    def next_deadline(self) -> float | None:
        """When, in epoch seconds, something is due though nothing happens; None if nothing is.

        It is the time of the last call where that has left work undone.
        """
        if not self._resting:
            return self._called
        due = min(
            *(each.next() or float("inf") for each in (self._deadlines, self._tellings)), self._avoidance.next_end()
        )
        return due if due < float("inf") else None

    def stats(self) -> Stats:
        """What metrics show of the present state."""
        phases = Counter(gang.record.phase.value for gang in self.gangs.values() if not gang.plain)
        return Stats(
            pods=len(self.cluster.pods) - sum(len(gang.vacant()) for gang in self.gangs.values()),
            nodes=len(self.cluster.nodes),
            phases=phases,
            waiting=len(self._queue),
            parked=self._queue.parked,
            refusals=self._refusals,
            timeouts=self._upkeep.timeouts,
            avoided_nodes=len(self._avoidance.by_all()),
            node_refusals=self._avoidance.counted,
        )

    def facts(self) -> list[Event]:
        """All that is known of the cluster, in the order of a start; what was decided is left out.

        A new machine that is given it knows what a process does that has just listed everything, and besides which
        pods the server has called bound though the watch has yet to show it.
        """
        return [*self._surroundings.facts(), *self._scaling.facts(), *self._members.facts()]

    def take_waits(self) -> list[float]:
        """Seconds from complete to bound of the gangs scheduled since the last call."""
        return self._upkeep.take_waits()

    def take_rivals(self) -> list[tuple[str, str]]:
        """("NAMESPACE/POD", node) of pods of ours that somebody else has bound since the last call."""
        return [(f"{pod.namespace}/{pod.name}", pod.node) for pod in self._members.take_rivals()]

    def validate(self) -> list[str]:
        """Contradictions in the state; empty when all is well (checked after every test)."""
        found = [*self.cluster.validate(), *self._members.validate(), *self._upkeep.validate()]
        found += [*self._caps.validate(self.gangs), *self._avoidance.validate(), *self._scaling.validate(self.gangs)]
        return found

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
            case ForeignFact():
                self._foreign_objects.note(event, now)
            case DemandFact():
                self._scaling.note(event)
            case Synced():
                self._synced = True
                self._members.adopt_all(now)
                self._alone_from = now + FORMER_LEADER_S
            case TimePassed():
                pass
            case _ if isinstance(event, Answer):
                self._answers.note(event, now)
            case _:
                self._surroundings.note(event)

    def _is_nothing_new(self, events: Sequence[Event], now: float) -> bool:
        """Whether nothing is under way or due, and the events say what is known: most of what kubelets write is not."""
        if not (self._synced and self._resting):
            return False
        deadline = self.next_deadline()
        if deadline is not None and deadline <= now:
            return False
        return all(isinstance(event, PodSeen) and self._members.is_known(event.pod) for event in events)

    # Deciding

    def _try_some(self, effects: list[Effect], now: float, budget: Budget) -> Iterable[GroupKey]:
        """Let a pass try who waits, as far as the budget goes. Returns whom it has tried."""
        if not self._queue.moves:
            return ()
        budget.leave(units.TURN // 4)
        snapshot = Snapshot(self.cluster, budget=budget)
        self._queue.begin_call(snapshot)
        if not self._queue.waits:
            return ()
        decided = Pass(
            snapshot,
            self._queue,
            self.gangs,
            self.assessments,
            avoidance=self._avoidance,
            caps=self._caps,
            hunts=self._hunts,
            held_up_by=lambda key: self._queue.turns.held_up_by(key, self.gangs, self.assessments, now),
            stale=self._members.dirty,
        ).run()
        effects += decided.effects
        self._refusals.update(decided.refusals)
        for key, left in decided.left.items():
            want = replace(self.assessments[key].want, extras=left)
            self.assessments[key] = replace(self.assessments[key], want=want)
        return decided.tried

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
            self._tellings.set(key, gang.tell_at)
        return effects

    def _forget_finished(self) -> None:
        """Drop what nothing speaks of any more while nothing is decided yet, as on a standby."""
        for key in self._members.dirty:
            gang = self.gangs.get(key)
            if gang is None or self._members.finished(gang):
                self._forget(key)
        self._members.dirty.forget_all()
        self.cluster.take_worsened()

    def _forget(self, key: GroupKey) -> None:
        self._members.drop(key)
        self.assessments.pop(key, None)
        for room in (self._queue, self._entrance, self._caps, self._deadlines, self._tellings):
            room.drop(key)

    def _ahead(self, gang: Gang) -> str:
        own, number = self._queue.ahead(gang.key, most=explanation.NAMED)
        return explanation.ahead_of(gang.key, own, others=number - len(own))
