"""Storage objects in their wire format, with only the fields that gangsched reads; `wire` has the other objects."""

from __future__ import annotations

from msgspec import Struct

from gangsched.kube import wire


class ClaimSpec(Struct, gc=False, rename="camel"):
    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: list[str] | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    selector: wire.LabelSelector | None = None
    resources: wire.Resources | None = None


class VolumeClaim(Struct, gc=False):
    """A PersistentVolumeClaim."""

    metadata: wire.Meta
    spec: ClaimSpec | None = None
    status: wire.Phased | None = None


class VolumeNodeAffinity(Struct, gc=False):
    required: wire.NodeSelector | None = None


class ClaimRef(Struct, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeSpec(wire.InTreeSources, gc=False, rename="camel"):
    csi: wire.CsiSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    capacity: wire.Quantities | None = None
    access_modes: list[str] | None = None
    volume_mode: str | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: ClaimRef | None = None


class PersistentVolume(Struct, gc=False):
    metadata: wire.Meta
    spec: PersistentVolumeSpec | None = None
    status: wire.Phased | None = None


class TopologyLabel(Struct, gc=False):
    key: str = ""
    values: list[str] | None = None


class TopologyTerm(Struct, gc=False, rename="camel"):
    match_label_expressions: list[TopologyLabel] | None = None


class StorageClass(Struct, gc=False, rename="camel"):
    metadata: wire.Meta
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] | None = None


class DriverLimit(Struct, gc=False):
    count: int | None = None


class DriverOnNode(Struct, gc=False):
    name: str = ""
    allocatable: DriverLimit | None = None


class CsiNodeSpec(Struct, gc=False):
    drivers: list[DriverOnNode] | None = None


class CsiNode(Struct, gc=False):
    metadata: wire.Meta
    spec: CsiNodeSpec | None = None


class CsiDriverSpec(Struct, gc=False, rename="camel"):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CsiDriver(Struct, gc=False):
    metadata: wire.Meta
    spec: CsiDriverSpec | None = None


class StorageCapacity(Struct, gc=False, rename="camel"):
    """A CSIStorageCapacity."""

    metadata: wire.Meta
    storage_class_name: str = ""
    node_topology: wire.LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class AttachmentSource(Struct, gc=False, rename="camel"):
    persistent_volume_name: str | None = None


class AttachmentSpec(Struct, gc=False, rename="camel"):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource | None = None


class VolumeAttachment(Struct, gc=False):
    metadata: wire.Meta
    spec: AttachmentSpec | None = None
