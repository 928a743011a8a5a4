"""Which members a quorum is tried with, and whether any choice can have room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangsched.core.objects.pod import Pod
from gangsched.core.planning.filling import Counts
from gangsched.core.planning.search import Slots
from gangsched.core.planning.snapshot import Snapshot


def choose(members: Sequence[Pod], slots: Slots, passed: set[str]) -> list[Pod] | None:
    """The first members, in order, that fill all slots; None if too few are left."""
    owed = dict(slots.roles)
    free = slots.free
    chosen = []
    for pod in members:
        if pod.uid in passed:
            continue
        role = pod.declaration.role if pod.declaration else ""
        if owed.get(role, 0) > 0:
            owed[role] -= 1
        elif free > 0:
            free -= 1
        else:
            continue
        chosen.append(pod)
        if len(chosen) == slots.number:
            return chosen
    return None


def asks_too_much_in_all(snapshot: Snapshot, usable: Counts, number: int) -> bool:
    """Whether, of some resource, even those who ask for the least of it ask for more than is free."""
    open_ = np.zeros(snapshot.size, dtype=np.bool_)
    for member in usable:
        open_ |= snapshot.accepts(member)
    amounts = {member: snapshot.amounts(member) for member in usable}
    for column in set().union(*amounts.values()):
        left = number
        asked = 0
        for member in sorted(usable, key=lambda member: amounts[member].get(column, 0)):
            several = min(left, usable[member])
            left -= several
            asked += several * amounts[member].get(column, 0)
        # Summed as Python integers, which do not overflow.
        if asked > sum(np.maximum(snapshot.free[open_, column], 0).tolist()):
            return True
    return False
