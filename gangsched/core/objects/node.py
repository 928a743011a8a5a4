"""A node as the core sees it."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.shape import Amounts, Images, Labels

_CLOSING = frozenset(
    f"node.kubernetes.io/{why}" for why in ("unschedulable", "memory-pressure", "disk-pressure", "pid-pressure")
)
"""Taints that pass and say nothing else of the node: it is drained, or short of something for now."""
_PASSING = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
    "readiness.k8s.io/",
)
"""Beginnings of the keys that Kubernetes, cloud providers and autoscalers give to taints that they lift themselves.

Sources: k8s.io/api core/v1/well_known_taints.go, k8s.io/cloud-provider api/well_known_taints.go, cluster-autoscaler
utils/taints/taints.go, karpenter pkg/apis/v1/taints.go, node-readiness-controller.
"""
_STARTING = ("not-ready", "notready", "uninitialized", "unregistered", "initializing", "startup")
"""Parts of the keys of taints that agents on the node lift once they run, such as node.cilium.io/agent-not-ready."""


class Taint(Struct, frozen=True, gc=False, cache_hash=True):
    """As in the Kubernetes API."""

    key: str
    effect: str
    value: str = ""

    @property
    def passes(self) -> bool:
        """Whether it is known to be lifted by whoever set it, so that it says nothing about what the node can take."""
        return self.key.startswith(_PASSING) or any(part in self.key.lower() for part in _STARTING)


class Node(Struct, frozen=True, gc=False):
    """A node: its capacity, and which pods it accepts. Readiness counts only through taints, as in kube-scheduler.

    `features` are those that its kubelet declares (`status.declaredFeatures`), sorted. `images` are on its disk.
    `awaited` are resources of device plug-ins of which it offers less than it has, or none although it lists them: they
    come back once the plug-in, or the device, is well again.
    """

    name: str
    allocatable: Amounts = ()
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    features: tuple[str, ...] = ()
    images: Images = ()
    awaited: tuple[str, ...] = ()

    @property
    def shut(self) -> bool:
        """Whether it has a taint that passes, or has not reported yet what it has."""
        return not self.allocatable or any(taint.passes for taint in self.taints)

    @property
    def unsettled(self) -> bool:
        """Whether it is not ready or still being started: labels, devices and features that it lacks may come."""
        return not self.allocatable or any(taint.passes and taint.key not in _CLOSING for taint in self.taints)
