"""The watches of workloads: of the objects of each kind that is chosen and served, and of what adds to their pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
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
from gangsched.kube.foreign.watch import ForeignWatch, Subject
from gangsched.kube.workloads.template_admission import Admission
from gangsched.kube.workloads.workload_kind import Kind

_PAUSE_S = 10.0
"""Shortest time in seconds between two times that all workloads are read again."""


async def read_again(admission: Admission, watches: Iterable[ForeignWatch]) -> None:
    """Have the workloads listed again whenever what they were read with has changed."""
    watches = tuple(watches)
    while True:
        await admission.outdated.wait()
        admission.outdated.clear()
        for watch in watches:
            watch.renew("Admission")
        await asyncio.sleep(_PAUSE_S)


def objects(kind: Kind[Any], admission: Admission) -> Subject:
    """The objects of this kind; `admission` is what the API server adds to pods that they create later."""
    row = kind.row

    def resource(version: str) -> Resource[ForeignGroup]:
        return Resource[ForeignGroup](
            name=row.resource.name,
            path=row.resource.path(version),
            read=partial(kind.read, version=version, admission=admission),
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
