"""Index of ResourceSlices, DeviceClasses and ResourceClaims, the known pods that use each claim, and devices in use.

Only the cluster (`cache`) updates it, also when pods change. The rules are those of DynamicResources at v1.37.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping

from gangsched.core.inventory.device_users import DeviceUsers, made_key, named
from gangsched.core.objects.devices import (
    CLASS_PREFIX,
    MOST_RESERVED,
    AllocatedDevice,
    Allocation,
    ClaimTrouble,
    Consumer,
    DeviceClass,
    DeviceKind,
    DeviceObject,
    DeviceRequest,
    DeviceWishes,
    Making,
    ResourceClaim,
    UnreadyClaim,
)
from gangsched.core.objects.indexes import count
from gangsched.core.objects.offered_devices import DeviceKey, DeviceTaintRule, ObjectKey, ResourceSlice, tainted
from gangsched.core.objects.pod import DeviceUse, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.prebindings import PrebindingState, UseDevices

Pool = tuple[str, str]
"""Driver and name of a pool."""
Shares = dict[DeviceKey, Counter[str]]
"""What is taken of the capacities of each device that is shared."""


def add_share(shares: Shares, device: AllocatedDevice, sign: int) -> None:
    """Add a share to those of its device (1), or remove it (-1). The name "" counts the shares themselves."""
    taken = shares.setdefault(device.device, Counter())
    taken[""] += sign
    for name, amount in device.consumed:
        taken[name] += sign * amount
    if not taken[""]:
        del shares[device.device]


def count_devices(whole: Counter[DeviceKey], shares: Shares, devices: Iterable[AllocatedDevice], sign: int) -> int:
    """Count these devices among those that are had as a whole, or the shares of them (1), or no longer (-1).

    Returns how many more are taken than before; admin access takes nothing.
    """
    taking = [device for device in devices if not device.admin]
    for device in taking:
        if device.exclusive:
            count(whole, device.device, sign)
        else:
            add_share(shares, device, sign)
    return sign * len(taking)


class Devices:
    """The objects by kind and key, and the `users` of claims.

    `in_use` counts the claims that have a whole device, not for admin access; `shares` is what others take of the
    capacities of devices that they share; `taken` is the number of both.
    `provided` is the DeviceClass of each extended resource that devices can provide; of several the newest.
    `generation` grows with each change of slices and classes. `_groups` are the PodGroups of Kubernetes whose spec is
    known.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.in_use: Counter[DeviceKey] = Counter()
        self.shares: Shares = {}
        self.taken = 0
        self.provided: dict[str, str] = {}
        self.users = DeviceUsers()
        self._objects: dict[DeviceKind, dict[ObjectKey, DeviceObject]] = {kind: {} for kind in DeviceKind}
        self._groups: dict[ObjectKey, ForeignGroup] = {}
        self._pools: dict[Pool, dict[str, ResourceSlice]] = {}
        # The nodes of pools that had slices.
        self._withdrawn: dict[Pool, str] = {}

    # Objects

    def set(self, kind: DeviceKind, key: ObjectKey, new: DeviceObject | None) -> list[ObjectKey]:
        """Set the object, or remove it with None. Returns the claims that are affected."""
        old = self._objects[kind].get(key)
        if old == new:
            return []
        self._enter(old, -1)
        self._enter(new, 1)
        if kind is DeviceKind.CLAIM:
            self.users.claim_changes(key, new if isinstance(new, ResourceClaim) else None)
        if new is None:
            del self._objects[kind][key]
        else:
            self._objects[kind][key] = new
        if isinstance(new, ResourceClaim) and self._allocated_twice(new) is not None:
            # Claims of ours with the same device are affected too.
            return list(dict.fromkeys((key, *self.users.ours)))
        if kind is DeviceKind.CLAIM:
            return [key]
        self.generation += 1
        if kind is DeviceKind.CLASS:
            self._provide()
        return self.users.used if kind is DeviceKind.CLASS else []

    def _provide(self) -> None:
        classes = [class_ for class_ in self._objects[DeviceKind.CLASS].values() if isinstance(class_, DeviceClass)]
        classes.sort(key=lambda class_: class_.name, reverse=True)
        classes.sort(key=lambda class_: class_.made_at)
        self.provided.clear()
        self.provided |= {class_.resource: class_.name for class_ in classes if class_.resource}
        self.provided |= {f"{CLASS_PREFIX}{class_.name}": class_.name for class_ in classes}

    def known(self, kind: DeviceKind) -> Mapping[ObjectKey, DeviceObject]:
        """The objects of this kind."""
        return self._objects[kind]

    def _enter(self, stored: DeviceObject | None, sign: int) -> None:
        """Add the object to the derived indexes (1), or remove it (-1)."""
        match stored:
            case ResourceClaim(allocation=Allocation(devices=devices)):
                self.taken += count_devices(self.in_use, self.shares, devices, sign)
            case ResourceSlice(driver=driver, pool=pool, name=name):
                parts = self._pools.setdefault((driver, pool), {})
                if sign > 0:
                    parts[name] = stored
                    self._withdrawn.pop((driver, pool), None)
                else:
                    del parts[name]
                    if not parts:
                        del self._pools[driver, pool]
                        self._withdrawn[driver, pool] = stored.node

    # Pods

    def is_shared(self, key: ObjectKey) -> bool:
        """Whether several known pods use the claim."""
        return len(self.users.of(key)) > 1

    def is_scarce(self, key: ObjectKey) -> bool:
        """Whether more known pods use the claim than may still reserve it, if each does so for itself."""
        claim, users = self.claim(key), self.users.of(key)
        reserved = claim.reserved if claim is not None else ()
        # Most claims have few users; of very many, counting them each time would cost too much.
        if len(users) > MOST_RESERVED or len(users) + len(reserved) <= MOST_RESERVED:
            return len(users) > MOST_RESERVED
        return len(users | set(reserved)) > MOST_RESERVED

    # PodGroups of Kubernetes

    def set_group(self, key: ObjectKey, group: ForeignGroup | None) -> list[str]:
        """Set what the PodGroup of Kubernetes with this namespace and name declares; None: there is none.

        Returns the UIDs of the known pods that wait for claims that it shares, or may share.
        """
        old = self._groups.pop(key, None)
        if group is not None and group.spec is not None:
            self._groups[key] = group
        return [] if _shares(old) == _shares(self._groups.get(key)) else self.users.naming(key)

    def consumer(self, pod: Pod, claim: ObjectKey) -> Consumer:
        """What the claim is reserved for so that the pod may use it: its PodGroup if that shares the claim, or it."""
        for use in pod.device_claims:
            group = self._sharing(pod, use) if use.claim == claim[1] else None
            if group is not None:
                return Consumer(group.key.name, group.uid, group=True)
        return Consumer(pod.name, pod.uid)

    def _sharing(self, pod: Pod, use: DeviceUse) -> ForeignGroup | None:
        """The pod's PodGroup if that shares the claim; None if the pod has it for itself.

        Source: `BindTo` in k8s.io/dynamic-resource-allocation/resourceclaim at v0.37.2.
        """
        group = self._groups.get((pod.namespace, use.group)) if use.group else None
        shared = group.spec.device_claims if group is not None and group.spec is not None else ()
        return group if any(other.asked == use.asked for other in shared) else None

    # Queries

    @property
    def matter(self) -> bool:
        """Whether there are any claims, or classes for which claims may be created."""
        return bool(self._objects[DeviceKind.CLAIM] or self.provided)

    def claim(self, key: ObjectKey) -> ResourceClaim | None:
        """The claim of this namespace and name."""
        claim = self._objects[DeviceKind.CLAIM].get(key)
        return claim if isinstance(claim, ResourceClaim) else None

    def is_allocated(self, key: ObjectKey) -> bool:
        """Whether the claim has its devices."""
        claim = self.claim(key)
        return claim is not None and claim.allocation is not None

    def claims(self, pod: Pod) -> list[ResourceClaim]:
        """The pod's existing claims, without duplicates; not the one that is created for its extended resources."""
        return [claim for key in named(pod) if (claim := self.claim(key)) is not None]

    def made(self, pod: Pod) -> list[ResourceClaim]:
        """The claim that was created for the pod's extended resources, if there is one."""
        claim = self.claim(made_key(pod)) if pod.extended else None
        return [] if claim is None else [claim]

    def making(self, pod: Pod, delegated: Container[str]) -> tuple[ResourceClaim, Making] | None:
        """The claim for the pod's extended resources that are `delegated`, as it exists or would be created."""
        uses = [use for use in pod.extended if use.resource in delegated]
        if not uses:
            return None
        making = Making(
            tuple(sorted((name, self.provided[use.resource], count) for use in uses for name, count in use.requests)),
            tuple((container, use.resource, name) for use in uses for container, name in use.mappings),
        )
        claim = self.claim(made_key(pod))
        if claim is None:
            asked = tuple((DeviceRequest(name, of, count=count),) for name, of, count in making.requests)
            claim = ResourceClaim(*made_key(pod), wishes=DeviceWishes(asked), owner=pod.uid, extended=True)
        return claim, making

    def device_class(self, name: str) -> DeviceClass | None:
        """The class of this name."""
        device_class = self._objects[DeviceKind.CLASS].get(("", name))
        return device_class if isinstance(device_class, DeviceClass) else None

    def unready(self, pod: Pod) -> UnreadyClaim | None:
        """The first claim that keeps the pod from being placed; None if none does."""
        for use in pod.device_claims:
            for trouble, about in self._troubles(pod, use):
                return UnreadyClaim(use.claim or use.name, trouble, about)
        made = self.claim(made_key(pod)) if pod.extended else None
        if made is not None and (made.terminating or made.owner != pod.uid):
            return UnreadyClaim(made.name, ClaimTrouble.TERMINATING if made.terminating else ClaimTrouble.NOT_OWNED)
        return None

    def _troubles(self, pod: Pod, use: DeviceUse) -> Iterator[tuple[ClaimTrouble, str]]:
        """What keeps the pod from using this claim, each with what it is about, most important first."""
        if use.group and (pod.namespace, use.group) not in self._groups:
            yield ClaimTrouble.NO_GROUP, use.group
        claim, group = self.claim((pod.namespace, use.claim)) if use.claim else None, self._sharing(pod, use)
        if claim is None:
            not_made = ClaimTrouble.NOT_MADE if group is None else ClaimTrouble.NOT_MADE_FOR_GROUP
            yield (ClaimTrouble.MISSING if use.claim else not_made), use.group
            return
        if use.template:
            yield from _disowned(pod, group, claim)
        if claim.terminating:
            yield ClaimTrouble.TERMINATING, ""
        consumer = group or pod
        if consumer.uid not in claim.reserved and len(claim.reserved) >= MOST_RESERVED:
            yield ClaimTrouble.FULL, ""
        twice = self._allocated_twice(claim)
        if twice is not None:
            yield ClaimTrouble.TWICE, "/".join(twice)
        if claim.failure:
            yield ClaimTrouble.FAILED, claim.failure
        if claim.allocation is None:
            yield from self._unallocatable(claim)

    def _allocated_twice(self, claim: ResourceClaim) -> DeviceKey | None:
        """A device of the claim that is allocated to another claim too."""
        had = claim.allocation.devices if claim.allocation is not None else ()
        return next((device.device for device in had if device.exclusive and self.in_use[device.device] > 1), None)

    def _unallocatable(self, claim: ResourceClaim) -> Iterator[tuple[ClaimTrouble, str]]:
        if claim.wishes.unsupported:
            yield ClaimTrouble.UNSUPPORTED, claim.wishes.unsupported
        for request in claim.wishes.every:
            if self.device_class(request.device_class) is None:
                yield ClaimTrouble.NO_CLASS, request.device_class

    def state_of(self, asked: UseDevices) -> PrebindingState:
        """The progress of the allocation and the reservation.

        A device that another claim has too was allocated by another scheduler at the same time: one of them must yield.
        """
        claim, consumer = self.claim((asked.namespace, asked.claim)), asked.consumer
        if consumer.group and not self._is_known(asked.namespace, consumer):
            return PrebindingState.LOST
        if asked.making is not None and (claim is None or claim.owner == consumer.uid):
            claim = claim or ResourceClaim(asked.namespace, asked.claim)
        elif claim is None or claim.uid != asked.uid:
            return PrebindingState.LOST
        allocated = claim.allocation is not None
        if claim.terminating or (claim.allocation is not None and claim.allocation.has != asked.allocation.has):
            return PrebindingState.LOST
        if any(self.in_use[device.device] > allocated for device in asked.allocation.devices if device.exclusive):
            return PrebindingState.LOST
        if claim.failure:
            return PrebindingState.GIVEN_UP
        if allocated and consumer.uid in claim.reserved:
            return PrebindingState.DONE if claim.prepared else PrebindingState.MADE
        return PrebindingState.OPEN if len(claim.reserved) < MOST_RESERVED else PrebindingState.LOST

    def _is_known(self, namespace: str, consumer: Consumer) -> bool:
        """Whether the PodGroup exists, and not only another one of its name."""
        group = self._groups.get((namespace, consumer.name))
        return group is not None and group.uid == consumer.uid

    def pools(self) -> list[tuple[ResourceSlice, ...]]:
        """The slices of each pool, of all generations, with the taints of rules; pools and slices by name."""
        rules = self._objects[DeviceKind.TAINT_RULE]
        tainting = [rule for _, rule in sorted(rules.items()) if isinstance(rule, DeviceTaintRule)]
        pools = (slices for _, slices in sorted(self._pools.items()))
        return [tuple(tainted(slices[name], tainting) for name in sorted(slices)) for slices in pools]

    def withdrawn(self) -> frozenset[str]:
        """The nodes whose drivers have withdrawn a pool, as they do while they restart; "" if it was of no node.

        Where only a claim shows that there was a pool, its name is taken for that of its node, as drivers choose it.
        """
        of_claims = {key[1] for key in (*self.in_use, *self.shares) if key[:2] not in self._pools}
        return frozenset(of_claims.union(self._withdrawn.values()))

    def contradictions(self, pods: Iterable[Pod]) -> list[str]:
        """A sentence for each difference between the index and the objects and these pods."""
        fresh = Devices()
        for kind, objects in self._objects.items():
            for key, stored in objects.items():
                fresh.set(kind, key, stored)
        for key, group in self._groups.items():
            fresh.set_group(key, group)
        for pod in pods:
            fresh.users.pod_changes(None, pod)
        kept, expected = vars(self), vars(fresh)
        past = ("generation", "_withdrawn")
        names = [name for name in kept if name not in past and kept[name] != expected[name]]
        return [f"devices: {name.lstrip('_')} is not what the objects say" for name in names]


def _disowned(pod: Pod, group: ForeignGroup | None, claim: ResourceClaim) -> Iterator[tuple[ClaimTrouble, str]]:
    """That the claim was not made from the template for the pod, or for the PodGroup that shares it."""
    if group is not None and claim.owner != group.uid:
        yield ClaimTrouble.NOT_OF_GROUP, group.key.name
    elif group is None and claim.owner != pod.uid:
        yield (ClaimTrouble.OF_GROUP if claim.group else ClaimTrouble.NOT_OWNED), claim.group


def _shares(group: ForeignGroup | None) -> object:
    """What decides for which claims, and as what consumer, the PodGroup's pods use them."""
    return None if group is None or group.spec is None else (group.uid, group.spec.device_claims)
