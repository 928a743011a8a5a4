"""Finds gangs that wait for their ResourceClaims, and the message that says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gangsched.core.declarations.minima import minima, missing_of
from gangsched.core.declarations.terms import Hindrance
from gangsched.core.inventory.device_index import Devices
from gangsched.core.objects.devices import MOST_RESERVED, ClaimTrouble, ResourceClaim
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.reasons import Reason

_WHY = {
    ClaimTrouble.MISSING: "which does not exist: create it",
    ClaimTrouble.NOT_MADE: "which kube-controller-manager has yet to create from its ResourceClaimTemplate: if it does "
    "not, the pod's Events say why, such as that there is no such template",
    ClaimTrouble.NOT_OWNED: "which was not made for the pod: create the pod again, so that a claim is made for it",
    ClaimTrouble.NO_GROUP: "which the PodGroup {about} of scheduling.k8s.io may share, and it is not known: create "
    "the PodGroup, or correct it",
    ClaimTrouble.NOT_MADE_FOR_GROUP: "which kube-controller-manager has yet to create from its ResourceClaimTemplate, "
    "for the PodGroup {about} of scheduling.k8s.io: if it does not, turn on its feature gate DRAWorkloadResourceClaims",
    ClaimTrouble.NOT_OF_GROUP: "which was not made for the PodGroup {about} of scheduling.k8s.io that shares it: turn "
    "on the feature gate DRAWorkloadResourceClaims in kube-controller-manager too, and create the pod again",
    ClaimTrouble.OF_GROUP: "which was made for the PodGroup {about} of scheduling.k8s.io, to which gangsched does not "
    "count the pod: name the PodGroup in the pod's spec.schedulingGroup, and native among the dialects of gangsched",
    ClaimTrouble.TERMINATING: "which is being deleted: create it again once it is gone, or name another",
    ClaimTrouble.FULL: f"which is reserved for {MOST_RESERVED} pods, the most that may share it: use another claim",
    ClaimTrouble.TWICE: "which has a device that another claim has too ({about}): delete one of the two claims",
    ClaimTrouble.FAILED: "one of whose devices reports {about}, so it cannot be used: see the claim's status.devices",
    ClaimTrouble.NO_CLASS: "whose DeviceClass {about} does not exist: create it, or name another",
    ClaimTrouble.UNSUPPORTED: "which asks for {about}, which this version of gangsched does not support: leave it out, "
    "or let another scheduler place the pod",
}


def unready(members: Sequence[Pod], spec: GroupSpec, devices: Devices) -> Iterator[Hindrance]:
    """The first member that cannot be placed with its claims, if the quorum needs such members.

    Otherwise nodes refuse only these members (`DynamicResources`), and all others are placed. A claim may also have
    room for each member that uses it, but not for as many as the quorum needs.
    """
    waiting = [pod for pod in members if not pod.node and pod.uses_devices]
    kept_back = [(pod, found) for pod in waiting if (found := devices.unready(pod)) is not None]
    uids = {pod.uid for pod, _ in kept_back}
    others = [pod for pod in members if pod.uid not in uids]
    if not kept_back or _enough(others, spec):
        yield from _too_many(others, spec, devices)
        return
    pod, first = kept_back[0]
    reason = Reason.NOT_SUPPORTED if first.trouble is ClaimTrouble.UNSUPPORTED else Reason.RESOURCE_CLAIM_NOT_READY
    why = _WHY[first.trouble].format(about=first.about)
    yield Hindrance(reason, f"Pod {pod.name} uses the ResourceClaim {first.claim}, {why}.")


def _too_many(members: Sequence[Pod], spec: GroupSpec, devices: Devices) -> Iterator[Hindrance]:
    """The first claim that fewer pods may still reserve than the quorum needs of those that use it."""
    for claim, users in _users(members, devices):
        left = MOST_RESERVED - len(claim.reserved)
        if len(users) <= left:
            continue
        uids = {pod.uid for pod in users}
        beside = Counter(role_of(pod) for pod in members if pod.uid not in uids)
        needed = missing_of(minima(spec), beside).number
        if needed > left:
            yield Hindrance(
                Reason.RESOURCE_CLAIM_NOT_READY,
                f"{needed} members must reserve the ResourceClaim {claim.name} together, but only {left} more of at "
                f"most {MOST_RESERVED} pods may: give some members another claim.",
            )
            return


def _users(members: Sequence[Pod], devices: Devices) -> Iterator[tuple[ResourceClaim, list[Pod]]]:
    """The claims that members without a node use by name, each with those that have yet to reserve it for themselves.

    A PodGroup that shares the claim reserves it once for all of its members.
    """
    found: dict[ObjectKey, list[Pod]] = {}
    for pod in members:
        if pod.node or not pod.device_claims:
            continue
        for key in {(pod.namespace, each.claim): None for each in pod.device_claims if not each.template}:
            if not devices.consumer(pod, key).group:
                found.setdefault(key, []).append(pod)
    for key, users in found.items():
        claim = devices.claim(key)
        if claim is not None:
            yield claim, [pod for pod in users if pod.uid not in claim.reserved]


def _enough(members: Sequence[Pod], spec: GroupSpec) -> bool:
    return not missing_of(minima(spec), Counter(map(role_of, members)))
