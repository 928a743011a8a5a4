"""What a gang asks for, from everything that declares it: the PodGroup, the pods' annotations, the PriorityClass.

Nothing is guessed: what cannot be read, contradicts itself or is not supported becomes a `Hindrance`, a reason with a
sentence for a person, and no further member is bound until it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from gangsched.core.agreement import (
    Hindrance,
    differently_named,
    differs,
    disagreement,
    first_with,
    objects_differ,
    some,
    unreadable,
)
from gangsched.core.foreign import Foreign
from gangsched.core.gang import Gang
from gangsched.core.model import (
    OWN_DIALECT,
    OWN_KEYS,
    PACKED,
    Declaration,
    ForeignGroup,
    GroupSpec,
    Keys,
    Pod,
    Role,
    Shape,
)
from gangsched.core.policy import Policy, PriorityFrom, TurnRules
from gangsched.core.reasons import Reason
from gangsched.core.strategies import GPU_SUFFIX, PACK, Strategy

OBJECT = "{} PodGroup"
"""How people are told of an object of another system's dialect."""
WITHOUT_OBJECT = frozenset({Reason.POD_GROUP_NOT_FOUND, Reason.POD_GROUP_UNREADABLE})
"""Hindrances where no object says the terms that can be read now, and the pods do not either."""
MOST_PLACES = 10_000
"""For so many members places are held: the status has room for no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
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


def resolve(
    gang: Gang, members: Sequence[Pod], *, policy: Policy, priority_classes: Mapping[str, int], foreign: Foreign
) -> tuple[Terms, Hindrance | None]:
    """The terms under which the gang is tried, and what keeps it from being tried, if anything does."""
    oldest = min((pod.created for pod in members), default=0.0)
    own_priority = max((pod.priority for pod in members), default=0)
    if gang.plain:
        terms = Terms(
            spec=GroupSpec(min_member=1),
            priority=min(own_priority, policy.max_priority),
            created=oldest,
            max_schedule_time_s=float("inf"),
            source="",
            strategy=policy.strategies[policy.gpu_strategy] if any(map(_wants_gpu, members)) else PACK,
        )
        return terms, _unsupported(members)
    # Most members say the same in one value, so that what follows is short.
    says = list(dict.fromkeys([pod.declaration for pod in members if pod.declaration is not None]))
    found = _objects(gang, says, foreign)
    spec, hindrance = _declared(gang, says, found, members=members, foreign=foreign)
    asked, missing = _priority(spec, own_priority, priority_classes)
    priority, lowered = _allowed(asked, own_priority, policy)
    time_s = spec.max_schedule_time_s
    group = gang.group if gang.group is not None and not gang.group.made else None
    ours = group is not None and group.spec is not None and group.spec.max_schedule_time_s is not None
    defaults = [say.default_time_s for say in says if say.default_time_s is not None]
    default_s = max(defaults, default=policy.default_max_schedule_time_s)
    line = _instance_group(members, says, policy.turns)
    terms = Terms(
        spec=spec,
        priority=priority,
        created=group.created if group is not None else min((each.created for each in found), default=oldest),
        max_schedule_time_s=default_s if time_s is None else time_s,
        source=_source(gang, says, found),
        strategy=policy.strategies.get(spec.strategy, PACK),
        jitter_s=0.0 if ours else max([say.jitter_s for say in says], default=0.0),
        keys=says[0].keys if says else OWN_KEYS,
        instance_group=line,
        in_turn_after_s=policy.turns.after_s_by_group.get(line, policy.turns.after_s),
        max_hold_s=policy.max_hold_s,
        lowered=lowered,
    )
    if hindrance is None:
        hindrance = (
            missing
            or _refused_fields(spec, policy)
            or _unknown_role(gang, spec, members=members, says=says)
            or _unsupported(members)
        )
    return terms, hindrance


def _instance_group(members: Sequence[Pod], says: Sequence[Declaration], rules: TurnRules) -> str:
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


def declared_spec(gang: Gang, foreign: Foreign) -> GroupSpec | None:
    """What the gang's PodGroup asks for, else another system's object that its pods speak of; None without one."""
    if gang.group is not None:
        return gang.group.spec
    says = [pod.declaration for pod in gang.pods.values() if pod.declaration is not None]
    return next((group.spec for group in _objects(gang, says, foreign)), None)


def _objects(gang: Gang, says: Sequence[Declaration], foreign: Foreign) -> list[ForeignGroup]:
    """The other systems' objects of the gang's name that its pods speak of."""
    if not any(say.objects for say in says):
        return []
    dialects = dict.fromkeys(dialect for say in says for dialect in say.objects)
    found = (foreign.find(dialect, gang.key) for dialect in dialects)
    return [group for group in found if group is not None]


def said_minimum(says: Iterable[Declaration]) -> int | None:
    """The group's minimum by its pods alone; None if they do not say, or differ."""
    minima = _minima(list(says))
    return minima[0] if len(minima) == 1 else None


