"""One scheduling cycle: plan the waiting gangs in order, on one snapshot, until the budget is spent.

All quorums and repairs come first, then members above the minimum, both in the same order (contract rule 6). Further
members of a quorum that was just placed belong to the second group. A gang that does not fit reserves nothing and
blocks no other (rule 7). A gang that the budget does not reach stays in the queue and is tried in the next call; see
`core.queueing.queue`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gangsched.core.decided import Decided, Left
from gangsched.core.declarations.minima import Need
from gangsched.core.gang import bindings, parts, placeholders, rollback, steps
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.wants import Want, as_it_is, chosen_with, further, whole
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.faults import FaultyStep
from gangsched.core.objects.pause import OPEN, Pause
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import Reason
from gangsched.core.planning import budget as units
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.filling import classify
from gangsched.core.planning.further import place_each
from gangsched.core.planning.needed_prebindings import prebindings
from gangsched.core.planning.pausing import place
from gangsched.core.planning.placement import Ask, Placement, Unfinished
from gangsched.core.planning.refusal import Refusal
from gangsched.core.queueing.queue import Candidate, Round
from gangsched.core.state import State


class Cycle:
    """Plans the waiting gangs on a snapshot, reserves the nodes found and decides which bindings to send.

    `effects` are those decided earlier in this call; they are sent even if a gang's logic then fails.
    """

    def __init__(self, state: State, snapshot: Snapshot, effects: Sequence[Effect], now: float) -> None:
        self._state = state
        self._queue = state.queue
        self._cluster = state.cluster
        self._assessments = state.assessments
        self._snapshot = snapshot
        self._effects = effects
        self._now = now
        self._avoided_by_all = state.avoidance.by_all()
        # By what was asked for, since something was last placed.
        self._refused: dict[tuple[MemberClass, int, int, int | None, Pause], Refusal] = {}
        self._done: set[tuple[GroupKey, int]] = set()
        self._decided = Decided()
        self._placed: set[GroupKey] = set()

    def run(self) -> Decided:
        """Try the queue's candidates in order, while the budget lasts."""
        round_ = self._queue.round()
        for candidate in self._queue.candidates(round_, self._snapshot.budget, self._state.members.dirty):
            try:
                self._try(candidate, round_)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                self._give_up(candidate, round_, error)
        return self._decided

    def _give_up(self, candidate: Candidate, round_: Round, error: Exception) -> None:
        """Discard what was decided for a gang whose logic has just failed, and replace the snapshot by a new one."""
        key, decided = candidate.key, self._decided
        mine = self._state.gangs[key].observed.pods
        decided.effects = [effect for effect in decided.effects if effect.uid not in mine]
        decided.left.pop(key, None)
        decided.tried[key] = None
        if not self._state.contain(self._effects, self._now, FaultyStep.CYCLE, key, error):
            self._snapshot.budget.charge(self._snapshot.budget.left)
        self._done |= {(key, False), (key, True)}
        round_.add(candidate.next())
        self._snapshot.budget.charge(units.GANG + self._snapshot.size)
        self._snapshot = Snapshot(self._cluster, budget=self._snapshot.budget)
        self._refused.clear()

    def _try(self, candidate: Candidate, round_: Round) -> None:
        key, above = candidate.key, candidate.rank[0]
        gang = self._state.gangs[key]
        if (key, above) in self._done or key in self._state.members.dirty:
            round_.add(candidate.next())
            return
        # Free capacity depends on the priority, because of nominated pods.
        self._snapshot.count_nominated(self._assessments[key].terms.priority)
        if not self._queue.worth_a_try(candidate, self._snapshot):
            return
        if candidate.bucket is not None:
            gang.attempt.try_all_again()
        want = self._assessments[key].want
        if not above and want.only_above(gang.attempt.refused_members):
            # Only members above the minimum are left to try: the last call had no time for them.
            self._done.add((key, above))
            round_.add(Candidate((True, candidate.rank[1]), key))
            return
        self._done.add((key, above))
        self._decided.tried[key] = None
        self._snapshot.budget.charge(units.GANG if above else units.GANG + units.POD * len(gang.observed.pods))
        if above:
            self._above(gang, want)
        else:
            placed = want.quorum is not None and self._quorum(gang, want.quorum)
            for pod in want.moves:
                self._move(gang, pod)
            if want.repairs or want.lost:
                reached = [self._part(gang, part) for part in want.lost]
                self._singles(gang, want.repairs)
                if not all(reached):
                    gang.attempt.try_again()
            if want.parts or want.extras or placed:
                round_.add(Candidate((True, candidate.rank[1]), key))
        round_.add(self._queue.next_of(candidate, gang))
        if not above and (want.parts or want.extras) and gang.attempt.refused_members:
            # Members above the minimum may have to wait for the next call: the gang is not parked until they are tried.
            gang.attempt.try_again()

    def _quorum(self, gang: Gang, ask: Ask) -> bool:
        """Place the quorum, or park the gang. Returns whether the quorum was placed."""
        lanes, state = self._queue.lanes, self._state
        if gang.attempt.in_line(lanes.held_up_by(gang.key, state.gangs, state.assessments, self._now)):
            self._decided.refusals[Reason.NOT_ITS_TURN] += 1
            return False
        if self._place_quorum(gang, ask):
            self._placed.add(gang.key)
            return True
        if gang.record.capped is not None and any(pod.node for pod in gang.live()):
            self._singles(gang, [pod for pod in ask.members if pod.name])
        return False

    def _place_quorum(self, gang: Gang, ask: Ask) -> bool:
        """Place the quorum if it fits and the caps allow its placeholders. Returns whether it was placed."""
        if gang.record.capped is not None and self._stopped(gang, ask.members):
            # A gang is planned once before it is capped, so that one that can never fit gets that reason.
            return False
        pause = self._state.avoidance.failures.closed(gang.key, gang.live())
        if pause.everywhere:
            gang.attempt.refused(None, pause)
            self._decided.refusals[Reason.PODS_FAIL] += 1
            return False
        start = self._state.starts.start_of(ask.start.asked) if ask.start is not None else None
        ask = replace(ask, start=start, **self._avoided(gang, pause))
        mark = self._snapshot.mark()
        found = self._place(ask)
        if isinstance(found, Unfinished):
            return False
        if gang.attempt.replanned and isinstance(found, Placement) and found.touches(ask.refused):
            self._snapshot.undo(mark)
            gang.attempt.nowhere_else()
            return False
        gang.attempt.heard("")
        if isinstance(found, Refusal):
            gang.attempt.begin_count()
            if (
                not found.never
                and self._state.caps.exceeds_limit(gang, ask.members)
                and self._stopped(gang, ask.members)
            ):
                return False
            gang.attempt.refused(found, pause)
            self._decided.refusals[found.reason] += 1
            if found.start is not None:
                self._state.starts.wait(gang.key)
            return False
        if self._stopped(gang, ask.members):
            self._snapshot.undo(mark)
            return False
        steps.take(gang, steps.Step.QUORUM_PLACED)
        rollback.retry(gang)
        if not gang.record.scheduled_at and gang.record.quorum is None:
            steps.begin_quorum(gang, chosen_with(gang, self._assessments[gang.key].terms.spec, found.assignments))
        if not ask.own:
            # If members are bound or being bound already, no member waits for another.
            gang.attempt.goes_first(bindings.going_first(gang, ask.avoided, found.assignments))
        if gang.record.scheduled_at:
            tree = self._assessments[gang.key].terms.spec.tree is not None
            parts.begin(gang, [pod for pod, _ in found.assignments], tree=tree)
        if gang.plain:
            self._state.avoidance.failures.tried(*found.assignments[0])
        self._bind(gang, found.assignments)
        # No other group of this cycle may count on what the members to come will need.
        self._state.starts.note(gang, self._assessments[gang.key].terms.spec.min_resources)
        return True

    def _stopped(self, gang: Gang, members: Sequence[Pod]) -> bool:
        if not self._state.caps.stops(gang, members):
            return False
        self._decided.refusals[Reason.NAMESPACE_LIMIT] += 1
        return True

    def _above(self, gang: Gang, want: Want) -> None:
        """Place members above the minimum: those wanted before, and further ones of a quorum placed in this cycle."""
        several, members = want.parts, want.extras
        if want.quorum is not None and gang.key in self._placed:
            several, members = further(gang, want.quorum.members, self._assessments[gang.key].terms)
        reached = [(part, self._part(gang, part)) for part in several]
        extras = [*self._singles(gang, members, above=True)]
        if not all(was_reached for _, was_reached in reached):
            gang.attempt.try_again()
        refused = gang.attempt.refused_members
        extras += [pod for pod in members if pod.uid in refused]
        self._decided.left[gang.key] = Left.of(reached, extras, refused)

    def _part(self, gang: Gang, ask: Ask) -> bool:
        """Place a part of the group above its minimum, or none of it. Returns whether the budget reached it."""
        members = [now for pod in ask.members if (now := as_it_is(gang, pod)) is not None]
        if not self._snapshot.budget:
            return False
        pause = self._state.avoidance.failures.closed(gang.key, gang.live())
        if pause.everywhere:
            gang.attempt.refused(None, pause)
        if pause.everywhere or len(members) < len(ask.members):
            return True
        found = self._place(replace(ask, members=members, **self._avoided(gang, pause)))
        if isinstance(found, Placement):
            parts.begin(gang, [pod for pod, _ in found.assignments])
            self._bind(gang, found.assignments, above=True)
        elif isinstance(found, Refusal):
            gang.attempt.members_refused({pod.uid: found for pod in members}, pause)
            self._decided.refusals[found.reason] += len(members)
        return not isinstance(found, Unfinished)

    def _singles(self, gang: Gang, members: Sequence[Pod], *, above: bool = False) -> Sequence[Pod]:
        """Place each of these members on its own. Returns those that the budget did not reach."""
        members = self._allowed(gang, [now for pod in members if (now := as_it_is(gang, pod)) is not None])
        pause = self._state.avoidance.failures.closed(gang.key, gang.live()) if members else OPEN
        if pause.everywhere:
            gang.attempt.refused(None, pause)
        elif members:
            nodes = (pod.node or self._cluster.node_of(pod.uid) for pod in gang.live())
            terms, avoided = self._assessments[gang.key].terms, self._avoided(gang, pause)
            ask = whole(gang, terms, members, need=Need(1), nodes=filter(None, nodes), **avoided)
            found = place_each(self._snapshot, ask, self._state.recent_requests)
            gang.attempt.members_refused(found.refused, pause)
            self._decided.refusals.update(refusal.reason for refusal in found.refused.values())
            for refusal in {id(refusal): refusal for refusal in found.refused.values()}.values():
                self._queue.note(refusal, self._snapshot)
            # Existing members first: beside placeholders, their bindings would wait for a durable reservation.
            self._bind(gang, [place for place in found.places if place[0].name], above=above)
            self._bind(gang, [place for place in found.places if not place[0].name])
            members = found.left
        if not members and gang.attempt.refused_members:
            gang.attempt.wait()
        return members

    def _avoided(self, gang: Gang, pause: Pause) -> dict[str, Any]:
        """The fields of an ask that name nodes which the gang avoids for now."""
        refused = self._state.avoidance.by_gang(gang.key) | pause.nodes
        return {"avoided": self._avoided_by_all | refused | pause.doubted, "refused": refused, "pause": pause}

    def _allowed(self, gang: Gang, members: Sequence[Pod]) -> list[Pod]:
        """These members, without the placeholders that exceed the namespace's limit."""
        allowed: list[Pod] = []
        for pod in members:
            if pod.name or not self._stopped(gang, [*(each for each in allowed if not each.name), pod]):
                allowed.append(pod)
        return allowed

    def _move(self, gang: Gang, pod: Pod) -> None:
        """Place a member outside its role's reservation, and give up one reserved place if that succeeds."""
        place = placeholders.given_up_for(gang, pod)
        mark = self._snapshot.mark()
        self._snapshot.leave([self._cluster.ledger.claims[place.pod.uid]])
        self._singles(gang, [pod])
        if pod.uid in gang.operations.bindings:
            bindings.release(gang, self._cluster, place.pod.uid)
            self._snapshot.settle()
            placeholders.settled(gang, pod)
        else:
            self._snapshot.undo(mark)

    def _bind(self, gang: Gang, found: Sequence[tuple[Pod, str]], *, above: bool = False) -> None:
        if found:
            self._refused.clear()
        gang.roster.choose(pod.uid for pod, _ in found if pod.name)
        asked = prebindings(self._snapshot, found)
        self._decided.effects += bindings.begin(gang, self._cluster, found, above=above, prebindings=asked)

    def _place(self, ask: Ask) -> Placement | Refusal | Unfinished:
        """Place, or return the refusal of an equal ask if nothing was placed in this cycle since."""
        classes = set(classify(self._snapshot, ask.members, ask.avoided).values())
        key = (next(iter(classes)), ask.need, len(ask.members), self._snapshot.priority, ask.pause)
        alike = len(classes) == 1 and ask.only_counts
        if alike and key in self._refused:
            return self._refused[key]
        found = place(self._snapshot, ask, self._state.recent_requests)
        if isinstance(found, Refusal):
            self._queue.note(found, self._snapshot)
            if alike:
                self._refused[key] = found
        return found
