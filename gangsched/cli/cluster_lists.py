"""Lists of one kind, each read once with the caller's own rights."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

from gangsched.core.objects.events import Event
from gangsched.kube import wire
from gangsched.kube.client.errors import AccessDenied, ApiError, Expired, readable
from gangsched.kube.client.pages import LARGE_PAGE, converted, unexpired
from gangsched.kube.client.pages import pages as pages_of
from gangsched.kube.client.paths import within
from gangsched.kube.client.resource import Resource
from gangsched.kube.client.session import ApiSession
from gangsched.kube.foreign.watch import Subject, served_version
from gangsched.kube.reading.device_values import DEVICES

Value = TypeVar("Value")


async def list_of(session: ApiSession, resource: Resource[Value], namespace: str = "", selector: str = "") -> Event:
    """All objects of the kind from one consistent list: after an expired page (410) the list starts again.

    With a `namespace`, only its own; and only what the `selector` of labels selects.
    """
    path = within(resource.path, namespace)
    return await unexpired(lambda: _list_once(session, resource, path, selector))


async def _list_once(session: ApiSession, resource: Resource[Value], path: str, selector: str) -> Event:
    values: list[Value] = []
    async for page in pages_of(session, path, resource.name, selector=selector, size=LARGE_PAGE):
        values += await _values(page, resource)
    return resource.replaced(tuple(values))


async def values_of(pages: Awaitable[Sequence[wire.Page]], resource: Resource[Value]) -> Event:
    """The objects of the kind in these pages, all of which are awaited.

    Raises:
        Garbled: one of them cannot be read.
    """
    return resource.replaced(tuple([value for page in await pages for value in await _values(page, resource)]))


async def _values(page: wire.Page, resource: Resource[Value]) -> list[Value]:
    with readable(f"One of the {resource.name}"):
        return await converted(page, resource)


async def list_served(session: ApiSession, resource: Resource[Any]) -> Event:
    """All objects of the kind; none if it is a kind of device that the API server does not serve."""
    try:
        return await list_of(session, resource)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND and resource in DEVICES.values():
            return resource.replaced(())
        raise


async def list_foreign(session: ApiSession, subject: Subject, namespace: str = "") -> Event:
    """The objects of another system, or the reason why the caller cannot see them."""
    name = subject.kind.name
    try:
        version = await served_version(session, subject.kind)
        if not version:
            return subject.absent
        return await list_of(session, subject.resource(version), namespace)
    except (AccessDenied, ApiError, Expired) as error:
        status = error.status if isinstance(error, ApiError) else None
        if status == HTTPStatus.NOT_FOUND:
            return subject.absent
        denied = isinstance(error, AccessDenied) or status == HTTPStatus.FORBIDDEN
        problem = f"You may not list {name}" if denied else f"{name} cannot be listed"
        remedy = "request the right to list them" if denied else "try again"
        # The operator may have the right, so the content counts as unknown, not as denied.
        return subject.hidden(f"{problem} ({error}), so their content is unknown: {remedy}.", denied=False)
