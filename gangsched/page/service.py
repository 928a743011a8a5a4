"""Runs the page as part of the operator."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Sequence

from gangsched.config.settings import Settings
from gangsched.core.machine import Machine
from gangsched.core.objects.events import Event
from gangsched.page.board import Board
from gangsched.page.history import History
from gangsched.page.listener import HOST, Listener
from gangsched.page.machine_reader import STANDBY, UNLISTED, MachineReader, keep
from gangsched.page.server import Page
from gangsched.page.things import Thing
from gangsched.page.what_if import WhatIf
from gangsched.runtime.health import ListenError

_log = logging.getLogger(__name__)

_RELOG_S = 3600.0
"""Time, in seconds, after which an unused address is logged again, because logs are rotated."""

_AGAIN = (
    "Open the address in the operator's newest log line about its page: an address works in one browser, and the next "
    "one is logged once it has been used."
)


class Service:
    """The page of this replica.

    `machine` and `facts` return its state, `ready` whether that is complete, `decides` whether the machine decides.
    `show` gets each new address of the page, which is otherwise logged for a pod.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        machine: Callable[[], Machine],
        facts: Callable[[], Sequence[Event]],
        now: Callable[[], float],
        ready: Callable[[], bool],
        decides: Callable[[], bool],
        show: Callable[[str], None] | None = None,
    ) -> None:
        self._board = Board()
        self._reader = MachineReader(machine, lambda: ("" if decides() else STANDBY) if ready() else UNLISTED)
        self._history = History()
        self._now = now
        self._show = show
        what_if = WhatIf(facts, settings, now=now, lacks=lambda: "" if ready() else UNLISTED)
        self._page = Page(self._board, again=_AGAIN, what_if=what_if, renewed=lambda _: self._tell_address())
        self._port = settings.page.port
        self._listener = Listener(self._page)
        self._relog: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen, and tell the address.

        Raises:
            ListenError: the port is in use.
        """
        try:
            self._port = await self._listener.start(self._port)
        except OSError as error:
            raise ListenError(
                f"cannot serve the page on {HOST}:{self._port} ({error.strerror or error}): choose another page.port"
            ) from error
        self._tell_address()

    async def run(self) -> None:
        """Keep the board up to date while a browser follows it, and the past, until cancelled."""
        await keep(self._board, self._look)

    async def close(self) -> None:
        """Close all connections and stop listening."""
        if self._relog is not None:
            self._relog.cancel()
        await self._listener.close()

    def _look(self) -> Iterator[Thing]:
        yield from self._reader.look()
        yield from self._history.noted(self._reader.rows(), self._reader.totals, self._now())

    def _tell_address(self) -> None:
        address = f"http://{HOST}:{self._port}/?token={self._page.token}"
        if self._show is not None:
            self._show(address)
            return
        if self._relog is not None:
            self._relog.cancel()
        self._relog = asyncio.get_running_loop().call_later(_RELOG_S, self._tell_address)
        _log.info(
            "serving the page: forward the port of this pod to the same port of your machine, and open the address",
            extra={
                "pod": socket.gethostname(),
                "port": self._port,
                "open": address,
            },
        )
