"""What a pod requests and is limited to, as LimitRanges and ResourceQuotas count it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gangsched.core.objects.quantity import Exact, unrounded
from gangsched.core.objects.requests import InitContainer, aggregated, pod_requests
from gangsched.whatif.world.manifests import mapping

Which = Literal["requests", "limits"]


def exact(quantities: object) -> dict[str, Exact]:
    """The amounts by resource name.

    Raises:
        InvalidQuantity: one of them is not a quantity.
    """
    return {str(name): unrounded(str(name), text) for name, text in mapping(quantities).items()}


def of_container(container: Mapping[str, Any], which: Which) -> dict[str, Exact]:
    """The requests or limits of one container."""
    return exact(mapping(container.get("resources")).get(which))


def of_pod(spec: Mapping[str, Any], which: Which, *, overhead: bool) -> dict[str, int]:
    """The requests or limits of the whole pod; its overhead is added to them if wanted, to limits only where one is."""
    pod_level = exact(mapping(spec.get("resources")).get(which))
    starting = (
        InitContainer(of_container(each, which), each.get("restartPolicy") == "Always")
        for each in spec.get("initContainers") or ()
    )
    total = aggregated((of_container(each, which) for each in spec.get("containers") or ()), starting)
    found = pod_requests(total, pod_level=pod_level or None)
    if not overhead:
        return dict(found)
    with_overhead = dict(found)
    for name, more in exact(spec.get("overhead")).items():
        if which == "requests" or name in with_overhead:
            with_overhead[name] = with_overhead.get(name, 0) + int(more)
    return with_overhead
