"""Converts the volumes of pods, and the objects behind them, to the values of the core.

CSI drivers also attach some disks that are named in the older, in-tree way (CSI migration): those of
k8s.io/csi-translation-lib for which `isCSIMigrationOn` in nodevolumelimits/utils.go at v1.37.2 holds. azureFile and
vsphereVolume are therefore ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from sys import intern
from typing import NamedTuple

from msgspec.structs import replace

from gangsched.core.objects.quantity import InvalidQuantity, Quantity, whole
from gangsched.core.objects.shape import Attachment, Disk, NodeTerm, Requirement
from gangsched.core.objects.volumes import (
    ZONE_LABELS,
    CsiDriver,
    CsiNode,
    StorageCapacity,
    StorageClass,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from gangsched.kube import wire
from gangsched.kube.terms.node_terms import requirements
from gangsched.kube.terms.pod_terms import selecting
from gangsched.kube.terms.sharing import sharing
from gangsched.kube.wire import storage_objects as storage_wire

_MOST = 1 << 31
"""Upper bound for the limit of a driver on a node: more than any value that the API server accepts."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""The annotation of a claim that names the node for which its volume is to be provisioned."""
MARK = "gangsched.io/pre-binding"
"""The annotation that marks a claim or volume on which gangsched has written a pre-binding. Its value is a UID: that of
the pod, or of the claim to which the volume is to be bound."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"
CLASS = "volume.beta.kubernetes.io/storage-class"
_ANYWHERE = Requirement(key="", operator="DoesNotExist")
"""A requirement that every node meets."""
_OF_LABELS = ("In", "NotIn", "Exists", "DoesNotExist")
"""The operators of a label selector. A selector with another operator selects nothing."""

IN_TREE: dict[str, tuple[str, str, Callable[[wire.Disk], str]]] = {
    "gcePersistentDisk": (
        "kubernetes.io/gce-pd",
        "pd.csi.storage.gke.io",
        lambda disk: f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{disk.pd_name}",
    ),
    "awsElasticBlockStore": (
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        lambda disk: (disk.volume_id or "").rpartition("/")[2],
    ),
    "azureDisk": ("kubernetes.io/azure-disk", "disk.csi.azure.com", lambda disk: disk.disk_uri or ""),
    "cinder": ("kubernetes.io/cinder", "cinder.csi.openstack.org", lambda disk: disk.volume_id or ""),
    "portworxVolume": ("kubernetes.io/portworx-volume", "pxd.portworx.com", lambda disk: disk.volume_id or ""),
}
"""By kind of source: the former plug-in, the CSI driver that has replaced it, and the driver's name for the disk."""
_DRIVERS = {plugin: driver for plugin, driver, _ in IN_TREE.values()}


class PodVolumes(NamedTuple):
    """The names of a pod's claims, the names of those for its ephemeral volumes, and the disks that it names itself."""

    claims: tuple[str, ...] = ()
    own_claims: tuple[str, ...] = ()
    disks: tuple[Disk, ...] = ()


NO_VOLUMES = PodVolumes()
_shared_terms, _shared_zones, _shared_modes = sharing(), sharing(), sharing()
_shared_limits, _shared_drivers = sharing(), sharing()


def pod_volumes(pod: str, volumes: Iterable[wire.Volume]) -> PodVolumes:
    """The claims and disks among the volumes of the pod with this name. Volumes of most kinds do not matter."""
    claims: dict[str, None] = {}
    own_claims: list[str] = []
    disks: list[Disk] = []
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            claims[volume.persistent_volume_claim.claim_name] = None
        elif volume.ephemeral is not None:
            own_claims.append(f"{pod}-{volume.name}")
        elif _names_disk(volume):
            disks += _disks(volume)
    return PodVolumes(tuple(claims), tuple(own_claims), tuple(disks)) if claims or own_claims or disks else NO_VOLUMES


def _names_disk(volume: wire.Volume) -> bool:
    """Whether `_disks` yields anything. The check is fast: nearly every pod has a volume, and few name a disk."""
    return (
        volume.iscsi is not None
        or volume.rbd is not None
        or volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.azure_disk is not None
        or volume.cinder is not None
        or volume.portworx_volume is not None
    )


