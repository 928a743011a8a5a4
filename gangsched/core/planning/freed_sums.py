"""How early an ask may be placed by sums alone, when others leave in a given order: arithmetic on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gangsched.core.cluster.claims import Claim
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.shape import PODS, Amounts
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.counted import Counted
from gangsched.core.planning.removable import MOST, Removable


class FreedSums:
    """What is free once the first of these claims have left, in their order; nobody is away on the snapshot yet."""

    def __init__(self, snapshot: Snapshot, ask: Ask, claims: Sequence[Claim]) -> None:
        cluster = snapshot.cluster
        self._counted = counted = Counted(snapshot, ask, Removable.of(cluster, ()), 0.0)
        self._rows, self._amounts = claimed(claims, cluster.capacity.rows, counted.resources)

    def could(self, number: int) -> bool:
        """Whether the sums do not exclude that the ask is placed once the first so many have left."""
        known = np.flatnonzero(self._rows[:number] >= 0)
        return self._counted.could_with(self._counted.left_after(self._rows[known], self._amounts[known]))


def claimed(claims: Sequence[Claim], known: Mapping[str, int], resources: Sequence[str]) -> tuple[IntArray, IntArray]:
    """The row of each claim, by these known nodes (-1: none), and what it takes there of these resources."""
    rows: IntArray = np.array([known.get(claim.node, -1) for claim in claims], dtype=np.int64)
    kinds: dict[Amounts, int] = {}
    requests = (claim.pod.shape.requests for claim in claims)
    kind = np.array([kinds.setdefault(asked, len(kinds)) for asked in requests], dtype=np.int64)
    taken = [dict((*asked, (PODS, 1))) for asked in kinds]
    table = [[min(MOST, amounts.get(name, 0)) for name in resources] for amounts in taken]
    amounts: IntArray = np.array(table, dtype=np.int64).reshape(len(kinds), len(resources))[kind]
    return rows, amounts
