"""Core values with defaults, so that a test names only what matters to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.devices import ExtendedUse
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.pod import DeviceUse, Lifetime, Owner, Pod, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup, Group, GroupSpec, SeenCondition, SeenPhase
from gangsched.core.objects.quantity import Quantity, amount
from gangsched.core.objects.shape import (
    Amounts,
    Disk,
    HostPort,
    Labels,
    NodeTerm,
    PodTerm,
    Requirement,
    Shape,
    Soft,
    Spread,
    Toleration,
)
from gangsched.core.objects.status import GroupStatus
from gangsched.core.objects.volumes import Volume, VolumeClaim
from gangsched.core.objects.workload import Workload

GPU = "nvidia.com/gpu"
Requests = Mapping[str, Quantity]


_REQUEST = "container-0-request-0"


def amounts(requests: Requests) -> Amounts:
    """Quantities as the core keeps them: `amounts({"cpu": "1"}) == (("cpu", 1000),)`; zeros are left out."""
    parsed = ((name, amount(name, text)) for name, text in requests.items())
    return tuple(sorted((name, value) for name, value in parsed if value))


def label_pairs(pairs: Mapping[str, str]) -> Labels:
    """Label pairs as the core keeps them."""
    return tuple(sorted(pairs.items()))


def key(name: str) -> GroupKey:
    """`key("default/a")` or `key("a")`: the group's key; the namespace defaults to `default`."""
    return GroupKey(*_names(name))


def taint(text: str) -> Taint:
    """`key=value:Effect` or `key:Effect`, as `kubectl taint` writes it."""
    pair, _, effect = text.rpartition(":")
    name, _, value = pair.partition("=")
    return Taint(key=name, effect=effect, value=value)


def toleration(text: str = "") -> Toleration:
    """`key=value:Effect` (Equal), `key:Effect` (Exists), `:Effect` (any key); no effect means all; "" tolerates all."""
    pair, _, effect = text.partition(":")
    name, equal, value = pair.partition("=")
    return Toleration(key=name, operator="Equal" if equal else "Exists", value=value, effect=effect)


def shape(
    cpu: Quantity | None = "1",
    *,
    memory: Quantity | None = None,
    gpu: int = 0,
    requests: Requests | None = None,
    node_selector: Mapping[str, str] | None = None,
    node_affinity: Iterable[NodeTerm] | None = None,
    tolerations: Iterable[Toleration | str] = (),
    host_ports: Iterable[HostPort | int] = (),
    disks: Iterable[Disk] = (),
    affinity: Iterable[PodTerm] = (),
    anti_affinity: Iterable[PodTerm] = (),
    spread: Iterable[Spread] = (),
    unsupported: Iterable[str] = (),
    features: Iterable[str] = (),
) -> Shape:
    """A pod's requirements of a node: 1 cpu and nothing else by default; `requests` replaces cpu, memory and gpu."""
    if requests is None:
        requests = {"cpu": cpu or 0, "memory": memory or 0, GPU: gpu}
    return Shape(
        requests=amounts(requests),
        node_selector=label_pairs(node_selector or {}),
        node_affinity=None if node_affinity is None else tuple(node_affinity),
        tolerations=tuple(toleration(item) if isinstance(item, str) else item for item in tolerations),
        host_ports=tuple(HostPort(port=item) if isinstance(item, int) else item for item in host_ports),
        disks=tuple(disks),
        affinity=tuple(affinity),
        anti_affinity=tuple(anti_affinity),
        spread=tuple(spread),
        unsupported=tuple(unsupported),
        features=tuple(features),
    )


