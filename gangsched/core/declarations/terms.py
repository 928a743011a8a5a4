"""The terms under which a group is tried, including its priority and instance group."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gangsched.core.objects.declaration import OWN_KEYS, Declaration, Keys
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.policy import FifoRules, Policy, PriorityFrom
from gangsched.core.objects.priority_class import PriorityClasses
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.shape import Shape
from gangsched.core.objects.strategy import Strategy
from gangsched.core.objects.workload import Reference
from gangsched.core.planning.strategies import PACK

_UNSEEN = frozenset({Reason.POD_GROUP_UNREADABLE, Reason.OWNER_UNKNOWN})
_UNDECLARED = _UNSEEN | {Reason.POD_GROUP_NOT_FOUND}
_UNKNOWN_MINIMUM = _UNDECLARED | {Reason.INVALID_DECLARATION, Reason.CONTRADICTION}


class Hindrance(Struct, frozen=True):
    """The reason why a group is not tried at all; the message is a sentence for users."""

    reason: Reason
    message: str


class Terms(Struct, frozen=True, kw_only=True):
    """A group's declaration in its effective form: `created` orders by age, `source` says how the group was declared.

    `strategy` is the one that the spec names, Pack if that is unknown. Each time-out is extended by up to `jitter_s`
    seconds; `keys` name the fields in which its pods declare the group. In the FIFO lane of `instance_group`, if not
    empty, no group may overtake this one once it is `fifo_after_s` seconds old. Placeholders are held for at most
    `max_hold_s` seconds at a time. `lowered` is a sentence that says why the priority is lower than requested; empty if
    it is not. `hindrance` keeps the group from being tried, None if nothing does. `workload` is the controller's object
    that declares the group, None if there is none; `ignored` are the fields and keys that are not honoured.
    `sequential_note` is a sentence that says why its members are created one after the other, empty if they are not.
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
    fifo_after_s: float = 0.0
    max_hold_s: float = float("inf")
    lowered: str = ""
    hindrance: Hindrance | None = None
    workload: Reference | None = None
    ignored: tuple[str, ...] = ()
    sequential_note: str = ""

    @property
    def sequential(self) -> bool:
        """Whether members are created only once others are ready, so that no clock runs while placeholders are held."""
        return bool(self.spec.roles) and any(role.derived for role in self.spec.roles)

    @property
    def unseen(self) -> bool:
        """Whether what declares the terms cannot be read at present, so that not even the priority is known."""
        return self.hindrance is not None and self.hindrance.reason in _UNSEEN

    @property
    def undeclared(self) -> bool:
        """Whether neither an object nor the pods declare the terms at present."""
        return self.hindrance is not None and self.hindrance.reason in _UNDECLARED

    @property
    def minimum_known(self) -> bool:
        """Whether it is known how many members the group asks for."""
        return self.hindrance is None or self.hindrance.reason not in _UNKNOWN_MINIMUM


NO_TERMS = Terms(spec=GroupSpec(min_member=1), priority=0, created=0.0, max_schedule_time_s=float("inf"), source="")
"""The terms of a group without a declaration: a pod without a group, or a gang whose logic failed."""


def instance_group(members: Sequence[Pod], says: Sequence[Declaration], rules: FifoRules) -> str:
    """The instance group in whose FIFO lane the group waits; empty if it waits in none."""
    fifo = next((say for say in says if say.fifo), None)
    if fifo is None and not rules.groups:
        return ""
    asking = [pod for pod in members if fifo is None or pod.declaration == fifo]
    name = asked_for(asking[0].shape, rules.label) if asking else ""
    return name if fifo is not None or name in rules.groups else ""


def asked_for(shape: Shape, label: str) -> str:
    """The one value of a node label that a pod requires, by required affinity or else by nodeSelector; empty if none.

    palantir's scheduler reads the instance group of a driver in the same way.
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
    spec: GroupSpec, own_priority: int, priority_classes: PriorityClasses, policy: Policy
) -> tuple[int, str]:
    """The effective priority, and a sentence that says why it is lower than requested; empty if it is not.

    A group that requests no priority has its members' highest.
    """
    asked = spec.priority
    if asked is None:
        named = priority_classes.get(spec.priority_class)
        asked = named.value if named is not None else own_priority
    if policy.priority_from is PriorityFrom.MEMBERS and asked > own_priority and own_priority <= policy.max_priority:
        why = "the highest of its members (setting priorityFrom): give them a PriorityClass to have it count for more"
        return own_priority, f"Its priority {asked} counts as {own_priority}, {why}."
    if policy.max_priority < asked != own_priority:
        why = "the most that this cluster allows (setting maxPriority): ask for no more than that"
        return policy.max_priority, f"Its priority {asked} counts as {policy.max_priority}, {why}."
    return min(asked, policy.max_priority), ""
