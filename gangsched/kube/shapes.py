"""Converts the fields of a pod, or of a controller's pod template, that decide where the pod may run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from gangsched.core.objects.quantity import Exact, InvalidQuantity, unrounded
from gangsched.core.objects.requests import InitContainer, pod_requests, with_resize
from gangsched.core.objects.shape import Amounts, Disk, HostPort, Shape
from gangsched.kube import wire
from gangsched.kube.errors import printable
from gangsched.kube.features import needed_features
from gangsched.kube.node_terms import node_term, toleration
from gangsched.kube.pod_terms import REQUIRED, labels, required_terms, spread
from gangsched.kube.unsupported import unsupported_annotations, unsupported_fields

_KEPT = 1024
_CONTAINERS = "spec.containers[].resources.requests"

_WrittenRequests = tuple[tuple[tuple[str, str | int | float], ...], ...]
"""For each container, the requested resources and amounts as they are written."""


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
    asked = _written_requests(spec, status)
    if asked is not None:
        requests, unreadable = _sum(asked)
    else:
        unread: list[str] = []
        requests = _requests(spec, status, unread, resize_infeasible=resize_infeasible)
        unreadable = tuple(unread)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    refused = (*unsupported_fields(spec), *unsupported_annotations(meta))
    if why:
        refused = (*refused, f"a field that cannot be read ({printable(why)})")
    if unreadable:
        refused = (*refused, *unreadable)
    return Shape(
        requests=requests,
        node_selector=labels(spec.node_selector),
        node_affinity=None
        if required is None
        else tuple(node_term(term) for term in required.node_selector_terms or ()),
        tolerations=tuple(map(toleration, spec.tolerations)) if spec.tolerations else (),
        host_ports=_host_ports(spec),
        disks=disks,
        affinity=required_terms(spec.affinity.pod_affinity, meta) if spec.affinity is not None else (),
        anti_affinity=required_terms(spec.affinity.pod_anti_affinity, meta) if spec.affinity is not None else (),
        spread=spread(spec.topology_spread_constraints, meta, REQUIRED) if spec.topology_spread_constraints else (),
        unsupported=refused,
        features=needed_features(spec),
    )


def _written_requests(spec: wire.PodSpec, status: wire.PodStatus) -> _WrittenRequests | None:
    """The requests of each container if nothing else counts for the pod's requests, as in most pods; None otherwise."""
    if spec.init_containers or spec.overhead or (spec.resources is not None and spec.resources.requests):
        return None
    for held in status.container_statuses or ():
        if held.resources is not None:
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
def _sum(asked: _WrittenRequests) -> tuple[Amounts, tuple[str, ...]]:
    """The requests of such a pod and its unreadable amounts, cached because every event of a pod repeats them."""
    unreadable: list[str] = []
    found = [amounts(dict(each), _CONTAINERS, unreadable) for each in asked]
    return pod_requests(containers=found), tuple(unreadable)


def _requests(spec: wire.PodSpec, status: wire.PodStatus, unreadable: list[str], *, resize_infeasible: bool) -> Amounts:
    """The pod's requests on its node. Unreadable amounts are left out and named in `unreadable`."""
    statuses = {held.name: held for held in status.container_statuses or () if held.resources is not None}
    pod_level: Mapping[str, Exact] | None = None
    if spec.resources is not None and spec.resources.requests:
        where = "spec.resources.requests"
        wanted = amounts(spec.resources.requests, where, unreadable)
        held = _held(wanted, status.resources, status.allocated_resources, infeasible=resize_infeasible)
        pod_level = {name: held[name] for name in wanted}
    init_containers: list[InitContainer] = []
    if spec.init_containers:
        where = "spec.initContainers[].resources.requests"
        sidecars = {held.name: held for held in status.init_container_statuses or () if held.resources is not None}
        for container in spec.init_containers:
            sidecar = container.restart_policy == "Always"
            taken = _container(container, sidecars if sidecar else {}, where, unreadable, infeasible=resize_infeasible)
            init_containers.append(InitContainer(taken, sidecar))
    where = _CONTAINERS
    return pod_requests(
        containers=[
            _container(container, statuses, where, unreadable, infeasible=resize_infeasible)
            for container in spec.containers or ()
        ],
        init_containers=init_containers,
        pod_level=pod_level,
        overhead=amounts(spec.overhead, "spec.overhead", unreadable) if spec.overhead else {},
    )


def _container(
    container: wire.Container,
    statuses: Mapping[str, wire.ContainerStatus],
    where: str,
    unreadable: list[str],
    *,
    infeasible: bool,
) -> Mapping[str, Exact]:
    asked = container.resources.requests if container.resources is not None else None
    wanted = amounts(asked, where, unreadable) if asked else {}
    status = statuses.get(container.name) if statuses else None
    if status is None or status.resources is None:
        return wanted
    actuated, allocated = status.resources.requests, status.allocated_resources
    if actuated == asked and (allocated is None or allocated == asked):
        return wanted
    return _held(wanted, status.resources, allocated, infeasible=infeasible)


def _held(
    wanted: Mapping[str, Exact],
    actuated: wire.Resources | None,
    allocated: wire.Quantities | None,
    *,
    infeasible: bool,
) -> Mapping[str, Exact]:
    """The amounts reserved on the node during a resize. Unreadable amounts in the status count as missing."""
    if actuated is None:
        return wanted
    return with_resize(
        wanted,
        actuated=amounts(actuated.requests or {}, "status", []),
        allocated=amounts(allocated or {}, "status", []),
        infeasible=infeasible,
    )


def amounts(quantities: wire.Quantities, where: str, unreadable: list[str]) -> dict[str, Exact]:
    """The amounts. Unreadable and negative ones are left out and named in `unreadable`, with their field, `where`."""
    read: dict[str, Exact] = {}
    for name, text in quantities.items():
        try:
            found = unrounded(name, text)
        except InvalidQuantity:
            found = -1
        if found < 0:
            unreadable.append(printable(f"{where} ({name}: {text!r} is not an amount)", limit=200))
        else:
            read[name] = found
    return read


def _host_ports(spec: wire.PodSpec) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars. Those of ordinary init containers do not count."""
    running = spec.containers or ()
    if spec.init_containers:
        running = [*running, *(each for each in spec.init_containers if each.restart_policy == "Always")]
    if not any([container.ports for container in running]):  # noqa: C419 - half the cost of a generator
        return ()
    taken = {
        (port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")  # noqa: S104 - the API's wildcard as data
        for container in running
        if container.ports
        for port in container.ports
        if port.host_port
    }
    return tuple(HostPort(port=port, protocol=protocol, ip=ip) for port, protocol, ip in sorted(taken))
