"""The terms under which a group is tried, and the priority and instance group in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from gangsched.core.objects.declaration import OWN_KEYS, Declaration, Keys
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.policy import Policy, PriorityFrom, TurnRules
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.shape import Shape
from gangsched.core.objects.strategy import Strategy
from gangsched.core.objects.workload import Reference
from gangsched.core.planning.strategies import PACK

_UNDECLARED = frozenset({Reason.POD_GROUP_NOT_FOUND, Reason.POD_GROUP_UNREADABLE, Reason.OWNER_UNKNOWN})
_UNKNOWN_MINIMUM = _UNDECLARED | {Reason.INVALID_DECLARATION, Reason.CONTRADICTION}


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a group is not tried at all; the message is a sentence for a person."""

    reason: Reason
    message: str


class Terms(Struct, frozen=True, kw_only=True):
    """A group's declaration as it applies: `created` orders by age, `source` says how it was declared.

    `strategy` is the one that the spec names, Pack where it is not known. Each time-out lasts up to `jitter_s` longer;
    `keys` say where its pods declare it. In the FIFO lane of `instance_group`, if not empty, no group may overtake it
    once it is `in_turn_after_s` old. Placeholders are kept for `max_hold_s` at a time. `lowered` is a sentence saying
    why the priority is less than the group asks for; empty if it is not. `hindrance` is what keeps the group from being
    tried, None if nothing does. `workload` is the controller's object that declares it, None if none does; `in_turn` is
    a sentence about why its members are created one after the other, empty if they are not.
    """

    spec: GroupSpec
    priority: int
    created: float
    max_schedule_time_s: float
    source: str
    strategy: Strategy = PACK
    jitter_s: float = 0.0
    keys: Keys = OWN_KEYS
    instance_group: str = ""
    in_turn_after_s: float = 0.0
    max_hold_s: float = float("inf")
    lowered: str = ""
    hindrance: Hindrance | None = None
    workload: Reference | None = None
    in_turn: str = ""

    @property
    def unhurried(self) -> bool:
        """Whether its controller creates members only once others are ready: no clock runs while places are held."""
        return any(role.derived for role in self.spec.roles)

    @property
    def undeclared(self) -> bool:
        """Whether neither an object nor the pods say the terms at present."""
        return self.hindrance is not None and self.hindrance.reason in _UNDECLARED

    @property
    def minimum_known(self) -> bool:
        """Whether it is known how many members the group asks for."""
        return self.hindrance is None or self.hindrance.reason not in _UNKNOWN_MINIMUM


NO_TERMS = Terms(spec=GroupSpec(min_member=1), priority=0, created=0.0, max_schedule_time_s=float("inf"), source="")
"""The terms of a group that nothing declares: a pod without a group, or a gang whose logic failed."""


def instance_group(members: Sequence[Pod], says: Sequence[Declaration], rules: TurnRules) -> str:
    """The instance group in whose FIFO lane the group waits; empty if it waits in none."""
    in_turn = next((say for say in says if say.in_turn), None)
    if in_turn is None and not rules.groups:
        return ""
    asking = [pod for pod in members if in_turn is None or pod.declaration == in_turn]
    found = asked_for(asking[0].shape, rules.label) if asking else ""
    return found if in_turn is not None or found in rules.groups else ""


def asked_for(shape: Shape, label: str) -> str:
    """The one value of a node label that a pod requires, by required affinity or else by nodeSelector; empty if none.

    This is how palantir's scheduler reads the instance group of a driver.
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


def priority_of(
    spec: GroupSpec, own_priority: int, priority_classes: Mapping[str, int], policy: Policy
) -> tuple[int, str]:
    """The priority that counts, and why it is less than the group asks for: a sentence, empty if it is not.

    A group that asks for none has that of its members.
    """
    asked = spec.priority
    if asked is None:
        asked = priority_classes.get(spec.priority_class, own_priority)
    if policy.priority_from is PriorityFrom.MEMBERS and asked > own_priority and own_priority <= policy.max_priority:
        why = "the highest of its members (setting priorityFrom): give them a PriorityClass to have it count for more"
        return own_priority, f"Its priority {asked} counts as {own_priority}, {why}."
    if policy.max_priority < asked != own_priority:
        why = "the most that this cluster allows (setting maxPriority): ask for no more than that"
        return policy.max_priority, f"Its priority {asked} counts as {policy.max_priority}, {why}."
    return min(asked, policy.max_priority), ""
