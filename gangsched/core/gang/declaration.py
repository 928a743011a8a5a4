"""What a gang asks for, from everything that declares it: the PodGroup, the pods' annotations, the PriorityClass.

Nothing is guessed: what cannot be read, contradicts itself or is not supported becomes a `Hindrance`, a reason with a
sentence for a person, and no further member is bound until it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from gangsched.core.gang.agreement import (
    Hindrance,
    differently_named,
    differs,
    disagreement,
    objects_differ,
    unreadable,
)
from gangsched.core.gang.foreign import Foreign
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.priority import allowed_priority, asked_priority, instance_group
from gangsched.core.gang.terms import Terms, refused_fields, unknown_role, unsupported
from gangsched.core.objects.declaration import OWN_DIALECT, OWN_KEYS, PACKED, Declaration, Role
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.planning.strategies import GPU_SUFFIX, PACK, named

OBJECT = "{} PodGroup"
"""How people are told of an object of another system's dialect."""
WITHOUT_OBJECT = frozenset({Reason.POD_GROUP_NOT_FOUND, Reason.POD_GROUP_UNREADABLE})
"""Hindrances where no object says the terms that can be read now, and the pods do not either."""


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
            strategy=named(policy.gpu_strategy, policy.strategies) if any(map(_wants_gpu, members)) else PACK,
        )
        return terms, unsupported(members)
    # Most members say the same in one value, so that what follows is short.
    says = list(dict.fromkeys([pod.declaration for pod in members if pod.declaration is not None]))
    found = _objects(gang, says, foreign)
    spec, hindrance = _declared(gang, says, found, members=members, foreign=foreign)
    asked, missing = asked_priority(spec, own_priority, priority_classes)
    priority, lowered = allowed_priority(asked, own_priority, policy)
    time_s = spec.max_schedule_time_s
    group = gang.group if gang.group is not None and not gang.group.made else None
    ours = group is not None and group.spec is not None and group.spec.max_schedule_time_s is not None
    defaults = [say.default_time_s for say in says if say.default_time_s is not None]
    default_s = max(defaults, default=policy.default_max_schedule_time_s)
    line = instance_group(members, says, policy.turns)
    terms = Terms(
        spec=spec,
        priority=priority,
        created=group.created if group is not None else min((each.created for each in found), default=oldest),
        max_schedule_time_s=default_s if time_s is None else time_s,
        source=_source(gang, says, found),
        strategy=named(spec.strategy, policy.strategies),
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
            or refused_fields(spec, policy)
            or unknown_role(gang, spec, members=members, says=says)
            or unsupported(members)
        )
    return terms, hindrance


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


def _wants_gpu(pod: Pod) -> bool:
    """Whether the pod asks for GPUs."""
    return any(resource.endswith(GPU_SUFFIX) for resource, _ in pod.shape.requests)
