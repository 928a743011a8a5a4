"""The session with the API server: keep-alive TLS connections, one for each concurrent call or watch.

No call waits for the connection of another one. The callers limit the number of concurrent requests, for example the
executor with `bindConcurrency`. Calls that must work even if connections run out use a session from `separate`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from http import HTTPStatus

import msgspec
from msgspec import Struct
from multidict import CIMultiDict
from yarl import URL

from gangsched.kube.client.contact import Contact
from gangsched.kube.client.credentials import Connection, Impersonation, find_connection
from gangsched.kube.client.errors import UNREADABLE, ApiError, ApiUnreachable, CutOff, NoCredentials
from gangsched.kube.client.http_library import aiohttp
from gangsched.kube.wire import Status

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_CONNECT_TIMEOUT_S = 10.0
_WATCH_ANSWER_S = 20.0
"""Time limit, in seconds, of the answer to a watch, which comes before the first event. The API server lets a request
wait for 15 s at most (a quarter of its default time limit). One that has not answered within this limit may never do
so, for example because it was not ready for the watch."""
_KEEP_ALIVE_S = 60.0
_WARM_S = 1.0
_LONGEST_RETRY_AFTER_S = 30.0
_READ_BUFFER_BYTES = 1 << 20
_STATUS = msgspec.json.Decoder(Status)
_UNANSWERED = (aiohttp.ClientError, TimeoutError, OSError, NoCredentials)

Params = Mapping[str, str]


class Response(Struct, frozen=True):
    """An answer of the API server, with any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    def error(self) -> ApiError:
        """The error that the server reports."""
        return _api_error(self.status, self.headers, self.body)

    def checked(self) -> Response:
        """The answer itself if it is a success.

        Raises:
            ApiError: the request failed.
        """
        if not self.ok:
            raise self.error()
        return self


class _Socket(socket.socket):
    """A socket whose descriptor is closed only by `close` or its transport, not by garbage collection.

    If a connection is reset while uvloop (seen with 0.23) opens it, uvloop closes the descriptor but the socket object
    keeps its number. The system may already have reused the number for another connection, which the garbage collection
    of the socket would close.
    """

    def __del__(self) -> None:
        self.detach()


def _open_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    return _Socket(family, kind, protocol)


