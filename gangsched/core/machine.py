"""The scheduler's whole logic behind one door: `Machine.handle(events, now) -> effects`.

Each call applies the events to the cluster and the gangs, brings every gang they touched up to date, lets one pass
place what waits, and says what people must be told. Nothing here reads a clock, does I/O or depends on chance: the same
events at the same times give the same effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from gangsched.core import bindings, caps, claims, explain, life, making, places, undo
from gangsched.core import budget as units
from gangsched.core.answers import Answers
from gangsched.core.avoidance import Avoidance
from gangsched.core.budget import Budget
from gangsched.core.caps import Caps
from gangsched.core.cluster import Cluster
from gangsched.core.deadlines import Deadlines
from gangsched.core.declaration import WITHOUT_OBJECT, resolve
from gangsched.core.effects import BindPod, Effect
from gangsched.core.entrance import Entrance
from gangsched.core.events import (
    Answer,
    DemandFact,
    Event,
    ForeignFact,
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    PodBound,
    PodGone,
    PodSeen,
    PodsReplaced,
    Synced,
    TimePassed,
)
from gangsched.core.gang import BindState, Gang
from gangsched.core.hunts import Hunts
from gangsched.core.life import Assessment
from gangsched.core.members import Members
from gangsched.core.model import GroupKey
from gangsched.core.passing import Pass
from gangsched.core.policy import Policy
from gangsched.core.queue import Queue
from gangsched.core.reasons import Reason
from gangsched.core.scaling import Scaling
from gangsched.core.snapshot import Snapshot
from gangsched.core.surroundings import Surroundings
from gangsched.core.telling import Teller

LARGE = 250
LOOK_S_PER_POD = 20e-6
"""A gang of more than LARGE pods that waits for nothing in the queue is brought up to date at most this often for each
of its pods: that costs about a tenth of it, and events of its members that come in between are dealt with together."""
FORMER_LEADER_S = 15.0
"""For so long after it begins to decide, bindings by somebody else may be a former leader's last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Plain numbers for metrics; `refusals` (by reason), `timeouts` and `node_refusals` only ever grow."""

    pods: int
    nodes: int
    phases: Mapping[str, int]
    waiting: int
    parked: int
    refusals: Mapping[str, int]
    timeouts: int
    avoided_nodes: int
    node_refusals: int


