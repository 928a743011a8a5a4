"""Resolves a group's terms from everything that declares it: the PodGroup, the pods' annotations, the PriorityClass.

Nothing is guessed: a declaration that cannot be parsed, contradicts another or is not supported becomes a `Hindrance`,
a reason with a sentence for users, and no further member is bound until it is resolved.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from itertools import chain

from msgspec.structs import replace

from gangsched.core.declarations import hindrances, unready_claims
from gangsched.core.declarations.derivation import as_made, completed, derived
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.hindrances import Declared
from gangsched.core.declarations.minima import MOST_CACHED
from gangsched.core.declarations.terms import NO_TERMS, Terms, instance_group, priority_of
from gangsched.core.inventory.device_index import Devices
from gangsched.core.inventory.volume_index import Volumes
from gangsched.core.objects.declaration import (
    COMPOSITE,
    OBJECT,
    OWN_DIALECT,
    OWN_KEYS,
    PACKED,
    TREE,
    Declaration,
    GroupKey,
    Role,
)
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClasses
from gangsched.core.objects.record import Minima
from gangsched.core.objects.shape import Soft
from gangsched.core.objects.workload import GANG, Reference, WorkloadFacts
from gangsched.core.planning.strategies import GPU_SUFFIX, PACK, named

MOST_KEPT = 16
"""What more different declarations of one gang say together is not kept: each member may have one of its own."""


def resolve(
    key: GroupKey,
    group: Group | None,
    members: Sequence[Pod],
    *,
    policy: Policy,
    priority_classes: PriorityClasses,
    foreign: Foreign,
    volumes: Volumes,
    devices: Devices,
    terminating: Container[str] = (),
) -> Terms:
    """The terms of the group with this key and PodGroup; `members` are those that count.

    Namespaces that are `terminating` are being deleted.
    """
    if key.pod_uid:
        terms = _alone(members, policy, volumes, devices)
        return replace(terms, hindrance=next(hindrances.terminating(key.namespace, terminating), terms.hindrance))
    oldest = min([pod.created for pod in members], default=0.0)
    says = _all_different(members)
    declared = _declared(says)
    objects = _objects(key, declared, foreign)
    specs = _specs(group, declared, objects)
    spec = derived(_completed(*specs.values()), members) if specs else _said_spec(declared, members)
    spec = completed(spec, key, says, foreign)
    if spec.max_schedule_time_s is None and len(declared.times) == 1:
        spec = replace(spec, max_schedule_time_s=declared.times[0])
    own_priority = max([pod.priority for pod in members], default=0)
    priority, lowered = priority_of(spec, own_priority, priority_classes, policy)
    users = group if group is not None and not group.made else None
    ours = users is not None and users.spec is not None and users.spec.max_schedule_time_s is not None
    default_s = policy.default_max_schedule_time_s if declared.default_s is None else declared.default_s
    line = instance_group(members, says, policy.fifo)
    found_hindrances = chain(
        hindrances.terminating(key.namespace, terminating),
        hindrances.unreadable(group, says, objects, members),
        hindrances.contradictions(declared, specs),
        () if specs or declared.minima else hindrances.undeclared(key, declared, foreign),
        hindrances.refused_fields(spec, policy, priority_classes),
        hindrances.unknown_roles(key, group, spec, members=members, says=says),
        hindrances.unsupported(members),
        unready_claims.unready(members, spec, volumes, devices),
    )
    return Terms(
        spec=spec,
        priority=priority,
        created=users.created if users is not None else min((other.created for other in objects), default=oldest),
        max_schedule_time_s=default_s if spec.max_schedule_time_s is None else spec.max_schedule_time_s,
        source=_source(group, says, objects),
        strategy=named(spec.strategy, policy.strategies),
        jitter_s=0.0 if ours else declared.jitter_s,
        keys=declared.keys,
        instance_group=line,
        fifo_after_s=policy.fifo.after_s_by_group.get(line, policy.fifo.after_s),
        max_hold_s=policy.max_hold_s,
        lowered=lowered,
        hindrance=next(found_hindrances, None),
        workload=next(filter(None, map(_reference, objects)), None),
        sequential_note=_sequential_note(spec, members, foreign, declared=users is not None),
        ignored=_ignored(objects, says),
    )


def _alone(members: Sequence[Pod], policy: Policy, volumes: Volumes, devices: Devices) -> Terms:
    """The terms of a pod without a group."""
    claims = unready_claims.unready(members, NO_TERMS.spec, volumes, devices)
    wants_gpu = any(resource.endswith(GPU_SUFFIX) for pod in members for resource, _ in pod.shape.requests)
    return replace(
        NO_TERMS,
        priority=min(max((pod.priority for pod in members), default=0), policy.max_priority),
        created=min((pod.created for pod in members), default=0.0),
        strategy=named(policy.gpu_strategy, policy.strategies) if wants_gpu else PACK,
        hindrance=next(chain(hindrances.unsupported(members), claims), None),
    )


def _all_different(members: Sequence[Pod]) -> tuple[Declaration, ...]:
    """The members' declarations; most members share one that is identical, so these are few."""
    return tuple(dict.fromkeys([pod.declaration for pod in members if pod.declaration is not None]))


