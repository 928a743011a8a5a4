"""Reads groups and nodes with the caller's rights: for `gangsched top` and `dashboard`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gangsched.cli.cluster_access import namespace_of
from gangsched.cli.deciding_settings import rules
from gangsched.cli.group_reader import read, read_gangs
from gangsched.cli.leaders import read_leaders
from gangsched.cli.visible_groups import rows
from gangsched.config.settings import Settings
from gangsched.core.objects.events import Event
from gangsched.kube.client.session import ApiSession
from gangsched.views import cluster_overview
from gangsched.views.cluster_overview import Overview
from gangsched.views.decided_copy import decided

_EVERY_S = 3.0
_SHARE = 10


@dataclass(frozen=True, slots=True)
class Look:
    """Groups and nodes, the events from which a machine derives them, and the settings by which it decides."""

    overview: Overview
    events: Sequence[Event]
    settings: Settings


def pause_s(took_s: float) -> float:
    """How long to wait, in seconds, after a look that took `took_s`, to keep the load on the cluster small."""
    return max(_EVERY_S, _SHARE * took_s)


async def look(arguments: argparse.Namespace, session: ApiSession, on_progress: Callable[[str], None]) -> Look:
    """The current groups and nodes, as far as the caller may see them; `on_progress` receives what is being read.

    Raises:
        KubeError: the cluster does not answer, or the caller may see nothing.
    """
    settings = rules(arguments, await read_leaders(session)).settings
    reading = await read(session, None, settings, on_progress=on_progress)
    now = time.time()
    if reading.forbidden:
        only = namespace_of(arguments, session)
        own = await read_gangs(session, only, settings, on_progress=on_progress)
        hidden = f"only groups, without nodes, because the API server says: {reading.forbidden}"
        return Look(Overview(rows(own, policy=settings.policy(), now=now), (), hidden), own.events, settings)
    machine = decided(reading.events, policy=settings.policy(), now=now)
    # All namespaces compete for the nodes, so all are shown unless one is named.
    return Look(cluster_overview.look(machine, arguments.namespace or ""), reading.events, settings)
