"""Converts the fields of a pod, or of a controller's pod template, that decide where the pod may run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from gangsched.core.objects.quantity import Exact, InvalidQuantity, unrounded
from gangsched.core.objects.requests import (
    InitContainer,
    Requests,
    aggregated,
    held,
    pod_level_supported,
    pod_requests,
)
from gangsched.core.objects.shape import Amounts, Disk, HostPort, Shape
from gangsched.core.objects.wording import printable
from gangsched.kube import wire
from gangsched.kube.terms.features import needed_features
from gangsched.kube.terms.node_terms import node_terms, toleration
from gangsched.kube.terms.pod_terms import REQUIRED, labels, required_terms, spread
from gangsched.kube.terms.unsupported import unsupported_annotations, unsupported_fields

_KEPT = 1024
_CONTAINERS = "spec.containers[].resources.requests"
_INIT = "spec.initContainers[].resources.requests"

_WrittenRequests = tuple[tuple[tuple[str, str | int | float], ...], ...]
"""For each container, the requested resources and amounts as they are written."""
_Wishes = Sequence[tuple[wire.Container, Requests]]
"""Containers with their requests."""


def shape(
    meta: wire.Meta,
    spec: wire.PodSpec,
    status: wire.PodStatus,
    disks: tuple[Disk, ...],
    *,
    why: str,
    resize_infeasible: bool,
) -> Shape:
    """The shape of a pod that uses these `disks`. `why` says why a field could not be read; empty if all could."""
    written = _written_requests(spec, status, infeasible=resize_infeasible)
    if written is not None:
        requests, unreadable = _sum(written)
    else:
        unread: list[str] = []
        requests = _requests(spec, status, unread, resize_infeasible=resize_infeasible)
        unreadable = tuple(unread)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    refused = (*unsupported_fields(spec), *unsupported_annotations(meta))
    if why:
        refused = (*refused, f"a field that cannot be read ({printable(why)})")
    if unreadable:
        refused = (*refused, *unreadable)
    return Shape(
        requests=requests,
        node_selector=labels(spec.node_selector),
        node_affinity=node_terms(affinity.required) if affinity is not None else None,
        tolerations=tuple(map(toleration, spec.tolerations)) if spec.tolerations else (),
        host_ports=_host_ports(spec),
        disks=disks,
        affinity=required_terms(spec.affinity.pod_affinity, meta) if spec.affinity is not None else (),
        anti_affinity=required_terms(spec.affinity.pod_anti_affinity, meta) if spec.affinity is not None else (),
        spread=spread(spec.topology_spread_constraints, meta, REQUIRED) if spec.topology_spread_constraints else (),
        unsupported=refused,
        features=needed_features(spec),
    )


def _written_requests(spec: wire.PodSpec, status: wire.PodStatus, *, infeasible: bool) -> _WrittenRequests | None:
    """The requests of each container if nothing else counts for the pod's requests, as in most pods; None otherwise."""
    if spec.init_containers or spec.overhead or (spec.resources is not None and spec.resources.requests):
        return None
    if _says_more(spec, status, infeasible=infeasible):
        return None
    return tuple(
        [
            tuple(container.resources.requests.items())
            if container.resources is not None and container.resources.requests
            else ()
            for container in spec.containers or ()
        ]
    )


@lru_cache(maxsize=_KEPT)
def _sum(written: _WrittenRequests) -> tuple[Amounts, tuple[str, ...]]:
    """The requests of such a pod and its unreadable amounts, cached because every event of a pod repeats them."""
    unreadable: list[str] = []
    requests = [amounts(dict(pairs), _CONTAINERS, unreadable) for pairs in written]
    return pod_requests(aggregated(requests)), tuple(unreadable)


def _says_more(spec: wire.PodSpec, status: wire.PodStatus, *, infeasible: bool) -> bool:
    """Whether the status says of the pod's requests anything else than the spec: a kubelet repeats them in each status.

    Once a resize is infeasible, the spec does not count, and what is repeated does.
    """
    if status.allocated_resources is not None or status.resources is not None:
        return True
    for containers, statuses in (
        (spec.containers, status.container_statuses),
        (spec.init_containers, status.init_container_statuses),
    ):
        shown = [
            container
            for container in statuses or ()
            if container.resources is not None or container.allocated_resources is not None
        ]
        if shown and (infeasible or _differ(containers or (), shown)):
            return True
    return False