@lru_cache(maxsize=MOST_CACHED)
def joined(says: tuple[Declaration, ...]) -> Declared:
    """What these declarations of members say together."""
    defaults = [say.default_time_s for say in says if say.default_time_s is not None]
    return Declared(
        says,
        keys=says[0].keys if says else OWN_KEYS,
        minima=_minima(says),
        times=sorted({say.max_schedule_time_s for say in says if say.max_schedule_time_s is not None}),
        lists=list(dict.fromkeys(say.roles for say in says if say.roles)),
        objects=list(dict.fromkeys((dialect, say.object_name) for say in says for dialect in say.objects)),
        default_s=max(defaults, default=None),
        jitter_s=max([say.jitter_s for say in says], default=0.0),
    )


def _declared(says: tuple[Declaration, ...]) -> Declared:
    """The same; for many that differ it is not kept."""
    return joined(says) if len(says) <= MOST_KEPT else joined.__wrapped__(says)


def declared_spec(key: GroupKey, group: Group | None, members: Sequence[Pod], foreign: Foreign) -> GroupSpec | None:
    """The spec of the group's PodGroup, else of another system's object that its members name; None without one.

    A PodGroup that gangsched created repeats what such an object said at the time; the object may have changed since.
    """
    if group is not None and not group.made:
        return group.spec
    says = _all_different(members)
    spec = next((other.spec for other in _objects(key, _declared(says), foreign)), None)
    if spec is not None:
        return completed(derived(spec, members), key, says, foreign)
    return group.spec if group is not None else None


def _ignored(objects: Sequence[ForeignGroup], says: Sequence[Declaration]) -> tuple[str, ...]:
    """The fields of the objects and the keys of the pods that are not honoured."""
    workloads = [other.workload for other in objects if other.workload is not None] if objects else ()
    sources: Iterable[ForeignGroup | WorkloadFacts | Declaration] = (*objects, *workloads, *says)
    return tuple(dict.fromkeys(ignored for source in sources for ignored in source.ignored))


def _objects(key: GroupKey, declared: Declared, foreign: Foreign) -> list[ForeignGroup]:
    """The other systems' objects that the pods declare to use, named like the group or like their workload.

    One of a workload says how many members this gang has, which need not be how many the next one will have.
    """
    if not declared.objects:
        return []
    named = dict.fromkeys((dialect, name or key.name) for dialect, name in declared.objects)
    objects = (foreign.find(dialect, GroupKey(key.namespace, name)) for dialect, name in named)
    return [as_made(group, declared.says) for group in objects if group is not None]


def said_minima(says: Sequence[Declaration]) -> Minima | None:
    """The group's minima, in all and by role, according to its pods alone; None if they say none, or disagree."""
    declared = _declared(tuple(dict.fromkeys(says)))
    if len(declared.minima) != 1 or len(declared.lists) > 1:
        return None
    roles = {role.name: role.min_member for role in declared.lists[0]} if declared.lists else {}
    return Minima(declared.minima[0], tuple(sorted(roles.items())))


def _minima(says: Sequence[Declaration]) -> list[int]:
    """All minima that the pods declare.

    Those that tell of how many the gang was made count before others. A pod that lists roles and has none itself counts
    in addition to the roles' members.
    """
    telling = [say for say in says if say.made_with is not None] or says
    minima = {say.min_member for say in telling if say.min_member is not None}
    listing = [say for say in says if say.roles]
    if listing:
        beside = any(not say.role for say in listing)
        minima |= {sum(role.min_member for role in say.roles) + beside for say in listing}
    return sorted(minima)


def _source(group: Group | None, says: Sequence[Declaration], objects: Sequence[ForeignGroup]) -> str:
    sources = [OWN_DIALECT] if group is not None and not (group.made and says) else []
    sources += [other.dialect for other in objects]
    parts = [OBJECT.format(OWN_DIALECT)] * (len(sources) > len(objects)) + list(map(_called, objects))
    return ", ".join(parts + [f"{say.source} pods" for say in says[:1] if say.source not in sources])


