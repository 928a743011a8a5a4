"""The gangs of one or all namespaces, as far as the caller may see them: for `gangsched list`, `top` and `events`."""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.cli.group_reader import Reading
from gangsched.cli.untold_pods import is_told
from gangsched.core.objects.events import Event, ForeignGroupsReplaced, GroupsReplaced, PodsReplaced
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import DEFAULT_NAME, Policy
from gangsched.views.group_row import GroupRow, of_declared


def rows(reading: Reading, *, policy: Policy, now: float) -> list[GroupRow]:
    """The gangs that `cli.group_reader.read_gangs` has read, the longest-waiting first; no pods without a group."""
    listed = _listed(reading)
    if reading.forbidden:
        visible = [*map(of_declared, listed)]
    elif reading.told:
        visible = _told(reading.events, listed, policy, now)
    else:
        visible = _decided(reading.events, policy, now)
    return sorted(visible, key=lambda row: row.order)


def elsewhere(reading: Reading, shown: Sequence[GroupRow]) -> str:
    """A sentence about the PodGroups that are not `shown` because other installations have them; empty if none are."""
    keys = {row.key for row in shown}
    names = [
        group.status.scheduler or group.scheduler or DEFAULT_NAME
        for group in _listed(reading)
        if group.key not in keys and (group.status.phase or group.scheduler)
    ]
    if not names:
        return ""
    schedulers = sorted({*names})
    own = f"{len(names)} PodGroup{' belongs' if len(names) == 1 else 's belong'} to the schedulerName"
    if len(schedulers) == 1:
        return f"{own} {schedulers[0]}: --scheduler-name {schedulers[0]} lists {'it' if len(names) == 1 else 'them'}."
    return f"{own}s {', '.join(schedulers)}: --scheduler-name NAME lists those of one."


def _listed(reading: Reading) -> list[Group]:
    return [group for event in reading.events if isinstance(event, GroupsReplaced) for group in event.groups]


def _told(events: Sequence[Event], listed: Sequence[Group], policy: Policy, now: float) -> list[GroupRow]:
    """PodGroups by their statuses, if they have one. The others are few: what else was read is about them."""
    told = {group.key: of_declared(group) for group in listed if is_told(group.status, policy.scheduler_names)}
    untold = tuple(group for group in listed if group.key not in told)
    untold_events = [GroupsReplaced(untold) if isinstance(event, GroupsReplaced) else event for event in events]
    others = _decided(untold_events, policy, now) if any(map(_has_gangs, untold_events)) else []
    return [*told.values(), *(row for row in others if row.key not in told)]


def _has_gangs(event: Event) -> bool:
    match event:
        case GroupsReplaced(objects) | ForeignGroupsReplaced(_, objects) | PodsReplaced(objects):
            return bool(objects)
    return False


def _decided(events: Sequence[Event], policy: Policy, now: float) -> list[GroupRow]:
    from gangsched.views import group_rows  # noqa: PLC0415 - a fifth of a second, which statuses alone do not need
    from gangsched.views.decided_copy import decided  # noqa: PLC0415

    return group_rows.rows(decided(events, policy=policy, now=now))
