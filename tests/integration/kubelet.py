"""As much of a kubelet as a port-forward needs: the API server connects to it as to any node's.

It treats every pod as one on this machine, whose loopback the tests share with the operator. It does not simulate any
other function of a container runtime.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import WSMsgType, web

from gangsched.answers.certificate import make_certificate

_PROTOCOL = "v4.channel.k8s.io"


class Kubelet:
    """A port-forwarding kubelet; `asked` are the pods and ports that were forwarded."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[tuple[str, str]] = []

    async def forward(self, request: web.Request) -> web.StreamResponse:
        port = request.query["port"]
        self.asked.append((request.match_info["pod"], port))
        channel = web.WebSocketResponse(protocols=(_PROTOCOL,))
        await channel.prepare(request)
        assert channel.ws_protocol == _PROTOCOL
        for number in (0, 1):
            await channel.send_bytes(bytes([number]) + int(port).to_bytes(2, "little"))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        except OSError as error:
            await channel.send_bytes(b"\x01" + f"nothing listens there: {error}".encode())
            return channel
        back = asyncio.create_task(self._back(reader, channel))
        try:
            async for message in channel:
                if message.type is WSMsgType.BINARY and message.data[0] == 0:
                    writer.write(message.data[1:])
                    await writer.drain()
        finally:
            back.cancel()
            writer.close()
        return channel

    async def _back(self, reader: asyncio.StreamReader, channel: web.WebSocketResponse) -> None:
        while chunk := await reader.read(1000):
            await channel.send_bytes(b"\x00" + chunk)
        await channel.close()

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        application = web.Application()
        application.router.add_get("/portForward/{namespace}/{pod}", self.forward)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=make_certificate().tls).start()
        self.port = int(runner.addresses[0][1])
        started.set()
        await stop.wait()
        await runner.cleanup()
        # Sockets are closed in later iterations of the loop.
        await asyncio.sleep(0.1)


@contextmanager
def kubelet() -> Iterator[Kubelet]:
    """A kubelet that runs in a thread."""
    found, loop, started = Kubelet(), asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(found.serve(started, stop)), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        with contextlib.suppress(RuntimeError):
            loop.close()
