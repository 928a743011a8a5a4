"""Errors in the communication with the API server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import msgspec

from gangsched.core.objects.wording import printable

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions of decoding an answer: the second for bytes that are not UTF-8, the third for input that is nested
more deeply than any object of an API server."""

_AUTHORIZER = re.compile(r"\bUser \".*\" cannot [a-z*]+ (resource|path) \"", re.DOTALL)
"""The message of an API server if the account lacks a right. A refusal by an admission plug-in reads differently."""

ANONYMOUS = 'User "system:anonymous"'
"""The user, in the server's messages, of requests without credentials."""


class KubeError(Exception):
    """Any failure of a request to the API server."""


class NoCredentials(KubeError):  # noqa: N818 - a state of affairs
    """There are no usable credentials; the message says where gangsched looked for them and what to do."""


class ApiUnreachable(KubeError):  # noqa: N818 - a state of affairs
    """No answer arrived: no connection, a lost connection, or a time-out. The request may still have taken effect."""


class CutOff(ApiUnreachable):
    """An answer ended before it was complete."""


class CrdMissing(KubeError):  # noqa: N818 - a state of affairs
    """The API server does not know PodGroups: the CustomResourceDefinition is not installed."""


class NotServed(KubeError):  # noqa: N818 - a state of affairs
    """The API server does not, or no longer, serve a kind of objects."""


class Expired(KubeError):  # noqa: N818 - a state of affairs
    """The server no longer has the requested version (410 Gone): only a new list helps."""


class ApiError(KubeError):
    """The API server answered with an error.

    `status` is the HTTP status, `reason` its Kubernetes reason (`NotFound`, `Conflict`, …; the HTTP reason if the
    answer is no Status object), `message` its explanation. `retry_after_s` is the wait that it requests, 0 if none.
    `causes` are the reasons of the causes that it names.
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
        """Whether the account lacks the right, as far as the server knows. A restarted one may not know its roles yet.

        A refusal by an admission plug-in has the same status but does not count.
        """
        return self.status == HTTPStatus.FORBIDDEN and _AUTHORIZER.search(self.message) is not None

    @property
    def anonymous(self) -> bool:
        """Whether the server denied it because no credentials arrived, for example with an expired certificate."""
        return self.denied and ANONYMOUS in self.message

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later: rights and credentials may be granted or become known again."""
        return (
            self.denied
            or self.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
            or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )


class AccessDenied(KubeError):  # noqa: N818 - a state of affairs
    """The account lacks the right to read a kind that is not essential; the message names it."""


class Garbled(KubeError):  # noqa: N818 - a state of affairs
    """The API server's answer violates its API, or was cut off."""


@contextmanager
def readable(subject: str) -> Iterator[None]:
    """What is decoded in the block comes from the API server; `subject` names it.

    Raises:
        Garbled: it cannot be read.
    """
    try:
        yield
    except UNREADABLE as error:
        raise Garbled(f"{subject} cannot be read: {error}") from error
