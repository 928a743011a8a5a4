"""What a gang needs and therefore wants of a pass: its quorum together, repairs and further members one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.terms import Terms
from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import GroupSpec, OnDegraded
from gangsched.core.objects.record import Minima, Outcome
from gangsched.core.planning.placement import Ask


class Want(Struct, frozen=True, kw_only=True):
    """What a gang wants of a pass: `quorum` all or nothing, `repairs` and `extras` one by one.

    `repair` gives quorum and repairs the first place in the order (contract rules 6 and 12). Quorum and repairs may
    hold pods without a name, which stand for members to come. `moves` are members that give up a place held for their
    role for one that they fit into.
    """

    repair: bool = False
    quorum: Ask | None = None
    repairs: Sequence[Pod] = ()
    moves: Sequence[Pod] = ()
    extras: Sequence[Pod] = ()

    def __bool__(self) -> bool:
        return self.quorum is not None or bool(self.repairs) or bool(self.moves) or bool(self.extras)


class Need(Struct, frozen=True):
    """How many more must be bound, in all and by role."""

    total: int
    roles: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.number > 0

    @property
    def number(self) -> int:
        """The least number of members that satisfies both."""
        return max(self.total, sum(self.roles.values()))

    def met_by(self, members: Sequence[Pod]) -> bool:
        """Whether these members are enough."""
        there = Counter(map(role_of, members))
        return len(members) >= self.number and all(there[role] >= number for role, number in self.roles.items())


def role_minima(spec: GroupSpec) -> dict[str, int]:
    """Each role's minimum."""
    return {role.name: role.min_member for role in spec.roles}


def minima(spec: GroupSpec) -> Minima:
    """The minimum and each role's."""
    return Minima(spec.minimum, tuple(sorted(role_minima(spec).items())))


def lowered(had: Minima, spec: GroupSpec) -> Minima:
    """What the spec asks for, but no more than there `had` to be."""
    roles = dict(had.roles)
    return Minima(
        min(spec.minimum, had.total),
        tuple((role, min(number, roles.get(role, 0))) for role, number in minima(spec).roles),
    )


def wishes(spec: GroupSpec) -> dict[str, tuple[Preference, ...]]:
    """Each role's own wishes for nodes."""
    return {role.name: role.prefer for role in spec.roles if role.prefer}


def quorum_need(gang: Gang, census: Census, terms: Terms, *, known: bool = True) -> Need:
    """What an unscheduled gang still needs bound.

    A transaction in flight ends under the minimum it was decided with; a lowered one applies at once (rule 9), and one
    that nobody can read any more (`known` is False) not at all. A member of that transaction that has succeeded
    meanwhile was bound by it and counts; no other success does (rule 2).
    """
    decided = gang.record.quorum
    if decided is None:
        return missing_of(terms.spec.minimum, role_minima(terms.spec), census.bound_roles)
    least = lowered(decided, terms.spec) if known else decided
    return missing_of(least.total, dict(least.roles), census.bound_roles + Counter(dict(gang.record.quorum_done)))


def later_need(gang: Gang, census: Census, terms: Terms) -> Need:
    """What a scheduled gang needs placed: what it had while it is short, else what a raised minimum adds (rule 9)."""
    spec = terms.spec
    least = lowered(gang.record.satisfied, spec) if gang.short_since else minima(spec)
    flying = Counter(role_of(binding.pod) for binding in gang.flying())
    return missing_of(least.total, dict(least.roles), census.bound_roles + census.done_roles + flying)


def raised(gang: Gang, spec: GroupSpec) -> bool:
    """Whether a scheduled gang's spec asks for more than was ever satisfied."""
    return lowered(gang.record.satisfied, spec) != minima(spec)


def within_maximum(gang: Gang, census: Census, terms: Terms) -> tuple[list[Pod], list[Pod]]:
    """Waiting members that the maxima leave room for, and those beyond; bound ones and those on their way go first.

    A quorum is never larger than maxMember, so before it is bound nobody is beyond it: all are tried.
    """
    placed = [*census.bound, *(binding.pod for binding in gang.flying() if not binding.vacant)]
    most = terms.spec.max_member if gang.record.scheduled_at else None
    return _divided(census.waiting, placed, terms.spec, most)


def further(gang: Gang, members: Sequence[Pod], spec: GroupSpec) -> list[Pod]:
    """Which of these members the maxima leave room for beside those that have or are about to have a node."""
    waiting = [pod for pod in members if pod.uid not in gang.bindings and pod.name]
    placed = [pod for pod in gang.live() if pod.node or pod.uid in gang.bindings]
    return _divided(waiting, placed, spec, spec.max_member)[0]


