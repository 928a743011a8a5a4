"""Whether others may be preempted for a group at all."""

from __future__ import annotations

from enum import StrEnum

from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.policy import Policy, PriorityFrom
from gangsched.core.objects.priority_class import PriorityClasses


class Bar(StrEnum):
    """Why nobody is preempted for a group, whoever stands in its way."""

    DISABLED = "Disabled"
    """The operator's settings say so."""
    NEVER = "Never"
    """The group's preemptionPolicy says so."""
    NUMBER = "Number"
    """Its priority is a bare number, which only orders groups."""
    CLASS = "Class"
    """Its PriorityClass says so."""
    MEMBERS = "Members"
    """A PriorityClass of its most important members says so, and it has none of its own."""


def bar_of(gang: Gang, assessment: Assessment, classes: PriorityClasses, policy: Policy) -> Bar | None:
    """Why nobody may be preempted for the group; None if others may.

    Its own PriorityClass says so or, where it has none, those of all members with its priority. A number alone orders
    groups and preempts nobody. Where the priority is at most that of the members, these must say so too.
    """
    spec = assessment.terms.spec
    if not policy.preemption.enabled:
        return Bar.DISABLED
    if not spec.preempts:
        return Bar.NEVER
    if spec.priority_class:
        named = classes.get(spec.priority_class)
        if named is None or not named.preempts:
            return Bar.CLASS
        if policy.priority_from is not PriorityFrom.MEMBERS:
            return None
    elif spec.priority is not None:
        return Bar.NUMBER
    members = [pod for pod in gang.live() if pod.priority == assessment.terms.priority]
    return None if members and all(pod.lifetime.preempts for pod in members) else Bar.MEMBERS
