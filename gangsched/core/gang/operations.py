"""What this process knows of one gang beside its record; a new leader begins with none of it.

That is what is under way (writes in flight or waiting for a retry), which members belong to which run and to the quorum
under way, which reservations are durable (design rule 4), and why the gang waits: the result of the last search for
places, kept until there is a reason for another one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from gangsched.core.gang.plan import Plan
from gangsched.core.gang.writes import Barred, Binding, BindState, Part, Rollback
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pause import OPEN, Pause
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.refusal import Refusal

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
    prepares: bool = False
    """Whether any of its bindings has ever had pre-bindings; most gangs have none (`gang.bindings`)."""
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
        rollbacks = (self.rollback, self.parting, *(part.rollback for part in self.parts))
        return [doing for doing in rollbacks if doing is not None and (retried or not doing.retried)]

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


class Roster(Struct):
    """Sets of members by UID; only these methods change them.

    `past` belong to earlier runs; `recorded` belong to this run, and the record counts them as ended. `chosen` were
    given nodes as parts of the quorum under way; `inherited` were bound by a former leader, by another scheduler, or
    after gangsched had given them up, so that a quorum may have begun with them. `leaving` are members whose eviction
    was accepted. `emptied`: since the gang was last reconciled, its last live member went and then another one came.
    """

    past: frozenset[str] = frozenset()
    recorded: set[str] = field(default_factory=set)
    chosen: set[str] = field(default_factory=set)
    inherited: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    emptied: bool = False

    def begin_run(self, past: Iterable[str]) -> None:
        """Begin another run, to which these members do not belong."""
        self.past = frozenset(past)
        self.recorded = set()

    def end_run(self, past: Iterable[str]) -> None:
        """End the run to which these members belonged."""
        self.past = frozenset(past)

    def count(self, *uids: str) -> None:
        """Note that the record counts these members as ended."""
        self.recorded.update(uids)

    def choose(self, uids: Iterable[str], *, replace: bool = False) -> None:
        """Note that these members have nodes in the quorum under way; only these if it has just begun (`replace`)."""
        if replace:
            self.chosen = set()
        self.chosen.update(uids)

    def inherit(self, uid: str) -> None:
        """Note that the member was bound although gangsched had not just sent its binding."""
        self.inherited.add(uid)

    def inherit_only(self, uids: Iterable[str] = ()) -> None:
        """Make these the only inherited members: those with which a quorum may have begun."""
        self.inherited = set(uids)

    def leave(self, uid: str) -> None:
        """Note that the member's eviction was accepted."""
        self.leaving.add(uid)

    def keep(self, pods: Mapping[str, object]) -> None:
        """Forget leaving and chosen members that are none of these `pods` any more."""
        self.leaving -= self.leaving.difference(pods)
        self.chosen -= self.chosen.difference(pods)

    def forget(self, uid: str) -> None:
        """Forget a member that no longer exists."""
        if uid in self.past:
            self.past -= {uid}
        self.recorded.discard(uid)
        self.inherited.discard(uid)

    def note_emptied(self) -> None:
        """Note that the last live member has gone and another one has come."""
        self.emptied = True

    def forget_emptied(self) -> None:
        """The run of the last live member that has gone is over."""
        self.emptied = False


class Durability(Struct):
    """Which reservations are written to the PodGroup's status. Only these methods change it.

    `asked_at` is the time since which reservations must be written before anything relies on them, 0.0 if they need not
    be. The reservations of the members `secured` (by UID) are written. `unmade`: the API server refused to create the
    PodGroup that was to hold them, and the gang goes on without.
    """

    asked_at: float = 0.0
    secured: frozenset[str] = frozenset()
    unmade: bool = False

    def covers(self, uid: str) -> bool:
        """Whether the member's reservation may be relied on: it is written, or need not be."""
        return not self.asked_at or uid in self.secured

    def ask(self, now: float) -> None:
        """Require the gang's reservations to be durable from now on."""
        self.asked_at = now

    def needless(self) -> None:
        """The reservations need not be durable any more."""
        self.asked_at = 0.0

    def could_not(self) -> None:
        """Give up durability: there is no PodGroup to write the reservations to, and none can be created."""
        self.unmade = True
        self.asked_at = 0.0

    def written(self, uids: Iterable[str]) -> None:
        """Note that the status holds the reservations of these members."""
        self.secured = frozenset(uids)

    def restore(self, uids: Iterable[str], asked_at: float) -> None:
        """A former leader needed durable reservations, and the status holds those of these members."""
        self.secured, self.asked_at = frozenset(uids), asked_at

    def hand_over(self, old: str, new: str) -> None:
        """Another member takes over the reservation."""
        if old in self.secured:
            self.secured = self.secured - {old} | {new}

    def release(self, uid: str) -> None:
        """The member's reservation is released."""
        if uid in self.secured:
            self.secured -= {uid}

    def drop(self) -> None:
        """The PodGroup that held the reservations is gone."""
        self.secured, self.asked_at = frozenset(), 0.0

    def end(self) -> None:
        """The gang has no reservations any more."""
        self.secured, self.asked_at, self.unmade = frozenset(), 0.0, False


