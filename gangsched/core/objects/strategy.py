"""The plug-in interface of placement strategies: what a strategy sees of the nodes, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    # Whoever reads or shows settings does not need arrays.
    import numpy as np
    import numpy.typing as npt

    from gangsched.core.objects.arrays import IntArray


BUILT_IN = ("Pack", "Spread", "MinimalFragmentation", "BestFit", "MostUsed")
"""The names of the built-in strategies in `placement.strategy`; the first is the default."""


class Scarce(NamedTuple):
    """The free and used amounts, per candidate, of the scarcest resource that the members request.

    That is a GPU if they request one, otherwise the resource by which all nodes that accept the members could take the
    fewest of them. Amounts are in the core's units (millicores, bytes, devices).
    """

    left: IntArray
    used: IntArray


class Room(Struct, frozen=True, kw_only=True):
    """The candidate nodes as a strategy sees them, one element per node. Strategies must not modify it.

    `rows` are the candidates' row numbers, `caps` how many members each could take (≥ 1), `fullness` the largest share
    of a requested resource that is in use (0..1), `own` how many members of this gang are there already, `rank` the
    node's position among those that are equal otherwise: by images of the members, then by name. `preferences` has each
    node's rank by each wish of `placement.prefer` (0 is most preferred), the most important wish first, and then, if
    nodes differ in it, by the preferences of the members' pods. `spared` is 1 for nodes with GPUs if the members
    request none, 0 for the others, and None if all nodes are alike in that. `scarce` computes what only few strategies
    need.
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
        """These sort keys, after the preferences for nodes if there are any."""
        return (*self.preferences, *keys)


class Strategy(Protocol):
    """Decides how many of `count` members go to each candidate. `count` never exceeds the sum of `room.caps`."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """(row, members) pairs that add up to `count`, none above the candidate's cap."""
        ...
