"""The API server's defaults for pods and nodes, as far as scheduling depends on them.

The rules are `SetDefaults_Pod`, `defaultHostNetworkPorts` and `SetDefaults_NodeStatus` in
k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, and `DefaultPodLevelResources` in pkg/api/pod/util.go, at v1.37.2. They
are idempotent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangsched.core.objects.quantity import InvalidQuantity, amount
from gangsched.core.objects.requests import pod_level_supported
from gangsched.whatif.world import pod_amounts
from gangsched.whatif.world.manifests import Manifest, ManifestError, mapping

Spec = dict[str, Any]

_RESOURCE_FIELDS: tuple[pod_amounts.ResourceField, ...] = ("requests", "limits")
_HUGE = "hugepages-"


def defaulted_pod_spec(spec: Mapping[str, Any], title: str) -> Spec:
    """A copy of the pod's spec with the API server's defaults, except those of the amounts that the pod states itself.

    `title` names the pod or workload in messages.

    Raises:
        ManifestError: the API server would refuse it.
    """
    containers = [_with_requests(container, title) for container in _listed(spec, "containers", title)]
    if not containers:
        raise ManifestError([f"{title}: the API server would refuse it without containers: write spec.containers"])
    init_containers = [_with_requests(container, title) for container in _listed(spec, "initContainers", title)]
    admitted = {
        **spec,
        "containers": containers,
        "initContainers": init_containers,
        "tolerations": list(_listed(spec, "tolerations", title)),
    }
    for field in _RESOURCE_FIELDS:
        check_quantities(mapping(spec.get("resources")).get(field), f"{title}: spec.resources.{field}")
    check_quantities(spec.get("overhead"), f"{title}: spec.overhead")
    if spec.get("hostNetwork") is True:
        admitted["containers"] = [_with_host_ports(container) for container in containers]
        admitted["initContainers"] = [_with_host_ports(container) for container in init_containers]
    return admitted


def with_pod_level(spec: Spec) -> Spec:
    """The spec of a pod with what it requests as a whole and is limited to, if it states any amount itself.

    It is filled in from its containers, after what admission gives these. The pod requests of cpu and memory what they
    do, and else what it is limited to. Where all of them are limited, so is the pod, but not below what it requests.
    """
    resources = mapping(spec.get("resources"))
    requests, limits = (mapping(resources.get(field)) for field in _RESOURCE_FIELDS)
    if not requests and not limits:
        return spec
    containers = [mapping(container.get("resources")) for container in (*spec["containers"], *spec["initContainers"])]
    most = _of_containers(spec, "limits")
    limits = {name: most[name] for name in most if name.startswith(_HUGE) and name not in requests} | {**limits}
    summed = _of_containers(spec, "requests")
    requests = {**limits, **{name: summed[name] for name in summed if name in ("cpu", "memory")}, **requests}
    limited = set(most).intersection(*(mapping(own.get("limits")) for own in containers))
    for name in sorted(limited & requests.keys() - limits.keys()):
        above = pod_amounts.exact({name: requests[name]})[name] > pod_amounts.exact({name: most[name]})[name]
        limits[name] = requests[name] if above else most[name]
    return {**spec, "resources": {**resources, "requests": requests, "limits": limits}}


def _of_containers(spec: Spec, field: pod_amounts.ResourceField) -> dict[str, Any]:
    """What the containers together request or are limited to, of the resources that a pod may state itself."""
    containers = (*spec["containers"], *spec["initContainers"])
    named = {name for container in containers for name in mapping(container, "resources", field)}
    total = pod_amounts.of_pod({**spec, "resources": None}, field, overhead=False)
    return {
        name: f"{total.get(name, 0)}m" if name == "cpu" else total.get(name, 0)
        for name in sorted(filter(pod_level_supported, named))
    }


def admitted_node(manifest: Manifest) -> Mapping[str, Any]:
    """The node with its allocatable resources: `status.allocatable`, else `status.capacity`."""
    status = manifest.status
    allocatable = status.get("allocatable")
    if allocatable is None:
        allocatable = status.get("capacity")
    check_quantities(allocatable, f"{manifest}: status.allocatable")
    return {**manifest.body, "status": {**status, "allocatable": allocatable}}


def _listed(spec: Mapping[str, Any], field: str, title: str) -> Iterator[Mapping[str, Any]]:
    items = spec.get(field) or ()
    if not isinstance(items, list | tuple) or not all(isinstance(item, Mapping) for item in items):
        raise ManifestError([f"{title}: spec.{field} must be a list of objects"])
    yield from items


def _with_requests(container: Mapping[str, Any], title: str) -> Spec:
    """Missing requests default to the limits."""
    resources = mapping(container.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    place = f"{title}: resources of container {container.get('name', '')}"
    check_quantities(limits, place)
    check_quantities(requests, place)
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def _with_host_ports(container: Spec) -> Spec:
    ports = container.get("ports") or ()
    return {
        **container,
        "ports": [
            {**port, "hostPort": port.get("hostPort") or port.get("containerPort")}
            for port in ports
            if isinstance(port, Mapping)
        ],
    }


def check_quantities(quantities: object, place: str) -> None:
    """Refuse what is not a mapping of resources to amounts of 0 or more; `place` names its place.

    Raises:
        ManifestError: the API server would refuse it.
    """
    if quantities is not None and not isinstance(quantities, Mapping):
        raise ManifestError([f"{place} must map resources to quantities, such as cpu: 500m"])
    for name, text in mapping(quantities).items():
        try:
            if isinstance(text, bool) or not isinstance(text, int | float | str):
                raise InvalidQuantity(text)  # noqa: TRY301 - the same message as for a text that is not a quantity
            if amount(str(name), text) < 0:
                raise ManifestError([f"{place}: {name}: {text!r} is negative: write an amount of 0 or more"])
        except InvalidQuantity as error:
            raise ManifestError([f"{place}: {name}: {error}"]) from None