def pod(
    name: str = "default/a-0",
    *,
    cpu: Quantity | None = "1",
    memory: Quantity | None = None,
    gpu: int = 0,
    requests: Requests | None = None,
    node_selector: Mapping[str, str] | None = None,
    node_affinity: Iterable[NodeTerm] | None = None,
    tolerations: Iterable[Toleration | str] = (),
    host_ports: Iterable[HostPort | int] = (),
    disks: Iterable[Disk] = (),
    affinity: Iterable[PodTerm] = (),
    anti_affinity: Iterable[PodTerm] = (),
    spread: Iterable[Spread] = (),
    unsupported: Iterable[str] = (),
    features: Iterable[str] = (),
    group: str = "a",
    role: str = "",
    declaration: Declaration | None = None,
    node: str = "",
    nominated_node: str = "",
    created: float = 0.0,
    priority: int = 0,
    phase: PodPhase | str = PodPhase.PENDING,
    terminating: bool = False,
    gated: bool = False,
    uid: str = "",
    scheduler: str = "gangsched",
    labels: Mapping[str, str] | None = None,
    volume_claims: Iterable[str] = (),
    own_volume_claims: Iterable[str] = (),
    device_claims: Iterable[str | DeviceUse] = (),
    owner: Owner | None = None,
    condition_reason: str = "",
    condition_message: str = "",
    likes: Mapping[int, NodeTerm] | None = None,
    images: Iterable[str] = (),
    near: Mapping[int, PodTerm] | None = None,
    spread_if_possible: Iterable[Spread] = (),
    workload: Workload | None = None,
    gone_by: float = 0.0,
    bound_at: float = 0.0,
    preempts: bool = True,
    ready: bool = False,
    grace_s: int = 30,
    start: float = 0.0,
    deadline_s: int | None = None,
    expected_s: float | None = None,
    not_started: str = "",
) -> Pod:
    """A pending pod of 1 cpu that declares itself a member of group `a`; `group=""` makes a plain pod.

    `name` is `namespace/name` or a name in `default`; the UID is `uid-namespace/name` unless given; `declaration`
    replaces what `group` and `role` would declare. The keywords of `shape` apply. `likes` maps weights to preferred
    node terms, `images` has one image for each container, and `near` maps weights to terms about other pods; a negative
    weight prefers to be away from them.
    """
    namespace, bare = _names(name)
    if declaration is None and group:
        declaration = Declaration(group=group, role=role)
    says = shape(
        cpu,
        memory=memory,
        gpu=gpu,
        requests=requests,
        node_selector=node_selector,
        node_affinity=node_affinity,
        tolerations=tolerations,
        host_ports=host_ports,
        disks=disks,
        affinity=affinity,
        anti_affinity=anti_affinity,
        spread=spread,
        unsupported=unsupported,
        features=features,
    )
    asked = [(resource, count) for resource, count in says.requests if "/" in resource]
    return Pod(
        uid=uid or f"uid-{namespace}/{bare}",
        namespace=namespace,
        name=bare,
        shape=says,
        created=created,
        scheduler=scheduler,
        phase=PodPhase(phase),
        node=node,
        nominated_node=nominated_node,
        terminating=terminating,
        gated=gated,
        priority=priority,
        declaration=declaration,
        labels=label_pairs(labels or {}),
        volume_claims=tuple(volume_claims),
        own_volume_claims=tuple(own_volume_claims),
        device_claims=tuple(DeviceUse(each, each) if isinstance(each, str) else each for each in device_claims),
        extended=tuple(ExtendedUse(each, ((_REQUEST, count),), (("main", _REQUEST),)) for each, count in asked),
        owner=owner,
        condition_reason=condition_reason,
        condition_message=condition_message,
        soft=soft(likes or {}, images, near or {}, spread_if_possible),
        workload=workload,
        gone_by=gone_by,
        bound_at=bound_at,
        lifetime=Lifetime(
            preempts=preempts,
            start=start,
            ready=ready,
            grace_s=grace_s,
            deadline_s=deadline_s,
            expected_s=expected_s,
            not_started=not_started,
        ),
    )


