"""A minimal gang scheduler: `python -m bench.counting KUBECONFIG NODES SIZE`, a process like gangsched.

It watches pods, counts each gang's members by their names, and binds a gang once it has seen all of them. It ignores
PodGroups, nodes, capacity and statuses. It uses the same connections, so the difference is gangsched's own time.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import defaultdict

import msgspec
import uvloop
from msgspec import Struct

from bench.load import IN_FLIGHT, PODS
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.results import PodBound
from gangsched.kube.client.line_splitter import LineSplitter
from gangsched.kube.client.session import ApiSession, connect
from gangsched.kube.writing.binding import bind

READY = "watching"


class _Meta(Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Pod(Struct):
    metadata: _Meta


class _Event(Struct):
    type: str
    object: _Pod


_LIST, _EVENT = msgspec.json.Decoder(_Pod), msgspec.json.Decoder(_Event)


async def count(kubeconfig: str, nodes: int, size: int) -> None:
    """Watch and bind until cancelled.

    Raises:
        RuntimeError: a binding was refused.
    """
    session = await connect(kubeconfig=kubeconfig)
    answer = await session.request("GET", PODS, params={"limit": "1"})
    version = _LIST.decode(answer.checked().body).metadata.resource_version
    complete: asyncio.Queue[_Meta] = asyncio.Queue()
    places = itertools.cycle(f"n{number}" for number in range(nodes))
    async with asyncio.TaskGroup() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.create_task(_bind(session, complete, places))
        gangs: defaultdict[str, list[_Meta]] = defaultdict(list)
        splitter = LineSplitter()
        async with session.stream(PODS, {"watch": "true", "resourceVersion": version}, silent_s=600) as pieces:
            print(READY, flush=True)
            async for piece in pieces:
                for line in splitter.feed(piece):
                    event = _EVENT.decode(line)
                    if event.type != "ADDED":
                        continue
                    members = gangs[event.object.metadata.name.rpartition("-")[0]]
                    members.append(event.object.metadata)
                    if len(members) == size:
                        for member in members:
                            complete.put_nowait(member)


async def _bind(session: ApiSession, complete: asyncio.Queue[_Meta], places: itertools.cycle[str]) -> None:
    while True:
        pod = await complete.get()
        node = next(places)
        answer = await bind(session, BindPod(pod.uid, "default", pod.name, node))
        if answer.event != PodBound(pod.uid, node):
            raise RuntimeError(f"a binding was refused: {answer}")


if __name__ == "__main__":
    uvloop.run(count(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
