"""Reads the operator's machine repeatedly while a board has followers, at a small load, and else once a minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from gangsched.core.cluster.claims import Claims
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.status.ahead import holds_up
from gangsched.page import things
from gangsched.page.board import Board
from gangsched.page.history import SAMPLE_S
from gangsched.page.things import HEAD, Thing
from gangsched.views.cluster_overview import Totals
from gangsched.views.group_row import GroupRow
from gangsched.views.group_rows import row, stated
from gangsched.views.node_usage import Usage, places, usage

EVERY_S = 0.5
_SLICE_S = 0.003
"""Longest processor time, in seconds, for which reading the machine may block the event loop."""
_SHARE = 50
"""A look is repeated after this many times the processor time that it took."""

_REFRESH_S = 60.0
UNLISTED = "This replica has not listed the whole cluster yet."
STANDBY = (
    "This replica does not lead: it shows PodGroups as their statuses say, and no groups without one; the leader's "
    "page shows all."
)
_FAULT = (
    "This page is out of date, because it could not be refreshed, which is a bug: see the operator's log. Scheduling "
    "is not affected."
)

Of = TypeVar("Of")
_NO_CLAIMS: Claims = {}


class _CachedView(NamedTuple, Generic[Of]):
    """A cached view: the values that it was made from, the view itself, and the thing that shows it."""

    of: tuple[object, ...]
    view: Of
    shown: Thing


class MachineReader:
    """The view of a machine. Unchanged parts are cached from look to look, for at most a minute.

    `machine` returns the current one: each leadership term has its own. `lacks` says what its state lacks, in a
    sentence; empty if nothing.
    """

    def __init__(self, machine: Callable[[], Machine], lacks: Callable[[], str] = str) -> None:
        self._current_machine = machine
        self._lacks = lacks
        self._machine: Machine | None = None
        self._groups: dict[GroupKey, _CachedView[GroupRow]] = {}
        self._nodes: dict[str, _CachedView[Usage]] = {}
        self.totals = Totals()
        """The totals of the last look."""
        self._refresh_at = 0.0

    def look(self) -> Iterator[Thing]:
        """Yield all things. The machine may change in between, which the next look shows."""
        machine = self._current_machine()
        # The cache expires because a pod may join another gang without any change to its node.
        if machine is not self._machine or time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + _REFRESH_S
            self._machine, self._groups, self._nodes, self.totals = machine, {}, {}, Totals()
        yield from self._look_at_groups(machine)
        yield from self._look_at_nodes(machine)
        yield HEAD, things.head(self.totals, trouble=self._lacks())

    def rows(self) -> list[GroupRow]:
        """The groups of the last look; one that has not changed is the same object as before."""
        return [cached.view for cached in self._groups.values()]

    def _look_at_groups(self, machine: Machine) -> Iterator[Thing]:
        shown: set[GroupKey] = set()
        for key in list(machine.gangs):
            gang, assessment = machine.gangs.get(key), machine.assessments.get(key)
            if gang is None or gang.plain:
                continue
            of = _inputs_of_group(gang, assessment)
            cached = self._groups.get(key)
            if cached is None or cached.of != of:
                group_row = _row(gang, assessment)
                if group_row is None:
                    continue
                if cached is not None:
                    self.totals.count_group(cached.view, -1)
                self.totals.count_group(group_row)
                cached = self._groups[key] = _CachedView(of, group_row, things.group(group_row))
            shown.add(key)
            yield cached.shown
        for key in self._groups.keys() - shown:
            self.totals.count_group(self._groups.pop(key).view, -1)

    def _look_at_nodes(self, machine: Machine) -> Iterator[Thing]:
        cluster, reserved = machine.cluster, places(machine.gangs.values())
        for name in list(cluster.nodes):
            node = cluster.nodes.get(name)
            if node is None:
                continue
            claims, places_here = cluster.on_node.get(name, _NO_CLAIMS), reserved.get(name, ())
            of = (node, *claims.values(), *places_here)
            cached = self._nodes.get(name)
            if cached is None or cached.of != of:
                if cached is not None:
                    self.totals.count_node(cached.view, -1)
                node_usage = usage(node, claims.values(), places_here, machine)
                self.totals.count_node(node_usage)
                cached = self._nodes[name] = _CachedView(of, node_usage, things.node(node_usage))
            yield cached.shown
        for name in self._nodes.keys() - cluster.nodes.keys():
            self.totals.count_node(self._nodes.pop(name).view, -1)


def _row(gang: Gang, assessment: Assessment | None) -> GroupRow | None:
    """The gang's row. Of a gang that nothing was decided about, only the status tells; None if it has none."""
    if assessment is not None:
        return row(gang, assessment)
    return stated(gang.observed.group, gang) if gang.observed.group is not None else None


def _inputs_of_group(gang: Gang, assessment: Assessment | None) -> tuple[object, ...]:
    """All values that a row depends on. A value that changes is replaced; otherwise it stays the same object."""
    if assessment is None:
        return gang.observed.group, *gang.observed.pods.values()
    return (
        gang.observed.group,
        gang.record,
        assessment.minimum,
        assessment.terms,
        assessment.want.repair,
        assessment.facts.complete,
        holds_up(gang.wait),
        gang.operations.plan,
        gang.operations.plan is not None and (gang.operations.plan.evicting_since, len(gang.operations.plan.ends)),
        *gang.observed.pods.values(),
    )


async def keep(
    board: Board, look: Callable[[], Iterator[Thing]], *, every_s: float = EVERY_S, alone_s: float = SAMPLE_S
) -> None:
    """Look repeatedly while the board has followers, and else every `alone_s` seconds, so that the past is noted.

    This ends only with a fault, which the board shows.
    """
    try:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(board.followed(), alone_s)
            spent = await _show(board, look())
            await asyncio.sleep(max(every_s, _SHARE * spent))
    except Exception:
        board.note(HEAD, things.head(None, trouble=_FAULT))
        raise


async def _show(board: Board, seen: Iterator[Thing]) -> float:
    """Show the things, letting other tasks run in between. Returns the processor time that it took, in seconds."""
    content: dict[str, bytes] = {}
    spent, turn = 0.0, time.thread_time()
    for name, thing in seen:
        content[name] = thing
        if time.thread_time() - turn >= _SLICE_S:
            spent += time.thread_time() - turn
            await asyncio.sleep(0)
            turn = time.thread_time()
    board.show(content)
    return spent + time.thread_time() - turn
