"""How many members of one class each node gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.strategy import Room, Strategy
from gangsched.core.planning import budget as units
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.search import Share
from gangsched.core.planning.snapshot import Snapshot
from gangsched.core.planning.strategies import PACK, one_by_one

Counts = Mapping[MemberClass, int]
Places = list[tuple[Pod, str]]
Distribute = Callable[[Room, int], list[tuple[int, int]]]
"""How a strategy is asked (`objects.strategy`)."""


def fill_class(
    snapshot: Snapshot,
    member: MemberClass,
    count: int,
    *,
    strategy: Strategy = PACK,
    prefer: tuple[Preference, ...] | None = None,
) -> list[Share]:
    """Place as many as possible of `count` members of one class, by the strategy and the wishes for nodes.

    Their own wishes come before `prefer`; with None neither counts.
    """
    wishes = () if prefer is None else (*member.prefer, *prefer)
    if not snapshot.couples(member):
        return _fill(snapshot, member, count, wishes=wishes, distribute=strategy.distribute)
    shares: list[Share] = []
    while len(shares) < count and (one := _fill(snapshot, member, 1, wishes=wishes, distribute=strategy.distribute)):
        shares += one
    return shares


def fill_singly(
    snapshot: Snapshot, member: MemberClass, count: int, *, strategy: Strategy, prefer: tuple[Preference, ...]
) -> list[Share]:
    """Place members of one class, at most so many, as if each was asked for alone.

    Fewer are placed than find room where a strategy must be asked again for the next one.
    """
    most = 1 if snapshot.couples(member) else count
    return _fill(snapshot, member, most, wishes=(*member.prefer, *prefer), distribute=partial(one_by_one, strategy))


def _fill(
    snapshot: Snapshot, member: MemberClass, count: int, *, wishes: tuple[Preference, ...], distribute: Distribute
) -> list[Share]:
    room = _room(snapshot, member, wishes)
    total = min(count, int(room.caps.sum()))
    if not total:
        return []
    shares = distribute(room, total)
    snapshot.take_all(member, shares)
    return [(member, row, number) for row, number in shares]


def _room(snapshot: Snapshot, member: MemberClass, wishes: tuple[Preference, ...]) -> Room:
    """What a strategy sees of the nodes that have room for the class."""
    caps = snapshot.caps(member)
    rows = np.flatnonzero(caps)
    snapshot.budget.charge(units.CLASS + 2 * len(rows))
    return Room(
        rows=rows,
        caps=caps[rows],
        fullness=snapshot.fullness(member.shape)[rows],
        own=snapshot.own[rows],
        rank=snapshot.cluster.labels.rank()[rows],
        preferences=tuple(snapshot.cluster.labels.preference(wish)[rows] for wish in wishes),
        scarce=partial(snapshot.scarce, member, rows),
    )


class Partial(NamedTuple):
    """How many of a quorum have places, the class of the first member left out, and the classes of those who lack one.

    The latter are as many as complete the quorum; they are those that a new node can help, and the smallest of them, as
    far as there is a choice.
    """

    fits: int
    failing: MemberClass
    missing: Mapping[MemberClass, int]
