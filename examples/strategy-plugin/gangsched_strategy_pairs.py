"""Gives each node two members in turn, the fullest node first: for GPUs that are bridged two by two."""

from __future__ import annotations

import numpy as np

from gangsched.core.strategies import Room


class Pairs:
    """A strategy is a class without arguments that has this one method; docs/strategies.md says what `room` has."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """(row, members) pairs that add up to `count`, none above what the node has room for."""
        order = np.lexsort((room.rank, -room.fullness)).tolist()
        given = dict.fromkeys(order, 0)
        while count:
            for at in order:
                number = min(2, int(room.caps[at]) - given[at], count)
                given[at] += number
                count -= number
        return [(int(room.rows[at]), number) for at, number in given.items() if number]
