"""Storage in memory: the API server's side of pre-bindings, kube-controller-manager's PV binder, and a provisioner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from gangsched.core.objects.prebindings import ClaimVolume, Prebinding, SelectNode
from gangsched.core.objects.selectors import matches
from gangsched.core.objects.shape import NodeTerm, Requirement
from gangsched.core.objects.volumes import StorageCapacity, StorageClass, StorageKind, Volume, VolumeClaim

if TYPE_CHECKING:
    from tests.harness import Harness


class Disks:
    """Claims and volumes of a harness. With `busy` nothing is bound; the provisioner gives up on `full` nodes."""

    def __init__(self, harness: Harness) -> None:
        self.busy = False
        self.full: set[str] = set()
        self.made = 0
        self.given_up: list[str] = []
        self._harness = harness

    def claim(self, name: str) -> VolumeClaim:
        found = self._harness.storage[StorageKind.CLAIM][tuple(name.split("/", 1))]  # type: ignore[index]
        assert isinstance(found, VolumeClaim)
        return found

    def volume(self, name: str) -> Volume:
        found = self._harness.storage[StorageKind.VOLUME]["", name]
        assert isinstance(found, Volume)
        return found

    def claims(self) -> list[VolumeClaim]:
        return [found for found in self._harness.storage[StorageKind.CLAIM].values() if isinstance(found, VolumeClaim)]

    def volumes(self) -> list[Volume]:
        return [found for found in self._harness.storage[StorageKind.VOLUME].values() if isinstance(found, Volume)]

    def left(self) -> list[str]:
        """Names of unbound claims and volumes that show pre-bindings of ours."""
        claims = [found.name for found in self.claims() if not found.volume and (found.ours or found.selected)]
        return claims + [found.name for found in self.volumes() if found.available and found.ours]

    # The API server

    def write(self, what: Prebinding) -> bool:
        """Write the pre-binding unless another writer was first. Returns whether it is in place."""
        claims = self._harness.storage[StorageKind.CLAIM]
        assert isinstance(what, SelectNode | ClaimVolume)
        claim = claims.get((what.namespace, what.claim))
        if not isinstance(claim, VolumeClaim) or claim.uid != what.uid or claim.volume:
            return False
        if isinstance(what, SelectNode):
            if claim.selected not in ("", what.node):
                return False
            self._harness.add(replace(claim, selected=what.node, ours=True))
        else:
            volume = self.volume(what.volume)
            if not volume.available or volume.claimed_by not in (None, (*claim.key, claim.uid)):
                return False
            self._harness.add(replace(volume, claimed_by=(*claim.key, claim.uid), ours=True))
        if not self.busy:
            self.work()
        return True

    def undo(self, what: Prebinding) -> None:
        """Undo the pre-binding unless it is complete."""
        assert isinstance(what, SelectNode | ClaimVolume)
        claim = self._harness.storage[StorageKind.CLAIM].get((what.namespace, what.claim))
        if isinstance(what, ClaimVolume):
            volume = self._harness.storage[StorageKind.VOLUME].get(("", what.volume))
            reserved = (what.namespace, what.claim, what.uid)
            shown = volume.claimed_by or ("", "", "") if isinstance(volume, Volume) and volume.available else None
            if isinstance(volume, Volume) and volume.ours and shown == reserved:
                self._harness.add(replace(volume, claimed_by=None, ours=False))
        elif isinstance(claim, VolumeClaim) and claim.uid == what.uid and claim.ours and not claim.volume:
            self._harness.add(replace(claim, selected="", ours=False))

    # Controllers

    def work(self) -> None:
        """Provision and bind everything possible."""
        for claim in [claim for claim in self.claims() if claim.selected and not claim.volume]:
            self.provision(claim)
        for volume in [volume for volume in self.volumes() if volume.available and volume.claimed_by]:
            namespace, name, uid = volume.claimed_by or ("", "", "")
            found = self._harness.storage[StorageKind.CLAIM].get((namespace, name))
            if isinstance(found, VolumeClaim) and found.uid == uid and not found.volume:
                self._harness.add(replace(volume, available=False))
                self._harness.add(replace(found, volume=volume.name, bound=True))

    def provision(self, claim: VolumeClaim) -> None:
        """Provision a volume in the zone of the selected node, or give up."""
        found = self._harness.storage[StorageKind.CLASS].get(("", claim.storage_class))
        if not (isinstance(found, StorageClass) and found.provisions):
            return
        if claim.selected in self.full:
            self.given_up.append(claim.selected)
            self._harness.add(replace(claim, selected=""))
            return
        node = self._harness.nodes.get(claim.selected)
        if node is None:
            return
        if not self.take(claim.storage_class, claim.size, dict(node.labels)):
            self.given_up.append(claim.selected)
            self._harness.add(replace(claim, selected=""))
            return
        zone = dict(node.labels).get("zone", "")
        terms = (NodeTerm((Requirement("zone", "In", (zone,)),)),) if zone else None
        self.made += 1
        name = f"made-{self.made}"
        self._harness.add(Volume(name, node_affinity=terms, attachment=("csi", name), size=claim.size))
        self._harness.add(replace(claim, volume=name, bound=True))

    def take(self, storage_class: str, size: int, labels: dict[str, str]) -> bool:
        """Take storage from the segment of these labels, if it publishes its capacity, and publish the remainder."""
        for found in list(self._harness.storage[StorageKind.CAPACITY].values()):
            assert isinstance(found, StorageCapacity)
            here = found.topology is not None and matches(found.topology.expressions, labels)
            if here and found.storage_class == storage_class and found.capacity is not None:
                if found.capacity < size:
                    return False
                self._harness.add(replace(found, capacity=found.capacity - size))
        return True
