"""Classes of members: those that no node can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.cluster.labels import Domain
from gangsched.core.constraints.constraint import Sight, SightT
from gangsched.core.constraints.matching import Matchable
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.shape import Shape
from gangsched.core.objects.soft import Soft

MOST = 1 << 31
"""The maximal number of members that a row is said to take, so that sums over all rows cannot overflow."""
Seen = tuple[Sight, ...]
"""What constraints see of a pod beside its shape; constraints that see nothing are left out."""


class MemberClass(Struct, frozen=True, gc=False, cache_hash=True):
    """Members of one shape that all constraints see alike.

    `avoided` names nodes that the gang avoids for now; `domain`, if any, is the only one that it may go to. `prefer`
    are preferences of these members alone, `soft` is what their pods prefer, and `known` what preferences about other
    pods look at in them.
    """

    shape: Shape
    seen: Seen = ()
    avoided: frozenset[str] = frozenset()
    domain: Domain | None = None
    prefer: tuple[Preference, ...] = ()
    soft: Soft | None = None
    known: Matchable | None = None

    @property
    def impartial(self) -> MemberClass:
        """The same class without preferences."""
        if not self.prefer and self.soft is None and self.known is None:
            return self
        return replace(self, prefer=(), soft=None, known=None)

    def sight(self, kind: type[SightT]) -> SightT | None:
        """What the constraint with this kind of sight sees of them beside their shape."""
        return next((sight for sight in self.seen if isinstance(sight, kind)), None)

    def in_order(self) -> tuple[str, Sequence[object]]:
        """Shape and what is seen beside it, in an order that does not depend on hashing."""
        return repr(self.shape), [(type(sight).__name__, sight.in_order()) for sight in self.seen]


@dataclass(frozen=True, slots=True)
class Taken:
    """A change: how many members of one class were placed on each row, or taken back from it where negative.

    `of_gang`: they belong to the present gang.
    """

    member: MemberClass
    rows: IntArray
    counts: IntArray
    of_gang: bool = True
