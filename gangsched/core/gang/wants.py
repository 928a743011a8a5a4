"""What a gang needs and therefore wants from a scheduling cycle: its quorum as a whole, other members one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from gangsched.core.declarations.minima import (
    Need,
    above,
    chosen,
    lowered,
    minima,
    missing_of,
    rest_of,
    role_minima,
    roles_in,
)
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.writes import Binding, Part
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import GroupSpec, OnDegraded
from gangsched.core.objects.record import Minima, Outcome
from gangsched.core.objects.start import Start
from gangsched.core.planning.placement import Ask
from gangsched.core.planning.search import Slots

NONE_CLOSED: Mapping[str, Part] = {}


class Want(Struct, frozen=True, kw_only=True):
    """What a gang wants from a scheduling cycle: `quorum` all or nothing, `repairs` and `extras` one by one.

    `repair` puts quorum and repairs first in the order (contract rules 6 and 12). Quorum and repairs may include
    placeholders: pods without a name that stand for members that do not exist yet. Each of the `lost` parts replaces a
    part of which no member is left, as a whole or not at all. `moves` are members that do not fit the reservations of
    their role; each is placed elsewhere and gives up one of them. Above the minimum, each of the `parts` is placed as a
    whole or not at all, and `extras` one by one.
    """

    repair: bool = False
    quorum: Ask | None = None
    repairs: Sequence[Pod] = ()
    lost: Sequence[Ask] = ()
    moves: Sequence[Pod] = ()
    parts: Sequence[Ask] = ()
    extras: Sequence[Pod] = ()

    def __bool__(self) -> bool:
        return self.quorum is not None or bool(self.repairs or self.lost or self.moves or self.parts or self.extras)

    def members(self) -> Iterator[Pod]:
        """All that it would place."""
        if self.quorum is not None:
            yield from self.quorum.members
        for ask in (*self.lost, *self.parts):
            yield from ask.members
        yield from (*self.repairs, *self.moves, *self.extras)

    def only_above(self, refused: Container[str]) -> bool:
        """Whether all that replaces lost members was `refused` (UIDs), so that members above the minimum are left."""
        if not (self.parts or self.extras) or not (self.repairs or self.lost):
            return False
        return all(pod.uid in refused for pod in (*self.repairs, *(pod for part in self.lost for pod in part.members)))


def as_a_whole(gang: Gang, terms: Terms, want: Want) -> Ask | None:
    """What others may leave for, all of it or nothing: the quorum or, in a gang that has lost members, what replaces
    them.

    Of several such parts, the one with a plan or, without one, the first that was refused.
    """
    if want.quorum is not None:
        return want.quorum
    plan = gang.operations.plan
    sought = plan.members if plan is not None else gang.wait.refused_members.keys()
    named = [pod for pod in want.repairs if pod.name]
    parts = [*want.lost, *([together(gang, terms, named)] if named else [])]
    return next((ask for ask in parts if any(pod.uid in sought for pod in ask.members)), None)


def roles_of(bindings: Iterable[Binding]) -> Counter[str]:
    """Number of these bindings by role."""
    return Counter(role_of(binding.pod) for binding in bindings)


def quorum_need(gang: Gang, census: Census, terms: Terms) -> Need:
    """What an unscheduled gang still needs bound.

    Members of a quorum under way that have succeeded meanwhile count, because it bound them; no other success counts
    (rule 2).
    """
    bound, done = census.bound_roles, gang.record.quorum_done
    return missing_of(quorum_minima(gang, terms), bound + Counter(dict(done)) if done else bound)


def quorum_minima(gang: Gang, terms: Terms) -> Minima:
    """The minima of the quorum of an unscheduled gang.

    A quorum under way keeps the minimum it was decided with. A lowered minimum applies at once (rule 9); a minimum that
    has become unreadable does not apply. Once the tree has no longer all parts of the quorum, it asks for others.
    """
    least = gang.record.quorum
    if least is None or not terms.minimum_known:
        return least or minima(terms.spec)
    if terms.spec.tree is None or {role for role, _ in least.roles} <= {role.name for role in terms.spec.roles}:
        return lowered(least, terms.spec)
    return minima(terms.spec)


def later_need(gang: Gang, census: Census, terms: Terms) -> Need:
    """What a scheduled gang needs placed: while short, what it had; otherwise what a raised minimum adds (rule 9)."""
    least = lowered(gang.record.satisfied, terms.spec) if gang.operations.short_since else minima(terms.spec)
    return missing_of(least, census.kept + roles_of(census.begun) if census.begun else census.kept)


def is_above(spec: GroupSpec, had: Minima) -> bool:
    """Whether the spec asks for more than these minima, which have no choices."""
    if spec.tree is not None:
        return bool(missing_of(spec.tree, Counter(dict(had.roles))))
    return lowered(had, spec) != minima(spec)


def raised(gang: Gang, spec: GroupSpec) -> bool:
    """Whether the spec asks for more than this scheduled gang ever satisfied."""
    return is_above(spec, gang.record.satisfied)


def within_maximum(gang: Gang, census: Census, terms: Terms) -> tuple[list[Pod], list[Pod]]:
    """Waiting members within the maxima, and those beyond; members that are bound or have a binding go first.

    Before the quorum is bound no member is beyond maxMember, because a quorum is never larger: all are tried.
    """
    most = terms.spec.max_member if gang.record.scheduled_at else None
    if not census.waiting or (most is None and not terms.spec.roles):
        return [*census.waiting], []
    placed = [*census.bound, *(binding.pod for binding in census.begun if not binding.placeholder)]
    return _divided(census.waiting, placed, terms.spec, most)


def further(gang: Gang, members: Iterable[Pod], terms: Terms) -> tuple[Sequence[Ask], Sequence[Pod]]:
    """What may be bound `beyond` the quorum of those of these members that have no reservation yet."""
    waiting = [pod for pod in members if pod.uid not in gang.operations.bindings and pod.name]
    return beyond(gang, _divided(waiting, placed_of(gang), terms.spec, terms.spec.max_member)[0], terms)


def beyond(gang: Gang, members: Sequence[Pod], terms: Terms) -> tuple[Sequence[Ask], Sequence[Pod]]:
    """What may be bound of these members above the minimum: parts of the group as a whole, and single members.

    Without a tree all of them may be bound one by one.
    """
    if terms.spec.tree is None:
        return (), members
    placed = placed_of(gang)
    counts = Counter(map(role_of, placed)) + Counter(dict(gang.record.succeeded))
    open_ = above(terms.spec.tree, counts)
    nodes = _nodes_of(gang)
    parts = []
    for part in open_.parts:
        roles = set(roles_in(part))
        need, candidates = missing_of(part, Counter()), [pod for pod in members if role_of(pod) in roles]
        if candidates and need.met_by(candidates):
            parts.append(whole(gang, terms, candidates, need=need, nodes=nodes))
    # Members without a role of the tree, which KAI has, count for no part: they come after all that is needed.
    closed = set(roles_in(terms.spec.tree)) - open_.roles
    loose = not rest_of(terms.spec.tree, counts).total
    joint = {role for part in gang.operations.parts for role in part.needs}
    extras = (pod for pod in members if role_of(pod) in open_.roles or (loose and role_of(pod) not in closed))
    return parts, [pod for pod in extras if role_of(pod) not in joint]


def chosen_with(gang: Gang, spec: GroupSpec, places: Iterable[tuple[Pod, str]]) -> Minima:
    """The minima of the quorum for which these places were found; of a tree, those of the parts that were chosen."""
    if spec.tree is None:
        return minima(spec)
    return chosen(spec.tree, Counter(map(role_of, (*placed_of(gang), *(pod for pod, _ in places)))))


def placed_of(gang: Gang) -> list[Pod]:
    """The live members that have a node or a reservation."""
    return [pod for pod in gang.live() if pod.node or pod.uid in gang.operations.bindings]


def _lost(
    gang: Gang, missed: Sequence[Pod], eligible: Sequence[Pod], terms: Terms, done: Counter[str]
) -> tuple[Sequence[Ask], Sequence[Pod]]:
    """The parts of a tree that need to be placed as a whole in a gang that is short, and single members.

    A part of which no member is left is placed as a whole, like what a raised minimum adds. The domain of a level is
    chosen for all of its roles at once.
    """
    if terms.spec.tree is None:
        return (), missed
    nodes = _nodes_of(gang)
    placed, had = set(map(role_of, placed_of(gang))), {role for role, _ in gang.record.satisfied.roles}
    open_ = {*map(role_of, missed), *(role for role, _ in terms.spec.tree.roles)} - placed
    levels = [level.roles for level in terms.spec.levels if placed.isdisjoint(level.roles)]
    parts = {frozenset(next((tied for tied in levels if role in tied), (role,))): None for role in sorted(open_ & had)}
    asks = []
    for roles in (*parts, open_ - had):
        candidates = [pod for pod in eligible if role_of(pod) in roles]
        # Members that are `done` are not needed again.
        least = {role: number - done[role] for role, number in role_minima(terms.spec).items() if role in roles}
        need = Need(0, +Counter(least))
        if need and candidates and need.met_by(candidates):
            asks.append(whole(gang, terms, candidates, need=need, nodes=nodes))
    return asks, [pod for pod in missed if role_of(pod) in placed]


def together(gang: Gang, terms: Terms, members: Sequence[Pod]) -> Ask:
    """The request to place all of these members of a gang that has others, or none."""
    return whole(gang, terms, members, need=Need(len(members)), nodes=_nodes_of(gang))


def _nodes_of(gang: Gang) -> list[str]:
    """The node of each member that has one, or a reservation there."""
    return [gang.node_of(pod) for pod in placed_of(gang)]


def _nodes_by_role(gang: Gang) -> dict[str, Counter[str]]:
    """How many members of each role are on which node, or have a reservation there."""
    nodes: dict[str, Counter[str]] = {}
    for pod in placed_of(gang):
        nodes.setdefault(role_of(pod), Counter())[gang.node_of(pod)] += 1
    return nodes


def whole(
    gang: Gang,
    terms: Terms,
    members: Sequence[Pod],
    *,
    need: Need,
    nodes: Iterable[str],
    **more: Any,  # noqa: ANN401 - of several types
) -> Ask:
    """The request to place as many of these members as are needed, or none; the gang has others on these nodes.

    `more` are further fields of the request.
    """
    return Ask(
        members=members,
        need=need.number,
        role_needs=need.roles,
        choices=need.choices,
        levels=terms.spec.levels,
        own_by_role=_nodes_by_role(gang) if terms.spec.levels else {},
        strategy=terms.strategy,
        prefer=terms.spec.prefer,
        wishes={role.name: role.prefer for role in terms.spec.roles if role.prefer},
        topology=terms.spec.topology,
        own=Counter(nodes),
        **more,
    )


def _divided(
    waiting: Sequence[Pod], placed: Sequence[Pod], spec: GroupSpec, most: int | None
) -> tuple[list[Pod], list[Pod]]:
    maxima = {role.name: role.max_member for role in spec.roles if role.max_member is not None}
    if most is None and not maxima:
        return [*waiting], []
    roles = Counter(map(role_of, placed))
    number = len(placed)
    eligible: list[Pod] = []
    surplus: list[Pod] = []
    for pod in waiting:
        role = role_of(pod)
        if (most is not None and number >= most) or (role in maxima and roles[role] >= maxima[role]):
            surplus.append(pod)
        else:
            eligible.append(pod)
            number += 1
            roles[role] += 1
    return eligible, surplus


def as_it_is(gang: Gang, pod: Pod) -> Pod | None:
    """The member's current form; None if it no longer waits for a node, or has been refused one."""
    if pod.uid in gang.operations.bindings or pod.uid in gang.wait.refused_members:
        return None
    if not pod.name:
        return pod
    now = gang.observed.pods.get(pod.uid)
    return now if now is not None and not now.node and gang.lives(now) and gang.operations.may_try(now) else None


