"""The API server's defaults for pods and nodes, as far as scheduling depends on them.

The rules are `SetDefaults_Pod`, `defaultHostNetworkPorts` and `SetDefaults_NodeStatus` in
k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, and `defaultPodLevelRequests` in pkg/api/pod/util.go, at v1.37.2. They
are idempotent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gangsched.core.objects.quantity import InvalidQuantity, amount
from gangsched.whatif.world import pod_amounts
from gangsched.whatif.world.manifests import Manifest, ManifestError, mapping

Spec = dict[str, Any]


def defaulted_pod_spec(spec: Mapping[str, Any], title: str) -> Spec:
    """A copy of the pod's spec with the API server's defaults; `title` names the pod or workload in messages.

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
    if resources := mapping(spec.get("resources")):
        admitted["resources"] = _pod_level(resources, admitted, title)
    check_quantities(spec.get("overhead"), f"{title}: spec.overhead")
    if spec.get("hostNetwork") is True:
        admitted["containers"] = [_with_host_ports(container) for container in containers]
        admitted["initContainers"] = [_with_host_ports(container) for container in init_containers]
    return admitted


def admitted_node(manifest: Manifest) -> Mapping[str, Any]:
    """The node with its allocatable resources: `status.allocatable`, else `status.capacity`."""
    status = mapping(manifest.body.get("status"))
    allocatable = status.get("allocatable")
    if allocatable is None:
        allocatable = status.get("capacity")
    check_quantities(allocatable, f"{manifest}: status.allocatable")
    return {**manifest.body, "status": {**status, "allocatable": allocatable}}


def _listed(spec: Mapping[str, Any], field: str, title: str) -> Iterator[Mapping[str, Any]]:
    found = spec.get(field) or ()
    if not isinstance(found, list | tuple) or not all(isinstance(each, Mapping) for each in found):
        raise ManifestError([f"{title}: spec.{field} must be a list of objects"])
    yield from found


def _with_requests(container: Mapping[str, Any], title: str) -> Spec:
    """Missing requests default to the limits."""
    resources = mapping(container.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    where = f"{title}: resources of container {container.get('name', '')}"
    check_quantities(limits, where)
    check_quantities(requests, where)
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def _pod_level(resources: Mapping[str, Any], spec: Spec, title: str) -> Spec:
    """A pod that states amounts itself requests what its containers do of cpu and memory, else its limit.

    An amount that it requests itself stays.
    """
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    check_quantities(limits, f"{title}: spec.resources.limits")
    check_quantities(requests, f"{title}: spec.resources.requests")
    if not limits and not requests:
        return {**resources}
    asked = {name for each in (*spec["containers"], *spec["initContainers"]) for name in each["resources"]["requests"]}
    whole = pod_amounts.of_pod({**spec, "resources": None}, "requests", overhead=False)
    cpu, memory = f"{whole.get('cpu', 0)}m", whole.get("memory", 0)
    of_containers = {name: size for name, size in (("cpu", cpu), ("memory", memory)) if name in asked}
    return {**resources, "requests": {**limits, **of_containers, **requests}}


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


def check_quantities(found: object, where: str) -> None:
    """Refuse what is not a mapping of resources to amounts of 0 or more; `where` names its place.

    Raises:
        ManifestError: the API server would refuse it.
    """
    if found is not None and not isinstance(found, Mapping):
        raise ManifestError([f"{where} must map resources to quantities, such as cpu: 500m"])
    for name, text in mapping(found).items():
        try:
            if isinstance(text, bool) or not isinstance(text, int | float | str):
                raise InvalidQuantity(text)  # noqa: TRY301 - the same message as for a text that is not a quantity
            if amount(str(name), text) < 0:
                raise ManifestError([f"{where}: {name}: {text!r} is negative: write an amount of 0 or more"])
        except InvalidQuantity as error:
            raise ManifestError([f"{where}: {name}: {error}"]) from None
