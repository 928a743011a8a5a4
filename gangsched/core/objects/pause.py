"""Where pods of one maker may not be bound for a while, because such pods fail there at once."""

from __future__ import annotations

from msgspec import Struct


class Pause(Struct, frozen=True):
    """The closed nodes, until when at least one of them is closed (epoch seconds), and why, without a full stop.

    `everywhere`: no node may be used, whatever `nodes` says. `doubted` are all nodes where such pods have failed and
    none has run since; one that is not closed any more is used only if the gang fits nowhere else. On those of
    `failed_again` such pods have failed once more after a pause.
    """

    nodes: frozenset[str] = frozenset()
    until: float = float("inf")
    note: str = ""
    everywhere: bool = False
    doubted: frozenset[str] = frozenset()
    failed_again: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.nodes) or self.everywhere


OPEN = Pause()
"""No pause."""