def _disks(volume: wire.Volume) -> Iterator[Disk]:
    for kind, disk in _in_tree(volume):
        names: tuple[str, ...] = ()
        if kind == "gcePersistentDisk":
            names = (disk.pd_name or "",)
        elif kind == "awsElasticBlockStore":
            names = (disk.volume_id or "",)
        read_only = bool(disk.read_only) and kind != "awsElasticBlockStore"
        yield Disk(kind, names, read_only, _attachment(kind, disk))
    if volume.iscsi is not None:
        yield Disk("iscsi", (volume.iscsi.iqn or "",), bool(volume.iscsi.read_only))
    if volume.rbd is not None:
        rbd = volume.rbd
        names = tuple(f"{monitor} {rbd.pool or ''} {rbd.image or ''}" for monitor in rbd.monitors or ())
        yield Disk("rbd", names, bool(rbd.read_only))


def _in_tree(sources: wire.InTreeSources) -> Iterator[tuple[str, wire.Disk]]:
    by_kind = (
        sources.gce_persistent_disk,
        sources.aws_elastic_block_store,
        sources.azure_disk,
        sources.cinder,
        sources.portworx_volume,
    )
    for kind, disk in zip(IN_TREE, by_kind, strict=True):
        if disk is not None:
            yield kind, disk


def _attachment(kind: str, disk: wire.Disk) -> Attachment:
    _, driver, name_of = IN_TREE[kind]
    return driver, name_of(disk)


def volume_claim(pvc: storage_wire.VolumeClaim) -> VolumeClaim:
    """The core's value for a PersistentVolumeClaim."""
    meta, spec = pvc.metadata, pvc.spec or storage_wire.ClaimSpec()
    annotations = meta.annotations or {}
    owner = next((owner.uid for owner in meta.owner_references or () if owner.controller), "")
    open_ = not spec.volume_name
    return VolumeClaim(
        namespace=intern(meta.namespace or "default"),
        name=meta.name or "",
        volume=intern(spec.volume_name or ""),
        storage_class=intern(annotations.get(CLASS, spec.storage_class_name or "")),
        bound=BIND_COMPLETED in annotations,
        lost=pvc.status is not None and pvc.status.phase == "Lost",
        terminating=meta.deletion_timestamp is not None,
        single_pod="ReadWriteOncePod" in (spec.access_modes or ()),
        owner=owner,
        uid=meta.uid or "",
        size=_size(spec.resources.requests if spec.resources is not None else None) if open_ else 0,
        modes=_modes(spec.access_modes) if open_ else (),
        block=open_ and spec.volume_mode == "Block",
        attributes=intern(spec.volume_attributes_class_name or "") if open_ else "",
        selector=selecting(spec.selector) or () if open_ else (),
        selected=intern(annotations.get(SELECTED_NODE, "")),
        ours=MARK in annotations,
    )


def volume(pv: storage_wire.PersistentVolume) -> Volume:
    """The core's value for a PersistentVolume."""
    meta, spec = pv.metadata, pv.spec or storage_wire.PersistentVolumeSpec()
    required = spec.node_affinity.required if spec.node_affinity is not None else None
    in_tree = next(_in_tree(spec), None)
    attachment = None
    if spec.csi is not None:
        attachment = (intern(spec.csi.driver), spec.csi.volume_handle)
    elif in_tree is not None:
        attachment = _attachment(*in_tree)
    value = Volume(
        name=intern(meta.name or ""),
        node_affinity=None if required is None else _shared_terms(_terms(required)),
        zones=_shared_zones(tuple(_zones(meta.labels))) if meta.labels else (),
        attachment=attachment,
        in_tree=in_tree[0] if in_tree is not None else "",
    )
    phase = pv.status.phase if pv.status is not None else None
    ref, annotations = spec.claim_ref, meta.annotations or {}
    # A volume with a claimRef is available to that claim in any phase, such as Released, unless it is bound already.
    meant = ref is not None and not (phase == "Bound" and ref.uid)
    if not (phase == "Available" or meant) or meta.deletion_timestamp is not None:
        return value
    return replace(
        value,
        available=True,
        storage_class=intern(annotations.get(CLASS, spec.storage_class_name or "")),
        size=_size(spec.capacity),
        modes=_modes(spec.access_modes),
        block=spec.volume_mode == "Block",
        attributes=intern(spec.volume_attributes_class_name or ""),
        labels=tuple(sorted((meta.labels or {}).items())),
        claimed_by=None if ref is None else (ref.namespace, ref.name, ref.uid),
        ours=MARK in annotations,
    )


