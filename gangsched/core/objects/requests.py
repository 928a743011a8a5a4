"""A pod's resource requests, summed over its containers as kube-scheduler sums them.

The rules are those of `PodRequests` in k8s.io/component-helpers/resource. Amounts are added as they are written
(`quantity.unrounded`) and the pod's sum is rounded up to whole units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gangsched.core.objects.quantity import MAX_AMOUNT, Exact
from gangsched.core.objects.shape import Amounts

Requests = Mapping[str, Exact]
"""Amounts by resource name, as one container requests them."""

_NOTHING: Requests = {}


class InitContainer(NamedTuple):
    """The requests of an init container; a sidecar (restartPolicy Always) keeps running beside what starts after it."""

    requests: Requests
    sidecar: bool = False


def pod_requests(
    *,
    containers: Iterable[Requests],
    init_containers: Iterable[InitContainer] = (),
    pod_level: Requests | None = None,
    overhead: Requests = _NOTHING,
) -> Amounts:
    """The largest amounts that the pod takes at any moment of its life.

    Init containers run one after another, in order, each beside the sidecars started before it; the containers run
    beside all sidecars. `pod_level` (`spec.resources.requests`) replaces the sum for the resources that it supports;
    `overhead` is added to either. Resources that the scheduler does not count are left out.
    """
    total: dict[str, Exact] = {}
    for container in containers:
        _add(total, container)
    sidecars: dict[str, Exact] = {}
    starting: dict[str, Exact] = {}
    for container, sidecar in init_containers:
        beside = dict(sidecars)
        _add(beside, container)
        if sidecar:
            _add(total, container)
            sidecars = beside
        _raise(starting, beside)
    _raise(total, starting)
    if pod_level is not None:
        total |= {name: amount for name, amount in pod_level.items() if _pod_level_supported(name)}
    _add(total, overhead)
    return counted_amounts(total)


def with_resize(
    spec: Requests, *, actuated: Requests = _NOTHING, allocated: Requests = _NOTHING, infeasible: bool = False
) -> dict[str, Exact]:
    """The amounts that a container of a bound pod holds during an in-place resize.

    The node reserves the largest of the desired amounts (`spec`), the running ones (`actuated`,
    `status.containerStatuses[].resources.requests`) and those that the kubelet admitted (`allocated`,
    `…allocatedResources`). Once the kubelet has declared the resize infeasible, the desired amounts no longer count.
    This applies to containers and sidecars whose status has `resources`, not to ordinary init containers. The same rule
    holds for pod-level requests, of which only the names in `spec` count; those are always in the result.
    """
    held: dict[str, Exact] = dict.fromkeys(spec, 0) if infeasible else dict(spec)
    _raise(held, actuated)
    _raise(held, allocated)
    return held


def counted(name: str) -> bool:
    """Whether the scheduler counts a resource of this name against the nodes' capacity.

    Names in a domain are extended resources, or native ones where the domain is `kubernetes.io`; `requests.` is a
    prefix of quotas. Names that break the API's syntax cannot come from an API server and are counted like others.
    """
    if name in ("cpu", "memory", "ephemeral-storage") or name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "kubernetes.io/" in name or ("/" in name and not name.startswith("requests."))


def of_plugin(name: str) -> bool:
    """Whether a device plug-in, or whoever else patches nodes, offers the resource, and no kubelet by itself."""
    return "/" in name and "kubernetes.io/" not in name


def counted_amounts(amounts: Requests) -> Amounts:
    """The amounts that the scheduler counts, rounded up, sorted by name, without zeros; none exceeds `MAX_AMOUNT`."""
    return tuple(
        sorted((name, min(math.ceil(exact), MAX_AMOUNT)) for name, exact in amounts.items() if exact and counted(name))
    )


def _pod_level_supported(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _add(total: dict[str, Exact], more: Requests) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, Exact], least: Requests) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0):
            total[name] = amount
