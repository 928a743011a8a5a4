"""`gangsched top`: groups and nodes at a glance."""

from __future__ import annotations

import argparse
import asyncio
import gc
import shutil
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gangsched.cli.cluster_access import add_cluster, add_namespace, connected, note, run
from gangsched.cli.output import (
    JSON,
    UNWRAPPED,
    WIDE,
    YAML,
    add_output,
    ago,
    controllable,
    structured,
    table,
    width_of,
    wrapped,
)
from gangsched.cli.progress import Progress

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.views.cluster_overview import Overview
    from gangsched.views.group_row import GroupRow
    from gangsched.views.node_usage import Usage

_LINES_AROUND = 7
_HOME, _REST, _END = "\x1b[H", "\x1b[K\n", "\x1b[J"
"""Control sequences: go to the first line; clear the rest of the line and begin the next; clear the rest below."""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "top",
        help="show groups and nodes at a glance, refreshed",
        description="Show the groups of all namespaces, the longest-waiting first, and how much of each node is "
        "requested, the fullest node first. On a terminal the page is refreshed until Ctrl-C; otherwise it is printed "
        "once. It needs the rights of gangsched explain; without them it shows the groups of a namespace, as gangsched "
        "list does.",
        epilog="Exit status: 0 for success, 1 if the cluster does not answer, 2 for wrong usage, missing "
        "credentials or an answer that cannot be read.",
    )
    add_namespace(parser)
    add_cluster(parser)
    add_output(parser, JSON, YAML, WIDE)
    parser.add_argument("--once", action="store_true", help="print it once, also on a terminal")
    parser.set_defaults(execute=_execute, watch=True)


def _execute(arguments: argparse.Namespace) -> int:
    right = "the right to list podgroups.gangsched.io and pods in the namespace; -n NS chooses another one"
    return run(arguments, _show(arguments), right=right)


async def _show(arguments: argparse.Namespace) -> int:
    from gangsched.cli.cluster_reader import look, pause_s  # noqa: PLC0415 - see the package

    refreshed = controllable() and arguments.output in (None, WIDE) and not arguments.once
    if refreshed:
        gc.enable()
    async with connected(arguments) as session:
        while True:
            began = time.monotonic()
            with Progress("reading the cluster") as progress:
                overview = (await look(arguments, session, progress.say)).overview
            if not refreshed:
                return _print_once(arguments, overview)
            lines = screen(overview, width=width_of(arguments), height=shutil.get_terminal_size().lines)
            print(_HOME + _REST.join(lines) + _END, end="", flush=True)
            await asyncio.sleep(pause_s(time.monotonic() - began))


def _print_once(arguments: argparse.Namespace, overview: Overview) -> int:
    if arguments.output in (JSON, YAML):
        from gangsched.views.cluster_overview import as_object  # noqa: PLC0415 - see the package

        print(structured(arguments.output, as_object(overview)))
        return 0
    if overview.hidden:
        note(arguments, overview.hidden)
    for line in page(overview, width=width_of(arguments)):
        print(line)
    return 0


def _starts(row: GroupRow) -> str:
    """When the group will probably start, as durations from now."""
    if not row.since or row.expected is None:
        return "-"
    earliest, latest = (ago(at - time.time()) if at else "" for at in row.expected[:2])
    if earliest and latest:
        return earliest if earliest == latest else f"{earliest}-{latest}"
    return f"> {earliest}" if earliest else f"< {latest}" if latest else "-"


def screen(overview: Overview, *, width: int, height: int) -> list[str]:
    """The lines that fill a terminal of this height. A line feed after the last would scroll the first one away."""
    hidden = wrapped(overview.hidden, width, head="") if overview.hidden else []
    head = [f"{time.strftime('%H:%M:%S')}  Ctrl-C ends", *hidden]
    return [*head, *page(overview, width=width, height=height - len(head))][:height]


def page(overview: Overview, *, width: int = UNWRAPPED, height: int | None = None) -> Iterator[str]:
    """The lines; with a `height`, as many groups and nodes as fit."""
    room = max(2, height - _LINES_AROUND) if height is not None else UNWRAPPED
    for_groups = room if not overview.nodes else max(room // 2, room - len(overview.nodes))
    groups, nodes = overview.groups[:for_groups], sorted(overview.nodes, key=_fullness)
    totals = overview.totals
    yield from wrapped(totals.summary, width, head="")
    yield ""
    yield from table(
        ("GROUP", "PHASE", "MEMBERS", "BOUND", "WAITS", "STARTS", "REASON"),
        [
            (
                *(str(row.key), row.phase or "-", row.numbers, str(row.bound)),
                *(ago(time.time() - row.since) if row.since else "-", _starts(row), row.reason or "-"),
            )
            for row in groups
        ],
        width=width,
        phase=1,
    )
    yield from _more(len(overview.groups) - len(groups))
    if not nodes:
        return
    shown = nodes[: room - len(groups)]
    others = totals.others
    yield ""
    yield from table(
        ("NODE", "CPU", "MEMORY", *(name.upper() for name in others), "PODS", "GROUPS"),
        [_node(usage, others) for usage in shown],
        width=width,
    )
    yield from _more(len(nodes) - len(shown))


def _more(number: int) -> Iterator[str]:
    if number:
        yield f"and {number} more"


def _fullness(usage: Usage) -> tuple[bool, float, str]:
    from gangsched.views.node_usage import is_special  # noqa: PLC0415 - see the package

    others = [usage.share(name) for name in usage.allocatable if is_special(name)]
    return bool(usage.closed), -max(others, default=usage.share("cpu")), usage.name


def _node(usage: Usage, others: Sequence[str]) -> Sequence[str]:
    from gangsched.views.cluster_overview import MAIN  # noqa: PLC0415 - see the package

    gangs = ", ".join(f"{key} ({number})" for key, number in sorted(usage.gangs.items()))
    return (
        usage.name,
        *(f"{usage.share(name):.0%}" for name in MAIN),
        *(
            f"{usage.requested.get(name, 0)}/{usage.allocatable[name]}" if name in usage.allocatable else "-"
            for name in others
        ),
        str(usage.pods),
        "; ".join(filter(None, (usage.closed, gangs))) or "-",
    )
