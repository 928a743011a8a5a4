"""The scheduler's whole logic behind one door: `Machine.handle(events, now) -> effects`.

Each call applies the events to the cluster and the gangs, brings every gang they touched up to date, lets one pass
place what waits, and says what people must be told. Nothing here reads a clock, does I/O or depends on chance: the same
events at the same times give the same effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from gangsched.core.autoscaling.scaling import Scaling
from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.containment import Containment
from gangsched.core.cycle import Cycle
from gangsched.core.gang.caps import Caps
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.gang.membership import Members
from gangsched.core.gang.rechecking import recheck_worsened
from gangsched.core.gang.results import Results
from gangsched.core.gang.surroundings import Surroundings
from gangsched.core.intake import Intake
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect
from gangsched.core.objects.events import Event, PodSeen, Synced
from gangsched.core.objects.faults import Fault, Rebuilt, Step
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.stats import Stats
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.snapshot import Snapshot
from gangsched.core.planning.topology import Hunts
from gangsched.core.queueing.admission import Admission
from gangsched.core.queueing.deadlines import Deadlines
from gangsched.core.queueing.queue import Queue
from gangsched.core.status import explanation
from gangsched.core.status.writer import StatusWriter
from gangsched.core.upkeep import LOOK_S_PER_POD, Upkeep


class Machine:
    """Events in, effects out. The only owner of the state; see the module's docstring."""

    def __init__(self, policy: Policy, *, look_s_per_pod: float = LOOK_S_PER_POD) -> None:
        self._policy = policy
        self._look_s_per_pod = look_s_per_pod
        self._avoidance = Avoidance()
        self._called = 0.0
        self._refusals: Counter[str] = Counter()
        self._faults: list[Fault | Rebuilt] = []
        self._compose(None)

    def _compose(self, former: Containment | None) -> None:
        """Make all parts, which know nothing yet but what of the `former` ones is with the API server."""
        policy = self._policy
        self.cluster = Cluster()
        self.gangs: dict[GroupKey, Gang] = {}
        self.assessments: dict[GroupKey, Assessment] = {}
        self._members = Members(self.cluster, self.gangs, self._avoidance, policy)
        self._queue = Queue(self.cluster.capacity)
        self._hunts = Hunts()
        self._resting = True
        self._caps = Caps(self.cluster, policy)
        self._admission = Admission(policy.namespace_limits.waiting_groups)
        self._deadlines = Deadlines()
        self._tellings = Deadlines()
        self._scaling = Scaling(self.cluster, policy, self._deadlines)
        self._surroundings = Surroundings(self.cluster, self._members, self.assessments, policy)
        self._containment = Containment(
            self.cluster, self._members, self.assessments, policy=policy, leave=self._leave, former=former
        )
        self._intake = Intake(
            self.cluster,
            self._members,
            results=Results(self.cluster, self._members, self._avoidance, policy),
            surroundings=self._surroundings,
            scaling=self._scaling,
            containment=self._containment,
        )
        self._holders = explanation.Holders(self.cluster)
        self._upkeep = Upkeep(
            self.cluster,
            self._members,
            self.assessments,
            surroundings=self._surroundings,
            queue=self._queue,
            admission=self._admission,
            deadlines=self._deadlines,
            tellings=self._tellings,
            writer=StatusWriter(policy, self._holders, self._ahead),
            containment=self._containment,
            leave=self._leave,
            policy=policy,
            look_s_per_pod=self._look_s_per_pod,
        )

    def handle(self, events: Sequence[Event], now: float) -> list[Effect]:
        """Apply what has happened and decide; `now` is in epoch seconds and never goes back.

        Events are applied whatever they cost. Beyond that one call does no more than its budget allows, and whoever
        calls lets others work and calls again while `next_deadline` is due.
        """
        if self._is_nothing_new(events, now):
            return []
        self._avoidance.note_time(now)
        waiting = len(self._members.dirty)
        self._intake.take(events, now)
        effects: list[Effect] = [*self._avoidance.take_events()]
        if self._intake.synced:
            self._called = now
            self._decide(waiting, effects, now)
        else:
            effects.clear()
            self._forget_finished()
        if self._containment.faults and self._is_broken(effects, now):
            return []
        return effects

    def _decide(self, waiting: int, effects: list[Effect], now: float) -> None:
        """Bring up to date, place and tell, within the budget; `waiting` gangs were to be looked at before."""
        self._holders.renew(now)
        budget = Budget(units.TURN)
        effects += recheck_worsened(self.cluster, self._members, partial(self._contain, effects, now, Step.UPKEEP))
        touched, to_be_told = self._upkeep.some(waiting, effects, now, budget)
        self._upkeep.let_in()
        self._queue.wake(self.cluster)
        self._queue.wake_whose_turn_it_is(self.gangs, self.assessments, now)
        self._upkeep.try_again(self._caps.take_eased(self.gangs))
        for key in self._try_some(effects, now, budget):
            self._upkeep.if_due(key, touched, effects, now)
        entered = self._upkeep.let_in()
        for key in dict.fromkeys((*touched, *to_be_told)):
            self._upkeep.tell(key, effects, now)
        self._upkeep.set_deadlines(touched, effects, now)
        for key in entered:
            # Others have left in this pass: they are tried in the next one, at once.
            self._deadlines.hasten(key, now)
        contain = partial(self._contain, effects, now, Step.DEMAND)
        effects += self._scaling.decide(touched, self.gangs, self.assessments, contain=contain, now=now)
        for effect in effects:
            if isinstance(effect, BindPod):
                self._members.note_sent(effect.uid, effect.node)
        self._containment.sent(effects)
        self._resting = not (self._members.dirty or self._queue.waits or self.cluster.relief)

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

    def lacking(self, pod: Pod) -> tuple[GroupKey, int] | None:
        """The gang that this new pod belongs to and how many members it lacks; None if it is not known to lack any."""
        return self._upkeep.lacking(pod)

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

    # Faults

    def take_faults(self) -> list[Fault | Rebuilt]:
        """What has failed over single gangs since the last call."""
        faults, self._faults = [*self._faults, *self._containment.take_faults()], []
        return faults

    def _contain(self, effects: list[Effect], now: float, step: Step, key: GroupKey, error: Exception) -> bool:
        """Park a gang whose logic has failed in this step, behind these effects. Returns whether others may go on."""
        self._containment.sent(effects)
        self._containment.park(key, step, error, now)
        return not self._containment.broken

    def _is_broken(self, effects: Sequence[Effect], now: float) -> bool:
        """Whether the accounts contradict each other after a fault; they are then made anew from what was observed.

        What was decided on them in this call is not sent. Nothing but bindings that the API server has yet to answer
        is known of what was decided before: the gangs begin as after a restart.

        Raises:
            Exception: the fault, if the new accounts contradict each other too.
        """
        self._faults += (faults := self._containment.take_faults())
        wrong = self._containment.broken or self.validate()
        if not wrong:
            return False
        self._faults.append(Rebuilt(tuple(wrong)))
        self._containment.unsent(effects)
        facts, synced = self.facts(), self._intake.synced
        former = self._upkeep
        self._compose(self._containment)
        self._upkeep.go_on_from(former)
        self._intake.take([*facts, Synced()] if synced else facts, now)
        self._containment.resume_flying()
        self._resting = False
        self._faults += self._containment.take_faults()
        if self._containment.broken or self.validate():
            raise faults[0].error
        return True

    def _is_nothing_new(self, events: Sequence[Event], now: float) -> bool:
        """Whether nothing is under way or due, and the events say what is known: most of what kubelets write is not."""
        deadline = self.next_deadline()
        if not (self._intake.synced and self._resting) or (deadline is not None and deadline <= now):
            return False
        return all(isinstance(event, PodSeen) and self._members.is_known(event.pod) for event in events)

    def _try_some(self, effects: list[Effect], now: float, budget: Budget) -> Iterable[GroupKey]:
        """Let a pass try who waits, as far as the budget goes. Returns whom it has tried."""
        if not self._queue.moves:
            return ()
        budget.leave(units.TURN // 4)
        snapshot = Snapshot(self.cluster, budget=budget)
        self._queue.begin_call(snapshot)
        if not self._queue.waits:
            return ()
        decided = Cycle(
            snapshot,
            self._queue,
            self.gangs,
            self.assessments,
            avoidance=self._avoidance,
            caps=self._caps,
            hunts=self._hunts,
            contain=partial(self._contain, effects, now, Step.CYCLE),
            held_up_by=lambda key: self._queue.turns.held_up_by(key, self.gangs, self.assessments, now),
            stale=self._members.dirty,
        ).run()
        effects += decided.effects
        self._refusals.update(decided.refusals)
        for key, left in decided.left.items():
            want = replace(self.assessments[key].want, extras=left)
            self.assessments[key] = replace(self.assessments[key], want=want)
        return decided.tried

    def _forget_finished(self) -> None:
        """Drop what nothing speaks of any more while nothing is decided yet, as on a standby."""
        for key in self._members.dirty:
            gang = self.gangs.get(key)
            if gang is None or self._members.finished(gang):
                self._upkeep.forget(key)
        self._members.dirty.forget_all()
        self.cluster.take_worsened()

    def _leave(self, key: GroupKey) -> None:
        """The gang waits for nothing any more."""
        for room in (self._queue, self._admission, self._caps, self._tellings):
            room.drop(key)

    def _ahead(self, gang: Gang) -> str:
        own, number = self._queue.ahead(gang.key, most=explanation.NAMED)
        return explanation.ahead_of(gang.key, own, others=number - len(own))
