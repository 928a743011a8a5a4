"""Kubernetes' own groups in a simulated cluster: those that controllers make for Jobs and from Workloads.

The Job controller makes one for each Job that states `spec.scheduling`, which exists only in Kubernetes 1.37 with the
feature gate WorkloadWithJob (pkg/controller/job/job_scheduling_manager.go and component-helpers' workloadbuilder at
v1.37.2). For other Jobs it makes one of the policy basic with that gate, which changes nothing, and none without it.

Which groups another controller makes from its Workload is not known, but its pods name them. A name is that of a
template, alone or after the name of the Workload, to which the workloadbuilder adds a hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gangsched.config.dialects import DIALECTS
from gangsched.core.objects.declaration import NATIVE
from gangsched.kube.dialects.native import template_of
from gangsched.whatif.world.made import Existing, is_controlled, owner_of, with_parts
from gangsched.whatif.world.manifests import Manifest, mapping, mappings

POD_GROUP, WORKLOAD = "PodGroup", "Workload"
GROUPS = tuple((version, POD_GROUP) for version in DIALECTS[NATIVE].resources[0].served_in)
WORKLOADS = tuple((version, WORKLOAD) for version in DIALECTS[NATIVE].resources[0].served_in)
"""Both kinds, by apiVersion and kind."""

_DELEGATED = "scheduling.k8s.io/group-template-name"
"""The annotation of a Job with the template of its owner's Workload from which its controller makes the group."""
_COPIED = ("schedulingConstraints", "disruptionMode", "resourceClaims", "priorityClassName")

Object = Mapping[str, Any]


def named_by(template: object) -> str:
    """The group that pods of this template, or a pod, name; empty if they name none."""
    spec = mapping(mapping(template).get("spec"))
    return str(mapping(spec.get("schedulingGroup")).get("podGroupName") or "")


def naming(template: object, group: Manifest) -> Object:
    """The pod template as the Job controller applies it: its pods name the group."""
    return with_parts(template, labels={}, annotations={}, schedulingGroup={"podGroupName": group.name})


def of_job(job: Manifest, existing: Existing) -> Manifest | None:
    """The group of this Job's pods: that in the files, or the one that its controller makes; None if there is none."""
    found = existing.made_by(job, POD_GROUP)
    if found is not None or named_by(job.spec.get("template")) or mapping(job.body.get("status")).get("startTime"):
        return found
    if is_controlled(job):
        return _delegated(job, existing)
    asked = mapping(job.spec.get("scheduling"))
    if not asked:
        return None
    policy = mapping(asked.get("schedulingPolicy")) or {"basic": {}}
    if "gang" in policy:
        parallelism = job.spec.get("parallelism", 1)
        least = mapping(policy["gang"]).get("minCount") or max(1, parallelism if isinstance(parallelism, int) else 1)
        policy = {"gang": {"minCount": least}}
    pods = mapping(mapping(job.spec.get("template")).get("spec"))
    template = {**asked, "schedulingPolicy": policy, "priorityClassName": pods.get("priorityClassName")}
    # Its real name has hashes of the Job's UID, around this name of the only template.
    name = f"{job.name}-pgt-0"
    return _group(job, name, template, workload=job.name, template_name=name, owned=True)


def _delegated(job: Manifest, existing: Existing) -> Manifest | None:
    wanted = mapping(job.metadata.get("annotations")).get(_DELEGATED)
    [owner] = [each for each in mappings(job.metadata.get("ownerReferences")) if each.get("controller") is True]
    for workload in existing.objects(job.namespace, WORKLOAD) if wanted else ():
        ref = mapping(workload.spec.get("controllerRef"))
        if (ref.get("kind"), ref.get("name")) == (owner.get("kind"), owner.get("name")):
            for template in _templates(workload):
                if template.get("name") == wanted:
                    name = f"{workload.name}-{wanted}-{job.name}"
                    return _group(job, name, template, workload=workload.name, template_name=str(wanted), owned=False)
    return None


def of_workload(workload: Manifest, names: Iterable[str]) -> Iterator[Manifest]:
    """The groups of these names, which pods name and which are not in the files, that come from its templates."""
    templates = {str(each.get("name")): each for each in _templates(workload)}
    for name in names:
        title = template_of(name, workload.name, templates)
        if title:
            yield _group(workload, name, templates[title], workload=workload.name, template_name=title, owned=False)


def _templates(workload: Manifest) -> Sequence[Object]:
    return mappings(workload.spec.get("podGroupTemplates"))


def _group(
    made_for: Manifest, name: str, template: Object, *, workload: str, template_name: str, owned: bool
) -> Manifest:
    """The PodGroup of that template; `owned` by the Workload too, as for a Job that belongs to nothing larger."""
    owners = [owner_of(made_for)] if made_for.kind != WORKLOAD else []
    if owned:
        owners.append({"apiVersion": GROUPS[0][0], "kind": WORKLOAD, "name": workload, "uid": ""})
    spec: dict[str, Any] = {
        "workloadRef": {"workloadName": workload, "templateName": template_name},
        "schedulingPolicy": template.get("schedulingPolicy"),
        **{key: template[key] for key in _COPIED if template.get(key) is not None},
    }
    metadata = {"name": name, "namespace": made_for.namespace, "ownerReferences": owners}
    version, kind = GROUPS[0]
    return replace(made_for, api_version=version, kind=kind, body={"metadata": metadata, "spec": spec})
