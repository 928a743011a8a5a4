"""The parts of a machine, and how they are built anew from what was observed after an exception.

Law: it decides nothing. Of earlier decisions only the bindings on their way are kept: gangs start as after a restart.
Parked gangs stay parked (`core.containment`), and objects that are set aside stay so (`core.quarantine`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.intake import Intake
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.events import Event, Synced
from gangsched.core.objects.faults import Fault, Omitted, Rebuilt, SetAside
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.subjects import name_of, singles
from gangsched.core.quarantine import Quarantine, culprit
from gangsched.core.state import State
from gangsched.core.upkeep import Upkeep

_MOST_ROUNDS = 20
"""How often the state is built anew at most after an exception, each time with one more object set aside."""


class Composition:
    """The `state`, and the `intake` and the `upkeep` that change it. All three are replaced when it is rebuilt."""

    def __init__(self, policy: Policy, avoidance: Avoidance, reconcile_pause_s_per_pod: float) -> None:
        self.quarantine = Quarantine()
        self._policy = policy
        self._avoidance = avoidance
        self._reconcile_pause_s_per_pod = reconcile_pause_s_per_pod
        self._faults: list[Fault | Omitted | Rebuilt | SetAside] = []
        self._compose(None)

    def _compose(self, former: State | None, again: Collection[Event] = ()) -> None:
        """Create an empty state that keeps only the parked gangs and the bindings on their way of the `former` one."""
        self.state = State(self._policy, self._avoidance, former)
        self.intake = Intake(self.state, self.quarantine, again)
        self.upkeep = Upkeep(self.state, self._reconcile_pause_s_per_pod)

    def store(self, events: Sequence[Event], now: float) -> bool:
        """Store the events. Returns whether all went well; otherwise objects were set aside and the state rebuilt."""
        self.quarantine.note_lists(events)
        self.intake.store(events, now)
        if self.intake.distrusted:
            failed = self.intake.postponed
            self._faults += [Rebuilt((f"{name_of(event)} could not be stored",), error) for event, error in failed]
            self.rebuild(now)
            return False
        return True

    def facts(self) -> list[Event]:
        """Everything observed, as events for a successor, including objects that are set aside."""
        state = self.state
        facts = [*state.surroundings.facts(), *state.scaling.facts(), *state.members.facts()]
        return self.quarantine.restored(facts)

    def take_faults(self) -> list[Fault | Omitted | Rebuilt | SetAside]:
        """The faults in single gangs and over single objects since the last call, and contradictions that they left."""
        faults, self._faults = [*self._faults, *self.state.containment.take_faults()], []
        return [*faults, *self.quarantine.take_faults(), *self.state.forecasting.take_faults()]

    def blames(self, events: Sequence[Event], effects: Sequence[Effect], now: float) -> bool:
        """After an exception that concerns no gang, in a call with these events: set aside the object that causes it.

        Returns whether one was found. If so, the `effects` decided in this call are not sent and the state is rebuilt.
        """
        surroundings = self.state.surroundings.facts()
        blamed = culprit(events, [event for listed in surroundings for event in singles(listed)])
        if blamed is None:
            return False
        self.quarantine.put(*blamed)
        self.state.note_unsent(effects)
        self.rebuild(now)
        return True

    def is_broken(self, effects: Sequence[Effect], now: float) -> bool:
        """Whether a fault in a gang has left the state inconsistent; it is then rebuilt.

        The `effects` decided in this call are not sent.

        Raises:
            Exception: the fault, if the rebuilt state is inconsistent too.
        """
        containment = self.state.containment
        if not containment.faults:
            return False
        self._faults += (faults := containment.take_faults())
        wrong = containment.broken or self._contradictions()
        if not wrong:
            return False
        self._faults.append(Rebuilt(tuple(wrong)))
        self.state.note_unsent(effects)
        self.rebuild(now)
        containment = self.state.containment
        self._faults += containment.take_faults()
        if containment.broken or self._contradictions():
            raise faults[0].error
        return True

    def _contradictions(self) -> Sequence[str]:
        try:
            return self.state.validate()
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            return [f"they cannot be checked: {error!r}"]

    def rebuild(self, now: float) -> None:
        """Build the state anew from what was observed, without the objects that are set aside.

        Each further round sets another object aside, or has no more events that failed in the one before.

        Raises:
            RuntimeError: objects still fail in every round.
        """
        for _ in range(_MOST_ROUNDS):
            intake, upkeep, state = self.intake, self.upkeep, self.state
            facts, postponed = self.facts(), [event for event, _ in intake.postponed]
            self._faults += state.containment.take_faults()
            self.quarantine.forget_gone()
            self._compose(state, postponed)
            self.upkeep.go_on_from(upkeep)
            self.intake.store([*facts, Synced()] if intake.synced else facts, now)
            self.intake.store(postponed, now)
            self.state.cluster.resume_flights()
            if not self.intake.distrusted:
                return
        raise RuntimeError(f"the state cannot be rebuilt, whatever is set aside: {self.quarantine.described()}")
