"""Allocates devices to claims: the first solution of an exhaustive search.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating at v1.37.2, the allocator that the default
features select. Claims, requests and alternatives are tried in order, devices in the order of pools,
slices and the list in the slice. Beyond that, devices that cannot be told apart are tried once, and claims of several
members can be allocated together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from msgspec import Struct

from gangsched.core.constraints.candidates import Candidates, Errand, applies, usable
from gangsched.core.constraints.device_offers import Offer
from gangsched.core.constraints.device_usage import DeviceUsage, fits, share
from gangsched.core.objects.devices import MOST_DEVICES, AllocatedDevice, Allocation, Amounts, DeviceRequest, Match
from gangsched.core.objects.offered_devices import CounterKey, Device, DeviceKey
from gangsched.core.objects.shape import NodeTerm, Requirement

MOST_STEPS = 20_000
"""Limit for the number of devices tried in one search."""
_SOON = 64
"""Limit for the number of devices tried before it is found out whether there can be enough."""
MOST_ERRANDS = 48
"""Limit for the number of claims in one search, whose depth grows with it."""


class Outcome(Struct, frozen=True):
    """An allocation for each claim, in order; None if there is none. Then `certain` says whether that is proven."""

    allocations: tuple[Allocation, ...] | None
    certain: bool = True


def allocate(errands: Sequence[Errand], usage: DeviceUsage, *, steps: int = MOST_STEPS) -> Outcome:
    """Devices for each of the claims, with what `usage` says is taken already.

    A request for all devices needs every pool of its node to be whole, and the devices must satisfy the claim's matches
    together.
    """
    candidates = Candidates(errands, usage)
    if any(map(_waits_for_pools, errands)):
        return Outcome(None)
    if len(errands) > MOST_ERRANDS:
        return Outcome(None, certain=candidates.too_few())
    # Most searches end soon, and for the others it is worth finding out whether they can succeed at all.
    soon = _searched(errands, candidates, usage, min(steps, _SOON))
    if soon.certain:
        return soon
    return Outcome(None) if candidates.too_few() else _searched(errands, candidates, usage, steps)


def _searched(errands: Sequence[Errand], candidates: Candidates, usage: DeviceUsage, steps: int) -> Outcome:
    search = _Search(errands, candidates, usage, steps)
    try:
        for _ in search.claims(0):
            return Outcome(tuple(map(search.allocation, range(len(errands)))))
    except _Contradiction:
        pass
    return Outcome(None, certain=search.left > 0)


def _waits_for_pools(errand: Errand) -> bool:
    return not errand.offers.whole and any(request.all for request in errand.wishes.every)


class _Contradiction(Exception):  # noqa: N818 - the end of a search, as in kube-scheduler, and no error
    """A request asks for all devices, and one of them breaks a match."""


class _Pick(Struct, frozen=True):
    """A device chosen for a request, with what it takes of its capacities; `draws`: it takes counters of its pool."""

    request: DeviceRequest
    offer: Offer
    taken: Amounts
    draws: bool


class _Search:
    """The state of the search. `left` is the number of devices that may still be tried.

    `_picks` are the devices for each claim. `_holders` are the claims that have a device as a whole, `_shares` what is
    taken of other devices, `_drawn` what is drawn from the counters of each pool, by its driver and name: nodes may see
    different parts of one pool. `_values` are the values of each match by
    claim. `_first` is each claim's first choice: alternative and number of the device.
    """

    def __init__(self, errands: Sequence[Errand], candidates: Candidates, usage: DeviceUsage, steps: int) -> None:
        self.left = steps
        self._errands = errands
        self._candidates = candidates
        self._usage = usage
        self._picks: list[list[_Pick]] = [[] for _ in errands]
        self._first: list[tuple[int, int]] = [(0, 0) for _ in errands]
        self._holders: dict[DeviceKey, list[int]] = {}
        self._shares: dict[DeviceKey, list[Amounts]] = {}
        self._drawn: Counter[tuple[str, str, CounterKey]] = Counter()
        self._values: dict[tuple[int, Match], list[Hashable]] = {}

    def claims(self, at: int) -> Iterator[None]:
        """Yield for each way to give all claims from this one on their devices."""
        if at == len(self._errands):
            yield None
        else:
            yield from self._requests(at, 0)

    def allocation(self, at: int) -> Allocation:
        """The allocation of the claim in the current solution."""
        errand, picks = self._errands[at], self._picks[at]
        return Allocation(tuple(map(_allocated, picks)), _usable_on([pick.offer for pick in picks], errand.node))

    def _requests(self, claim: int, at: int) -> Iterator[None]:
        requests = self._errands[claim].wishes.requests
        if at == len(requests):
            yield from self.claims(claim + 1)
            return
        for which, request in enumerate(requests[at]):
            numbers = self._candidates.of(claim, request)
            count = len(numbers) if request.all else request.count
            if request.all and not numbers:
                continue
            if len(self._picks[claim]) + count > MOST_DEVICES:
                continue
            if not at:
                self._first[claim] = (which, 0)
            yield from self._pick(claim, at, request, numbers, count)

    def _pick(self, claim: int, at: int, request: DeviceRequest, numbers: Sequence[int], count: int) -> Iterator[None]:
        """Yield for each combination of `count` of the devices that the request can have."""
        if not count:
            yield from self._requests(claim, at + 1)
            return
        errand = self._errands[claim]
        failed: set[Hashable] = set()
        for place in range(len(numbers) - count + 1):
            offer = errand.offers.devices[numbers[place]]
            if failed and self._kind(offer) in failed:
                continue
            if not self._picks[claim]:
                # Members that ask for the same are interchangeable: a later one never chooses before an earlier one.
                first = self._first[claim] = (self._first[claim][0], numbers[place])
                if errand.after is not None and first < self._first[errand.after]:
                    continue
            self.left -= 1
            if self.left <= 0:
                return
            if self._take(claim, request, offer):
                yield from self._pick(claim, at, request, numbers[place + 1 :], count - 1)
                self._give_back(claim)
            if request.all:
                return
            failed.add(self._kind(offer))

    def _kind(self, offer: Offer) -> Hashable:
        """Equal for devices either of which leaves the search the same choices."""
        shares, holders = self._shares.get(offer.key), self._holders.get(offer.key)
        return self._candidates.kind(offer), tuple(shares or ()), tuple(holders or ())

    def _take(self, claim: int, request: DeviceRequest, offer: Offer) -> bool:
        key, device = offer.key, offer.device
        holders = self._holders.get(key, ())
        busy = claim in holders if request.admin else bool(holders) or self._usage.held(key)
        if busy or not usable(device, request):
            return False
        taken = share(request, device) if device.multiple or request.capacity else ()
        if taken is None or (not request.all and not self._has(device, key, taken)):
            return False
        draws = bool(device.counters) and not (device.multiple and self._is_shared(key))
        if draws and not self._draws(offer):
            return False
        values = self._matching(claim, request, device)
        if values is None and request.all:
            raise _Contradiction
        # Like kube-scheduler: all devices have to satisfy the matches, whether or not they have capacity left.
        if values is None or (request.all and not self._has(device, key, taken)):
            return False
        for match, value in values:
            self._values.setdefault((claim, match), []).append(value)
        if device.multiple:
            self._shares.setdefault(key, []).append(taken)
        else:
            self._holders.setdefault(key, []).append(claim)
        if draws:
            self._draw(offer, 1)
        self._picks[claim].append(_Pick(request, offer, taken, draws))
        return True

    def _give_back(self, claim: int) -> None:
        pick = self._picks[claim].pop()
        offer = pick.offer
        by_key = self._shares if offer.device.multiple else self._holders
        by_key[offer.key].pop()
        if not by_key[offer.key]:
            del by_key[offer.key]
        if pick.draws:
            self._draw(offer, -1)
        for match in self._errands[claim].wishes.matches:
            if applies(match, pick.request):
                self._values[claim, match].pop()

    # Capacities and counters

    def _has(self, device: Device, key: DeviceKey, taken: Amounts) -> bool:
        here: Counter[str] = Counter()
        for amounts in self._shares.get(key, ()):
            here.update(dict(amounts))
        return fits(taken, device, here, *self._usage.shared(key))

    def _is_shared(self, key: DeviceKey) -> bool:
        """Whether some request has a share of the device, so that its counters are drawn already."""
        return key in self._shares or bool(self._usage.shared(key))

    def _draws(self, offer: Offer) -> bool:
        """Whether the device's pool has its counters left. A pool of which too much was allocated gives nothing."""
        pool, drawn = offer.pool, self._usage.drawn(offer.pool)
        if any(drawn[counter] > pool.counters.get(counter, 0) for counter in drawn):
            return False
        asked: Counter[CounterKey] = Counter()
        for counter, amount in offer.device.counters:
            asked[counter] += amount
        return all(
            amount + drawn.get(counter, 0) + self._drawn[*offer.key[:2], counter] <= pool.counters.get(counter, 0)
            for counter, amount in asked.items()
        )

    def _draw(self, offer: Offer, sign: int) -> None:
        for counter, amount in offer.device.counters:
            self._drawn[*offer.key[:2], counter] += sign * amount

    # Matches

    def _matching(self, claim: int, request: DeviceRequest, device: Device) -> Sequence[tuple[Match, Hashable]] | None:
        """The device's value of each match of the claim that is for the request; None if it does not satisfy one."""
        values: list[tuple[Match, Hashable]] = []
        for match in self._errands[claim].wishes.matches:
            if applies(match, request):
                value = next((attribute for attribute in device.attributes if attribute.name == match.attribute), None)
                if value is None or not self._agrees(claim, match, value):
                    return None
                values.append((match, value))
        return values

    def _agrees(self, claim: int, match: Match, value: Hashable) -> bool:
        known = self._values.get((claim, match), ())
        return value not in known if match.distinct else not known or known[0] == value


def _allocated(pick: _Pick) -> AllocatedDevice:
    request, device = pick.request, pick.offer.device
    return AllocatedDevice(
        request.name,
        pick.offer.key,
        request.admin,
        shared=device.multiple,
        consumed=pick.taken if device.multiple else (),
        binding=device.binding,
        failing=device.failing,
    )


def _usable_on(offers: Sequence[Offer], node: str) -> tuple[NodeTerm, ...] | None:
    """The node terms where all these devices, allocated for the node, can be used; None for everywhere.

    A slice or device has at most one term; the API server enforces that.
    """
    if any(_local(offer) or offer.device.binds_to_node for offer in offers):
        return (NodeTerm(fields=(Requirement("metadata.name", "In", (node,)),)),)
    places = [offer.device if offer.part.per_device else offer.part for offer in offers]
    terms = [term for place in places for term in place.node_affinity or ()]
    if not terms:
        return None
    return (
        NodeTerm(
            tuple(dict.fromkeys(requirement for term in terms for requirement in term.expressions)),
            tuple(dict.fromkeys(requirement for term in terms for requirement in term.fields)),
        ),
    )


def _local(offer: Offer) -> bool:
    return bool(offer.device.node if offer.part.per_device else offer.part.node)
