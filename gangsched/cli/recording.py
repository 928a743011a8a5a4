"""Reads the objects of a cluster that decide where pods go, without secrets and without fields that decide nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from gangsched.cli.live import DECIDING
from gangsched.kube.dialects.table import DEFAULT
from gangsched.kube.discovery import listed_versions
from gangsched.kube.errors import ApiError
from gangsched.kube.pages import pages
from gangsched.kube.session import ApiSession
from gangsched.kube.workloads.table import Workloads
from gangsched.whatif.world.made import RECORDED

Object = dict[str, Any]

CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
KEPT_OF_CONTAINERS = ("name", "image", "resources", "ports", "restartPolicy")
"""Fields of a container that decide where its pod goes. Environment, commands, mounts and probes may hold secrets."""
_LEFT_OUT_OF_METADATA = ("managedFields", "selfLink")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LEFT_OUT = {"volumeAttributes"}
"""Parameters of a CSI driver; some drivers use them for credentials."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A kind to read: its name in messages and its path. `workload`: its pods are recorded too."""

    name: str
    path: str
    workload: bool = False


async def kinds(session: ApiSession, workloads: Workloads) -> Sequence[Listed]:
    """The kinds that decide where pods go and that the API server serves.

    Raises:
        ApiError, ApiUnreachable, Garbled: the API server gave no complete answer.
    """
    served = await listed_versions(session)
    others = [(kind.resource, False) for kind in DEFAULT.kinds.values()]
    others += [(kind.row.resource, True) for kind in workloads.kinds.values()]
    return [
        *(Listed(resource.name, resource.path) for resource in DECIDING),
        *(
            Listed(resource.name, resource.path(version), workload)
            for resource, workload in others
            for version in [next((each for each in resource.versions if f"{resource.group}/{each}" in served), "")]
            if version
        ),
    ]


async def objects(session: ApiSession, kind: Listed, refused: Callable[[str], None]) -> AsyncIterator[Object]:
    """The kind's objects, as in a manifest. `refused` receives a sentence if the caller may not list them.

    Raises:
        ApiError, ApiUnreachable, Garbled: any failure except a missing right or a kind that is not served.
    """
    try:
        async for page in pages(session, kind.path, kind.name):
            head = {"apiVersion": page.get("apiVersion"), "kind": str(page.get("kind")).removesuffix("List")}
            for item in page.get("items") or ():
                yield {**head, **recorded(item, workload=kind.workload)}
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            refused(f"You may not list {kind.name}, so the snapshot has none: request the right to list them.")
        elif error.status != HTTPStatus.NOT_FOUND:
            raise


def recorded(item: Object, *, workload: bool = False) -> Object:
    """The object without the fields to leave out. An annotation on a workload says that its pods are recorded too."""
    found = {**_stripped(item), "metadata": dict(_metadata(item.get("metadata") or {}))}
    if workload:
        found["metadata"]["annotations"] = {**found["metadata"].get("annotations", {}), RECORDED: "true"}
    return found


def _metadata(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in metadata.items():
        if name == "annotations":
            yield name, {key: text for key, text in (value or {}).items() if key != _LAST_APPLIED}
        elif name not in _LEFT_OUT_OF_METADATA:
            yield name, value


def _stripped(value: Any) -> Any:  # noqa: ANN401 - any part of an object
    if isinstance(value, list):
        return [_stripped(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: [_container(each) for each in inner]
        if name in CONTAINERS and isinstance(inner, list)
        else _stripped(inner)
        for name, inner in value.items()
        if name not in _LEFT_OUT
    }


def _container(said: Any) -> Any:  # noqa: ANN401 - a template may list anything as a container
    return {name: said[name] for name in KEPT_OF_CONTAINERS if name in said} if isinstance(said, dict) else {}