def _minima(says: Sequence[Declaration]) -> list[int]:
    """All minima that the pods say. One that lists roles and has none itself is wanted beside those that have."""
    minima = {say.min_member for say in says if say.min_member is not None}
    listing = [say for say in says if say.roles]
    if listing:
        beside = any(not say.role for say in listing)
        minima |= {sum(role.min_member for role in say.roles) + beside for say in listing}
    return sorted(minima)


def _source(gang: Gang, says: Sequence[Declaration], found: Sequence[ForeignGroup]) -> str:
    objects = [OWN_DIALECT] if gang.group is not None and not (gang.group.made and says) else []
    objects += [group.dialect for group in found]
    parts = [OBJECT.format(dialect) for dialect in objects]
    return ", ".join(parts + [f"{say.source} pods" for say in says[:1] if say.source not in objects])


def _declared(
    gang: Gang,
    says: Sequence[Declaration],
    found: Sequence[ForeignGroup],
    *,
    members: Sequence[Pod],
    foreign: Foreign,
) -> tuple[GroupSpec, Hindrance | None]:
    minima = _minima(says)
    times = sorted({say.max_schedule_time_s for say in says if say.max_schedule_time_s is not None})
    lists = list(dict.fromkeys(say.roles for say in says if say.roles))
    own = gang.group.spec if gang.group else None
    if own is not None and gang.group is not None and gang.group.made:
        # It says again what the pods say, or have said: for members to come, none is there to speak any more.
        said_elsewhere = bool(minima or found) or any(say.objects for say in says)
        plain_roles = tuple(replace(role, template=None) for role in own.roles)
        own = None if said_elsewhere else replace(own, roles=plain_roles)
    specs = {} if own is None else {"PodGroup": own}
    if found:
        specs |= {OBJECT.format(group.dialect): group.spec for group in found if group.spec is not None}
    what, spec = next(iter(specs.items()), ("", None))
    keys = says[0].keys if says else OWN_KEYS
    hindrance = unreadable(gang, says, found, members=members)
    if hindrance is None and max(len(says), len(minima)) > 1:
        hindrance = differently_named(says) or disagreement(says, lists, minima=minima, times=times)
    if hindrance is None and spec is not None:
        hindrance = objects_differ(specs) if len(specs) > 1 else None
        hindrance = hindrance or differs(what, spec, keys, minima=minima, times=times, roles=lists[0] if lists else ())
    elif hindrance is None and not minima:
        hindrance = _missing(gang, says, foreign)
    if spec is not None:
        spec = _completed(spec, list(specs.values())) if len(specs) > 1 else spec
    else:
        roles = _shaped(lists[0], members) if len(lists) == 1 else ()
        placing = says[0].placement if says else PACKED
        spec = GroupSpec(
            min_member=minima[0] if len(minima) == 1 else 1,
            roles=roles,
            strategy=placing.strategy,
            prefer=placing.prefer,
            topology=placing.topology,
        )
    if spec.max_schedule_time_s is None and len(times) == 1:
        spec = replace(spec, max_schedule_time_s=times[0])
    return spec, hindrance


