"""Kubernetes' own groups: a field of the pod's spec that names a PodGroup of scheduling.k8s.io.

They are behind a feature gate of the API server. A group with the basic policy is no gang: its minimum is one pod, and
it never times out. Priority and topology apply as for a gang. Groups may form a tree, whose inner nodes are
CompositePodGroups (`core.declarations.trees`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from msgspec import Struct

from gangsched.config.dialects import Row
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import COMPOSITE, NATIVE, Topology
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.fields import honoured, needless, refused
from gangsched.kube.dialects.kind import Kind, at_least_one


class _Gang(Struct, gc=False, rename="camel"):
    min_count: int = 0


class _TreeGang(Struct, gc=False, rename="camel"):
    min_group_count: int = 0


class _Policy(Struct, gc=False):
    gang: _Gang | None = None
    basic: wire.Present | None = None


class _TreePolicy(Struct, gc=False):
    gang: _TreeGang | None = None
    basic: wire.Present | None = None


class _Level(Struct, gc=False):
    key: str = ""


class _Constraints(Struct, gc=False):
    topology: list[_Level] | None = None


class _Common(Struct, gc=False, rename="camel"):
    scheduling_constraints: _Constraints | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    parent_composite_pod_group_name: str | None = None


class _Spec(_Common, gc=False, rename="camel"):
    scheduling_policy: _Policy | None = None
    resource_claims: list[wire.Present] | None = None


class _TreeSpec(_Common, gc=False, rename="camel"):
    scheduling_policy: _TreePolicy | None = None


_FIELDS = (
    honoured("schedulingPolicy.gang.minCount", "the minimum, from 1"),
    honoured("schedulingPolicy.basic", "no gang: the pods are bound one by one and never time out"),
    honoured("schedulingConstraints.topology[].key", "all members in one domain of this label; several are refused"),
    honoured("priority", "the order of groups"),
    honoured("priorityClassName", "the order of groups, if there is no `priority`"),
    refused("resourceClaims", "always: give each pod claims of its own"),
    honoured("parentCompositePodGroupName", "the group is a part of a tree, which is bound as its root says"),
    needless("disruptionMode", "gangsched preempts nothing"),
    needless("preemptionPolicy", "gangsched preempts nothing"),
    needless("workloadRef", "says from what the group was made"),
    needless("podGroupTemplateRef", "says from what the group was made"),
)


_TREE_FIELDS = (
    honoured("schedulingPolicy.gang.minGroupCount", "so many of the groups below, from 1; the others are elastic"),
    honoured("schedulingPolicy.basic", "one group below is enough; a tree with such a root never times out"),
    honoured("parentCompositePodGroupName", "the tree, of at most 4 levels with the PodGroups"),
    honoured("schedulingConstraints.topology[].key", "all members below in one domain of this label"),
    honoured("priority", "at the root: the order of groups"),
    honoured("priorityClassName", "at the root: the order of groups, if there is no `priority`"),
    needless("disruptionMode", "gangsched preempts nothing"),
    needless("preemptionPolicy", "gangsched preempts nothing"),
    needless("workloadRef", "says from what the group was made"),
)


def _terms(spec: _Spec, _: wire.Meta) -> GroupSpec:
    policy = spec.scheduling_policy
    gang = policy.gang if policy is not None else None
    return _terms_of(spec, policy, "minCount", gang.min_count if gang is not None else 1)


def _tree_terms(spec: _TreeSpec, _: wire.Meta) -> GroupSpec:
    policy = spec.scheduling_policy
    gang = policy.gang if policy is not None else None
    return _terms_of(spec, policy, "minGroupCount", gang.min_group_count if gang is not None else 1)


def _terms_of(spec: _Common, policy: _Policy | _TreePolicy | None, minimum: str, least: int) -> GroupSpec:
    if policy is None or (policy.gang is None) == (policy.basic is None):
        raise ValueError("spec.schedulingPolicy does not have exactly one of gang and basic: write one of them")
    levels = (spec.scheduling_constraints.topology if spec.scheduling_constraints is not None else None) or []
    return GroupSpec(
        min_member=at_least_one(f"spec.schedulingPolicy.gang.{minimum}", least),
        max_schedule_time_s=inf if policy.gang is None else None,
        priority=spec.priority,
        priority_class=spec.priority_class_name or "",
        topology=Topology(levels[0].key) if levels else None,
        not_built=tuple(_refused(spec, levels)),
    )


def _refused(spec: _Common, levels: list[_Level]) -> Iterator[str]:
    if len(levels) > 1:
        yield "spec.schedulingConstraints.topology of several keys"
    if isinstance(spec, _Spec) and spec.resource_claims:
        yield "spec.resourceClaims"


def _parent(spec: _Common) -> str:
    return spec.parent_composite_pod_group_name or ""


def dialect(row: Row, _: Settings) -> Dialect:
    groups, composites = row.resources
    trees = Kind(
        resource=composites,
        spec=_TreeSpec,
        terms=_tree_terms,
        fields=_TREE_FIELDS,
        parent=_parent,
        within=NATIVE,
        title="CompositePodGroup",
    )
    kind = Kind(resource=groups, spec=_Spec, terms=_terms, fields=_FIELDS, parent=_parent)
    return Dialect(row=row, kind=kind, further={COMPOSITE: trees})
