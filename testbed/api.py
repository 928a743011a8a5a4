"""A small synchronous client of the Kubernetes API for the testbed: JSON over one kept-alive connection.

The operator has its own client. The testbed does not use it, so that the two cannot share a bug.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TIMEOUT_S = 30
_FIRST_ERROR_STATUS = 400

Json = dict[str, Any]


class ApiError(Exception):
    """A refusal of the API server, with its HTTP status, reason and message."""

    def __init__(self, status: int, *, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


@contextlib.contextmanager
def unless_gone() -> Iterator[None]:
    """Pass if the object, or its kind, does not exist any more."""
    try:
        yield
    except ApiError as error:
        if error.reason != "NotFound":
            raise


class Api:
    """Requests with one token; usable from several threads, one at a time."""

    def __init__(self, port: int, *, certificate: Path, token: str) -> None:
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._lock = threading.Lock()
        context = ssl.create_default_context(cafile=certificate)
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_TIMEOUT_S, context=context)

    def get(self, path: str) -> Json:
        """GET. Reconnects if the server has closed the connection."""
        try:
            return self._request("GET", path)
        except (ConnectionError, http.client.HTTPException):
            return self._request("GET", path)

    def post(self, path: str, body: Json) -> Json:
        """POST, for creations and bindings."""
        return self._request("POST", path, body=body)

    def merge(self, path: str, body: Json) -> Json:
        """PATCH with a JSON merge patch."""
        return self._request("PATCH", path, body=body, content_type="application/merge-patch+json")

    def delete(self, path: str, *, grace_s: int | None = None, body: Json | None = None) -> Json:
        """DELETE of an object or, with a collection's path, of all its objects; `body` has further DeleteOptions."""
        grace = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        return self._request("DELETE", path, body=grace | (body or {}))

    def text(self, path: str) -> str:
        """GET of a non-JSON body, such as /readyz."""
        return self._send("GET", path, None, {}).decode()

    def close(self) -> None:
        """Closes the connection; the next request reopens it."""
        with self._lock:
            self._connection.close()

    def _request(
        self, method: str, path: str, *, body: Json | None = None, content_type: str = "application/json"
    ) -> Json:
        encoded = None if body is None else json.dumps(body).encode()
        answer: Json = json.loads(self._send(method, path, encoded, {"Content-Type": content_type}))
        return answer

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        with self._lock:
            try:
                try:
                    self._connection.request(method, path, body=body, headers=self._headers | headers)
                except (BrokenPipeError, ssl.SSLEOFError):
                    # The server closed the idle connection and has not seen this request.
                    self._connection.close()
                    self._connection.request(method, path, body=body, headers=self._headers | headers)
                response = self._connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
                raise
        if response.status >= _FIRST_ERROR_STATUS:
            raise _error(response.status, content)
        return content


def _error(status: int, content: bytes) -> ApiError:
    try:
        answer = json.loads(content)
    except ValueError:
        return ApiError(status, reason="", message=content.decode(errors="replace"))
    return ApiError(status, reason=answer.get("reason", ""), message=answer.get("message", ""))
