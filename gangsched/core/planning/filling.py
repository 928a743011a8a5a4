"""The steps of filling nodes: choose members for a quorum, fill nodes with one class, and assign nodes to members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
from msgspec.structs import replace

from gangsched.core.cluster.labels import Within
from gangsched.core.constraints.matching import Matchable
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.shape import Shape, Soft
from gangsched.core.objects.strategy import Room, Strategy
from gangsched.core.planning import budget as units
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import couples, expect, hoped
from gangsched.core.planning.search import Share
from gangsched.core.planning.strategies import GPU_SUFFIX, PACK, one_by_one

Counts = Mapping[MemberClass, int]
Places = list[tuple[Pod, str]]
Distribute = Callable[[Room, int], list[tuple[int, int]]]
"""`Strategy.distribute` (`objects.strategy`), or `one_by_one` with its strategy."""


def asks_too_much_in_all(snapshot: Snapshot, usable: Counts, number: int) -> bool:
    """Whether, for some resource, even the `number` members that request least of it request more than is free."""
    open_ = np.zeros(snapshot.size, dtype=np.bool_)
    for member in usable:
        open_ |= hoped(snapshot, member, usable) > 0
    amounts = {member: snapshot.resources.amounts(member) for member in usable}
    for column in set().union(*amounts.values()):
        left, asked = number, 0
        for member in sorted(usable, key=lambda member: amounts[member].get(column, 0)):
            taken = min(left, usable[member])
            left -= taken
            asked += taken * amounts[member].get(column, 0)
        # Summed as Python integers, which do not overflow.
        if asked > sum(np.maximum(snapshot.free[open_, column], 0).tolist()):
            return True
    return False


def fill_class(
    snapshot: Snapshot,
    member: MemberClass,
    count: int,
    *,
    strategy: Strategy = PACK,
    prefer: tuple[Preference, ...] | None = None,
) -> list[Share]:
    """Place as many as possible of `count` members of one class, by the strategy and preferences for nodes.

    The class's own preferences come before `prefer` and those of its pods after it; if `prefer` is None, none count.
    """
    shares: list[Share] = []
    # Asked again after each placement, because placing a member may change the result.
    while (left := count - len(shares)) and _singly(snapshot, member, prefer):
        placed = _fill(snapshot, member, 1, prefer, strategy.distribute)
        if not placed:
            return shares
        shares += placed
    return shares + _fill(snapshot, member, left, prefer, strategy.distribute) if left else shares


def fill_singly(
    snapshot: Snapshot, member: MemberClass, count: int, *, strategy: Strategy, prefer: tuple[Preference, ...]
) -> list[Share]:
    """Place at most `count` members of one class as if each were placed in a call of its own.

    Places fewer than fit if the strategy must be called again for the next member.
    """
    most = 1 if _singly(snapshot, member, prefer) else count
    return _fill(snapshot, member, most, prefer, partial(one_by_one, strategy))


def _singly(snapshot: Snapshot, member: MemberClass, prefer: tuple[Preference, ...] | None) -> bool:
    """Whether placing a member changes which rows take the next one, or which of them it prefers."""
    return couples(snapshot, member, member) or (prefer is not None and snapshot.scores.changes_scores(member))


def _fill(
    snapshot: Snapshot, member: MemberClass, count: int, prefer: tuple[Preference, ...] | None, distribute: Distribute
) -> list[Share]:
    caps = snapshot.caps(member)
    rows = np.flatnonzero(caps)
    snapshot.budget.charge(units.CLASS + 2 * len(rows))
    labels = snapshot.cluster.labels
    rank, preferences = labels.rank(), []
    if prefer is not None:
        preferences = [labels.preference(wish) for wish in (*member.prefer, *prefer)]
        behind, rank = snapshot.scores.ranking(member)
        if behind is not None:
            preferences.append(behind)
    room = Room(
        rows=rows,
        caps=caps[rows],
        fullness=snapshot.fullness(member.shape)[rows],
        own=snapshot.own[rows],
        rank=rank[rows],
        preferences=tuple(preference[rows] for preference in preferences),
        scarce=partial(snapshot.scarce, member, rows),
        spared=_spared(snapshot, member, rows),
    )
    total = min(count, int(room.caps.sum()))
    if not total:
        return []
    shares = distribute(room, total)
    snapshot.take_all(member, shares)
    return [(member, row, number) for row, number in shares]


def _spared(snapshot: Snapshot, member: MemberClass, rows: IntArray) -> IntArray | None:
    """`Room.spared` for a strategy (`objects.strategy`): which rows have GPUs that the class does not request."""
    capacity = snapshot.cluster.capacity
    columns = [column for resource, column in capacity.columns.items() if resource.endswith(GPU_SUFFIX)]
    if not columns or any(resource.endswith(GPU_SUFFIX) for resource, _ in member.shape.requests):
        return None
    having: IntArray = np.minimum(capacity.allocatable[rows[:, None], columns].max(axis=1), 1)
    return None if having.all() or not having.any() else having


def preferring(
    snapshot: Snapshot,
    members: Iterable[Pod],
    classes: Mapping[str, MemberClass],
    wishes: Mapping[str, tuple[Preference, ...]],
) -> Mapping[str, MemberClass]:
    """Each member's class with its preferences, by UID; `classes` itself if no member has any.

    `classes` are the classes without preferences. `wishes` are preferences by role.
    """
    wishing: dict[str, MemberClass] = {}
    kinds: dict[tuple[MemberClass, tuple[Preference, ...], Soft | None, Matchable | None], MemberClass] = {}
    members = list(members)
    softs = dict.fromkeys([pod.soft for pod in members])
    relevant: dict[Soft | None, Soft | None]
    relevant = {soft: snapshot.scores.relevant(soft) for soft in softs if soft is not None}
    known = snapshot.scores.known(members)
    for pod in members:
        soft = relevant.get(pod.soft)
        prefer = wishes.get(role_of(pod), ()) if wishes else ()
        if prefer or soft is not None or pod.uid in known:
            kind = (classes[pod.uid], prefer, soft, known.get(pod.uid))
            if kind not in kinds:
                kinds[kind] = replace(kind[0], prefer=prefer, soft=soft, known=kind[3])
            wishing[pod.uid] = kinds[kind]
    return {**classes, **wishing} if wishing else classes


def hand_out(
    snapshot: Snapshot, pods: Iterable[Pod], classes: Mapping[str, MemberClass], shares: Iterable[Share]
) -> Places:
    """Assign each member a node from the shares of its class (`classes` is by UID), in the order of both."""
    nodes: dict[MemberClass, list[str]] = {}
    for member, row, count in shares:
        nodes.setdefault(member, []).extend([snapshot.name(row)] * count)
    left = {member: iter(names) for member, names in nodes.items()}
    return [(pod, next(left[classes[pod.uid]])) for pod in pods]


def classify(
    snapshot: Snapshot,
    members: Iterable[Pod],
    avoided: frozenset[str] = frozenset(),
    *,
    within: Within = (),
) -> dict[str, MemberClass]:
    """Each member's class without preferences, by UID; equal classes are one object.

    On an emptied snapshot `avoided` does not matter.
    """
    members = list(members)
    shapes = dict.fromkeys([pod.shape for pod in members])
    if asking := [shape for shape in shapes if shape.depends_on_pods]:
        expect(snapshot, asking)
    known: dict[MemberClass, MemberClass] = {}
    classes = {}
    selective = snapshot.selective()
    if not snapshot.counts_pods:
        avoided = frozenset()
    alike: dict[Shape, MemberClass] = {}
    for pod in members:
        member = None if selective else alike.get(pod.shape)
        if member is None:
            seen = tuple([sight for plan in selective if (sight := plan.sees(pod)) is not None])
            member = MemberClass(pod.shape, seen, avoided, within)
            member = alike[pod.shape] = known.setdefault(member, member)
        classes[pod.uid] = member
    return classes
