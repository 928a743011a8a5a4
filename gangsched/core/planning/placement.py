"""Decides where the members of a gang go, all at once: `place(snapshot, ask)` returns a Placement or a Refusal.

`quorum` finds the nodes; this module chooses domains and avoided nodes for it, and explains refusals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import overload

from msgspec.structs import replace as renewed

from gangsched.core.cluster.labels import Domain
from gangsched.core.constraints.constraint import Plan
from gangsched.core.objects.declaration import Preference, Topology
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.status import Demand
from gangsched.core.objects.strategy import Strategy
from gangsched.core.planning import budget as units
from gangsched.core.planning import expansion, topology
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import bond, depends, unsure, waits_for_pods
from gangsched.core.planning.filling import classify, preferring
from gangsched.core.planning.quorum import Quorum
from gangsched.core.planning.refusal import Refusal, fragmented, gaps, oversized, shortage
from gangsched.core.planning.search import Slots
from gangsched.core.planning.snapshot import Snapshot
from gangsched.core.planning.strategies import PACK
from gangsched.core.planning.topology import RecentRequests, worth_trying


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A gang's request: `need` of `members`, which are tried in this order, must be placed.

    `role_needs` are minima by role; at least that many members must have the role, and at least `need` members exist.
    `own` counts the members that are already bound, by node. `avoided` nodes are used only if the gang fits nowhere
    else; among them `refused` nodes, which refused the gang itself, only if it fits on none of the others. `topology`
    requests one domain of a label for all members. `wishes` are preferences by role, which come before `prefer`.
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
    """A node for each member of the quorum, taken on the snapshot."""

    assignments: tuple[tuple[Pod, str], ...]

    def touches(self, nodes: frozenset[str]) -> bool:
        """Whether a member is placed on one of these nodes."""
        return any(node in nodes for _, node in self.assignments)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Some topology domains have not been tried yet: call `place` again with the same `RecentRequests`."""


_UNFINISHED = Unfinished()


@overload
def place(snapshot: Snapshot, ask: Ask) -> Placement | Refusal: ...
@overload
def place(snapshot: Snapshot, ask: Ask, recent: RecentRequests) -> Placement | Refusal | Unfinished: ...
def place(snapshot: Snapshot, ask: Ask, recent: RecentRequests | None = None) -> Placement | Refusal | Unfinished:
    """Place the quorum on the snapshot, where its places stay taken; a refusal leaves the snapshot unchanged.

    Members that fit nowhere are skipped while the minimum and the minima of roles are within reach (contract rule 8).
    `recent` remembers the domains already tried; without it all domains are tried in this call.
    """
    if ask.avoided:
        elsewhere = _found(snapshot, ask, recent)
        if elsewhere is not None:
            return elsewhere
    anywhere = replace(ask, avoided=frozenset(), refused=frozenset())
    mark, broken_off = snapshot.mark(), snapshot.budget.broken_off
    found = _found(snapshot, anywhere, recent)
    if found is None:
        return _refused(snapshot, anywhere, recent, exhausted=snapshot.budget.broken_off > broken_off)
    if ask.refused != ask.avoided and isinstance(found, Placement) and found.touches(ask.refused):
        snapshot.undo(mark)
        elsewhere = _found(snapshot, replace(ask, avoided=ask.refused), recent)
        return elsewhere or _found(snapshot, anywhere, recent) or _refused(snapshot, anywhere, recent, exhausted=False)
    return found


def _found(snapshot: Snapshot, ask: Ask, recent: RecentRequests | None) -> Placement | Unfinished | None:
    if ask.topology is None:
        return _found_in(snapshot, ask, None) or _found_together(snapshot, ask, recent)
    key = ask.topology.key
    values = _domains(snapshot, ask, ask.topology)
    best = values[0] if len(values) == 1 else _best_domain(snapshot, ask, key, values, recent)
    if isinstance(best, Unfinished):
        return best
    found = _found_in(snapshot, ask, (key, best)) if best is not None else None
    return found if found is not None or ask.topology.required else _found_in(snapshot, ask, None)


