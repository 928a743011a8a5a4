"""What is watched: pods, nodes, namespaces and PriorityClasses by reflectors; PodGroups are only listed from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from gangsched.api.conversion import group_from_object
from gangsched.api.crd import GROUP, PLURAL, VERSION
from gangsched.core.events import (
    Event,
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
)
from gangsched.core.model import Group, Labels, Node, Pod
from gangsched.kube import convert, wire
from gangsched.kube.dialects.table import DEFAULT, Dialects
from gangsched.kube.discovery import listed_versions
from gangsched.kube.errors import CrdMissing, Garbled
from gangsched.kube.session import ApiSession

PAGE = 500
LIST_TIMEOUT_S = 60.0
API_VERSION = f"{GROUP}/{VERSION}"
GROUPS_PATH = f"/apis/{API_VERSION}/{PLURAL}"

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[Value]):
    """A kind of object, where it is found and how it becomes events.

    `read` gives the object's resourceVersion and its value for the core, and raises `msgspec.DecodeError` where it
    cannot be read at all. `selector` chooses objects by their labels, empty for all. `optional`: the kind may cease to
    be served, as that of another system.
    """

    name: str
    path: str
    read: Callable[[Raw], tuple[str | None, Value]]
    seen: Callable[[Value], Event]
    gone: Callable[[wire.Meta], Event]
    replaced: Callable[[tuple[Value, ...]], Event]
    selector: str = ""
    optional: bool = False


_POD = msgspec.json.Decoder(wire.Pod)
_POD_CORE = msgspec.json.Decoder(wire.PodCore)
_NODE = msgspec.json.Decoder(wire.Node)
_NAMESPACE = msgspec.json.Decoder(wire.Namespace)
_PRIORITY_CLASS = msgspec.json.Decoder(wire.PriorityClass)


def decode_pod(raw: Raw | bytes) -> wire.Pod:
    """The pod; with a field that has another type than we know, as much of it as is needed to let it wait by name.

    Raises:
        msgspec.DecodeError: not even that can be read.
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
    """Pods, whose groups are named in these dialects."""

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
    return meta.resource_version, (meta.name or "", convert.labels(meta.labels))


def _read_priority_class(raw: Raw) -> tuple[str | None, tuple[str, int]]:
    found = _PRIORITY_CLASS.decode(raw)
    return found.metadata.resource_version, (found.metadata.name or "", found.value)


PODS = pods(DEFAULT)
"""Pods as a command without configuration reads them: all dialects."""
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


class _GroupPage(Struct, gc=False):
    metadata: wire.ListMeta
    items: list[dict[str, Any]] | None = None


_GROUP_PAGE = msgspec.json.Decoder(_GroupPage)


async def check_discovery(session: ApiSession) -> None:
    """See that the API server's discovery lists PodGroups' group: it does so a little later than it serves them.

    Raises:
        CrdMissing: it does not list it (yet).
        ApiError, ApiUnreachable, Garbled: the answer did not come whole.
    """
    if API_VERSION not in await listed_versions(session):
        raise CrdMissing(f"The API server's discovery (/apis) does not list {API_VERSION} yet: wait.")


async def list_groups(session: ApiSession, *, most: int | None = None) -> tuple[list[Group], str]:
    """All PodGroups of the cluster, or the first `most`, and the resourceVersion at which this was so.

    Raises:
        CrdMissing: the CustomResourceDefinition is not installed.
        ApiError, ApiUnreachable, Garbled: the list did not come whole.
    """
    groups: list[Group] = []
    params = {"limit": str(most or PAGE)}
    while True:
        answer = await session.request("GET", GROUPS_PATH, params=params, timeout_s=LIST_TIMEOUT_S)
        if answer.status == HTTPStatus.NOT_FOUND:
            raise CrdMissing(
                f"The API server does not know {PLURAL}.{GROUP}:"
                " install the CustomResourceDefinition, for example with `gangsched crd | kubectl apply -f -`."
            )
        try:
            page = _GROUP_PAGE.decode(answer.checked().body)
        except msgspec.DecodeError as error:
            raise Garbled(f"A list of podgroups cannot be read: {error}") from error
        groups += map(group_from_object, page.items or ())
        if most is not None or not page.metadata.continue_:
            return groups, page.metadata.resource_version or ""
        params["continue"] = page.metadata.continue_
