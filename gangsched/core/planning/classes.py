"""Classes of members: all members of a class are interchangeable on every node."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.cluster.labels import Within
from gangsched.core.constraints.constraint import Sight, SightT
from gangsched.core.constraints.matching import Matchable
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.shape import Shape, Soft

MOST = 1 << 31
"""Upper limit for the number of members that a row takes, so that sums over all rows cannot overflow."""
Sights = tuple[Sight, ...]
"""The properties of a pod, besides its shape, that constraints distinguish; one entry per constraint that has any."""


class MemberClass(Struct, frozen=True, gc=False, cache_hash=True):
    """Members with the same shape that no constraint distinguishes.

    `avoided` names nodes that the gang avoids for now. The class may only be `within` these domains.
    `prefer` holds the preferences of these members alone, `soft` those of their pods, and `known` the namespace and
    labels by which the preferences of other pods match them.
    """

    shape: Shape
    seen: Sights = ()
    avoided: frozenset[str] = frozenset()
    within: Within = ()
    prefer: tuple[Preference, ...] = ()
    soft: Soft | None = None
    known: Matchable | None = None

    @property
    def impartial(self) -> MemberClass:
        """The same class without preferences."""
        if not self.prefer and self.soft is None and self.known is None:
            return self
        return replace(self, prefer=(), soft=None, known=None)

    @property
    def has(self) -> frozenset[object]:
        """What constraints may be about: see `Member.has`."""
        soft, known = ("soft",) if self.soft is not None else (), ("known",) if self.known is not None else ()
        return self.shape.has.union(map(type, self.seen), soft, known)

    def sight(self, kind: type[SightT]) -> SightT | None:
        """The properties, besides the shape, that the constraint with this kind of sight distinguishes."""
        for sight in self.seen:
            if isinstance(sight, kind):
                return sight
        return None

    def in_order(self) -> tuple[str, Sequence[object]]:
        """A sort key, made of the shape and of `seen`, that does not depend on hashing."""
        return repr(self.shape), [(type(sight).__name__, sight.in_order()) for sight in self.seen]


class Taken(Struct, frozen=True):
    """A change: how many members of one class were placed on each row, or removed from it where negative.

    `of_gang`: they belong to the current gang.
    """

    member: MemberClass
    rows: IntArray
    counts: IntArray
    of_gang: bool = True
