"""A gang's priority, and the instance group in whose line it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangsched.core.gang.agreement import (
    Hindrance,
)
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.policy import Policy, PriorityFrom, TurnRules
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.shape import Shape


def instance_group(members: Sequence[Pod], says: Sequence[Declaration], rules: TurnRules) -> str:
    """The instance group in which the group waits for its turn; empty if it does not."""
    in_turn = next((say for say in says if say.in_turn), None)
    if in_turn is None and not rules.groups:
        return ""
    asking = [pod for pod in members if in_turn is None or pod.declaration == in_turn]
    found = asked_for(asking[0].shape, rules.label) if asking else ""
    return found if in_turn is not None or found in rules.groups else ""


def asked_for(shape: Shape, label: str) -> str:
    """The one value of a node label that a pod asks for, by required affinity or else by nodeSelector; empty if none.

    As palantir's scheduler reads the instance group of a driver.
    """
    required = {
        requirement.values
        for term in shape.node_affinity or ()
        for requirement in term.expressions
        if requirement.key == label and requirement.operator == "In"
    }
    if len(required) == 1 and len(values := required.pop()) == 1:
        return values[0]
    return dict(shape.node_selector).get(label, "")


def asked_priority(
    spec: GroupSpec, own_priority: int, priority_classes: Mapping[str, int]
) -> tuple[int, Hindrance | None]:
    """The priority that the group asks for, else its members' own; a PriorityClass that does not exist hinders it."""
    if spec.priority is not None:
        return spec.priority, None
    if not spec.priority_class:
        return own_priority, None
    value = priority_classes.get(spec.priority_class)
    if value is None:
        return own_priority, Hindrance(
            Reason.PRIORITY_CLASS_NOT_FOUND,
            f"spec.priorityClassName names the PriorityClass {spec.priority_class}, which does not exist: create it or "
            "name another.",
        )
    return value, None


def allowed_priority(asked: int, own_priority: int, policy: Policy) -> tuple[int, str]:
    """The priority that counts, and why it is less than the group asks for; what its members have is no such asking."""
    if policy.priority_from is PriorityFrom.MEMBERS and asked > own_priority and own_priority <= policy.max_priority:
        why = "the highest of its members (setting priorityFrom): give them a PriorityClass to have it count for more"
        return own_priority, f"Its priority {asked} counts as {own_priority}, {why}."
    if policy.max_priority < asked != own_priority:
        why = "the most that this cluster allows (setting maxPriority): ask for no more than that"
        return policy.max_priority, f"Its priority {asked} counts as {policy.max_priority}, {why}."
    return min(asked, policy.max_priority), ""