def _missing(gang: Gang, says: Sequence[Declaration], foreign: Foreign) -> Hindrance:
    """That no object and no pod says the terms."""
    hidden = next((why for say in says for dialect in say.objects if (why := foreign.why_hidden(dialect))), "")
    if hidden:
        return Hindrance(Reason.POD_GROUP_UNREADABLE, hidden)
    name, namespace = gang.key.name, gang.key.namespace
    keys = says[0].keys if says else OWN_KEYS
    instead = f", or give the pods {keys.minimum}" if keys.minimum else ""
    message = f"There is no {keys.kind} {name} in namespace {namespace}: create it{instead}."
    if says and says[0].leading:
        message = (
            f"No pod of the role {says[0].leading}, which says how many members {name} has, is there in namespace "
            f"{namespace}: start it with a schedulerName that gangsched serves, or create a {keys.kind} {name}."
        )
    return Hindrance(Reason.POD_GROUP_NOT_FOUND, message)


def _completed(spec: GroupSpec, specs: Sequence[GroupSpec]) -> GroupSpec:
    """The first object's terms, with those that it leaves open to the others."""
    for other in specs[1:]:
        if spec.max_schedule_time_s is None:
            spec = replace(spec, max_schedule_time_s=other.max_schedule_time_s)
        if spec.priority is None and not spec.priority_class:
            spec = replace(spec, priority=other.priority, priority_class=other.priority_class)
    return spec


def _shaped(roles: tuple[Role, ...], members: Sequence[Pod]) -> tuple[Role, ...]:
    """The roles, with templates that have selectors and tolerations of the first pod that lists them if they say so."""
    if not any(role.like_declarer for role in roles):
        return roles
    declarer = next(pod for pod in members if pod.declaration is not None and pod.declaration.roles == roles)
    return tuple(
        replace(
            role,
            template=replace(declarer.shape, requests=role.template.requests, host_ports=(), unsupported=()),
            like_declarer=False,
        )
        if role.template is not None and role.like_declarer
        else role
        for role in roles
    )


def _priority(spec: GroupSpec, own_priority: int, priority_classes: Mapping[str, int]) -> tuple[int, Hindrance | None]:
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


def _allowed(asked: int, own_priority: int, policy: Policy) -> tuple[int, str]:
    """The priority that counts, and why it is less than the group asks for; what its members have is no such asking."""
    if policy.priority_from is PriorityFrom.MEMBERS and asked > own_priority and own_priority <= policy.max_priority:
        why = "the highest of its members (setting priorityFrom): give them a PriorityClass to have it count for more"
        return own_priority, f"Its priority {asked} counts as {own_priority}, {why}."
    if policy.max_priority < asked != own_priority:
        why = "the most that this cluster allows (setting maxPriority): ask for no more than that"
        return policy.max_priority, f"Its priority {asked} counts as {policy.max_priority}, {why}."
    return min(asked, policy.max_priority), ""


def _refused_fields(spec: GroupSpec, policy: Policy) -> Hindrance | None:
    if spec.not_built:
        return Hindrance(
            Reason.NOT_SUPPORTED,
            f"This version of gangsched does not support {', '.join(spec.not_built)} yet: remove it to have the group "
            "scheduled without.",
        )
    if spec.strategy not in policy.strategies:
        return Hindrance(
            Reason.STRATEGY_UNKNOWN,
            f"The placement strategy {spec.strategy} is not installed: install the plug-in that provides it, or use "
            f"one of {', '.join(policy.strategies)}.",
        )
    if any(role.template for role in spec.roles) and spec.minimum > MOST_PLACES:
        return Hindrance(
            Reason.NOT_SUPPORTED,
            f"The group has templates and a minimum of {spec.minimum} members, and places are held for at most "
            f"{MOST_PLACES} members: lower the minimum, or remove the templates.",
        )
    return None


def _unknown_role(
    gang: Gang, spec: GroupSpec, *, members: Sequence[Pod], says: Sequence[Declaration]
) -> Hindrance | None:
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


def _wants_gpu(pod: Pod) -> bool:
    """Whether the pod asks for GPUs."""
    return any(resource.endswith(GPU_SUFFIX) for resource, _ in pod.shape.requests)


def _unsupported(members: Sequence[Pod]) -> Hindrance | None:
    for pod in members:
        if pod.shape.unsupported and not pod.node:
            return Hindrance(
                Reason.NOT_SUPPORTED,
                f"Pod {pod.name} uses {', '.join(pod.shape.unsupported)}, which this version of gangsched cannot "
                "honour: remove it, or let another scheduler place the pod.",
            )
    return None
