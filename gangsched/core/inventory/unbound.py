"""Volume claims of pods: what keeps a pod from being placed, and those that wait for its node, with their requirements,
the volumes for them, and their binding's progress.

Sources, all at v1.37.2: `podHasPVCs` and `GetPodVolumeClaims` of kube-scheduler's plug-in VolumeBinding;
pkg/scheduler/framework/plugins/volumebinding/binder.go of k8s.io/kubernetes; FindMatchingVolume of
k8s.io/component-helpers storage/volume.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import ClaimVolume, Prebinding, PrebindingState, SelectNode, ShareVolume, Taken
from gangsched.core.objects.selectors import matches
from gangsched.core.objects.volumes import (
    CsiDriver,
    StorageCapacity,
    StorageKey,
    StorageKind,
    StorageObject,
    Trouble,
    Unready,
    Volume,
    VolumeClaim,
    Wanted,
    keys_of,
)

if TYPE_CHECKING:
    from gangsched.core.inventory.volume_index import Volumes


def unready(volumes: Volumes, pod: Pod) -> Unready | None:
    """The first claim that keeps the pod from being placed; None if none does."""
    foreign = (_unready(volumes, pod, name, own=False) for name in pod.volume_claims)
    own = (_unready(volumes, pod, name, own=True) for name in pod.own_volume_claims)
    return next(filter(None, chain(foreign, own)), None)


def _unready(volumes: Volumes, pod: Pod, name: str, *, own: bool) -> Unready | None:
    claim = volumes.claim((pod.namespace, name))
    if claim is None:
        return Unready(name, Trouble.NOT_MADE if own else Trouble.MISSING)
    if own and claim.owner != pod.uid:
        return Unready(name, Trouble.NOT_OWNED)
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


def wants(volumes: Volumes, pod: Pod) -> list[tuple[Wanted, VolumeClaim]]:
    """The pod's claims that wait for its node, with their requirements, smallest first."""
    pairs = []
    for key in keys_of(pod):
        claim = volumes.claim(key)
        if claim is None or not volumes.waits(claim):
            continue
        fitting = (volume for volume in volumes.meant_for(claim) if _suffices(volume, claim))
        wanted = Wanted(
            size=claim.size,
            storage_class=claim.storage_class,
            modes=claim.modes,
            block=claim.block,
            attributes=claim.attributes,
            selector=claim.selector,
            selected=claim.selected,
            # kube-scheduler takes any of several, and its volume controller binds any of them.
            volume="" if claim.selected else min((volume.name for volume in fitting), default=""),
            claim=key if volumes.has_several_users(key) else ("", ""),
            ours=bool(claim.selected) and claim.ours,
        )
        pairs.append((wanted, claim))
    return sorted(pairs, key=lambda pair: (pair[0].size, repr(pair[0]), pair[1].name)) if len(pairs) > 1 else pairs


def choices(volumes: Volumes, wanted: Wanted) -> list[Volume]:
    """The volumes that a claim with these requirements may be bound to, on whatever nodes; best first."""
    if wanted.selected:
        return []
    if wanted.volume:
        only = volumes.volume(wanted.volume)
        return [only] if only is not None else []
    fitting = [
        volume
        for volume in volumes.available(wanted.storage_class)
        if _suffices(volume, wanted)
        and set(wanted.modes) <= set(volume.modes)
        and matches(wanted.selector, dict(volume.labels))
    ]
    return sorted(fitting, key=lambda volume: (volume.size, volume.name))


def _suffices(volume: Volume, wanted: Wanted | VolumeClaim) -> bool:
    of_class = volume.storage_class == wanted.storage_class and volume.attributes == wanted.attributes
    return of_class and volume.size >= wanted.size and volume.block is wanted.block


def capacities(volumes: Volumes, storage_class: str) -> list[StorageCapacity] | None:
    """The storage capacities for volumes of the class; None if its driver does not publish them."""
    class_ = volumes.storage_class(storage_class)
    # The capacities of a driver that has replaced the in-tree plug-in of the class do not count.
    name = "" if class_ is None or class_.in_tree else class_.driver
    driver = volumes.known(StorageKind.DRIVER).get(("", name))
    if not (isinstance(driver, CsiDriver) and driver.capacity):
        return None
    known = volumes.known(StorageKind.CAPACITY).values()
    return [space for space in known if isinstance(space, StorageCapacity) and space.storage_class == storage_class]


def gives_storage(old: StorageObject | None, new: StorageObject | None) -> bool:
    """Whether more may fit than before. A capacity that has only shrunk, as after provisioning, does not count."""
    if isinstance(new, StorageCapacity):
        return not (isinstance(old, StorageCapacity) and new.helps_no_more_than(old))
    return new != old and isinstance(new or old, CsiDriver)


def promises(
    volumes: Volumes, storage_class: str, pending_prebindings: Mapping[Taken, Mapping[str, Prebinding]]
) -> list[tuple[str, int]]:
    """The node and size of each volume of the class that gangsched has requested, or is about to.

    A promise lasts until the claim has its volume. A claim whose node another scheduler has selected is not ours.
    """
    asked = (prebinding for by_owner in pending_prebindings.values() for prebinding in by_owner.values())
    promised: dict[StorageKey, tuple[str, int]] = {}
    for prebinding in (*volumes.marked, *asked):
        if not isinstance(prebinding, SelectNode) or not prebinding.node:
            continue
        claim = volumes.claim((prebinding.namespace, prebinding.claim))
        if claim is None or claim.uid != prebinding.uid or claim.storage_class != storage_class or claim.volume:
            continue
        if claim.ours or not claim.selected:
            promised[claim.key] = (prebinding.node, claim.size)
    return list(promised.values())


def state_of(
    volumes: Volumes, prebinding: Prebinding, pending_prebindings: Mapping[Taken, Mapping[str, Prebinding]]
) -> PrebindingState:
    """The progress of a pre-binding of a claim.

    Raises:
        TypeError: it is of another kind (a bug in gangsched).
    """
    if not isinstance(prebinding, SelectNode | ClaimVolume | ShareVolume):
        raise TypeError(f"{type(prebinding).__name__} concerns no claim")
    claim = volumes.claim((prebinding.namespace, prebinding.claim))
    if claim is None or claim.uid != prebinding.uid or claim.lost or claim.terminating:
        return PrebindingState.LOST
    if claim.volume:
        done = claim.bound and volumes.volume(claim.volume) is not None
        return PrebindingState.DONE if done else PrebindingState.MADE
    if isinstance(prebinding, ShareVolume):
        asked = pending_prebindings.get(prebinding.takes[0], {}).values()
        return (
            PrebindingState.MADE if any(not isinstance(other, ShareVolume) for other in asked) else PrebindingState.LOST
        )
    if isinstance(prebinding, SelectNode):
        if claim.selected:
            return PrebindingState.MADE if claim.selected == prebinding.node else PrebindingState.LOST
        return PrebindingState.GIVEN_UP if claim.ours else PrebindingState.OPEN
    volume = volumes.volume(prebinding.volume)
    if volume is None or claim.selected:
        return PrebindingState.LOST
    if volume.claimed_by is not None:
        return PrebindingState.MADE if volume in volumes.meant_for(claim) else PrebindingState.LOST
    return PrebindingState.OPEN if volume.available else PrebindingState.MADE
