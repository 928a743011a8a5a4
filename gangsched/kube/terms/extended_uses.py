"""The extended resources that a pod's containers request, and the requests of a ResourceClaim for them.

Init containers that end pass their devices on to later containers; containers that run at the same time share none.
Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gangsched.core.objects.devices import CLASS_PREFIX, ExtendedUse
from gangsched.core.objects.quantity import InvalidQuantity, Quantity, exact
from gangsched.core.objects.requests import of_plugin
from gangsched.kube import wire

_KEPT = 1024
_Requests = tuple[tuple[str, Quantity], ...]
_ContainerRequests = tuple[str, bool, tuple[tuple[str, int], ...]]
"""A container: its name, whether it ends before others begin, and its requests by name; 0 for resources that are not
extended ones."""


def uses(spec: wire.PodSpec) -> tuple[ExtendedUse, ...]:
    """The extended resources, in the order of their names."""
    containers = [
        (*_requests_of(container), container.restart_policy != "Always") for container in spec.init_containers or ()
    ]
    containers += [(*_requests_of(container), False) for container in spec.containers or ()]
    return _uses(tuple(containers))


def _requests_of(container: wire.Container) -> tuple[str, _Requests]:
    requests = container.resources.requests if container.resources is not None else None
    return container.name, tuple(requests.items()) if requests else ()


@lru_cache(maxsize=_KEPT)
def _uses(entries: Sequence[tuple[str, _Requests, bool]]) -> tuple[ExtendedUse, ...]:
    containers = [
        (name, ends, tuple((resource, _count(resource, text)) for resource, text in sorted(requests)))
        for name, requests, ends in entries
    ]
    names = {name for _, _, requests in containers for name, count in requests if count}
    return tuple(_use(name, containers) for name in sorted(names))


def _count(name: str, text: Quantity) -> int:
    if not (name.startswith(CLASS_PREFIX) or of_plugin(name)):
        return 0
    try:
        amount = exact(text)
    except InvalidQuantity:
        return 0
    return int(amount) if amount == int(amount) else 0


def _use(resource: str, containers: Sequence[_ContainerRequests]) -> ExtendedUse:
    """The requests and their mapping to containers. Containers that keep running have devices of their own.

    A container that ends uses the devices of later ones. What it needs beyond them, it shares with others that end.
    """
    own: dict[int, tuple[str, int]] = {}
    mappings: list[tuple[str, str]] = []
    for index, (container, ends, requests) in enumerate(containers):
        count = dict(requests).get(resource, 0)
        if count and not ends:
            own[index] = _named(index, resource, requests), count
            mappings.append((container, own[index][0]))
    shared: list[tuple[str, int]] = []
    passing: list[tuple[str, str]] = []
    for index, (container, ends, requests) in enumerate(containers):
        lacking = dict(requests).get(resource, 0) if ends else 0
        for name, count in [request for later, request in own.items() if later > index]:
            if lacking > 0:
                passing.append((container, name))
                lacking -= count
        if lacking > 0:
            shared.append((_named(index, resource, requests), lacking))
            passing.append((container, shared[-1][0]))
    largest = max(shared, key=lambda request: request[1], default=None)
    names = {name for name, _ in shared}
    for container, name in passing:
        mappings.append((container, largest[0] if largest is not None and name in names else name))
    return ExtendedUse(resource, (*([largest] if largest is not None else ()), *own.values()), tuple(mappings))


def _named(index: int, resource: str, requests: Sequence[tuple[str, int]]) -> str:
    return f"container-{index}-request-{[name for name, _ in requests].index(resource)}"
