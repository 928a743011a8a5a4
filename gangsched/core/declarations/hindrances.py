"""Finds what keeps a group from being tried: each function yields the hindrances of one kind, most important first.

Nothing is guessed. Where declarations of the group contradict each other (PodGroups of gangsched and of other systems,
and the pods), the message says what differs and what to do, because only the owner of the group knows which is right.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.minima import minima
from gangsched.core.declarations.terms import Hindrance
from gangsched.core.declarations.trees import KINDS, TREE_KINDS
from gangsched.core.objects.declaration import COMPOSITE, NATIVE, OWN_KEYS, Declaration, GroupKey, Keys, Role
from gangsched.core.objects.duration import format_duration
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClasses
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.strategy import BUILT_IN

VALUES_SHOWN = 5
"""Number of differing values that a message lists at most, because space in an API object is limited."""
MOST_PLACES = 10_000
"""Largest number of placeholders of a group; the status has no room for more."""


_LATTER = "make them equal or remove the latter."


class Declared(NamedTuple):
    """The declarations of a group's members: all different declarations, and the different values in them.

    `objects` are other systems' objects that declare the group, by dialect and name; the name is empty if it is the
    group's. `default_s` and `jitter_s` are the longest that one of them asks for, in seconds.
    """

    says: Sequence[Declaration]
    keys: Keys
    minima: Sequence[int]
    times: Sequence[float]
    lists: Sequence[tuple[Role, ...]]
    objects: Sequence[tuple[str, str]]
    default_s: float | None
    jitter_s: float


def terminating(namespace: str, terminating: Container[str]) -> Iterator[Hindrance]:
    """The namespace, if it is among those that are being deleted."""
    if namespace in terminating:
        yield Hindrance(
            Reason.NAMESPACE_TERMINATING,
            f"Namespace {namespace} is being deleted, so nothing can be created or bound there: create the group in "
            f"another one; if this one stays, kubectl get namespace {namespace} --output yaml says why.",
        )


def unreadable(
    group: Group | None, says: Sequence[Declaration], objects: Sequence[ForeignGroup], members: Sequence[Pod]
) -> Iterator[Hindrance]:
    """Objects and pods that cannot be parsed, and pods that contradict themselves."""
    for declaring in (group, *objects):
        if declaring is not None and declaring.error:
            yield Hindrance(Reason.INVALID_DECLARATION, declaring.error)
    for say in says:
        if say.error:
            yield Hindrance(Reason.INVALID_DECLARATION, f"Pod {_first_with(say, members)}: {say.error}")
    for say in says:
        if say.contradiction:
            yield Hindrance(Reason.CONTRADICTION, f"Pod {_first_with(say, members)}: {say.contradiction}")


def contradictions(declared: Declared, specs: Mapping[str, GroupSpec]) -> Iterator[Hindrance]:
    """Contradictions among members, among objects (`specs` by display name), or of the first object with members."""
    # A fast path: most members say the same.
    differ = len(declared.says) > 1 or len(declared.minima) > 1
    for sentence in chain(_among_members(declared) if differ else (), _among_objects(specs, declared) if specs else ()):
        yield Hindrance(Reason.CONTRADICTION, sentence)


def _among_members(declared: Declared) -> Iterator[str]:
    # Members of different dialects may be two groups with the same name by chance: only their owner knows.
    groups = {say.source: say.keys.group for say in declared.says}
    if groups.keys() >= TREE_KINDS:
        name = declared.says[0].group
        yield (
            f"Members are of two groups, as the {KINDS[COMPOSITE]} {name}, which is the root of a tree, and the "
            f"{KINDS[NATIVE]} {name} have one name: give one of these objects another name."
        )
    elif len(groups) > 1:
        yield (
            f"Members name the group in different ways, by {' and by '.join(groups.values())}: if they are one group, "
            "name it in the same way on all of them; if not, give the groups different names."
        )
    if len(declared.lists) > 1:
        where = next(say.keys.minimum for say in declared.says if say.roles)
        yield f"Members disagree on {where}; give all members that have it the same value."
    times = [format_duration(time_s) for time_s in declared.times]
    for where, values in ((declared.keys.minimum, [*map(str, declared.minima)]), (declared.keys.time, times)):
        if len(values) > 1:
            yield f"Members disagree on {where}: {_some(values)}; give all members the same value."


def _among_objects(specs: Mapping[str, GroupSpec], declared: Declared) -> Iterator[str]:
    (title, spec), *others = specs.items()
    for other_title, other in others:
        theirs = _values(other)
        for field, values in _values(spec).items():
            if values and theirs[field] and values != theirs[field]:
                yield (
                    f"The {title} and the {other_title} of that name differ in their {field}, {_some(values)} and "
                    f"{_some(theirs[field])}: make them equal or delete one of them."
                )
    keys, roles = declared.keys, declared.lists[0] if declared.lists else ()
    minimum = spec.minimum if roles else spec.min_member
    if declared.minima and declared.minima[0] != minimum:
        yield f"The {title} says minMember {minimum}, the pods say {declared.minima[0]} by {keys.minimum}: {_LATTER}"
    if roles and {role.name: role.min_member for role in roles} != {role.name: role.min_member for role in spec.roles}:
        yield f"The {title}'s roles are not those that the pods list by {keys.minimum}: {_LATTER}"
    time_s = spec.max_schedule_time_s
    if declared.times and time_s is not None and declared.times[0] != time_s:
        pods_say = format_duration(declared.times[0])
        yield (
            f"The {title} says maxScheduleTime {format_duration(time_s)}, the pods say {pods_say} by {keys.time}: "
            f"{_LATTER}"
        )


def _values(spec: GroupSpec) -> dict[str, list[str]]:
    """An object's values by field, formatted for messages; empty for fields that it leaves open."""
    time_s = spec.max_schedule_time_s
    return {
        "minimum": [str(spec.minimum)],
        "roles": sorted(f"{role.name} {role.min_member}" for role in spec.roles),
        "longest wait": [] if time_s is None else [format_duration(time_s)],
        "minResources": [f"{name} {format_amount(name, amount)}" for name, amount in spec.min_resources],
    }


