"""Whether all that declare a group say the same: PodGroups, of gangsched and of others, and the pods themselves.

Whoever differs from another is told what differs and what to do; which of them is right nobody but their owner knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import Declaration, Keys, Role
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, GroupSpec
from gangsched.core.objects.reasons import Reason

VALUES_SHOWN = 5
"""So many values are named of which only one may be: an API object has room for so much, and a reader patience."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a gang is not tried at all."""

    reason: Reason
    message: str


def unreadable(
    gang: Gang, says: Sequence[Declaration], found: Sequence[ForeignGroup], *, members: Sequence[Pod]
) -> Hindrance | None:
    """What cannot be read in an object or of a pod, or contradicts itself on one pod."""
    for error in (gang.group.error if gang.group is not None else "", *(group.error for group in found)):
        if error:
            return Hindrance(Reason.INVALID_DECLARATION, error)
    for say in says:
        if say.error:
            return Hindrance(Reason.INVALID_DECLARATION, f"Pod {first_with(say, members)}: {say.error}")
    for say in says:
        if say.contradiction:
            return Hindrance(Reason.CONTRADICTION, f"Pod {first_with(say, members)}: {say.contradiction}")
    return None


def differently_named(says: Sequence[Declaration]) -> Hindrance | None:
    """Members that come by different dialects.

    They may be two groups that have a name in common by chance; nobody but their owner can tell.
    """
    groups = {say.source: say.keys.group for say in says}
    if len(groups) < 2:  # noqa: PLR2004 - two differ
        return None
    return Hindrance(
        Reason.CONTRADICTION,
        f"Members name the group in different ways, by {' and by '.join(groups.values())}: if they are one group, "
        "give all of them the same; if not, give the groups different names.",
    )


def disagreement(
    says: Sequence[Declaration],
    lists: Sequence[tuple[Role, ...]],
    *,
    minima: Sequence[int],
    times: Sequence[float],
) -> Hindrance | None:
    """What members of one dialect say differently."""
    if len(lists) > 1:
        where = next(say.keys.minimum for say in says if say.roles)
        return Hindrance(
            Reason.CONTRADICTION, f"Members disagree on {where}; give all members that have it the same value."
        )
    keys = says[0].keys
    for where, values in ((keys.minimum, minima), (f"{keys.time} (seconds)", times)):
        if len(values) > 1:
            return Hindrance(
                Reason.CONTRADICTION,
                f"Members disagree on {where}: {some([f'{value:.10g}' for value in values])}; give all members the "
                "same value.",
            )
    return None


def objects_differ(specs: Mapping[str, GroupSpec]) -> Hindrance | None:
    """What objects of several systems that declare the group differ in."""
    (what, first), *others = specs.items()
    for other_what, other in others:
        for field, one, another in zip(("minimum", "roles", "longest wait"), _said(first), _said(other), strict=True):
            if one and another and one != another:
                return Hindrance(
                    Reason.CONTRADICTION,
                    f"The {what} and the {other_what} of that name differ in their {field}, {some(one)} and "
                    f"{some(another)}: make them equal or delete one of them.",
                )
    return None


def _said(spec: GroupSpec) -> tuple[list[str], list[str], list[str]]:
    """What an object says of the minimum, of roles and of the longest wait; empty what it leaves open."""
    roles = sorted(f"{role.name} {role.min_member}" for role in spec.roles)
    time_s = spec.max_schedule_time_s
    return [str(spec.minimum)], roles, [] if time_s is None else [f"{time_s:.10g}s"]


def differs(
    what: str, spec: GroupSpec, keys: Keys, *, minima: Sequence[int], times: Sequence[float], roles: tuple[Role, ...]
) -> Hindrance | None:
    """What the object, which people call `what`, and the pods differ in, of which neither says two things."""
    minimum = spec.minimum if roles else spec.min_member
    if minima and minima[0] != minimum:
        return Hindrance(
            Reason.CONTRADICTION,
            f"The {what} says minMember {minimum}, the pods say {minima[0]} by {keys.minimum}: make them equal or "
            "remove the latter.",
        )
    if roles and {role.name: role.min_member for role in roles} != {role.name: role.min_member for role in spec.roles}:
        return Hindrance(
            Reason.CONTRADICTION,
            f"The {what}'s roles are not those that the pods list by {keys.minimum}: make them equal or remove the "
            "latter.",
        )
    if times and spec.max_schedule_time_s is not None and times[0] != spec.max_schedule_time_s:
        return Hindrance(
            Reason.CONTRADICTION,
            f"The {what} says maxScheduleTime {spec.max_schedule_time_s:g}s, the pods say {times[0]:g}s by "
            f"{keys.time}: make them equal or remove the latter.",
        )
    return None


def first_with(say: Declaration, members: Sequence[Pod]) -> str:
    return next(pod.name for pod in members if pod.declaration == say)


def some(values: Sequence[str]) -> str:
    return ", ".join(values[:VALUES_SHOWN]) + (", …" if len(values) > VALUES_SHOWN else "")