def _called(group: ForeignGroup) -> str:
    """The object's display name."""
    if group.dialect == COMPOSITE:
        return TREE
    return group.workload.title if group.workload is not None else OBJECT.format(group.dialect)


def _specs(group: Group | None, declared: Declared, objects: Sequence[ForeignGroup]) -> dict[str, GroupSpec]:
    """The specs of all objects that declare the group, by display name, most important first."""
    own = group.spec if group is not None else None
    if own is not None and group is not None and group.made:
        # gangsched created it from what pods said: it counts only where nothing else declares the terms.
        said_elsewhere = bool(declared.minima or objects or declared.objects)
        plain_roles = tuple(replace(role, template=None) for role in own.roles)
        own = None if said_elsewhere else replace(own, roles=plain_roles)
    specs = {} if own is None else {"PodGroup": own}
    if objects:
        specs |= {_called(other): other.spec for other in objects if other.spec is not None}
    return specs


def _said_spec(declared: Declared, members: Sequence[Pod]) -> GroupSpec:
    """The spec that the pods declare where no object declares the gang."""
    placing = declared.says[0].placement if declared.says else PACKED
    return GroupSpec(
        min_member=declared.minima[0] if len(declared.minima) == 1 else 1,
        roles=_shaped(declared.lists[0], members) if len(declared.lists) == 1 else (),
        strategy=placing.strategy,
        prefer=placing.prefer,
        topology=placing.topology,
    )


def _completed(spec: GroupSpec, *others: GroupSpec) -> GroupSpec:
    """The first object's terms, completed by those of the others."""
    for other in others:
        if spec.max_schedule_time_s is None:
            spec = replace(spec, max_schedule_time_s=other.max_schedule_time_s)
        if spec.priority is None and not spec.priority_class:
            spec = replace(spec, priority=other.priority, priority_class=other.priority_class)
        if not spec.min_resources:
            spec = replace(spec, min_resources=other.min_resources)
    return spec


def _shaped(roles: tuple[Role, ...], members: Sequence[Pod]) -> tuple[Role, ...]:
    """The roles; templates marked `like_declarer` get selectors and tolerations from the first pod that lists them."""
    if not any(role.like_declarer for role in roles):
        return roles
    declarer = next(pod for pod in members if pod.declaration is not None and pod.declaration.roles == roles)
    own = {"host_ports": (), "disks": (), "affinity": (), "anti_affinity": (), "spread": ()}
    like = replace(declarer.shape, unsupported=(), features=(), **own)
    terms = declarer.soft.node_terms if declarer.soft is not None else ()
    liked = Soft(terms) if terms else None
    return tuple(
        replace(
            role,
            template=replace(like, requests=role.template.requests),
            like_declarer=False,
            soft=liked,
        )
        if role.template is not None and role.like_declarer
        else role
        for role in roles
    )


def _sequential_note(spec: GroupSpec, members: Sequence[Pod], foreign: Foreign, *, declared: bool) -> str:
    """Why missing members cannot exist yet, and what to do, in a sentence; empty if no reason is known.

    `declared`: a PodGroup of gangsched's API declares the group.
    """
    first = next(iter(members), None)
    if first is None or any(role.template for role in spec.roles):
        return ""
    # The kinds of workloads are named as in Kubernetes, in lower case.
    owner, work = first.owner, first.workload
    automatic = f'annotate it {GANG}: "true" instead of naming a group on its pods'
    if owner is not None and (facts := _slow(foreign, owner.kind.lower(), first.namespace, owner.name, owner.uid)):
        return (
            f"The {owner.kind} {owner.name} creates each pod only once the ones before it are ready: {facts.remedy}, "
            f"or {'give the PodGroup a role with a template' if declared else automatic}."
        )
    if work is not None and (facts := _slow(foreign, work.kind, first.namespace, work.name, work.uid)):
        return (
            f"The {facts.title} {work.name} creates some pods only once others have a node or are ready: "
            f"{facts.remedy}, or {automatic}."
        )
    return ""


def _slow(foreign: Foreign, kind: str, namespace: str, name: str, uid: str) -> WorkloadFacts | None:
    """The workload of this UID, if any, that creates some of its pods only once others exist; else None."""
    group = foreign.find(kind, GroupKey(namespace, name))
    if group is None or group.workload is None or (uid and group.uid != uid) or not group.workload.remedy:
        return None
    return group.workload


def _reference(group: ForeignGroup) -> Reference | None:
    """A reference to the workload object that this is, if it is one."""
    facts = group.workload
    return Reference(facts.api_version, facts.title, group.key.name, group.uid) if facts is not None else None
