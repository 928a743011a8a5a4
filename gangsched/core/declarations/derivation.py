"""Derives the shape of members that do not exist yet, in roles whose members are created only once others are ready.

A member that exists is a better pattern than the template of its controller's object: the API server has given it
defaults that the template leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.pod import Pod, by_age, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.shape import PodTerm, Requirement, Shape


def derived(spec: GroupSpec, members: Sequence[Pod]) -> GroupSpec:
    """The spec with its derived templates; the oldest member of a role, if any, provides the role's template.

    A pod that the API server has admitted has defaults that its controller's template leaves out.
    """
    if not any(role.derived for role in spec.roles):
        return spec
    first: dict[str, Pod] = {}
    for pod in sorted(members, key=by_age):
        first.setdefault(role_of(pod), pod)
    return replace(spec, roles=tuple(_like(role, first) for role in spec.roles))


def _like(role: Role, first: Mapping[str, Pod]) -> Role:
    """The role with the template that its first member gives, or else, if it has to be beside one, that member."""
    pod = first.get(role.name)
    if pod is None or not role.derived:
        if role.led or role.beside is not None:
            return replace(role, template=_beside(role, first))
        return role
    return replace(role, template=replace(pod.shape, unsupported=()), labels=pod.labels, soft=pod.soft)


def _beside(role: Role, first: Mapping[str, Pod]) -> Shape | None:
    """The template of a role whose members have to be in the domain of a member of another role; None without it."""
    found = role.beside
    leader = first.get(found.role) if found is not None else None
    if found is None or leader is None or role.template is None or found.label not in dict(leader.labels):
        return None
    mine = Requirement(found.label, "In", (dict(leader.labels)[found.label],))
    term = PodTerm(found.topology, (mine,), (leader.namespace,))
    return replace(role.template, affinity=(*role.template.affinity, term))
