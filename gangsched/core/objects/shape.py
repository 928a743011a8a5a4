"""The shape of a pod: everything about it that decides where it may run."""

from __future__ import annotations

from msgspec import Struct

Amounts = tuple[tuple[str, int], ...]
"""Resource amounts: (resource name, amount) pairs sorted by name, without zeros."""

Labels = tuple[tuple[str, str], ...]
"""Label pairs sorted by key."""


PODS = "pods"
"""The resource of which each pod takes one, whatever it requests."""


class Requirement(Struct, frozen=True, gc=False, cache_hash=True):
    """One expression of a label selector or node selector term.

    `operator` is one of In, NotIn, Exists, DoesNotExist, Gt, Lt as in the Kubernetes API; any other never matches.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeTerm(Struct, frozen=True, gc=False, cache_hash=True):
    """A node selector term: all expressions on labels and all on fields (`metadata.name`) must hold.

    A term without any expression matches nothing.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Toleration(Struct, frozen=True, gc=False, cache_hash=True):
    """As in the Kubernetes API; empty strings where the manifest leaves a field out."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class HostPort(Struct, frozen=True, gc=False, cache_hash=True):
    """A port a pod takes on its node; defaults are filled in (`TCP`, `0.0.0.0`)."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104 - the API's wildcard address as data, nothing listens


class PodTerm(Struct, frozen=True, gc=False, cache_hash=True):
    """One required anti-affinity term of an existing pod.

    `selector` None matches no pod, an empty tuple matches all. `namespaces` names namespaces outright;
    `namespace_selector` None adds none, an empty tuple adds all. The owner's own namespace is already in `namespaces`
    where the manifest gave neither.
    """

    topology_key: str
    selector: tuple[Requirement, ...] | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: tuple[Requirement, ...] | None = None


class Shape(Struct, frozen=True, gc=False, cache_hash=True):
    """The scheduling signature: everything about a pod itself that decides which nodes take it.

    Pods of one shape are interchangeable to the planner, so feasibility is computed once per shape for all nodes.
    `node_affinity` None means no required affinity; an empty tuple matches no node. `unsupported` names constraints
    (as a person would find them in the pod's spec) that gangsched cannot honour and therefore refuses. `features` are
    the node features that the pod needs, sorted.
    """

    requests: Amounts = ()
    node_selector: Labels = ()
    node_affinity: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    unsupported: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
