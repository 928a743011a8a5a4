"""The answers to probes: whether the process is alive, whether it is ready, and its role."""

from __future__ import annotations

from asyncio import Event

from gangsched.core.objects.wording import first_named
from gangsched.kube.client.contact import Contact
from gangsched.runtime.alone import Alone
from gangsched.runtime.engine import Engine
from gangsched.runtime.leadership import Leadership
from gangsched.runtime.watches import Watches

_SILENT_S = 30.0
_MOST_NAMED = 10
"""Largest number of objects that one note names."""


class Readiness:
    """Evaluated at each probe. `stop` is set during shutdown."""

    def __init__(
        self,
        engine: Engine,
        contact: Contact,
        *,
        watches: Watches,
        mandate: Leadership | Alone,
        stop: Event,
        dry_run: bool,
    ) -> None:
        self._engine = engine
        self._contact = contact
        self._watches = watches
        self._mandate = mandate
        self._stop = stop
        self._dry_run = dry_run

    def why_not_alive(self) -> list[str]:
        """Problems that only a restart of the process fixes."""
        silent_s = self._engine.silent_s()
        return [f"the engine has been stuck for {silent_s:.0f} s"] if silent_s > _SILENT_S else []

    def why_not_ready(self) -> list[str]:
        """Problems that keep this replica from leading or standing by."""
        if self._stop.is_set():
            return ["shutting down"]
        problems = [*self._contact.problems(), *self._watches.problems()]
        if self._mandate.problem:
            problems.append(self._mandate.problem)
        if not problems and not self._engine.synced and not self._mandate.standby:
            problems.append("this replica is neither leader nor standby yet: its first scheduling cycle has not ended")
        rivals = self._engine.rivals_problem()
        return [*problems, rivals] if rivals else problems

    def notes(self) -> list[str]:
        """What is wrong although this replica may lead: objects that do not count because of a bug."""
        set_aside = self._engine.set_aside()
        if not set_aside:
            return []
        named = first_named(set_aside, _MOST_NAMED)
        return [f"set aside until they change, because of a bug that the log shows: {named}"]

    def role(self) -> str:
        """The role of this replica."""
        return "dry run" if self._dry_run else self._mandate.role(decides=self._engine.synced)
