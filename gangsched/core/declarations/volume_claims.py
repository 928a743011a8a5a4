"""Finds gangs that wait for their PersistentVolumeClaims, and the message that says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gangsched.core.declarations.minima import minima, missing_of
from gangsched.core.declarations.terms import Hindrance
from gangsched.core.inventory.volume_index import Volumes
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.volumes import Trouble

_WHY = {
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
NOT_SUPPORTED = (Trouble.IN_TREE,)
"""Troubles that this version cannot handle; they may go away once the claim is bound."""


def unready(members: Sequence[Pod], spec: GroupSpec, volumes: Volumes) -> Iterator[Hindrance]:
    """The first member that cannot be placed with its claims, if the quorum needs such members.

    Otherwise nodes refuse only these members (`VolumeBinding`), and all others are placed.
    """
    waiting = [pod for pod in members if not pod.node and pod.uses_claims]
    kept_back = [(pod, found) for pod in waiting if (found := volumes.unready(pod)) is not None]
    if not kept_back:
        return
    uids = {pod.uid for pod, _ in kept_back}
    others = Counter(role_of(pod) for pod in members if pod.uid not in uids)
    if not missing_of(minima(spec), others):
        return
    pod, first = kept_back[0]
    reason = Reason.NOT_SUPPORTED if first.trouble in NOT_SUPPORTED else Reason.VOLUME_NOT_READY
    why = _WHY[first.trouble].format(about=first.about)
    yield Hindrance(reason, f"Pod {pod.name} uses the PersistentVolumeClaim {first.claim}, {why}.")
