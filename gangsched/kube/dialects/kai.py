"""KAI: an annotation that names its PodGroup, whose subgroups are roles.

Only the leaves of a tree of subgroups have pods, so the leaves are the roles. They are equivalent to the tree if every
subgroup is required; otherwise minSubGroup says how many are (`GroupSpec.tree`). A minimum of a subgroup that is larger
than those of its leaves together is refused by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from gangsched.config.dialects import DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.core.declarations.minima import tree
from gangsched.core.objects.declaration import Level, Topology
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.record import Minima
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.dialect_fields import honoured, needless, refused, told
from gangsched.kube.dialects.dialect_kind import MOST_ROLES, Kind, roles, total

_PREEMPTED = "priorities decide who is preempted, also of groups that KAI never preempts"
_QUEUE = "queues and their quota are not enforced"
_SHARED = "a pod that asks for a part of a GPU in this way is refused, in any group or none"


class _TopologyConstraint(Struct, gc=False, rename="camel"):
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class _SubGroup(Struct, gc=False, rename="camel"):
    name: str = ""
    min_member: int | None = None
    min_sub_group: int | None = None
    parent: str | None = None
    topology_constraint: _TopologyConstraint | None = None


class _KaiSpec(Struct, gc=False, rename="camel"):
    min_member: int = 0
    min_sub_group: int | None = None
    priority_class_name: str | None = None
    topology_constraint: _TopologyConstraint | None = None
    sub_groups: list[_SubGroup] | None = None


_FIELDS = (
    honoured("minMember", "the minimum; may be omitted if subgroups have minima"),
    honoured("minSubGroup", "so many subgroups, all of them by default; more than there are is refused"),
    honoured("priorityClassName", "the order of groups"),
    honoured("topologyConstraint.requiredTopologyLevel", "all members in one domain of this node label"),
    honoured(
        "topologyConstraint.preferredTopologyLevel",
        "in as few domains of this node label as possible; beside a required level it is not honoured, which is told",
    ),
    needless("topologyConstraint.topology", "the levels are node labels, so that the Topology is not needed"),
    honoured("subGroups[].name", "the leaves of the tree are roles"),
    honoured("subGroups[].minMember", "a role's minimum, 1 by default"),
    honoured("subGroups[].minSubGroup", "so many of the subgroups below; more than there are is refused"),
    honoured("subGroups[].parent", "the tree"),
    honoured(
        "subGroups[].topologyConstraint.requiredTopologyLevel",
        "all members of the subgroup in one domain of this node label; with a minimum of 0 it is refused",
    ),
    told("subGroups[].topologyConstraint.preferredTopologyLevel", "subgroups are not kept together"),
    needless("subGroups[].topologyConstraint.topology", "the levels are node labels"),
    told("queue", _QUEUE),
    told("preemptibility", _PREEMPTED, usual=("preemptible",)),
    needless("markUnschedulable", "gangsched always says on the pods why they wait"),
    needless("schedulingBackoff", "gangsched's own back-off applies"),
)
_TEXTS = (
    refused(Key("gpu-fraction"), _SHARED),
    refused(Key("gpu-memory"), _SHARED),
    needless(Key("gpu-fraction-num-devices"), "part of a request that is refused"),
    needless(Key("gpu-fraction-container-name"), "part of a request that is refused"),
    told(Key("kai.scheduler/queue", label=True), _QUEUE),
    told(
        Key("kai.scheduler/node-pool", label=True),
        "the pool's nodes are not singled out: use a nodeSelector",
        usual=("default",),
    ),
    told(Key("kai.scheduler/preemptibility", label=True), _PREEMPTED, usual=("preemptible",)),
)


def _terms(spec: _KaiSpec, _: wire.Meta) -> GroupSpec:
    parts = spec.sub_groups or []
    names = Counter(part.name for part in parts)
    parents = {part.parent for part in parts if part.parent}
    _check_tree(parts, names, parents)
    leaves = [part for part in parts if part.name not in parents]
    minima = {part.name: _least(part) for part in leaves}
    leaf_roles = roles("spec.subGroups", minima, field_of_each=".minMember")
    levels = _levels(parts)
    selective = any(number is not None and number != below for number, below in _sub_group_minima(spec, parts))
    chosen = _tree(spec.min_sub_group, "", parts) if selective or levels else None
    return GroupSpec(
        min_member=total(spec.min_member, leaf_roles) if chosen is None else chosen.total,
        roles=leaf_roles,
        tree=chosen,
        levels=levels,
        priority_class=spec.priority_class_name or "",
        topology=_topology(spec.topology_constraint),
        not_built=tuple(_refused(spec, minima, chosen)),
    )


def _check_tree(parts: list[_SubGroup], names: Counter[str], parents: set[str]) -> None:
    if len(parts) > MOST_ROLES:
        raise ValueError(f"spec.subGroups has {len(parts)} entries: write at most {MOST_ROLES}")
    twice = next((name for name, number in names.items() if number > 1 or not name), None)
    if twice is not None:
        raise ValueError(f"spec.subGroups has an empty or duplicate name {twice!r}: give each of them a unique name")
    unknown = next(iter(sorted(parents - names.keys())), None)
    if unknown is not None:
        raise ValueError(f"spec.subGroups names the parent {unknown!r}, which is not among them: add it or correct it")
    above = {part.name: part.parent for part in parts}
    for part in parts:
        step, steps = part.parent, 0
        while step and steps <= len(parts):
            step, steps = above[step], steps + 1
        if step:
            raise ValueError(f"spec.subGroups ({part.name}) is its own ancestor: correct the parents")


def _least(part: _SubGroup) -> int:
    return 1 if part.min_member is None else part.min_member


def _topology(constraint: _TopologyConstraint | None) -> Topology | None:
    """The topology. In KAI's Topology, too, a level is a node label."""
    if constraint is None:
        return None
    if constraint.required_topology_level:
        return Topology(constraint.required_topology_level)
    return (
        Topology(constraint.preferred_topology_level, required=False) if constraint.preferred_topology_level else None
    )


