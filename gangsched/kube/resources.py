"""The watched resources (pods, nodes, namespaces, PriorityClasses, storage, PodGroups), converted to core events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw

from gangsched.api.conversion import group_from_object
from gangsched.api.crd import GROUP, PLURAL, VERSION
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    Event,
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    NamespaceGone,
    NamespaceSeen,
    NamespacesReplaced,
    NodeGone,
    NodeSeen,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    PriorityClassesReplaced,
    PriorityClassGone,
    PriorityClassSeen,
    StorageGone,
    StorageReplaced,
    StorageSeen,
)
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.shape import Labels
from gangsched.core.objects.volumes import (
    CsiDriver,
    CsiNode,
    StorageCapacity,
    StorageClass,
    StorageKind,
    StorageObject,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from gangsched.kube import convert, storage, storage_wire, wire
from gangsched.kube.dialects.table import DEFAULT, Dialects
from gangsched.kube.pod_terms import labels

PAGE = 500
LIST_TIMEOUT_S = 60.0
API_VERSION = f"{GROUP}/{VERSION}"
GROUPS_PATH = f"/apis/{API_VERSION}/{PLURAL}"

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[Value]):
    """A kind of object, its path and its conversion to events.

    `read` returns the object's resourceVersion and its value for the core, and raises `msgspec.DecodeError` if it is
    unreadable. `selector` selects objects by their labels, empty for all. `optional`: gangsched works without the kind,
    for example one of another system. `if_missing` says what to do if it is not served.
    """

    name: str
    path: str
    read: Callable[[Raw], tuple[str | None, Value]]
    seen: Callable[[Value], Event]
    gone: Callable[[wire.Meta], Event]
    replaced: Callable[[tuple[Value, ...]], Event]
    selector: str = ""
    optional: bool = False
    if_missing: str = ""


_POD = msgspec.json.Decoder(wire.Pod)
_POD_CORE = msgspec.json.Decoder(wire.PodCore)
_NODE = msgspec.json.Decoder(wire.Node)
_NAMESPACE = msgspec.json.Decoder(wire.Namespace)
_PRIORITY_CLASS = msgspec.json.Decoder(wire.PriorityClass)
_CLAIM = msgspec.json.Decoder(storage_wire.VolumeClaim)
_VOLUME = msgspec.json.Decoder(storage_wire.PersistentVolume)
_STORAGE_CLASS = msgspec.json.Decoder(storage_wire.StorageClass)
_CSI_NODE = msgspec.json.Decoder(storage_wire.CsiNode)
_ATTACHMENT = msgspec.json.Decoder(storage_wire.VolumeAttachment)
_CSI_DRIVER = msgspec.json.Decoder(storage_wire.CsiDriver)
_CAPACITY = msgspec.json.Decoder(storage_wire.StorageCapacity)
_OBJECT = msgspec.json.Decoder(dict[str, object])


def decode_pod(raw: Raw | bytes) -> wire.Pod:
    """The pod. If a field has an unknown type, only the parts that are needed to let the pod wait with an error.

    Raises:
        msgspec.DecodeError: even these parts cannot be read.
    """
    try:
        return _POD.decode(raw)
    except msgspec.ValidationError as error:
        core = _POD_CORE.decode(raw)
        spec, status = core.spec or wire.PodCoreSpec(), core.status or wire.PodCoreStatus()
        return wire.UnreadablePod(
            metadata=core.metadata,
            spec=wire.PodSpec(node_name=spec.node_name, scheduler_name=spec.scheduler_name, priority=spec.priority),
            status=wire.PodStatus(phase=status.phase),
            why=str(error),
        )


def pods(dialects: Dialects) -> Resource[Pod]:
    """The resource of pods whose groups are declared in these dialects."""

    def read(raw: Raw) -> tuple[str | None, Pod]:
        found = decode_pod(raw)
        return found.metadata.resource_version, convert.pod(found, dialects)

    return Resource[Pod](
        name="pods",
        path="/api/v1/pods",
        read=read,
        seen=lambda pod: PodSeen(pod=pod),
        gone=lambda meta: PodGone(uid=meta.uid or ""),
        replaced=lambda pods: PodsReplaced(pods=pods),
    )


def _read_node(raw: Raw) -> tuple[str | None, Node]:
    found = _NODE.decode(raw)
    return found.metadata.resource_version, convert.node(found)


def _read_namespace(raw: Raw) -> tuple[str | None, tuple[str, Labels]]:
    meta = _NAMESPACE.decode(raw).metadata
    return meta.resource_version, (meta.name or "", labels(meta.labels))


def _read_priority_class(raw: Raw) -> tuple[str | None, tuple[str, int]]:
    found = _PRIORITY_CLASS.decode(raw)
    return found.metadata.resource_version, (found.metadata.name or "", found.value)


def _read_claim(raw: Raw) -> tuple[str | None, VolumeClaim]:
    found = _CLAIM.decode(raw)
    return found.metadata.resource_version, storage.volume_claim(found)


def _read_volume(raw: Raw) -> tuple[str | None, Volume]:
    found = _VOLUME.decode(raw)
    return found.metadata.resource_version, storage.volume(found)


def _read_storage_class(raw: Raw) -> tuple[str | None, StorageClass]:
    found = _STORAGE_CLASS.decode(raw)
    return found.metadata.resource_version, storage.storage_class(found)


def _read_csi_node(raw: Raw) -> tuple[str | None, CsiNode]:
    found = _CSI_NODE.decode(raw)
    return found.metadata.resource_version, storage.csi_node(found)


def _read_attachment(raw: Raw) -> tuple[str | None, VolumeAttachment]:
    found = _ATTACHMENT.decode(raw)
    return found.metadata.resource_version, storage.attachment(found)


def _read_csi_driver(raw: Raw) -> tuple[str | None, CsiDriver]:
    found = _CSI_DRIVER.decode(raw)
    return found.metadata.resource_version, storage.csi_driver(found)


def _read_capacity(raw: Raw) -> tuple[str | None, StorageCapacity]:
    found = _CAPACITY.decode(raw)
    return found.metadata.resource_version, storage.storage_capacity(found)


def _stored(
    kind: StorageKind, name: str, path: str, read: Callable[[Raw], tuple[str | None, StorageObject]]
) -> Resource[StorageObject]:
    return Resource[StorageObject](
        name=name,
        path=path,
        read=read,
        seen=lambda found: StorageSeen(kind, found),
        gone=lambda meta: StorageGone(kind, (meta.namespace or "", meta.name or "")),
        replaced=lambda found: StorageReplaced(kind, found),
    )


def _read_group(raw: Raw) -> tuple[str | None, Group]:
    group = group_from_object(_OBJECT.decode(raw))
    return group.resource_version, group


PODS = pods(DEFAULT)
"""Pods in all dialects, for commands without a configuration."""
NODES = Resource[Node](
    name="nodes",
    path="/api/v1/nodes",
    read=_read_node,
    seen=lambda node: NodeSeen(node=node),
    gone=lambda meta: NodeGone(name=meta.name or ""),
    replaced=lambda nodes: NodesReplaced(nodes=nodes),
)
NAMESPACES = Resource[tuple[str, Labels]](
    name="namespaces",
    path="/api/v1/namespaces",
    read=_read_namespace,
    seen=lambda namespace: NamespaceSeen(name=namespace[0], labels=namespace[1]),
    gone=lambda meta: NamespaceGone(name=meta.name or ""),
    replaced=lambda namespaces: NamespacesReplaced(namespaces=namespaces),
)
PRIORITY_CLASSES = Resource[tuple[str, int]](
    name="priorityclasses",
    path="/apis/scheduling.k8s.io/v1/priorityclasses",
    read=_read_priority_class,
    seen=lambda found: PriorityClassSeen(name=found[0], value=found[1]),
    gone=lambda meta: PriorityClassGone(name=meta.name or ""),
    replaced=lambda classes: PriorityClassesReplaced(classes=classes),
)
STORAGE = {
    StorageKind.CLAIM: _stored(
        StorageKind.CLAIM, "persistentvolumeclaims", "/api/v1/persistentvolumeclaims", _read_claim
    ),
    StorageKind.VOLUME: _stored(StorageKind.VOLUME, "persistentvolumes", "/api/v1/persistentvolumes", _read_volume),
    StorageKind.CLASS: _stored(
        StorageKind.CLASS, "storageclasses", "/apis/storage.k8s.io/v1/storageclasses", _read_storage_class
    ),
    StorageKind.NODE: _stored(StorageKind.NODE, "csinodes", "/apis/storage.k8s.io/v1/csinodes", _read_csi_node),
    StorageKind.ATTACHMENT: _stored(
        StorageKind.ATTACHMENT, "volumeattachments", "/apis/storage.k8s.io/v1/volumeattachments", _read_attachment
    ),
    StorageKind.DRIVER: _stored(
        StorageKind.DRIVER, "csidrivers", "/apis/storage.k8s.io/v1/csidrivers", _read_csi_driver
    ),
    StorageKind.CAPACITY: _stored(
        StorageKind.CAPACITY, "csistoragecapacities", "/apis/storage.k8s.io/v1/csistoragecapacities", _read_capacity
    ),
}
"""What decides where pods with volumes run, by kind."""
GROUPS = Resource[Group](
    name="podgroups",
    path=GROUPS_PATH,
    read=_read_group,
    seen=lambda group: GroupSeen(group=group),
    gone=lambda meta: GroupGone(key=GroupKey(meta.namespace or "", meta.name or "")),
    replaced=lambda groups: GroupsReplaced(groups=groups),
    if_missing="install the CustomResourceDefinition, for example with `gangsched crd | kubectl apply -f -`",
)
