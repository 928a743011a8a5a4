"""`gangsched top`: groups and nodes at a glance."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gangsched.cli.access import add_cluster, add_namespace, add_rules, connected, namespace_of, note, run
from gangsched.cli.output import (
    JSON,
    UNWRAPPED,
    WIDE,
    YAML,
    add_output,
    ago,
    columns,
    controllable,
    structured,
    table,
)
from gangsched.cli.progress import Progress

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.cli.listing import Row
    from gangsched.cli.usage import Usage
    from gangsched.kube.session import ApiSession

EVERY_S = 3.0
"""The cluster is read again after so many seconds."""
SHARE = 10
"""A reading that takes long is repeated after this many times its duration, so that it is a small load."""
_LINES_AROUND = 8
_MAIN = ("cpu", "memory")
_HOME, _REST, _END = "\x1b[H", "\x1b[K\n", "\x1b[J"


@dataclass(frozen=True, slots=True)
class Sight:
    """What is to be seen: groups, what waits longest first, and nodes; `hidden` says why there are no nodes."""

    groups: Sequence[Row]
    nodes: Sequence[Usage]
    hidden: str = ""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "top",
        help="show groups and nodes at a glance, refreshed",
        description="Show the groups of all namespaces, what waits longest first, and what of the nodes is requested, "
        "the fullest first. On a terminal the page is refreshed until Ctrl-C; otherwise it is printed once. It needs "
        "the rights of gangsched explain; without them it shows the groups of a namespace, as gangsched list does.",
        epilog="Exit status: 0 for success, 1 if the cluster does not answer, 2 for wrong usage or missing "
        "credentials.",
    )
    add_namespace(parser)
    add_cluster(parser)
    add_rules(parser)
    add_output(parser, JSON, YAML, WIDE)
    parser.set_defaults(execute=_execute, watch=True)


def _execute(arguments: argparse.Namespace) -> int:
    right = "the right to list podgroups.gangsched.io and pods in the namespace; -n NS chooses another one"
    return run(arguments, _show(arguments), right=right)


async def _show(arguments: argparse.Namespace) -> int:
    refreshed = controllable() and arguments.output in (None, WIDE)
    async with connected(arguments) as session:
        while True:
            began = time.monotonic()
            with Progress("reading the cluster") as progress:
                sight = await look(arguments, session, progress.say)
            if not refreshed:
                return _print_once(arguments, sight)
            size = shutil.get_terminal_size()
            lines = list(page(sight, width=_width(arguments), height=size.lines))
            head = f"{time.strftime('%H:%M:%S')}  Ctrl-C ends"
            print(_HOME + "".join(f"{line}{_REST}" for line in (head, *lines)) + _END, end="", flush=True)
            await asyncio.sleep(max(EVERY_S, SHARE * (time.monotonic() - began)))


def _print_once(arguments: argparse.Namespace, sight: Sight) -> int:
    if arguments.output in (JSON, YAML):
        print(structured(arguments.output, as_object(sight)))
        return 0
    if sight.hidden:
        note(arguments, sight.hidden)
    for line in page(sight, width=_width(arguments)):
        print(line)
    return 0


def _width(arguments: argparse.Namespace) -> int:
    return UNWRAPPED if arguments.output == WIDE else columns()


async def look(arguments: argparse.Namespace, session: ApiSession, told: Callable[[str], None]) -> Sight:
    """What is to be seen now with the caller's rights; `told` hears what is being read.

    Raises:
        KubeError: the cluster does not answer, or shows nothing to the caller.
    """
    from gangsched.cli.leaders import read_leaders  # noqa: PLC0415 - see the package
    from gangsched.cli.listing import rows, rows_of  # noqa: PLC0415
    from gangsched.cli.live import read, read_gangs  # noqa: PLC0415
    from gangsched.cli.rules import rules  # noqa: PLC0415
    from gangsched.cli.usage import usages  # noqa: PLC0415
    from gangsched.views.trial import decided  # noqa: PLC0415

    settings = rules(arguments, await read_leaders(session)).settings
    reading = await read(session, None, settings, told=told)
    now = time.time()
    if reading.forbidden:
        only = namespace_of(arguments, session)
        own = await read_gangs(session, only, settings, told=told)
        hidden = f"only groups, without nodes, because the API server says: {reading.forbidden}"
        return Sight(rows(own, policy=settings.policy(), now=now), (), hidden)
    machine = decided(reading.events, policy=settings.policy(), now=now)
    # All namespaces compete for the nodes: they are shown unless one is named.
    only = arguments.namespace or ""
    return Sight([row for row in rows_of(machine) if only in ("", row.key.namespace)], usages(reading.events, machine))


def page(sight: Sight, *, width: int = UNWRAPPED, height: int | None = None) -> Iterator[str]:
    """The lines; with a `height`, as many groups and nodes as fit."""
    room = max(4, height - _LINES_AROUND) if height is not None else UNWRAPPED
    for_groups = room if not sight.nodes else max(room // 2, room - len(sight.nodes))
    groups, nodes = sight.groups[:for_groups], sorted(sight.nodes, key=_fullness)
    yield summary(sight)
    yield ""
    yield from table(
        ("GROUP", "PHASE", "MEMBERS", "BOUND", "WAITS", "REASON"),
        [
            (
                *(str(row.key), row.phase or "-", f"{row.members}/{row.minimum}", str(row.bound)),
                *(ago(time.time() - row.since) if row.since else "-", row.reason or "-"),
            )
            for row in groups
        ],
        width=width,
        phase=1,
    )
    yield from _more(len(sight.groups) - len(groups))
    if not nodes:
        return
    shown = nodes[: room - len(groups)]
    others = _others(sight)
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
    others = [usage.share(name) for name in usage.allocatable if _is_special(name)]
    return bool(usage.closed), -max(others, default=usage.share("cpu")), usage.name


def _is_special(resource: str) -> bool:
    """Whether it is an extended resource, such as a GPU, which decides more than cpu and memory do."""
    return "/" in resource


def _others(sight: Sight) -> list[str]:
    """The two extended resources that most nodes have."""
    having = Counter(name for usage in sight.nodes for name in usage.allocatable if _is_special(name))
    return [name for name, _ in having.most_common(2)]


def _node(usage: Usage, others: Sequence[str]) -> Sequence[str]:
    gangs = ", ".join(f"{key} ({number})" for key, number in sorted(usage.gangs.items()))
    return (
        usage.name,
        *(f"{usage.share(name):.0%}" for name in _MAIN),
        *(
            f"{usage.requested.get(name, 0)}/{usage.allocatable[name]}" if name in usage.allocatable else "-"
            for name in others
        ),
        str(usage.pods),
        "; ".join(filter(None, (usage.closed, gangs))) or "-",
    )


def summary(sight: Sight) -> str:
    """How many groups and nodes there are, and what of the nodes is requested, in one line."""
    from gangsched.cli.usage import share, total  # noqa: PLC0415 - see the package
    from gangsched.core.objects.wording import number_of  # noqa: PLC0415

    waiting = sum(bool(row.since) for row in sight.groups)
    parts = [f"{number_of(len(sight.groups), 'group')}, {waiting} waiting"]
    if sight.nodes:
        closed = sum(bool(usage.closed) for usage in sight.nodes)
        parts.append(number_of(len(sight.nodes), "node") + (f", {closed} closed" if closed else ""))
        allocatable, requested = total(sight.nodes)
        parts += [
            f"{name.rpartition('/')[2]} {share(requested[name], allocatable[name]):.0%}"
            for name in (*_MAIN, *_others(sight))
            if name in allocatable
        ]
    return " · ".join(parts)


def as_object(sight: Sight) -> dict[str, object]:
    """The same for a program."""
    from gangsched.cli.listing import as_object as row_as_object  # noqa: PLC0415 - see the package
    from gangsched.core.objects.quantity import format_amount  # noqa: PLC0415

    return {
        "groups": [row_as_object(row) for row in sight.groups],
        "nodes": [
            {
                "name": usage.name,
                "closed": usage.closed or None,
                "allocatable": {name: format_amount(name, number) for name, number in usage.allocatable.items()},
                "requested": {name: format_amount(name, number) for name, number in usage.requested.items()},
                "shares": {name: round(usage.share(name), 4) for name in usage.allocatable},
                "pods": usage.pods,
                "groups": [
                    {"namespace": key.namespace, "name": key.name, "members": number}
                    for key, number in sorted(usage.gangs.items())
                ],
            }
            for usage in sight.nodes
        ],
        "hidden": sight.hidden or None,
    }
