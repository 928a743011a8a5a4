from __future__ import annotations

import asyncio
import socket
import time

import aiohttp
import pytest

from gangsched.runtime import connections
from gangsched.runtime.connections import MOST_CONNECTIONS
from gangsched.runtime.health import Health, ListenError
from gangsched.runtime.metrics import Metrics


async def _get(port: int, path: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


@pytest.fixture
async def problems():
    found: dict[str, list[str]] = {"alive": [], "ready": [], "notes": []}
    health = Health(
        Metrics(),
        alive=lambda: found["alive"],
        ready=lambda: found["ready"],
        role=lambda: "leading",
        notes=lambda: found["notes"],
    )
    found["port"] = [str(await health.start("127.0.0.1", 0))]
    yield found
    await health.stop()


@pytest.mark.parametrize(("path", "name"), [("/livez", "alive"), ("/readyz", "ready")])
async def test_a_probe_is_200_while_nothing_is_wrong_and_503_with_the_reasons_otherwise(problems, path, name):
    port = int(problems["port"][0])
    assert (await _get(port, path))[0] == 200
    problems[name] += ["pods are not listed yet", "nodes are not listed yet"]
    status, _, text = await _get(port, path)
    assert status == 503
    assert text == "pods are not listed yet\nnodes are not listed yet\n"


@pytest.mark.parametrize(("path", "text"), [("/livez", "ok\n"), ("/readyz", "ok: leading\n")])
async def test_a_probe_that_is_well_says_so_and_readyz_says_what_this_replica_does(problems, path, text):
    assert (await _get(int(problems["port"][0]), path))[2] == text


async def test_what_is_wrong_though_it_is_ready_stands_in_the_text_of_readyz_alone(problems):
    port = int(problems["port"][0])
    problems["notes"].append("Node n1 is set aside")
    assert (await _get(port, "/readyz"))[::2] == (200, "ok: leading\nNode n1 is set aside\n")
    assert (await _get(port, "/livez"))[2] == "ok\n"
    problems["ready"].append("pods are not listed yet")
    assert (await _get(port, "/readyz"))[::2] == (503, "pods are not listed yet\nNode n1 is set aside\n")


async def test_metrics_are_served_in_the_format_that_prometheus_reads(problems):
    status, content_type, text = await _get(int(problems["port"][0]), "/metrics")
    assert status == 200
    assert content_type.startswith("text/plain; version=0.0.4")
    assert "gangsched_build_info{" in text


async def test_a_port_in_use_is_an_error_that_names_the_address(problems):
    port = int(problems["port"][0])
    with pytest.raises(ListenError, match=rf"127.0.0.1:{port} .*choose another --listen"):
        await Health(Metrics(), alive=list, ready=list, role=str, notes=list).start("127.0.0.1", port)


async def _idle(
    port: int, number: int, source: str = "127.0.0.2"
) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    return [await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0)) for _ in range(number)]


async def _open(idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> int:
    """How many of these connections are open at the other end."""
    await asyncio.sleep(0.2)
    return sum(not reader.at_eof() for reader, _ in idle)


@pytest.mark.slow
async def test_probes_are_answered_while_2000_connections_are_opened_and_left_idle(problems):
    """Regression: they took all open files of the process, so that the operator could not reach the API server."""
    port = int(problems["port"][0])
    probe, writer = await asyncio.open_connection("127.0.0.1", port)
    idle = []
    try:
        for _ in range(20):
            idle += await _idle(port, 100)
            began = time.monotonic()
            assert (await _get(port, "/livez"))[0] == 200
            assert time.monotonic() - began < 10
        assert await _open(idle) < MOST_CONNECTIONS
        # The one connection from another address is still open, though it is the oldest.
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await probe.readline()).startswith(b"HTTP/1.1 200")
    finally:
        for _, each in [*idle, (probe, writer)]:
            each.close()


async def test_a_connection_that_sends_nothing_or_half_a_request_is_closed_in_the_end(monkeypatch):
    monkeypatch.setattr(connections.Connections.__init__, "__kwdefaults__", {"most": 9, "longest_s": 0.3})
    monkeypatch.setattr(connections, "ENDING_S", 0.1)
    health = Health(Metrics(), alive=list, ready=list, role=str, notes=list)
    port = await health.start("127.0.0.1", 0)
    idle = await _idle(port, 2)
    idle[1][1].write(b"GET /livez HTTP/1.1\r\nHost:")
    try:
        for reader, _ in idle:
            assert await asyncio.wait_for(reader.read(), 10) == b""
    finally:
        for _, each in idle:
            each.close()
        await health.stop()


async def test_a_connection_whose_client_reads_nothing_is_closed_all_the_same(monkeypatch):
    """Regression: it stayed open, and was no longer counted, as long as an answer waited to be sent."""
    monkeypatch.setattr(connections.Connections.__init__, "__kwdefaults__", {"most": 9, "longest_s": 0.3})
    monkeypatch.setattr(connections, "ENDING_S", 0.1)
    lost = asyncio.Event()
    ended = connections.Connection.connection_lost

    def connection_lost(connection: connections.Connection, exc: Exception | None) -> None:
        ended(connection, exc)
        lost.set()

    monkeypatch.setattr(connections.Connection, "connection_lost", connection_lost)
    monkeypatch.setattr(Metrics, "render", lambda _: bytes(10_000_000))
    health = Health(Metrics(), alive=list, ready=list, role=str, notes=list)
    port = await health.start("127.0.0.1", 0)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    try:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(lost.wait(), 10)
    finally:
        client.close()
        await health.stop()
