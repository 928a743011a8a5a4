"""Places what one gang wants on the snapshot of a call, and reserves the nodes found.

All of a quorum is placed, or nothing (contract rule 7). A gang that does not fit reserves nothing and blocks no other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from gangsched.core.declarations.minima import Need
from gangsched.core.gang import bindings, parts, placeholders, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.wants import Want, as_it_is, chosen_with, further, together, whole
from gangsched.core.objects.pause import OPEN, Pause
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.reasons import Reason
from gangsched.core.outcome import Outcome
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from gangsched.core.planning.further import place_each
from gangsched.core.planning.levels import divided
from gangsched.core.planning.needed_prebindings import prebindings
from gangsched.core.planning.pausing import place
from gangsched.core.planning.placement import Ask, Placement, Unfinished
from gangsched.core.planning.refusal import Refusal
from gangsched.core.state import State
from gangsched.core.status import gang_events


class Placing:
    """Places the gangs of one call, one after the other, within its budget."""

    def __init__(self, state: State, budget: Budget, now: float) -> None:
        self._state = state
        self._queue = state.queue
        self._cluster = state.cluster
        self._assessments = state.assessments
        self._budget = budget
        self._now = now
        self._avoided_by_all = state.avoidance.by_all()
        self._snapshot_now: Snapshot | None = None
        self._changes = -1
        # By what was asked for, since something was last placed.
        self._refused: dict[Hashable, Refusal] = {}
        self._outcome = Outcome()

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as it is now; a new one if it has changed by anything else than what was placed on it."""
        if self._snapshot_now is None or self._changes != self._cluster.changes:
            if self._snapshot_now is not None:
                self._budget.charge(units.GANG + len(self._cluster.nodes))
            self._snapshot_now = Snapshot(self._cluster, budget=self._budget)
            self._changes = self._cluster.changes
            self._refused.clear()
        return self._snapshot_now

    def discard(self) -> None:
        """Take a new snapshot, because an exception may have occurred between two changes of this one."""
        self._budget.charge(units.GANG + len(self._cluster.nodes))
        self._snapshot_now = None

    def place(self, gang: Gang, outcome: Outcome, *, above: bool) -> bool:
        """Place what the gang wants: its quorum and repairs or, `above` its minimum, further members.

        Returns whether there is something to place above the minimum.
        """
        self._outcome = outcome
        outcome.tried = True
        want = self._assessments[gang.key].want
        if above:
            self._above(gang, want)
            return False
        placed = want.quorum is not None and self._quorum(gang, want.quorum)
        for pod in want.moves:
            self._move(gang, pod)
        if want.repairs or want.lost:
            reached = [self._part(gang, part) for part in want.lost]
            reached.append(self._repairs(gang, want.repairs))
            if not all(reached):
                gang.wait.try_again()
        return bool(want.parts or want.extras or placed)

    def _quorum(self, gang: Gang, ask: Ask) -> bool:
        """Place the quorum, or park the gang. Returns whether it was placed, and members are left that were not."""
        lanes, state = self._queue.lanes, self._state
        if gang.wait.stand_behind(lanes.held_up_by(gang.key, state.gangs, state.assessments, self._now)):
            self._outcome.refuse(Reason.NOT_ITS_TURN)
            return False
        if self._place_quorum(gang, ask):
            return any(True for pod in ask.members if pod.name and pod.uid not in gang.operations.bindings)
        if gang.record.capped is not None and gang.bound():
            self._singles(gang, [pod for pod in ask.members if pod.name])
        return False

    def _place_quorum(self, gang: Gang, ask: Ask) -> bool:
        """Place the quorum if it fits and the caps allow its placeholders. Returns whether it was placed."""
        if gang.record.capped is not None and self._stopped(gang, ask.members):
            # A gang is planned once before it is capped, so that one that can never fit gets that reason.
            return False
        pause = self._state.avoidance.failures.closed(gang.key, gang.live)
        if pause.everywhere:
            gang.wait.refuse(None, pause)
            self._outcome.refuse(Reason.PODS_FAIL)
            return False
        start = self._state.starts.start_of(ask.start.asked) if ask.start is not None else None
        ask = self._avoiding(gang, replace(ask, start=start), pause)
        snapshot = self.snapshot
        mark = snapshot.mark()
        result = self._place(snapshot, ask)
        if isinstance(result, Unfinished):
            return False
        if gang.operations.attempt.replanned and isinstance(result, Placement) and result.touches(ask.refused):
            snapshot.undo(mark)
            gang.operations.attempt.exhaust()
            gang.wait.park()
            return False
        gang.operations.attempt.hear("")
        if isinstance(result, Refusal):
            self._refuse(gang, ask, result, pause)
            return False
        if self._stopped(gang, ask.members):
            snapshot.undo(mark)
            return False
        self._begin(gang, ask, result)
        return True

    def _refuse(self, gang: Gang, ask: Ask, refusal: Refusal, pause: Pause) -> None:
        """Park the gang for which there is no room, or whose placeholders would be more than its namespace may hold."""
        gang.operations.attempt.begin_count()
        if not refusal.never and self._state.caps.exceeds_limit(gang, ask.members) and self._stopped(gang, ask.members):
            return
        gang.wait.refuse(refusal, pause)
        self._outcome.refuse(refusal.reason)
        if refusal.start is not None:
            self._state.starts.wait(gang.key)

    def _begin(self, gang: Gang, ask: Ask, placement: Placement) -> None:
        """Reserve the places of the quorum, and begin it unless it has begun."""
        terms = self._assessments[gang.key].terms
        if gang.record.rollback_note:
            gang.change(rollback_note="")
        gang.wait.forget_refusal()
        rollback.retry(gang)
        if not gang.record.scheduled_at and gang.record.quorum is None:
            gang.begin_quorum(chosen_with(gang, terms.spec, placement.assignments))
        if not ask.own:
            # If members are bound or being bound already, no member waits for another.
            gang.operations.attempt.send_first(bindings.going_first(gang, ask.avoided, placement.assignments))
        if gang.record.scheduled_at:
            parts.begin(gang, [pod for pod, _ in placement.assignments], tree=terms.spec.tree is not None)
        if gang.plain:
            self._state.avoidance.failures.tried(*placement.assignments[0])
        self._bind(gang, placement.assignments)
        # No other group of this cycle may count on what the members to come will need.
        self._state.starts.note(gang, terms.spec.min_resources)

    def _stopped(self, gang: Gang, members: Sequence[Pod]) -> bool:
        if not self._state.caps.stops(gang, members):
            return False
        self._outcome.refuse(Reason.NAMESPACE_LIMIT)
        return True

    def _above(self, gang: Gang, want: Want) -> None:
        """Place members above the minimum: those wanted before, or further ones of a quorum placed in this cycle."""
        asks, members = want.parts, want.extras
        if want.quorum is not None:
            asks, members = further(gang, want.quorum.members, self._assessments[gang.key].terms)
        reached = [self._part(gang, part) for part in asks]
        self._singles(gang, members, above=True)
        if not all(reached):
            gang.wait.try_again()

    def _repairs(self, gang: Gang, members: Sequence[Pod]) -> bool:
        """Place members that replace lost ones, each on its own, but those for which others leave at once or none.

        Returns whether the budget reached them, or they stay active without it.
        """
        plan, named = gang.operations.plan, [pod for pod in members if pod.name]
        if plan is None or all(pod.uid not in plan.members for pod in named):
            self._singles(gang, members)
            return True
        reached = self._part(gang, together(gang, self._assessments[gang.key].terms, named), joint=False)
        self._singles(gang, [pod for pod in members if not pod.name])
        return reached

    def _part(self, gang: Gang, ask: Ask, *, joint: bool = True) -> bool:
        """Place this part of the group, or none of it; a `joint` one is also bound whole or not at all.

        Returns whether the budget reached it.
        """
        members = [now for pod in ask.members if (now := as_it_is(gang, pod)) is not None]
        if not self._budget:
            return False
        pause = self._state.avoidance.failures.closed(gang.key, gang.live)
        if pause.everywhere:
            gang.wait.refuse(None, pause)
        if pause.everywhere or len(members) < len(ask.members):
            return True
        result = self._place(self.snapshot, self._avoiding(gang, replace(ask, members=members), pause))
        if isinstance(result, Placement):
            if joint:
                parts.begin(gang, [pod for pod, _ in result.assignments])
            self._bind(gang, result.assignments, above=joint)
        elif isinstance(result, Refusal):
            gang.wait.refuse_members({pod.uid: result for pod in members}, pause, since=self._queue.reliefs)
            self._outcome.refuse(result.reason, len(members))
        return not isinstance(result, Unfinished)

    def _singles(self, gang: Gang, members: Sequence[Pod], *, above: bool = False) -> Sequence[Pod]:
        """Place each of these members on its own. Returns those that the budget did not reach."""
        members = self._allowed(gang, [now for pod in members if (now := as_it_is(gang, pod)) is not None])
        pause = self._state.avoidance.failures.closed(gang.key, gang.live) if members else OPEN
        if pause.everywhere:
            gang.wait.refuse(None, pause)
        elif members:
            nodes = (pod.node or self._cluster.node_of(pod.uid) for pod in gang.live())
            terms = self._assessments[gang.key].terms
            ask = whole(gang, terms, members, need=Need(1), nodes=filter(None, nodes))
            result = place_each(self.snapshot, self._avoiding(gang, ask, pause), self._state.recent_requests)
            gang.wait.refuse_members(result.refused, pause, since=self._queue.reliefs)
            for refusal in result.refused.values():
                self._outcome.refuse(refusal.reason)
            for refusal in {id(refusal): refusal for refusal in result.refused.values()}.values():
                self._queue.note(refusal, self.snapshot)
            # Existing members first: beside placeholders, their bindings would wait for a durable reservation.
            self._bind(gang, [place for place in result.places if place[0].name], above=above)
            self._bind(gang, [place for place in result.places if not place[0].name])
            members = result.left
        if not members and gang.wait.refused_members:
            gang.wait.park_members(self._queue.reliefs)
        return members

    def _avoiding(self, gang: Gang, ask: Ask, pause: Pause) -> Ask:
        """The ask, avoiding the nodes that the gang avoids for now."""
        return ask.avoiding(self._avoided_by_all, self._state.avoidance.by_gang(gang.key), pause)

    def _allowed(self, gang: Gang, members: Sequence[Pod]) -> list[Pod]:
        """These members, without the placeholders that exceed the namespace's limit."""
        allowed: list[Pod] = []
        for pod in members:
            if pod.name or not self._stopped(gang, [*(earlier for earlier in allowed if not earlier.name), pod]):
                allowed.append(pod)
        return allowed

    def _move(self, gang: Gang, pod: Pod) -> None:
        """Place a member outside its role's reservation, and give up one reserved place if that succeeds."""
        place = next(held for held in gang.operations.placeholders() if role_of(held.pod) == role_of(pod))
        mark = self.snapshot.mark()
        self.snapshot.leave([self._cluster.ledger.claims[place.pod.uid]])
        self._singles(gang, [pod])
        if pod.uid in gang.operations.bindings:
            bindings.release(gang, self._cluster, place.pod.uid)
            self._changes = self._cluster.changes
            self.snapshot.settle()
            placeholders.settled(gang, pod)
        else:
            self.snapshot.undo(mark)

    def _bind(self, gang: Gang, places: Sequence[tuple[Pod, str]], *, above: bool = False) -> None:
        if places:
            self._refused.clear()
        gang.roster.choose([pod.uid for pod, _ in places if pod.name])
        asked = prebindings(self.snapshot, places)
        self._outcome.decide(bindings.begin(gang, self._cluster, places, above=above, prebindings=asked))
        if self._state.plans.holders:
            self._state.reserving.join(gang, places, self._now)
        self._changes = self._cluster.changes
        assessment = self._assessments[gang.key]
        if places and (assessment.terms.spec.topology is not None or assessment.terms.spec.levels):
            domains = [*divided(self.snapshot, together(gang, assessment.terms, []))]
            self._outcome.decide([*gang_events.on_divided(gang, assessment, domains)])

    def _place(self, snapshot: Snapshot, ask: Ask) -> Placement | Refusal | Unfinished:
        """Place, or return the refusal of an equal ask if nothing was placed in this cycle since."""
        kind = self._kind(ask) if self._refused else None
        if kind in self._refused:
            return self._refused[kind]
        result = place(snapshot, ask, self._state.recent_requests)
        if isinstance(result, Refusal):
            self._queue.note(result, snapshot)
            result = self._kept_off(ask, result)
            kind = kind or self._kind(ask)
            if kind is not None:
                self._refused[kind] = result
        return result

    def _kind(self, ask: Ask) -> Hashable:
        """Equal for asks with the same answer; None for one that is not compared with others."""
        classes = {*classify(self.snapshot, ask.members, ask.avoided).values()} if ask.only_counts else ()
        return (*classes, ask.need, len(ask.members), self.snapshot.viewer, ask.pause) if len(classes) == 1 else None

    def _kept_off(self, ask: Ask, refusal: Refusal) -> Refusal:
        """The same refusal, which says so if the ask fits but for what is reserved for others later."""
        snapshot, viewer = self.snapshot, self.snapshot.viewer
        if viewer is None or refusal.never or not self._state.plans.holders:
            return refusal
        other, until = self._state.viewers.reserved_until(viewer)
        if other != viewer:
            mark = snapshot.mark()
            snapshot.stand_for(other)
            would = place(snapshot, ask, self._state.recent_requests)
            snapshot.undo(mark)
            snapshot.stand_for(viewer)
            if isinstance(would, Placement):
                return replace(refusal, reserved_until=until)
        return refusal