async def _answered_soon(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    async with asyncio.timeout(_WATCH_ANSWER_S):
        return await handler(request)


class ApiSession:
    """Calls to one API server. `connect` creates a session, `close` ends it.

    `contact` records the answer to each essential call. Answers come `compressed` over what may be a slow connection.
    """

    def __init__(self, connection: Connection, contact: Contact | None = None, *, compressed: bool = False) -> None:
        # For the API server compressing a list is more expensive than sending it to a Pod of the same cluster.
        self._encoding = "gzip" if compressed else "identity"
        self.server = connection.server
        self.namespace = connection.namespace
        """The namespace to use if none is named: that of the context, or of our own pod."""
        self.context, self.cluster = connection.context, connection.cluster
        """Their names in the kubeconfig; empty without one."""
        self.contact = contact or Contact(connection.server)
        self._connection = connection
        self._plugin = connection.plugin
        self._separate: list[ApiSession] = []
        self._former: list[tuple[aiohttp.ClientSession, aiohttp.TCPConnector]] = []
        self._open()

    def _open(self) -> None:
        """Begin with new connections, which use the certificate that is loaded now."""
        tls = self._connection.tls
        self._certificates = self._plugin.certificates if self._plugin is not None else 0
        self._connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_KEEP_ALIVE_S,
            # aiohttp's own context, which True stands for, trusts nobody: without TLS only a proxy may need one.
            ssl=tls or (ssl.create_default_context() if self._connection.proxy else True),
            socket_factory=_open_socket,
        )
        self._client = self.client()

    def separate(self) -> ApiSession:
        """Another session with the same, always current, credentials and its own connections; it closes with this."""
        session = ApiSession(self._connection, self.contact)
        self._separate.append(session)
        return session

    def for_loop(self, loop: asyncio.AbstractEventLoop) -> ApiSession:
        """A separate session for another event loop; call this there. `loop` is this session's, for credentials."""
        connection = self._connection

        async def authorization() -> str | None:
            return await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(_awaited(connection.authorization()), loop)
            )

        # The plug-in runs in this session's loop, and is called again when this session is refused.
        return ApiSession(replace(connection, authorization=authorization, plugin=None))

    def client(self) -> aiohttp.ClientSession:
        """An aiohttp session with the same connections and the same, always current, credentials.

        It is for a library that needs a session of its own. Closing it leaves the connections open.
        """
        headers = CIMultiDict({"Accept": JSON, "Accept-Encoding": self._encoding, "User-Agent": "gangsched"})
        if self._connection.acting_as is not None:
            headers.extend(self._connection.acting_as.headers())
        return aiohttp.ClientSession(
            connector=self._connector,
            connector_owner=False,
            headers=headers,
            middlewares=(self._authorize,),
            proxy=self._connection.proxy,
            read_bufsize=_READ_BUFFER_BYTES,
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_s: float = 15.0,
        connect_s: float = _CONNECT_TIMEOUT_S,
        essential: bool = True,
    ) -> Response:
        """Send one request and read its whole answer. `path` starts with a slash and is already quoted.

        gangsched can work even if a call that is not `essential` is always refused.

        Raises:
            ApiUnreachable: connecting took longer than `connect_s`, there was no complete answer within `timeout_s`, or
                there were no credentials.
        """
        headers = {"Content-Type": content_type} if body is not None else None
        timeout = aiohttp.ClientTimeout(total=timeout_s, connect=connect_s)
        url, number = self._url(path), self._credentials()

        async def answered() -> Response:
            async with self._client.request(
                method, url, params=params, data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                return Response(response.status, response.headers, await response.read())

        try:
            response = await answered()
            if response.status == HTTPStatus.UNAUTHORIZED and await self._has_others(number):
                response = await answered()
        except _UNANSWERED as error:
            raise self._unanswered(method, path, error) from error
        self.contact.count(method, path, response.status)
        if essential:
            self.contact.answered(method, path, None if response.ok else response.error())
        else:
            self.contact.reached()
        return response

    @asynccontextmanager
    async def stream(
        self, path: str, params: Params, *, silent_s: float = 70.0, essential: bool = True
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an endless answer and yield its pieces as they arrive, cut anywhere; `essential` as in `request`.

        Raises:
            ApiError: the server refused (on entering).
            ApiUnreachable: no connection, a lost one, or no data for `silent_s` (on entering or iterating).
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S)
        number = self._credentials()
        try:
            # aiohttp has no time limit for the renewal of credentials.
            async with asyncio.timeout(silent_s):
                response = await self._client.get(
                    self._url(path),
                    params=params,
                    timeout=timeout,
                    allow_redirects=False,
                    middlewares=(self._authorize, _answered_soon),
                )
        except _UNANSWERED as error:
            raise self._unanswered("GET", path, error) from error
        try:
            self.contact.count("GET", path, response.status, watch=True)
            refusal = None
            if response.status != HTTPStatus.OK:
                refusal = _api_error(response.status, response.headers, await self._rest(response, silent_s))
            if response.status == HTTPStatus.UNAUTHORIZED:
                # Whoever follows this answer asks for another one.
                await self._has_others(number)
            if essential:
                self.contact.answered("GET", path, refusal, watch=True)
            else:
                self.contact.reached()
            if refusal is not None:
                raise refusal
            async with aclosing(self._pieces(response, silent_s)) as pieces:
                yield pieces
        finally:
            response.close()

    async def warm(self, connections: int) -> None:
        """Open this many connections in advance, so that concurrent requests need not wait for them.

        Connections that fail or take longer than a second are skipped.
        """
        await asyncio.gather(
            *(self.request("GET", "/version", timeout_s=_WARM_S) for _ in range(connections)), return_exceptions=True
        )

    async def close(self) -> None:
        """Close all connections, including those of sessions from `separate`."""
        for session in self._separate:
            await session.close()
        for client, connector in (*self._former, (self._client, self._connector)):
            await client.close()
            await connector.close()

    def _credentials(self) -> int:
        """Have connections with the current certificate. Returns the number of the credentials of the next request."""
        if self._plugin is None:
            return 0
        if self._plugin.certificates != self._certificates:
            # Open connections have the former certificate. What they still bring is awaited.
            self._former.append((self._client, self._connector))
            self._open()
        return self._plugin.number

    async def _has_others(self, number: int) -> bool:
        """Whether there are other credentials than those of this number, which the API server has just refused."""
        if self._plugin is None or not await self._plugin.replaced(number):
            return False
        self._credentials()
        return True

    async def _pieces(self, response: aiohttp.ClientResponse, silent_s: float) -> AsyncGenerator[bytes, None]:
        """The answer's pieces, with our own time limit: aiohttp (seen with 3.14) loses its own at a broken chunk.

        One timer checks the time of the last piece. A time limit for each piece would cost as much as reading it.
        """
        loop = asyncio.get_running_loop()
        heard = loop.time()
        silent = False
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal silent, timer
            left_s = heard + silent_s - loop.time()
            if left_s > 0:
                timer = loop.call_later(left_s, look)
                return
            silent = True
            response.close()

        timer = loop.call_later(silent_s, look)
        try:
            while piece := await response.content.readany():
                heard = loop.time()
                yield piece
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(TimeoutError() if silent else error) from error
        finally:
            timer.cancel()

    async def _rest(self, response: aiohttp.ClientResponse, silent_s: float) -> bytes:
        try:
            async with asyncio.timeout(silent_s):
                return await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    async def _authorize(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        value = await self._connection.authorization()
        if value is not None:
            request.headers["Authorization"] = value
        if self._connection.tls_name is not None:
            request.server_hostname = self._connection.tls_name
        return await handler(request)

    def _url(self, path: str) -> URL:
        return URL(self.server + path, encoded=True)

    def _unanswered(self, method: str, path: str, error: Exception) -> ApiUnreachable:
        if isinstance(error, NoCredentials):
            self.contact.without_credentials(method, path, str(error))
            return ApiUnreachable(str(error))
        unreachable = self._unreachable(error)
        self.contact.unanswered(method, path, failure_cause(error))
        return unreachable

    def _unreachable(self, error: Exception) -> ApiUnreachable:
        kind = type(error).__name__
        if isinstance(error, aiohttp.ClientPayloadError):
            return CutOff(f"An answer of the API server {self.server} was cut off ({kind}): {failure_cause(error)}")
        return ApiUnreachable(f"The API server {self.server} cannot be reached ({kind}): {failure_cause(error)}")


async def connect(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    acting_as: Impersonation | None = None,
    compressed: bool = False,
) -> ApiSession:
    """A session with the credentials of the kubeconfig (this one or $KUBECONFIG), the pod, or ~/.kube/config.

    It sends nothing yet. `acting_as`: all requests have the rights of this user instead. `compressed` as in ApiSession.

    Raises:
        NoCredentials: there are no usable credentials; the message says what to do.
    """
    connection = await find_connection(kubeconfig=kubeconfig, context=context, acting_as=acting_as)
    return ApiSession(connection, compressed=compressed)


async def _awaited(value: Awaitable[str | None]) -> str | None:
    return await value


def failure_cause(error: Exception) -> str:
    """The cause of a failed connection, for messages."""
    if isinstance(error, aiohttp.ClientConnectorError):
        # Its own text contains the memory address of a Python object.
        error = error.os_error
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or ("no answer in time" if isinstance(error, TimeoutError) else "the connection was lost")


def _api_error(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    reason, message = "", body[:500].decode("utf-8", "replace").strip()
    causes: frozenset[str] = frozenset()
    try:
        api_status = _STATUS.decode(body)
    except UNREADABLE:
        pass
    else:
        reason, message = api_status.reason or "", api_status.message or message
        if api_status.details is not None and api_status.details.causes:
            causes = frozenset(cause.reason for cause in api_status.details.causes if cause.reason)
    return ApiError(status, reason or "HTTP", message, retry_after_s=_retry_after_s(headers), causes=causes)


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """The wait that a Retry-After header requests, up to a limit. The API server always sends whole seconds."""
    value = headers.get("Retry-After", "")
    return min(float(value), _LONGEST_RETRY_AFTER_S) if value.isascii() and value.isdigit() else 0.0
