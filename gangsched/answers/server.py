"""The HTTPS server of the answers: GET /v1/explain/NAMESPACE/NAME, on 127.0.0.1.

It is reachable by untrusted clients. A request has no body; a connection carries one request and ends after some
seconds. Few connections of clients that have not been admitted are accepted: further ones wait in the kernel, where
they use none of the operator's open files.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from aiohttp import web

from gangsched.answers.certificate import Certificate
from gangsched.answers.examiner import Examiner, NoAnswer, NoRoom
from gangsched.answers.gate import TOO_OFTEN, Gate, Refused
from gangsched.core.objects.declaration import GroupKey
from gangsched.kube.client.reviews import User
from gangsched.runtime.health import ListenError

_log = logging.getLogger(__name__)
_SILENT = logging.getLogger(f"{__name__}.http")
"""The logger to which aiohttp reports invalid HTTP, with tracebacks and the content. Strangers could fill the log."""
_SILENT.disabled = True

HOST = "127.0.0.1"
MOST_CONNECTIONS = 16
"""Maximum number of connections of clients that have not been admitted. The examiner limits the admitted ones."""
MOST_OF_ONE = 2
"""Maximum number of questions of one user in progress at a time."""
HANDSHAKE_S = 5.0
REQUEST_S = 3.0
"""Longest time, in seconds, from the TLS handshake to the request."""
ADMISSION_S = 15.0
"""Longest time, in seconds, from the request to its admission, which takes three reviews by the API server."""
CONNECTION_S = 45.0
"""Longest time, in seconds, from admission to the end of the connection. It is longer than an answer may take."""
_LOOK_S = 0.1
_LAST_WORDS_S = 1.0
_SHUTDOWN_S = 0.2
_BACKLOG = 64
_LONGEST_LINE = 32_768
NOT_READY = "This replica has not listed the whole cluster yet: ask again in some seconds, or ask another replica."
NO_GROUP = "There is no PodGroup of this name, and no waiting pod of gangsched names it or has that name."
CHANGED = "The rights of the token's account have changed meanwhile: ask again."
NO_ANSWER = "The answer was not found in time: ask again."
NO_ROOM = (
    "The operator's container has too little memory left for a copy of the cluster: ask an administrator to raise "
    "resources.limits.memory of its chart."
)
NO_BODY = "A question must have no body: ask with GET /v1/explain/NAMESPACE/NAME."
NO_PATH = "Ask with GET /v1/explain/NAMESPACE/NAME."

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _ignore(_status: int, _took_s: float) -> None:
    pass


class Server:
    """Answers the users whom `gate` admits with what `examiner` finds out, once `ready`.

    `on_answer` is called with the HTTP status of each answer and its duration in seconds.
    """

    def __init__(
        self,
        gate: Gate,
        examiner: Examiner,
        certificate: Certificate,
        *,
        ready: Callable[[], bool],
        on_answer: Callable[[int, float], None] = _ignore,
        request_s: float = REQUEST_S,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self._gate = gate
        self._examiner = examiner
        self._certificate = certificate
        self._ready = ready
        self._on_answer = on_answer
        self._request_s = request_s
        self._asking: Counter[str] = Counter()
        self._slots = asyncio.Semaphore(most_connections)
        self._connections: dict[asyncio.BaseTransport, _Connection] = {}
        application = web.Application(middlewares=[self._guard], client_max_size=0)
        application.router.add_get("/v1/explain/{namespace}/{name}", self._explain, allow_head=False)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=_SILENT,
            shutdown_timeout=_SHUTDOWN_S,
            keepalive_timeout=1.0,
            lingering_time=1.0,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
        )
        self._listener: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, port: int) -> int:
        """Listen, log and return the port; port 0 means any free one.

        Raises:
            ListenError: the port is in use.
        """
        await self._runner.setup()
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise ListenError(
                f"cannot listen on {HOST}:{port} ({error.strerror or error}): choose another answers.port"
            ) from error
        listener.setblocking(False)
        self._listener = listener
        actual = int(listener.getsockname()[1])
        where = {"address": f"{HOST}:{actual}", "fingerprint": f"sha256:{self._certificate.fingerprint}"}
        _log.info("answering tenants", extra=where)
        return actual

    async def run(self) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        while self._listener is not None:
            await self._slots.acquire()
            try:
                accepted, _ = await loop.sock_accept(self._listener)
            except OSError:
                # No file descriptor is left, or the client has disconnected.
                self._slots.release()
                await asyncio.sleep(_LOOK_S)
                continue
            except BaseException:
                self._slots.release()
                raise
            task = loop.create_task(self._serve(accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop listening, and end all connections and the examiner's process."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._runner.cleanup()
        await self._examiner.close()

    async def _serve(self, accepted: socket.socket) -> None:
        """Serve one connection, from its handshake to its end."""
        loop = asyncio.get_running_loop()
        transport: asyncio.BaseTransport | None = None
        connection = _Connection(self._slots)
        server = self._runner.server
        try:
            if server is None:
                return
            with suppress(OSError, ssl.SSLError, TimeoutError):
                transport, _ = await loop.connect_accepted_socket(
                    server, accepted, ssl=self._certificate.tls, ssl_handshake_timeout=HANDSHAKE_S
                )
            if transport is None:
                return
            self._connections[transport] = connection
            connection.until = time.monotonic() + self._request_s
            while not transport.is_closing():
                if time.monotonic() > connection.until:
                    break
                await asyncio.sleep(_LOOK_S)
            if transport.is_closing():
                # The last bytes may still be in flight.
                await asyncio.sleep(_LAST_WORDS_S)
        finally:
            if transport is None:
                accepted.close()
            else:
                self._connections.pop(transport, None)
                _abort(transport)
            connection.free()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        began = time.monotonic()
        connection = self._connections.get(request.transport) if request.transport is not None else None
        if connection is not None:
            connection.until = time.monotonic() + ADMISSION_S
        try:
            answer = _refused(413, NO_BODY) if request.body_exists else await handler(request)
        except Refused as refusal:
            answer = _refused(refusal.status, refusal.sentence)
        except NoRoom:
            answer = _refused(503, NO_ROOM)
        except NoAnswer:
            answer = _refused(503, NO_ANSWER)
        except web.HTTPException as error:
            answer = _refused(error.status, NO_PATH)
        except Exception:  # noqa: BLE001 - a tenant's question may end no more than its own answer
            _log.exception("an answer to a tenant failed, which is a bug")
            answer = _refused(500, NO_ANSWER)
        answer.force_close()
        answer.headers["Cache-Control"] = "no-store"
        answer.headers["X-Content-Type-Options"] = "nosniff"
        self._on_answer(answer.status, time.monotonic() - began)
        return answer

    async def _explain(self, request: web.Request) -> web.Response:
        key = GroupKey(request.match_info["namespace"], request.match_info["name"])
        header = request.headers.get("Authorization", "")
        user, reach = admitted = await self._gate.admit(header, key)
        if not self._ready():
            raise Refused(503, NOT_READY)
        if self._asking[user.username] >= MOST_OF_ONE:
            raise Refused(429, TOO_OFTEN)
        if request.transport in self._connections:
            self._connections[request.transport].admit()
        self._asking[user.username] += 1
        try:
            found = await self._examiner.explain(key, reach)
        finally:
            self._asking -= Counter([user.username])
        if not await self._gate.is_still(header, key, admitted):
            raise Refused(503, CHANGED)
        if found is None or not await self._may_see(found, user, key):
            raise Refused(404, NO_GROUP)
        return web.Response(body=found, content_type="application/json")

    async def _may_see(self, found: bytes, user: User, key: GroupKey) -> bool:
        """Whether the user may get the group that the answer is about; for the name of a pod, it is the pod's group."""
        about = msgspec.json.decode(found, type=_About)
        return about.name == key.name or await self._gate.may_get(user, GroupKey(key.namespace, about.name))


class _Connection:
    """The deadline of a connection (`until`), on the monotonic clock. It occupies a slot until its user is admitted."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots: asyncio.Semaphore | None = slots
        self.until = 0.0

    def admit(self) -> None:
        self.until = time.monotonic() + CONNECTION_S
        self.free()

    def free(self) -> None:
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.release()


class _About(msgspec.Struct):
    name: str


def _refused(status: int, sentence: str) -> web.Response:
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "5"}, 503: {"Retry-After": "2"}}.get(status)
    return web.json_response({"error": sentence}, status=status, headers=headers)


def _abort(transport: asyncio.BaseTransport) -> None:
    if isinstance(transport, asyncio.Transport):
        transport.abort()
    else:
        transport.close()
