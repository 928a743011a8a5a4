"""Reads the objects of a cluster that decide where pods go, without secrets and without fields that decide nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Any

from gangsched.api.conversion import SCHEDULER
from gangsched.cli.group_reader import DECIDING
from gangsched.config.dialects import CustomResource
from gangsched.core.objects.workload import GANG
from gangsched.kube import wire
from gangsched.kube.client.discovery import listed_versions
from gangsched.kube.client.errors import ApiError
from gangsched.kube.client.pages import objects as whole
from gangsched.kube.client.pages import pages
from gangsched.kube.client.resource import Resource
from gangsched.kube.client.session import ApiSession
from gangsched.kube.dialects.dialect_fields import Field, mark_ignored
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.reading import storage_values
from gangsched.kube.reading.kept import Kept, kept_below, kept_of
from gangsched.kube.reading.watched_resources import PRIORITY_CLASSES
from gangsched.kube.terms.pod_failures import is_rejection
from gangsched.kube.wire import device_objects as device_wire
from gangsched.kube.workloads import template
from gangsched.kube.workloads.workload_table import Workloads
from gangsched.whatif.world import stored
from gangsched.whatif.world.admitting import ADMITTING
from gangsched.whatif.world.made import RECORDED

Object = dict[str, Any]

ANNOTATIONS = frozenset(
    {
        *DEFAULT.annotations,
        *(GANG, RECORDED, SCHEDULER),
        *(
            storage_values.SELECTED_NODE,
            storage_values.MARK,
            storage_values.BIND_COMPLETED,
            storage_values.CLASS,
            stored.DEFAULT_CLASS,
        ),
        device_wire.EXTENDED,
    }
)
"""The annotations that are kept, beside those that a kind of workloads reads: the ones that decide something."""
_META = kept_of(wire.Meta)


@dataclass(frozen=True, slots=True)
class Listed:
    """A kind to read: its name in messages, its path and what is `kept` of its objects.

    `annotations` are kept beside ANNOTATIONS. `workload`: its pods are recorded too.
    """

    name: str
    path: str
    kept: Kept
    annotations: frozenset[str] = frozenset()
    workload: bool = False


async def kinds(session: ApiSession, workloads: Workloads) -> Sequence[Listed]:
    """The kinds that decide where pods go and that the API server serves.

    Raises:
        ApiError, ApiUnreachable, Garbled: the API server gave no complete answer.
    """
    served = await listed_versions(session)
    return list(every_kind(workloads, served))


def every_kind(workloads: Workloads, served: Container[str]) -> Iterator[Listed]:
    """All kinds that decide where pods go, of those of other systems the ones in `served`, as GROUP/VERSION."""
    yield from (Listed(name, path, kept_of(form)) for name, path, form in ADMITTING)
    yield from (Listed(each.name, each.path, _kept(each)) for each in DECIDING if each is not PRIORITY_CLASSES)
    for kind in DEFAULT.kinds.values():
        for path in _path(kind.resource, served):
            yield Listed(kind.resource.name, path, _spec_of(partial(_told, kind.fields, kept_of(kind.spec))))
    for each in workloads.kinds.values():
        for path in _path(each.row.resource, served):
            kept = kept_of(each.form, template.FORM) if each.below is None else _spec_of(kept_below(each.below))
            yield Listed(each.row.resource.name, path, kept, frozenset(each.annotations), workload=True)


def _path(resource: CustomResource, served: Container[str]) -> Sequence[str]:
    """The path of the first version that is served, if one is."""
    versions = (each for each in resource.versions if f"{resource.group}/{each}" in served)
    return [resource.path(version) for version in islice(versions, 1)]


def _kept(resource: Resource[Any]) -> Kept:
    """What is kept of an object; of a PodGroup of ours spec and status, which consist of known fields."""
    if resource.form is None:
        return _spec_of(lambda spec: spec, "status")
    kept = kept_of(resource.form)
    return partial(_pod, kept) if resource.form is wire.Pod else kept


def _pod(keep: Kept, found: Object) -> Object:
    """The pod; of messages only those of the scheduler, and of a kubelet that rejected it: others may say anything."""
    kept: Object = keep(found)
    status = kept.get("status")
    if isinstance(status, dict):
        said = wire.PodStatus(reason=_text(status.get("reason")), message=_text(status.get("message")))
        if not is_rejection(said):
            status.pop("message", None)
        for each in status.get("conditions") or ():
            if each and each.get("type") != "PodScheduled":
                each.pop("message", None)
    return kept


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _told(fields: Sequence[Field], keep: Kept, spec: Object) -> Object:
    """The spec; of fields that are not honoured, which an Event tells, no more than that they are in use."""
    kept: Object = keep(spec)
    mark_ignored(fields, spec, kept)
    return kept


def _spec_of(spec: Kept, *others: str) -> Kept:
    """Keeps metadata, what `spec` keeps of the spec, and these other fields whole."""

    def kept(found: Object) -> Object:
        parts = {name: found[name] for name in others if name in found}
        return {"metadata": _META(found.get("metadata") or {}), "spec": spec(found.get("spec") or {}), **parts}

    return kept


async def objects(session: ApiSession, kind: Listed, refused: Callable[[str], None]) -> AsyncIterator[Object]:
    """The kind's objects, as in a manifest. `refused` receives a sentence if the caller may not list them.

    Raises:
        ApiError, ApiUnreachable, Garbled: any failure except a missing right or a kind that is not served.
    """
    try:
        async for page in pages(session, kind.path, kind.name, resumes=True):
            for item in whole(page, kind.name):
                yield {"apiVersion": item["apiVersion"], "kind": item["kind"], **recorded(item, kind)}
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            refused(f"You may not list {kind.name}, so the snapshot has none: request the right to list them.")
        elif error.status != HTTPStatus.NOT_FOUND:
            raise


def recorded(item: Object, kind: Listed) -> Object:
    """What is kept of the object. An annotation on a workload says that its pods are recorded too."""
    found: Object = _annotated(kind.kept(item), ANNOTATIONS | kind.annotations)
    if kind.workload:
        metadata = found.setdefault("metadata", {})
        metadata["annotations"] = {**metadata.get("annotations", {}), RECORDED: "true"}
    return found


def _annotated(value: Any, names: Container[str]) -> Any:  # noqa: ANN401 - any part of an object
    """The value with these annotations alone, wherever it has metadata."""
    if isinstance(value, list):
        return [_annotated(each, names) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: {key: text for key, text in inner.items() if key in names}
        if name == "annotations" and isinstance(inner, Mapping)
        else _annotated(inner, names)
        for name, inner in value.items()
    }
