"""Where every member of a gang goes, decided at once: `place(snapshot, ask)` gives a Placement or a Refusal.

How places are found is in `quorum`; here a gang's request is put to it, and what it cannot place is explained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import overload

from msgspec.structs import replace as renewed

from gangsched.core.cluster.labels import Domain
from gangsched.core.objects.declaration import Preference, Topology
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.shape import Shape
from gangsched.core.objects.strategy import Strategy
from gangsched.core.planning import budget as units
from gangsched.core.planning import expansion, topology
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.quorum import Quorum
from gangsched.core.planning.refusal import Refusal, fragmented, obstacles, shortage
from gangsched.core.planning.search import Slots
from gangsched.core.planning.snapshot import Snapshot
from gangsched.core.planning.strategies import PACK
from gangsched.core.planning.topology import Hunts, to_look_at

_NO_WISHES: Mapping[str, tuple[Preference, ...]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a gang asks for: of `members`, in the order in which they are to be tried, `need` must be placed.

    `role_needs` are minima among them by role; at least so many members must name the role, and at least `need` exist.
    `own` counts members that are bound already, by node; `avoided` are nodes to be taken only if it fits nowhere else,
    and of these `refused`, where the gang itself was refused, only if it fits on no other of them.
    `topology` asks for one domain of a label for all of them. `wishes` are those of roles, which come before `prefer`.
    """

    members: Sequence[Pod]
    need: int
    role_needs: Mapping[str, int] = field(default_factory=dict)
    strategy: Strategy = PACK
    prefer: tuple[Preference, ...] = ()
    wishes: Mapping[str, tuple[Preference, ...]] = field(default_factory=dict)
    topology: Topology | None = None
    own: Mapping[str, int] = field(default_factory=dict)
    avoided: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Placement:
    """A node for each member of the quorum; the snapshot has it taken."""

    assignments: tuple[tuple[Pod, str], ...]

    def touches(self, nodes: frozenset[str]) -> bool:
        """Whether a member is placed on one of these nodes."""
        return any(node in nodes for _, node in self.assignments)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Topology domains are left to be looked at, by asking again with the same `Hunts`."""


_UNFINISHED = Unfinished()


@overload
def place(snapshot: Snapshot, ask: Ask) -> Placement | Refusal: ...
@overload
def place(snapshot: Snapshot, ask: Ask, hunts: Hunts) -> Placement | Refusal | Unfinished: ...
def place(snapshot: Snapshot, ask: Ask, hunts: Hunts | None = None) -> Placement | Refusal | Unfinished:
    """Find places for the quorum on the snapshot, which keeps them taken; a refusal leaves it as it was.

    Members that fit nowhere are passed over while the minimum and each role's can still be reached (contract rule 8).
    It is finished at once without `hunts`, which remember the domains that were looked at.
    """
    if ask.avoided:
        elsewhere = _found(snapshot, ask, hunts)
        if elsewhere is not None:
            return elsewhere
    anywhere = replace(ask, avoided=frozenset(), refused=frozenset())
    mark = snapshot.mark()
    found = _found(snapshot, anywhere, hunts)
    if found is None:
        return _refused(snapshot, anywhere)
    if ask.refused != ask.avoided and isinstance(found, Placement) and found.touches(ask.refused):
        snapshot.undo(mark)
        elsewhere = _found(snapshot, replace(ask, avoided=ask.refused), hunts)
        return elsewhere or _found(snapshot, anywhere, hunts) or _refused(snapshot, anywhere)
    return found


def _found(snapshot: Snapshot, ask: Ask, hunts: Hunts | None) -> Placement | Unfinished | None:
    if ask.topology is None:
        return _found_in(snapshot, ask, None)
    key = ask.topology.key
    values = _domains(snapshot, ask, ask.topology)
    best = values[0] if len(values) == 1 else _best_domain(snapshot, ask, key, values, hunts)
    if isinstance(best, Unfinished):
        return best
    found = _found_in(snapshot, ask, (key, best)) if best is not None else None
    return found if found is not None or ask.topology.required else _found_in(snapshot, ask, None)


def _best_domain(
    snapshot: Snapshot, ask: Ask, key: str, values: Sequence[str], hunts: Hunts | None
) -> str | Unfinished | None:
    """Which of these domains takes the quorum best; None if none does."""
    scores: list[tuple[float, str]] = []
    began = snapshot.budget.spent
    failed = hunts.of((key, _asked(snapshot, ask))) if hunts is not None else {}
    for value, look in to_look_at(snapshot, key, values, failed):
        if hunts is not None and snapshot.budget.spent - began > units.HUNT:
            if not scores:
                return _UNFINISHED
            break
        mark = snapshot.mark()
        found = _found_in(snapshot, ask, (key, value))
        if found is None:
            failed[value] = look
        else:
            scores.append((topology.utilisation(snapshot, found.assignments), value))
            snapshot.undo(mark)
        if len(scores) == topology.COMPARED:
            break
    return max(scores, key=itemgetter(0))[1] if scores else None


def _asked(snapshot: Snapshot, ask: Ask) -> Hashable:
    """What decides, beside the nodes, whether the quorum finds room."""
    roles = frozenset((role, need) for role, need in ask.role_needs.items() if need > 0)
    classes = classify(snapshot, ask.members, ask.avoided)
    kinds = Counter((classes[pod.uid], role_of(pod)) for pod in ask.members)
    return frozenset(kinds.items()), roles, ask.need


def _domains(snapshot: Snapshot, ask: Ask, wanted: Topology) -> list[str]:
    """The domains that may take the quorum, in the order in which they are tried."""
    home = topology.home(snapshot, wanted, ask.own)
    if home is not None:
        return [home]
    return topology.candidates(snapshot, wanted, _classes(snapshot, ask), ask.need)


def _classes(snapshot: Snapshot, ask: Ask) -> list[MemberClass]:
    """Each member's class, in their order."""
    classes = classify(snapshot, ask.members, ask.avoided)
    return [classes[pod.uid] for pod in ask.members]


