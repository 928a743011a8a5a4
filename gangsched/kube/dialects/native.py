"""Kubernetes' own groups: a field of the pod's spec that names a PodGroup of scheduling.k8s.io.

They are behind a feature gate of the API server. A group with the basic policy is no gang: its minimum is one pod, and
it never times out. Priority and topology apply as for a gang.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from msgspec import Struct

from gangsched.config.dialects import Row
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.fields import honoured, needless, refused
from gangsched.kube.dialects.kind import Kind, at_least_one


class _Gang(Struct, gc=False, rename="camel"):
    min_count: int = 0


class _Policy(Struct, gc=False):
    gang: _Gang | None = None
    basic: wire.Present | None = None


class _Level(Struct, gc=False):
    key: str = ""


class _Constraints(Struct, gc=False):
    topology: list[_Level] | None = None


class _Spec(Struct, gc=False, rename="camel"):
    scheduling_policy: _Policy | None = None
    scheduling_constraints: _Constraints | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    parent_composite_pod_group_name: str | None = None
    resource_claims: list[wire.Present] | None = None


_FIELDS = (
    honoured("schedulingPolicy.gang.minCount", "the minimum, from 1"),
    honoured("schedulingPolicy.basic", "no gang: the pods are bound one by one and never time out"),
    honoured("schedulingConstraints.topology[].key", "all members in one domain of this label; several are refused"),
    honoured("priority", "the order of groups"),
    honoured("priorityClassName", "the order of groups, if there is no `priority`"),
    refused("resourceClaims", "always: give each pod claims of its own"),
    refused("parentCompositePodGroupName", "always: the parts would be scheduled separately"),
    needless("disruptionMode", "gangsched preempts nothing"),
    needless("preemptionPolicy", "gangsched preempts nothing"),
    needless("workloadRef", "says from what the group was made"),
    needless("podGroupTemplateRef", "says from what the group was made"),
)


def template_of(group: str, workload: str, templates: Iterable[str]) -> str:
    """The one of these templates of a Workload from which a PodGroup of this name is made; empty if it is of none.

    A controller names it after the template, alone or after the Workload, and component-helpers' workloadbuilder adds a
    hash to both. The longest template that fits counts.
    """
    for title in sorted(templates, key=len, reverse=True):
        whole = f"{workload}-{title}"
        if group in (title, whole) or group.startswith(f"{whole}-"):
            return title
    return ""


_CREATE = (
    "the controller of its pods makes it from a template of its Workload, and until then kube-scheduler too would bind "
    "none of them; see the Events of that controller's object, or create the PodGroup"
)


def _terms(spec: _Spec, _: wire.Meta) -> GroupSpec:
    policy = spec.scheduling_policy
    if policy is None or (policy.gang is None) == (policy.basic is None):
        raise ValueError("spec.schedulingPolicy does not have exactly one of gang and basic: write one of them")
    least = 1 if policy.gang is None else at_least_one("spec.schedulingPolicy.gang.minCount", policy.gang.min_count)
    levels = (spec.scheduling_constraints.topology if spec.scheduling_constraints is not None else None) or []
    return GroupSpec(
        min_member=least,
        max_schedule_time_s=inf if policy.gang is None else None,
        priority=spec.priority,
        priority_class=spec.priority_class_name or "",
        topology=Topology(levels[0].key) if levels else None,
        not_built=tuple(_refused(spec, levels)),
    )


def _refused(spec: _Spec, levels: list[_Level]) -> Iterator[str]:
    if len(levels) > 1:
        yield "spec.schedulingConstraints.topology of several keys"
    if spec.parent_composite_pod_group_name:
        yield "spec.parentCompositePodGroupName"
    if spec.resource_claims:
        yield "spec.resourceClaims"


def dialect(row: Row, _: Settings) -> Dialect:
    return Dialect(
        row=row, create=_CREATE, kind=Kind(resource=row.resources[0], spec=_Spec, terms=_terms, fields=_FIELDS)
    )
