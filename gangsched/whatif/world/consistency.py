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
    if found := [
        f"{title}: the API server would refuse it, because {why}: change one of them" for why in _faults(spec)
    ]:
        raise ManifestError(found)


def _faults(spec: Mapping[str, Any]) -> Iterator[str]:
    containers = [*mappings(spec.get("containers")), *mappings(spec.get("initContainers"))]
    for each in (*containers, spec):
        requests, limits = pod_amounts.of_container(each, "requests"), pod_amounts.of_container(each, "limits")
        where = "the pod" if each is spec else f"container {each.get('name', '')}"
        for name, limit in limits.items():
            if requests.get(name, limit) > limit:
                yield f"the request of {name} of {where} is above its limit"
    whole = {which: pod_amounts.of_container(spec, which) for which in ("requests", "limits")}
    asked = pod_amounts.of_pod({**spec, "resources": None}, "requests", overhead=False)
    for name, request in whole["requests"].items():
        if asked.get(name, 0) > request:
            yield f"its containers request more {name} than the pod"
    for each in containers:
        for name, limit in pod_amounts.of_container(each, "limits").items():
            if limit > whole["limits"].get(name, limit):
                yield f"the limit of {name} of container {each.get('name', '')} is above that of the pod"
