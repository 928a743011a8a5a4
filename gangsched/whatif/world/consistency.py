"""Whether a pod's amounts, tolerations and labels are what the API server demands of a pod that is created.

The rules are `ValidateContainerResourceName`, `ValidateResourceQuantityValue`, `validateContainerResourceRequirements`,
`validatePodResourceConsistency` and `ValidateTolerations` in k8s.io/kubernetes/pkg/apis/core/validation/validation.go
at v1.37.2, with the default feature gates, and those of label values in k8s.io/apimachinery.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from gangsched.core.objects.requests import of_plugin, pod_level_supported
from gangsched.core.objects.selectors import is_label_value
from gangsched.whatif.world import pod_amounts
from gangsched.whatif.world.manifests import NotAdmittedError, mapping, mappings

_EQUAL, _EXISTS = "Equal", "Exists"


def check(spec: Mapping[str, Any], written: Mapping[str, Any], givers: Sequence[str] = ()) -> None:
    """Refuse a pod whose amounts contradict each other or are of nothing, or that tolerates in an unknown way.

    `written` is its spec before the `givers`, LimitRanges by name, gave it amounts.

    Raises:
        NotAdmittedError: the API server would refuse it.
    """
    own = set(_contradictions(written))
    origin = f", with the defaults of LimitRange {' and '.join(givers)}" if givers else ""
    faults = [f"{why}{'' if why in own else origin}: change one of them" for why in _contradictions(spec)]
    faults += [*_unknown_resources(spec), *_limits_that_lack(spec), *_unknown_operators(spec)]
    if faults:
        raise NotAdmittedError(faults)


def check_labels(body: Mapping[str, Any]) -> None:
    """Refuse a pod, or a workload with templates of pods, that has a label of an impossible value.

    Raises:
        NotAdmittedError: the API server would refuse it.
    """
    labels = chain.from_iterable(mapping(template, "metadata", "labels").items() for template in _templates(body))
    faults = [
        f"the label {key} has the value {value!r}: write at most 63 letters, digits, '-', '_' and '.', with a "
        "letter or digit at both ends"
        for key, value in labels
        if isinstance(value, str) and not is_label_value(value)
    ]
    if faults:
        raise NotAdmittedError(faults)


def _templates(value: object) -> Iterator[Mapping[str, Any]]:
    """The templates of pods in an object, or the object itself if it is a pod."""
    if isinstance(value, Mapping):
        if mapping(value.get("spec")).get("containers"):
            yield value
        else:
            yield from chain.from_iterable(map(_templates, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_templates, value))


def _unknown_operators(spec: Mapping[str, Any]) -> Iterator[str]:
    for toleration in mappings(spec.get("tolerations")):
        key, operator = toleration.get("key"), toleration.get("operator") or _EQUAL
        if operator not in (_EQUAL, _EXISTS):
            yield f"a toleration has the operator {operator}: write {_EQUAL} or {_EXISTS}"
        elif operator == _EXISTS and toleration.get("value"):
            yield f"a toleration of {key or 'every taint'} has a value and the operator {_EXISTS}: remove the value"
        elif operator == _EQUAL and not key:
            yield f"a toleration has no key: name one, or write the operator {_EXISTS}"


def _unknown_resources(spec: Mapping[str, Any]) -> Iterator[str]:
    """Resources without a domain that are none of containers, such as `pods`, and parts of what is counted."""
    for container in pod_amounts.containers(spec):
        holder = f"container {container.get('name', '')}"
        limits, requests = (pod_amounts.of_container(container, field) for field in ("limits", "requests"))
        for name, amount in (limits | requests).items():
            known = "/" in name or pod_level_supported(name) or name == "ephemeral-storage"
            if not known or name.startswith("requests."):
                yield f"{holder} asks for {name}, which no container can: write the whole name, such as nvidia.com/gpu"
            elif of_plugin(name) and amount % 1:
                yield f"{holder} asks for a part of one {name}: ask for a whole number"


def _limits_that_lack(spec: Mapping[str, Any]) -> Iterator[str]:
    """Resources that cannot be overcommitted: huge pages, and those that device plug-ins and others extend nodes by."""
    for container in (*pod_amounts.containers(spec), spec):
        requests, limits = (pod_amounts.of_container(container, field) for field in ("requests", "limits"))
        for name, request in requests.items():
            whole = of_plugin(name) or name.startswith("hugepages-")
            if whole and limits.get(name) != request and request <= limits.get(name, request):
                holder = "the pod" if container is spec else f"container {container.get('name', '')}"
                yield f"{holder} requests {name} without an equal limit: set the limit to the request"


def _contradictions(spec: Mapping[str, Any]) -> Iterator[str]:
    containers = pod_amounts.containers(spec)
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