class Machine:
    """Events in, effects out. The only owner of the state; see the module's docstring."""

    def __init__(self, policy: Policy, *, look_s_per_pod: float = LOOK_S_PER_POD) -> None:
        self._look_s_per_pod = look_s_per_pod
        self.cluster = Cluster()
        self.gangs: dict[GroupKey, Gang] = {}
        self.assessments: dict[GroupKey, Assessment] = {}
        self._policy = policy
        self._avoidance = Avoidance()
        self._members = Members(self.cluster, self.gangs, self._avoidance, policy)
        self._queue = Queue(self.cluster.capacity)
        self._hunts = Hunts()
        self._resting = True
        self._called = 0.0
        self._caps = Caps(self.cluster, policy)
        self._entrance = Entrance(policy.namespace_limits.waiting_groups)
        self._answers = Answers(self.cluster, self._members, self._avoidance, policy)
        self._surroundings = Surroundings(self.cluster, self._members, self.assessments)
        self._deadlines = Deadlines()
        self._scaling = Scaling(self.cluster, policy, self._deadlines)
        self._synced = False
        self._alone_from = float("inf")
        self._holders = explain.Holders(self.cluster)
        self._teller = Teller(policy, self._holders, self._ahead)
        self._timeouts = 0
        self._refusals: Counter[str] = Counter()
        self._waits: list[float] = []

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
            self._members.rivals.clear()
        if not self._synced:
            self._avoidance.take_events()
            self._forget_finished()
            return []
        self._called = now
        self._holders.renew(now)
        budget = Budget(units.TURN)
        effects: list[Effect] = [*self._avoidance.take_events()]
        self._recheck(effects)
        touched = self._advance_some(waiting, effects, now, budget)
        self._let_in()
        self._queue.wake(self.cluster)
        self._queue.wake_whose_turn_it_is(self.gangs, self.assessments, now)
        for key in self._caps.take_eased(self.gangs):
            self.gangs[key].parked = False
            if key in self._queue:
                self._queue.file(self.gangs[key], self.assessments[key])
        for key in self._try_some(effects, now, budget):
            self._advance_if_due(key, touched, effects, now)
        entered = self._let_in()
        for key in touched:
            effects += self._tell(key, now)
        for key in entered:
            # Others have left in this pass: they are tried in the next one, at once.
            self._deadlines.hasten(key, now)
        effects += self._scaling.decide(touched, self.gangs, self.assessments, now)
        for effect in effects:
            if isinstance(effect, BindPod):
                self._members.sent.setdefault(effect.uid, set()).add(effect.node)
        self._resting = not (self._members.dirty or self._queue.waits or self.cluster.relief)
        return effects

    def next_deadline(self) -> float | None:
        """When, in epoch seconds, something is due though nothing happens; None if nothing is.

        It is the time of the last call where that has left work undone.
        """
        if not self._resting:
            return self._called
        due = min(self._deadlines.next() or float("inf"), self._avoidance.next_end())
        return due if due < float("inf") else None

    def stats(self) -> Stats:
        """What metrics show of the present state."""
        phases = Counter(gang.phase.value for gang in self.gangs.values() if not gang.plain)
        return Stats(
            pods=len(self.cluster.pods) - sum(len(gang.vacant()) for gang in self.gangs.values()),
            nodes=len(self.cluster.nodes),
            phases=phases,
            waiting=len(self._queue),
            parked=self._queue.parked,
            refusals=self._refusals,
            timeouts=self._timeouts,
            avoided_nodes=len(self._avoidance.by_all()),
            node_refusals=self._avoidance.counted,
        )

    def facts(self) -> list[Event]:
        """All that is known of the cluster, in the order of a start; what was decided is left out.

        A new machine that is given it knows what a process does that has just listed everything, and besides which
        pods the server has called bound though the watch has yet to show it.
        """
        groups = tuple(gang.group for gang in self.gangs.values() if gang.group is not None)
        bound = [
            PodBound(uid, binding.node)
            for gang in self.gangs.values()
            for uid, binding in gang.bindings.items()
            if binding.state is BindState.BOUND
        ]
        return [
            *self._surroundings.facts(),
            GroupsReplaced(groups),
            *self._members.foreign.facts(),
            *self._scaling.facts(),
            PodsReplaced(tuple(pod for pod in self.cluster.pods.values() if pod.name)),
            *bound,
        ]

    def take_waits(self) -> list[float]:
        """Seconds from complete to bound of the gangs scheduled since the last call."""
        waits, self._waits = self._waits, []
        return waits

    def take_rivals(self) -> list[tuple[str, str]]:
        """("NAMESPACE/POD", node) of pods of ours that somebody else has bound since the last call."""
        rivals, self._members.rivals = self._members.rivals, []
        return [(f"{pod.namespace}/{pod.name}", pod.node) for pod in rivals]

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
            case ForeignFact():
                self._members.foreign_changed(event, now)
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

    def _recheck(self, effects: list[Effect]) -> None:
        """See whether places that were decided are still good on nodes that have become worse."""
        for node in sorted(self.cluster.take_worsened()):
            mine = []
            for uid in sorted(self.cluster.on_node.get(node, ())):
                gang = self._members.gang_of(uid)
                binding = gang.bindings.get(uid) if gang is not None else None
                if gang is not None and binding is not None and binding.state is not BindState.BOUND:
                    mine.append((gang, binding))
            given_up = bindings.recheck(mine, self.cluster, node)
            for gang, binding in given_up:
                self._members.dirty[gang.key] = None
                effects += bindings.let_go(gang, self.cluster, binding)

    def _advance_some(self, waiting: int, effects: list[Effect], now: float, budget: Budget) -> dict[GroupKey, None]:
        """Bring gangs up to date: with a quarter of the budget each those touched by this call's events, those that
        have been `waiting` for that (or more of the former), the longest waiting first, and those that are due.
        """
        touched: dict[GroupKey, None] = {}
        dirty = self._members.dirty
        for key in list(islice(dirty, waiting, None)):
            if budget.spent >= units.TURN // 4:
                break
            del dirty[key]
            budget.charge(self._advance_if_due(key, touched, effects, now))
        while budget.spent < units.TURN // 2 and (touched_first := next(iter(dirty), None)) is not None:
            del dirty[touched_first]
            budget.charge(self._advance_if_due(touched_first, touched, effects, now))
        while budget.spent < units.TURN * 3 // 4 and (due := self._deadlines.take_due(now)) is not None:
            budget.charge(self._advance_if_due(due, touched, effects, now))
        return touched

    def _advance_if_due(self, key: GroupKey, touched: dict[GroupKey, None], effects: list[Effect], now: float) -> int:
        """Bring the gang up to date, unless it is large and can wait. Returns the work as units."""
        gang = self.gangs.get(key)
        if gang is None:
            touched[key] = None
            return 0
        if now < gang.look_at and not self._queue.wants_first(key):
            self._deadlines.hasten(key, gang.look_at)
            if key in self._queue:
                self._queue.file(gang, self.assessments[key])
            return units.POD
        touched[key] = None
        self._advance(gang, effects, now)
        return units.GANG + units.POD * len(gang.pods)

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

    def _advance(self, gang: Gang, effects: list[Effect], now: float) -> None:
        if len(gang.pods) > LARGE:
            gang.look_at = now + len(gang.pods) * self._look_s_per_pod
        bindings.reconcile(gang, self.cluster)
        terms, hindrance = resolve(
            gang,
            claims.guard(gang, self._policy.owner_guard),
            policy=self._policy,
            priority_classes=self._surroundings.priority_classes,
            foreign=self._members.foreign,
        )
        gang.contradicted = hindrance is not None and hindrance.reason is Reason.CONTRADICTION
        effects += places.settle(gang, self.cluster, terms, hindrance)
        caps.keep(gang, self.cluster, terms, now=now, policy=self._policy)
        assessment = life.advance(gang, terms, hindrance, now=now, policy=self._policy)
        self._timeouts += assessment.timed_out
        undoing = gang.undo is not None and not gang.undo.retried
        released = undoing and bindings.release_held(gang, self.cluster)
        if assessment.hopeless or released:
            if assessment.hopeless:
                bindings.release_all(gang, self.cluster)
                gang.parked = assessment.timed_out
                # They were refused beside a quorum that is gone; its own room, now free, must not wake the gang.
                gang.refused_members = {}
            assessment = life.advance(gang, terms, hindrance, now=now, policy=self._policy)
        if assessment.vacated:
            places.vacate(gang, self.cluster)
            assessment = life.advance(gang, terms, hindrance, now=now, policy=self._policy)
        self.assessments[gang.key] = assessment
        if assessment.newly_scheduled and gang.complete_since:
            self._waits.append(now - gang.complete_since)
        if self._must_be_durable(gang, assessment):
            gang.durable_asked_at = now
        effects += making.ask(gang, terms, hindrance, now)
        effects += undo.go_on(gang, now) or self._withdraw_hopeless(gang, assessment)
        effects += bindings.resend_due(gang, now)
        if self._entrance.admits(gang, assessment, now):
            self._queue.file(gang, assessment)
        else:
            self._queue.drop(gang.key)

    def _let_in(self) -> list[GroupKey]:
        """Have those tried that may enter now."""
        entered = self._entrance.let_in(self.gangs)
        self._members.dirty.update(dict.fromkeys(self._entrance.take_giving_way()))
        for key in entered:
            self._queue.file(self.gangs[key], self.assessments[key])
        return entered

    def _withdraw_hopeless(self, gang: Gang, assessment: Assessment) -> list[Effect]:
        """Send no more of a quorum whose members disagree (rule 15), or that cannot become whole while none is bound.

        It cannot once a member has lost its place and found no other, nor once its PodGroup is gone (rule 10).
        """
        if gang.contradicted:
            return bindings.withdraw_all(gang)
        gone = assessment.hindrance is not None and assessment.hindrance.reason in WITHOUT_OBJECT
        lost = (gang.refusal is not None or gone) and not gang.run.scheduled_at and not assessment.census.bound
        return bindings.withdraw_all(gang) if lost else []

    def _must_be_durable(self, gang: Gang, assessment: Assessment) -> bool:
        """Places of a quorum that outlive the pass are written down before anything relies on them (design rule 4)."""
        if gang.durable_asked_at:
            return False
        if gang.vacant() or making.wanted(gang, assessment.hindrance):
            return True
        return (
            gang.group is not None
            and not gang.run.scheduled_at
            and any(each.state is BindState.HELD and each.tries for each in gang.bindings.values())
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
            due = min(assessment.due, gang.tell_at, bindings.next_retry(gang), undo.next_due(gang), making.due(gang))
            self._deadlines.set(key, due)
        return effects

    def _forget_finished(self) -> None:
        """Drop what nothing speaks of any more while nothing is decided yet, as on a standby."""
        for key in self._members.dirty:
            gang = self.gangs.get(key)
            if gang is None or self._members.finished(gang):
                self._forget(key)
        self._members.dirty.clear()
        self.cluster.worsened.clear()

    def _forget(self, key: GroupKey) -> None:
        self._members.drop(key)
        self.assessments.pop(key, None)
        self._queue.drop(key)
        self._entrance.drop(key)
        self._caps.drop(key)
        self._deadlines.drop(key)

    def _ahead(self, gang: Gang) -> str:
        own, number = self._queue.ahead(gang.key, most=explain.NAMED)
        return explain.ahead_of(gang.key, own, others=number - len(own))
