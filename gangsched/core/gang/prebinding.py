"""The stage before bindings: writes what must hold of other objects for all members of a quorum, and waits for it.

No binding of a quorum is sent before all pre-bindings of all its members hold, according to the watches. Members of
a scheduled gang each wait only for their own pre-bindings; no quorum waits for those of members above the minimum. The
stage does not know the kinds of pre-bindings (`core.objects.prebindings`): `Prebindings.state_of` evaluates them.

Everything that gangsched has written here carries a mark, and the marks are the stage's only record. A pre-binding that
the watch shows and no reservation needs is undone (`Leftovers`), whatever the reason: a time-out, a deleted member, a
node that is gone, a lost result, a former leader. A new leader that makes the same plan again continues where the
former one stopped.
"""

from __future__ import annotations

from collections.abc import Container

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.turn import Turn
from gangsched.core.gang.writes import Binding, BindState, PendingPrebinding
from gangsched.core.objects.duration import doubled, format_duration
from gangsched.core.objects.effects import Effect, Prebind, UndoPrebinding
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.prebindings import Prebinding, PrebindingState
from gangsched.core.objects.results import PrebindRefused

UNSEEN_S = 15.0
"""Time in seconds after which a pre-binding is sent again if neither a result nor the watch has shown it."""
LEFTOVER_S = 2.0
"""Time in seconds after which a pre-binding that no reservation needs is undone. Until then its gang may be planned in
the same way again."""
NEVER = float("inf")


def go_on(gang: Gang, cluster: Cluster, avoidance: Avoidance, *, policy: Policy, now: float) -> list[Effect]:
    """Send the pre-bindings that are due; give up reservations whose pre-bindings cannot hold any more."""
    effects: list[Effect] = []
    for uid, binding in list(gang.operations.bindings.items()):
        if not binding.pending or binding.state is not BindState.HELD:
            continue
        binding.begin(now)
        for pending in binding.pending:
            state = cluster.prebindings.state_of(pending.prebinding)
            given_up = (state is PrebindingState.GIVEN_UP and pending.tries) or (
                state is PrebindingState.OPEN and pending.made
            )
            if state is PrebindingState.LOST or given_up:
                if given_up:
                    avoidance.given_up(gang.key, binding.node)
                bindings.release(gang, cluster, uid)
                break
            if state in (PrebindingState.MADE, PrebindingState.DONE):
                pending.shown(done=state is PrebindingState.DONE)
            elif state is PrebindingState.GIVEN_UP:
                pending.put_off()  # leftovers of an earlier attempt are undone first
            elif (pending.retry_at <= now or not pending.tries) and not gang.operations.contradicted:
                pending.sent(again_at=now + UNSEEN_S)
                effects.append(Prebind(uid, pending.prebinding))
        if gang.binds_singly() and binding.awaits and now >= binding.since + policy.pre_bind_timeout_s:
            _bar(gang, binding, policy, now)
            bindings.release(gang, cluster, uid)
    return effects


def _bar(gang: Gang, binding: Binding, policy: Policy, now: float) -> None:
    """Bar a member of a scheduled gang, which waits only for its own pre-bindings, for a while."""
    awaited = binding.awaits
    if awaited is not None:
        late = f"Its volumes or devices were not ready within {format_duration(policy.pre_bind_timeout_s)}"
        bindings.bar(gang, binding.pod.uid, f"{late}, so it is tried again later; at the end {awaited.told}.", now)


def concern(turn: Turn) -> bool:
    """Whether bindings wait for pre-bindings, or have waited."""
    under_way, prepares = turn.gang.operations.bindings.values(), turn.gang.operations.prepares
    return bool(turn.gang.record.prebinding_at) or (prepares and any(binding.pending for binding in under_way))


def needs_others(turn: Turn) -> bool:
    """Whether the quorum has lost members, and has enough with those above its minimum that have reservations."""
    open_, need = turn.census.begun, turn.need
    own = [binding.pod for binding in open_ if not binding.above]
    return len(own) < len(open_) and not need.met_by(own) and need.met_by([binding.pod for binding in open_])


def take_others(turn: Turn) -> None:
    """They are members of the quorum from now on."""
    for binding in turn.census.begun:
        binding.needed()


def is_awaited(turn: Turn) -> bool:
    """Whether a complete quorum has begun to wait for its pre-bindings."""
    return not turn.gang.record.prebinding_at and turn.progress.complete and _is_open(turn.gang)


def begin(turn: Turn) -> None:
    """Begin the stage, during which the gang's clock is paused (rule 4)."""
    turn.gang.change(prebinding_at=turn.now, prebinding_clock=turn.gang.record.clock_start, clock_start=0.0)


