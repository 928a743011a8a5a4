"""The commands that people wait for, on a large cluster in use: from the start of the process to its end.

The operator runs beside them. A connection is `far` if each piece of data takes half of ROUND_TRIP_S in each direction.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.lab import Figures, lab
from bench.scenarios import Kind, Scenario
from testbed.operator import HERE

SCENARIO = Scenario(kind=Kind.CONTENTION, nodes=5_000, gangs=1_550, size=20, node_cpus=5, fitting=25_000)
"""25,000 pods run, one gang for each of 20, and 300 gangs wait."""
TITLE = "commands, 5,000 nodes and 31,000 pods, 300 groups wait"
ROUND_TRIP_S = 0.05
_WAITING = SCENARIO.names[-1]
_COMMANDS = {
    "list": ("list", "--all-namespaces"),
    "events": ("events", f"default/{_WAITING}"),
    "explain": ("explain", f"default/{_WAITING}"),
    "explain_running": ("explain", f"default/{SCENARIO.names[0]}"),
    "top": ("top", "--once"),
}
_FAR = ("list", "explain")
_PIECE = 1 << 16
_SETTLED_S = 5.0


async def measure(number: int) -> list[Figures]:
    """Seconds of each command, near and far, in so many rounds on one cluster."""
    async with lab(SCENARIO) as made, _far(made.kubeconfig) as far:
        await made.load.add_groups()
        await made.load.add_pods()
        made.timeline.begin()
        async with made.operator(leads=True):
            await made.until_bound()
            await made.until_told()
            await asyncio.sleep(_SETTLED_S)
            rounds = []
            for _ in range(number):
                near_s = {f"{name}_s": await _took_s(made.kubeconfig, words) for name, words in _COMMANDS.items()}
                far_s = {f"{name}_far_s": await _took_s(far, _COMMANDS[name]) for name in _FAR}
                rounds.append(near_s | far_s)
            return rounds


async def _took_s(kubeconfig: Path, words: tuple[str, ...]) -> float:
    """Run a command and return its seconds.

    Raises:
        RuntimeError: it failed.
    """
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(*HERE, *words),
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"gangsched {' '.join(words)} ended with status {process.returncode}: {said.decode()}")
    return time.monotonic() - began


@asynccontextmanager
async def _far(kubeconfig: Path) -> AsyncIterator[Path]:
    """A kubeconfig for the same API server over a slow connection."""
    content = json.loads(await asyncio.to_thread(kubeconfig.read_text))
    cluster = content["clusters"][0]["cluster"]
    host, _, port = cluster["server"].removeprefix("https://").partition(":")

    async def connected(reader: StreamReader, writer: StreamWriter) -> None:
        there, to_there = await asyncio.open_connection(host, int(port))
        async with asyncio.TaskGroup() as both:
            both.create_task(_forward(reader, to_there))
            both.create_task(_forward(there, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    cluster["server"] = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    found = kubeconfig.with_name("far.json")
    await asyncio.to_thread(found.write_text, json.dumps(content))
    try:
        yield found
    finally:
        server.close()


async def _forward(reader: StreamReader, writer: StreamWriter) -> None:
    """Pass everything on, each piece half a round trip later."""
    loop = asyncio.get_running_loop()
    while piece := await reader.read(_PIECE):
        loop.call_later(ROUND_TRIP_S / 2, writer.write, piece)
    loop.call_later(ROUND_TRIP_S, writer.close)