def _sub_group_minima(spec: _KaiSpec, parts: list[_SubGroup]) -> Iterator[tuple[int | None, int]]:
    """Each minSubGroup, with the number of subgroups of which it is a part."""
    children = Counter(part.parent or "" for part in parts)
    yield spec.min_sub_group, children[""]
    for part in parts:
        yield part.min_sub_group, children[part.name]


def _leaves(name: str, parts: list[_SubGroup]) -> tuple[str, ...]:
    """The leaves of the subgroup of this name, which may be one itself."""
    below = [part.name for part in parts if part.parent == name]
    return tuple(leaf for child in below for leaf in _leaves(child, parts)) if below else (name,)


def _levels(parts: list[_SubGroup]) -> tuple[Level, ...]:
    """The required topology levels of subgroups, outer ones first."""
    levels = [
        Level(constraint.required_topology_level, _leaves(part.name, parts))
        for part in parts
        if (constraint := part.topology_constraint) is not None and constraint.required_topology_level
    ]
    return tuple(sorted(levels, key=lambda level: -len(level.roles)))


def _tree(number: int | None, name: str, parts: list[_SubGroup]) -> Minima:
    """What is needed below the subgroup of this name, or in all without one."""
    below = [part for part in parts if (part.parent or "") == name]
    children = [
        _tree(part.min_sub_group, part.name, parts)
        if any(other.parent == part.name for other in parts)
        else Minima(_least(part), ((part.name, _least(part)),), (), f"subgroup {part.name}")
        for part in below
    ]
    least = len(below) if number is None else number
    return tree(children, least=least, name=f"subgroup {name}" if name else "group")


def _refused(spec: _KaiSpec, minima: dict[str, int], chosen: Minima | None) -> Iterator[str]:
    parts = spec.sub_groups or []
    if any(number is not None and not 0 < number <= max(1, below) for number, below in _sub_group_minima(spec, parts)):
        yield "a minSubGroup of 0, or above the number of subgroups"
    if chosen is not None and spec.min_member > chosen.total:
        yield "spec.minMember above what the needed subgroups ask for"
    for part in parts:
        if part.name not in minima and (part.min_member or 0) > _under(part.name, parts, minima):
            yield f"spec.subGroups ({part.name}).minMember above the sum of its subgroups'"
        leveled = part.topology_constraint is not None and part.topology_constraint.required_topology_level
        if leveled and not all(minima[leaf] for leaf in _leaves(part.name, parts)):
            yield f"spec.subGroups ({part.name}).topologyConstraint.requiredTopologyLevel with a minimum of 0"


def _under(name: str, parts: list[_SubGroup], minima: dict[str, int]) -> int:
    """The sum of the minima of the leaves below the subgroup."""
    below = [part.name for part in parts if part.parent == name]
    return sum(minima[child] if child in minima else _under(child, parts, minima) for child in below)


def _also_ignored(spec: _KaiSpec, _: wire.Meta) -> Iterator[str]:
    """Fields that are honoured only where another one is not set."""
    topology = spec.topology_constraint
    if topology is not None and topology.required_topology_level and topology.preferred_topology_level:
        yield "spec.topologyConstraint.preferredTopologyLevel"


def dialect(row: DialectRow, _: Settings) -> Dialect:
    kind = Kind(resource=row.resources[0], spec=_KaiSpec, terms=_terms, fields=_FIELDS, also_ignored=_also_ignored)
    return Dialect(row=row, kind=kind, texts=_TEXTS)
