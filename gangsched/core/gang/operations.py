"""What is under way in one gang: writes in flight or waiting for a retry, and waits; a new leader begins with none."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from gangsched.core.gang.plan import Plan
from gangsched.core.gang.writes import Barred, Binding, BindState, Part, Rollback
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod

# A module constant, because gangs of thousands of members compare each binding with it.
_BOUND = BindState.BOUND


class Attempt(Struct):
    """The attempt under way. Only these methods change it.

    `server_said` is what the API server said about the last quorum's bindings. `vanguard` are members (by UID) that are
    bound one by one before the others. `replanned` counts how often all bindings were refused and the quorum was
    planned again at once; `exhausted`: no other node was left for that.
    """

    server_said: str = ""
    vanguard: Sequence[str] = ()
    replanned: int = 0
    exhausted: bool = False

    def hear(self, words: str) -> None:
        """Note what the API server said about a refused binding or write; empty if that no longer holds."""
        self.server_said = words

    def send_first(self, vanguard: Sequence[str]) -> None:
        """These members are bound one by one before the others."""
        self.vanguard = vanguard

    def plan_elsewhere(self) -> None:
        """The server has refused all bindings: count that the quorum is planned again on other nodes."""
        self.replanned += 1

    def exhaust(self) -> None:
        """All bindings were refused, and every node that is left has refused one."""
        self.exhausted = True

    def begin_count(self) -> None:
        """A binding was accepted, or something other than the server keeps the quorum waiting."""
        self.replanned, self.exhausted = 0, False

    def succeed(self) -> None:
        """The quorum is bound."""
        self.server_said, self.vanguard = "", ()


class Operations(Struct):
    """The gang's pending writes and waits. The module that a field's docstring names changes it, or this one."""

    bindings: dict[str, Binding] = field(default_factory=dict)
    """By the UID of the member or of its placeholder (`gang.bindings`)."""
    placeholders_made: int = 0
    """Number of all placeholders that the gang ever had; most gangs have none (`gang.bindings`)."""
    mismatched: set[str] = field(default_factory=set)
    """Members, by UID, that do not fit the reservations of their role (`gang.placeholders`)."""
    barred: dict[str, Barred] = field(default_factory=dict)
    """Members, by UID, that are not tried for a while (`gang.bindings`)."""
    doubted: set[str] = field(default_factory=set)
    """Members, by UID, that were refused for good wherever they were tried, while others were bound: they go first
    (`gang.bindings`)."""
    attempt: Attempt = field(default_factory=Attempt)
    """What is remembered of the attempt to bind the quorum."""
    made_at: float = 0.0
    """When the API server was last asked to create a PodGroup, 0.0 if it was not (`gang.making`)."""
    partial_since: float = 0.0
    """When a part of the quorum was first bound while the rest was not (contract rule 1), 0.0 if that is not so
    (`gang.rollback`)."""
    rollback: Rollback | None = None
    """What rolls such a quorum back, or restarts the gang, or evicts all of it for another (`gang.rollback`)."""
    parting: Rollback | None = None
    """What evicts single members for another group (`gang.preempted`)."""
    preempted_for: GroupKey | None = None
    """The group for which all members leave, None if it is not known or none do (`gang.preempted`)."""
    awaits_plan: bool = False
    """Nobody is evicted for it yet: its plan is proven once more when all has been written (`gang.preempted`)."""
    unmarkable: bool = False
    """There is no PodGroup to write to that all members are to leave, and none can be created (`gang.making`)."""
    paused_at_attempt: int = -1
    """The attempt during which the clock last stood still for victims: at most once for each (`core.contention`)."""
    plan: Plan | None = None
    """What is open for it: the places that are reserved while others leave (`core.contention`)."""
    overstayed: bool = False
    """It was evicted because it had lasted longer than it declared: it takes no place that is reserved for another
    group, whatever its order (`core.contention`)."""
    parts: list[Part] = field(default_factory=list)
    """What else is bound together or not at all (`gang.parts`)."""
    complete_since: float = 0.0
    """Since when the gang has been complete; 0.0 if it is not."""
    short_since: float = 0.0
    """Since when a scheduled gang has been below its minimum; 0.0 if it is not."""
    comes_back: bool = False
    """All members were lost and are there again: the quorum is planned before others (`membership.restarts`)."""
    contradicted: bool = False
    """Members declare the gang differently (contract rule 15), so that nothing more is sent (`gang.reconcile`)."""
    undeclared_since: float = 0.0
    """Since when the gang's PodGroup has been missing; 0.0 if it is not."""

    def wait_for(self, plan: Plan | None) -> None:
        """This plan is open for the gang; None if none is any more."""
        self.plan = plan

    def overstay(self) -> None:
        """It is evicted because it has lasted longer than it declared."""
        self.overstayed = True

    def leave_for(self, holder: GroupKey) -> None:
        """All members are to leave for this group, once its plan says so."""
        self.preempted_for, self.awaits_plan = holder, True

    def may_leave(self) -> None:
        """The plan says so."""
        self.awaits_plan = False

    def note_pause(self, attempt: int) -> None:
        """The clock stands still for victims during this attempt."""
        self.paused_at_attempt = attempt

    def note_complete(self, since: float) -> None:
        """Note since when the gang has been complete; 0.0 if it is not."""
        self.complete_since = since

    def note_undeclared(self, now: float) -> None:
        """The gang's PodGroup is missing now; 0.0 if it is not."""
        self.undeclared_since = now and (self.undeclared_since or now)

    def note_shortness(self, since: float) -> None:
        """Note since when a scheduled gang has been below its minimum; 0.0 if it is not."""
        self.short_since = since

    def rollbacks(self, *, retried: bool = False) -> list[Rollback]:
        """What evicts members at present and, if asked for, rollbacks whose rest is being `retried`."""
        if self.rollback is None and self.parting is None and not self.parts:
            return []
        several = (self.rollback, self.parting, *(part.rollback for part in self.parts))
        return [doing for doing in several if doing is not None and (retried or not doing.retried)]

    def part_of(self, uid: str) -> Part | None:
        """The part that is bound together and has this member."""
        return next((part for part in self.parts if uid in part.members), None)

    def has_unconfirmed(self) -> bool:
        """Whether there are bindings that the API server has not confirmed yet."""
        return bool(self.bindings) and any(binding.state is not _BOUND for binding in self.bindings.values())

    def unconfirmed(self) -> list[Binding]:
        """The bindings that the API server has not confirmed yet."""
        return [binding for binding in self.bindings.values() if binding.state is not _BOUND] if self.bindings else []

    def placeholders(self) -> list[Binding]:
        """The bindings of placeholders: reservations for members that do not exist yet."""
        return [binding for binding in self.bindings.values() if binding.placeholder] if self.placeholders_made else []

    def under_way(self) -> int:
        """Number of bindings of existing members that the API server has not confirmed yet."""
        return len(self.unconfirmed()) - len(self.placeholders())

    def may_try(self, pod: Pod) -> bool:
        """Whether the member's binding may be tried: the member is not barred at present."""
        return pod.uid not in self.barred or not self.barred[pod.uid].until