def _found_in(snapshot: Snapshot, ask: Ask, domain: Domain | None) -> Placement | None:
    mark = snapshot.mark()
    snapshot.begin(ask.own)
    found = _quorum(snapshot, ask, domain).find()
    if found is None:
        snapshot.undo(mark)
        return None
    return Placement(tuple(found))


def _refused(snapshot: Snapshot, ask: Ask) -> Refusal:
    """Why the quorum does not fit, looked at in the domain with most room if it must be in one."""
    domain: Domain | None = None
    home: str | None = None
    if ask.topology is not None and ask.topology.required:
        value = home = topology.home(snapshot, ask.topology, ask.own)
        if home is None:
            value = topology.roomiest(snapshot, ask.topology, _classes(snapshot, ask))
        domain = (ask.topology.key, value)
    mark = snapshot.mark()
    snapshot.begin(ask.own)
    quorum = _quorum(snapshot, ask, domain)
    smallest = quorum.smallest()
    short = shortage(snapshot, smallest)
    fits, failing, missing = quorum.take_most()
    if domain is None or domain[0] != expansion.HOSTNAME:
        demand = expansion.demand(missing, domain)
    else:
        # A new node is a domain of its own: it helps if nobody is elsewhere yet, and then it must take all.
        demand = expansion.demand_on_one_node(smallest) if home is None else ()
    refusal = Refusal(
        # The priority decides, too: each is left another room by nominated pods.
        asked=(_asked(snapshot, ask), ask.topology, home, snapshot.priority),
        wanted=quorum.slots.number,
        fits=fits,
        nodes=len(snapshot.cluster.nodes),
        never=_never(snapshot.emptied(), replace(ask, prefer=(), wishes={})),
        failing=failing,
        classes=tuple(dict.fromkeys(renewed(member, domain=None, prefer=()) for member in quorum.room)),
        missing=missing,
        obstacles=obstacles(snapshot, failing),
        short=short,
        fragmented=not short and fragmented(snapshot, failing),
        domain=domain,
        demand=demand,
    )
    snapshot.undo(mark)
    return refusal


def _never(empty: Snapshot, ask: Ask) -> bool:
    """Whether the quorum would certainly not fit even onto these empty nodes."""
    tried: Sequence[Domain | None] = [None]
    if ask.topology is not None and ask.topology.required:
        tried = [(ask.topology.key, value) for value in _domains(empty, ask, ask.topology)]
    began, mark = empty.budget.spent, empty.mark()
    for domain in tried:
        if empty.budget.spent - began > units.DIAGNOSIS:
            return False
        quorum = _quorum(empty, ask, domain)
        found = quorum.find() is not None
        empty.undo(mark)
        if found or quorum.steps.ended:
            return False
    return True


def _quorum(snapshot: Snapshot, ask: Ask, domain: Domain | None) -> Quorum:
    owed = {role: need for role, need in ask.role_needs.items() if need > 0}
    return Quorum(
        snapshot,
        classify(snapshot, ask.members, ask.avoided, domain=domain, wishes=ask.wishes),
        members=ask.members,
        slots=Slots(owed, max(0, ask.need - sum(owed.values()))),
        strategy=ask.strategy,
        prefer=ask.prefer,
    )


def classify(
    snapshot: Snapshot,
    members: Iterable[Pod],
    avoided: frozenset[str] = frozenset(),
    *,
    domain: Domain | None = None,
    wishes: Mapping[str, tuple[Preference, ...]] = _NO_WISHES,
) -> dict[str, MemberClass]:
    """Each member's class, by UID; equal classes are one object. An emptied snapshot knows no pods and no refusals."""
    known: dict[MemberClass, MemberClass] = {}
    classes = {}
    selective = snapshot.selective
    if not snapshot.heeds_pods:
        avoided = frozenset()
    alike: dict[tuple[Shape, str], MemberClass] = {}
    for pod in members:
        role = role_of(pod) if wishes else ""
        member = None if selective else alike.get((pod.shape, role))
        if member is None:
            seen = snapshot.seen(pod) if selective else ()
            member = MemberClass(pod.shape, seen, avoided, domain, wishes.get(role, ()))
            member = alike[pod.shape, role] = known.setdefault(member, member)
        classes[pod.uid] = member
    return classes
