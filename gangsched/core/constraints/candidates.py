"""The devices that each request of a search may get, which cannot be told apart, and whether they are too few."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from msgspec import Struct

from gangsched.core.constraints.device_offers import Offer, Offers
from gangsched.core.constraints.device_usage import DeviceUsage, fits, share
from gangsched.core.constraints.taint_toleration import KEEPING_OUT
from gangsched.core.objects.devices import DeviceRequest, DeviceWishes, Match
from gangsched.core.objects.offered_devices import CounterKey, Device, DeviceKey, DeviceTaint
from gangsched.core.objects.shape import Toleration

Selected = Callable[[DeviceRequest], Sequence[int]]
"""A function that returns the offers, by number, that a request and its class select."""
_MANY = 1 << 40
_Needs = list[tuple[int, frozenset[DeviceKey]]]


class Errand(Struct, frozen=True):
    """One claim to be allocated, on one node with these offers.

    `after` is the first claim, by its number in the search, of an earlier member that asks for the same.
    """

    wishes: DeviceWishes
    offers: Offers
    selected: Selected
    node: str = ""
    after: int | None = None


class Candidates:
    """The devices for each request of these claims, with what `usage` says is taken."""

    def __init__(self, errands: Sequence[Errand], usage: DeviceUsage) -> None:
        self._errands = errands
        self._usage = usage
        self._possible: dict[tuple[int, DeviceRequest], Sequence[int]] = {}
        self._slots: dict[DeviceKey, int] = {}
        self._kinds: dict[DeviceKey, Hashable] | None = None

    def of(self, claim: int, request: DeviceRequest) -> Sequence[int]:
        """The claim's offers, by number, that the request may get; of a request for all also those it cannot have.

        So a request for all fails as soon as one of its devices is taken, or what it needs of a shared one is.
        """
        errand = self._errands[claim]
        at = id(errand.offers), request
        if at not in self._possible:
            devices = errand.offers.devices
            self._possible[at] = [number for number in errand.selected(request) if self._may(request, devices[number])]
        return self._possible[at]

    def _may(self, request: DeviceRequest, offer: Offer) -> bool:
        if not request.all and not (
            usable(offer.device, request) and (request.admin or not self._usage.held(offer.key))
        ):
            return False
        if not (offer.device.multiple or request.capacity):
            return True
        taken, before = share(request, offer.device), () if request.all else self._usage.shared(offer.key)
        return taken is not None and fits(taken, offer.device, *before)

    def left(self, claim: int, request: DeviceRequest) -> int:
        """The number of devices that the request could get, each alone."""
        return sum(self._is_left(request, self._errands[claim].offers.devices[at]) for at in self.of(claim, request))

    def kept_out(self, claim: int, request: DeviceRequest) -> list[DeviceTaint]:
        """A taint of each device that nobody has and that the request would get if it tolerated its taints."""
        errand = self._errands[claim]
        idle = [errand.offers.devices[at] for at in errand.selected(request)]
        kept = [_closing(offer.device, request) for offer in idle if not self._usage.held(offer.key)]
        return [taints[0] for taints in kept if taints]

    def _is_left(self, request: DeviceRequest, offer: Offer) -> bool:
        if not usable(offer.device, request) or not (request.admin or not self._usage.held(offer.key)):
            return False
        drawn, left = self._least_drawn([offer]), dict(self._counters_left([offer]))
        return bool(self._usage.shared(offer.key)) or all(size <= left[counter] for counter, size in drawn.items())

    # Devices that cannot be told apart

    def kind(self, offer: Offer) -> Hashable:
        """Equal for devices that no request of the search can tell apart, and of which the same is taken."""
        if self._kinds is None:
            self._kinds = self._told_apart()
        return self._kinds.get(offer.key)

    def _told_apart(self) -> dict[DeviceKey, Hashable]:
        asked = {match.attribute for errand in self._errands for match in errand.wishes.matches}
        lists: dict[DeviceKey, list[int]] = {}
        offers: dict[DeviceKey, Offer] = {}
        seen: set[tuple[int, DeviceRequest]] = set()
        for claim, request in self._requests():
            at = id(self._errands[claim].offers), request
            if at not in seen:
                seen.add(at)
                for number in self.of(claim, request):
                    offer = self._errands[claim].offers.devices[number]
                    offers[offer.key] = offer
                    lists.setdefault(offer.key, []).append(len(seen))
        return {key: self._traits(offer, asked, tuple(lists[key])) for key, offer in offers.items()}

    def _traits(self, offer: Offer, asked: set[str], lists: tuple[int, ...]) -> Hashable:
        device = offer.device
        values = tuple(attribute for attribute in device.attributes if attribute.name in asked)
        pool = id(offer.pool) if device.counters else 0
        return lists, values, device.counters, pool, device.shares, device.multiple, self._usage.state(offer.key)

    # Bounds

    def too_few(self) -> bool:
        """Whether the requests need more devices, or more of some counter, than there can be, however they are chosen.

        A False proves nothing.
        """
        needs: _Needs = []
        draws: dict[tuple[int, CounterKey], int] = {}
        left: dict[tuple[int, CounterKey], int] = {}
        for claim, errand in enumerate(self._errands):
            for alternatives in errand.wishes.requests:
                if any(request.all or request.admin for request in alternatives):
                    continue
                numbers = {number for request in alternatives for number in self.of(claim, request)}
                offers = [errand.offers.devices[number] for number in numbers]
                count = min(request.count for request in alternatives)
                needs.append((count, frozenset(offer.key for offer in offers)))
                self._note_slots(offers, alternatives)
                for counter, amount in self._least_drawn(offers).items():
                    draws[counter] = draws.get(counter, 0) + count * amount
                left.update(self._counters_left(offers))
        return any(amount > left.get(counter, 0) for counter, amount in draws.items()) or self._crowded(needs)

    def _crowded(self, needs: _Needs) -> bool:
        """Whether requests that must share some devices need more of them than there are."""
        among = {keys for _, keys in needs}
        among.add(frozenset().union(*among))
        for keys in among:
            if sum(count for count, own in needs if own <= keys) > sum(self._slots[key] for key in keys):
                return True
        return False

    def _note_slots(self, offers: Sequence[Offer], alternatives: Sequence[DeviceRequest]) -> None:
        """How many requests at most may get each device: one as a whole, or as many as there are shares left."""
        for offer in offers:
            most = max(self._shares_left(offer, request) for request in alternatives) if offer.device.multiple else 1
            self._slots[offer.key] = max(self._slots.get(offer.key, 0), most)

    def _shares_left(self, offer: Offer, request: DeviceRequest) -> int:
        taken = share(request, offer.device)
        if taken is None:
            return 0
        before = self._usage.shared(offer.key)
        size = {capacity.name: capacity.value for capacity in offer.device.shares}
        left = (
            (size[name] - sum(shares.get(name, 0) for shares in before)) // amount if amount > 0 else _MANY
            for name, amount in taken
        )
        return min(left, default=_MANY)

    def _least_drawn(self, offers: Sequence[Offer]) -> dict[tuple[int, CounterKey], int]:
        """What a request takes of each counter, whichever of these devices it gets."""
        least: dict[tuple[int, CounterKey], int] | None = None
        for offer in offers:
            drawn = (
                {} if offer.device.multiple else {(id(offer.pool), key): size for key, size in offer.device.counters}
            )
            least = (
                drawn if least is None else {key: min(least[key], drawn[key]) for key in least.keys() & drawn.keys()}
            )
        return least or {}

    def _counters_left(self, offers: Sequence[Offer]) -> Iterator[tuple[tuple[int, CounterKey], int]]:
        for pool in {offer.pool for offer in offers if offer.device.counters}:
            drawn = self._usage.drawn(pool)
            for counter, amount in pool.counters.items():
                yield (id(pool), counter), amount - drawn.get(counter, 0)

    def _requests(self) -> Iterator[tuple[int, DeviceRequest]]:
        for claim, errand in enumerate(self._errands):
            for request in errand.wishes.every:
                yield claim, request


def applies(match: Match, request: DeviceRequest) -> bool:
    """Whether the match is for this request, or for the request of which it is an alternative."""
    return not match.requests or not {request.name, request.name.partition("/")[0]}.isdisjoint(match.requests)


def usable(device: Device, request: DeviceRequest) -> bool:
    """Whether the device has no taint that the request does not tolerate."""
    return not device.taints or not _closing(device, request)


def _closing(device: Device, request: DeviceRequest) -> list[DeviceTaint]:
    closing = (taint for taint in device.taints if taint.effect in KEEPING_OUT)
    return [taint for taint in closing if not any(_tolerates(toleration, taint) for toleration in request.tolerations)]


def _tolerates(toleration: Toleration, taint: DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("", "Equal") and toleration.value == taint.value)