def _found_together(snapshot: Snapshot, ask: Ask, recent: RecentRequests | None) -> Placement | Unfinished | None:
    """Find places by trying each domain for the members whose affinity requires all of them to share one."""
    bonds = {member: bond(snapshot, member) for member in dict.fromkeys(_classes(snapshot, ask))}
    key = max(bonds.values(), default="")
    if not key:
        return None
    bonded = [member for member in _classes(snapshot, ask) if bonds[member] == key]
    others = len(ask.members) - len(bonded)
    values = topology.candidates(snapshot, Topology(key), bonded, max(1, ask.need - others))
    best = _best_domain(snapshot, ask, key, values, recent, of=bonded)
    if best is None or isinstance(best, Unfinished):
        return best
    return _found_in(snapshot, ask, (key, best), of=bonded)


def _best_domain(
    snapshot: Snapshot,
    ask: Ask,
    key: str,
    values: Sequence[str],
    recent: RecentRequests | None,
    *,
    of: Collection[MemberClass] | None = None,
) -> str | Unfinished | None:
    """The domain that takes the quorum with the highest utilisation; None if none does. `of` is as in `quorum_in`."""
    scores: list[tuple[float, str]] = []
    began = snapshot.budget.spent
    asked = key, _asked(snapshot, ask)
    failed, unsure = (recent.of(asked), recent.of((*asked, "unsure"))) if recent is not None else ({}, {})
    plans = [plan for plan in snapshot.plans if type(plan).shared_digest is not Plan.shared_digest]
    members = dict.fromkeys(_classes(snapshot, ask))
    shared_digest = hash(tuple(plan.shared_digest(member) for plan in plans for member in members))
    for value, digest in worth_trying(snapshot, key, values, failed, shared_digest):
        if recent is not None and snapshot.budget.spent - began > units.DOMAINS:
            if not scores:
                return _UNFINISHED
            break
        mark, broken_off = snapshot.mark(), snapshot.budget.broken_off
        found = _found_in(snapshot, ask, (key, value), of=of)
        if found is None:
            failed[value] = digest
            if snapshot.budget.broken_off > broken_off:
                unsure[value] = digest
        else:
            scores.append((topology.utilisation(snapshot, found.assignments), value))
            snapshot.undo(mark)
        if len(scores) == topology.COMPARED:
            break
    if not scores and any(failed.get(value) == digest for value, digest in unsure.items()):
        snapshot.budget.broke_off()
    return max(scores, key=itemgetter(0))[1] if scores else None


def _asked(snapshot: Snapshot, ask: Ask) -> Hashable:
    """A key of everything, except the nodes, that decides whether the quorum fits."""
    roles = frozenset((role, need) for role, need in ask.role_needs.items() if need > 0)
    classes = classify(snapshot, ask.members, ask.avoided)
    kinds = Counter((classes[pod.uid], role_of(pod)) for pod in ask.members)
    return frozenset(kinds.items()), roles, ask.need


def domains_of(snapshot: Snapshot, ask: Ask) -> Sequence[Domain | None]:
    """The domains that may hold the whole quorum; a single None means that it may be anywhere."""
    if ask.topology is None or not ask.topology.required:
        return [None]
    return [(ask.topology.key, value) for value in _domains(snapshot, ask, ask.topology)]


def _domains(snapshot: Snapshot, ask: Ask, wanted: Topology) -> list[str]:
    """The domains that may take the quorum, in the order in which to try them."""
    home = topology.home(snapshot, wanted, ask.own)
    if home is not None:
        return [home]
    return topology.candidates(snapshot, wanted, _classes(snapshot, ask), ask.need)


def _classes(snapshot: Snapshot, ask: Ask) -> list[MemberClass]:
    """The class of each member, in the order of the members."""
    classes = classify(snapshot, ask.members, ask.avoided)
    return [classes[pod.uid] for pod in ask.members]


def _found_in(
    snapshot: Snapshot, ask: Ask, domain: Domain | None, *, of: Collection[MemberClass] | None = None
) -> Placement | None:
    mark = snapshot.mark()
    snapshot.begin(ask.own)
    found = quorum_in(snapshot, ask, domain, of=of).find()
    if found is None:
        snapshot.undo(mark)
        return None
    return Placement(tuple(found))


