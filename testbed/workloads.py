"""Manifests of gangs for tests, demo and benchmarks, as a user would write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

SCHEDULER = "gangsched"


def pod_group(name: str, *, min_member: int, **spec: object) -> Json:
    """A PodGroup; `spec` holds further fields by their API names, such as maxScheduleTime."""
    return {
        "apiVersion": "gangsched.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": min_member, **spec},
    }


def member(
    name: str,
    group: str = "",
    *,
    requests: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    scheduler: str = SCHEDULER,
    **spec: object,
) -> Json:
    """A pod of the group, or of none if empty. Extended resources are also limits, as the API requires."""
    amounts = dict({"cpu": "1"} if requests is None else requests)
    limits = {resource: amount for resource, amount in amounts.items() if "/" in resource}
    own = {"gangsched.io/pod-group": group} if group else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": own | dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.invalid/sleep",
                    "resources": {"requests": amounts, "limits": limits},
                }
            ],
            **spec,
        },
    }


def pod_template(group: str, *, labels: Mapping[str, str] | None = None, **spec: object) -> Json:
    """The pod template from which the owner of the group creates its members."""
    pod = member("", group, labels=labels)
    return {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"] | spec}
