"""The volumes that members placed on one snapshot take for their claims that wait for a node.

Rows whose nodes can use the same volumes share them. Members with equal wants take volumes one after another and give
them back in reverse order.

Members that share a claim depend on the first one, for which it is bound: the others go where its volume can be used,
or, if it is yet to be provisioned for several nodes, wherever its class provisions volumes; they are checked later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from gangsched.core.constraints.constraint import World
from gangsched.core.constraints.naming import listed, node_terms
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.pending import Pending
from gangsched.core.constraints.provisioning import MANY, Provisioning
from gangsched.core.inventory import unbound
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import uncount
from gangsched.core.objects.prebindings import ClaimVolume, SelectNode
from gangsched.core.objects.shape import NodeTerm
from gangsched.core.objects.volumes import Volume, Wanted

Terms = tuple[NodeTerm, ...] | None
Wants = tuple[Wanted, ...]
"""The wants of one member's claims, the smallest first."""
Chosen = tuple[str, ...]
"""The volume for each of these claims; empty where one is to be provisioned."""


class VolumePool:
    """The volumes of the cluster that are left; a new pool has taken none."""

    def __init__(self, world: World, affinity: NodeAffinity) -> None:
        self._world = world
        self._affinity = affinity
        self._used: Counter[str] = Counter()
        self._shared: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self._taken: dict[tuple[Wants, int], list[Chosen]] = {}
        self._ordered: dict[tuple[Wants, int], list[Wants]] = {}
        self._pending = Pending(world.pending_prebindings)
        self.provisioning = Provisioning(world, affinity, self._pending)
        self._choices: dict[Wanted, Sequence[Volume]] = {}
        self._offers: dict[Wanted, dict[Terms, list[Volume]]] = {}
        self._by_row: dict[Wanted, dict[int, list[Terms]]] = {}
        self._lefts: dict[Terms, dict[Wanted, int]] = {}
        self._masks: dict[Terms, Mask] = {}

    def room(self, wants: Wants, rows: IntArray) -> IntArray:
        """The number of members for which each row has volumes, left over or provisioned."""
        open_ = [wanted for wanted in wants if not self.is_settled(wanted)]
        offered = [wanted for wanted in open_ if self.offered(wanted)]
        own = [wanted for wanted in open_ if not wanted.shared]
        if len(open_) == 1 and own:
            return self._room_made(wants, rows) + self._left_on(own[0], rows)
        if (not own and len(offered) <= 1) or (own == open_ and not offered):
            return self._room_made(wants, rows)
        room: IntArray = np.zeros(len(rows), dtype=np.int64)
        made = np.array([self._room_made((wanted,), rows) for wanted in wants] + [self.may_share(wants, rows)])
        segments = self.provisioning.segments_of(wants)
        known: dict[Hashable, int] = {}
        for at, row in enumerate(rows.tolist()):
            # Rows with the same affinities and segments share volumes.
            usable = tuple(tuple(self._here(wanted, row)) for wanted in wants)
            here = (usable, tuple(made[:, at].tolist()), tuple(of_class.here(row) for of_class in segments))
            if here not in known:
                known[here] = self._members(wants, row)
            room[at] = known[here]
        return room

    def may_share(self, wants: Wants, rows: IntArray) -> Mask:
        """The rows where the volumes that members share can be used, or can be bound or provisioned."""
        mask: Mask = np.ones(len(rows), dtype=np.bool_)
        for wanted in wants:
            settled = self._settled(wanted)
            if settled is not None:
                mask &= self._is_there(wanted, settled, rows)
            elif wanted.shared:
                mask &= (self.provisioning.room(wanted, wants, rows) > 0) | (self._left_on(wanted, rows) > 0)
        return mask

    def shortages(self, wants: Wants, rows: IntArray, lacking: Mask) -> Iterator[tuple[str, Mask]]:
        """For each claim, the rows among the `lacking` ones without a volume for one more member, and what is left."""
        for wanted in wants[:-1]:
            alone = lacking & ((self.room((wanted,), rows) == 0) | ~self.may_share((wanted,), rows))
            yield self._shortage(wanted, rows[alone]), alone
            lacking = lacking & ~alone
        yield self._shortage(wants[-1], rows[lacking]), lacking

    def _shortage(self, wanted: Wanted, rows: IntArray) -> str:
        """The class, how many sufficient volumes are left for these rows, and where others are provisioned."""
        if self._settled(wanted) is not None:
            return f"{wanted.storage_class} for the shared claim {wanted.claim[1]}, whose volume is elsewhere"
        parts = []
        for terms, volumes in self._of_terms(wanted).items():
            if self._mask(terms)[rows].any():
                where = "" if terms is None else f" with {node_terms(terms)}"
                parts.append(f"{self._left(wanted, terms)} of {len(volumes)} left{where}")
        storage = self._world.volumes.storage_class(wanted.storage_class)
        if storage is not None and storage.provisions and storage.topologies is not None:
            parts.append(f"provisioned only with {node_terms(storage.topologies)}")
        return f"{wanted.storage_class} ({listed(sorted(parts)) or 'none suitable there'})"

    def take(self, wants: Wants, row: int, count: int) -> set[str]:
        """Take the best volumes for `count` members. Returns these volumes."""
        chosen: set[str] = set()
        for _ in range(count):
            # A pod that must be counted there although nothing is left takes nothing.
            one = self._choose(wants, row) or ("",) * len(wants)
            self._push(wants, row, one)
            chosen.update(one)
        return chosen

    def taken(self, wants: Wants, row: int) -> Sequence[Chosen]:
        """The volumes that members took on the row, in order."""
        return self._taken[wants, row]

    def digest(self) -> Hashable:
        """A digest of the volumes taken and ordered."""
        return frozenset(self._used.items()), frozenset(self._pending.by_taken), self.provisioning.digest()

    def recount(self, owners: frozenset[str], sign: int) -> None:
        """Count the pre-bindings of these pods again (1), or no longer (-1)."""
        before = self._pending.by_taken
        self._pending.recount(owners, sign)
        self._lefts.clear()
        self.provisioning.recount(before)

    def choices(self, wants: Wants) -> Hashable:
        """A digest of the volumes for these claims, taken or not, of pre-bindings in flight and of storage capacity."""
        volumes = tuple(tuple(volume.name for volume in self.offered(wanted)) for wanted in wants)
        return volumes, frozenset(self._pending.by_taken), self.provisioning.state(wants)

    def offered(self, wanted: Wanted) -> Sequence[Volume]:
        """The volumes that suffice for the claim, used or not."""
        choices = self._choices.get(wanted)
        if choices is None:
            choices = self._choices[wanted] = unbound.choices(self._world.volumes, wanted)
        return choices

    def _room_made(self, wants: Wants, rows: IntArray) -> IntArray:
        """The number of members for which each row can provision volumes of their own."""
        room: IntArray = np.full(len(rows), MANY, dtype=np.int64)
        for own in (wanted for wanted in wants if not wanted.shared):
            room = np.minimum(room, self.provisioning.room(own, wants, rows))
        return room

    def _mask(self, terms: Terms) -> Mask:
        """The rows on which volumes with this node affinity can be used."""
        mask = self._masks.get(terms)
        if mask is None:
            rows = np.arange(len(self._world.stock.names))
            everywhere: Mask = np.ones(len(rows), dtype=np.bool_)
            mask = self._masks[terms] = everywhere if terms is None else self._affinity.among(terms, rows)
        return mask

    def _of_terms(self, wanted: Wanted) -> dict[Terms, list[Volume]]:
        """The volumes offered for the claim, used or not, by node affinity; the best first."""
        offers = self._offers.get(wanted)
        if offers is None:
            offers = self._offers[wanted] = {}
            for volume in self.offered(wanted):
                offers.setdefault(volume.node_affinity, []).append(volume)
        return offers

    def _here(self, wanted: Wanted, row: int) -> Sequence[Terms]:
        """The node affinities, among the volumes offered for the claim, that match the row."""
        by_row = self._by_row.get(wanted)
        if by_row is None:
            by_row = self._by_row[wanted] = {}
            for terms in self._of_terms(wanted):
                for at in np.flatnonzero(self._mask(terms)).tolist():
                    by_row.setdefault(at, []).append(terms)
        return by_row.get(row, ())

    def _left(self, wanted: Wanted, terms: Terms) -> int:
        """The number of volumes with this node affinity that are left for the claim."""
        known = self._lefts.setdefault(terms, {})
        if wanted not in known:
            known[wanted] = sum(self._is_free(volume, ()) for volume in self._of_terms(wanted)[terms])
        return known[wanted]

    def _left_on(self, wanted: Wanted, rows: IntArray) -> IntArray:
        """The number of volumes left for the claim on each of the rows."""
        left: IntArray = np.zeros(len(rows), dtype=np.int64)
        offers = self._of_terms(wanted)
        if len(offers) <= len(rows):
            for terms in offers:
                left += self._left(wanted, terms) * self._mask(terms)[rows]
        else:
            for at, row in enumerate(rows.tolist()):
                left[at] = sum(self._left(wanted, terms) for terms in self._here(wanted, row))
        return left

    def _members(self, wants: Wants, row: int) -> int:
        """The number of members for which the row has volumes, found by taking the volumes and giving them back."""
        number, more = 0, 0
        while (chosen := self._choose(wants, row)) is not None:
            fresh = any(name and not self._used[name] for name in chosen)
            self._push(wants, row, chosen)
            number += 1
            if not fresh:
                # Further members find no existing volume either, so only provisioned ones count.
                more = int(self._room_made(wants, np.array([row], dtype=np.int64))[0])
                break
        for _ in range(number):
            self.give_back(wants, row)
        return min(number + more, MANY)

    def _choose(self, wants: Wants, row: int) -> Chosen | None:
        """The volumes for the next member on the row; None if there are not enough."""
        one = np.array([row], dtype=np.int64)
        chosen: list[str] = []
        for wanted in wants:
            settled = self._settled(wanted)
            if settled is not None:
                if not self._is_there(wanted, settled, one)[0]:
                    return None
                chosen.append(settled[1])
                continue
            left = (v for v in self.offered(wanted) if self._is_free(v, chosen) and self._mask(v.node_affinity)[row])
            name = next((volume.name for volume in left), "")
            if not name and not self.provisioning.room(wanted, (wanted,), one)[0]:
                return None
            chosen.append(name)
        return tuple(chosen)

    def _is_free(self, volume: Volume, chosen: Sequence[str]) -> bool:
        taken = ("PersistentVolume", "", volume.name) in self._pending.by_taken
        return not (self._used[volume.name] or volume.name in chosen or taken)

    def _settled(self, wanted: Wanted) -> tuple[int, str] | None:
        """The row and the volume (empty if yet to be provisioned) of a shared claim, once a pod has settled them."""
        if not wanted.shared:
            return None
        if self._shared.get(wanted.claim):
            return self._shared[wanted.claim][0]
        for prebinding in self._pending.by_taken.get(("PersistentVolumeClaim", *wanted.claim), {}).values():
            if isinstance(prebinding, ClaimVolume):
                return -1, prebinding.volume
            if isinstance(prebinding, SelectNode):
                names = self._world.stock.names
                return names.index(prebinding.node) if prebinding.node in names else -1, ""
        return None

    def is_settled(self, wanted: Wanted) -> bool:
        """Whether a member here, or one in flight, has settled where the shared claim is bound."""
        return self._settled(wanted) is not None

    def is_made_for(self, wanted: Wanted, row: int) -> bool:
        """Whether the volume to be provisioned for the claim is made for this row's node."""
        settled = self._settled(wanted)
        return settled is None or settled[0] == row

    def _is_there(self, wanted: Wanted, settled: tuple[int, str], rows: IntArray) -> Mask:
        """The rows on which the volume of a settled claim can be used, as far as is known."""
        if not settled[1]:
            on_node: Mask = rows == settled[0]
            return on_node | self.provisioning.makes(wanted, rows) if wanted.anywhere else on_node
        volume = self._world.volumes.volume(settled[1])
        usable: Mask = np.zeros(len(rows), dtype=np.bool_) if volume is None else self._mask(volume.node_affinity)[rows]
        return usable

    def _push(self, wants: Wants, row: int, chosen: Chosen) -> None:
        asked = zip(wants, chosen, strict=True)
        ordered = [wanted for wanted, name in asked if not (name or wanted.selected or self._settled(wanted))]
        self._taken.setdefault((wants, row), []).append(chosen)
        self._ordered.setdefault((wants, row), []).append(tuple(ordered))
        self._used.update(filter(None, chosen))
        self._recount(chosen)
        self.provisioning.order(ordered, row, 1)
        for wanted, name in zip(wants, chosen, strict=True):
            if wanted.shared:
                self._shared.setdefault(wanted.claim, []).append((row, name))

    def give_back(self, wants: Wants, row: int) -> Chosen:
        """Give back the volumes that the last member took on the row. Returns them."""
        chosen = self._taken[wants, row].pop()
        for wanted, name in zip(wants, chosen, strict=True):
            if name:
                uncount(self._used, name)
            if wanted.shared:
                self._shared[wanted.claim].pop()
        self._recount(chosen)
        self.provisioning.order(self._ordered[wants, row].pop(), row, -1)
        return chosen

    def _recount(self, chosen: Chosen) -> None:
        """Invalidate the cached counts of free volumes with the node affinities of these volumes."""
        for name in filter(None, chosen):
            volume = self._world.volumes.volume(name)
            if volume is not None:
                self._lefts.pop(volume.node_affinity, None)

    def rows_of(self, wants: Wants, chosen: set[str], rows: IntArray) -> IntArray | None:
        """The rows whose volumes may change after the `chosen` ones were taken or given back on `rows`."""
        if any(wanted.shared for wanted in wants):
            return np.arange(len(self._world.stock.names))
        changed: Mask = np.zeros(len(self._world.stock.names), dtype=np.bool_)
        volumes = [volume for name in chosen if name and (volume := self._world.volumes.volume(name)) is not None]
        for terms in {volume.node_affinity for volume in volumes}:
            changed |= self._mask(terms)
        changed[self.provisioning.beside(wants, rows)] = True
        return np.flatnonzero(changed) if changed.any() else None
