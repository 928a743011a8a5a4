"""Members that no node can tell apart form a class."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from gangsched.core.cluster.cache import Forbidden
from gangsched.core.cluster.domains import Domain
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.shape import Shape

MOST = 1 << 31
"""No row is said to take more members than this, so that sums over all rows stay far from overflow."""


class MemberClass(Struct, frozen=True, gc=False, cache_hash=True):
    """Members that no node can tell apart: one shape, closed out by the same existing pods.

    `avoided` names nodes that the gang leaves alone for now; `domain` is the only one that it goes to, if any. `prefer`
    are wishes of these members alone.
    """

    shape: Shape
    forbidden: Forbidden = frozenset()
    avoided: frozenset[str] = frozenset()
    domain: Domain | None = None
    prefer: tuple[Preference, ...] = ()


@dataclass(frozen=True, slots=True)
class Taken:
    """Members of one class that took their share of so many rows, so many of each."""

    member: MemberClass
    rows: IntArray
    counts: IntArray
