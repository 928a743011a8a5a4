"""Reads the template of pods that a controller creates only once others are ready, to reserve placeholders for them.

Only the fields that decide where a pod may run are decoded, never environments, volumes or commands. The API server's
defaults for pods are filled in (`SetDefaults_Pod` and `defaultHostNetworkPorts` in
k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, `defaultPodLevelRequests` in pkg/api/pod/util.go, at v1.37.2), and what
LimitRanges and RuntimeClasses add. Changes by webhooks are not known here.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.shape import Labels, Shape
from gangsched.core.objects.wording import printable
from gangsched.kube import wire
from gangsched.kube.terms import preferences, shapes
from gangsched.kube.terms.pod_defaults import filled
from gangsched.kube.terms.pod_terms import labels
from gangsched.kube.workloads.template_admission import Reader


class _Resources(Struct, gc=False):
    requests: wire.Quantities | None = None
    limits: wire.Quantities | None = None


class _Port(Struct, gc=False, rename="camel"):
    container_port: int | None = None
    host_port: int | None = None
    host_ip: str | None = None
    protocol: str | None = None


class _Container(Struct, gc=False, rename="camel"):
    name: str = ""
    image: str | None = None
    resources: _Resources | None = None
    ports: list[_Port] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[wire.RestartRule] | None = None


class _PodSpec(Struct, gc=False, rename="camel"):
    node_selector: wire.Strings | None = None
    affinity: wire.Affinity | None = None
    tolerations: list[wire.Toleration] | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    resources: _Resources | None = None
    overhead: wire.Quantities | None = None
    topology_spread_constraints: list[wire.SpreadConstraint] | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    runtime_class_name: str | None = None


class _PodTemplateMetadata(Struct, gc=False):
    labels: wire.Strings | None = None


class _Template(Struct, gc=False):
    metadata: _PodTemplateMetadata | None = None
    spec: _PodSpec | None = None


FORM = _Template
"""The fields of a template that are read."""
_TEMPLATE: msgspec.json.Decoder[_Template | None] = msgspec.json.Decoder(_Template | None)
NOTHING = Raw(b"{}")
"""The template of an object that has none."""


def role(name: str, number: int, raw: Raw | None, *, namespace: str, remedy: str, admission: Reader) -> Role:
    """The role with `number` members of this pod template, of which some are created later.

    `admission` is what the API server will add to them. Without a template, the first member that is created is the
    pattern for the others.

    Raises:
        ValueError: no placeholder can be reserved for them; a sentence for a person that names the cause and the
            `remedy`.
    """
    if raw is None:
        return Role(name, number, template=Shape(), derived=True, led=True)
    try:
        template = _TEMPLATE.decode(raw) or _Template()
    except msgspec.ValidationError as fault:
        raise ValueError(_impossible(f"cannot be read ({printable(str(fault), limit=200)})", remedy)) from None
    meta = wire.Meta(namespace=namespace, labels=template.metadata.labels if template.metadata is not None else None)
    try:
        spec = _admitted(template.spec or _PodSpec(), namespace, admission)
    except ValueError as refusal:
        raise ValueError(_impossible(str(refusal), remedy)) from None
    shape = shapes.shape(meta, spec, wire.PodStatus(), (), why="", resize_infeasible=False)
    if shape.unsupported:
        raise ValueError(_impossible(f"uses {', '.join(shape.unsupported)}", remedy))
    own: Labels = labels(meta.labels)
    return Role(name, number, template=shape, derived=True, labels=own, soft=preferences.soft(spec, meta))


def _impossible(why: str, remedy: str) -> str:
    return (
        f"no places can be reserved for pods that are created only once others are ready, as their template {why}: "
        f"correct the template, or {remedy}."
    )


def _admitted(spec: _PodSpec, namespace: str, admission: Reader) -> wire.PodSpec:
    """The spec of a pod of the template, with the API server's defaults and what admission adds."""
    host, lacking = bool(spec.host_network), admission.container_requests(namespace)
    containers = [_container(container, host=host) for container in spec.containers or ()]
    init_containers = [_container(container, host=host) for container in spec.init_containers or ()]
    # Before 1.37 the pod's own requests are filled in before LimitRanges are applied. This is the larger result.
    of_pod = _of_pod(spec.resources, [*containers, *init_containers])
    for container in (*containers, *init_containers) if lacking else ():
        own = container.resources.requests if container.resources is not None else None
        container.resources = wire.Resources(filled(own or {}, lacking))
    defaulted = wire.PodSpec(
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        tolerations=spec.tolerations,
        containers=containers,
        init_containers=init_containers,
        resources=of_pod,
        overhead=spec.overhead,
        topology_spread_constraints=spec.topology_spread_constraints,
        host_network=spec.host_network,
        host_users=spec.host_users,
    )
    return admission.in_class(defaulted, spec.runtime_class_name)


def _container(container: _Container, *, host: bool) -> wire.Container:
    resources = container.resources or _Resources()
    return wire.Container(
        name=container.name,
        image=container.image,
        resources=wire.Resources({**(resources.limits or {}), **(resources.requests or {})}),
        ports=[
            wire.Port(port.host_port or (port.container_port if host else None), port.host_ip, port.protocol)
            for port in container.ports or ()
        ],
        restart_policy=container.restart_policy,
        restart_policy_rules=container.restart_policy_rules,
    )


def _of_pod(resources: _Resources | None, containers: Iterable[wire.Container]) -> wire.Resources | None:
    """The pod's own requests. A limit becomes the request of a resource for which the pod has none.

    For cpu and memory this applies only if no container requests the resource either.
    """
    if resources is None:
        return None
    requested = {
        name
        for container in containers
        if container.resources is not None
        for name in container.resources.requests or ()
    }
    requested &= {"cpu", "memory"}
    defaults = {name: limit for name, limit in (resources.limits or {}).items() if name not in requested}
    return wire.Resources({**defaults, **(resources.requests or {})})
