"""Placing beside closed nodes: whether a gang waits for room or only for the end of its pause."""

from __future__ import annotations

from msgspec.structs import replace

from gangsched.core.objects.pause import OPEN
from gangsched.core.planning import placement
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, Placement, Unfinished
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.topology import RecentRequests


def place(snapshot: Snapshot, ask: Ask, recent: RecentRequests) -> Placement | Refusal | Unfinished:
    """Place the quorum on nodes that are not closed to it; the refusal says so if it would fit with the closed ones.

    No new node is asked for then: pods like these may fail there too.
    """
    result = placement.place(snapshot, ask, recent)
    if not (isinstance(result, Refusal) and ask.pause.nodes):
        return result
    mark = snapshot.mark()
    paused = isinstance(placement.place(snapshot, replace(ask, pause=OPEN), recent), Placement)
    snapshot.undo(mark)
    return replace(result, paused=ask.pause.note, never=False, demand=()) if paused else result
