"""The shape of a pod, which is everything about it that decides where it may run, and its soft constraints."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

Amounts = tuple[tuple[str, int], ...]
"""Resource amounts: (resource name, amount) pairs sorted by name, without zeros."""

Labels = tuple[tuple[str, str], ...]
"""Label pairs sorted by key."""


MOST_CACHED = 4096
"""Number of shapes of which what they have is kept."""
PODS = "pods"
"""The resource that counts pods: each pod takes one of it, whatever it requests."""


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


Attachment = tuple[str, str]
"""A CSI driver and its name for a volume. An attachment counts once against the limits of its node."""


class Disk(Struct, frozen=True, gc=False, cache_hash=True):
    """A disk that a pod names directly, without a claim. `kind` is the field of the manifest that names it.

    Two disks of one kind are the same if they share one of `names`; no node takes it twice unless both are `read_only`.
    A disk without names conflicts with none. `attachment` is what it counts as against the limits of nodes.
    """

    kind: str
    names: tuple[str, ...] = ()
    read_only: bool = False
    attachment: Attachment | None = None


class PodTerm(Struct, frozen=True, gc=False, cache_hash=True):
    """A term of affinity to other pods: the pods that it selects, and the node label that forms topology domains.

    `selector` None matches no pod, an empty tuple matches all. `namespaces` names namespaces outright;
    `namespace_selector` None adds none, an empty tuple adds all. The owner's own namespace is already in `namespaces`
    if the manifest gives neither.
    """

    topology_key: str
    selector: tuple[Requirement, ...] | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: tuple[Requirement, ...] | None = None


class Spread(Struct, frozen=True, gc=False, cache_hash=True):
    """One topology spread constraint: `term` has its topology key, namespace and selector.

    `honors_affinity`: only nodes that match the pod's node affinity count. `honors_taints`: only nodes whose taints the
    pod tolerates count.
    """

    term: PodTerm
    max_skew: int
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


class Shape(Struct, frozen=True, gc=False, cache_hash=True):
    """The scheduling signature: everything about a pod itself that decides which nodes take it.

    Pods of one shape are interchangeable to the planner, so feasibility is computed once per shape for all nodes.
    `node_affinity` None means no required affinity; an empty tuple matches no node. `unsupported` names constraints, by
    their fields in the pod's spec, that gangsched does not support and therefore refuses. `affinity` and
    `anti_affinity` are the required terms, `spread` the constraints with DoNotSchedule. `features` are the node
    features that the pod needs, sorted.
    """

    requests: Amounts = ()
    node_selector: Labels = ()
    node_affinity: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    disks: tuple[Disk, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    unsupported: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @property
    @lru_cache(maxsize=MOST_CACHED)  # noqa: B019 - shapes are few, and equal ones share what is kept
    def has(self) -> frozenset[str]:
        """The fields, apart from requests and tolerations, in which it differs from the shape of a plain pod."""
        return frozenset([name for name in _BESIDE if getattr(self, name) != getattr(_PLAIN, name)])

    @property
    def depends_on_pods(self) -> bool:
        """Whether the nodes that take the pod depend on where other pods are."""
        return bool(self.affinity or self.anti_affinity or self.spread)


_BESIDE = ("node_selector", "node_affinity", "host_ports", "disks", "affinity", "anti_affinity", "spread", "features")
_PLAIN = Shape()


Images = tuple[tuple[str, int], ...]
"""Images on a node: (name, size in bytes) pairs, sorted by name, without duplicates."""


class Soft(Struct, frozen=True, gc=False, cache_hash=True):
    """A pod's soft constraints, other than its preference for nodes whose taints it tolerates.

    `node_terms` are the (weight, term) pairs of preferred node affinity, with weights from 1 to 100. `images` are the
    names of the images that its containers and image volumes need, sorted, without duplicates; `containers` is the
    number of these containers and volumes. `pod_terms` are the (weight, term) pairs of preferred affinity to other
    pods; a negative weight means anti-affinity. `spread` are the topology spread constraints with ScheduleAnyway.
    """

    node_terms: tuple[tuple[int, NodeTerm], ...] = ()
    images: tuple[str, ...] = ()
    containers: int = 0
    pod_terms: tuple[tuple[int, PodTerm], ...] = ()
    spread: tuple[Spread, ...] = ()
