"""The whole state of the machine, which the steps of a call share.

Law: it creates the parts and connects them, and decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from gangsched.core.autoscaling.scaling import Scaling
from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.containment import Containment
from gangsched.core.contention.asking import Asking
from gangsched.core.contention.forecasting import Forecasting
from gangsched.core.contention.plans import Plans
from gangsched.core.contention.reserving import Reserving
from gangsched.core.contention.searching import Searching
from gangsched.core.contention.viewers import Viewers
from gangsched.core.expired import Expired
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.caps import Caps
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.prebinding import Leftovers
from gangsched.core.membership.members import Members
from gangsched.core.membership.restarts import Restarts
from gangsched.core.membership.surroundings import Surroundings
from gangsched.core.membership.validation import contradictions
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect, EvictPod
from gangsched.core.objects.faults import FaultyStep
from gangsched.core.objects.policy import Policy
from gangsched.core.phases import Phases
from gangsched.core.planning.topology import RecentRequests
from gangsched.core.queueing.admission import Admission
from gangsched.core.queueing.agenda import Agenda, Due
from gangsched.core.queueing.order import Dirty, OrderKey, earliest, order_key
from gangsched.core.queueing.queue import Queue
from gangsched.core.starts import Starts
from gangsched.core.status.ahead import Ahead
from gangsched.core.status.holders import Holders
from gangsched.core.status.unserved import Unserved
from gangsched.core.status.writer import StatusWriter


class State:
    """The cluster, the gangs and their `assessments`, the queue, and the writers of status.

    `evictions` counts those that were decided, by cause.

    `agenda` says what is due when even without an event. The parked gangs and the bindings on their way of a `former`
    state are kept.
    """

    def __init__(self, policy: Policy, avoidance: Avoidance, former: State | None) -> None:
        self.policy = policy
        self.avoidance = avoidance
        self.cluster: Cluster = Cluster(None if former is None else former.cluster.flights)
        self.gangs: dict[GroupKey, Gang] = {}
        self.assessments: dict[GroupKey, Assessment] = {}
        self.dirty = Dirty(self.earliest)
        self.members = Members(self.cluster, self.gangs, avoidance, policy, self.dirty)
        self.restarts = Restarts(self.cluster, self.members, policy)
        self.ahead = Ahead()
        self.queue = Queue(self.cluster.capacity, self.ahead)
        self.recent_requests = RecentRequests()
        self.caps = Caps(self.cluster, policy)
        self.starts = Starts()
        self.admission = Admission(policy.namespace_limits.waiting_groups)
        self.agenda = Agenda()
        self.evictions: Counter[str] = Counter() if former is None else former.evictions
        self.viewers = Viewers(self.cluster.ledger, self.gangs, self.assessments, self.members.foreign, policy)
        self.plans = Plans(
            self.cluster,
            self.members,
            self.assessments,
            a_minute=policy.preemption.victims_per_minute,
            is_foreign=lambda pod: not self.members.ours(pod),
        )
        self.asking = Asking(
            self.cluster, self.members, self.assessments, self.plans, self.viewers, avoidance=avoidance, policy=policy
        )
        self.searching = Searching(
            self.cluster, self.members, self.assessments, self.plans, asking=self.asking, policy=policy
        )
        self.reserving = Reserving(
            self.cluster,
            self.members,
            self.assessments,
            self.plans,
            self.searching,
            asking=self.asking,
            policy=policy,
        )
        self.forecasting = Forecasting(
            self.cluster, self.members, self.assessments, self.asking, self.ahead.in_order, policy
        )
        self.unserved = Unserved(self.members.installations, policy, self.agenda)
        self.scaling = Scaling(self.cluster, policy, self.agenda)
        self.phases = Phases(policy, self.members.installations, self.agenda)
        self.expired = Expired(self.gangs, self.members.installations)
        self.leftovers = Leftovers(policy.scheduler_names)
        self.surroundings = Surroundings(self.cluster, self.members, self.assessments, policy)
        self.holders = Holders(self.cluster)
        self.writer = StatusWriter(policy, self.cluster, self.holders, self.ahead, self.forecasting.told)
        self.containment: Containment = Containment(
            self.cluster,
            self.members,
            self.assessments,
            policy=policy,
            leave=self.leave,
            former=None if former is None else former.containment,
        )

    def earliest(self, key: GroupKey) -> OrderKey:
        """The earliest place that the gang may have in the order before it is reconciled; before all if it is gone.

        One that is parked after a fault takes part in no cycle and stands behind all.
        """
        gang = self.gangs.get(key)
        if gang is None:
            return (False, -(2**31), 0.0, key.namespace, key.name)
        if key in self.containment.parked:
            return (True, 2**31, 0.0, key.namespace, key.name)
        classes = self.surroundings.priority_classes
        return earliest(gang, foreign=self.members.foreign, policy=self.policy, priority_classes=classes)

    def note_sent(self, effects: Iterable[Effect]) -> None:
        """The bindings among these effects are sent; their evictions are counted."""
        for effect in effects:
            if isinstance(effect, BindPod):
                self.cluster.flights.sent(effect.uid, effect.node)
            elif isinstance(effect, EvictPod):
                self.evictions[effect.cause] += 1

    def note_unsent(self, effects: Iterable[Effect]) -> None:
        """The bindings among these effects are not sent after all."""
        for effect in effects:
            if isinstance(effect, BindPod):
                self.cluster.flights.refused(effect.uid, effect.node)

    def contain(self, now: float, step: FaultyStep, key: GroupKey, error: Exception) -> bool:
        """Park a gang whose logic has failed in this step. Returns whether others may continue."""
        self.containment.park(key, step, error, now)
        return not self.containment.broken

    def take_eased(self) -> list[GroupKey]:
        """The gangs for which a cap, a pause or what others need to start may hold no longer."""
        failures, eased = self.avoidance.failures, list[GroupKey]()
        eased += self.caps.take_eased(self.gangs) if self.cluster.holdings.eased else ()
        eased += self.starts.take_eased(self.gangs) if self.starts.eased else ()
        return eased + (failures.take_eased(self.gangs) if failures.eased else [])

    def leave(self, key: GroupKey) -> None:
        """Remove the gang from all queues: it no longer waits for anything."""
        for room in (self.queue, self.admission, self.caps, self.starts, self.searching, self.reserving, self.plans):
            room.drop(key)
        self.forecasting.drop(key)
        self.agenda.drop(Due.STATUS, key)

    def validate(self) -> list[str]:
        """A sentence for each contradiction in the state."""
        alive = {*self.gangs, *self.dirty}
        return [
            *self.cluster.validate(),
            *contradictions(self.members, self.restarts.placeholders()),
            *(f"{key}: an assessment though it is gone" for key in self.assessments if key not in alive),
            *self._misplaced(),
            *self.queue.validate(alive),
            *self.ahead.validate([key for key in self.gangs if key in self.queue]),
            *self.admission.validate(alive),
            *self.agenda.validate(alive),
            *self.caps.validate(self.gangs),
            *self.starts.validate(alive),
            *self.avoidance.validate(),
            *self.scaling.validate(self.gangs),
            *self.restarts.validate(),
            *self.surroundings.resting.validate(alive),
            *self.unserved.validate(),
            *self.searching.validate(),
            *self.phases.validate(alive),
        ]

    def _misplaced(self) -> Iterator[str]:
        """Gangs that stand in the order before the earliest place that they were said to have, each as a sentence."""
        for key, gang in self.gangs.items():
            unknown = key in self.dirty or key in self.containment.parked
            assessment = None if unknown else self.assessments.get(key)
            if assessment is not None and assessment.want and order_key(gang, assessment) < self.earliest(key):
                yield f"{key}: its place in the order is before the earliest one that it may have"
