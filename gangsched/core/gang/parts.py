"""Binds members above the minimum that belong together: all of them or none, as the members of a quorum.

A part is what one search has placed of a tree above its minimum, or of what a raised minimum adds. It begins with its
first reservations and ends once it is whole. Nothing of it is bound before all of it may be. If it stays partly bound
for as long as a quorum may, it is rolled back alone and tried again after a back-off, while the rest of the gang goes
on. After a restart `gang.unrecorded` finds it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum, auto

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.minima import minima, missing_of, role_minima
from gangsched.core.gang import bindings, rollback
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.turn import Turn
from gangsched.core.gang.wants import placed_of, roles_of
from gangsched.core.gang.writes import BindState, Part
from gangsched.core.objects.duration import doubled
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.policy import Policy

NOTHING: Mapping[str, int] = {}


def begin(
    gang: Gang,
    members: Sequence[Pod],
    *,
    tree: bool = True,
    needs: Mapping[str, int] = NOTHING,
    since: float = 0.0,
    complaint: str = "",
) -> None:
    """Bind these members together, and with those of their roles that are being bound together already.

    Their part may have more `needs` (by role, these members included), and some of them may have been bound `since`
    then. `complaint` is what the API server said of others, whose reservations are given up. Places held for members
    that do not exist yet are not waited for: those members are made once others are bound. In a `tree`, what was begun
    of a role is still bound whole, whatever the search has chosen beside it this time; otherwise any members will do.
    """
    members = [pod for pod in members if pod.name]
    if not members:
        return
    roles = Counter(map(role_of, members))
    joined = [part for part in gang.operations.parts if part.needs.keys() & roles.keys()]
    uids = {pod.uid for pod in members}
    others = {uid for part in joined for uid in part.members} - uids
    other_pods = [pod for pod in placed_of(gang) if pod.uid in others]
    placed = roles + Counter(map(role_of, other_pods))
    every = placed | Counter(needs)
    if tree:
        every |= Counter({role: part.needs[role] for part in joined for role in placed})
    partial = [since, *(part.partial_since for part in joined if part.rollback is None)]
    since = min(filter(None, partial), default=0.0)
    complaint = complaint or next((part.complaint for part in joined if part.complaint), "")
    times = max((part.times for part in joined), default=0)
    part = Part(every, uids | {pod.uid for pod in other_pods}, partial_since=since, complaint=complaint, times=times)
    gang.operations.parts = [*(other for other in gang.operations.parts if other not in joined), part]


def concern(turn: Turn) -> bool:
    """Whether the gang has parts."""
    return bool(turn.gang.operations.parts)


def are_to_end(turn: Turn) -> bool:
    """Whether there are parts beside a rollback or restart of the gang, or without any live member."""
    return rollback.under_way(turn.gang) is not None or not turn.census.live


def end_all(turn: Turn) -> None:
    """End them."""
    turn.gang.operations.parts = []


def are_unsettled(turn: Turn) -> bool:
    """Whether something is to be done about a part."""
    return bool(_unsettled(turn))


def settle(turn: Turn) -> None:
    """End parts that are whole, and give up those that cannot be made whole, in time or at all."""
    gang, cluster, now = turn.gang, turn.cluster, turn.now
    for part, state in _unsettled(turn):
        match state:
            case _State.CHANGED:
                part.members, part.needs = _members(gang, part), _needs(turn, part)
            case _State.OVER:
                gang.operations.parts.remove(part)
            case _State.PARTIAL:
                part.partial_since = now
            case _State.NOT_PARTIAL:
                part.partial_since = 0.0
            case _State.LATE:
                bound = [pod for pod in turn.census.bound if pod.uid in part.members]
                missing = part.needs - Counter(map(role_of, bound))
                complaint = bindings.complaint(gang, part.members) or part.complaint
                note = rollback.note_of(len(bound), missing.total(), complaint, now - part.partial_since)
                part.rollback = rollback.begun(now, note, now, part=frozenset(part.members))
                give_up(gang, cluster, part, note, now=now, policy=turn.policy)
            case _State.UNFIT:
                # What is left of it may be placed on its own meanwhile, which is no part.
                bindings.release_held(gang, cluster, part.members)
                gang.operations.parts.remove(part)
            case _State.ROLLED_BACK:
                part.rollback = None
            case _State.AGAIN:
                part.retry_at = 0.0
                gang.wait.try_again()


class _State(Enum):
    """What is to be done about a part, in order of precedence."""

    CHANGED = auto()
    """Members have gone, or others than its own have what the group needs of it."""
    OVER = auto()
    """It is whole, none of its roles has a member any more, or its members have become those of the quorum."""
    PARTIAL = auto()
    """Some of it was bound."""
    NOT_PARTIAL = auto()
    """Nothing of it is bound any more."""
    LATE = auto()
    """It has been partly bound for too long."""
    UNFIT = auto()
    """Nothing of it is bound or in flight, and its reservations are not what it needs."""
    ROLLED_BACK = auto()
    """Nothing of it is bound or reserved any more."""
    AGAIN = auto()
    """Its back-off is over."""


def _unsettled(turn: Turn) -> list[tuple[Part, _State]]:
    return [(part, state) for part in turn.gang.operations.parts if (state := _state(turn, part)) is not None]


def _state(turn: Turn, part: Part) -> _State | None:
    gang = turn.gang
    bound = [pod for pod in turn.census.bound if pod.uid in part.members]
    open_ = bindings.unconfirmed_of(gang, part.members)
    missing = part.needs - Counter(map(role_of, bound))
    gone = not part.retry_at and part.needs.keys().isdisjoint(map(role_of, turn.census.live))
    held, sent = (any(binding.state is state for binding in open_) for state in (BindState.HELD, BindState.SENT))
    late = part.rollback is None and rollback.is_due(part.partial_since, turn.now, turn.policy)
    states = (
        (_State.CHANGED, _members(gang, part) != part.members or _needs(turn, part) != part.needs),
        (_State.OVER, gone or not missing or _is_of_quorum(gang, part)),
        (_State.PARTIAL, bool(bound) and not part.partial_since),
        (_State.NOT_PARTIAL, not bound and bool(part.partial_since)),
        (_State.LATE, late),
        (_State.UNFIT, held and not sent and not bound and missing != roles_of(open_)),
        (_State.ROLLED_BACK, not bound and not open_ and part.rollback is not None),
        (_State.AGAIN, 0 < part.retry_at <= turn.now),
    )
    return next((state for state, holds in states if holds), None)


def _is_of_quorum(gang: Gang, part: Part) -> bool:
    """Whether the quorum that is being bound has all roles of the part: what is bound together then, it decides."""
    quorum = gang.record.quorum if not gang.record.scheduled_at else None
    return quorum is not None and part.needs.keys() <= {role for role, _ in quorum.roles}


def _members(gang: Gang, part: Part) -> set[str]:
    """The members of the part without those that are gone."""
    pods = gang.observed.pods
    return {uid for uid in part.members if uid in pods and gang.lives(pods[uid])}


def _needs(turn: Turn, part: Part) -> Counter[str]:
    """What the group needs of the part, by role, beside its other members; all, for a role whose object is gone.

    Members that have succeeded are not needed any more.
    """
    census, spec, pods = turn.census, turn.terms.spec, turn.gang.observed.pods
    if spec.tree is None and not missing_of(minima(spec), census.kept):
        return Counter()
    gone = (pods[uid] for uid in part.members - _members(turn.gang, part) if uid in pods)
    needs = part.needs - Counter(role_of(pod) for pod in gone if pod.phase is PodPhase.SUCCEEDED)
    if spec.tree is None:
        return needs
    others = Counter(role_of(pod) for pod in census.bound if pod.uid not in part.members) + census.done_roles
    least = role_minima(spec)
    known = {role: min(needed, least[role] - others[role]) for role, needed in needs.items() if role in least}
    return +Counter({**needs, **known})


def give_up(gang: Gang, cluster: Cluster, part: Part, note: str, *, now: float, policy: Policy) -> None:
    """Release what the part has reserved and try it again after a back-off."""
    part.note, part.times = note, part.times + 1
    part.retry_at = now + doubled(policy.backoff_initial_s, part.times, longest=policy.backoff_max_s)
    bindings.release_held(gang, cluster, part.members)


def closed(gang: Gang, now: float) -> dict[str, Part]:
    """Parts that may not be tried at present, by each of their roles."""
    return {
        role: part
        for part in gang.operations.parts
        if part.retry_at or (part.rollback is not None and not rollback.can_do_no_more(gang, part.rollback, now))
        for role in part.needs
    }


def due(gang: Gang, policy: Policy) -> float:
    """When `keep` has something to do without an event, in epoch seconds; infinity if never."""
    due = NEVER
    for part in gang.operations.parts:
        late = part.partial_since + rollback.lasts_s(policy) if part.partial_since and part.rollback is None else NEVER
        due = min(due, part.retry_at or NEVER, late)
    return due
