"""The fault proxy as a process of its own: `python -m tests.faults.serve`, controlled on a second port."""

from __future__ import annotations

import argparse
import asyncio
import signal

import msgspec
from aiohttp import web

from tests.faults.plan import Plan, Rates, Rule
from tests.faults.server import FaultServer


async def serve(server: FaultServer, *, port: int, control_port: int) -> None:
    """Serve on both ports until SIGTERM. Each command is a POST, its argument the body; the answer is the counts."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    async def command(request: web.Request) -> web.Response:
        body = await request.read()
        match request.match_info["command"]:
            case "calm" | "forget" | "block" | "unblock" as switch:
                getattr(server, switch)()
            case "storm":
                server.storm(msgspec.json.decode(body, type=Rates | None))
            case "next":
                server.next(msgspec.json.decode(body, type=Rule))
            case "injected":
                pass
            case other:
                raise web.HTTPNotFound(text=f"there is no command {other}")
        return web.json_response(server.injected)

    control = web.Application()
    control.router.add_post("/{command}", command)
    runner = web.AppRunner(control, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await server.start(port)
    await web.TCPSite(runner, "127.0.0.1", control_port).start()
    try:
        await stop.wait()
    finally:
        await runner.cleanup()
        await server.stop()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", required=True, help="URL of the API server")
    parser.add_argument("--ca", help="file with the CA of its certificate")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rates", default="{}", help="Rates as JSON")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--control-port", type=int, required=True)
    arguments = parser.parse_args()
    plan = Plan(seed=arguments.seed, rates=msgspec.json.decode(arguments.rates, type=Rates))
    server = FaultServer(arguments.upstream, ca=arguments.ca, plan=plan)
    asyncio.run(serve(server, port=arguments.port, control_port=arguments.control_port))


if __name__ == "__main__":
    main()
