"""Converts Kubernetes objects to the values of the core, by the rules of kube-scheduler's default profile.

The conversion never raises and never drops an object. `Shape.unsupported` names fields that are unsupported or
unreadable, and the pod waits with that reason. Equal shapes become the identical object, so that comparing them is
cheap. The same applies to equal labels, owners and names of many pods, which saves a quarter of the memory with 100,000
pods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from gangsched.api.times import parse_time
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.quantity import Exact, InvalidQuantity, unrounded
from gangsched.core.objects.requests import InitContainer, counted, pod_requests, with_resize
from gangsched.core.objects.shape import (
    Amounts,
    Disk,
    HostPort,
    Labels,
    Shape,
)
from gangsched.kube import extended_uses, preferences, wire
from gangsched.kube.device_uses import uses
from gangsched.kube.dialects.table import DEFAULT, Dialects
from gangsched.kube.errors import printable
from gangsched.kube.features import needed_features
from gangsched.kube.node_terms import node_term, toleration
from gangsched.kube.pod_terms import REQUIRED, labels, required_terms, spread
from gangsched.kube.storage import NO_VOLUMES, pod_volumes
from gangsched.kube.unsupported import unsupported_fields
from gangsched.kube.workloads.table import NONE, Workloads

_PHASES = {phase.value: phase for phase in PodPhase}
_KEPT = 1024
_REJECTIONS = frozenset(
    {
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "NodeUnschedulable",
        "SMTAlignmentError",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
    }
)
_NOTHING: dict[str, str] = {}


class _Said(NamedTuple):
    """The parts of a pod's conditions that gangsched reads."""

    reason: str = ""
    message: str = ""
    resize_infeasible: bool = False
    bound_at: float = 0.0


_SAID_NOTHING = _Said()


def pod(found: wire.Pod, dialects: Dialects = DEFAULT, workloads: Workloads = NONE) -> Pod:
    """The core's value for the pod. Missing fields have the API server's defaults."""
    meta = found.metadata
    spec = found.spec or wire.PodSpec()
    status = found.status or wire.PodStatus()
    said = _said(status.conditions) if status.conditions else _SAID_NOTHING
    owner = _kept_owner(_owner(meta.owner_references)) if meta.owner_references else None
    why = found.why if isinstance(found, wire.UnreadablePod) else ""
    volumes = pod_volumes(meta.name or "", spec.volumes) if spec.volumes else NO_VOLUMES
    shape = _interned(_shape(meta, spec, status, volumes.disks, why=why, resize_infeasible=said.resize_infeasible))
    declaration = _declaration(meta, spec, _maker(meta, owner), dialects)
    return Pod(
        uid=meta.uid or "",
        namespace=intern(meta.namespace or "default"),
        name=meta.name or "",
        shape=shape,
        created=_created(meta),
        scheduler=intern(spec.scheduler_name or "default-scheduler"),
        phase=_PHASES.get(status.phase, PodPhase.UNKNOWN) if status.phase else PodPhase.PENDING,
        node=intern(spec.node_name or ""),
        nominated_node=status.nominated_node_name or "",
        terminating=meta.deletion_timestamp is not None,
        gated=bool(spec.scheduling_gates),
        priority=spec.priority or 0,
        declaration=declaration,
        labels=_kept_labels(labels(meta.labels)),
        volume_claims=volumes.claims,
        own_volume_claims=volumes.own_claims,
        device_claims=uses(spec, status) if spec.resource_claims else (),
        extended=()
        if spec.node_name or not any("/" in name for name, _ in shape.requests)
        else extended_uses.uses(spec),
        owner=owner,
        told_reason=said.reason,
        told_message=said.message,
        rejected=status.phase == "Failed" and _is_rejection(status.reason or ""),
        bound_at=said.bound_at,
        soft=preferences.soft(spec, meta),
        workload=workloads.of(meta, owner, named=declaration is not None) if owner is not None else None,
    )


