"""Where a gang stands in the order of everything that waits (contract rule 6).

The exact place is known once the gang has been reconciled. Until then `earliest` bounds it from below: nothing behind
that place may be planned before the gang has been looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.terms import priority_of
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.podgroup import ForeignGroup, Group
from gangsched.core.objects.policy import Policy

OrderKey = tuple[bool, int, float, str, str]
"""The sort key of contract rule 6: whether it is no repair, minus the priority, creation in epoch seconds, name."""


def order_key(gang: Gang, assessment: Assessment) -> OrderKey:
    """Repairs first, then priority, then age, then namespace/name (contract rule 6)."""
    terms = assessment.terms
    return (not assessment.want.repair, -terms.priority, terms.created, gang.key.namespace, gang.key.name)


def earliest(gang: Gang, *, foreign: Foreign, policy: Policy, priority_classes: Mapping[str, int]) -> OrderKey:
    """A place that the gang's own cannot be before, whatever reconciling it will find; it costs no look at its pods.

    The priority is at most the highest of what its pods, its PodGroup and other systems' objects ask for, and its age
    at most that of the oldest of them. A gang that has or had a bound member, or has bindings, may want a repair.
    """
    seen, key = gang.observed, gang.key
    may_repair = bool(seen.traits.bound or gang.record.scheduled_at or gang.operations.bindings or seen.comes_back)
    if seen.traits.objects is None:
        return (not may_repair, -policy.max_priority, 0.0, key.namespace, key.name)
    own = seen.traits.priority
    priority, created = min(own, policy.max_priority), seen.traits.created
    places = [(dialect, GroupKey(key.namespace, name or key.name)) for dialect, name in seen.traits.objects]
    declaring: list[Group | ForeignGroup | None] = [seen.group, *(foreign.find(*place) for place in places)]
    for each in declaring:
        if each is None:
            continue
        if each.spec is not None:
            priority = max(priority, priority_of(each.spec, own, priority_classes, policy)[0])
        created = min(created, each.created)
    return (not may_repair, -priority, created, key.namespace, key.name)
