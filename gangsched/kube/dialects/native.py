"""Kubernetes' own groups: a field of the pod's spec that names a PodGroup of scheduling.k8s.io.

They are behind a feature gate of the API server. A group with the basic policy is no gang: its minimum is one pod, and
it never times out. Priority and topology apply as for a gang. Groups may form a tree, whose inner nodes are
CompositePodGroups (`core.declarations.trees`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from math import inf

from msgspec import Struct

from gangsched.config.dialects import DialectRow
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import COMPOSITE, NATIVE, Topology
from gangsched.core.objects.pod import DeviceUse
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.dialect_fields import honoured, needless
from gangsched.kube.dialects.dialect_kind import Kind, at_least_one
from gangsched.kube.dialects.native_condition import read_condition


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


class _Claim(Struct, gc=False, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _Disruption(Struct, gc=False):
    all: wire.Present | None = None


class _Common(Struct, gc=False, rename="camel"):
    scheduling_constraints: _Constraints | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    parent_composite_pod_group_name: str | None = None
    disruption_mode: str | _Disruption | None = None
    preemption_policy: str | None = None


class _NativeGroupSpec(_Common, gc=False, rename="camel"):
    scheduling_policy: _Policy | None = None
    resource_claims: list[_Claim] | None = None
    workload_ref: wire.Present | None = None


class _TreeSpec(_Common, gc=False, rename="camel"):
    scheduling_policy: _TreePolicy | None = None


_PREEMPTS = honoured("preemptionPolicy", "`Never`: nobody is preempted for the group")
_FIELDS = (
    honoured("schedulingPolicy.gang.minCount", "the minimum, from 1"),
    honoured("schedulingPolicy.basic", "no gang: the pods are bound one by one and never time out"),
    honoured("schedulingConstraints.topology[].key", "all members in one domain of this label; several are refused"),
    honoured("priority", "the order of groups; 0 without a class counts as none, see below"),
    honoured("priorityClassName", "the order of groups, if there is no `priority`"),
    honoured(
        "resourceClaims[].resourceClaimName",
        "members share this ResourceClaim: allocated once, usable on the nodes of all, and reserved for the group",
    ),
    honoured("resourceClaims[].resourceClaimTemplateName", "the same with the claim that Kubernetes makes from it"),
    honoured("resourceClaims[].name", "only pods whose claim has this name, and names the same, share it"),
    honoured("parentCompositePodGroupName", "the group is a part of a tree, which is bound as its root says"),
    honoured(
        "disruptionMode",
        "`all`: if it is preempted, all members leave together; `single`: one by one; a tree always leaves as a whole",
    ),
    _PREEMPTS,
    honoured("workloadRef", "a Job's group of a Workload that does not own it is asked for by the Job's owner"),
    needless("podGroupTemplateRef", "says from what the group was made"),
)


def template_of(group: str, workload: str, templates: Iterable[str]) -> str:
    """The one of these templates of a Workload from which a PodGroup of this name is made; empty if it is of none.

    A controller names it after the template, alone or after the Workload, and component-helpers' workloadbuilder adds a
    hash to both. The longest template that fits counts.
    """
    for title in sorted(templates, key=len, reverse=True):
        full_name = f"{workload}-{title}"
        if group in (title, full_name) or group.startswith(f"{full_name}-"):
            return title
    return ""


_CREATE = (
    "the controller of its pods makes it from a template of its Workload, and until then kube-scheduler too would bind "
    "none of them; see the Events of that controller's object, or create it yourself"
)
_TREE_FIELDS = (
    honoured("schedulingPolicy.gang.minGroupCount", "so many of the groups below, from 1; the others are elastic"),
    honoured("schedulingPolicy.basic", "one group below is enough; a tree with such a root never times out"),
    honoured("parentCompositePodGroupName", "the tree, of at most 4 levels with the PodGroups"),
    honoured("schedulingConstraints.topology[].key", "all members below in one domain of this label"),
    honoured("priority", "at the root: the order of groups"),
    honoured("priorityClassName", "at the root: the order of groups, if there is no `priority`"),
    honoured("disruptionMode", "`all`; with `single` too a tree that is preempted leaves as a whole"),
    _PREEMPTS,
    needless("workloadRef", "says from what the group was made"),
)


def _terms(spec: _NativeGroupSpec, _: wire.Meta) -> GroupSpec:
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
        priority=_priority(spec),
        priority_class=spec.priority_class_name or "",
        topology=Topology(levels[0].key) if levels else None,
        device_claims=tuple(map(_shared, (spec.resource_claims or ()) if isinstance(spec, _NativeGroupSpec) else ())),
        preempted_whole=_is_preempted_whole(spec),
        preempts=spec.preemption_policy != "Never",
        not_built=tuple(_refused(levels)),
    )


def _priority(spec: _Common) -> int | None:
    """The priority that the group asks for.

    Admission sets 0 if the group names no class and the cluster has no default one: plugin/pkg/admission/priority.
    """
    return spec.priority if spec.priority or spec.priority_class_name else None


def _is_preempted_whole(spec: _Common) -> bool:
    """Whether `disruptionMode` is all; 1.36 calls that PodGroup."""
    mode = spec.disruption_mode
    return mode == "PodGroup" if mode is None or isinstance(mode, str) else mode.all is not None


def _refused(levels: list[_Level]) -> Iterator[str]:
    if len(levels) > 1:
        yield "spec.schedulingConstraints.topology of several keys"


def _parent(spec: _Common) -> str:
    return spec.parent_composite_pod_group_name or ""


def _shared(claim: _Claim) -> DeviceUse:
    return DeviceUse(claim.name, claim.resource_claim_name or "", claim.resource_claim_template_name or "")


def dialect(row: DialectRow, settings: Settings) -> Dialect:
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
    kind = Kind(
        resource=groups,
        spec=_NativeGroupSpec,
        terms=_terms,
        fields=_FIELDS,
        parent=_parent,
        templated=lambda spec: spec.workload_ref is not None,
        phase=partial(read_condition, writable=settings.native.write_condition),
    )
    return Dialect(row=row, create=_CREATE, kind=kind, further={COMPOSITE: trees})
