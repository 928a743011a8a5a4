"""How members depend on each other: by constraints that ask which pods are on other nodes."""

from __future__ import annotations

from collections.abc import Collection

from gangsched.core.objects.arrays import IntArray
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.snapshot import Snapshot


def couples(snapshot: Snapshot, member: MemberClass, other: MemberClass) -> bool:
    """Whether a member placed on one row changes which other rows take the `other`, which may be of its class.

    Members of a class that does so to itself are placed one by one.
    """
    return any(plan.couples(member, other) for plan in snapshot.plans)


def helped(snapshot: Snapshot, classes: Collection[MemberClass]) -> set[MemberClass]:
    """The classes to which members of one of these classes, once placed, may open rows that are closed before."""
    return {
        member for member in classes if any(plan.helps(other, member) for plan in snapshot.plans for other in classes)
    }


def hoped(snapshot: Snapshot, member: MemberClass, others: Collection[MemberClass]) -> IntArray:
    """Like `Snapshot.caps`, but as if members of the others had opened each row that they may open."""
    masking = [plan for plan in snapshot.masking if not any(plan.helps(other, member) for other in others)]
    return snapshot.caps(member) if len(masking) == len(snapshot.masking) else snapshot.caps_by(member, masking)


def bond(snapshot: Snapshot, member: MemberClass) -> str:
    """The label of which all members of the class must be in one domain, whichever it is; empty if there is none."""
    return next((bond for plan in snapshot.plans if (bond := plan.bond(member))), "")
