"""Members that no node can tell apart form a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

from gangsched.core.cluster.labels import Domain
from gangsched.core.constraints.constraint import Sight, SightT
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.shape import Shape

MOST = 1 << 31
"""No row is said to take more members than this, so that sums over all rows stay far from overflow."""
Seen = tuple[Sight, ...]
"""What constraints see of a pod beside its shape, for each that sees anything."""


class MemberClass(Struct, frozen=True, gc=False, cache_hash=True):
    """Members that no node can tell apart: one shape, and the same to every constraint.

    `avoided` names nodes that the gang leaves alone for now; `domain` is the only one that it goes to, if any. `prefer`
    are wishes of these members alone.
    """

    shape: Shape
    seen: Seen = ()
    avoided: frozenset[str] = frozenset()
    domain: Domain | None = None
    prefer: tuple[Preference, ...] = ()

    def sight(self, kind: type[SightT]) -> SightT | None:
        """What the constraint of these sights sees of them beside their shape."""
        return next((sight for sight in self.seen if isinstance(sight, kind)), None)

    def in_order(self) -> tuple[str, Sequence[object]]:
        """Shape and what is seen beside it, in an order that does not depend on hashing."""
        return repr(self.shape), [(type(sight).__name__, sight.in_order()) for sight in self.seen]


@dataclass(frozen=True, slots=True)
class Taken:
    """Members of one class that took their share of so many rows, so many of each; they left it where that is negative.

    `of_gang`: they are the gang's in hand.
    """

    member: MemberClass
    rows: IntArray
    counts: IntArray
    of_gang: bool = True