class Wait(Struct):
    """Whether a gang is tried, and if not, what for it waits. Only these methods change it."""

    parked: bool = False
    """Nothing has happened that could help it since it was last tried."""
    refusal: Refusal | None = None
    """Why there is no room for the quorum."""
    refused_members: dict[str, Refusal] = field(default_factory=dict)
    """Why there is none for single members, by UID."""
    refused_since: int = 0
    """The number of improvements on nodes (`queueing.parking`) before the first of these was refused."""
    behind: GroupKey | None = None
    """The gang in its FIFO lane that it may not overtake."""
    pause: Pause = OPEN
    """What keeps members without a node waiting, because such pods fail at once."""
    outside: str = ""
    """Why it is not tried at all: too many groups of its namespace wait ahead of it (`queueing.admission`)."""
    asked: tuple[object, ...] = ()
    """What it asked for: its members, its terms, and which members are bound."""

    # What may help

    def try_again(self) -> None:
        """Something has happened that may help the gang."""
        self.parked = False

    def try_all_again(self) -> None:
        """Something has happened that may help the gang, including its refused single members."""
        self.parked = False
        self.pause = OPEN
        self.refused_members.clear()

    def ask(self, asked: tuple[object, ...]) -> None:
        """Try the gang again with what it asks for now."""
        self.asked = asked
        self.try_all_again()

    def forget_members(self) -> None:
        """The refusals of single members no longer hold."""
        self.refused_members.clear()

    def see(self, asked: tuple[Hashable, ...], viewer: Hashable) -> None:
        """Of what is reserved for others, something else counts for the gang than when it was refused what it asked."""
        if self.refusal is not None and self.refusal.asked == asked:
            self.refusal = self.refusal.seen_by(viewer)
        for uid, refusal in self.refused_members.items():
            if refusal.asked == asked:
                self.refused_members[uid] = refusal.seen_by(viewer)

    def forget_refusal(self) -> None:
        """The quorum fits, or the gang has changed so that its refusal no longer holds."""
        self.refusal = self.behind = None

    def member_has_place(self, uid: str) -> None:
        """A single member that was refused has a node after all."""
        self.refused_members.pop(uid, None)

    def enter(self) -> None:
        """The gang may be tried, for all that waits ahead of it."""
        self.outside = ""

    # What to wait for

    def park(self) -> None:
        """Only the passage of time can help the gang."""
        self.parked = True

    def refuse(self, refusal: Refusal | None, pause: Pause = OPEN) -> None:
        """The quorum was not placed: it does not fit or, with None, something other than room keeps it waiting."""
        self.refusal, self.pause = refusal, pause
        self.parked = True

    def refuse_members(self, refusals: Mapping[str, Refusal], pause: Pause, *, since: int) -> None:
        """These single members do not fit after so many improvements on nodes, perhaps because of the pause."""
        if not self.refused_members:
            self.refused_since = since
        self.refused_members.update(refusals)
        self.pause = pause

    def park_members(self, reliefs: int) -> None:
        """Single members were refused; all are tried again if a node has improved since the first one was."""
        if self.refused_since < reliefs:
            self.try_all_again()
        else:
            self.parked = True

    def stand_behind(self, other: GroupKey | None) -> bool:
        """Wait for the gang that may not be overtaken, None if there is none. Returns whether there is one."""
        self.behind = other
        if other is not None:
            self.refuse(None)
        return other is not None

    def stay_outside(self, why: str) -> None:
        """The gang is not tried, because of those that wait ahead of it."""
        self.outside = why
