"""What the API server will add to pods that do not exist yet, as far as it decides where they fit.

A pod that exists shows it itself. Places that are held for pods of a template need the LimitRanges of its namespace and
its RuntimeClass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gangsched.core.objects.events import Event
from gangsched.kube import wire
from gangsched.kube.client.resource import Resource, Sent, reading
from gangsched.kube.terms.pod_defaults import InClass, container_defaults
from gangsched.kube.wire.admission_objects import LimitRange, RuntimeClass

Scope = tuple[str, str]
"""The name of a kind, and the namespace or, of what has none, the name of the object."""


class _Change(Event, frozen=True):
    """Objects of one kind by namespace and name, None for one that is gone; only `Admission` takes this event.

    `complete` says that there are no others of the kind.
    """

    kind: str
    objects: Mapping[tuple[str, str], Any]
    complete: bool = False


class Admission:
    """The LimitRanges and RuntimeClasses of the cluster.

    `outdated` is set once one has changed for which one of the `readers` has asked.
    """

    def __init__(self) -> None:
        self.outdated = asyncio.Event()
        self._objects: dict[Scope, dict[str, Any]] = {}
        self._listed: set[str] = set()
        self._readers: list[Reader] = []

    def reader(self) -> Reader:
        """One for somebody who reads templates."""
        self._readers.append(Reader(self))
        return self._readers[-1]

    def take(self, events: Iterable[Event]) -> None:
        """Note what the watches of `ADDING` say."""
        for event in events:
            if isinstance(event, _Change):
                self._take(event)

    def _take(self, change: _Change) -> None:
        news: dict[Scope, dict[str, Any]] = {}
        if change.complete:
            self._listed.add(change.kind)
            news = {scope: {} for scope in self._objects if scope[0] == change.kind}
        for (namespace, name), value in change.objects.items():
            scope = (change.kind, namespace or name)
            objects = news.setdefault(scope, dict(self._objects.get(scope, {})))
            objects.pop(name, None)
            if value is not None:
                objects[name] = value
        changed = {scope for scope, objects in news.items() if objects != self._objects.get(scope, {})}
        for scope in changed:
            self._objects.pop(scope, None)
            if news[scope]:
                self._objects[scope] = news[scope]
        for reader in self._readers:
            if not changed.isdisjoint(reader.asked):
                reader.is_outdated = True
                self.outdated.set()

    def of(self, kind: str, scope: str) -> Mapping[str, Any] | None:
        """The objects by name; None if there are none and the kind was never listed."""
        return self._objects.get((kind, scope), {} if kind in self._listed else None)


class Reader:
    """Who reads templates with what admission adds.

    `is_outdated` says that something has changed since for which it had `asked`.
    """

    def __init__(self, admission: Admission) -> None:
        self.is_outdated = False
        self.asked: set[Scope] = set()
        self._admission = admission

    def begin_anew(self) -> None:
        """Everything will be read again."""
        self.is_outdated = False
        self.asked.clear()

    def container_requests(self, namespace: str) -> Sequence[Mapping[str, Any]]:
        """What the LimitRanges of the namespace request, by resource, for containers that do not."""
        return [*(self._of(LIMIT_RANGES, namespace) or {}).values()]

    def in_class(self, spec: wire.PodSpec, name: str | None) -> wire.PodSpec:
        """The spec of a pod with what the RuntimeClass of this name adds; as it is while no classes are known.

        Raises:
            ValueError: the API server would refuse the pod; a clause that says why.
        """
        classes = self._of(RUNTIME_CLASSES, name) if name else None
        if not name or classes is None:
            return spec
        runtime_class = classes.get(name)
        if runtime_class is None:
            raise ValueError(f"names the RuntimeClass {name}, which does not exist")
        applied: wire.PodSpec = runtime_class.applied(spec)
        return applied

    def _of(self, resource: Resource[Any], scope: str) -> Mapping[str, Any] | None:
        self.asked.add((resource.name, scope))
        return self._admission.of(resource.name, scope)


def _adding(path: str, form: type[Sent], value: Callable[[Sent], Any]) -> Resource[Any]:
    """The kind with this path, whose objects are read as `value` says."""
    kind = path.rpartition("/")[2]
    return Resource[Any](
        name=kind,
        path=path,
        read=reading(form, lambda sent: (_key(sent.metadata), value(sent))),
        form=form,
        seen=lambda item: _Change(kind, dict([item])),
        gone=lambda meta: _Change(kind, {_key(meta): None}),
        replaced=lambda items: _Change(kind, dict(items), complete=True),
        optional=True,
    )


def _key(meta: wire.Meta) -> tuple[str, str]:
    return meta.namespace or "", meta.name or ""


LIMIT_RANGES = _adding("/api/v1/limitranges", LimitRange, lambda limit_range: container_defaults(limit_range).requests)
RUNTIME_CLASSES = _adding("/apis/node.k8s.io/v1/runtimeclasses", RuntimeClass, InClass.of)
ADDING = LIMIT_RANGES, RUNTIME_CLASSES
"""The kinds whose objects add to pods, for watches whose events `Admission` takes."""
