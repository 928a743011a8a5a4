"""Proves that a gang can never fit the present nodes, not even if they were empty (NeverFits).

NeverFits is a promise on which autoscalers and people act, so it follows from a proof alone: an exhaustive search on a
snapshot whose constraints refuse only what they are certain to refuse for good (`Constraint.proves`). A search that was
cut short, a feature that is not understood, a node that is shut for now: none of these proves anything.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np

from gangsched.core.planning import budget as units
from gangsched.core.planning.ask import Ask, domains_of
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.part_choice import quorum_in
from gangsched.core.planning.topology import RecentRequests


def never_fits(snapshot: Snapshot, ask: Ask, asked: Hashable, recent: RecentRequests | None) -> bool:
    """Whether the quorum certainly would not even fit on empty nodes; cached if there are `recent` requests."""
    if recent is None:
        return _fits_empty(snapshot, ask) is False
    nodes = snapshot.cluster.nodes_by_row.generation, snapshot.cluster.devices.generation
    return recent.fits_empty(asked, nodes, partial(_fits_empty, snapshot, ask)) is False


def _fits_empty(snapshot: Snapshot, ask: Ask) -> bool | None:
    """Whether the quorum may fit on empty nodes one day; None if the budget does not suffice to find out.

    False is a proof: the search was exhaustive, on a snapshot that refuses only what is certain to be refused for good.
    """
    empty = snapshot.emptied()
    began, mark = empty.budget.spent, empty.mark()
    places = domains_of(empty, ask)
    if ask.topology is not None and ask.topology.required and _may_join(empty, ask.topology.key):
        places = [*places, ()]
    if any(_may_join(empty, level.key) for level in ask.levels):
        return None
    for within in places:
        if empty.budget.spent - began > units.DIAGNOSIS:
            return None
        quorum = quorum_in(empty, ask, within)
        placed = quorum.find() is not None
        empty.undo(mark)
        if placed or quorum.steps.ended:
            return placed or None
    return False


def _may_join(snapshot: Snapshot, key: str) -> bool:
    """Whether a node that lacks this label may get it, and with it a domain that is not known yet."""
    rows, nodes = np.arange(snapshot.size), snapshot.cluster.nodes_by_row
    return bool((nodes.unsettled(rows) & ~nodes.by_label(key).any(rows)).any())
