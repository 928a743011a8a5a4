"""Decides whether a pod can be placed with its volume claims.

Source: `podHasPVCs` and `GetPodVolumeClaims` of kube-scheduler's plug-in VolumeBinding at v1.37.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.volumes import Trouble, Unready, VolumeClaim

if TYPE_CHECKING:
    from gangsched.core.cluster.volume_index import Volumes


def unready(volumes: Volumes, pod: Pod) -> Unready | None:
    """The first claim that keeps the pod from being placed; None if none does."""
    for name in pod.volume_claims:
        found = _unready(volumes, name, volumes.claim((pod.namespace, name)))
        if found is not None:
            return found
    for name in pod.own_volume_claims:
        claim = volumes.claim((pod.namespace, name))
        if claim is None:
            return Unready(name, Trouble.NOT_MADE)
        if claim.owner != pod.uid:
            return Unready(name, Trouble.NOT_OWNED)
        found = _unready(volumes, name, claim)
        if found is not None:
            return found
    return None


def _unready(volumes: Volumes, name: str, claim: VolumeClaim | None) -> Unready | None:
    if claim is None:
        return Unready(name, Trouble.MISSING)
    if claim.lost:
        return Unready(name, Trouble.LOST, claim.volume)
    if claim.terminating:
        return Unready(name, Trouble.TERMINATING)
    if volumes.waits(claim):
        return None
    if not (claim.bound and claim.volume):
        return Unready(name, Trouble.UNBOUND, claim.storage_class)
    volume = volumes.volume(claim.volume)
    if volume is None:
        return Unready(name, Trouble.NO_VOLUME, claim.volume)
    return Unready(name, Trouble.IN_TREE, f"{volume.name} ({volume.in_tree})") if volume.in_tree else None
