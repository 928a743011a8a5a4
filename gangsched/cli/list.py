"""`gangsched list`: the gangs of a namespace, the longest-waiting first."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from gangsched.cli.cluster_access import (
    add_cluster,
    add_namespace,
    connected,
    namespace_of,
    note,
    run,
)
from gangsched.cli.output import (
    JSON,
    NAME,
    UNWRAPPED,
    WIDE,
    YAML,
    add_output,
    add_watch,
    ago,
    columns,
    structured,
    table,
)
from gangsched.cli.progress import Progress
from gangsched.cli.side_by_side import side_by_side, unless_error

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.cli.leaders import Leaders
    from gangsched.cli.watch_option import Item
    from gangsched.core.objects.declaration import GroupKey
    from gangsched.kube.client.session import ApiSession
    from gangsched.views.group_row import GroupRow

_HEADS = ("NAME", "PHASE", "MEMBERS", "BOUND", "WAITS", "REASON")


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "list",
        help="list groups, the longest-waiting first",
        description="List the groups of the namespace, the longest-waiting first: PodGroups, and groups that only "
        "their pods or workloads declare. MEMBERS says how many of the needed members exist, BOUND how many have a "
        "node, WAITS how long the group has waited. gangsched explain NAME says why. Where an operator leads, "
        "PodGroups are shown as their statuses say. It needs the right to list PodGroups, and for groups without one "
        "and current numbers the right to list pods.",
        epilog="Exit status: 0 for success, 1 if the cluster does not answer, 2 for wrong usage, missing "
        "credentials or an answer that cannot be read.",
    )
    add_namespace(parser)
    add_cluster(parser)
    add_output(parser, JSON, YAML, WIDE, NAME)
    add_watch(parser)
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    place = (
        "all namespaces; -n NS chooses one" if arguments.all_namespaces else "the namespace; -n NS chooses another one"
    )
    right = f"the right to list podgroups.gangsched.io and pods in {place}"
    return run(arguments, _list(arguments), right=right)


async def _list(arguments: argparse.Namespace) -> int:
    from gangsched.cli.watch_option import follow  # noqa: PLC0415 - see the package
    from gangsched.views.group_row import as_object  # noqa: PLC0415

    async with connected(arguments) as session:
        if arguments.watch:
            heads = True
            previous: dict[GroupKey, GroupRow] = {}

            async def look() -> Sequence[Item]:
                nonlocal heads, previous
                latest = await _rows(arguments, session, quiet=not heads)
                current = {row.key: row for row in latest}
                gone = [_gone(row) for key, row in previous.items() if key not in current]
                previous = current
                shown = _items(arguments, [*latest, *gone], headed=heads)
                heads = heads and not latest
                return shown

            await follow(arguments, look)
        rows = await _rows(arguments, session, quiet=False)
        if arguments.output in (JSON, YAML):
            print(structured(arguments.output, {"groups": list(map(as_object, rows))}))
        elif not rows and arguments.output != NAME:
            only = namespace_of(arguments, session)
            note(arguments, f"No groups in namespace {only}; -A lists all." if only else "No groups.")
        else:
            for _, _, text in _items(arguments, rows, headed=True):
                print(text)
    return 0


async def _rows(arguments: argparse.Namespace, session: ApiSession, *, quiet: bool) -> list[GroupRow]:
    """The groups. Nothing waits for what it does not need: modules are imported while answers are on their way."""
    from gangsched.cli.group_pages import read_pages  # noqa: PLC0415 - see the package

    with Progress("reading groups") as progress:
        only = namespace_of(arguments, session)
        _check_file(arguments)
        # Who leads is told first, so what has failed does not depend on which answer came first.
        leaders, pages = map(unless_error, await side_by_side(_leaders(session), read_pages(session, only)))
        from gangsched.cli.deciding_settings import rules  # noqa: PLC0415
        from gangsched.cli.untold_pods import ask_untold  # noqa: PLC0415

        settings = rules(arguments, leaders).settings
        # A document has each group's pods. Else what the operator has written is enough, where one leads.
        told = arguments.output not in (JSON, YAML) and leaders.tell(settings, only)
        untold = ask_untold(session, pages, only, settings.scheduler_names) if told else None
        try:
            await asyncio.to_thread(import_module, "gangsched.cli.visible_groups")
            from gangsched.cli.group_reader import read_gangs  # noqa: PLC0415
            from gangsched.cli.visible_groups import elsewhere, rows  # noqa: PLC0415

            reading = await read_gangs(session, only, settings, pages=pages, untold=untold, on_progress=progress.say)
        finally:
            if untold is not None:
                await untold.drop()
        visible = rows(reading, policy=settings.policy(), now=time.time())
    if reading.forbidden and not quiet:
        note(arguments, f"only the status of PodGroups, because the API server says: {reading.forbidden}")
    if not quiet and (others := elsewhere(reading, visible)):
        note(arguments, others)
    return visible


def _check_file(arguments: argparse.Namespace) -> None:
    """Tell of a mistake in the caller's own file before anything of the cluster."""
    if arguments.config is not None:
        from gangsched.cli.deciding_settings import NO_LEADERS, rules  # noqa: PLC0415 - see the package

        rules(arguments, NO_LEADERS)


async def _leaders(session: ApiSession) -> Leaders:
    await asyncio.to_thread(import_module, "gangsched.cli.deciding_settings")
    from gangsched.cli.leaders import read_leaders  # noqa: PLC0415 - see the package

    return await read_leaders(session)


def _gone(row: GroupRow) -> GroupRow:
    """The row that shows that a group and its pods are gone."""
    return replace(row, phase="Gone", reason="", message="", members=0, bound=0, since=0.0, roster=(), asks=(), turn=())


def _items(arguments: argparse.Namespace, rows: Sequence[GroupRow], *, headed: bool) -> list[Item]:
    """A line for each row. A longer wait alone does not count as a change."""
    from gangsched.views.group_row import as_object  # noqa: PLC0415 - see the package

    states = [(row.phase, row.reason, row.members, row.minimum, row.bound) for row in rows]
    if arguments.output in (JSON, YAML):
        texts = [structured(arguments.output, as_object(row), many=True) for row in rows]
    elif arguments.output == NAME:
        texts = [f"{row.resource}/{row.key.name}" for row in rows]
    else:
        texts = _lines(arguments, rows, headed=headed)
    return [(row.key, state, text) for row, state, text in zip(rows, states, texts, strict=True)]


def _lines(arguments: argparse.Namespace, rows: Sequence[GroupRow], *, headed: bool) -> list[str]:
    """The lines of the table; if `headed`, the first one begins with the line of heads."""
    everywhere, wide, now = arguments.all_namespaces, arguments.output == WIDE, time.time()
    heads = [*(["NAMESPACE"] if everywhere else []), *_HEADS, *(["AGE", "DECLARED", "MESSAGE"] if wide else [])]
    cells = [
        [
            *([row.key.namespace] if everywhere else []),
            *(row.key.name, row.phase or "-", row.numbers, str(row.bound)),
            *(ago(now - row.since) if row.since else "-", row.reason or "-"),
            *([ago(now - row.created) if row.created else "-", row.source or "-", row.message] if wide else []),
        ]
        for row in rows
    ]
    head, *lines = table(heads, cells, width=UNWRAPPED if wide else columns(), phase=heads.index("PHASE"))
    return [f"{head}\n{line}" if headed and not number else line for number, line in enumerate(lines)]
