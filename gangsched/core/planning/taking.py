"""What waiting groups ask of rows of free amounts, and which rows they take: those with the least room first."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from gangsched.core.objects.arrays import IntArray, Mask

_MOST_DOMAINS = 4
"""Of so many domains with enough room in sum, each is tried."""


class Kind(Struct, frozen=True):
    """So many members that request these amounts, by column, on rows that accept them; `alone`: one for each row."""

    number: int
    amounts: IntArray
    accepting: Mask
    alone: bool = False


class Reserved(NamedTuple):
    """From `start` on these `amounts`, by row and column, are reserved; infinity if nobody knows when."""

    start: float
    amounts: IntArray


class Waiting(Struct, frozen=True):
    """A group that waits, and stays for so many seconds once it has started (infinity if nothing tells).

    The `doubt` about that is as in `Ends`.
    Groups with equal `asked` start alike. `pool` numbers the rows that accept a member. With `domains` by row (-1:
    none) all members are in one. From `holds_from` on, in epoch seconds, it holds what it needs for its first start,
    but what is `reserved` for it already comes first. It waits `until` then.
    """

    name: Hashable
    asked: Hashable
    kinds: Sequence[Kind]
    pool: int
    domains: IntArray | None = None
    lasts_s: float = float("inf")
    doubt: int = 0
    holds_from: float = float("inf")
    reserved: Reserved | None = None
    until: float = float("inf")


Placed = Sequence[tuple[IntArray, IntArray]]
"""Rows, and the amounts that are taken on each."""


def take(free: IntArray, waiting: Waiting, spares: Sequence[IntArray] = ()) -> Placed | None:
    """Take places for all members where that is to spare as well; None, with nothing taken, without room."""
    spare = np.minimum.reduce([free, *spares]) if spares else free
    for inside in _choices(spare, waiting):
        placed = _take_inside(spare, waiting, inside)
        if placed is not None:
            if spares:
                take_away(free, placed)
            return placed
    return None


def _choices(free: IntArray, waiting: Waiting) -> Iterator[Mask | None]:
    """The rows where to try: those of each domain that has enough room in sum, the least room first."""
    if waiting.domains is None:
        yield None
        return
    number = int(waiting.domains.max(initial=-1)) + 1
    inside = waiting.domains >= 0
    rooms = [np.bincount(waiting.domains[inside], room(free, kind)[inside], minlength=number) for kind in waiting.kinds]
    enough = np.logical_and.reduce([sums >= kind.number for sums, kind in zip(rooms, waiting.kinds, strict=True)])
    able = np.flatnonzero(enough)
    for domain in able[np.argsort(rooms[0][able], kind="stable")][:_MOST_DOMAINS].tolist():
        yield waiting.domains == domain


def _take_inside(free: IntArray, waiting: Waiting, inside: Mask | None) -> Placed | None:
    taken: list[tuple[IntArray, IntArray]] = []
    for kind in waiting.kinds:
        rooms = room(free, kind)
        if inside is not None:
            rooms = np.where(inside, rooms, 0)
        rows = np.flatnonzero(rooms)
        # Where the least is left, first: so large members find room later.
        rows = rows[np.argsort(rooms[rows], kind="stable")]
        sums = np.cumsum(rooms[rows])
        if not len(sums) or sums[-1] < kind.number:
            give_back(free, taken)
            return None
        last = int(np.searchsorted(sums, kind.number))
        rows = rows[: last + 1]
        numbers = rooms[rows]
        numbers[-1] -= sums[last] - kind.number
        amounts = numbers[:, None] * kind.amounts
        free[rows] -= amounts
        taken.append((rows, amounts))
    return taken


def take_away(free: IntArray, placed: Placed) -> None:
    """Take these places too."""
    for rows, amounts in placed:
        free[rows] -= amounts


def give_back(free: IntArray, placed: Placed) -> None:
    """Give these places back."""
    for rows, amounts in placed:
        free[rows] += amounts


def room(free: IntArray, kind: Kind) -> IntArray:
    """How many members of the kind each row takes, at most all of them."""
    most: IntArray = np.where(kind.accepting, 1 if kind.alone else kind.number, 0)
    for column in np.flatnonzero(kind.amounts).tolist():
        np.minimum(most, np.maximum(free[:, column], 0) // kind.amounts[column], out=most)
    return most
