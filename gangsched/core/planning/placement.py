"""Decides where the members of a gang go, all at once: `place(snapshot, ask)` returns a Placement or a Refusal.

`quorum` finds the nodes; this module chooses domains and avoided nodes for it, and explains refusals.
"""

from __future__ import annotations

from typing import overload

import numpy as np
from msgspec.structs import replace

from gangsched.core.cluster.labels import Domain
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.status import Demand
from gangsched.core.planning import expansion, start_check, topology
from gangsched.core.planning.ask import Ask, asked_for, classes_of, domain_values, domains_of
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.dependence import depends, unsure, waits_for_pods
from gangsched.core.planning.domains import best_domain, found_in_fewest, found_together, roomiest_domain
from gangsched.core.planning.part_choice import quorum_in
from gangsched.core.planning.proof import never_fits
from gangsched.core.planning.refusal import Refusal, fragmented, gaps, oversized, shortage
from gangsched.core.planning.strategies import PACK
from gangsched.core.planning.topology import RecentRequests
from gangsched.core.planning.trial import Placement, Unfinished, found_in

__all__ = ["Ask", "Placement", "Unfinished", "domains_of", "fits", "place", "quorum_in"]


@overload
def place(snapshot: Snapshot, ask: Ask) -> Placement | Refusal: ...
@overload
def place(snapshot: Snapshot, ask: Ask, recent: RecentRequests) -> Placement | Refusal | Unfinished: ...
def place(snapshot: Snapshot, ask: Ask, recent: RecentRequests | None = None) -> Placement | Refusal | Unfinished:
    """Place the quorum on the snapshot, where its places stay taken; a refusal leaves the snapshot unchanged.

    Members that fit nowhere are skipped while the minimum and the minima of roles are within reach (contract rule 8).
    `recent` remembers the domains already tried; without it all domains are tried in this call.
    """
    if ask.start is not None and (short := start_check.lacking(snapshot, ask.start)):
        return start_check.refused(snapshot, ask.start, short, wanted=ask.need)
    if ask.avoided and (elsewhere := _placed(snapshot, ask, recent)) is not None:
        return elsewhere
    anywhere = replace(ask, avoided=ask.pause.nodes, refused=frozenset())
    mark, broken_off = snapshot.mark(), snapshot.budget.broken_off
    result = _placed(snapshot, anywhere, recent)
    if result is None:
        return _refused(snapshot, anywhere, recent, exhausted=snapshot.budget.broken_off > broken_off)
    if ask.refused != ask.avoided and isinstance(result, Placement) and result.touches(ask.refused):
        snapshot.undo(mark)
        elsewhere = _placed(snapshot, replace(ask, avoided=ask.refused), recent)
        return elsewhere or _placed(snapshot, anywhere, recent) or _refused(snapshot, anywhere, recent, exhausted=False)
    return result


def fits(snapshot: Snapshot, ask: Ask) -> bool:
    """Whether `place` would find places, without regard to where they are best and without the reasons if not."""
    if ask.start is not None and start_check.lacking(snapshot, ask.start):
        return False
    plain = replace(
        ask, avoided=ask.pause.nodes, refused=frozenset(), strategy=PACK, prefer=(), wishes={}, following=()
    )
    if (
        plain.topology is not None
        and not plain.topology.required
        and not any(map(depends, classes_of(snapshot, plain)))
    ):
        plain = replace(plain, topology=None)
    mark = snapshot.mark()
    placed = _placed(snapshot, plain, None) is not None
    snapshot.undo(mark)
    return placed


def _placed(snapshot: Snapshot, ask: Ask, recent: RecentRequests | None) -> Placement | Unfinished | None:
    if ask.topology is None:
        if len(ask.members) > ask.need:
            # The domain of the quorum is that of the members above the minimum as well.
            return found_together(snapshot, ask, recent) or found_in(snapshot, ask, ())
        return found_in(snapshot, ask, ()) or found_together(snapshot, ask, recent)
    key = ask.topology.key
    values = domain_values(snapshot, ask, ask.topology)
    best = next(iter(values)) if len(values) == 1 else best_domain(snapshot, ask, key, values, recent)
    if isinstance(best, Unfinished):
        return best
    placement = found_in(snapshot, ask, ((key, best),)) if best is not None else None
    if placement is not None or ask.topology.required:
        return placement
    mark = snapshot.mark()
    if found_in(snapshot, ask, ()) is None:
        return None
    snapshot.undo(mark)
    return found_in_fewest(snapshot, ask, key) or found_in(snapshot, ask, ())


def _refused(snapshot: Snapshot, ask: Ask, recent: RecentRequests | None, *, exhausted: bool) -> Refusal:
    """Explain why the quorum does not fit; if it must be in one domain, examine its own or the one with most room."""
    within: tuple[Domain, ...] = ()
    home: str | None = None
    if ask.topology is not None and ask.topology.required:
        value = home = topology.home(snapshot, ask.topology, ask.own)
        if home is None:
            value = roomiest_domain(snapshot, ask, ask.topology)
        within = ((ask.topology.key, value),)
    mark = snapshot.mark()
    snapshot.begin(ask.own)
    before = snapshot.own.copy()
    quorum = quorum_in(snapshot, ask, within)
    smallest = quorum.smallest()
    short = shortage(snapshot, smallest)
    fits, failing, missing = quorum.take_most()
    waits = waits_for_pods(snapshot, missing)
    if waits:
        demand: tuple[Demand, ...] = ()
    elif any(key == expansion.HOSTNAME for key, _ in within):
        # A new node is a domain of its own: it helps only if no member is placed yet, and then it must take all.
        demand = expansion.demand_on_one_node(smallest) if home is None else ()
    else:
        demand = expansion.demand(missing, within)
    asked = asked_for(snapshot, ask), ask.topology, home
    # Whether empty nodes take the quorum may be remembered until the nodes change if nothing else decides it.
    remembered = None if any(map(depends, quorum.room)) else recent
    refusal = Refusal(
        # For others, room may be left for other nominated pods.
        asked=(*asked, snapshot.viewer),
        wanted=quorum.slots.number,
        fits=fits,
        nodes=len(snapshot.cluster.nodes),
        never=never_fits(snapshot, replace(ask, prefer=(), wishes={}), asked, remembered),
        failing=failing,
        classes=tuple(dict.fromkeys(replace(member, within=()) for member in quorum.room)),
        missing=missing,
        gaps=gaps(snapshot, failing, missing, quorum.slots.number - fits),
        short=short,
        fragmented=not short and fragmented(snapshot, failing),
        exhausted=exhausted or unsure(snapshot, quorum.room),
        waits_for_pods=waits,
        within=within,
        demand=demand,
        oversized=oversized(snapshot, failing),
        by_parts=bool(ask.choices or ask.levels),
        fitting=_taken_since(snapshot, before),
    )
    snapshot.undo(mark)
    return refusal


def _taken_since(snapshot: Snapshot, before: IntArray) -> dict[str, int]:
    """How many members were placed on which node, by name, since the gang's members by row were `before`."""
    placed = snapshot.own - before
    return {snapshot.name(row): int(placed[row]) for row in np.flatnonzero(placed).tolist()}
