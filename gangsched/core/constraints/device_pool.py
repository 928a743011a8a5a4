"""The devices that members placed on one snapshot take for claims that have none yet.

Members take devices one after another, each the first that kube-scheduler would find for it. If nothing is left for a
member that way, the members that are planned already choose again, together with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from gangsched.core.constraints.allocation import allocate
from gangsched.core.constraints.candidates import Candidates, Errand
from gangsched.core.constraints.constraint import World
from gangsched.core.constraints.device_offers import Pool
from gangsched.core.constraints.device_supply import DeviceSupply
from gangsched.core.constraints.device_usage import DeviceUsage, FreedClaims
from gangsched.core.constraints.device_wishes import OWN, Stay, Wish, Wishes, by_kind, filled, remove, taking
from gangsched.core.constraints.naming import listed, taint
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.pending import Pending
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.devices import MOST_RESERVED, Allocation, DeviceRequest, DeviceWishes, ResourceClaim
from gangsched.core.objects.offered_devices import DeviceTaint, ObjectKey
from gangsched.core.objects.prebindings import Taken, UseDevices

_MANY = 1 << 40
"""Stands for no limit: more members than any gang has."""
_NO_SHARERS: Counter[str] = Counter()
_NOTHING_MORE = Allocation(())
"""What a member takes of a claim that has its devices already."""


class DevicePool:
    """The devices that members take on one snapshot.

    `usage` is what is taken, `_stays` the members in the order in which they took it, `_on_row` those of each row.
    `_freed` are the claims that nobody uses since pods of the cluster have left.
    `_shared` holds the allocations of claims that several pods use, one for each member, `_sharers` the members by the
    PodGroup that reserves it for them, and `_reserved` what else has reserved such a claim or is about to. `_known`
    caches the room of nodes by wishes and devices. `unsure` are the wishes for which a search for room was cut short.
    """

    def __init__(self, world: World, affinity: NodeAffinity, supply: DeviceSupply) -> None:
        self.unsure: set[Wishes] = set()
        self._world = world
        self._affinity = affinity
        self._supply = supply
        self._pending = Pending(world.pending_prebindings)
        self._usage = DeviceUsage(world.devices, self._pending)
        self._freed = FreedClaims(world.devices)
        self._shared: dict[ObjectKey, list[Allocation]] = {}
        self._stays: list[Stay] = []
        self._on_row: dict[int, list[Stay]] = {}
        self._known: dict[Hashable, int] = {}
        self._sharers: dict[ObjectKey, Counter[str]] = {}
        self._reserved: dict[ObjectKey, set[str]] = {}

    def taken(self, wishes: Wishes, row: int) -> Sequence[tuple[Allocation, ...]]:
        """The allocations of the members on the row, in order."""
        return [stay.allocations for stay in self._on_row.get(row, ()) if stay.wishes == wishes]

    def digest(self) -> Hashable:
        """A digest of the devices taken, and by whom."""
        return self._usage.digest(), frozenset(Counter((stay.wishes, stay.row) for stay in self._stays).items())

    def recount(self, users: Mapping[str, Sequence[ResourceClaim]], preparing: Collection[str], sign: int) -> None:
        """Count these pods of the cluster, with the claims that end with them, again (1), or no longer (-1)."""
        self._pending.recount(preparing, sign)
        self._usage.recount(self._freed.recount(users, sign))
        self._reserved.clear()
        self._known.clear()

    @property
    def pending(self) -> Collection[Taken]:
        """What pre-bindings under way take."""
        return self._pending.by_taken

    def room(self, wishes: Wishes, rows: IntArray) -> IntArray:
        """The number of members for which each row has devices, computed once for rows with equivalent devices."""
        if not any(wish.wishes.requests for wish in wishes):
            # No devices are asked for, only a share of claims that have theirs.
            return np.full(len(rows), max(0, self.sharers(wishes)), dtype=np.int64)
        if any(wish.claim != OWN for wish in wishes):
            return np.array([self._members(wishes, row) for row in rows.tolist()], dtype=np.int64)
        numbers: list[int] = []
        for row in rows.tolist():
            alike = (wishes, self._alike(wishes, row))
            if alike not in self._known:
                self._known[alike] = self._members(wishes, row)
            numbers.append(self._known[alike])
        return np.array(numbers, dtype=np.int64)

    def _alike(self, wishes: Wishes, row: int) -> Hashable:
        """All properties of the row's devices that the search considers, and the members that may choose again."""
        offers = self._supply.offers(row)
        if not offers.devices:
            return ()
        involved = self._involved(row)
        wished = dict.fromkeys(wish for theirs in (wishes, *(stay.wishes for stay in involved)) for wish in theirs)
        asked = {match.attribute for wish in wished for match in wish.wishes.matches}
        pools: dict[int, int] = {}
        devices = []
        for offer in offers.devices:
            device = offer.device
            values = tuple(attribute for attribute in device.attributes if attribute.name in asked) if asked else ()
            pool = pools.setdefault(id(offer.pool), len(pools)) if device.counters else -1
            traits = device.taints, device.counters, device.multiple, device.shares
            devices.append((values, traits, pool, self._usage.state(offer.key)))
        counters = {id(offer.pool): offer.pool for offer in offers.devices if offer.device.counters}
        left = tuple((tuple(sorted(pool.counters.items())), self._drawn(pool)) for pool in counters.values())
        requests = (request for wish in wished for request in wish.wishes.every)
        selected = tuple(self._supply.selected(request, row) for request in requests)
        others = tuple((stay.wishes, stay.row if self._supply.shared else 0) for stay in involved)
        return offers.whole, tuple(devices), left, selected, others

    def _drawn(self, pool: Pool) -> Hashable:
        return tuple(sorted(self._usage.drawn(pool).items()))

    def _members(self, wishes: Wishes, row: int) -> int:
        """The number of members for which the row has devices, found by taking the devices and giving them back."""
        number, most = 0, self._most_pods(row)
        while (number < most or self._stays[-1].whole) and self.push(wishes, row):
            number += 1
            if not (self._stays[-1].own or self._stays[-1].before):
                # Further members would take no devices of their own either: they share, or have admin access.
                for _ in range(number):
                    self.pop(wishes, row)
                return max(number, self.sharers(wishes))
        for _ in range(number):
            self.pop(wishes, row)
        return number

    def _most_pods(self, row: int) -> int:
        """The pods that the row's node may have: there may be shares for more without limit, which are not counted."""
        column = self._world.stock.column("pods")
        return _MANY if column is None else int(self._world.stock.allocatable[row, column])

    def shortage(self, wishes: Wishes, rows: IntArray) -> str:
        """The requests of one more member, each with the most devices for it that any of these rows has left."""
        asks: list[str] = []
        for wish in wishes:
            if wish.claim != OWN and self._left(wish) <= 0:
                asks.append(f"a share of the ResourceClaim {wish.claim[1]} (at most {MOST_RESERVED} pods may have one)")
                continue
            asks += [" or ".join(self._asked(request, rows) for request in either) for either in wish.wishes.requests]
            asks += [
                f"each with another {match.attribute}" if match.distinct else f"all with the same {match.attribute}"
                for match in wish.wishes.matches
            ]
        return ", ".join(dict.fromkeys(asks))

    def _asked(self, request: DeviceRequest, rows: IntArray) -> str:
        free, kept, beside = 0, list[DeviceTaint](), ""
        for row in rows.tolist():
            errand = self._errand(DeviceWishes(((request,),)), row)
            candidates = Candidates([errand], self._usage)
            free = max(free, candidates.left(0, request))
            kept = max(kept, candidates.kept_out(0, request), key=len)
            beside = beside if errand.offers.whole else ", where a pool is incomplete"
        if kept:
            shown = listed(list(dict.fromkeys(map(taint, kept))))
            beside += f", and {len(kept)} with a taint that is not tolerated: {shown}"
        number = "all" if request.all else request.count
        left = f"(at most {free} left on a node{beside})"
        return f"{number} of DeviceClass {request.device_class} for request {request.name} {left}"

    def sharers(self, wishes: Wishes) -> int:
        """The number of pods that may still be added to the users of these claims."""
        return min((self._left(wish) for wish in wishes if wish.claim != OWN), default=_MANY)

    def _left(self, wish: Wish) -> int:
        """How many pods may still use the claim; those of a PodGroup need only one reservation."""
        claim = wish.claim
        if claim not in self._reserved:
            known = self._world.devices.claim(claim)
            pending = self._pending.by_taken.get(("ResourceClaim", *claim), {}).values()
            asking = {prebinding.consumer.uid for prebinding in pending if isinstance(prebinding, UseDevices)}
            self._reserved[claim] = asking.union(known.reserved if known is not None else ()) - self._freed.gone
        reserved, sharers = self._reserved[claim], self._sharers.get(claim, _NO_SHARERS)
        groups = {uid for uid, number in sharers.items() if uid and number} - reserved
        left = MOST_RESERVED - len(reserved) - sharers[""] - len(groups)
        shares = wish.group and (left > 0 or wish.group in reserved or wish.group in groups)
        return _MANY if shares else left

    def _settled(self, claim: ObjectKey) -> Allocation | None:
        """The devices of a claim that several pods use, if another member or pod has settled them."""
        if claim == OWN:
            return None
        if claim not in self._freed and self._world.devices.is_allocated(claim):
            return _NOTHING_MORE
        if self._shared.get(claim):
            return self._shared[claim][-1]
        asked = self._pending.by_taken.get(("ResourceClaim", *claim), {}).values()
        return next((prebinding.allocation for prebinding in asked if isinstance(prebinding, UseDevices)), None)

    # Taking devices

    def push(self, wishes: Wishes, row: int, *, must: bool = False) -> bool:
        """Take devices for the next member on the row. False if there are not enough; if it `must`, it takes none."""
        settled = [self._settled(wish.claim) for wish in wishes]
        stay = Stay(wishes, row, ())
        if self._may(wishes, row, settled) and self._find(stay, settled):
            return True
        if must:
            self._enter(stay)
        return must

    def _may(self, wishes: Wishes, row: int, settled: Sequence[Allocation | None]) -> bool:
        """Whether the row can use what is settled of the member's claims, and one more pod may share them."""
        here = np.array([row], dtype=np.int64)
        affinities = [known.node_affinity for known in settled if known is not None and known.node_affinity is not None]
        return self.sharers(wishes) > 0 and all(self._affinity.among(terms, here)[0] for terms in affinities)

    def _find(self, stay: Stay, settled: Sequence[Allocation | None]) -> bool:
        open_ = [wish.wishes for wish, known in zip(stay.wishes, settled, strict=True) if known is None]
        outcome = allocate([self._errand(wishes, stay.row) for wishes in open_], self._usage)
        if outcome.allocations is not None:
            stay.allocations, stay.own = filled(settled, outcome.allocations), taking(outcome.allocations)
            self._enter(stay)
            return True
        others = self._involved(stay.row)
        if others:
            return self._choose_again(others, stay, settled)
        if not outcome.certain:
            self.unsure.add(stay.wishes)
        return False

    def _involved(self, row: int) -> list[Stay]:
        """The members that could leave devices to another one on the row by choosing others."""
        stays = self._stays if self._supply.shared else self._on_row.get(row, ())
        return [stay for stay in stays if stay.allocations]

    def _choose_again(self, others: list[Stay], stay: Stay, settled: Sequence[Allocation | None]) -> bool:
        """Have these members and the new one choose devices together."""
        free = [member for member in others if all(wish.claim == OWN for wish in member.wishes)]
        for member in free:
            self._count(member.allocations, -1)
        members = by_kind([*free, stay])
        kept = {id(member): settled if member is stay else [None] * len(member.wishes) for member in members}
        outcome = allocate(self._errands(members, kept), self._usage)
        for member in free:
            self._count(member.allocations, 1)
        if outcome.allocations is None:
            if len(free) < len(others) or not outcome.certain:
                self.unsure.add(stay.wishes)
            return False
        stay.before = [(member, member.allocations) for member in free]
        fresh = iter(outcome.allocations)
        for member in members:
            own = tuple(next(fresh) for known in kept[id(member)] if known is None)
            self._count(member.allocations, -1)
            member.allocations, member.own = filled(kept[id(member)], own), taking(own)
            if member is not stay:
                self._count(member.allocations, 1)
        self._enter(stay)
        return True

    def _errands(self, members: Sequence[Stay], kept: Mapping[int, Sequence[Allocation | None]]) -> list[Errand]:
        errands: list[Errand] = []
        first: dict[tuple[Wishes, int], int] = {}
        for member in members:
            open_ = [wish for wish, known in zip(member.wishes, kept[id(member)], strict=True) if known is None]
            after = first.get((member.wishes, member.row))
            if open_:
                first[member.wishes, member.row] = len(errands)
            for at, wish in enumerate(open_):
                errands.append(self._errand(wish.wishes, member.row, after=None if at else after))
        return errands

    def _errand(self, wishes: DeviceWishes, row: int, *, after: int | None = None) -> Errand:
        def selected(request: DeviceRequest) -> Sequence[int]:
            return self._supply.selected(request, row)

        return Errand(wishes, self._supply.offers(row), selected, self._world.stock.names[row], after)

    def _enter(self, stay: Stay) -> None:
        self._stays.append(stay)
        self._on_row.setdefault(stay.row, []).append(stay)
        for wish, allocation in zip(stay.wishes, stay.allocations, strict=False):
            if wish.claim != OWN:
                self._shared.setdefault(wish.claim, []).append(allocation)
                self._sharers.setdefault(wish.claim, Counter())[wish.group] += 1
        self._count(stay.allocations, 1)

    def _count(self, allocations: Sequence[Allocation], sign: int) -> None:
        for allocation in allocations:
            self._usage.add(allocation, sign)

    def pop(self, wishes: Wishes, row: int) -> None:
        """Give back the devices of the last member with these wishes on the row.

        If it was the last of all, the members that chose again for it get back what they had.
        """
        stay = next(other for other in reversed(self._on_row[row]) if other.wishes == wishes)
        is_last = self._stays[-1] is stay
        remove(stay, self._stays)
        remove(stay, self._on_row[row])
        for wish, allocation in zip(stay.wishes, stay.allocations, strict=False):
            if wish.claim != OWN:
                self._shared[wish.claim].remove(allocation)
                self._sharers[wish.claim][wish.group] -= 1
        self._count(stay.allocations, -1)
        if not is_last:
            for other in self._stays:
                other.before = []
            return
        for other, allocations in stay.before:
            self._count(other.allocations, -1)
            other.allocations = allocations
            self._count(other.allocations, 1)

    def elsewhere(self, wishes: Wishes) -> IntArray | None:
        """The rows, besides that where devices were taken, whose devices may have changed; None if there are none."""
        if self._supply.shared or any(wish.claim != OWN for wish in wishes):
            return np.arange(len(self._world.stock.names))
        return None
