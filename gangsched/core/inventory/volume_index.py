"""Index of volume claims, volumes, storage classes, capacities, limits of nodes, and the known pods that use claims.

Only the cluster (`cache`) updates it, also when pods change. Its queries say what a pod's claims mean for its
placement; the rules are in `unbound`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from gangsched.core.inventory import unbound
from gangsched.core.objects.indexes import count, enter
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import ClaimVolume, Prebinding, SelectNode
from gangsched.core.objects.shape import Attachment
from gangsched.core.objects.volumes import (
    CsiDriver,
    CsiNode,
    StorageClass,
    StorageKey,
    StorageKind,
    StorageObject,
    Unready,
    Volume,
    VolumeAttachment,
    VolumeClaim,
    keys_of,
)

_NO_USERS: Mapping[str, None] = {}


class Volumes:
    """The objects by kind and key, and `limits` by node and driver.

    `installed` are the drivers by node, `demanding` those whose volumes need a node that has the driver.
    `contested` are the claims for a single pod that several known pods name; `limited` counts the nodes that limit a
    driver. `marked` are the pre-bindings of gangsched that the objects show and that are not complete.
    """

    def __init__(self) -> None:
        self.limits: dict[str, Mapping[str, int]] = {}
        self.installed: dict[str, Collection[str]] = {}
        self.demanding: set[str] = set()
        self.limited: Counter[str] = Counter()
        self.contested: set[StorageKey] = set()
        self.marked: dict[Prebinding, None] = {}
        self._available: dict[str, dict[str, None]] = {}
        self._meant_for: dict[StorageKey, dict[str, None]] = {}
        self._waiting: dict[str, dict[StorageKey, None]] = {}
        self._objects: dict[StorageKind, dict[StorageKey, StorageObject]] = {kind: {} for kind in StorageKind}
        self._users: dict[StorageKey, dict[str, None]] = {}
        self._claims_of: dict[str, dict[StorageKey, None]] = {}
        self._attached_as: Counter[Attachment] = Counter()
        self._attachments_of: dict[str, dict[VolumeAttachment, None]] = {}
        self._attached: dict[str, Counter[Attachment]] = {}

    # Objects

    def set(self, kind: StorageKind, key: StorageKey, new: StorageObject | None) -> list[StorageKey]:
        """Set the object, or remove it with None. Returns the claims that may be affected."""
        old = self._objects[kind].get(key)
        if old == new:
            return []
        concerned = [*self._enter(old, -1), *self._enter(new, 1)]
        if new is None:
            del self._objects[kind][key]
        else:
            self._objects[kind][key] = new
        if kind is StorageKind.CLAIM:
            self._contest(key)
        return list(dict.fromkeys(concerned))

    def known(self, kind: StorageKind) -> Mapping[StorageKey, StorageObject]:
        """The objects of this kind."""
        return self._objects[kind]

    def _enter(self, stored: StorageObject | None, sign: int) -> Iterable[StorageKey]:
        """Add the object to the derived indexes (1), or remove it (-1). Returns the claims that are affected."""
        match stored:
            case VolumeClaim(volume=volume):
                if volume:
                    enter(self._claims_of, volume, stored.key, sign)
                else:
                    enter(self._waiting, stored.storage_class, stored.key, sign)
                if stored.ours and not volume:
                    self._mark(SelectNode(*stored.key, stored.uid, stored.selected), sign)
                return (stored.key,)
            case Volume(name, attachment=attachment):
                if attachment is not None:
                    count(self._attached_as, attachment, sign)
                for by in self._attachments_of.get(name, ()):
                    self._attach(by, stored, sign)
                return (*self._claims_of.get(name, ()), *self._offer(stored, sign))
            case StorageClass(name):
                claims = self.claims.values()
                return tuple(
                    claim.key for claim in claims if isinstance(claim, VolumeClaim) and claim.storage_class == name
                )
            case CsiNode(name, limits, drivers):
                for driver, _ in limits:
                    count(self.limited, driver, sign)
                if sign > 0:
                    self.limits[name], self.installed[name] = dict(limits), drivers
                else:
                    del self.limits[name], self.installed[name]
            case VolumeAttachment(volume=volume):
                enter(self._attachments_of, volume, stored, sign)
                self._attach(stored, self.volume(volume), sign)
            case CsiDriver(name, demanding=True):
                (self.demanding.add if sign > 0 else self.demanding.discard)(name)
        return ()

    def _attach(self, by: VolumeAttachment, volume: Volume | None, sign: int) -> None:
        """Count the volume as attached to its node (1), or no longer (-1). Only volumes of CSI drivers count."""
        if volume is None or volume.attachment is None or volume.in_tree or not by.driver:
            return
        attached = self._attached.setdefault(by.node, Counter())
        count(attached, (by.driver, volume.attachment[1]), sign)
        if not attached:
            del self._attached[by.node]

    def _offer(self, volume: Volume, sign: int) -> Iterable[StorageKey]:
        """List (1) or unlist (-1) a volume to which no claim is bound. Returns the claims that this affects."""
        if not volume.available or volume.in_tree:
            return ()  # a pod that uses a volume of such a kind is refused
        if volume.claimed_by is None:
            enter(self._available, volume.storage_class, volume.name, sign)
        else:
            enter(self._meant_for, volume.claimed_by[:2], volume.name, sign)
        if volume.ours:
            # The volume controller unbinds a volume whose claim was bound to another one, but leaves the mark.
            self._mark(ClaimVolume(volume.name, *(volume.claimed_by or ("", "", ""))), sign)
        if volume.claimed_by is not None:
            return (volume.claimed_by[:2],)
        return self._waiting.get(volume.storage_class, ()) if sign > 0 else ()

    def _mark(self, prebinding: Prebinding, sign: int) -> None:
        self.marked.pop(prebinding, None)
        if sign > 0:
            self.marked[prebinding] = None

    # Pods

    def pod_changes(self, old: Pod | None, new: Pod | None) -> None:
        """A pod was added, changed or removed. A pod that has ended uses nothing."""
        before = keys_of(old) if old is not None and not old.terminal else []
        after = keys_of(new) if new is not None and not new.terminal else []
        if before == after:
            return
        for pod, keys, sign in ((old, before, -1), (new, after, 1)):
            if pod is not None:
                for key in keys:
                    enter(self._users, key, pod.uid, sign)
        for key in (*before, *after):
            self._contest(key)

    def users(self, key: StorageKey) -> Iterable[str]:
        """The known pods, by UID, that use the claim."""
        return self._users.get(key, _NO_USERS)

    def _contest(self, key: StorageKey) -> None:
        if self.has_several_users(key) and self._is_single(key):
            self.contested.add(key)
        else:
            self.contested.discard(key)

    def _is_single(self, key: StorageKey) -> bool:
        claim = self.claim(key)
        return claim is not None and claim.single_pod

    # Queries

    @property
    def claims(self) -> Mapping[StorageKey, StorageObject]:
        """The claims by namespace and name."""
        return self._objects[StorageKind.CLAIM]

    def unready(self, pod: Pod) -> Unready | None:
        """See `unbound.unready`."""
        return unbound.unready(self, pod)

    def volumes(self, pod: Pod, *, own: bool = True) -> Iterator[Volume]:
        """The existing volumes that the pod's claims name; with `own`, those of its ephemeral volumes too."""
        names = (*pod.volume_claims, *pod.own_volume_claims) if own else pod.volume_claims
        for name in names:
            claim = self.claim((pod.namespace, name))
            volume = self.volume(claim.volume) if claim is not None else None
            if volume is not None:
                yield volume

    def waits(self, claim: VolumeClaim) -> bool:
        """Whether the claim is bound only once its pod has a node, or its new volume was not observed yet."""
        if claim.volume:
            return claim.bound and bool(claim.selected) and self.volume(claim.volume) is None
        storage_class = self.storage_class(claim.storage_class)
        return storage_class is not None and storage_class.waits

    def available(self, storage_class: str) -> Iterator[Volume]:
        """The volumes of the class to which any claim may be bound."""
        names = (name for name in self._available.get(storage_class, ()) if name not in self._claims_of)
        return filter(None, map(self.volume, names))

    def meant_for(self, claim: VolumeClaim) -> Iterator[Volume]:
        """The volumes that may be bound to this claim alone."""
        for volume in filter(None, map(self.volume, self._meant_for.get(claim.key, ()))):
            if volume.claimed_by is not None and volume.claimed_by[2] in ("", claim.uid):
                yield volume

    def has_several_users(self, key: StorageKey) -> bool:
        """Whether several known pods use the claim."""
        return len(self._users.get(key, _NO_USERS)) > 1

    def attached(self, node: str) -> Collection[Attachment]:
        """What is attached to the node of this name, or about to be, whether or not a known pod uses it."""
        return self._attached.get(node, ())

    def nodes_of(self, stored: StorageObject | None) -> frozenset[str]:
        """The nodes to which the VolumeAttachment attaches a volume, or to which the volume is attached."""
        match stored:
            case VolumeAttachment(node=node):
                return frozenset((node,))
            case Volume(name):
                return frozenset(by.node for by in self._attachments_of.get(name, ()))
        return frozenset()

    def attachment(self, key: StorageKey) -> Attachment | None:
        """What the claim counts as on a node. Without a volume, it counts as an attachment by its class's driver."""
        claim = self.claim(key)
        if claim is None:
            return None
        volume = self.volume(claim.volume)
        if volume is not None:
            return volume.attachment
        class_ = self.storage_class(claim.storage_class)
        return None if class_ is None or not class_.driver else (class_.driver, f"{key[0]}/{key[1]} (not bound)")

    def is_shared(self, key: StorageKey, attachment: Attachment) -> bool:
        """Whether another known pod may count as the same attachment."""
        claim = self.claim(key)
        claims = self._claims_of.get(claim.volume, {}) if claim is not None else {}
        return len(claims) > 1 or self.has_several_users(key) or self._attached_as[attachment] > 1

    def is_single(self, pod: Pod) -> bool:
        """Whether one of the pod's claims is for a single pod."""
        return any(self._is_single((pod.namespace, name)) for name in pod.volume_claims)

    def claim(self, key: StorageKey) -> VolumeClaim | None:
        """The claim of this namespace and name."""
        claim = self.claims.get(key)
        return claim if isinstance(claim, VolumeClaim) else None

    def volume(self, name: str) -> Volume | None:
        """The volume of this name."""
        volume = self._objects[StorageKind.VOLUME].get(("", name))
        return volume if isinstance(volume, Volume) else None

    def storage_class(self, name: str) -> StorageClass | None:
        """The class of this name."""
        storage_class = self._objects[StorageKind.CLASS].get(("", name))
        return storage_class if isinstance(storage_class, StorageClass) else None

    def contradictions(self, pods: Iterable[Pod]) -> list[str]:
        """A sentence for each difference between the index and the objects and these pods."""
        fresh = Volumes()
        for kind, objects in self._objects.items():
            for key, stored in objects.items():
                fresh.set(kind, key, stored)
        for pod in pods:
            fresh.pod_changes(None, pod)
        kept, expected = vars(self), vars(fresh)
        return [f"volumes: {name[1:]} is not what the objects say" for name in kept if kept[name] != expected[name]]
