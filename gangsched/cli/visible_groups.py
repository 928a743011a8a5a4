"""The gangs of one or all namespaces, as far as the caller may see them: for `gangsched list`, `top` and `events`."""

from __future__ import annotations

from gangsched.cli.group_reader import Reading
from gangsched.core.objects.events import GroupsReplaced
from gangsched.core.objects.policy import Policy
from gangsched.views import group_rows
from gangsched.views.decided_copy import decided
from gangsched.views.group_rows import GroupRow, of_declared


def rows(reading: Reading, *, policy: Policy, now: float) -> list[GroupRow]:
    """The gangs that `cli.live.read_gangs` has read, the longest-waiting first. Pods without a group are left out."""
    if reading.forbidden:
        listed = next((event.groups for event in reading.events if isinstance(event, GroupsReplaced)), ())
        return sorted(map(of_declared, listed), key=lambda row: row.order)
    return group_rows.rows(decided(reading.events, policy=policy, now=now))
