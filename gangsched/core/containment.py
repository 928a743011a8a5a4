"""Fault containment. A fault is an exception in the logic of one gang, that is, a bug in gangsched.

Law: nothing here plans or runs the logic that failed. The gang's decided state is discarded; what is stored of it, such
as the bindings on their way, is kept. All other reservations are released, and the effects of the step are not sent.

The gang is then parked: it takes part in no scheduling cycle, its status says so, and its bound members are evicted if
its quorum is not completely bound. It is released when its PodGroup's spec changes, when its members change (other than
by our own rollback, and with growing delays), or when a back-off that doubles with each fault ends. It then starts from
the record in its PodGroup's status, as every gang does after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.minima import missing_of
from gangsched.core.gang import news, rollback
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang, forget_written, take_census
from gangsched.core.gang.mail import Context, Entered
from gangsched.core.gang.writes import Rollback
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.duration import doubled
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.faults import Fault, FaultyStep
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import NO_RECORD, Minima, Phase, Record
from gangsched.core.status import faulted

FIRST_S = 60.0
LONGEST_S = 3600.0
"""A gang is parked for FIRST_S seconds, doubled with each further fault up to LONGEST_S. The count resets when the spec
changes, and when the gang has run without a fault for LONGEST_S after its last back-off."""
SOONEST_S = 1.0
LATEST_S = 60.0
"""A parked gang whose members change is released SOONEST_S seconds after the fault at the earliest, doubled with each
further fault up to LATEST_S."""
_NOTE = "gangsched failed on this group while part of its quorum was bound"


class FaultedGang(Struct, kw_only=True):
    """A gang that is parked until this time, after this many faults in a row; `step` and `error` describe the last one.

    A change of `members` releases it from `soonest` on, a change of `spec` at once. `minima` are what its quorum needs,
    0 where that is unknown. `rollback` is the rollback of a quorum that has been partly bound since `partial_since`.
    `reported`: its Event was emitted. `failed` names the methods of `Containment` that also failed and are skipped.
    """

    until: float
    minima: Minima
    partial_since: float
    times: int = 0
    step: FaultyStep = FaultyStep.EVENT
    error: str = ""
    soonest: float = 0.0
    spec: Hashable = None
    members: Hashable = ()
    scheduled: bool = False
    rollback: Rollback | None = None
    reported: bool = False
    failed: frozenset[str] = frozenset()


class Containment:
    """Parks gangs whose logic failed, and releases them.

    `leave` removes a gang from all queues. `faults` are new, `broken` lists gangs whose reservations could not be
    released. `before` holds the state of gangs that were parked earlier. The parked gangs of a `former` one carry over.
    """

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: dict[GroupKey, Assessment],
        *,
        policy: Policy,
        leave: Callable[[GroupKey], None],
        former: Containment | None = None,
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._policy = policy
        self._leave = leave
        self.parked: dict[GroupKey, FaultedGang] = {} if former is None else former.parked
        self.before: dict[GroupKey, FaultedGang] = {} if former is None else former.before
        self.broken: list[str] = []
        self.faults: list[Fault] = []

    def drop(self, key: GroupKey) -> None:
        """The gang no longer exists."""
        self.parked.pop(key, None)
        self.before.pop(key, None)

    def park(self, key: GroupKey, step: FaultyStep, error: Exception, now: float) -> None:
        """Park a gang whose logic has failed, and discard its state except what the API server has."""
        old = self._members.gangs[key]
        again = self.parked.get(key)
        before = again or self.before.pop(key, None)
        times = before.times + (again is None) if before is not None and now < before.until + LONGEST_S else 1
        wait_s = doubled(FIRST_S, times, longest=LONGEST_S)
        partial_since = old.operations.partial_since
        parked = again or FaultedGang(until=now + wait_s, minima=faulted.minima_of(old), partial_since=partial_since)
        self.parked[key] = parked
        parked.times, parked.step, parked.error = times, step, type(error).__name__
        parked.soonest = now + doubled(SOONEST_S, times, longest=LATEST_S)
        parked.spec = faulted.spec_of(old)
        self.faults.append(Fault(str(key), step, error, wait_s, old.story))
        gang = self._anew(key)
        forget_written(gang)
        gang.written.rewrite(old.written.status)
        parked.members = faulted.members_of(gang)
        parked.scheduled = faulted.was_scheduled(faulted.last_status(gang))
        if old.record.scheduled_at and not parked.scheduled:
            _note_scheduled(gang, parked, old.record.scheduled_at)
        self._members.dirty.note(key)
        self._leave(key)

    def _anew(self, key: GroupKey) -> Gang:
        """Replace the gang by one with only what is stored and the bindings that were sent. Returns the new one."""
        old = self._members.gangs[key]
        gang = Gang(key, old.observed.bare(), Record(phase=old.record.phase), written=old.written)
        for uid in old.roster.leaving & old.observed.pods.keys():
            gang.roster.leave(uid)
        try:
            self._members.renew(gang)
            news.settle_stored(gang, self._cluster)
        except Exception as error:  # noqa: BLE001 - the fault may have left the state inconsistent
            self.broken.append(f"{key}: its reservations could not be released: {error!r}")
        return gang

    def take_faults(self) -> list[Fault]:
        """The faults since the last call."""
        faults, self.faults = self.faults, []
        return faults

    # Parked gangs

    def handle_parked(self, key: GroupKey, now: float) -> list[Effect]:
        """Do what is due for a parked gang: evict its bound members and write its status."""
        gang, parked, effects = self._members.gangs[key], self.parked[key], list[Effect]()
        try:
            news.hear(gang, Context(self._cluster, self._members.foreign, self._policy, now))
            news.settle_stored(gang, self._cluster)
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            self.park(key, FaultyStep.EVENT, error, now)
            gang, parked = self._members.gangs[key], self.parked[key]
        for part in (self._roll_back, self._write):
            if part.__name__ not in parked.failed:
                try:
                    effects += part(gang, parked, now)
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    failed = parked.failed | {part.__name__}
                    self.park(key, FaultyStep.ROLLBACK, error, now)
                    gang, parked = self._members.gangs[key], self.parked[key]
                    parked.failed, parked.partial_since = failed, 0.0
        self._assessments[key] = faulted.assessment_of(gang, self._message(parked), due=self._due(gang, parked, now))
        return effects

    def _due(self, gang: Gang, parked: FaultedGang, now: float) -> float:
        """When, in epoch seconds, a parked gang is next due even if no event concerns it."""
        due = [rollback.next_due(gang)]
        if not self._is_awaited(gang):
            due.append(parked.soonest if self._has_changed(gang, parked) else parked.until)
        elif parked.partial_since and parked.rollback is None:
            due.append(parked.partial_since + rollback.lasts_s(self._policy))
        if gang.written.unwritten and gang.observed.group is not None and self._write.__name__ not in parked.failed:
            due.append(gang.written.write_again_at)
        return max(now, min(due))

    def _is_awaited(self, gang: Gang) -> bool:
        """Whether one of its bindings is in flight."""
        return any(map(self._cluster.flights.awaited, gang.observed.pods))

    def may_leave(self, key: GroupKey, now: float) -> bool:
        """Whether a parked gang may be released; never while one of its bindings is in flight."""
        gang, parked = self._members.gangs[key], self.parked[key]
        if self._is_awaited(gang):
            return False
        if faulted.spec_of(gang) != parked.spec:
            parked.until = parked.times = 0
            return True
        return now >= parked.until or (now >= parked.soonest and self._has_changed(gang, parked))

    def release(self, key: GroupKey) -> None:
        """Let the gang start as after a restart."""
        gang = self._anew(key)
        self.before[key] = self.parked.pop(key)
        if gang.observed.group is not None:
            gang.observed.declare(replace(gang.observed.group, status=faulted.last_status(gang)))
        self._members.tell(gang, Entered())

    def _write(self, gang: Gang, parked: FaultedGang, now: float) -> list[Effect]:
        message = self._message(parked)
        interval_s = self._policy.message_interval_s
        status = faulted.status_of(gang, message, scheduled=parked.scheduled, known=bool(parked.minima.total), now=now)
        gang.change(phase=Phase(status.phase))
        first, parked.reported = not parked.reported, True
        return faulted.write(gang, status, message, first=first, interval_s=interval_s, now=now)

    def _roll_back(self, gang: Gang, parked: FaultedGang, now: float) -> list[Effect]:
        """Evict the bound part of a quorum once no binding is in flight, or when the rest was not bound in time."""
        census, needed = take_census(gang, gang.live()), parked.minima
        if parked.scheduled or not needed.total or not census.bound:
            parked.partial_since = 0.0
            return []
        if parked.rollback is None:
            parked.partial_since = parked.partial_since or now
            if not missing_of(needed, census.bound_roles):
                _note_scheduled(gang, parked, now)
                parked.partial_since = 0.0
                return []
            if gang.operations.has_unconfirmed() and now < parked.partial_since + rollback.lasts_s(self._policy):
                return []
            parked.rollback = rollback.begun(now, _NOTE, now)
        rollback.go_on_with(gang, parked.rollback)
        gang.roster.inherit_only(pod.uid for pod in census.bound)
        return rollback.go_on(gang, now)

    def _message(self, parked: FaultedGang) -> str:
        wait_s = doubled(FIRST_S, parked.times, longest=LONGEST_S)
        evicted = parked.rollback is not None and not parked.failed
        return faulted.message_of(parked.step, parked.error, parked_s=wait_s, evicted=evicted)

    def _has_changed(self, gang: Gang, parked: FaultedGang) -> bool:
        """Whether its members have changed since it was parked. Changes by our own rollback do not count."""
        return parked.rollback is None and faulted.members_of(gang) != parked.members


def _note_scheduled(gang: Gang, parked: FaultedGang, at: float) -> None:
    """Record in the status that the quorum is bound, because a restart reads it from there."""
    parked.scheduled = True
    last = faulted.last_status(gang)
    record = replace(last.record or NO_RECORD, scheduled_at=at, satisfied=parked.minima)
    gang.written.rewrite(replace(last, record=record))
