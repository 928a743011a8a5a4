"""What the API server's answers consist of: pages, events of a watch, and errors."""

from __future__ import annotations

from msgspec import Raw, Struct, field

from gangsched.kube.wire.shared_parts import Meta


class ListMeta(Struct, gc=False, rename="camel"):
    resource_version: str | None = None
    continue_: str | None = field(name="continue", default=None)
    remaining_item_count: int = 0
    """How many objects follow the page; 0 also for a list with selectors, of which the API server does not know it."""


class Page(Struct, gc=False, rename="camel"):
    """One page of a list. Its items are decoded one by one, so that an unreadable one affects no other."""

    metadata: ListMeta
    items: list[Raw] | None = None
    api_version: str | None = None
    kind: str | None = None


class WatchEvent(Struct, gc=False):
    """One line of a watch. `object` is a Status if `type` is ERROR, else an object of the watched kind."""

    type: str
    object: Raw


class Versioned(Struct, gc=False):
    """Any object whose version is all that matters, such as a bookmark."""

    metadata: Meta


class StatusCause(Struct, gc=False):
    """One cause of an error, in a word."""

    reason: str | None = None


class StatusDetails(Struct, gc=False):
    """Details of an error in addition to the message."""

    causes: list[StatusCause] | None = None


class Status(Struct, gc=False):
    """An error of the API server."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: StatusDetails | None = None
