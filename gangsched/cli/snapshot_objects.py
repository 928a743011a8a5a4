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
from gangsched.kube.reading.disruption_values import BUDGETS
from gangsched.kube.reading.kept import Kept, kept_below, kept_of
from gangsched.kube.reading.pod_values import EXPECTED_RUNTIME
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
        *(GANG, RECORDED, SCHEDULER, EXPECTED_RUNTIME),
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
    yield from (
        Listed(resource.name, resource.path, _kept(resource))
        for resource in (*DECIDING, BUDGETS)
        if resource is not PRIORITY_CLASSES
    )
    for kind in DEFAULT.kinds.values():
        for path in _path(kind.resource, served):
            yield Listed(kind.resource.name, path, _spec_of(partial(_foreign_spec, kind.fields, kept_of(kind.spec))))
    for workload in workloads.kinds.values():
        for path in _path(workload.row.resource, served):
            keep = (
                kept_of(workload.form, template.FORM)
                if workload.below is None
                else _spec_of(kept_below(workload.below))
            )
            yield Listed(workload.row.resource.name, path, keep, frozenset(workload.annotations), workload=True)


def _path(resource: CustomResource, served: Container[str]) -> Sequence[str]:
    """The path of the first version that is served, if one is."""
    versions = (version for version in resource.versions if f"{resource.group}/{version}" in served)
    return [resource.path(version) for version in islice(versions, 1)]


def _kept(resource: Resource[Any]) -> Kept:
    """What is kept of an object; of a PodGroup of ours spec and status, which consist of known fields."""
    if resource.form is None:
        return _spec_of(lambda spec: spec, "status")
    keep = kept_of(resource.form)
    return partial(_pod, keep) if resource.form is wire.Pod else keep


def _pod(keep: Kept, pod: Object) -> Object:
    """The pod; of messages only those of the scheduler, and of a kubelet that rejected it: others may say anything."""
    result: Object = keep(pod)
    status = result.get("status")
    if isinstance(status, dict):
        pod_status = wire.PodStatus(reason=_text(status.get("reason")), message=_text(status.get("message")))
        if not is_rejection(pod_status):
            status.pop("message", None)
        for condition in status.get("conditions") or ():
            if condition and condition.get("type") != "PodScheduled":
                condition.pop("message", None)
    return result


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _foreign_spec(fields: Sequence[Field], keep: Kept, spec: Object) -> Object:
    """The spec; of fields that are not honoured, which an Event tells, no more than that they are in use."""
    result: Object = keep(spec)
    mark_ignored(fields, spec, result)
    return result


def _spec_of(spec: Kept, *others: str) -> Kept:
    """Keeps metadata, what `spec` keeps of the spec, and these other fields whole."""

    def kept(item: Object) -> Object:
        parts = {name: item[name] for name in others if name in item}
        return {"metadata": _META(item.get("metadata") or {}), "spec": spec(item.get("spec") or {}), **parts}

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
    result: Object = _annotated(kind.kept(item), ANNOTATIONS | kind.annotations)
    if kind.workload:
        metadata = result.setdefault("metadata", {})
        metadata["annotations"] = {**metadata.get("annotations", {}), RECORDED: "true"}
    return result


def _annotated(value: Any, names: Container[str]) -> Any:  # noqa: ANN401 - any part of an object
    """The value with these annotations alone, wherever it has metadata."""
    if isinstance(value, list):
        return [_annotated(item, names) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: {key: text for key, text in inner.items() if key in names}
        if name == "annotations" and isinstance(inner, Mapping)
        else _annotated(inner, names)
        for name, inner in value.items()
    }
