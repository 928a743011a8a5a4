"""Nodes, namespaces and PriorityClasses."""

from __future__ import annotations

from msgspec import Struct, field

from gangsched.kube.wire.shared_parts import Meta, Quantities


class Taint(Struct, gc=False):
    key: str = ""
    effect: str = ""
    value: str | None = None


class NodeSpec(Struct, gc=False):
    taints: list[Taint] | None = None
    unschedulable: bool | None = None


class NodeImage(Struct, gc=False):
    names: list[str] | None = None
    size: int = field(name="sizeBytes", default=0)


class NodeStatus(Struct, gc=False, rename="camel"):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    declared_features: list[str] | None = None
    images: list[NodeImage] | None = None


class Node(Struct, gc=False):
    metadata: Meta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Namespace(Struct, gc=False):
    metadata: Meta


class PriorityClass(Struct, gc=False):
    metadata: Meta
    value: int = 0
    preemption_policy: str | None = field(name="preemptionPolicy", default=None)
