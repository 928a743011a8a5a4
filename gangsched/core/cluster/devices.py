"""Index of ResourceSlices, DeviceClasses and ResourceClaims, the known pods that use each claim, and devices in use.

Only the cluster (`cache`) updates it, also when pods change. The rules are those of DynamicResources at v1.37.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping

from gangsched.core.cluster.device_names import claims_of, made_key, named
from gangsched.core.constraints.device_shares import Shares, add_share
from gangsched.core.objects.devices import (
    CLASS_PREFIX,
    MOST_RESERVED,
    Allocation,
    ClaimTrouble,
    DeviceClass,
    DeviceKind,
    DeviceObject,
    DeviceRequest,
    DeviceWishes,
    Making,
    ResourceClaim,
    UnreadyClaim,
)
from gangsched.core.objects.offered_devices import DeviceKey, DeviceTaintRule, ObjectKey, ResourceSlice, tainted
from gangsched.core.objects.pod import DeviceUse, Pod
from gangsched.core.objects.prebindings import PrebindingState, UseDevices

_NO_USERS: Mapping[str, None] = {}
_NO_DEVICES = Allocation(())
Pool = tuple[str, str]
"""Driver and name of a pool."""


class Devices:
    """The objects by kind and key.

    `in_use` counts the claims that have a whole device, not for admin access; `shares` is what others take of the
    capacities of devices that they share; `taken` is the number of both.
    `provided` is the DeviceClass of each extended resource that devices can provide; of several the newest.
    `generation` grows with each change of slices and classes. `_waiting` are the known pods without a node that may
    have claims. `_early` are claims of ours that are reserved or created for such pods (by UID), or have no devices.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.in_use: Counter[DeviceKey] = Counter()
        self.shares: Shares = {}
        self.taken = 0
        self.provided: dict[str, str] = {}
        self._objects: dict[DeviceKind, dict[ObjectKey, DeviceObject]] = {kind: {} for kind in DeviceKind}
        self._users: dict[ObjectKey, dict[str, None]] = {}
        self._ours: dict[ObjectKey, ResourceClaim] = {}
        self._waiting: dict[str, Pod] = {}
        self._early: dict[ObjectKey, list[str]] = {}
        self._pools: dict[Pool, dict[str, ResourceSlice]] = {}

    # Objects

    def set(self, kind: DeviceKind, key: ObjectKey, found: DeviceObject | None) -> list[ObjectKey]:
        """Set the object, or remove it with None. Returns the claims that are affected."""
        old = self._objects[kind].get(key)
        if old == found:
            return []
        self._enter(old, -1)
        self._enter(found, 1)
        self._update_early(key)
        if found is None:
            del self._objects[kind][key]
        else:
            self._objects[kind][key] = found
        if isinstance(found, ResourceClaim) and self._allocated_twice(found) is not None:
            # Claims of ours with the same device are affected too.
            return list(dict.fromkeys((key, *self._ours)))
        if kind is DeviceKind.CLAIM:
            return [key]
        self.generation += 1
        if kind is DeviceKind.CLASS:
            self._provide()
        return list(self._users) if kind is DeviceKind.CLASS else []

    def _provide(self) -> None:
        classes = [each for each in self._objects[DeviceKind.CLASS].values() if isinstance(each, DeviceClass)]
        classes.sort(key=lambda each: each.name, reverse=True)
        classes.sort(key=lambda each: each.made_at)
        self.provided.clear()
        self.provided |= {each.resource: each.name for each in classes if each.resource}
        self.provided |= {f"{CLASS_PREFIX}{each.name}": each.name for each in classes}

    def known(self, kind: DeviceKind) -> Mapping[ObjectKey, DeviceObject]:
        """The objects of this kind."""
        return self._objects[kind]

    def _enter(self, found: DeviceObject | None, sign: int) -> None:
        """Add the object to the derived indexes (1), or remove it (-1)."""
        if isinstance(found, ResourceClaim) and found.ours:
            if sign > 0:
                self._ours[found.key] = found
            else:
                del self._ours[found.key]
        match found:
            case ResourceClaim(allocation=Allocation(devices=devices)):
                for each in devices:
                    self.taken += sign * (not each.admin)
                    if each.exclusive:
                        self.in_use[each.device] += sign
                        if not self.in_use[each.device]:
                            del self.in_use[each.device]
                    elif not each.admin:
                        add_share(self.shares, each, sign)
            case ResourceSlice(driver=driver, pool=pool, name=name):
                parts = self._pools.setdefault((driver, pool), {})
                if sign > 0:
                    parts[name] = found
                else:
                    del parts[name]
                    if not parts:
                        del self._pools[driver, pool]

    # Pods

    def pod_changes(self, old: Pod | None, new: Pod | None) -> None:
        """A pod was added, changed or removed. A pod that has ended uses nothing."""
        if old is not None:
            for key in claims_of(old):
                users = self._users.get(key)
                if users is not None:
                    users.pop(old.uid, None)
                    if not users:
                        del self._users[key]
            self._waiting.pop(old.uid, None)
        if new is not None and not new.terminal:
            for key in claims_of(new):
                self._users.setdefault(key, {})[new.uid] = None
            if new.uses_devices and not new.node:
                self._waiting[new.uid] = new
        for pod in (old, new):
            for key in claims_of(pod) if pod is not None else ():
                self._update_early(key)

    def _update_early(self, key: ObjectKey) -> None:
        """Update `_early` for the claim: its reservations that precede the bindings of their pods."""
        self._early.pop(key, None)
        claim = self._ours.get(key)
        users = () if claim is None else (claim.owner,) if claim.extended else claim.reserved
        early = [uid for uid in users if uid in self._waiting]
        if early or (claim is not None and claim.allocation is None):
            self._early[key] = early

    def users(self, key: ObjectKey) -> Iterable[str]:
        """The known pods, by UID, that use the claim."""
        return self._users.get(key, _NO_USERS)

    def is_shared(self, key: ObjectKey) -> bool:
        """Whether several known pods use the claim."""
        return len(self._users.get(key, _NO_USERS)) > 1

    def is_scarce(self, key: ObjectKey) -> bool:
        """Whether more known pods use the claim than may still reserve it."""
        claim, users = self.claim(key), self._users.get(key, _NO_USERS)
        reserved = claim.reserved if claim is not None else ()
        # Most claims have few users; of very many, counting them each time would cost too much.
        if len(users) > MOST_RESERVED or len(users) + len(reserved) <= MOST_RESERVED:
            return len(users) > MOST_RESERVED
        return len(users.keys() | set(reserved)) > MOST_RESERVED

    # Queries

    @property
    def matter(self) -> bool:
        """Whether there are any claims, or classes for which claims may be created."""
        return bool(self._objects[DeviceKind.CLAIM] or self.provided)

    def claim(self, key: ObjectKey) -> ResourceClaim | None:
        """The claim of this namespace and name."""
        found = self._objects[DeviceKind.CLAIM].get(key)
        return found if isinstance(found, ResourceClaim) else None

    def is_allocated(self, key: ObjectKey) -> bool:
        """Whether the claim has its devices."""
        claim = self.claim(key)
        return claim is not None and claim.allocation is not None

    def claims(self, pod: Pod) -> list[ResourceClaim]:
        """The pod's existing claims, without duplicates; not the one that is created for its extended resources."""
        return [claim for key in named(pod) if (claim := self.claim(key)) is not None]

    def making(self, pod: Pod, delegated: Container[str]) -> tuple[ResourceClaim, Making] | None:
        """The claim for the pod's extended resources that are `delegated`, as it exists or would be created."""
        uses = [each for each in pod.extended if each.resource in delegated]
        if not uses:
            return None
        making = Making(
            tuple(sorted((name, self.provided[use.resource], count) for use in uses for name, count in use.requests)),
            tuple((container, use.resource, name) for use in uses for container, name in use.mappings),
        )
        found = self.claim(made_key(pod))
        if found is None:
            asked = tuple((DeviceRequest(name, of, count=count),) for name, of, count in making.requests)
            found = ResourceClaim(*made_key(pod), wishes=DeviceWishes(asked), owner=pod.uid, extended=True)
        return found, making

    def device_class(self, name: str) -> DeviceClass | None:
        """The class of this name."""
        found = self._objects[DeviceKind.CLASS].get(("", name))
        return found if isinstance(found, DeviceClass) else None

    def unready(self, pod: Pod) -> UnreadyClaim | None:
        """The first claim that keeps the pod from being placed; None if none does."""
        for each in pod.device_claims:
            for trouble, about in self._troubles(pod, each):
                return UnreadyClaim(each.claim or each.name, trouble, about)
        made = self.claim(made_key(pod)) if pod.extended else None
        if made is not None and (made.terminating or made.owner != pod.uid):
            return UnreadyClaim(made.name, ClaimTrouble.TERMINATING if made.terminating else ClaimTrouble.NOT_OWNED)
        return None

    def _troubles(self, pod: Pod, use: DeviceUse) -> Iterator[tuple[ClaimTrouble, str]]:
        """What keeps the pod from using this claim, each with what it is about, most important first."""
        claim = self.claim((pod.namespace, use.claim)) if use.claim else None
        if claim is None:
            yield (ClaimTrouble.MISSING if use.claim else ClaimTrouble.NOT_MADE), ""
            return
        if claim.group:
            yield ClaimTrouble.OF_GROUP, claim.group
        if use.made and claim.owner != pod.uid:
            yield ClaimTrouble.NOT_OWNED, ""
        if claim.terminating:
            yield ClaimTrouble.TERMINATING, ""
        if pod.uid not in claim.reserved and len(claim.reserved) >= MOST_RESERVED:
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
        return next((each.device for each in had if each.exclusive and self.in_use[each.device] > 1), None)

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
        claim = self.claim((asked.namespace, asked.claim))
        if asked.making is not None and (claim is None or claim.owner == asked.pod_uid):
            claim = claim or ResourceClaim(asked.namespace, asked.claim)
        elif claim is None or claim.uid != asked.uid:
            return PrebindingState.LOST
        allocated = claim.allocation is not None
        if claim.terminating or (claim.allocation is not None and claim.allocation.has != asked.allocation.has):
            return PrebindingState.LOST
        if any(self.in_use[each.device] > allocated for each in asked.allocation.devices if each.exclusive):
            return PrebindingState.LOST
        if claim.failure:
            return PrebindingState.GIVEN_UP
        if allocated and asked.pod_uid in claim.reserved:
            return PrebindingState.DONE if claim.prepared else PrebindingState.MADE
        return PrebindingState.OPEN if len(claim.reserved) < MOST_RESERVED else PrebindingState.LOST

    def shown(self, schedulers: Container[str]) -> list[UseDevices]:
        """Our marks on claims without devices, and reservations in claims of ours for pods that are not bound yet.

        Only for known pods of these schedulers: kube-controller-manager removes those of a pod that is gone. A claim
        that was created for a pod is included with or without a reservation.
        """
        found = []
        for key, early in self._early.items():
            claim = self._ours[key]
            if claim.allocation is None and not (claim.extended and early):
                found.append(UseDevices(*key, claim.uid, "", "", _NO_DEVICES))
                continue
            had, making = claim.allocation or _NO_DEVICES, Making() if claim.extended else None
            pods = [self._waiting[uid] for uid in early if self._waiting[uid].scheduler in schedulers]
            found += [UseDevices(*key, claim.uid, pod.name, pod.uid, had, making=making) for pod in pods]
        return found

    def shows(self, prebinding: UseDevices) -> bool:
        """Whether the claim still shows what `shown` has found: the reservation, or our mark without devices."""
        early = self._early.get((prebinding.namespace, prebinding.claim))
        return early is not None and (not prebinding.pod_uid or prebinding.pod_uid in early)

    def pools(self) -> list[tuple[ResourceSlice, ...]]:
        """The slices of each pool, of all generations, with the taints of rules; pools and slices by name."""
        rules = self._objects[DeviceKind.TAINT_RULE]
        tainting = [rule for _, rule in sorted(rules.items()) if isinstance(rule, DeviceTaintRule)]
        pools = (slices for _, slices in sorted(self._pools.items()))
        return [tuple(tainted(slices[name], tainting) for name in sorted(slices)) for slices in pools]

    def contradictions(self, pods: Iterable[Pod]) -> list[str]:
        """A sentence for each difference between the index and the objects and these pods."""
        fresh = Devices()
        for kind, objects in self._objects.items():
            for key, found in objects.items():
                fresh.set(kind, key, found)
        for pod in pods:
            fresh.pod_changes(None, pod)
        kept, found_again = vars(self), vars(fresh)
        names = [name for name in kept if name != "generation" and kept[name] != found_again[name]]
        return [f"devices: {name.lstrip('_')} is not what the objects say" for name in names]