def soft(
    likes: Mapping[int, NodeTerm],
    images: Iterable[str] = (),
    near: Mapping[int, PodTerm] | None = None,
    spread: Iterable[Spread] = (),
) -> Soft | None:
    """A pod's preferences: node terms by weight, an image for each container, and terms about other pods."""
    names = tuple(sorted(images))
    found = Soft(tuple(likes.items()), names, max(1, len(names)), tuple((near or {}).items()), tuple(spread))
    return found if likes or names or found.pod_terms or found.spread else None


def node(
    name: str = "n1",
    *,
    cpu: Quantity = "8",
    memory: Quantity = "32Gi",
    pods: Quantity = 110,
    gpu: int = 0,
    extra: Requests | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint | str] = (),
    unschedulable: bool = False,
    features: Iterable[str] = (),
    images: Mapping[str, int] | None = None,
) -> Node:
    """A node of 8 cpu, 32Gi and 110 pods that accepts every pod; `extra` adds or replaces allocatable resources.

    `images` maps image names to sizes in MiB.
    """
    return Node(
        name=name,
        allocatable=amounts({"cpu": cpu, "memory": memory, "pods": pods, GPU: gpu} | dict(extra or {})),
        labels=label_pairs(labels or {}),
        taints=tuple(taint(item) if isinstance(item, str) else item for item in taints),
        unschedulable=unschedulable,
        features=tuple(features),
        images=tuple((name, size << 20) for name, size in sorted((images or {}).items())),
    )


def group(
    name: str = "default/a",
    *,
    min_member: int = 5,
    created: float = 0.0,
    uid: str = "",
    resource_version: str = "1",
    generation: int = 1,
    status: GroupStatus | None = None,
    error: str = "",
    owner: str = "",
    **spec: Any,
) -> Group:
    """A PodGroup of minMember 5; other keywords are fields of `GroupSpec`. With `error` its spec is unreadable."""
    group_key = key(name)
    return Group(
        key=group_key,
        uid=uid or f"uid-{group_key}",
        resource_version=resource_version,
        generation=generation,
        created=created,
        spec=None if error else GroupSpec(min_member=min_member, **spec),
        status=status or GroupStatus(),
        error=error,
        owner=owner,
    )


def claim(name: str = "default/c", volume: str = "", **fields: Any) -> VolumeClaim:
    """A volume claim, bound to the volume if one is named; the keywords are fields of `VolumeClaim`."""
    namespace, bare = _names(name)
    fields.setdefault("bound", bool(volume))
    return VolumeClaim(namespace, bare, volume, **fields)


def volume(name: str = "v", *, zone: str = "", driver: str = "csi", **fields: Any) -> Volume:
    """A volume of the CSI driver; with a zone, its node affinity requires the label `zone` to have this value."""
    if zone:
        fields["node_affinity"] = (NodeTerm((Requirement("zone", "In", (zone,)),)),)
    return Volume(name, **{"attachment": (driver, name)} | fields)


def foreign_group(
    dialect: str,
    name: str = "default/a",
    *,
    min_member: int = 2,
    created: float = 0.0,
    uid: str = "",
    error: str = "",
    phase: SeenPhase | SeenCondition | None = None,
    **spec: Any,
) -> ForeignGroup:
    """Another system's PodGroup, with minMember 2; otherwise like `group`."""
    return ForeignGroup(
        dialect=dialect,
        key=key(name),
        uid=uid or f"uid-{name}",
        created=created,
        spec=None if error else GroupSpec(min_member=min_member, **spec),
        error=error,
        phase=phase,
    )


def _names(name: str) -> tuple[str, str]:
    namespace, slash, bare = name.partition("/")
    return (namespace, bare) if slash else ("default", namespace)


def pods(group_name: str, count: int, *, first: int = 0, namespace: str = "default", **fields: Any) -> list[Pod]:
    """Members of a group: `pods("a", 2)` are default/a-0 and default/a-1; the keywords are those of `pod`."""
    numbers = range(first, first + count)
    return [pod(f"{namespace}/{group_name}-{number}", group=group_name, **fields) for number in numbers]
