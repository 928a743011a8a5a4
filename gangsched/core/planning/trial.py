"""One trial to place a quorum, wherever it may go or in some domains of a label only."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from gangsched.core.cluster.labels import Within
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.part_choice import quorum_in
from gangsched.core.planning.search import STEPS


class Placement(Struct, frozen=True):
    """A node for each member of the quorum, taken on the snapshot."""

    assignments: tuple[tuple[Pod, str], ...]

    def touches(self, nodes: frozenset[str]) -> bool:
        """Whether a member is placed on one of these nodes."""
        return any(node in nodes for _, node in self.assignments)


class Unfinished(Struct, frozen=True):
    """Some topology domains have not been tried yet: call `place` again with the same `RecentRequests`."""


def found_in(
    snapshot: Snapshot, ask: Ask, within: Within, *, of: Collection[MemberClass] | None = None, steps: int = STEPS
) -> Placement | None:
    """Take places for the quorum there; None, with nothing taken, if none are found. The rest is as in `quorum_in`."""
    mark = snapshot.mark()
    snapshot.begin(ask.own)
    places = quorum_in(snapshot, ask, within, of=of, steps=steps).find()
    if places is None:
        snapshot.undo(mark)
        return None
    return Placement(tuple(places))
