"""Decides where the members of a gang go, all at once: `place(snapshot, ask)` returns a Placement or a Refusal.

`quorum` finds the nodes; this module chooses domains and avoided nodes for it, and explains refusals.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import overload

from msgspec.structs import replace as renewed

from gangsched.core.cluster.labels import Domain
from gangsched.core.constraints.constraint import Plan
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.status import Demand
from gangsched.core.planning import budget as units
from gangsched.core.planning import expansion, topology
from gangsched.core.planning.ask import Ask, asked_for, classes_of, domain_values, domains_of, quorum_in
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import bond, depends, waits_for_pods
from gangsched.core.planning.proof import never_fits
from gangsched.core.planning.refusal import Refusal, fragmented, gaps, oversized, shortage
from gangsched.core.planning.snapshot import Snapshot
from gangsched.core.planning.topology import RecentRequests, worth_trying

__all__ = ["Ask", "Placement", "Unfinished", "domains_of", "place", "quorum_in"]


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
    values = domain_values(snapshot, ask, ask.topology)
    best = values[0] if len(values) == 1 else _best_domain(snapshot, ask, key, values, recent)
    if isinstance(best, Unfinished):
        return best
    found = _found_in(snapshot, ask, (key, best)) if best is not None else None
    return found if found is not None or ask.topology.required else _found_in(snapshot, ask, None)


def _found_together(snapshot: Snapshot, ask: Ask, recent: RecentRequests | None) -> Placement | Unfinished | None:
    """Find places by trying each domain for the members whose affinity requires all of them to share one."""
    bonds = {member: bond(snapshot, member) for member in dict.fromkeys(classes_of(snapshot, ask))}
    key = max(bonds.values(), default="")
    if not key:
        return None
    bonded = [member for member in classes_of(snapshot, ask) if bonds[member] == key]
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
    asked = key, asked_for(snapshot, ask)
    failed, unsure = (recent.of(asked), recent.of((*asked, "unsure"))) if recent is not None else ({}, {})
    plans = [plan for plan in snapshot.plans if type(plan).shared_digest is not Plan.shared_digest]
    members = dict.fromkeys(classes_of(snapshot, ask))
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
            value = topology.roomiest(snapshot, ask.topology, classes_of(snapshot, ask))
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
    asked = asked_for(snapshot, ask), ask.topology, home
    # Whether empty nodes take the quorum may be remembered until the nodes change if nothing else decides it.
    remembered = None if any(map(depends, quorum.room)) else recent
    refusal = Refusal(
        # The priority is included because it decides which nominated pods room is left for.
        asked=(*asked, snapshot.priority),
        wanted=quorum.slots.number,
        fits=fits,
        nodes=len(snapshot.cluster.nodes),
        never=never_fits(snapshot, replace(ask, prefer=(), wishes={}), asked, remembered),
        failing=failing,
        classes=tuple(dict.fromkeys(renewed(member, domain=None) for member in quorum.room)),
        missing=missing,
        gaps=gaps(snapshot, failing, missing, quorum.slots.number - fits),
        short=short,
        fragmented=not short and fragmented(snapshot, failing),
        exhausted=exhausted,
        waits_for_pods=waits,
        domain=domain,
        demand=demand,
        oversized=oversized(snapshot, failing),
    )
    snapshot.undo(mark)
    return refusal
