"""`gangsched events`: the Events of a group and its members, in chronological order."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from gangsched.cli.cluster_access import (
    Unanswered,
    add_cluster,
    add_namespace,
    connected,
    named,
    note,
    run,
    split_name,
)
from gangsched.cli.completion import complete_groups
from gangsched.cli.output import (
    JSON,
    NAME,
    WIDE,
    YAML,
    add_output,
    add_watch,
    ago,
    structured,
    table,
    width_of,
)
from gangsched.cli.progress import Progress
from gangsched.kube.client.paths import quoted

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.cli.watch_option import Item
    from gangsched.core.objects.declaration import GroupKey
    from gangsched.kube.client.session import ApiSession

Event = dict[str, Any]

_HEADS = ("LAST", "TYPE", "REASON", "OBJECT", "MESSAGE")
_API = "/apis/events.k8s.io/v1"


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "events",
        help="show the Events of a group and its members, in chronological order",
        description="Show the Events of a group and of its members, from all sources, in chronological order. It needs "
        "the right to list Events in the namespace, and for those of the members the right to list pods.",
        epilog="Exit status: 0 for success, also if there are no Events; 1 if there is no such group and no Event of "
        "one, or the cluster does not answer, 2 for wrong usage, missing credentials or an answer that cannot be read.",
    )
    group = parser.add_argument("group", metavar="[NS/]NAME", help="the group")
    group.completer = complete_groups  # type: ignore[attr-defined] # argcomplete looks for it there
    add_namespace(parser, everywhere=False)
    add_cluster(parser)
    add_output(parser, JSON, YAML, WIDE, NAME)
    add_watch(parser)
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    return run(arguments, _print_events(arguments), right="the right to list events.events.k8s.io in the namespace")


async def _print_events(arguments: argparse.Namespace) -> int:
    split_name(arguments.group)
    async with connected(arguments) as session:
        return await _show(arguments, session)


async def _show(arguments: argparse.Namespace, session: ApiSession) -> int:
    from gangsched.cli.watch_option import follow  # noqa: PLC0415 - see the package

    key = named(arguments, arguments.group, session)
    membership, events = await _read(arguments, session, key)
    if membership.why_unknown and not events:
        raise Unanswered(membership.why_unknown)
    if membership.members is None:
        note(arguments, "only Events of the PodGroup, because you may not list its members: request to list pods")
    if arguments.watch:
        first = iter([events])

        async def look() -> Sequence[Item]:
            latest = next(first, None)
            if latest is None:
                latest = (await _read(arguments, session, key))[1]
            texts = _texts(arguments, latest, headed=False)
            return [(_name(event), _last(event), text) for event, text in zip(latest, texts, strict=True)]

        await follow(arguments, look)
    if arguments.output in (JSON, YAML):
        print(structured(arguments.output, {"apiVersion": "v1", "kind": "List", "items": events}))
    elif not events and arguments.output != NAME:
        note(arguments, f"No Events of {key} and its members; the API server keeps them for an hour by default.")
    else:
        for text in _texts(arguments, events, headed=True):
            print(text)
    return 0


async def _read(arguments: argparse.Namespace, session: ApiSession, key: GroupKey) -> tuple[_Membership, list[Event]]:
    with Progress("reading Events"):
        membership = await _find_members(arguments, session, key)
        return membership, await _events(session, key, membership.members or ())


class _Membership(NamedTuple):
    """The names of the pods that belong to the group now; None if the caller may not see them.

    `why_unknown` says that there is no such group; empty if there is one, or if that cannot be seen.
    """

    members: Collection[str] | None
    why_unknown: str = ""


async def _find_members(arguments: argparse.Namespace, session: ApiSession, key: GroupKey) -> _Membership:
    from gangsched.cli.deciding_settings import rules  # noqa: PLC0415
    from gangsched.cli.group_reader import read_gangs, read_members  # noqa: PLC0415
    from gangsched.cli.leaders import read_leaders  # noqa: PLC0415 - see the package
    from gangsched.cli.unknown_group import is_there, why_unknown  # noqa: PLC0415
    from gangsched.cli.visible_groups import rows  # noqa: PLC0415
    from gangsched.kube.client.errors import ApiError  # noqa: PLC0415

    leaders = await read_leaders(session)
    settings = rules(arguments, leaders).settings
    try:
        if leaders.tell(settings, key.namespace):
            names = await read_members(session, key, settings.scheduler_names)
            if names is not None:
                return _Membership(names)
        reading = await read_gangs(session, key.namespace, settings)
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return _Membership(None)
    visible = rows(reading, policy=settings.policy(), now=time.time())
    row = next((row for row in visible if row.key[:2] == key[:2]), None)
    is_known = row is not None or is_there(key, reading, settings.scheduler_names)
    missing = "" if is_known else why_unknown(key, reading, settings.scheduler_names)
    return _Membership(None if reading.forbidden else row.pods if row is not None else (), missing)


async def _events(session: ApiSession, key: GroupKey, members: Collection[str]) -> list[Event]:
    from gangsched.kube.client.pages import objects, pages  # noqa: PLC0415

    path = f"{_API}/namespaces/{quoted(key.namespace)}/events"
    events = [
        event
        async for page in pages(session, path, "events", resumes=True)
        for event in objects(page, "events")
        if _concerns(event, key.name, members)
    ]
    return sorted(events, key=lambda event: (_last(event), _name(event)))


def _concerns(event: Event, group: str, members: Collection[str]) -> bool:
    about = event.get("regarding") or {}
    kind, name = about.get("kind"), about.get("name")
    return (kind == "PodGroup" and name == group) or (kind == "Pod" and (name in members or name == group))


def _last(event: Event) -> str:
    """When the Event was last observed, in RFC 3339. Such times, all in UTC, sort as text."""
    series: Mapping[str, Any] = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("deprecatedLastTimestamp"), event.get("eventTime"))
    created = (event.get("metadata") or {}).get("creationTimestamp")
    return str(next(filter(None, (*times, created)), ""))


def _name(event: Event) -> str:
    return str((event.get("metadata") or {}).get("name", ""))


def _texts(arguments: argparse.Namespace, events: Sequence[Event], *, headed: bool) -> list[str]:
    if arguments.output in (JSON, YAML):
        return [structured(arguments.output, event, many=True) for event in events]
    if arguments.output == NAME:
        return [f"event.events.k8s.io/{_name(event)}" for event in events]
    return list(table(_HEADS, map(_cells, events), width=width_of(arguments), headed=headed))


def _cells(event: Event) -> Sequence[str]:
    from gangsched.api.times import parse_time  # noqa: PLC0415 - see the package

    about, count = event.get("regarding") or {}, (event.get("series") or {}).get("count")
    number = count or event.get("deprecatedCount") or 1
    try:
        last = ago(time.time() - parse_time(_last(event)))
    except ValueError:
        last = "-"
    return (
        f"{last} (×{number})" if number > 1 else last,
        str(event.get("type", "")),
        str(event.get("reason", "")),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        str(event.get("note", "")),
    )