def _divided(
    waiting: Sequence[Pod], placed: Sequence[Pod], spec: GroupSpec, most: int | None
) -> tuple[list[Pod], list[Pod]]:
    roles = Counter(map(role_of, placed))
    maxima = {role.name: role.max_member for role in spec.roles if role.max_member is not None}
    number = len(placed)
    eligible: list[Pod] = []
    surplus: list[Pod] = []
    for pod in waiting:
        role = role_of(pod)
        beyond = (most is not None and number >= most) or (role in maxima and roles[role] >= maxima[role])
        if beyond:
            surplus.append(pod)
        else:
            eligible.append(pod)
            number += 1
            roles[role] += 1
    return eligible, surplus


def as_it_is(gang: Gang, pod: Pod) -> Pod | None:
    """The member as it is now; None if it waits for no place any more, or has been refused one."""
    if pod.uid in gang.bindings or pod.uid in gang.attempt.refused_members:
        return None
    if not pod.name:
        return pod
    now = gang.pods.get(pod.uid)
    if now is None or now.node:
        return None
    return now if gang.lives(now) and gang.may_try(now) else None


def want_of(
    gang: Gang, census: Census, terms: Terms, need: Need, eligible: Sequence[Pod], *, moves: Sequence[Pod] = ()
) -> Want:
    """What the gang wants, given what it needs and who may be bound or stands for members to come."""
    if gang.record.outcome is Outcome.OUT_OF_TIME or not eligible:
        return Want()
    scheduled = bool(gang.record.scheduled_at)
    more = scheduled and raised(gang, terms.spec)
    if not scheduled or (more and not gang.short_since):
        flying = Counter(role_of(binding.pod) for binding in gang.flying())
        if not scheduled:
            need = missing_after(need, flying)
        elif flying:
            return Want()
        if not need and flying and not gang.durability.asked_at:
            # The quorum has its places; those for whom the pass that found them had no time left are still to be tried.
            return Want(repair=bool(moves), moves=moves, extras=further(gang, eligible, terms.spec))
        if not need or not need.met_by(eligible):
            # A cap has released places beside bound members: who comes is bound as at their expiry, one by one.
            singly = eligible if gang.record.capped is not None and census.bound and not scheduled else ()
            return Want(repair=bool(singly or moves), repairs=singly, moves=moves)
        quorum = Ask(
            members=eligible,
            need=need.number,
            role_needs=need.roles,
            strategy=terms.strategy,
            prefer=terms.spec.prefer,
            wishes=wishes(terms.spec),
            topology=terms.spec.topology,
            own=Counter(_nodes_of(gang, census)),
        )
        return Want(repair=(bool(census.bound) or bool(flying)) and not scheduled, quorum=quorum)
    missed = first(eligible, need)
    if terms.spec.on_degraded is not OnDegraded.REPAIR:
        return Want(extras=missed if more else eligible)
    uids = {pod.uid for pod in (*missed, *moves)}
    others = [] if more else [pod for pod in eligible if pod.uid not in uids]
    return Want(repair=bool(missed or moves), repairs=missed, moves=moves, extras=others)


def missing_of(minimum: int, roles: Mapping[str, int], placed: Mapping[str, int]) -> Need:
    """What of a minimum and the roles' minima is missing beside members that have a node, by role."""
    return Need(
        total=max(0, minimum - sum(placed.values())),
        roles={role: max(0, number - placed.get(role, 0)) for role, number in roles.items()},
    )


def missing_after(need: Need, on_their_way: Counter[str]) -> Need:
    """What is missing beside members that have a place already."""
    return Need(
        total=max(0, need.total - on_their_way.total()),
        roles={role: max(0, number - on_their_way[role]) for role, number in need.roles.items()},
    )


def _nodes_of(gang: Gang, census: Census) -> Iterator[str]:
    """The node of every member that has one or a place on one."""
    for pod in census.bound:
        yield pod.node or gang.bindings[pod.uid].node
    for binding in gang.flying():
        yield binding.node


def first(members: Sequence[Pod], need: Need) -> list[Pod]:
    """The first members that the need can use, roles' needs before the rest; fewer if there are not enough."""
    owed = dict(need.roles)
    free = max(0, need.total - sum(owed.values()))
    chosen = []
    for pod in members:
        role = role_of(pod)
        if owed.get(role, 0) > 0:
            owed[role] -= 1
        elif free > 0:
            free -= 1
        else:
            continue
        chosen.append(pod)
    return chosen
