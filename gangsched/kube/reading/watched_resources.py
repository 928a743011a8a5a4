"""The watched resources (pods, nodes, namespaces, PriorityClasses, storage, PodGroups), converted to core events."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Raw

from gangsched.api.conversion import group_from_object
from gangsched.api.podgroup_names import PATH
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
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
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.volumes import StorageKind, StorageObject
from gangsched.kube import wire
from gangsched.kube.client import paths
from gangsched.kube.client.resource import Resource, Sent, reading
from gangsched.kube.dialects.dialect_table import DEFAULT, Dialects
from gangsched.kube.reading import storage_values as values
from gangsched.kube.reading.node_values import node_value
from gangsched.kube.reading.pod_values import decode_pod, pod_value
from gangsched.kube.terms.pod_terms import labels
from gangsched.kube.wire import storage_objects as storage_wire
from gangsched.kube.workloads.workload_table import NONE, Workloads

_OBJECT = msgspec.json.Decoder(dict[str, object])


def pods(dialects: Dialects, workloads: Workloads = NONE) -> Resource[Pod]:
    """The resource of pods whose groups are declared in these dialects, or that belong to these workloads."""

    def read(raw: Raw) -> tuple[str | None, Pod]:
        pod = decode_pod(raw)
        return pod.metadata.resource_version, pod_value(pod, dialects, workloads)

    return Resource[Pod](
        name="pods",
        path=paths.PODS,
        read=read,
        form=wire.Pod,
        seen=lambda pod: PodSeen(pod=pod),
        gone=lambda meta: PodGone(uid=meta.uid or ""),
        replaced=lambda pods: PodsReplaced(pods=pods),
    )


def _stored(
    kind: StorageKind, path: str, form: type[Sent], value: Callable[[Sent], StorageObject]
) -> tuple[StorageKind, Resource[StorageObject]]:
    return kind, Resource[StorageObject](
        name=path.rpartition("/")[2],
        path=path,
        read=reading(form, value),
        form=form,
        seen=lambda item: StorageSeen(kind, item),
        gone=lambda meta: StorageGone(kind, (meta.namespace or "", meta.name or "")),
        replaced=lambda items: StorageReplaced(kind, items),
    )


def _namespace(namespace: wire.Namespace) -> NamespaceSeen:
    meta = namespace.metadata
    return NamespaceSeen(meta.name or "", labels(meta.labels), terminating=meta.deletion_timestamp is not None)


def _priority_class(sent: wire.PriorityClass) -> tuple[str, PriorityClass]:
    return sent.metadata.name or "", PriorityClass(sent.value, preempts=sent.preemption_policy != "Never")


def _read_group(raw: Raw) -> tuple[str | None, Group]:
    group = group_from_object(_OBJECT.decode(raw))
    return group.resource_version, group


PODS = pods(DEFAULT)
"""Pods in all dialects, for commands without a configuration."""
NODES = Resource[Node](
    name="nodes",
    path="/api/v1/nodes",
    read=reading(wire.Node, node_value),
    form=wire.Node,
    seen=lambda node: NodeSeen(node=node),
    gone=lambda meta: NodeGone(name=meta.name or ""),
    replaced=lambda nodes: NodesReplaced(nodes=nodes),
)
NAMESPACES = Resource[NamespaceSeen](
    name="namespaces",
    path="/api/v1/namespaces",
    read=reading(wire.Namespace, _namespace),
    form=wire.Namespace,
    seen=lambda namespace: namespace,
    gone=lambda meta: NamespaceGone(name=meta.name or ""),
    replaced=lambda namespaces: NamespacesReplaced(namespaces=namespaces),
)
PRIORITY_CLASSES = Resource[tuple[str, PriorityClass]](
    name="priorityclasses",
    path="/apis/scheduling.k8s.io/v1/priorityclasses",
    read=reading(wire.PriorityClass, _priority_class),
    form=wire.PriorityClass,
    seen=lambda priority_class: PriorityClassSeen(name=priority_class[0], priority_class=priority_class[1]),
    gone=lambda meta: PriorityClassGone(name=meta.name or ""),
    replaced=lambda classes: PriorityClassesReplaced(classes=classes),
)
_STORAGE_API = "/apis/storage.k8s.io/v1"
STORAGE = dict(
    (
        _stored(StorageKind.CLAIM, "/api/v1/persistentvolumeclaims", storage_wire.VolumeClaim, values.volume_claim),
        _stored(StorageKind.VOLUME, "/api/v1/persistentvolumes", storage_wire.PersistentVolume, values.volume),
        _stored(StorageKind.CLASS, f"{_STORAGE_API}/storageclasses", storage_wire.StorageClass, values.storage_class),
        _stored(StorageKind.NODE, f"{_STORAGE_API}/csinodes", storage_wire.CsiNode, values.csi_node),
        _stored(
            StorageKind.ATTACHMENT,
            f"{_STORAGE_API}/volumeattachments",
            storage_wire.VolumeAttachment,
            values.attachment,
        ),
        _stored(StorageKind.DRIVER, f"{_STORAGE_API}/csidrivers", storage_wire.CsiDriver, values.csi_driver),
        _stored(
            StorageKind.CAPACITY,
            f"{_STORAGE_API}/csistoragecapacities",
            storage_wire.StorageCapacity,
            values.storage_capacity,
        ),
    )
)
"""The resources that decide where pods with volumes can run, by kind."""
GROUPS = Resource[Group](
    name="podgroups",
    path=PATH,
    read=_read_group,
    seen=lambda group: GroupSeen(group=group),
    gone=lambda meta: GroupGone(key=GroupKey(meta.namespace or "", meta.name or "")),
    replaced=lambda groups: GroupsReplaced(groups=groups),
    if_missing="install the CustomResourceDefinition, for example with `gangsched crd | kubectl apply --server-side -f "
    "-`",
)