def is_over(turn: Turn) -> bool:
    """Whether the quorum no longer waits for pre-bindings.

    The stage goes on while a member whose reservation was given up has no other yet, and until the quorum is planned
    again. Otherwise a leader that restarts repeatedly, or a provisioner that gives up everywhere, would restart the
    stage and its time-out for ever.
    """
    gang = turn.gang
    if not gang.record.prebinding_at or _is_open(gang):
        return False
    quorum = _quorum(gang)
    planned = gang.wait.parked or gang.wait.outside
    going_on = not turn.need.met_by([binding.pod for binding in quorum]) if quorum else not planned
    return gang.binds_singly() or not going_on


def end(turn: Turn) -> None:
    """End the stage; a clock that was running goes on."""
    record = turn.gang.record
    started = record.clock_start
    if record.prebinding_clock and not (started or record.retry_at or record.scheduled_at):
        started = turn.now - (record.prebinding_at - record.prebinding_clock)
    turn.gang.change(clock_start=started, prebinding_at=0.0, prebinding_clock=0.0)


def _quorum(gang: Gang) -> list[Binding]:
    return [binding for binding in gang.operations.bindings.values() if not binding.above]


def _is_open(gang: Gang) -> bool:
    """Whether a quorum has pre-bindings that do not hold yet."""
    return not gang.binds_singly() and any(binding.pending and binding.awaits for binding in _quorum(gang))


def first_awaited(gang: Gang) -> PendingPrebinding | None:
    """The first pre-binding that some member waits for."""
    for binding in gang.operations.bindings.values():
        if binding.pending and (pending := binding.awaits) is not None:
            return pending
    return None


def awaited(gang: Gang) -> tuple[Prebinding, str] | None:
    """The first awaited pre-binding and its last refusal, for messages; None if no member waits."""
    first = first_awaited(gang)
    return (first.prebinding, first.complaint) if first is not None else None


def overdue(gang: Gang, policy: Policy) -> str:
    """Which pre-binding was not done in time, as a sentence without its full stop."""
    first = first_awaited(gang)
    detail = f" ({first.told})" if first is not None else ""
    return f"The group's volumes were not ready within {format_duration(policy.pre_bind_timeout_s)}{detail}"


def note_refused(gang: Gang, event: PrebindRefused, now: float) -> None:
    """The API server has not written a pre-binding: schedule a retry with the same back-off as for bindings."""
    binding = gang.operations.bindings.get(event.uid)
    for pending in binding.pending if binding is not None else ():
        if pending.prebinding == event.prebinding and not pending.made:
            wait_s = doubled(bindings.FIRST_RETRY_S, pending.tries, longest=bindings.LONGEST_RETRY_S)
            pending.failed(event.message, retry_at=now + max(wait_s, event.retry_after_s))


def next_due(gang: Gang, policy: Policy) -> float:
    """When `go_on` has something to do without an event, in epoch seconds; infinity if never."""
    due = [NEVER]
    for binding in gang.operations.bindings.values():
        if not binding.pending or binding.awaits is None or binding.state is not BindState.HELD:
            continue
        due += [pending.retry_at for pending in binding.pending if not (pending.made or pending.done)]
        if gang.binds_singly():
            due.append(binding.since + policy.pre_bind_timeout_s)
    return min(due)


class Leftovers:
    """Undoes pre-bindings that no reservation needs, for pods of these schedulers.

    An undo that was begun is finished, even if a reservation needs the same pre-binding again meanwhile, because a
    write without a result may or may not take effect. `_since` is when each leftover was first found, `_asked` when its
    undo was last sent.
    """

    def __init__(self, schedulers: Container[str]) -> None:
        self._schedulers = schedulers
        self._since: dict[Prebinding, float] = {}
        self._asked: dict[Prebinding, float] = {}

    def take_back(self, cluster: Cluster, now: float) -> list[Effect]:
        """The undo effects to send now."""
        shown = cluster.prebindings.shown(self._schedulers)
        if not (shown or self._since):
            return []
        leftovers = [write for write in shown if write in self._asked or not cluster.prebindings.is_asked_for(write)]
        self._since = {leftover: self._since.get(leftover, now) for leftover in leftovers}
        self._asked = {leftover: at for leftover, at in self._asked.items() if leftover in self._since}
        due = [leftover for leftover in leftovers if self._due(leftover) <= now]
        self._asked.update(dict.fromkeys(due, now))
        cluster.prebindings.take_back(self._asked)
        return [UndoPrebinding(leftover) for leftover in due]

    def next_due(self) -> float:
        """When `take_back` has something to send without an event, in epoch seconds; infinity if never."""
        return min(map(self._due, self._since), default=NEVER)

    def _due(self, leftover: Prebinding) -> float:
        return self._asked[leftover] + UNSEEN_S if leftover in self._asked else self._since[leftover] + LEFTOVER_S
