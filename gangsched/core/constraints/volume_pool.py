"""The volumes that members placed on one snapshot take for their claims that wait for a node.

Rows whose nodes can use the same volumes share them. Members that want the same take volumes in turn, and give back
those taken last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from gangsched.core.constraints.constraint import World
from gangsched.core.constraints.naming import listed, node_terms
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.prebindings import ClaimVolume, SelectNode
from gangsched.core.objects.shape import NodeTerm
from gangsched.core.objects.volumes import Volume, Wanted

_MANY = 1 << 40
"""More members than there are."""
Terms = tuple[NodeTerm, ...] | None
Wants = tuple[Wanted, ...]
"""What the claims of one member want, the smallest first."""
Chosen = tuple[str, ...]
"""The volume for each of them, empty where one is provisioned."""


class VolumePool:
    """What is left of the cluster's volumes, none of which was taken at first."""

    def __init__(self, world: World, affinity: NodeAffinity) -> None:
        self._world = world
        self._affinity = affinity
        self._used: Counter[str] = Counter()
        self._shared: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self._taken: dict[tuple[Wants, int], list[Chosen]] = {}
        self._choices: dict[Wanted, Sequence[Volume]] = {}
        self._offers: dict[Wanted, dict[Terms, list[Volume]]] = {}
        self._by_row: dict[Wanted, dict[int, list[Terms]]] = {}
        self._lefts: dict[Terms, dict[Wanted, int]] = {}
        self._masks: dict[Terms, Mask] = {}

    def room(self, wants: Wants, rows: IntArray) -> IntArray:
        """For how many members the volumes suffice that are left, or are provisioned, on each row."""
        provisioned = self._provisioned(wants, rows)
        room: IntArray = np.where(provisioned.all(axis=0), _MANY, 0)
        shared = _shares(wants)
        if not shared and not any(map(self.offered, wants)):
            return room
        if len(wants) == 1 and not shared:
            return np.maximum(room, self._left_on(wants[0], rows))
        known: dict[Hashable, int] = {}
        for at, row in enumerate(rows.tolist()):
            # Rows with the same affinities share volumes.
            usable = tuple(tuple(self._here(wanted, row)) for wanted in wants)
            here = (usable, tuple(provisioned[:, at].tolist()), row if shared else -1)
            if here not in known:
                known[here] = self._members(wants, row)
            room[at] = known[here]
        return room

    def shortages(self, wants: Wants, rows: IntArray, lacking: Mask) -> Iterator[tuple[str, Mask]]:
        """For which claim one more member finds no volume on the rows that are `lacking` some, and what there is."""
        for wanted in wants[:-1]:
            alone = lacking & (self.room((wanted,), rows) == 0)
            yield self._shortage(wanted, rows[alone]), alone
            lacking = lacking & ~alone
        yield self._shortage(wants[-1], rows[lacking]), lacking

    def _shortage(self, wanted: Wanted, rows: IntArray) -> str:
        """The class, how many volumes that suffice are left for these rows, and where others are provisioned."""
        if self._settled(wanted) is not None:
            return f"{wanted.storage_class} for the shared claim {wanted.claim[1]}, which is settled elsewhere"
        told = []
        for terms, volumes in self._of_terms(wanted).items():
            if self._mask(terms)[rows].any():
                where = "" if terms is None else f" with {node_terms(terms)}"
                told.append(f"{self._left(wanted, terms)} of {len(volumes)} left{where}")
        storage = self._world.volumes.storage_class(wanted.storage_class)
        if storage is not None and storage.provisions and storage.topologies is not None:
            told.append(f"provisioned only with {node_terms(storage.topologies)}")
        return f"{wanted.storage_class} ({listed(sorted(told)) or 'none there that suffices'})"

    def take(self, wants: Wants, row: int, count: int) -> set[str]:
        """Take the best volumes for so many members. Returns them."""
        chosen: set[str] = set()
        for _ in range(count):
            # A pod that has to be counted there, though nothing is left, takes nothing.
            one = self._choose(wants, row) or ("",) * len(wants)
            self._push(wants, row, one)
            chosen.update(one)
        return chosen

    def taken(self, wants: Wants, row: int) -> Sequence[Chosen]:
        """What members took on the row, one after the other."""
        return self._taken[wants, row]

    def look(self) -> Hashable:
        """Equal while the same volumes are taken."""
        return frozenset(self._used.items())

    def choices(self, wants: Wants) -> Hashable:
        """The volumes for these, whoever takes them, and what is under way: equal while they are the same."""
        volumes = tuple(tuple(each.name for each in self.offered(wanted)) for wanted in wants)
        return volumes, frozenset(self._world.spoken_for)

    def offered(self, wanted: Wanted) -> Sequence[Volume]:
        """The volumes for it, used or not."""
        found = self._choices.get(wanted)
        if found is None:
            found = self._choices[wanted] = self._world.volumes.choices(wanted)
        return found

    def _provisioned(self, wants: Wants, rows: IntArray) -> Mask:
        """For each claim (by row of the array) on which of the rows a volume would be provisioned for it."""
        found: Mask = np.zeros((len(wants), len(rows)), dtype=np.bool_)
        for at, wanted in enumerate(wants):
            storage = self._world.volumes.storage_class(wanted.storage_class)
            if storage is not None and storage.provisions:
                terms = storage.topologies
                found[at] = True if terms is None else self._affinity.among(terms, rows)
        return found

    def _usable(self, volume: Volume, row: int) -> bool:
        return bool(self._mask(volume.node_affinity)[row])

    def _mask(self, terms: Terms) -> Mask:
        """The rows where volumes with this node affinity can be used."""
        mask = self._masks.get(terms)
        if mask is None:
            rows = np.arange(len(self._world.stock.names))
            everywhere: Mask = np.ones(len(rows), dtype=np.bool_)
            mask = self._masks[terms] = everywhere if terms is None else self._affinity.among(terms, rows)
        return mask

    def _of_terms(self, wanted: Wanted) -> dict[Terms, list[Volume]]:
        """The volumes offered for it, used or not, by node affinity; the best first."""
        found = self._offers.get(wanted)
        if found is None:
            found = self._offers[wanted] = {}
            for volume in self.offered(wanted):
                found.setdefault(volume.node_affinity, []).append(volume)
        return found

    def _here(self, wanted: Wanted, row: int) -> Sequence[Terms]:
        """The node affinities of volumes offered for it that can be used on the row."""
        by_row = self._by_row.get(wanted)
        if by_row is None:
            by_row = self._by_row[wanted] = {}
            for terms in self._of_terms(wanted):
                for each in np.flatnonzero(self._mask(terms)).tolist():
                    by_row.setdefault(each, []).append(terms)
        return by_row.get(row, ())

    def _left(self, wanted: Wanted, terms: Terms) -> int:
        """How many volumes of this node affinity are left for it."""
        known = self._lefts.setdefault(terms, {})
        if wanted not in known:
            known[wanted] = sum(self._is_free(volume, ()) for volume in self._of_terms(wanted)[terms])
        return known[wanted]

    def _left_on(self, wanted: Wanted, rows: IntArray) -> IntArray:
        """How many volumes are left for it on each of the rows."""
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
        """For how many members the row has volumes: found by taking them, which is then undone."""
        number = 0
        while (chosen := self._choose(wants, row)) is not None:
            fresh = any(chosen) and any(name and not self._used[name] for name in chosen)
            self._push(wants, row, chosen)
            number += 1
            if not fresh and (number > 1 or not _shares(wants)):
                # The next ones would take nothing either.
                for _ in range(number):
                    self.give_back(wants, row)
                return _MANY
        for _ in range(number):
            self.give_back(wants, row)
        return number

    def _choose(self, wants: Wants, row: int) -> Chosen | None:
        """The volumes for the next member on the row; None if they do not suffice."""
        provisioned = self._provisioned(wants, np.array([row], dtype=np.int64))[:, 0].tolist()
        chosen: list[str] = []
        for wanted, may_be_made in zip(wants, provisioned, strict=True):
            settled = self._settled(wanted)
            if settled is not None:
                if not self._is_there(settled, row):
                    return None
                chosen.append(settled[1])
                continue
            name = next((v.name for v in self.offered(wanted) if self._is_free(v, chosen) and self._usable(v, row)), "")
            if not name and not may_be_made:
                return None
            chosen.append(name)
        return tuple(chosen)

    def _best(self, wanted: Wanted, row: int, chosen: Sequence[str]) -> str:
        """The smallest volume on the row that is left; empty if none is."""
        offers = self._of_terms(wanted)
        firsts = (
            next((each for each in offers[terms] if self._is_free(each, chosen)), None)
            for terms in self._here(wanted, row)
            if self._left(wanted, terms)
        )
        return min(((each.size, each.name) for each in firsts if each is not None), default=(0, ""))[1]

    def _is_free(self, volume: Volume, chosen: Sequence[str]) -> bool:
        taken = ("PersistentVolume", "", volume.name) in self._world.spoken_for
        return not (self._used[volume.name] or volume.name in chosen or taken)

    def _settled(self, wanted: Wanted) -> tuple[int, str] | None:
        """The row (-1 for any) and the volume of a claim that several pods share, if another one has settled them."""
        if not wanted.claim[1]:
            return None
        if self._shared.get(wanted.claim):
            return self._shared[wanted.claim][-1]
        for prebinding in self._world.spoken_for.get(("PersistentVolumeClaim", *wanted.claim), {}).values():
            if isinstance(prebinding, ClaimVolume):
                return -1, prebinding.volume
            if isinstance(prebinding, SelectNode):
                return self._world.stock.names.index(prebinding.node), ""
        return None

    def _is_there(self, settled: tuple[int, str], row: int) -> bool:
        if not settled[1]:
            return settled[0] == row
        volume = self._world.volumes.volume(settled[1])
        return volume is not None and self._usable(volume, row)

    def _push(self, wants: Wants, row: int, chosen: Chosen) -> None:
        self._taken.setdefault((wants, row), []).append(chosen)
        self._used.update(filter(None, chosen))
        self._recount(chosen)
        for wanted, name in zip(wants, chosen, strict=True):
            if wanted.claim[1]:
                self._shared.setdefault(wanted.claim, []).append((row, name))

    def give_back(self, wants: Wants, row: int) -> Chosen:
        """Give back what the last member took on the row. Returns it."""
        chosen = self._taken[wants, row].pop()
        for wanted, name in zip(wants, chosen, strict=True):
            if name:
                self._used[name] -= 1
            if wanted.claim[1]:
                self._shared[wanted.claim].pop()
        self._used += Counter()
        self._recount(chosen)
        return chosen

    def _recount(self, chosen: Chosen) -> None:
        """What is left of these volumes has changed."""
        for name in filter(None, chosen):
            volume = self._world.volumes.volume(name)
            if volume is not None:
                self._lefts.pop(volume.node_affinity, None)

    def rows_of(self, wants: Wants, chosen: set[str]) -> IntArray | None:
        """The rows where members may find other volumes than before."""
        if _shares(wants):
            return np.arange(len(self._world.stock.names))
        found = [volume for name in chosen if name and (volume := self._world.volumes.volume(name)) is not None]
        if not found:
            return None
        changed: Mask = np.zeros(len(self._world.stock.names), dtype=np.bool_)
        for terms in {volume.node_affinity for volume in found}:
            changed |= self._mask(terms)
        return np.flatnonzero(changed)


def _shares(wants: Wants) -> bool:
    """Whether several pods use one of the claims."""
    return any(wanted.claim[1] for wanted in wants)
