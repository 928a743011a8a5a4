"""A pod's resource requests, summed over its containers as kube-scheduler sums them.

The rules are those of `PodRequests` in k8s.io/component-helpers/resource at v0.37.2. Amounts are added as they are
written (`quantity.unrounded`) and the pod's sum is rounded up to whole units.
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


def aggregated(containers: Iterable[Requests], init_containers: Iterable[InitContainer] = ()) -> dict[str, Exact]:
    """The largest amounts that a pod with these containers takes at any moment of its life.

    Init containers run one after another, in order, each beside the sidecars started before it; the containers run
    beside all sidecars.
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
    return total


def pod_requests(total: Requests, *, pod_level: Requests | None = None, overhead: Requests = _NOTHING) -> Amounts:
    """The amounts that the scheduler counts for a pod with this `total` of its containers.

    `pod_level` replaces the total for the resources that it supports; `overhead` is added to either. Resources that the
    scheduler does not count are left out.
    """
    requests = dict(total)
    if pod_level is not None:
        requests |= {name: amount for name, amount in pod_level.items() if pod_level_supported(name)}
    _add(requests, overhead)
    return counted_amounts(requests)


def held(wish: Requests, *statuses: Requests, infeasible: bool = False) -> dict[str, Exact]:
    """What the node reserves during an in-place resize: of each resource the largest of the wish and these statuses.

    Once the kubelet has declared the resize infeasible, the wish does not count.
    """
    reserved: dict[str, Exact] = {} if infeasible else dict(wish)
    for status in statuses:
        _raise(reserved, status)
    return reserved


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


def pod_level_supported(name: str) -> bool:
    """Whether `spec.resources` may name the resource."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def counted_amounts(amounts: Requests) -> Amounts:
    """The amounts that the scheduler counts, rounded up, sorted by name, without zeros; none exceeds `MAX_AMOUNT`."""
    return tuple(
        sorted((name, min(math.ceil(exact), MAX_AMOUNT)) for name, exact in amounts.items() if exact and counted(name))
    )


def _add(total: dict[str, Exact], more: Requests) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, Exact], least: Requests) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0):
            total[name] = amount