def _size(amounts: wire.Quantities | None) -> int:
    """The amount of storage, in bytes; 0 if it cannot be read."""
    try:
        return whole((amounts or {}).get("storage", "0"))
    except InvalidQuantity:
        return 0


def _modes(modes: list[str] | None) -> tuple[str, ...]:
    return _shared_modes(tuple(sorted(modes or ())))


def storage_class(class_: storage_wire.StorageClass) -> StorageClass:
    """The core's value for a StorageClass."""
    return StorageClass(
        name=class_.metadata.name or "",
        driver=_DRIVERS.get(class_.provisioner, class_.provisioner),
        waits=class_.volume_binding_mode == "WaitForFirstConsumer",
        provisions=class_.provisioner not in ("", NO_PROVISIONER),
        topologies=tuple(map(_topology, class_.allowed_topologies)) if class_.allowed_topologies else None,
        in_tree=class_.provisioner in _DRIVERS,
    )


def _topology(term: storage_wire.TopologyTerm) -> NodeTerm:
    """The labels that a node must have. A term without labels matches no node."""
    return NodeTerm(
        tuple(
            Requirement(expression.key, "In", tuple(expression.values or ()))
            for expression in term.match_label_expressions or ()
        )
    )


def csi_node(node: storage_wire.CsiNode) -> CsiNode:
    """The core's value for a CSINode."""
    drivers = node.spec.drivers or () if node.spec is not None else ()
    limits = {
        intern(driver.name): min(driver.allocatable.count, _MOST)
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    return CsiNode(
        name=node.metadata.name or "",
        limits=_shared_limits(tuple(sorted(limits.items()))),
        drivers=_shared_drivers(frozenset(intern(driver.name) for driver in drivers)),
    )


def csi_driver(driver: storage_wire.CsiDriver) -> CsiDriver:
    """The core's value for a CSIDriver."""
    spec = driver.spec or storage_wire.CsiDriverSpec()
    return CsiDriver(
        name=driver.metadata.name or "",
        capacity=bool(spec.storage_capacity),
        demanding=bool(spec.prevent_pod_scheduling_if_missing),
    )


def storage_capacity(capacity: storage_wire.StorageCapacity) -> StorageCapacity:
    """The core's value for a CSIStorageCapacity."""
    topology = None
    if capacity.node_topology is not None:
        selected = selecting(capacity.node_topology) or ()
        if all(requirement.operator in _OF_LABELS for requirement in selected):
            topology = NodeTerm(selected or (_ANYWHERE,))
    return StorageCapacity(
        namespace=intern(capacity.metadata.namespace or "default"),
        name=capacity.metadata.name or "",
        storage_class=intern(capacity.storage_class_name),
        topology=topology,
        capacity=_optional_size(capacity.capacity),
        largest=_optional_size(capacity.maximum_volume_size),
    )


def _optional_size(amount: Quantity | None) -> int | None:
    return None if amount is None else _size({"storage": amount})


def attachment(volume_attachment: storage_wire.VolumeAttachment) -> VolumeAttachment:
    """The core's value for a VolumeAttachment."""
    spec = volume_attachment.spec or storage_wire.AttachmentSpec()
    source = spec.source or storage_wire.AttachmentSource()
    return VolumeAttachment(
        name=volume_attachment.metadata.name or "",
        node=intern(spec.node_name),
        volume=intern(source.persistent_volume_name or ""),
        driver=intern(spec.attacher),
    )


def _terms(required: wire.NodeSelector) -> tuple[NodeTerm, ...]:
    """The terms of a volume's node affinity. kube-scheduler and kubelet compare only labels and ignore fields."""
    terms = []
    for term in required.node_selector_terms or ():
        expressions = requirements(term.match_expressions)
        terms.append(NodeTerm(expressions=expressions or ((_ANYWHERE,) if term.match_fields else ())))
    return tuple(terms)


def _zones(labels: wire.Strings) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each zone or region label with its values, which `__` separates; one with an empty value is ignored."""
    for key in ZONE_LABELS:
        if key in labels:
            values = [value.strip() for value in labels[key].split("__")]
            if all(values):
                yield key, tuple(sorted(set(values)))
