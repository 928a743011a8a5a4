"""What a pod requests and is limited to, as LimitRanges and ResourceQuotas count it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gangsched.core.objects.quantity import Exact
from gangsched.core.objects.requests import InitContainer, aggregated, pod_requests
from gangsched.kube.terms import pod_defaults
from gangsched.whatif.world.manifests import mapping, mappings

ResourceField = Literal["requests", "limits"]


def exact(quantities: object) -> dict[str, Exact]:
    """The amounts by resource name.

    Raises:
        InvalidQuantity: one of them is not a quantity.
    """
    return pod_defaults.exact(mapping(quantities))


def containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The containers of a pod, and then its init containers."""
    return [*mappings(spec.get("containers")), *mappings(spec.get("initContainers"))]


def of_container(container: Mapping[str, Any], field: ResourceField) -> dict[str, Exact]:
    """The requests or limits of one container."""
    return exact(mapping(container.get("resources")).get(field))


def of_pod(spec: Mapping[str, Any], field: ResourceField, *, overhead: bool) -> dict[str, int]:
    """The requests or limits of the whole pod; its overhead is added to them if wanted, to limits only where one is."""
    pod_level = exact(mapping(spec.get("resources")).get(field))
    starting = (
        InitContainer(of_container(container, field), container.get("restartPolicy") == "Always")
        for container in spec.get("initContainers") or ()
    )
    total = aggregated((of_container(container, field) for container in spec.get("containers") or ()), starting)
    amounts = pod_requests(total, pod_level=pod_level or None)
    if not overhead:
        return dict(amounts)
    with_overhead = dict(amounts)
    for name, more in exact(spec.get("overhead")).items():
        if field == "requests" or name in with_overhead:
            with_overhead[name] = with_overhead.get(name, 0) + int(more)
    return with_overhead
