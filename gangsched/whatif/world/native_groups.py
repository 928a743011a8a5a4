"""Kubernetes' own groups that the Job controller makes in a simulated cluster.

It makes one for each Job that states `spec.scheduling`, which exists only in Kubernetes 1.37 with the feature gate
WorkloadWithJob (pkg/controller/job/job_scheduling_manager.go and component-helpers' workloadbuilder at v1.37.2). For
other Jobs it makes one of the policy basic with that gate, which changes nothing, and none without it. A Job that has
started has its group if it states that field, because the API server drops the field where the gate is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangsched.whatif.world import job_scheduling
from gangsched.whatif.world.group_templates import GROUPS, POD_GROUP, WORKLOAD, group, templates
from gangsched.whatif.world.made import Existing, controller_of, owner_of, with_parts
from gangsched.whatif.world.manifests import Manifest, group_of, mapping

DELEGATED = "scheduling.k8s.io/group-template-name"
"""The annotation of a Job with the template of its owner's Workload from which its controller makes the group."""
_COPIED = ("schedulingConstraints", "disruptionMode", "resourceClaims")

Object = Mapping[str, Any]


def named_by(template: object) -> str:
    """The group that pods of this template, or a pod, name; empty if they name none."""
    return named_in(mapping(template, "spec"))


def named_in(spec: Object) -> str:
    """The group that a pod of this spec names; empty if it names none."""
    return str(mapping(spec.get("schedulingGroup")).get("podGroupName") or "")


def naming(template: object, pod_group: Manifest) -> Object:
    """The pod template as the Job controller applies it: its pods name the group."""
    return with_parts(template, labels={}, annotations={}, schedulingGroup={"podGroupName": pod_group.name})


def of_job(job: Manifest, existing: Existing) -> Manifest | None:
    """The group of this Job's pods: that in the files, or the one that its controller makes; None if there is none.

    Raises:
        ManifestError: the API server would refuse the Job's `spec.scheduling`.
    """
    scheduling = job.spec.get("scheduling")
    least = job_scheduling.minimum(job) if scheduling is not None else None
    named = next(filter(None, (named_in(pod.spec) for pod in existing.pods_of(job))), "")
    pod_group = existing.made_by(job, POD_GROUP) or existing.object(job.namespace, POD_GROUP, named)
    if pod_group is not None or named_by(job.spec.get("template")):
        return pod_group
    if controller_of(job):
        return _delegated(job, existing, named)
    if scheduling is None:
        return None
    pods = mapping(job.spec, "template", "spec")
    template = {
        "schedulingPolicy": {"basic": {}} if least is None else {"gang": {"minCount": least}},
        "priorityClassName": pods.get("priorityClassName"),
        **{key: scheduling.get(key) for key in _COPIED},
    }
    # Its real name has hashes of the Job's UID, around this name of the only template.
    title = f"{job.name}-pgt-0"
    workload = {"apiVersion": GROUPS[0][0], "kind": WORKLOAD, "name": job.name, "uid": ""}
    return group(job, GROUPS[0], named or title, template, origin=(job.name, title), owners=[owner_of(job), workload])


def _delegated(job: Manifest, existing: Existing, named: str) -> Manifest | None:
    """The group of the template that the Job names, or else of the first one, of the Workload of the Job's owner.

    It is called as its pods call it in `named`.
    """
    template_name = job.annotations.get(DELEGATED)
    owner = controller_of(job)
    by = (group_of(owner.get("apiVersion")), owner.get("kind"), owner.get("name"))
    for workload in existing.objects(job.namespace, WORKLOAD) if template_name is not None else ():
        ref = mapping(workload.spec.get("controllerRef"))
        if (ref.get("apiGroup") or "", ref.get("kind"), ref.get("name")) == by:
            for template in templates(workload):
                title = str(template.get("name") or "")
                if template_name in ("", title):
                    name = named or f"{workload.name}-{title}-{job.name}"
                    origin = (workload.name, title)
                    return group(job, GROUPS[0], name, template, origin=origin, owners=[owner_of(job)])
    return None