def _refused(snapshot: Snapshot, ask: Ask, recent: RecentRequests | None, *, exhausted: bool) -> Refusal:
    """Explain why the quorum does not fit; if it must be in one domain, examine its own or the one with most room."""
    domain: Domain | None = None
    home: str | None = None
    if ask.topology is not None and ask.topology.required:
        value = home = topology.home(snapshot, ask.topology, ask.own)
        if home is None:
            value = topology.roomiest(snapshot, ask.topology, _classes(snapshot, ask))
        domain = (ask.topology.key, value)
    mark = snapshot.mark()
    snapshot.begin(ask.own)
    quorum = quorum_in(snapshot, ask, domain)
    smallest = quorum.smallest()
    short = shortage(snapshot, smallest)
    fits, failing, missing = quorum.take_most()
    waits = waits_for_pods(snapshot, missing)
    if waits:
        demand: tuple[Demand, ...] = ()
    elif domain is None or domain[0] != expansion.HOSTNAME:
        demand = expansion.demand(missing, domain)
    else:
        # A new node is a domain of its own: it helps only if no member is placed yet, and then it must take all.
        demand = expansion.demand_on_one_node(smallest) if home is None else ()
    asked = _asked(snapshot, ask), ask.topology, home
    # Whether empty nodes take the quorum may be remembered until the nodes change if nothing else decides it.
    remembered = None if any(map(depends, quorum.room)) else recent
    refusal = Refusal(
        # The priority is included because it decides which nominated pods room is left for.
        asked=(*asked, snapshot.priority),
        wanted=quorum.slots.number,
        fits=fits,
        nodes=len(snapshot.cluster.nodes),
        never=_never(snapshot, replace(ask, prefer=(), wishes={}), asked, remembered),
        failing=failing,
        classes=tuple(dict.fromkeys(renewed(member, domain=None) for member in quorum.room)),
        missing=missing,
        gaps=gaps(snapshot, failing, missing, quorum.slots.number - fits),
        short=short,
        fragmented=not short and fragmented(snapshot, failing),
        exhausted=exhausted or unsure(snapshot, quorum.room),
        waits_for_pods=waits,
        domain=domain,
        demand=demand,
        oversized=oversized(snapshot, failing),
    )
    snapshot.undo(mark)
    return refusal


def _never(snapshot: Snapshot, ask: Ask, asked: Hashable, recent: RecentRequests | None) -> bool:
    """Whether the quorum certainly would not even fit on empty nodes; cached if there are `recent` requests."""
    if recent is None:
        return _fits_empty(snapshot, ask) is False
    nodes = snapshot.cluster.nodes_by_row.generation, snapshot.cluster.devices.generation
    return recent.fits_empty(asked, nodes, partial(_fits_empty, snapshot, ask)) is False


def _fits_empty(snapshot: Snapshot, ask: Ask) -> bool | None:
    """Whether the quorum would fit on empty nodes; None if the budget does not suffice to find out."""
    empty = snapshot.emptied()
    began, mark = empty.budget.spent, empty.mark()
    for domain in domains_of(empty, ask):
        if empty.budget.spent - began > units.DIAGNOSIS:
            return None
        quorum = quorum_in(empty, ask, domain)
        found = quorum.find() is not None
        empty.undo(mark)
        if found or quorum.steps.ended or unsure(empty, quorum.room):
            return found or None
    return False


def quorum_in(
    snapshot: Snapshot, ask: Ask, domain: Domain | None, *, of: Collection[MemberClass] | None = None
) -> Quorum:
    """The quorum with its members confined to this domain: all members, or only those `of` these classes."""
    owed = {role: need for role, need in ask.role_needs.items() if need > 0}
    everybody = domain if of is None else None
    classes = classify(snapshot, ask.members, ask.avoided, domain=everybody)
    if of is not None:
        inside = {member: renewed(member, domain=domain) for member in of}
        classes = {uid: inside.get(member, member) for uid, member in classes.items()}
    return Quorum(
        snapshot,
        classes,
        preferring=preferring(snapshot, ask.members, classes, ask.wishes),
        members=ask.members,
        slots=Slots.of(ask.need, owed),
        strategy=ask.strategy,
        prefer=ask.prefer,
    )
