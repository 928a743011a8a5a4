"""What a placement strategy sees of the nodes and what it answers: the interface of plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gangsched.core.objects.arrays import IntArray


class Scarce(NamedTuple):
    """Of the scarcest resource that the members request, per candidate: how much is free, and how much in use.

    Scarcest is a GPU if they request one, else the one of which all nodes that accept the members could take the
    fewest. Amounts are in the core's units (millicores, bytes, devices).
    """

    left: IntArray
    used: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a strategy sees, one element per candidate node; nothing of it may be changed.

    `rows` are the candidates' row numbers, `caps` how many members each could take (≥ 1), `fullness` the largest share
    of a requested resource that is in use (0..1), `own` how many members of this gang are there already, `rank` the
    node's place among those that are equal by all else: by images of the members, then by name. `preferences` has its
    place by each wish of `placement.prefer` (0 is preferred most), the most important wish first, and then, if nodes
    differ in it, by what the members' pods prefer. `spared` is 1 for nodes that have GPUs where the members request
    none, 0 for the others, and None if all are alike in that. `scarce` finds what few strategies want to know.
    """

    rows: IntArray
    caps: IntArray
    fullness: npt.NDArray[np.float64]
    own: IntArray
    rank: IntArray
    preferences: tuple[IntArray, ...]
    scarce: Callable[[], Scarce]
    spared: IntArray | None = None

    def preferred(self, *keys: npt.NDArray[np.float64] | IntArray) -> Sequence[npt.NDArray[np.float64] | IntArray]:
        """These keys behind the preferences for nodes, if there are any."""
        return (*self.preferences, *keys)


class Strategy(Protocol):
    """Says how many of `count` members go to which candidate. `count` never exceeds the sum of `room.caps`."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """(row, members) pairs that add up to `count`, none above the candidate's cap."""
        ...