def want_of(
    gang: Gang,
    census: Census,
    terms: Terms,
    need: Need,
    eligible: Sequence[Pod],
    *,
    moves: Sequence[Pod] = (),
    closed: Mapping[str, Part] = NONE_CLOSED,
) -> Want:
    """What the gang wants, given its need and the members and placeholders that may be placed.

    Parts with `closed` roles are not tried at present, nor do their members replace lost ones.
    """
    if gang.record.outcome is Outcome.OUT_OF_TIME or not eligible:
        return Want()
    spec, scheduled = terms.spec, bool(gang.record.scheduled_at)
    more = scheduled and raised(gang, spec)
    if scheduled and (gang.operations.short_since or not more):
        given_up = {uid for part in closed.values() for uid in part.members}
        eligible = [pod for pod in eligible if pod.uid not in given_up]
        missed: Sequence[Pod] = first(eligible, need)
        if spec.on_degraded is not OnDegraded.REPAIR:
            return Want(extras=missed if more else eligible)
        uids = {pod.uid for pod in (*missed, *moves)}
        tried = [pod for pod in eligible if role_of(pod) not in closed]
        lost, missed = _lost(gang, missed, tried, terms, census.done_roles)
        # More members of a lost part are above it only once it is there again.
        uids |= {pod.uid for part in lost for pod in part.members}
        parts, others = ([], []) if more else beyond(gang, [pod for pod in tried if pod.uid not in uids], terms)
        repair = bool(missed or lost or moves)
        if repair or not more or spec.tree is None:
            return Want(repair=repair, repairs=missed, lost=lost, moves=moves, parts=parts, extras=others)
        # Nothing waits that replaces what the tree has lost, so other parts have to make it whole.
        need = missing_of(spec.tree, census.kept)
    begun = census.begun
    if closed:
        eligible = [pod for pod in eligible if role_of(pod) not in closed]
    if scheduled and begun:
        return Want(repair=bool(moves), moves=moves)
    if begun:
        need = need.beside(roles_of(begun))
    if begun and not need and not gang.durability.asked_at:
        # The quorum has its reservations; the cycle that found them had no budget left for the other members.
        parts, others = further(gang, eligible, terms)
        return Want(repair=bool(moves), moves=moves, parts=parts, extras=others)
    if not need or not need.met_by(eligible):
        # A cap has released reservations beside bound members: new members are bound one by one, as after an expiry.
        singly = eligible if gang.record.capped is not None and census.bound and not scheduled else ()
        return Want(repair=bool(singly or moves), repairs=singly, moves=moves)
    nodes = [*map(gang.node_of, census.bound)]
    quorum = whole(
        gang,
        terms,
        eligible,
        need=need,
        nodes=[*nodes, *(binding.node for binding in begun)],
        most=None if spec.max_member is None else max(0, spec.max_member - len(nodes) - len(begun)),
        start=Start(spec.min_resources) if spec.min_resources and not (scheduled or nodes or begun) else None,
    )
    return Want(repair=bool(census.bound or begun or gang.operations.comes_back) and not scheduled, quorum=quorum)


def first(members: Sequence[Pod], need: Need) -> list[Pod]:
    """The first members that the need can use, with the roles' needs before the rest; fewer if there are not enough."""
    return Slots.of(need.total, need.roles).first_of(members)
