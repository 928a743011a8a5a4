"""Looks at groups and nodes with the caller's rights: for `gangsched top` and `dashboard`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gangsched.cli.access import namespace_of
from gangsched.cli.leaders import read_leaders
from gangsched.cli.listing import rows
from gangsched.cli.live import read, read_gangs
from gangsched.cli.rules import rules
from gangsched.config.settings import Settings
from gangsched.core.objects.events import Event
from gangsched.kube.session import ApiSession
from gangsched.views import sight
from gangsched.views.sight import Sight
from gangsched.views.trial import decided

_EVERY_S = 3.0
_SHARE = 10


@dataclass(frozen=True, slots=True)
class Look:
    """What is to be seen, the events that tell a machine the same, and the settings by which it decides."""

    sight: Sight
    events: Sequence[Event]
    settings: Settings


def pause_s(took_s: float) -> float:
    """For how long to wait after a look that took so long, so that looking is a small load on the cluster."""
    return max(_EVERY_S, _SHARE * took_s)


async def look(arguments: argparse.Namespace, session: ApiSession, told: Callable[[str], None]) -> Look:
    """What is to be seen now with the caller's rights; `told` hears what is being read.

    Raises:
        KubeError: the cluster does not answer, or shows nothing to the caller.
    """
    settings = rules(arguments, await read_leaders(session)).settings
    reading = await read(session, None, settings, told=told)
    now = time.time()
    if reading.forbidden:
        only = namespace_of(arguments, session)
        own = await read_gangs(session, only, settings, told=told)
        hidden = f"only groups, without nodes, because the API server says: {reading.forbidden}"
        return Look(Sight(rows(own, policy=settings.policy(), now=now), (), hidden), own.events, settings)
    machine = decided(reading.events, policy=settings.policy(), now=now)
    # All namespaces compete for the nodes: they are shown unless one is named.
    return Look(sight.look(machine, arguments.namespace or ""), reading.events, settings)
