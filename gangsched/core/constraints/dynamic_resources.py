"""DynamicResources: a node must have the devices that a pod's ResourceClaims request, or be able to use allocated ones.

The devices that each member takes are planned here; the allocation and the reservation are written before the member is
bound (`prebindings`). Members whose claims come from one template are interchangeable.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources at v1.37.2. One difference: an expression
that cannot be evaluated for some device refuses the pod on all nodes, wherever that device is; kube-scheduler may find
a node before it gets to that device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property

import numpy as np

from gangsched.core.constraints.constraint import Constraint, Leavers, Member, Plan, Words, World
from gangsched.core.constraints.device_allocations import configured, identified
from gangsched.core.constraints.device_pool import DevicePool
from gangsched.core.constraints.device_proof import MostDevices
from gangsched.core.constraints.device_supply import DeviceSupply
from gangsched.core.constraints.device_wishes import NO_DEVICES, OWN, UsesDevices, Wish, Wishes
from gangsched.core.constraints.naming import node_terms
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.devices import Allocation, Making, ResourceClaim
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding, UseDevices
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import NodeTerm


class DynamicResources(Constraint):
    """The filter of this name."""

    proves = True
    words = (
        Words(
            NodeReason.DEVICE_CLAIM,
            "closed until the ResourceClaim {resource} is ready",
            "a ResourceClaim that is ready: {nodes} closed without it",
        ),
        Words(
            NodeReason.DEVICE_SELECTOR,
            "closed because an expression that selects devices cannot be evaluated: {resource}",
            "an expression that can be evaluated for every device: {nodes} closed",
        ),
        Words(
            NodeReason.DEVICE_AFFINITY,
            "where the devices of the ResourceClaim {resource} cannot be used",
            "room where the devices of the ResourceClaim {resource} are: {nodes} elsewhere",
        ),
        Words(
            NodeReason.DEVICES,
            "without the devices that the member asks for: {resource}",
            "free devices, {resource}: {nodes} without",
        ),
        Words(
            NodeReason.DEVICE_RESOURCE,
            "where {resource} must be requested with a ResourceClaim",
            "a ResourceClaim instead of {resource}: {nodes} closed without it",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._affinity = NodeAffinity(world)
        self._supply = DeviceSupply(world.devices, world.nodes, self._affinity)

    def plan(self, *, emptied: bool) -> Plan:
        """The devices that members take; on an `emptied` snapshot, the most members that they could ever serve."""
        plan = _DevicesPlan(self._world, self._affinity, self._supply)
        return MostDevices(self._world, self._supply, plan) if emptied else plan


class _DevicesPlan(Plan):
    """The devices that members take on one snapshot.

    It is `selective` if there are any claims, or classes for which claims may be created. `_handed` counts, by wishes
    and row, the members whose devices were already assigned to pods (`prebindings`).
    """

    about = frozenset({UsesDevices})
    selective: bool = False

    def __init__(self, world: World, affinity: NodeAffinity, supply: DeviceSupply) -> None:
        self.selective = world.devices.matter
        self._world = world
        self._affinity = affinity
        self._supply = supply
        self._handed: Counter[tuple[Wishes, int]] = Counter()
        self._failures: dict[Wishes, str] = {}
        self._delegated = world.stock.delegated()

    @cached_property
    def _pool(self) -> DevicePool:
        # Most members use no devices, and every snapshot has such a plan.
        return DevicePool(self._world, self._affinity, self._supply)

    def sees(self, pod: Pod) -> UsesDevices | None:
        """The requirements of its claims on nodes; None if there are none and no device may provide its requests."""
        if not pod.uses_devices:
            return None
        devices = self._world.devices
        unready = devices.unready(pod)
        if unready is not None:
            return UsesDevices(ready=False, claim=unready.claim)
        claims = [claim for claim, _ in self._claims(pod)]
        had: dict[tuple[NodeTerm, ...], str] = {}
        for claim in claims:
            if claim.allocation is not None and claim.allocation.node_affinity is not None:
                had[claim.allocation.node_affinity] = claim.name
        affinities = tuple(sorted(had, key=repr))
        wishes = tuple(self._wish(pod, claim) for claim in claims if claim.allocation is None)
        # After those that take devices, in whose order `prebindings` hands them out.
        wishes += tuple(
            Wish(NO_DEVICES, claim.key, self._group(pod, claim)) for claim in claims if self._competes(pod, claim)
        )
        names = tuple(had[terms] for terms in affinities)
        may = any(use.resource in devices.provided for use in pod.extended)
        return UsesDevices(affinities, wishes, claims=names) if affinities or wishes or may else None

    def sees_nominated(self, pod: Pod) -> UsesDevices | None:
        """The affinities of its claims' allocated devices. Devices that another scheduler has in mind are unknown."""
        seen = self.sees(pod)
        return None if seen is None or not seen.affinities else UsesDevices(seen.affinities)

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows where its allocated devices can be used; none if a claim is not ready or an expression fails."""
        seen = member.sight(UsesDevices)
        if seen is None:
            return None
        mask: Mask = np.full(len(rows), seen.ready and not self._failure(seen.wishes), dtype=np.bool_)
        for terms in seen.affinities:
            mask &= self._affinity.among(terms, rows)
        return mask

    def room(self, member: Member, rows: IntArray) -> IntArray | None:
        """The number of members for which each row has devices left."""
        seen = member.sight(UsesDevices)
        if seen is None or not seen.wishes:
            return None
        return self._pool.room(seen.wishes, rows)

    def unsure(self, member: Member) -> bool:
        """Whether a search for devices for the class was cut short."""
        seen = member.sight(UsesDevices)
        return seen is not None and bool(seen.wishes) and seen.wishes in self._pool.unsure

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:
        """Take the first devices found for each member, or give back those that the last members of the class took."""
        seen = member.sight(UsesDevices)
        if seen is None or not seen.wishes:
            return None
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            for _ in range(count):
                # A pod that must be counted there although nothing is left takes nothing.
                self._pool.push(seen.wishes, row, must=True)
            for _ in range(min(-count, len(self._pool.taken(seen.wishes, row)))):
                self._pool.pop(seen.wishes, row)
        return self._pool.elsewhere(seen.wishes)

    def recount(self, leavers: Leavers, sign: int) -> IntArray | None:
        """Take again (1), or free (-1), the devices of claims that only these pods use, and of pre-bindings."""
        using = [pod for pod, _ in leavers.pods if pod.uses_devices] if self.selective else ()
        if not using:
            return None
        devices = self._world.devices
        ending = {pod.uid: [] if leavers.keep_devices else [*devices.claims(pod), *devices.made(pod)] for pod in using}
        self._pool.recount(ending, leavers.preparing, sign)
        return np.arange(len(self._world.stock.names))

    def prebindings(self, pod: Pod, row: int) -> Sequence[Prebinding]:
        """The writes that reserve the pod's claims for it or its PodGroup, with devices that it takes on the row."""
        if not pod.uses_devices:
            return ()
        seen = self.sees(pod)
        planned: Sequence[Allocation] = ()
        if seen is not None and seen.wishes:
            planned = self._pool.taken(seen.wishes, row)[self._handed[seen.wishes, row]]
            self._handed[seen.wishes, row] += 1
        left = iter(planned)
        asked = []
        for claim, making in self._claims(pod):
            allocation = claim.allocation or identified(next(left), claim)
            config = () if claim.allocation is not None else configured(claim, allocation, self._world.devices)
            consumer = self._world.devices.consumer(pod, claim.key)
            asked.append(UseDevices(*claim.key, claim.uid, consumer, allocation, config, making))
        return asked

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """The claim that is not ready, the failing expression, or where devices cannot be used or are too few.

        If a DeviceClass provides a resource that some nodes list, NodeResources refuses the nodes that do not list it;
        the explanation is given here.
        """
        for resource, _ in member.shape.requests:
            provider = self._world.devices.provided.get(resource)
            if provider and resource not in self._delegated:
                subject = f"{resource} (provided by DeviceClass {provider})"
                yield NodeReason.DEVICE_RESOURCE, subject, self._unlisted(resource, rows)
        seen = member.sight(UsesDevices)
        if seen is None:
            return
        everywhere: Mask = np.ones(len(rows), dtype=np.bool_)
        failure = self._failure(seen.wishes)
        if not seen.ready:
            yield NodeReason.DEVICE_CLAIM, seen.claim, everywhere
        elif failure:
            yield NodeReason.DEVICE_SELECTOR, failure, everywhere
        else:
            left = everywhere.copy()
            for terms, claim in zip(seen.affinities, seen.claims, strict=True):
                usable = self._affinity.among(terms, rows)
                yield NodeReason.DEVICE_AFFINITY, f"{claim} (node affinity {node_terms(terms)})", left & ~usable
                left &= usable
            room = self.room(member, rows)
            if room is not None:
                yield NodeReason.DEVICES, self._pool.shortage(seen.wishes, rows[room == 0]), room == 0

    def digest(self, rows: IntArray) -> Hashable:
        """A digest of the devices taken, on all nodes."""
        return self._pool.digest(), len(rows)

    def shared_digest(self, member: Member) -> Hashable:
        """A digest of all devices and of those in use, because some can be used on several nodes."""
        seen = member.sight(UsesDevices)
        if seen is None or not seen.wishes:
            return None
        devices = self._world.devices
        shares = frozenset((key, frozenset(taken.items())) for key, taken in devices.shares.items())
        pending = frozenset(self._pool.pending)
        return devices.generation, frozenset(devices.in_use), shares, pending, self._pool.sharers(seen.wishes)

    def couples(self, member: Member, other: Member) -> bool:
        """Whether both may take devices that several nodes can use, or share a claim without devices.

        Different classes always count as coupled: they compete for the devices of a node, which the exhaustive search
        for independent classes does not model.
        """
        seen, others = member.sight(UsesDevices), other.sight(UsesDevices)
        if seen is None or others is None or not seen.wishes or not others.wishes:
            return False
        if member != other:
            return True
        claims = {wish.claim for wish in others.wishes} - {OWN}
        self._supply.rows()
        return self._supply.shared or any(wish.claim in claims for wish in seen.wishes)

    # Inside

    def _unlisted(self, resource: str, rows: IntArray) -> Mask:
        """The rows whose nodes list nothing of the resource."""
        column = self._world.stock.column(resource)
        if column is None:
            return np.ones(len(rows), dtype=np.bool_)
        unlisted: Mask = self._world.stock.allocatable[rows, column] <= 0
        return unlisted

    def _claims(self, pod: Pod) -> list[tuple[ResourceClaim, Making | None]]:
        """The pod's claims, and the one that is created for its extended resources."""
        made = self._world.devices.making(pod, self._delegated)
        claims: list[tuple[ResourceClaim, Making | None]] = [(claim, None) for claim in self._world.devices.claims(pod)]
        return [*claims, made] if made is not None else claims

    def _wish(self, pod: Pod, claim: ResourceClaim) -> Wish:
        if not self._world.devices.is_shared(claim.key):
            return Wish(claim.wishes)
        return Wish(claim.wishes, claim.key, self._group(pod, claim))

    def _group(self, pod: Pod, claim: ResourceClaim) -> str:
        """The UID of the PodGroup that reserves the claim for the pod, empty if the pod does so for itself."""
        consumer = self._world.devices.consumer(pod, claim.key)
        return consumer.uid if consumer.group else ""

    def _competes(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Whether the pod needs a reservation in an allocated claim that has too few for all its users."""
        if claim.allocation is None or not self._world.devices.is_scarce(claim.key):
            return False
        return self._world.devices.consumer(pod, claim.key).uid not in claim.reserved

    def _failure(self, wishes: Wishes) -> str:
        failure = self._failures.get(wishes)
        if failure is None:
            failure = next(filter(None, (self._supply.failure(wish.wishes) for wish in wishes)), "")
            self._failures[wishes] = failure
        return failure
