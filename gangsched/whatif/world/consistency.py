"""Whether a pod's requests and limits fit together, as the API server demands it of a pod that is created.

The rules are `validateContainerResourceRequirements` and `validatePodResourceConsistency` in
k8s.io/kubernetes/pkg/apis/core/validation/validation.go at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangsched.whatif.world import pod_amounts
from gangsched.whatif.world.manifests import ManifestError, mappings


def check(spec: Mapping[str, Any], title: str) -> None:
    """Refuse a pod whose amounts contradict each other; `title` names it, or the workload that makes it.

    Raises:
        ManifestError: the API server would refuse it.
    """
    if faults := [
        f"{title}: the API server would refuse it, because {why}: change one of them" for why in _faults(spec)
    ]:
        raise ManifestError(faults)


def _faults(spec: Mapping[str, Any]) -> Iterator[str]:
    containers = [*mappings(spec.get("containers")), *mappings(spec.get("initContainers"))]
    for container in (*containers, spec):
        requests, limits = (
            pod_amounts.of_container(container, "requests"),
            pod_amounts.of_container(container, "limits"),
        )
        holder = "the pod" if container is spec else f"container {container.get('name', '')}"
        for name, limit in limits.items():
            if requests.get(name, limit) > limit:
                yield f"the request of {name} of {holder} is above its limit"
    pod_level = {field: pod_amounts.of_container(spec, field) for field in ("requests", "limits")}
    total = pod_amounts.of_pod({**spec, "resources": None}, "requests", overhead=False)
    for name, request in pod_level["requests"].items():
        if total.get(name, 0) > request:
            yield f"its containers request more {name} than the pod"
    for container in containers:
        for name, limit in pod_amounts.of_container(container, "limits").items():
            if limit > pod_level["limits"].get(name, limit):
                yield f"the limit of {name} of container {container.get('name', '')} is above that of the pod"
