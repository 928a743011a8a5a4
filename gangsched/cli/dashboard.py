"""`gangsched dashboard`: a page on this machine that shows groups and nodes with the caller's rights."""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from gangsched.cli.cluster_access import FAILED, add_cluster, add_namespace, connected, fail, run
from gangsched.cli.side_by_side import ignore

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.cli.cluster_reader import Look
    from gangsched.page.board import Board

_AGAIN = (
    "Open the address that gangsched dashboard has printed. It works in one browser: for another one, start the "
    "command again."
)

_OLD_S = 10.0
_OLD = "This page shows the state at the last visit: the cluster is being read again …"


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "dashboard",
        help="show groups and nodes as a page in the browser",
        description="Serve a page on this machine that shows the nodes and the gangs on them, what waits and why, and "
        "all groups, refreshed every few seconds until Ctrl-C. Drop a manifest on it to try it on a copy of the "
        "cluster. The page shows what gangsched top shows, with your rights, and can change nothing. The printed "
        "address works in one browser.",
        epilog="Exit status: 0 after Ctrl-C, 1 if the cluster does not answer or the port is taken, 2 for wrong "
        "usage, missing credentials or an answer that cannot be read.",
    )
    parser.add_argument("--port", type=_port, default=0, metavar="PORT", help="port on 127.0.0.1 (default: any free)")
    add_namespace(parser)
    add_cluster(parser)
    parser.set_defaults(execute=_execute, watch=True)


def _port(text: str) -> int:
    """The port number.

    Raises:
        ArgumentTypeError: the text is not a port.
    """
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 <= port < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: write a number from 0 to 65535")
    return port


def _execute(arguments: argparse.Namespace) -> int:
    right = "the right to list podgroups.gangsched.io and pods in the namespace; -n NS chooses another one"
    return run(arguments, _serve(arguments), right=right)


async def _serve(arguments: argparse.Namespace) -> int:
    from gangsched.cli.cluster_reader import look  # noqa: PLC0415 - see the package
    from gangsched.page.board import Board  # noqa: PLC0415
    from gangsched.page.listener import HOST, Listener  # noqa: PLC0415
    from gangsched.page.server import Page  # noqa: PLC0415
    from gangsched.page.what_if import WhatIf  # noqa: PLC0415

    async with connected(arguments) as session:
        # Report a refusal or a wrong argument before the page exists.
        first = await look(arguments, session, ignore)
        cluster = LiveBoard(Board(), first)
        what_if = WhatIf(lambda: cluster.seen.events, first.settings, now=time.time, lacks=cluster.lacks)
        page = Page(cluster.board, again=_AGAIN, what_if=what_if)
        listener = Listener(page)
        try:
            try:
                port = await listener.start(arguments.port)
            except OSError as error:
                return fail(arguments, f"port {arguments.port} of {HOST} cannot be used ({error.strerror})", FAILED)
            print(
                f"Open http://{HOST}:{port}/?token={page.token} in a browser of this machine; Ctrl-C ends.", flush=True
            )
            await cluster.follow(partial(look, arguments, session, ignore))
        finally:
            await listener.close()
    return 0


class LiveBoard:
    """The state that was last read (`seen`), the past since the command began, and the board that shows both."""

    def __init__(self, board: Board, first: Look) -> None:
        from gangsched.page.history import History  # noqa: PLC0415 - see the package

        self.board = board
        self.seen = first
        self._history = History()
        self._trouble = ""
        self._show()

    def lacks(self) -> str:
        """Why no decision is possible on the state that was last read; empty if one is."""
        if self._trouble:
            return self._trouble
        hidden = self.seen.overview.hidden
        return f"No decision is possible, because you may not see the whole cluster: {hidden}" if hidden else ""

    async def follow(self, look: Callable[[], Awaitable[Look]]) -> None:
        """Read the cluster repeatedly while the page is open. The page says so when its content may be out of date."""
        from gangsched.cli.cluster_reader import pause_s  # noqa: PLC0415 - see the package
        from gangsched.kube.client.errors import KubeError  # noqa: PLC0415

        took_s, read_at = 0.0, time.monotonic()
        gc.enable()
        while True:
            await asyncio.sleep(pause_s(took_s))
            if not self.board.followers:
                await self.board.followed()
                if time.monotonic() - read_at > _OLD_S:
                    self._warn(_OLD)
            began = time.monotonic()
            try:
                self.seen = await look()
                self._show()
                read_at = began
            except KubeError as error:
                self._warn(f"This page is out of date, because the cluster does not answer: {error}")
            took_s = time.monotonic() - began

    def _show(self) -> None:
        from gangsched.page.things import things  # noqa: PLC0415 - see the package

        self._trouble = ""
        overview = self.seen.overview
        past = self._history.noted(overview.groups, overview.totals, time.time())
        self.board.show(dict(chain(things(overview), past)))

    def _warn(self, trouble: str) -> None:
        """Say on the page why its content may be out of date."""
        from gangsched.page.things import HEAD, head  # noqa: PLC0415 - see the package

        self._trouble, overview = trouble, self.seen.overview
        self.board.note(HEAD, head(overview.totals, hidden=overview.hidden, trouble=trouble))
