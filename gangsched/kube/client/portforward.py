"""Connects to a port on a pod's loopback interface through the API server: Kubernetes' port-forward over WebSocket.

Of the API server's protocols it uses the one without SPDY, `v4.channel.k8s.io`: each message begins with the number of
its channel, and the first message on each channel names the port.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from gangsched.kube.client.errors import ApiError, ApiUnreachable, printable
from gangsched.kube.client.paths import pod_path
from gangsched.kube.client.session import ApiSession

_PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_PORT_BYTES = 2
_OPEN_S = 15.0
_CHUNK = 2**15


@asynccontextmanager
async def forwarded(session: ApiSession, namespace: str, pod: str, port: int) -> AsyncIterator[int]:
    """Yield a port on our own loopback interface, and forward the first connection to it to that port of the pod.

    Raises:
        ApiError: the API server refuses; the message says what it refuses.
        ApiUnreachable: the API server does not answer, or it cannot reach the pod's port.
    """
    async with session.client() as client:
        url = f"{session.server}{pod_path(namespace, pod)}/portforward?ports={port}"
        try:
            async with asyncio.timeout(_OPEN_S):
                channel = await client.ws_connect(url, protocols=(_PROTOCOL,), max_msg_size=2**20)
        except aiohttp.WSServerHandshakeError as error:
            raise ApiError(
                error.status,
                "PortForward",
                f"the API server does not forward port {port} of the pod {namespace}/{pod}",
            ) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachable(f"Port {port} of the pod {namespace}/{pod} cannot be forwarded: {error}") from error
        relay = _Relay(channel)
        async with channel:
            server = await asyncio.start_server(relay.take, "127.0.0.1", 0)
            async with server:
                try:
                    yield int(server.sockets[0].getsockname()[1])
                except Exception as error:
                    if not relay.trouble:
                        raise
                    # The caller has seen only that the connection ended.
                    said = f"Port {port} of the pod {namespace}/{pod} cannot be reached: {relay.trouble}"
                    raise ApiUnreachable(said) from error
                finally:
                    await relay.end()


class _Relay:
    """Carries bytes between the first connection and the channel. `trouble` is the error that the server reports."""

    def __init__(self, channel: aiohttp.ClientWebSocketResponse) -> None:
        self._channel = channel
        self._tasks: list[asyncio.Task[None]] = []
        self._writer: asyncio.StreamWriter | None = None
        self.trouble = ""

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accept a connection to our own port. Only the first one is forwarded."""
        if self._tasks:
            writer.close()
            return
        self._writer = writer
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._out(reader)), loop.create_task(self._back(writer))]

    async def end(self) -> None:
        """Stop forwarding and close the connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()

    async def _out(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError, aiohttp.ClientError):
            while chunk := await reader.read(_CHUNK):
                await self._channel.send_bytes(bytes([_DATA]) + chunk)

    async def _back(self, writer: asyncio.StreamWriter) -> None:
        begun: set[int] = set()
        try:
            async for message in self._channel:
                if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                    break
                number, content = message.data[0], message.data[1:]
                if number not in begun:
                    begun.add(number)
                    content = content[_PORT_BYTES:]
                if number == _ERROR and content:
                    self.trouble = printable(content.decode("utf-8", "replace"), limit=300)
                    break
                writer.write(content)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
