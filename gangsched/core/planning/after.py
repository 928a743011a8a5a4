"""What a search for those who must leave has come to (`core.planning.leaving`)."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.planning.trial import Placement
from gangsched.core.planning.unit_table import Unit


class After(Struct, frozen=True):
    """The ask is placed once the units that are `leaving` have left, of which each must; `level` is the highest."""

    placement: Placement
    leaving: tuple[Unit, ...]
    level: int | None


class NoWay(Struct, frozen=True):
    """The ask is not placed whoever leaves. `hopeless`: by the sums alone. `exhausted`: there may be a way, because not
    every way was tried.
    """

    hopeless: bool = False
    exhausted: bool = False
