"""The watches of workloads: of the objects of each kind that is chosen and served."""

from __future__ import annotations

from functools import partial
from typing import Any

from gangsched.config.workload_registry import WORKLOADS
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    ForeignGroupGone,
    ForeignGroupSeen,
    ForeignGroupsHidden,
    ForeignGroupsReplaced,
)
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.client.resource import Resource
from gangsched.kube.foreign.watch import Subject
from gangsched.kube.workloads.workload_kind import Kind


def objects(kind: Kind[Any]) -> Subject:
    """The objects of this kind."""
    row = kind.row

    def resource(version: str) -> Resource[ForeignGroup]:
        return Resource[ForeignGroup](
            name=row.resource.name,
            path=row.resource.path(version),
            read=partial(kind.read, version=version),
            seen=lambda group: ForeignGroupSeen(group=group),
            gone=lambda meta: ForeignGroupGone(
                dialect=row.name, key=GroupKey(meta.namespace or "default", meta.name or "")
            ),
            replaced=lambda groups: ForeignGroupsReplaced(dialect=row.name, groups=groups),
            optional=True,
        )

    return Subject(
        dialect=row.name,
        value="workloads" if row.name in WORKLOADS else "workloads.custom",
        kind=row.resource,
        resource=resource,
        absent=ForeignGroupsReplaced(dialect=row.name, groups=()),
        hidden=partial(ForeignGroupsHidden, row.name),
        without="their annotations are ignored"
        if row.makes
        else "their pods form gangs only if their namespace asks for it, and those pods wait",
    )
