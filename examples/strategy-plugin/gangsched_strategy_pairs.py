"""Gives each node in turn two members, the fullest node first, for example for GPUs that are bridged in pairs."""

from __future__ import annotations

import numpy as np

from gangsched.core.objects.strategy import Room


class Pairs:
    """A strategy is a class without arguments that has this one method; docs/strategies.md describes `room`."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """(row, members) pairs that add up to `count`; no node gets more members than it has room for."""
        halves = room.own % 2
        shares: dict[int, int] = {}
        while count:
            for at in np.lexsort((room.rank, -room.fullness, -halves)).tolist():
                given = shares.get(at, 0)
                number = min(2 - (int(room.own[at]) + given) % 2, int(room.caps[at]) - given, count)
                if number:
                    shares[at] = given + number
                    count -= number
                if not count:
                    break
        return [(int(room.rows[at]), number) for at, number in shares.items()]
