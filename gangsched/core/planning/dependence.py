"""Determines how members depend on each other, through constraints that consider the pods on other nodes.

Beyond `MOST_PAIRS` pairs of classes the pairs are not examined; the classes then count as dependent on each other.
"""

from __future__ import annotations

from collections.abc import Collection

from gangsched.core.constraints.inter_pod_affinity import AffinityPlan
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.shape import Shape
from gangsched.core.planning import budget as units
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass

MOST_PAIRS = 4096
"""Limit for the number of pairs of classes that are examined for one question."""


def expect(snapshot: Snapshot, shapes: Collection[Shape]) -> None:
    """Prepare the snapshot for members of these shapes: their terms about other pods count from now on."""
    before = snapshot.cluster.tallies.examined
    for plan in snapshot.having["expect"]:
        plan.expect(shapes)
    snapshot.budget.charge(units.MATCH * (snapshot.cluster.tallies.examined - before))


def couples(snapshot: Snapshot, member: MemberClass, other: MemberClass) -> bool:
    """Whether placing a member on one row changes which other rows take the `other`, which may be of the same class.

    Members of a class that is coupled to itself are placed one by one.
    """
    return depends(member) and any(plan.couples(member, other) for plan in snapshot.having["couples"])


def any_couples(snapshot: Snapshot, classes: Collection[MemberClass]) -> bool:
    """Whether placing a member of one of these classes changes which other rows take a member of another."""
    dependent = _dependent(classes)
    if len(dependent) ** 2 > MOST_PAIRS:
        return True
    return any(couples(snapshot, member, other) for member in dependent for other in dependent)


def unsure(snapshot: Snapshot, classes: Collection[MemberClass]) -> bool:
    """Whether there may be more room for one of these classes than constraints have found."""
    return any(plan.unsure(member) for plan in snapshot.having["unsure"] for member in classes)


def helped(snapshot: Snapshot, classes: Collection[MemberClass]) -> set[MemberClass]:
    """The classes for which a placed member of one of these classes may open rows."""
    dependent = _dependent(classes)
    if len(dependent) ** 2 > MOST_PAIRS:
        return set(dependent)
    helping = snapshot.having["helps"] if dependent else ()
    return {member for member in dependent if any(plan.helps(other, member) for plan in helping for other in dependent)}


def hoped(snapshot: Snapshot, member: MemberClass, others: Collection[MemberClass]) -> IntArray:
    """Like `Snapshot.caps`, but assumes that members of the others have opened every row that they may open."""
    if not depends(member):
        return snapshot.caps(member)
    dependent = _dependent(others)
    if len(dependent) ** 2 > MOST_PAIRS:
        masking = [plan for plan in snapshot.masking if "helps" not in plan.overrides]
    else:
        masking = [plan for plan in snapshot.masking if not any(plan.helps(other, member) for other in dependent)]
    return snapshot.caps(member) if len(masking) == len(snapshot.masking) else snapshot.caps_by(member, masking)


def waits_for_pods(snapshot: Snapshot, missing: Collection[MemberClass]) -> bool:
    """Whether the affinity of one of these classes requires pods that do not exist and that none of them provides."""
    plan = next(plan for plan in snapshot.plans if isinstance(plan, AffinityPlan))
    alone = [member for member in missing if plan.is_left_alone(member)]
    return any(not any(plan.helps(other, member) for other in missing) for member in alone)


def bond(snapshot: Snapshot, member: MemberClass) -> str:
    """The label by which all members of the class must share one domain, whichever it is; empty if there is none."""
    bonding = snapshot.having["bond"] if depends(member) else ()
    return next((bond for plan in bonding if (bond := plan.bond(member))), "")


def _dependent(classes: Collection[MemberClass]) -> list[MemberClass]:
    return [member for member in classes if depends(member)]


def depends(member: MemberClass) -> bool:
    """Whether more than the shape of a member of the class and the free amounts decides which nodes take it."""
    return bool(member.seen or member.shape.disks) or member.shape.depends_on_pods
