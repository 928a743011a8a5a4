"""Declarations of gangs for other operators in the manifests, which only those operators read.

They turn them into objects of their own, such as a PodGroup, when they create the pods. No such operator runs here, and
the controllers that are simulated here do not do it either.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangsched.whatif.world.manifests import Manifest

_RAY = "ray.io"
_RAY_LABELS = ("ray.io/gang-scheduling-enabled", "ray.io/scheduler-name", "ray.io/priority-class-name")
_JOB_SET = ("jobset.x-k8s.io", "JobSet")
_MINIMUM = "scheduling.volcano.sh/group-min-member"


def unused(manifest: Manifest) -> Iterator[str]:
    """The declarations of this object that are not used, each with the object."""
    whose = f"of {manifest.kind} {manifest.namespace}/{manifest.name}"
    if manifest.group == _RAY:
        yield from (f"the label {name} {whose}" for name in _RAY_LABELS if name in manifest.labels)
    if (manifest.group, manifest.kind) == _JOB_SET and manifest.spec.get("gangPolicy"):
        yield f"spec.gangPolicy {whose}"
    # On a pod itself it is read.
    if manifest.kind != "Pod" and _MINIMUM in manifest.annotations:
        yield f"the annotation {_MINIMUM} {whose}"
