"""`gangsched dashboard`: the groups and nodes of a cluster as a page on this machine, with the caller's rights."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import TYPE_CHECKING

from gangsched.cli.access import FAILED, add_cluster, add_namespace, add_rules, connected, fail, run

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.cli.top import Sight
    from gangsched.kube.session import ApiSession
    from gangsched.page.board import Board

_HOST = "127.0.0.1"


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "dashboard",
        help="show groups and nodes as a page in the browser",
        description="Serve a page on this machine that shows the nodes, filled by gangs, what waits and why, and all "
        "groups, refreshed every few seconds until Ctrl-C. It shows what gangsched top shows, with your rights; "
        "nothing can be changed there. The printed address is good for one browser.",
        epilog="Exit status: 0 when it is ended, 1 if the cluster does not answer or the port is taken, 2 for wrong "
        "usage or missing credentials.",
    )
    parser.add_argument("--port", type=_port, default=0, metavar="PORT", help="port on 127.0.0.1 (default: any free)")
    add_namespace(parser)
    add_cluster(parser)
    add_rules(parser)
    parser.set_defaults(execute=_execute, watch=True)


def _port(text: str) -> int:
    """A port.

    Raises:
        ValueError: it is none.
    """
    port = int(text)
    if not 0 <= port < 1 << 16:
        raise ValueError
    return port


def _execute(arguments: argparse.Namespace) -> int:
    right = "the right to list podgroups.gangsched.io and pods in the namespace; -n NS chooses another one"
    return run(arguments, _serve(arguments), right=right)


async def _serve(arguments: argparse.Namespace) -> int:
    from aiohttp import web  # noqa: PLC0415 - see the package

    from gangsched.cli.top import look  # noqa: PLC0415
    from gangsched.page.board import Board  # noqa: PLC0415
    from gangsched.page.server import Page  # noqa: PLC0415

    async with connected(arguments) as session:
        board = Board()
        # What is refused or wrong is said before there is a page.
        board.show(view(await look(arguments, session, _nobody)))
        page = Page(board)
        runner = web.AppRunner(page.application(), access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, _HOST, arguments.port)
            await site.start()
            port = runner.addresses[0][1]
            print(
                f"Open http://{_HOST}:{port}/?token={page.token} in a browser of this machine; Ctrl-C ends.", flush=True
            )
            await _follow(arguments, session, board)
        except OSError as error:
            return fail(arguments, f"port {arguments.port} of {_HOST} cannot be used ({error.strerror})", FAILED)
        finally:
            await runner.cleanup()
    return 0


async def _follow(arguments: argparse.Namespace, session: ApiSession, board: Board) -> None:
    """Read the cluster again and again. While it does not answer, the page says so beside what it has shown last."""
    from gangsched.cli.top import EVERY_S, SHARE, look  # noqa: PLC0415 - see the package
    from gangsched.kube.errors import KubeError  # noqa: PLC0415

    took_s = 0.0
    while True:
        await asyncio.sleep(max(EVERY_S, SHARE * took_s))
        began = time.monotonic()
        try:
            board.show(view(await look(arguments, session, _nobody)))
        except KubeError as error:
            board.show(json.dumps(json.loads(board.newest) | {"trouble": f"The cluster does not answer: {error}"}))
        took_s = time.monotonic() - began


def view(sight: Sight) -> str:
    """What the page shows, as JSON in one line."""
    from gangsched.cli.top import as_object, summary  # noqa: PLC0415 - see the package

    return json.dumps({**as_object(sight), "summary": summary(sight), "trouble": None})


def _nobody(_: str) -> None:
    """Nobody is told what is being read: the page shows what was read."""
