"""`python -m bench [NODES GANGS SIZE]`: the backlog scenario, one JSON line.

Every pod exists before anything is bound. First the pods are bound by a client that plans nothing (what the API server
takes), then they are made anew and gangsched is started. pods/s runs from the first binding seen to the last.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence

import uvloop

from bench.load import Load
from gangsched.kube.session import connect
from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.operator import Operator

DEFAULT = (500, 100, 20)


def main(arguments: Sequence[str]) -> None:
    """Run the scenario and print its line."""
    nodes, gangs, size = map(int, arguments) if arguments else DEFAULT
    with ControlPlane(
        controllers=False,
        kwok=False,
        not_ready_taint=False,
        extra_apiserver_args=("--enable-priority-and-fairness=false",),
    ) as control_plane:
        crds.install(control_plane)
        print(json.dumps(uvloop.run(_backlog(control_plane, nodes, gangs=gangs, size=size)), ensure_ascii=False))


async def _backlog(control_plane: ControlPlane, nodes: int, *, gangs: int, size: int) -> dict[str, object]:
    session = await connect(kubeconfig=str(control_plane.kubeconfig))
    try:
        load = Load(session)
        await load.add_nodes(nodes)
        await load.add_gangs(gangs, size)
        bare = await load.bind_bare(nodes)
        await load.delete_pods()
        await load.add_gangs(gangs, size)
        async with load.watch_bindings() as seen:
            began = time.monotonic()
            operator = Operator(control_plane)
            await asyncio.to_thread(operator.start)
            await seen.wait_for(gangs * size)
            status = await asyncio.to_thread(operator.stop)
        gangsched = gangs * size / (seen.last - seen.first)
        return {
            "scenario": f"backlog {nodes} × {gangs} × {size}",
            "bare_pods_per_s": round(bare),
            "gangsched_pods_per_s": round(gangsched),
            "ratio": round(gangsched / bare, 2),
            "first_binding_after_s": round(seen.first - began, 2),
            "whole_s": round(seen.last - began, 2),
            "exit_status": status,
        }
    finally:
        await session.close()


if __name__ == "__main__":
    main(sys.argv[1:])