def node(found: wire.Node) -> Node:
    """The core's value for the node. An unreadable allocatable amount counts as zero."""
    spec = found.spec or wire.NodeSpec()
    status = found.status or wire.NodeStatus()
    return Node(
        name=found.metadata.name or "",
        allocatable=_allocatable(status.allocatable or {}),
        labels=labels(found.metadata.labels),
        taints=tuple(Taint(key=taint.key, effect=taint.effect, value=taint.value or "") for taint in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        features=_kept_features(tuple(sorted(status.declared_features or ()))),
        images=preferences.images(status.images) if status.images else (),
    )


@lru_cache(maxsize=_KEPT)
def _interned(shape: Shape) -> Shape:
    """The first shape equal to this one, as long as it is among the `_KEPT` most recently used."""
    return shape


@lru_cache(maxsize=_KEPT)
def _kept_labels(found: Labels) -> Labels:
    """Like `_interned`: the members of a gang often have the same labels."""
    return found


@lru_cache(maxsize=_KEPT)
def _kept_owner(owner: Owner | None) -> Owner | None:
    """Like `_interned`: one controller owns many pods."""
    return owner


@lru_cache(maxsize=_KEPT)
def _kept_features(found: tuple[str, ...]) -> tuple[str, ...]:
    """Like `_interned`: most nodes declare the same features."""
    return found


def _declaration(meta: wire.Meta, spec: wire.PodSpec, maker: str, dialects: Dialects) -> Declaration | None:
    group = spec.scheduling_group.pod_group_name if spec.scheduling_group is not None else None
    if not (meta.labels or meta.annotations or group):
        return None
    return dialects.declaration(
        meta.labels or _NOTHING,
        meta.annotations or _NOTHING,
        pod=meta.name or "",
        owner=maker,
        scheduling_group=group or "",
    )


def _created(meta: wire.Meta) -> float:
    return meta.creation_timestamp.timestamp() if meta.creation_timestamp is not None else 0.0


def _shape(
    meta: wire.Meta,
    spec: wire.PodSpec,
    status: wire.PodStatus,
    disks: tuple[Disk, ...],
    *,
    why: str,
    resize_infeasible: bool,
) -> Shape:
    unreadable: list[str] = []
    requests = _requests(spec, status, unreadable, resize_infeasible=resize_infeasible)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    refused = unsupported_fields(spec)
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


def _requests(spec: wire.PodSpec, status: wire.PodStatus, unreadable: list[str], *, resize_infeasible: bool) -> Amounts:
    """The pod's requests on its node. Unreadable amounts are left out and named in `unreadable`."""
    statuses = {held.name: held for held in status.container_statuses or () if held.resources is not None}
    pod_level: Mapping[str, Exact] | None = None
    if spec.resources is not None and spec.resources.requests:
        where = "spec.resources.requests"
        wanted = _amounts(spec.resources.requests, where, unreadable)
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
    where = "spec.containers[].resources.requests"
    return pod_requests(
        containers=[
            _container(container, statuses, where, unreadable, infeasible=resize_infeasible)
            for container in spec.containers or ()
        ],
        init_containers=init_containers,
        pod_level=pod_level,
        overhead=_amounts(spec.overhead, "spec.overhead", unreadable) if spec.overhead else {},
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
    wanted = _amounts(asked, where, unreadable) if asked else {}
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
        actuated=_amounts(actuated.requests or {}, "status", []),
        allocated=_amounts(allocated or {}, "status", []),
        infeasible=infeasible,
    )


def _amounts(quantities: wire.Quantities, where: str, unreadable: list[str]) -> dict[str, Exact]:
    amounts: dict[str, Exact] = {}
    for name, text in quantities.items():
        try:
            found = unrounded(name, text)
        except InvalidQuantity:
            found = -1
        if found < 0:
            unreadable.append(printable(f"{where} ({name}: {text!r} is no amount)", limit=200))
        else:
            amounts[name] = found
    return amounts


def _allocatable(quantities: wire.Quantities) -> Amounts:
    amounts = _amounts(quantities, "status.allocatable", [])
    return tuple(
        sorted((name, math.ceil(size)) for name, size in amounts.items() if size and (name == "pods" or counted(name)))
    )


def _host_ports(spec: wire.PodSpec) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars. Those of ordinary init containers do not count."""
    running = list(spec.containers or ())
    running += [container for container in spec.init_containers or () if container.restart_policy == "Always"]
    taken = {
        (port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")  # noqa: S104 - the API's wildcard as data
        for container in running
        if container.ports
        for port in container.ports
        if port.host_port
    }
    return tuple(HostPort(port=port, protocol=protocol, ip=ip) for port, protocol, ip in sorted(taken)) if taken else ()


def _owner(references: Iterable[wire.Owner]) -> Owner | None:
    for reference in references:
        if reference.controller:
            group, _, _ = reference.api_version.rpartition("/")
            return Owner(kind=reference.kind, name=reference.name, uid=reference.uid, api_group=group)
    return None


def _maker(meta: wire.Meta, controller: Owner | None) -> str:
    """The pod that created this one: its controller if that is a pod, or its only pod owner if it has no controller.

    Scripts that create the executors of a driver set no controller.
    """
    if controller is not None:
        return controller.name if controller.kind == "Pod" else ""
    makers = [reference.name for reference in meta.owner_references or () if reference.kind == "Pod"]
    return makers[0] if len(makers) == 1 else ""


def _said(conditions: Iterable[wire.Condition]) -> _Said:
    reason = message = ""
    infeasible = False
    bound_at = 0.0
    for condition in conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            reason, message = condition.reason or "", condition.message or ""
        elif condition.type == "PodScheduled":
            bound_at = _moment(condition.last_transition_time or "")
        elif condition.type == "PodResizePending":
            infeasible = condition.reason == "Infeasible"
    return _Said(reason, message, infeasible, bound_at)


def _moment(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError:
        return 0.0


def _is_rejection(reason: str) -> bool:
    """Whether the pod failed because the kubelet rejected it: pkg/kubelet/lifecycle/predicate.go, cm/admission."""
    return reason.startswith("OutOf") or reason in _REJECTIONS
