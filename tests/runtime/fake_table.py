"""The table of effects without an API server: lanes, keys and retries are real, the test supplies the senders."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

from gangsched.core.objects.effects import Effect
from gangsched.core.objects.events import Event
from gangsched.core.objects.results import BindRefused, EvictionRefused, OwnerSeen, PodBound, PodEvicted
from gangsched.kube.client.session import ApiSession
from gangsched.kube.writing.volcano_phases import Rival
from gangsched.kube.writing.write_results import Outcome, WriteResult, refused
from gangsched.runtime.effect_table import table
from gangsched.runtime.write import Job, Table, Write

REAL = table(cast("ApiSession", None), instance="", now=lambda: 0.0, rival=cast("Rival", None))


async def _waits(_: Effect) -> None:
    """A look-up that finds that an unanswered write has not happened."""


def table_of(
    send: Callable[[Any], Awaitable[WriteResult]], outcome: Callable[[Any], Awaitable[Event | None]] = _waits
) -> Table:
    """The real table with these functions to send all writes and to look up the unanswered ones."""
    return {
        kind: replace(row, send=send, outcome=row.outcome and outcome) if isinstance(row, Write) else row
        for kind, row in REAL.items()
    }


def job(effect: Effect, since: float = 0.0) -> Job:
    row = REAL[type(effect)]
    assert isinstance(row, Write)
    return row.job(effect, since)


def answer_with(event: PodBound | BindRefused | PodEvicted | EvictionRefused | OwnerSeen) -> WriteResult:
    """Answer as the senders of these effects do."""
    if isinstance(event, BindRefused | EvictionRefused):
        return refused(event)
    done = {PodBound: Outcome.BOUND, PodEvicted: Outcome.EVICTED, OwnerSeen: Outcome.SEEN}
    return WriteResult(done[type(event)], event)
