"""Where every member of a gang goes, decided at once: `place(snapshot, ask)` gives a Placement or a Refusal.

How places are found is in `quorum`; here a gang's request is put to it, and what it cannot place is explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gangsched.core.model import Pod, Preference
from gangsched.core.quorum import Quorum
from gangsched.core.refusal import Refusal, fragmented, obstacles, shortage
from gangsched.core.search import Slots
from gangsched.core.snapshot import MemberClass, Snapshot
from gangsched.core.strategies import PACK, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a gang asks for: of `members`, in the order in which they are to be tried, `need` must be placed.

    `role_needs` are minima among them by role; at least so many members must name the role, and at least `need` exist.
    `own` counts members that are bound already, by node; `avoided` are nodes to be taken only if it fits nowhere else.
    """

    members: Sequence[Pod]
    need: int
    role_needs: Mapping[str, int] = field(default_factory=dict)
    strategy: Strategy = PACK
    prefer: tuple[Preference, ...] = ()
    own: Mapping[str, int] = field(default_factory=dict)
    avoided: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Placement:
    """A node for each member of the quorum; the snapshot has it taken."""

    assignments: tuple[tuple[Pod, str], ...]


def place(snapshot: Snapshot, ask: Ask) -> Placement | Refusal:
    """Find places for the quorum on the snapshot, which keeps them taken; a refusal leaves it as it was.

    Members that fit nowhere are passed over while the minimum and each role's can still be reached (contract rule 8).
    """
    if ask.avoided:
        elsewhere = _found(snapshot, ask)
        if elsewhere is not None:
            return elsewhere
        ask = replace(ask, avoided=frozenset())
    mark = snapshot.mark()
    snapshot.begin(ask.own)
    quorum = _quorum(snapshot, ask)
    found = quorum.find()
    if found is not None:
        return Placement(tuple(found))
    ever = _quorum(snapshot.emptied(), ask)
    never = ever.find() is None and not ever.budget.ended
    short = shortage(snapshot, quorum.smallest())
    fits, failing = quorum.take_most()
    refusal = Refusal(
        wanted=quorum.slots.number,
        fits=fits,
        nodes=len(snapshot.cluster.nodes),
        never=never,
        failing=failing,
        classes=tuple(quorum.room),
        obstacles=obstacles(snapshot, failing),
        short=short,
        fragmented=not short and fragmented(snapshot, failing),
    )
    snapshot.undo(mark)
    return refusal


def _found(snapshot: Snapshot, ask: Ask) -> Placement | None:
    mark = snapshot.mark()
    snapshot.begin(ask.own)
    found = _quorum(snapshot, ask).find()
    if found is None:
        snapshot.undo(mark)
        return None
    return Placement(tuple(found))


def _quorum(snapshot: Snapshot, ask: Ask) -> Quorum:
    owed = {role: need for role, need in ask.role_needs.items() if need > 0}
    return Quorum(
        snapshot,
        classify(snapshot, ask.members, ask.avoided),
        members=ask.members,
        slots=Slots(owed, max(0, ask.need - sum(owed.values()))),
        strategy=ask.strategy,
        prefer=ask.prefer,
    )


def classify(
    snapshot: Snapshot, members: Iterable[Pod], avoided: frozenset[str] = frozenset()
) -> dict[str, MemberClass]:
    """Each member's class, by UID; equal classes are one object. An emptied snapshot knows no pods and no refusals."""
    known: dict[MemberClass, MemberClass] = {}
    classes = {}
    for pod in members:
        member = (
            MemberClass(pod.shape, snapshot.cluster.forbidden(pod), avoided)
            if snapshot.heeds_pods
            else MemberClass(pod.shape)
        )
        classes[pod.uid] = known.setdefault(member, member)
    return classes