def _differ(containers: Sequence[wire.Container], shown: Sequence[wire.ContainerStatus]) -> bool:
    """Whether one of these statuses has other amounts, as they are written, than its container asks for."""
    wishes = {
        container.name: (container.resources.requests if container.resources is not None else None) or {}
        for container in containers
    }
    for status in shown:
        wish = wishes.get(status.name)
        running = status.resources.requests if status.resources is not None else None
        if wish is not None and (running not in (None, wish) or status.allocated_resources not in (None, wish)):
            return True
    return False


def _requests(spec: wire.PodSpec, status: wire.PodStatus, unreadable: list[str], *, resize_infeasible: bool) -> Amounts:
    """The pod's requests on its node. Unreadable amounts are left out and named in `unreadable`."""
    wishes = [(container, _wish(container, _CONTAINERS, unreadable)) for container in spec.containers or ()]
    init_wishes = [(container, _wish(container, _INIT, unreadable)) for container in spec.init_containers or ()]
    total = _aggregated(wishes, init_wishes)
    pod_level: Requests | None = None
    if spec.resources is not None and spec.resources.requests:
        wish = amounts(spec.resources.requests, "spec.resources.requests", unreadable)
        pod_level = wish if any(map(pod_level_supported, wish)) else None
    if _says_more(spec, status, infeasible=resize_infeasible):
        shown = _statuses(status, wishes, init_wishes, infeasible=resize_infeasible)
        total = held(total, *shown, infeasible=resize_infeasible)
        if pod_level is not None and status.resources is not None:
            of_pod = (_shown(status.resources.requests), _shown(status.allocated_resources))
            pod_level = held(pod_level, *of_pod, infeasible=resize_infeasible)
    overhead = amounts(spec.overhead, "spec.overhead", unreadable) if spec.overhead else {}
    return pod_requests(total, pod_level=pod_level, overhead=overhead)


def _statuses(status: wire.PodStatus, wishes: _Wishes, init_wishes: _Wishes, *, infeasible: bool) -> Iterator[Requests]:
    """What the kubelet has admitted of the pod's requests, and what runs: as it says of the pod, or of containers."""
    actuated = status.resources.requests if status.resources is not None else None
    if status.allocated_resources is not None and actuated is not None:
        yield _shown(status.allocated_resources)
        yield _shown(actuated)
        return
    of = {
        container.name: container
        for container in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    }
    for running in (False, True):
        yield _aggregated(
            *(
                [
                    (container, _of_container(of.get(container.name), {} if infeasible else wish, running=running))
                    for container, wish in of_kind
                ]
                for of_kind in (wishes, init_wishes)
            )
        )


def _of_container(status: wire.ContainerStatus | None, wish: Requests, *, running: bool) -> Requests:
    """What runs of a container's requests, or what the kubelet has admitted; the wish if the status does not say it."""
    if status is None:
        return wish
    if running and status.resources is not None and status.resources.requests is not None:
        return _shown(status.resources.requests)
    return wish if status.allocated_resources is None else _shown(status.allocated_resources)


def _aggregated(wishes: _Wishes, init_wishes: _Wishes) -> dict[str, Exact]:
    starting = (InitContainer(requests, container.restart_policy == "Always") for container, requests in init_wishes)
    return aggregated((requests for _, requests in wishes), starting)


def _wish(container: wire.Container, field: str, unreadable: list[str]) -> Requests:
    requests = container.resources.requests if container.resources is not None else None
    return amounts(requests, field, unreadable) if requests else {}


def _shown(quantities: wire.Quantities | None) -> Requests:
    """The amounts of a status, of which unreadable ones count as missing."""
    return amounts(quantities, "status", []) if quantities else {}


def amounts(quantities: wire.Quantities, field: str, unreadable: list[str]) -> dict[str, Exact]:
    """The amounts. Unreadable and negative ones are left out and named in `unreadable`, with their `field`."""
    readable: dict[str, Exact] = {}
    for name, text in quantities.items():
        try:
            value = unrounded(name, text)
        except InvalidQuantity:
            value = -1
        if value < 0:
            unreadable.append(printable(f"{field} ({name}: {text!r} is not an amount)", limit=200))
        else:
            readable[name] = value
    return readable


def _host_ports(spec: wire.PodSpec) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars. Those of ordinary init containers do not count."""
    running = spec.containers or ()
    if spec.init_containers:
        running = [*running, *(container for container in spec.init_containers if container.restart_policy == "Always")]
    if not any([container.ports for container in running]):  # noqa: C419 - half the cost of a generator
        return ()
    ports = {
        (port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")  # noqa: S104 - the API's wildcard as data
        for container in running
        if container.ports
        for port in container.ports
        if port.host_port
    }
    return tuple(HostPort(port=port, protocol=protocol, ip=ip) for port, protocol, ip in sorted(ports))
