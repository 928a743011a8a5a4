"""Trees of Kubernetes' own groups: PodGroups below CompositePodGroups, of which only the root declares a group.

The tree is what the objects say at present: each names the one above it. It has at most MOST_LEVELS levels, those of
the PodGroups included, as in kube-scheduler (pkg/scheduler/framework/plugins/helper/podgroup.go). The PodGroups are the
roles of the group, and the objects above them say how many of those below are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter

from msgspec.structs import replace

from gangsched.core.declarations.minima import roles_in, tree
from gangsched.core.objects.declaration import COMPOSITE, NATIVE, Declaration, GroupKey, Level, Role
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.record import Minima

MOST_LEVELS = 4
"""The largest number of levels of a tree, those of the PodGroups included."""
MOST_LEAVES = 64
"""The largest number of PodGroups of a tree: as many as a PodGroup of ours may have roles."""
KINDS = {NATIVE: "PodGroup", COMPOSITE: "CompositePodGroup"}
"""What the objects of a tree are called, by the dialect under which they are filed."""
TREE_KINDS = frozenset(KINDS)

Groups = Mapping[str, Mapping[GroupKey, ForeignGroup]]
"""Objects by dialect and key."""
Below = Callable[[GroupKey], Sequence[ForeignGroup]]
"""The objects directly below the CompositePodGroup of this key, in order."""


def root_of(group: ForeignGroup | None, groups: Groups) -> str:
    """The name of the topmost object above this one that is known or named; empty if there is none.

    In a cycle it is the first of their names, and in a tree of too many levels the first object beyond them.
    """
    name = group.parent if group is not None else ""
    seen: list[str] = []
    while name and group is not None:
        if name in seen:
            return min(seen[seen.index(name) :])
        seen.append(name)
        above = groups.get(COMPOSITE, {}).get(GroupKey(group.key.namespace, name))
        if above is None or not above.parent or len(seen) == MOST_LEVELS:
            break
        name = above.parent
    return name


@lru_cache(4096)
def declared_below(declaration: Declaration, root: str) -> Declaration:
    """What a pod declares that names a native group which is a part of the tree of this root."""
    keys = replace(declaration.keys, kind=KINDS[COMPOSITE], noun=KINDS[COMPOSITE])
    return replace(
        declaration,
        group=root,
        role=declaration.group,
        source=COMPOSITE,
        keys=keys,
        objects=tuple(COMPOSITE if dialect == NATIVE else dialect for dialect in declaration.objects),
        open_roles=True,
        own=declaration,
    )


def whole(root: ForeignGroup, below: Below) -> ForeignGroup:
    """The root with the declaration of all of its tree; with an `error` if the tree cannot be read as one."""
    nodes: list[ForeignGroup] = []
    levels: list[tuple[int, Level]] = []
    try:
        least = _part(root, below, nodes, levels, 1)
    except ValueError as error:
        return replace(root, spec=None, error=f"{KINDS[COMPOSITE]} {root.key.name} {error}.")
    broken = next((node.error for node in nodes if node.error), "")
    if root.spec is None or broken:
        return replace(root, spec=None, error=broken)
    specs = {node.key.name: node.spec for node in nodes if node.dialect == NATIVE and node.spec is not None}
    roles = tuple(Role(name=name, min_member=spec.min_member) for name, spec in sorted(specs.items()))
    not_built = dict.fromkeys(field for node in nodes if node.spec is not None for field in node.spec.not_built)
    inner = tuple(level for _, level in sorted(levels, key=itemgetter(0)))
    return replace(
        root,
        spec=replace(
            root.spec, min_member=least.total, roles=roles, tree=least, levels=inner, not_built=tuple(not_built)
        ),
        ignored=tuple(dict.fromkeys(field for node in nodes for field in node.ignored)),
    )


def _part(
    group: ForeignGroup, below: Below, nodes: list[ForeignGroup], levels: list[tuple[int, Level]], level: int
) -> Minima:
    """What is needed of this object and those below it, which are added to `nodes`, and their topology to `levels`.

    Raises:
        ValueError: they are no tree that may exist; the message goes on after the name of its root.
    """
    name = f"{KINDS[group.dialect]} {group.key.name}"
    if nodes and group == nodes[0]:
        raise ValueError(f"is below itself, as {group.parent} is above it: delete one of the objects in between")
    if level > MOST_LEVELS or (level == MOST_LEVELS and group.dialect == COMPOSITE):
        raise ValueError(f"has more than {MOST_LEVELS} levels, because of the {name}: put that further up")
    nodes.append(group)
    if sum(node.dialect == NATIVE for node in nodes) > MOST_LEAVES:
        raise ValueError(f"has more than {MOST_LEAVES} PodGroups below it, the most that are supported: divide it")
    least = group.spec.min_member if group.spec is not None else 1
    if group.dialect == NATIVE:
        part = Minima(least, ((group.key.name, least),), (), name)
    else:
        parts = [_part(child, below, nodes, levels, level + 1) for child in below(group.key)]
        part = tree(parts, least=least, name=name)
    roles = tuple(roles_in(part))
    if level > 1 and roles and group.spec is not None and group.spec.topology is not None:
        levels.append((level, Level(group.spec.topology.key, roles)))
    return part
