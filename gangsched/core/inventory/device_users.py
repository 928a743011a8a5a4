"""Which ResourceClaims pods use, by claim and by name, and our reservations that precede the bindings of pods.

Only `device_index` and the cluster update it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, KeysView

from msgspec import Struct, field

from gangsched.core.objects.devices import NOBODY, Allocation, Consumer, Making, ResourceClaim
from gangsched.core.objects.indexes import count, enter
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import UseDevices

_NO_USERS: dict[str, None] = {}
_NO_DEVICES = Allocation(())
Shared = tuple[ObjectKey, str]
"""A claim, and the name of a PodGroup of Kubernetes whose pods use it."""

_LONGEST_NAME = 200


def claims_of(pod: Pod) -> list[ObjectKey]:
    """The pod's claims that have a name already, without duplicates, and one that may be created before it is bound."""
    may_be_made = [made_key(pod)] if pod.extended and not pod.node else []
    return list(dict.fromkeys([*named(pod), *may_be_made]))


def named(pod: Pod) -> list[ObjectKey]:
    """The claims in the pod's spec that have a name already, without duplicates."""
    if not pod.device_claims:
        return []
    return [(pod.namespace, name) for name in dict.fromkeys(use.claim for use in pod.device_claims) if name]


def made_key(pod: Pod) -> ObjectKey:
    """The key of the claim that is created for the pod's extended resources.

    No other pod has the same key, not even a later one of the same name.
    """
    name = pod.name if len(pod.name) <= _LONGEST_NAME else pod.name[:_LONGEST_NAME].rstrip(".-")
    return pod.namespace, f"{name}-extended-resources-{pod.uid[:8]}"


class DeviceUsers(Struct):
    """The users of each claim, by UID.

    `_waiting` are the known pods without a node that may have claims. `_naming` are those of them that name a PodGroup,
    by its namespace and name, `_hoping` by the claim too, and `_placed` counts their fellows that have a node. `_ours`
    are the claims with gangsched's mark. `_early` are those of them that are reserved or created for consumers of which
    no pod is bound yet, or that have no devices.
    """

    _users: dict[ObjectKey, dict[str, None]] = field(default_factory=dict)
    _waiting: dict[str, Pod] = field(default_factory=dict)
    _naming: dict[ObjectKey, dict[str, None]] = field(default_factory=dict)
    _hoping: dict[Shared, dict[str, None]] = field(default_factory=dict)
    _placed: Counter[Shared] = field(default_factory=Counter)
    _ours: dict[ObjectKey, ResourceClaim] = field(default_factory=dict)
    _early: dict[ObjectKey, list[Consumer]] = field(default_factory=dict)

    def of(self, key: ObjectKey) -> KeysView[str]:
        """The known pods that use the claim."""
        return self._users.get(key, _NO_USERS).keys()

    def naming(self, group: ObjectKey) -> list[str]:
        """The known pods, by UID, that wait for claims that this PodGroup may share."""
        return list(self._naming.get(group, _NO_USERS))

    @property
    def used(self) -> list[ObjectKey]:
        """The claims that known pods use."""
        return list(self._users)

    @property
    def ours(self) -> list[ObjectKey]:
        """The claims with gangsched's mark."""
        return list(self._ours)

    def claim_changes(self, key: ObjectKey, claim: ResourceClaim | None) -> None:
        """The claim was added, changed or, with None, removed."""
        if claim is not None and claim.ours:
            self._ours[key] = claim
        else:
            self._ours.pop(key, None)
        self._update_early(key)

    def pod_changes(self, old: Pod | None, new: Pod | None) -> None:
        """A pod was added, changed or removed. A pod that has ended uses nothing."""
        if old is not None:
            self._waiting.pop(old.uid, None)
            self._count(old, -1)
        if new is not None:
            if new.uses_devices and not (new.node or new.terminal):
                self._waiting[new.uid] = new
            self._count(new, 1)
        for pod in (old, new):
            for key in claims_of(pod) if pod is not None else ():
                self._update_early(key)

    def _count(self, pod: Pod, sign: int) -> None:
        """Add the pod to the users of its claims, and of those that its PodGroup may share (1), or remove it (-1)."""
        if pod.terminal:
            return
        for key in claims_of(pod):
            enter(self._users, key, pod.uid, sign)
        uses = [use for use in pod.device_claims if use.group]
        for shared in {((pod.namespace, use.claim), use.group) for use in uses if use.claim}:
            if not pod.node:
                enter(self._hoping, shared, pod.uid, sign)
                continue
            count(self._placed, shared, sign)
        for group in {(pod.namespace, use.group) for use in uses if not pod.node}:
            enter(self._naming, group, pod.uid, sign)

    def _update_early(self, key: ObjectKey) -> None:
        """Update `_early` for the claim: its consumers for which it is reserved before any of their pods is bound."""
        self._early.pop(key, None)
        claim = self._ours.get(key)
        if claim is None:
            return
        consumers = (claim.owner,) if claim.extended else claim.reserved
        # Anybody may have named a pod that does not use the claim, whose changes do not come here.
        waiting = [self._waiting[uid] for uid in consumers if uid in self._waiting and uid in self.of(key)]
        early = [Consumer(pod.name, pod.uid) for pod in waiting]
        groups = [(consumer, (key, consumer.name)) for consumer in claim.sharing]
        early += [consumer for consumer, shared in groups if shared in self._hoping and shared not in self._placed]
        if early or claim.allocation is None:
            self._early[key] = early

    def shown(self, schedulers: Container[str]) -> Iterator[UseDevices]:
        """Our marks on claims without devices, and our reservations for consumers of which no pod is bound yet.

        Only if all pods that wait for the consumer are known pods of these schedulers: kube-controller-manager removes
        the reservations of a pod or PodGroup that is gone. As with kube-scheduler, a PodGroup of which no pod is left
        keeps its claims. A claim that was created for a pod is included with or without a reservation.
        """
        for key, early in self._early.items():
            claim = self._ours[key]
            if claim.allocation is None and not (claim.extended and early):
                yield UseDevices(*key, claim.uid, NOBODY, _NO_DEVICES)
                continue
            had, making = claim.allocation or _NO_DEVICES, Making() if claim.extended else None
            for consumer in early:
                pods = self._hoping[key, consumer.name] if consumer.group else (consumer.uid,)
                if all(self._waiting[uid].scheduler in schedulers for uid in pods):
                    yield UseDevices(*key, claim.uid, consumer, had, making=making)

    def shows(self, prebinding: UseDevices) -> bool:
        """Whether the claim still shows what `shown` has found: the reservation, or our mark without devices."""
        early = self._early.get((prebinding.namespace, prebinding.claim))
        return early is not None and (prebinding.consumer == NOBODY or prebinding.consumer in early)
