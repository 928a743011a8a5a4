"""Finds gangs that wait for their PersistentVolumeClaims or ResourceClaims, and the message that says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gangsched.core.declarations.minima import minima, missing_of
from gangsched.core.declarations.terms import Hindrance
from gangsched.core.inventory.device_index import Devices
from gangsched.core.inventory.volume_index import Volumes
from gangsched.core.objects.devices import MOST_RESERVED, ClaimTrouble, ResourceClaim, UnreadyClaim
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.volumes import Trouble, Unready

_WHY_NO_VOLUME: Mapping[str, str] = {
    Trouble.MISSING: "which does not exist: create it",
    Trouble.NOT_MADE: "which kube-controller-manager has yet to create for the pod's ephemeral volume",
    Trouble.NOT_OWNED: "which was not made for the pod's ephemeral volume: rename the volume in the pod's template",
    Trouble.LOST: "whose PersistentVolume {about} is lost: restore the volume, or replace the claim",
    Trouble.TERMINATING: "which is being deleted: create it again once it is gone, or name another",
    Trouble.UNBOUND: "which is not bound: provide a PersistentVolume that it can be bound to",
    Trouble.NO_VOLUME: "whose PersistentVolume {about} does not exist: restore the volume, or replace the claim",
    Trouble.IN_TREE: "whose PersistentVolume {about} uses an in-tree plug-in that a CSI driver has replaced, which "
    "this version of gangsched does not support: make it a volume of that driver, or let another scheduler place "
    "the pod",
}
_WHY_NO_DEVICE: Mapping[str, str] = {
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
NOT_SUPPORTED = (Trouble.IN_TREE, ClaimTrouble.UNSUPPORTED)
"""Troubles that this version cannot handle; that of a volume may go away once the claim is bound."""


def unready(members: Sequence[Pod], spec: GroupSpec, volumes: Volumes, devices: Devices) -> Iterator[Hindrance]:
    """The first member that cannot be placed with its claims, if the quorum needs such members; volumes come first.

    Otherwise nodes refuse only these members (`VolumeBinding`, `DynamicResources`), and all others are placed. A
    ResourceClaim may also have room for each member that uses it, but not for as many as the quorum needs.
    """
    # Checked inline, because most pods use none.
    using = [
        pod
        for pod in members
        if (pod.volume_claims or pod.own_volume_claims or pod.device_claims or pod.extended) and not pod.node
    ]
    if not using:
        return
    waiting = [pod for pod in using if pod.uses_claims]
    without_volume = [(pod, lost) for pod in waiting if (lost := volumes.unready(pod)) is not None]
    if _needs(members, without_volume, spec):
        yield _told("PersistentVolumeClaim", *without_volume[0], Reason.VOLUME_NOT_READY, _WHY_NO_VOLUME)
    waiting = [pod for pod in using if pod.uses_devices]
    without_device = [(pod, lacks) for pod in waiting if (lacks := devices.unready(pod)) is not None]
    if _needs(members, without_device, spec):
        yield _told("ResourceClaim", *without_device[0], Reason.RESOURCE_CLAIM_NOT_READY, _WHY_NO_DEVICE)
    yield from _too_many(_beside(members, without_device), spec, devices)


def _needs(members: Sequence[Pod], kept_back: Sequence[tuple[Pod, object]], spec: GroupSpec) -> bool:
    """Whether the members that are not kept back are too few for the quorum."""
    return bool(kept_back and missing_of(minima(spec), Counter(map(role_of, _beside(members, kept_back)))))


def _beside(members: Sequence[Pod], kept_back: Sequence[tuple[Pod, object]]) -> Sequence[Pod]:
    """The members that are not kept back."""
    uids = {pod.uid for pod, _ in kept_back}
    return [pod for pod in members if pod.uid not in uids]


def _told(kind: str, pod: Pod, claim: Unready | UnreadyClaim, reason: Reason, whys: Mapping[str, str]) -> Hindrance:
    why = whys[claim.trouble].format(about=claim.about)
    reason = Reason.NOT_SUPPORTED if claim.trouble in NOT_SUPPORTED else reason
    return Hindrance(reason, f"Pod {pod.name} uses the {kind} {claim.claim}, {why}.")


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
    users_of: dict[ObjectKey, list[Pod]] = {}
    for pod in members:
        if pod.node or not pod.device_claims:
            continue
        for key in {(pod.namespace, use.claim): None for use in pod.device_claims if not use.template}:
            if not devices.consumer(pod, key).group:
                users_of.setdefault(key, []).append(pod)
    for key, users in users_of.items():
        claim = devices.claim(key)
        if claim is not None:
            yield claim, [pod for pod in users if pod.uid not in claim.reserved]
