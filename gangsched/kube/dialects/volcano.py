"""Volcano: an annotation that names its PodGroup, whose tasks are roles.

Its own controllers put a task name on every pod, even if no task has a minimum, so a role that the PodGroup does not
list is ignored. A hard network topology and subgroups are not supported and are refused by name.

Volcano lets no member of a group run before there is room for its minResources. Some controllers say there how large a
gang is, and a minMember of 1, because the other members are made later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from gangsched.config.dialects import Row
from gangsched.config.settings import Settings
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.quantity import InvalidQuantity, unrounded
from gangsched.core.objects.requests import counted_amounts
from gangsched.core.objects.shape import Amounts
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.kind import Kind, roles, total


class _NetworkTopology(Struct, gc=False):
    mode: str | None = None


class _Spec(Struct, gc=False, rename="camel"):
    min_member: int = 0
    min_task_member: dict[str, int] | None = None
    priority_class_name: str | None = None
    min_resources: dict[str, str | int | float] | None = None
    network_topology: _NetworkTopology | None = None
    sub_group_policy: list[wire.Present] | None = None


def _terms(spec: _Spec, _: wire.Meta) -> GroupSpec:
    tasks = roles("spec.minTaskMember", spec.min_task_member or {})
    return GroupSpec(
        min_member=total(spec.min_member, tasks),
        roles=tasks,
        priority_class=spec.priority_class_name or "",
        min_resources=_amounts(spec.min_resources or {}),
        not_built=tuple(_refused(spec)),
    )


def _amounts(found: Mapping[str, str | int | float]) -> Amounts:
    exact = {}
    for name, text in found.items():
        try:
            exact[name] = unrounded(name, text)
        except InvalidQuantity:
            raise ValueError(f"spec.minResources ({name}) is {text!r}: write an amount such as 8 or 16Gi") from None
    return counted_amounts(exact)


def _refused(spec: _Spec) -> Iterator[str]:
    # In Volcano a topology without a mode is a hard one.
    if spec.network_topology is not None and spec.network_topology.mode in (None, "", "hard"):
        yield "spec.networkTopology of mode hard"
    if spec.sub_group_policy:
        yield "spec.subGroupPolicy"


def dialect(row: Row, _: Settings) -> Dialect:
    return Dialect(row=row, kind=Kind(resource=row.resources[0], spec=_Spec, terms=_terms), open_roles=True)
