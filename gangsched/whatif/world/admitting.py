"""The kinds by which the API server admits pods, with the fields that are read of them, for snapshots."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from gangsched.kube import wire
from gangsched.kube.wire.admission_objects import LimitRange, RuntimeClass


class AdmittingKind(NamedTuple):
    """A kind: its name in messages, its path and the fields that are read."""

    name: str
    path: str
    form: type[Struct]


class _PriorityClass(wire.PriorityClass, gc=False, rename="camel"):
    global_default: bool | None = None


class _Scope(Struct, gc=False, rename="camel"):
    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class _ScopeSelector(Struct, gc=False, rename="camel"):
    match_expressions: list[_Scope] | None = None


class _QuotaSpec(Struct, gc=False, rename="camel"):
    hard: wire.Quantities | None = None
    scopes: list[str] | None = None
    scope_selector: _ScopeSelector | None = None


class _QuotaStatus(Struct, gc=False):
    used: wire.Quantities | None = None


class _ResourceQuota(Struct, gc=False):
    metadata: wire.Meta
    spec: _QuotaSpec | None = None
    status: _QuotaStatus | None = None


ADMITTING = (
    AdmittingKind("priorityclasses", "/apis/scheduling.k8s.io/v1/priorityclasses", _PriorityClass),
    AdmittingKind("limitranges", "/api/v1/limitranges", LimitRange),
    AdmittingKind("resourcequotas", "/api/v1/resourcequotas", _ResourceQuota),
    AdmittingKind("runtimeclasses", "/apis/node.k8s.io/v1/runtimeclasses", RuntimeClass),
)