def undeclared(key: GroupKey, declared: Declared, foreign: Foreign) -> Iterator[Hindrance]:
    """The hindrances of a group whose terms neither an object nor a pod declares."""
    says, keys = declared.says, declared.keys
    owned = next((say for say in says if say.object_name), None)
    if owned is not None:
        yield Hindrance(Reason.OWNER_UNKNOWN, _owner_unknown(key.namespace, owned, foreign))
    hidden = next((why for say in says for dialect in say.objects if (why := foreign.why_hidden(dialect))), "")
    if hidden:
        yield Hindrance(Reason.POD_GROUP_UNREADABLE, hidden)
    namespace, name = key.namespace, key.name
    instead = f", or give the pods {keys.minimum}" if keys.minimum else ""
    message = f"There is no {keys.kind} {name} in namespace {namespace}: {keys.create}{instead}."
    if says and says[0].leading:
        message = (
            f"No pod of the role {says[0].leading} was found in namespace {namespace}, and only that pod says how many "
            f"members {name} has: start it with a schedulerName that gangsched serves, or create a {keys.kind} {name}."
        )
    yield Hindrance(Reason.POD_GROUP_NOT_FOUND, message)


def _owner_unknown(namespace: str, declaration: Declaration, foreign: Foreign) -> str:
    """The message that says why the terms of a workload's pods are not known."""
    kind, owner, whose = declaration.source, f"{declaration.keys.kind} {declaration.object_name}", "the pods belong"
    top = foreign.awaited(kind, GroupKey(namespace, declaration.object_name))
    if top is not None:
        kind, owner, whose = top.kind, f"{top.title} {top.name}", f"the {owner} belongs"
    if hidden := foreign.why_hidden(kind):
        return f"It is unknown what the {owner} declares for its pods: {hidden}"
    if foreign.find(kind, GroupKey(namespace, declaration.object_name)) is not None:
        return (
            f"The status of the {owner} does not say yet that the pods which these follow are complete: they wait "
            "until its controller has written that."
        )
    return (
        f"The {owner} in namespace {namespace}, to which {whose}, has not been seen: check that it exists, or name "
        f"a group on the pods by {OWN_KEYS.group}."
    )


def refused_fields(spec: GroupSpec, policy: Policy, priority_classes: PriorityClasses) -> Iterator[Hindrance]:
    """Fields of the spec that this version does not support, or that do not work in this cluster."""
    if spec.priority is None and spec.priority_class and spec.priority_class not in priority_classes:
        yield Hindrance(
            Reason.PRIORITY_CLASS_NOT_FOUND,
            f"spec.priorityClassName names the PriorityClass {spec.priority_class}, which does not exist: create it or "
            "name another.",
        )
    if spec.not_built:
        yield Hindrance(
            Reason.NOT_SUPPORTED,
            f"This version of gangsched does not support {', '.join(spec.not_built)}: declare the group without, or "
            "let its own scheduler place it.",
        )
    known = dict.fromkeys((*BUILT_IN, *policy.strategies))
    if spec.strategy not in known:
        yield Hindrance(
            Reason.STRATEGY_UNKNOWN,
            f"The placement strategy {spec.strategy} is not installed: install the plug-in that provides it, or use "
            f"one of {', '.join(known)}.",
        )
    if minima(spec).total > MOST_PLACES and any(role.template for role in spec.roles):
        yield Hindrance(
            Reason.NOT_SUPPORTED,
            f"The group has templates and a minimum of {minima(spec).total} members, but at most {MOST_PLACES} "
            "members can have reservations before they exist: lower the minimum, or remove the templates.",
        )


def unknown_roles(
    key: GroupKey, group: Group | None, spec: GroupSpec, *, members: Sequence[Pod], says: Sequence[Declaration]
) -> Iterator[Hindrance]:
    """Members that name a role that the group does not have."""
    known = {role.name for role in spec.roles}
    for say in says:
        if say.role and say.role not in known and not say.open_roles:
            has = f"has only {_some(sorted(known))}" if known else "has no roles"
            yield Hindrance(
                Reason.ROLE_UNKNOWN,
                f"Pod {_first_with(say, members)} names the role {say.role}, but the group {key.name} {has}: "
                f"correct {say.keys.role} or add the role to "
                f"{'the PodGroup' if group or say.objects or not known else say.keys.minimum}.",
            )


def unsupported(members: Sequence[Pod]) -> Iterator[Hindrance]:
    """Members that use a feature that this version does not support."""
    for pod in members:
        if pod.shape.unsupported and not pod.node:
            yield Hindrance(
                Reason.NOT_SUPPORTED,
                f"Pod {pod.name} uses {', '.join(pod.shape.unsupported)}, which this version of gangsched does not "
                "support: remove it, or let another scheduler place the pod.",
            )


def _first_with(say: Declaration, members: Sequence[Pod]) -> str:
    return next(pod.name for pod in members if pod.declaration == say)


def _some(values: Sequence[str]) -> str:
    return ", ".join(values[:VALUES_SHOWN]) + (", …" if len(values) > VALUES_SHOWN else "")
