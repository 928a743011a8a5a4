"""What can go wrong between us and the API server."""

from __future__ import annotations

import re
from http import HTTPStatus

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding an answer raises: the second for bytes that are no UTF-8, the third for what is nested more deeply than
any object of an API server."""

_AUTHORIZER = re.compile(r"\bUser \".*\" cannot [a-z*]+ (resource|path) \"", re.DOTALL)
"""How an API server words that the account lacks a right; an admission plug-in's refusal has other words."""


def printable(text: str, *, limit: int = 1000) -> str:
    """The text as it may stand in a log line: control characters escaped, cut at `limit` characters."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in cut)


class KubeError(Exception):
    """Any failure to get something done through the API server."""


class NoCredentials(KubeError):  # noqa: N818 - what there is not
    """There are no usable credentials; the message says where they were looked for and what to do."""


class ApiUnreachable(KubeError):  # noqa: N818 - a state of affairs
    """No answer came: no connection, a connection lost, or time ran out. What was asked for may still have happened."""


class CrdMissing(KubeError):  # noqa: N818 - a state of affairs
    """The API server does not know PodGroups: the CustomResourceDefinition is not installed."""


class NotServed(KubeError):  # noqa: N818 - a state of affairs
    """The API server does not serve a kind of objects, or does not any more."""


class Expired(KubeError):  # noqa: N818 - a state of affairs
    """The server no longer has the version that was asked for (410 Gone): only a new list helps."""


class ApiError(KubeError):
    """The API server answered with an error.

    `status` is the HTTP status, `reason` its Kubernetes reason (`NotFound`, `Conflict`, …; the HTTP reason where the
    answer is no Status object), `message` its explanation. `retry_after_s` is what it asked to wait, 0 without.
    `causes` are the words for the causes that it names.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        retry_after_s: float = 0.0,
        causes: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(f"{status} {printable(reason)}: {printable(message)}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.causes = causes

    @property
    def denied(self) -> bool:
        """Whether the account lacks the right, so far as the server knows: a restarted one has yet to read all rights.

        A refusal by an admission plug-in has the same status and is none.
        """
        return self.status == HTTPStatus.FORBIDDEN and _AUTHORIZER.search(self.message) is not None

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later: rights and credentials too may be granted, or be known again."""
        return (
            self.denied
            or self.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
            or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )


class AccessDenied(KubeError):  # noqa: N818 - a state of affairs
    """The account lacks the right to read a kind that gangsched can do without; the message says which."""


class Garbled(KubeError):  # noqa: N818 - a state of affairs
    """What the API server sent is not what its API promises, or was cut off."""
