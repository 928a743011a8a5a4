"""Allocates devices of a node to the claims of one member: the first solution of an exhaustive search.

Source: k8s.io/dynamic-resource-allocation/structured at v1.36.3. Claims, requests and alternatives are tried in order,
devices in the order of pools, slices and the list in the slice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from gangsched.core.objects.devices import (
    MOST_DEVICES,
    AllocatedDevice,
    Allocation,
    Device,
    DeviceKey,
    DeviceRequest,
    DeviceTaint,
    DeviceWishes,
    Match,
    ResourceSlice,
)
from gangsched.core.objects.shape import NodeTerm, Requirement, Toleration

MOST_STEPS = 20_000
"""Limit for the number of devices tried for one member on one node; beyond it the node counts as short of devices."""

Selected = Callable[[DeviceRequest], Sequence[int]]
"""A function that returns the offers, by number, that a request and its class select."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A device that can be used on a node, and the slice that lists it."""

    key: DeviceKey
    device: Device
    part: ResourceSlice


@dataclass(frozen=True, slots=True)
class Offers:
    """All devices that can be used on a node. `whole`: no pool there is incomplete or contradicts itself."""

    devices: tuple[Offer, ...] = ()
    whole: bool = True


def allocate(
    wishes: Sequence[DeviceWishes], offers: Offers, *, selected: Selected, in_use: Callable[[DeviceKey], bool]
) -> tuple[Allocation, ...] | None:
    """An allocation for each of the claims of one member; None if there are not enough devices.

    A request for all devices needs every pool to be whole, and the devices must satisfy the claim's matches together.
    """
    requests = [each for wish in wishes for alternatives in wish.requests for each in alternatives]
    if not offers.whole and any(request.all for request in requests):
        return None
    search = _Search(wishes, offers, selected, in_use)
    try:
        for _ in search.claims(0):
            return tuple(map(search.allocation, range(len(wishes))))
    except _Contradiction:
        pass
    return None


class _Contradiction(Exception):  # noqa: N818 - the end of a search, as in kube-scheduler, and no error
    """A request asks for all devices, and one of them breaks a match."""


class _Search:
    """The state of the search.

    `_chosen` are the devices for each claim. `_values` are the values of each match by claim, one for each device.
    """

    def __init__(
        self,
        wishes: Sequence[DeviceWishes],
        offers: Offers,
        selected: Selected,
        in_use: Callable[[DeviceKey], bool],
    ) -> None:
        self._wishes = wishes
        self._offers = offers
        self._selected = selected
        self._in_use = in_use
        self._chosen: list[list[tuple[DeviceRequest, Offer]]] = [[] for _ in wishes]
        self._values: dict[tuple[int, Match], list[Hashable]] = {}
        self._holders: dict[DeviceKey, list[int]] = {}
        self._steps = 0

    def claims(self, at: int) -> Iterator[None]:
        """Yield for each way to give all claims from this one on their devices."""
        if at == len(self._wishes):
            yield None
        else:
            yield from self._requests(at, 0)

    def allocation(self, at: int) -> Allocation:
        """The allocation of the claim in the current solution."""
        chosen = self._chosen[at]
        devices = tuple(AllocatedDevice(request.name, offer.key, request.admin) for request, offer in chosen)
        return Allocation(devices, _usable_on([offer.part for _, offer in chosen]))

    def _requests(self, claim: int, at: int) -> Iterator[None]:
        requests = self._wishes[claim].requests
        if at == len(requests):
            yield from self.claims(claim + 1)
            return
        for request in requests[at]:
            numbers = self._selected(request)
            if not request.all:
                yield from self._pick(claim, at, request, numbers, request.count)
            elif numbers:
                yield from self._pick(claim, at, request, numbers, len(numbers))

    def _pick(self, claim: int, at: int, request: DeviceRequest, numbers: Sequence[int], count: int) -> Iterator[None]:
        """Yield for each combination of `count` of the devices that the request can have."""
        if not count:
            yield from self._requests(claim, at + 1)
            return
        if len(self._chosen[claim]) + count > MOST_DEVICES:
            return
        for place in range(len(numbers) - count + 1):
            self._steps += 1
            if self._steps > MOST_STEPS:
                return
            offer = self._offers.devices[numbers[place]]
            if self._take(claim, request, offer):
                yield from self._pick(claim, at, request, numbers[place + 1 :], count - 1)
                self._give_back(claim, request, offer)

    def _take(self, claim: int, request: DeviceRequest, offer: Offer) -> bool:
        holders = self._holders.get(offer.key, ())
        busy = claim in holders if request.admin else bool(holders) or self._in_use(offer.key)
        if busy or not usable(offer.device, request):
            return False
        found: list[tuple[Match, Hashable]] = []
        values = {each.name: each for each in offer.device.attributes}
        for match in self._matches(claim, request):
            value = values.get(match.attribute)
            before = self._values.get((claim, match))
            if value is None or (before and before[0] != value):
                if request.all:
                    raise _Contradiction
                return False
            found.append((match, value))
        for match, known in found:
            self._values.setdefault((claim, match), []).append(known)
        self._holders.setdefault(offer.key, []).append(claim)
        self._chosen[claim].append((request, offer))
        return True

    def _give_back(self, claim: int, request: DeviceRequest, offer: Offer) -> None:
        self._chosen[claim].pop()
        self._holders[offer.key].pop()
        for match in self._matches(claim, request):
            self._values[claim, match].pop()

    def _matches(self, claim: int, request: DeviceRequest) -> Iterator[Match]:
        """The claim's matches that apply to this request, or to the request of which it is an alternative."""
        names = {request.name, request.name.partition("/")[0]}
        return (each for each in self._wishes[claim].matches if not each.requests or names.intersection(each.requests))


def usable(device: Device, request: DeviceRequest) -> bool:
    """Whether the request can have the device, provided that its selectors select it."""
    return not device.unsupported and _tolerated(device.taints, request.tolerations)


def _tolerated(taints: Sequence[DeviceTaint], tolerations: Sequence[Toleration]) -> bool:
    closing = [taint for taint in taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(any(_tolerates(each, taint) for each in tolerations) for taint in closing)


def _tolerates(toleration: Toleration, taint: DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("", "Equal") and toleration.value == taint.value)


def _usable_on(parts: Sequence[ResourceSlice]) -> tuple[NodeTerm, ...] | None:
    """The node terms where devices of all these slices can be used; None for everywhere.

    A slice has at most one term; the API server enforces that.
    """
    node = next((part.node for part in parts if part.node), "")
    if node:
        return (NodeTerm(fields=(Requirement("metadata.name", "In", (node,)),)),)
    terms = [term for part in parts for term in part.node_affinity or ()]
    if not terms:
        return None
    return (
        NodeTerm(
            tuple(dict.fromkeys(each for term in terms for each in term.expressions)),
            tuple(dict.fromkeys(each for term in terms for each in term.fields)),
        ),
    )
