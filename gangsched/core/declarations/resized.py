"""Gangs that were made before their workload was resized, by a controller that does not scale what it has made.

Its object says how large a gang will be that is made now. So it counts until members exist that tell of how many theirs
was made.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.podgroup import ForeignGroup


def telling(says: Sequence[Declaration]) -> Sequence[Declaration]:
    """Those declarations that tell of how many the gang was made, which count before the others; all if none does."""
    return [say for say in says if say.made_with is not None] or says


def as_made(found: ForeignGroup, says: Sequence[Declaration]) -> ForeignGroup:
    """The object with a spec for as many members as its controller has made, according to their declarations.

    A minimum that was chosen counts if it is not larger. Members to come are those that are left of this number.
    """
    made = max((say.made_with for say in says if say.made_with is not None), default=None)
    spec, facts = found.spec, found.workload
    if made is None or spec is None or facts is None:
        return found
    least = made if facts.least is None else min(facts.least, made)
    more = least - spec.min_member
    if not more:
        return found

    def resized(role: Role) -> Role:
        return role if role.template is None else replace(role, min_member=max(0, role.min_member + more))

    return replace(found, spec=replace(spec, min_member=least, roles=tuple(map(resized, spec.roles))))
