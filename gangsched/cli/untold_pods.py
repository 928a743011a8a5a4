"""The pods of which no status of a PodGroup tells, as the API server sends them.

They are asked for by what little of the PodGroups that takes, so that the answer is on its way while those are read.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

import msgspec
from msgspec import Struct

from gangsched.cli.side_by_side import side_by_side, unless_error
from gangsched.config.dialects import GROUP_LABEL
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.policy import DEFAULT_NAME
from gangsched.core.objects.selectors import is_label_value
from gangsched.core.objects.status import GroupStatus
from gangsched.kube import wire
from gangsched.kube.client.errors import UNREADABLE, ApiError
from gangsched.kube.client.pages import all_pages
from gangsched.kube.client.paths import PODS, within
from gangsched.kube.client.session import ApiSession

_MOST_NAMES = 30_000
"""The longest list of names, in characters, that is sent in one request."""
_MOST_NAMESPACES = 20
"""So many namespaces are asked one by one."""
_TOO_LONG = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_URI_TOO_LONG, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
"""The statuses of answers to a request that is too long."""

Names = Mapping[str, Sequence[str]]
"""Names of PodGroups, by namespace."""


class Untold(NamedTuple):
    """`pages` of all pods of some schedulers, but for those that name one of these PodGroups.

    There are none if the names are too many to be sent: all pods are to be read then.
    """

    names: Names
    pages: asyncio.Future[list[wire.Page]] | None

    async def drop(self) -> None:
        """Nobody needs the pages any more, whether or not they have come."""
        if self.pages is not None:
            self.pages.cancel()
            await asyncio.gather(self.pages, return_exceptions=True)


class _Status(Struct, gc=False):
    phase: str | None = None
    scheduler: str | None = None


class _Written(Struct, gc=False):
    metadata: wire.Meta
    status: _Status | None = None


_WRITTEN = msgspec.json.Decoder(_Written)


def is_told(status: _Status | GroupStatus, schedulers: Collection[str]) -> bool:
    """Whether an operator that serves these schedulerNames has written the status of this PodGroup."""
    return bool(status.phase) and (status.scheduler or DEFAULT_NAME) in schedulers


def told(groups: Iterable[tuple[GroupKey, _Status | GroupStatus]], schedulers: Collection[str]) -> Names:
    """The PodGroups whose status says what has become of their pods."""
    names: dict[str, list[str]] = defaultdict(list)
    for key, status in groups:
        if is_told(status, schedulers) and is_label_value(key.name):
            names[key.namespace].append(key.name)
    return names


def ask_untold(session: ApiSession, groups: Sequence[wire.Page], namespace: str, schedulers: Collection[str]) -> Untold:
    """Ask for the pods of the namespace, or of all if it is empty, of which the statuses in these pages do not tell."""
    names = told(_written(groups), schedulers)
    length = sum(len(name) + 1 for groups in names.values() for name in groups)
    if len(names) > _MOST_NAMESPACES or length > _MOST_NAMES:
        return Untold(names, None)
    return Untold(names, asyncio.ensure_future(_untold(session, names, namespace, schedulers)))


def _written(pages: Sequence[wire.Page]) -> Iterator[tuple[GroupKey, _Status]]:
    for item in (item for page in pages for item in page.items or ()):
        with suppress(*UNREADABLE):
            group = _WRITTEN.decode(item)
            yield GroupKey(group.metadata.namespace or "", group.metadata.name or ""), group.status or _Status()


async def _untold(session: ApiSession, names: Names, namespace: str, schedulers: Collection[str]) -> list[wire.Page]:
    reads: list[Awaitable[list[wire.Page]]] = []
    for ours in (f"spec.schedulerName={scheduler}" for scheduler in schedulers):
        reads += [
            _pods(session, space, f"{GROUP_LABEL} notin ({','.join(groups)})", ours) for space, groups in names.items()
        ]
        if not namespace:
            reads.append(_pods(session, fields=",".join([ours, *(f"metadata.namespace!={space}" for space in names)])))
        elif not names:
            reads.append(_pods(session, namespace, fields=ours))
    pages: list[wire.Page] = []
    for result in await side_by_side(*reads):
        if isinstance(result, ApiError) and result.status in _TOO_LONG:
            # What is between us and the API server accepts no long request.
            return await _pods(session, namespace)
        pages += unless_error(result)
    return pages


async def _pods(session: ApiSession, namespace: str = "", selector: str = "", fields: str = "") -> list[wire.Page]:
    return await all_pages(session, within(PODS, namespace), "pods", selector=selector, fields=fields)
