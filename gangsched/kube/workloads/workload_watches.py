"""The watches of workloads: of the objects of each kind that is chosen and served, and of what adds to their pods."""

from __future__ import annotations

import asyncio
import logging
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
from gangsched.kube.client.errors import AccessDenied, NotServed
from gangsched.kube.client.reflector import Reflector
from gangsched.kube.client.resource import Resource
from gangsched.kube.foreign.watch import ForeignWatch, Subject
from gangsched.kube.workloads.template_admission import Admission, Reader
from gangsched.kube.workloads.workload_kind import Kind

_log = logging.getLogger(__name__)

_PAUSE_S = 10.0
"""Shortest time in seconds between two times that the workloads of a kind are read again."""
_DENIED_S, _DENIED_AGAIN_S = 5.0, 60.0
"""After so many seconds a kind that may not be read, or is not served, is asked for again: the first time, and later.

An API server that has just started denies everything for some seconds.
"""


async def watch_adding(reflector: Reflector[Any]) -> None:
    """Watch a kind whose objects add to pods. While that is impossible, workloads are read without it."""
    wait_s, logged = _DENIED_S, ""
    while True:
        try:
            await reflector.run()
        except (AccessDenied, NotServed) as error:
            if wait_s > _DENIED_S and logged != str(error):
                logged = str(error)
                _log.warning(
                    "places that are held for later pods do not count what this adds to pods: give gangsched's account "
                    "the verbs list and watch on it in a ClusterRole",
                    extra={"resource": reflector.resource.name, "error": logged},
                )
            reflector.synced.set()
            await asyncio.sleep(wait_s)
            wait_s = _DENIED_AGAIN_S


async def read_again(admission: Admission, watches: Iterable[tuple[Reader, ForeignWatch]]) -> None:
    """Have workloads listed again whenever what they were read with has changed, one list after the other."""
    pairs = tuple(watches)
    while True:
        await admission.outdated.wait()
        admission.outdated.clear()
        for reader, watch in pairs:
            if reader.is_outdated and watch.renew("Admission"):
                reader.begin_anew()
        if any(reader.is_outdated for reader, _ in pairs):
            admission.outdated.set()
        await asyncio.sleep(_PAUSE_S)


def objects(kind: Kind[Any], admission: Reader) -> Subject:
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
