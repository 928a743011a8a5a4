"""Responses of an API server: passed on, fabricated, or withheld."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from tests.faults.plan import Fault

_OF_ONE_CONNECTION = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding"),
    *("upgrade", "host", "content-length"),
}

INSTEAD: Mapping[Fault | None, tuple[int, str]] = {
    Fault.CONFLICT: (409, "Conflict"),
    Fault.EXPIRED: (410, "Expired"),
    Fault.THROTTLED: (429, "TooManyRequests"),
    Fault.ERROR: (500, "InternalError"),
    Fault.UNAVAILABLE: (503, "ServiceUnavailable"),
    Fault.TIMEOUT: (504, "Timeout"),
}
"""HTTP status and Kubernetes reason of each fabricated response that replaces a request to the server."""

AFTERWARDS: Mapping[Fault | None, tuple[int, str]] = {
    Fault.ERROR_AFTER: INSTEAD[Fault.ERROR],
    Fault.UNAVAILABLE_AFTER: INSTEAD[Fault.UNAVAILABLE],
    Fault.TIMEOUT_AFTER: INSTEAD[Fault.TIMEOUT],
}
"""HTTP status and Kubernetes reason of each fabricated response that replaces the server's own."""


@dataclass(frozen=True)
class Answer:
    """A complete response."""

    status: int
    headers: CIMultiDict[str]
    body: bytes

    @classmethod
    async def of(cls, said: aiohttp.ClientResponse) -> Self:
        """Read the server's whole response."""
        return cls(said.status, end_to_end(said.headers), await said.read())

    def response(self) -> web.Response:
        return web.Response(status=self.status, headers=self.headers, body=self.body)


def end_to_end(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers without the hop-by-hop ones."""
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _OF_ONE_CONNECTION)


def failure(code: int, reason: str, *, retry_after_s: int | None = None) -> Answer:
    """An error response in the API server's format."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    status |= {"reason": reason, "message": f"{reason} (injected)"}
    headers = CIMultiDict({"Content-Type": "application/json"})
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    return Answer(code, headers, json.dumps(status).encode())


class Reset(Exception):  # noqa: N818 - no error
    """Tells the server to reset the connection to the client."""


def reset(transport: asyncio.Transport | None) -> None:
    """End the connection with a TCP reset; unsent data is discarded."""
    if transport is not None:
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
