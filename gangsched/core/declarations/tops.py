"""What a workload's object says beside the object above it, whose controller has made it, such as a TrainJob's JobSet.

The size is its own. Annotations of the object above come before its own, because they are the ones that people write:
controllers copy them at most once. It is also idle while the object above is.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gangsched.core.objects.podgroup import ForeignGroup


def below(found: ForeignGroup, top: ForeignGroup) -> ForeignGroup:
    """What the object says, given what the one above says. Neither minimum is in its spec yet."""
    own, above = found.workload, top.workload
    if own is None or above is None:
        return found
    facts = replace(
        own,
        gang=own.gang if above.gang is None else above.gang,
        least=own.least if above.least is None else above.least,
        idle=own.idle or above.idle,
    )
    error = top.error or found.error
    return with_minimum(replace(found, workload=facts, error=error, spec=None if error else found.spec))


def with_minimum(found: ForeignGroup) -> ForeignGroup:
    """The object with a spec of the minimum that an annotation says, of whatever roles; without one as it is."""
    least = found.workload.least if found.workload is not None else None
    if least is None or found.spec is None:
        return found
    spec = found.spec
    late = {role.name: role for role in spec.roles if role.template is not None}
    shares = shared(least, spec.min_member, {name: role.min_member for name, role in late.items()})
    roles = tuple(replace(late[name], min_member=number) for name, number in shares.items())
    return replace(found, spec=replace(spec, min_member=least, roles=roles))


def shared(least: int, size: int, late: Mapping[str, int]) -> dict[str, int]:
    """What a minimum asks of roles whose members are created only later, in their order, by name; of a gang of `size`.

    It is what the minimum asks for beyond the members that are created at once. Roles of which it asks none are left
    out.
    """
    left = least - (size - sum(late.values()))
    asked: dict[str, int] = {}
    for name, number in late.items():
        if share := max(0, min(left, number)):
            asked[name] = share
            left -= share
    return asked
