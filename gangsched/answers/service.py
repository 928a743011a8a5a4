"""Runs the answers as part of the operator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from gangsched.answers.announcement import Announcement, announce
from gangsched.answers.certificate import make_certificate
from gangsched.answers.examiner import Examiner
from gangsched.answers.gate import Gate
from gangsched.answers.server import Server
from gangsched.config.settings import Settings
from gangsched.core.objects.events import Event
from gangsched.kube.client.session import ApiSession


class Answers:
    """The server and its parts. `facts` returns the state that this replica knows, `ready` whether that is complete.

    `on_answer` is called with the HTTP status of each answer and its duration in seconds. Without `announced`, as in a
    dry run, nothing is written to the operator's pod.
    """

    def __init__(
        self,
        session: ApiSession,
        settings: Settings,
        *,
        facts: Callable[[], Sequence[Event]],
        now: Callable[[], float],
        ready: Callable[[], bool],
        on_answer: Callable[[int, float], None],
        announced: bool,
    ) -> None:
        # Separate connections, so that questions do not delay the operator's own requests.
        self._session = session.separate()
        self._port = settings.answers.port
        self._announced = announced
        self._certificate = make_certificate()
        examiner = Examiner(facts, settings_json=settings.model_dump_json(by_alias=True), now=now)
        self._server = Server(Gate(self._session), examiner, self._certificate, ready=ready, on_answer=on_answer)

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenError: the port is in use.
        """
        self._port = await self._server.start(self._port)

    async def run(self) -> None:
        """Announce the address, and answer until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._server.run())
            if self._announced:
                where = Announcement(self._port, self._certificate.fingerprint)
                tasks.create_task(announce(self._session, where))

    async def close(self) -> None:
        """Stop listening, and end all connections and processes."""
        await self._server.close()
