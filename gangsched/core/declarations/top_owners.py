"""Combines a workload's object with the object above it, whose controller created it, such as a TrainJob's JobSet.

The size is the object's own. Annotations of the object above take precedence, because those are the ones that people
write: controllers copy them at most once. The object also counts as idle while the object above is.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gangsched.core.objects.podgroup import ForeignGroup


def below(group: ForeignGroup, top: ForeignGroup) -> ForeignGroup:
    """What the object declares, given what the one above declares.

    Neither's minimum has been applied to its spec yet.
    """
    own, above = group.workload, top.workload
    if own is None or above is None:
        return group
    facts = replace(
        own,
        gang=own.gang if above.gang is None else above.gang,
        least=own.least if above.least is None else above.least,
        idle=own.idle or above.idle,
    )
    error = top.error or group.error
    return with_minimum(replace(group, workload=facts, error=error, spec=None if error else group.spec))


def with_minimum(group: ForeignGroup) -> ForeignGroup:
    """The object with the minimum that an annotation sets, applied to its spec; unchanged without one."""
    least = group.workload.least if group.workload is not None else None
    if least is None or group.spec is None:
        return group
    spec = group.spec
    late = {role.name: role for role in spec.roles if role.template is not None}
    shares = shared(least, spec.min_member, {name: role.min_member for name, role in late.items()})
    roles = tuple(replace(late[name], min_member=number) for name, number in shares.items())
    return replace(group, spec=replace(spec, min_member=least, roles=roles))


def shared(least: int, size: int, late: Mapping[str, int]) -> dict[str, int]:
    """Distribute a minimum over roles whose members are created only later, by name and in order; `size` is the gang's.

    They get what the minimum asks for beyond the members that are created at once. Roles that get nothing are left out.
    """
    left = least - (size - sum(late.values()))
    asked: dict[str, int] = {}
    for name, number in late.items():
        if share := max(0, min(left, number)):
            asked[name] = share
            left -= share
    return asked
