"""palantir's Demand objects: selects, reads and writes those that gangsched creates."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from gangsched.api.conversion import MADE_BY, MADE_LABEL
from gangsched.api.template_shapes import requests_to_object
from gangsched.config.dialects import DIALECTS
from gangsched.core.objects.demands import DemandKey, DemandObject, DemandUnit, PoolDemand, SeenDemand
from gangsched.core.objects.events import DemandGone, DemandSeen, DemandsHidden, DemandsReplaced
from gangsched.core.objects.quantity import InvalidQuantity, Quantity, amount
from gangsched.kube import wire
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.resource import Resource
from gangsched.kube.foreign.watch import Subject

_DIALECT = DIALECTS["palantir"]
[_KIND] = _DIALECT.resources
[_VERSION] = _KIND.versions


class _Unit(Struct, gc=False, rename="kebab"):
    count: int = 0
    resources: dict[str, Quantity] | None = None
    pod_names_by_namespace: dict[str, list[str]] | None = None


class _DemandSpec(Struct, gc=False, rename="kebab"):
    units: list[_Unit] | None = None
    instance_group: str = ""
    enforce_single_zone_scheduling: bool | None = None
    zone: str | None = None


class _Object(Struct, gc=False):
    metadata: wire.Meta
    spec: Raw = Raw(b"{}")


_OBJECT = msgspec.json.Decoder(_Object)
_SPEC = msgspec.json.Decoder(_DemandSpec)
_UNREADABLE = PoolDemand(instance_group="", units=())
"""Stands for an unreadable Demand. It differs from every wanted one, so it is overwritten."""


def demands_path(namespace: str) -> str:
    """The path of the namespace's Demand objects."""
    return f"/apis/{_KIND.group}/{_VERSION}/namespaces/{quoted(namespace)}/{_KIND.plural}"


def demand_to_object(demand: DemandObject) -> dict[str, Any]:
    """The Demand object for this demand."""
    pool = demand.pool
    spec: dict[str, Any] = {
        "instance-group": pool.instance_group,
        "is-long-lived": False,
        "enforce-single-zone-scheduling": pool.single_zone,
        "units": [_unit_to_object(unit, demand.key.namespace) for unit in pool.units],
    }
    if pool.zone:
        spec["zone"] = pool.zone
    owner = {"apiVersion": "v1", "kind": "Pod", "name": demand.owner, "uid": demand.owner_uid, "controller": True}
    return {
        "apiVersion": f"{_KIND.group}/{_VERSION}",
        "kind": "Demand",
        "metadata": {
            "name": demand.key.name,
            "namespace": demand.key.namespace,
            "labels": {MADE_LABEL: MADE_BY},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _unit_to_object(unit: DemandUnit, namespace: str) -> dict[str, Any]:
    body: dict[str, Any] = {"count": unit.count, "resources": requests_to_object(unit.requests)}
    if unit.pods:
        body["pod-names-by-namespace"] = {namespace: list(unit.pods)}
    return body


def _read(raw: Raw) -> tuple[str | None, SeenDemand]:
    demand = _OBJECT.decode(raw)
    meta = demand.metadata
    key = _key(meta)
    owner = next(iter(meta.owner_references or ()), None) or wire.Owner()
    try:
        pool = _pool(_SPEC.decode(demand.spec), key.namespace)
    except (msgspec.DecodeError, RecursionError, InvalidQuantity):
        pool = _UNREADABLE
    return meta.resource_version, SeenDemand(meta.uid or "", DemandObject(key, owner.name, owner.uid, pool))


def _key(meta: wire.Meta) -> DemandKey:
    return DemandKey(meta.namespace or "default", meta.name or "")


def _pool(spec: _DemandSpec, namespace: str) -> PoolDemand:
    return PoolDemand(
        instance_group=spec.instance_group,
        units=tuple(_unit(unit, namespace) for unit in spec.units or ()),
        single_zone=bool(spec.enforce_single_zone_scheduling),
        zone=spec.zone or "",
    )


def _unit(unit: _Unit, namespace: str) -> DemandUnit:
    amounts = ((resource, amount(resource, quantity)) for resource, quantity in (unit.resources or {}).items())
    names = (unit.pod_names_by_namespace or {}).get(namespace, [])
    return DemandUnit(
        unit.count, tuple(sorted((name, value) for name, value in amounts if value)), tuple(sorted(names))
    )


def _resource(version: str) -> Resource[SeenDemand]:
    return Resource[SeenDemand](
        name=_KIND.name,
        path=_KIND.path(version),
        read=_read,
        seen=lambda demand: DemandSeen(demand=demand),
        gone=lambda meta: DemandGone(key=_key(meta)),
        replaced=lambda demands: DemandsReplaced(demands=demands),
        selector=f"{MADE_LABEL}={MADE_BY}",
        optional=True,
    )


DEMANDS = Subject(
    dialect=_DIALECT.name,
    kind=_KIND,
    resource=_resource,
    absent=DemandsHidden(),
    hidden=lambda _, **__: DemandsHidden(),
    without="no autoscaler receives a demand",
)
"""Our own Demand objects, selected by their label. Other clients may create Demands too."""
