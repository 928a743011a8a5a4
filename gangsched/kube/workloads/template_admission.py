"""What the API server will add to pods that do not exist yet, as far as it decides where they fit.

A pod that exists shows it itself. Places that are held for pods of a template need the LimitRanges of its namespace and
its RuntimeClass. Whoever has read templates before these changed has to read them again: `outdated` says so.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gangsched.core.objects.events import Event
from gangsched.kube import wire
from gangsched.kube.client.resource import Resource, Sent, reading
from gangsched.kube.terms.pod_defaults import container_defaults, in_class
from gangsched.kube.wire.admission_objects import LimitRange, RuntimeClass


class _Change(Event, frozen=True):
    """Objects of one kind by namespace and name, None for one that is gone; only `Admission` takes this event.

    `complete` says that there are no others of the kind.
    """

    kind: str
    found: Mapping[tuple[str, str], Any]
    complete: bool = False


class Admission:
    """The LimitRanges and RuntimeClasses of the cluster. `outdated` is set once one that was asked for has changed."""

    def __init__(self) -> None:
        self.outdated = asyncio.Event()
        self._objects: defaultdict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
        self._asked: set[tuple[str, str]] = set()

    def take(self, events: Iterable[Event]) -> None:
        """Note what the watches of `ADDING` say."""
        for event in events:
            if isinstance(event, _Change):
                self._take(event)

    def _take(self, change: _Change) -> None:
        scopes = {(change.kind, namespace) for namespace, _ in change.found}
        if change.complete:
            scopes |= {scope for scope in self._objects if scope[0] == change.kind}
        before = {scope: self._objects.pop(scope, {}) for scope in scopes}
        if not change.complete:
            self._objects.update({scope: dict(objects) for scope, objects in before.items()})
        for (namespace, name), value in change.found.items():
            objects = self._objects[change.kind, namespace]
            objects.pop(name, None)
            if value is not None:
                objects[name] = value
        if any(self._objects.get(scope, {}) != before[scope] for scope in scopes & self._asked):
            self.outdated.set()

    def container_requests(self, namespace: str) -> Sequence[Mapping[str, Any]]:
        """What the LimitRanges of the namespace request, by resource, for containers that do not."""
        return [defaults.requests for defaults in self._of(LIMIT_RANGES, namespace).values()]

    def in_class(self, spec: wire.PodSpec, runtime_class: str | None) -> wire.PodSpec:
        """The spec of a pod with what its RuntimeClass adds; as it is if there is no such class."""
        found = self._of(RUNTIME_CLASSES, "").get(runtime_class) if runtime_class else None
        return spec if found is None else in_class(spec, found)

    def _of(self, resource: Resource[Any], namespace: str) -> Mapping[str, Any]:
        self._asked.add((resource.name, namespace))
        return self._objects.get((resource.name, namespace), {})


def _adding(path: str, form: type[Sent], value: Callable[[Sent], Any]) -> Resource[Any]:
    """The kind with this path, whose objects are read as `value` says."""
    kind = path.rpartition("/")[2]
    return Resource[Any](
        name=kind,
        path=path,
        read=reading(form, lambda item: (_key(item.metadata), value(item))),
        form=form,
        seen=lambda item: _Change(kind, dict([item])),
        gone=lambda meta: _Change(kind, {_key(meta): None}),
        replaced=lambda items: _Change(kind, dict(items), complete=True),
    )


def _key(meta: wire.Meta) -> tuple[str, str]:
    return meta.namespace or "", meta.name or ""


LIMIT_RANGES = _adding("/api/v1/limitranges", LimitRange, container_defaults)
RUNTIME_CLASSES = _adding("/apis/node.k8s.io/v1/runtimeclasses", RuntimeClass, lambda found: found)
ADDING = LIMIT_RANGES, RUNTIME_CLASSES
"""The kinds whose objects add to pods, for watches whose events `Admission` takes."""
