"""The terms under which a gang is tried, in one value, and which of them this version cannot honour."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gangsched.core.gang.agreement import (
    Hindrance,
    first_with,
    some,
)
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import OWN_KEYS, Declaration, Keys
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.strategy import Strategy
from gangsched.core.planning.strategies import PACK, STRATEGIES

MOST_PLACES = 10_000
"""For so many members places are held: the status has room for no more."""


class Terms(Struct, frozen=True, kw_only=True):
    """The gang's declaration as it applies: `created` orders by age, `source` says how it was declared.

    `strategy` is the one that the spec names, Pack where it is not known. Each time-out lasts up to `jitter_s` longer;
    `keys` say where its pods declare it. In `instance_group`, if not empty, nobody overtakes the group once it is
    `in_turn_after_s` old. Places for members to come are held for `max_hold_s` at a time. `lowered` says, for a person,
    why the priority is less than the group asks for; empty if it is not.
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


NO_TERMS = Terms(spec=GroupSpec(min_member=1), priority=0, created=0.0, max_schedule_time_s=float("inf"), source="")


def refused_fields(spec: GroupSpec, policy: Policy) -> Hindrance | None:
    """Which field of the spec cannot be honoured by this version, or as it is configured."""
    if spec.not_built:
        return Hindrance(
            Reason.NOT_SUPPORTED,
            f"This version of gangsched does not support {', '.join(spec.not_built)} yet: remove it to have the group "
            "scheduled without.",
        )
    known = dict.fromkeys((*STRATEGIES, *policy.strategies))
    if spec.strategy not in known:
        return Hindrance(
            Reason.STRATEGY_UNKNOWN,
            f"The placement strategy {spec.strategy} is not installed: install the plug-in that provides it, or use "
            f"one of {', '.join(known)}.",
        )
    if any(role.template for role in spec.roles) and spec.minimum > MOST_PLACES:
        return Hindrance(
            Reason.NOT_SUPPORTED,
            f"The group has templates and a minimum of {spec.minimum} members, and places are held for at most "
            f"{MOST_PLACES} members: lower the minimum, or remove the templates.",
        )
    return None


def unknown_role(
    gang: Gang, spec: GroupSpec, *, members: Sequence[Pod], says: Sequence[Declaration]
) -> Hindrance | None:
    """Which member names a role that the group does not have."""
    known = {role.name for role in spec.roles}
    for say in says:
        if say.role and say.role not in known and not say.open_roles:
            has = f"has only {some(sorted(known))}" if known else "has no roles"
            return Hindrance(
                Reason.ROLE_UNKNOWN,
                f"Pod {first_with(say, members)} names the role {say.role}, but the group {gang.key.name} {has}: "
                f"correct {say.keys.role} or add the role to "
                f"{'the PodGroup' if gang.group or say.objects or not known else say.keys.minimum}.",
            )
    return None


def unsupported(members: Sequence[Pod]) -> Hindrance | None:
    """Which member asks for something that this version cannot honour."""
    for pod in members:
        if pod.shape.unsupported and not pod.node:
            return Hindrance(
                Reason.NOT_SUPPORTED,
                f"Pod {pod.name} uses {', '.join(pod.shape.unsupported)}, which this version of gangsched cannot "
                "honour: remove it, or let another scheduler place the pod.",
            )
    return None
