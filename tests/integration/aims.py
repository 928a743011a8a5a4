"""Random pods, each aimed at one filter of kube-scheduler: usually only that filter decides about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.integration.judged import Json, World
from tests.integration.oracle_worlds import (
    LABELS,
    NAMESPACES,
    PORTS,
    TERMS,
    TOLERATES_ALL,
    TOLERATIONS,
    ZONE,
    Dice,
    container,
    node,
    pod,
    restarting_all,
    wants,
)


class Aims(Dice):
    """Pods on which one filter decides, sometimes others as well; each method is named after its aim in `AIMS`."""

    def world(self, *, nodes: int, pods: int) -> World:
        """Some worlds have a zone with no pods and one node that most pods may not use: does spread count it?"""
        made = super().world(nodes=nodes, pods=pods)
        apart = node("apart", labels={ZONE: "c"}, taints=["dedicated=batch:NoSchedule"])
        return World([*made.nodes, apart], made.pods) if self._chance(0.5) else made

    def unschedulable(self) -> Json:
        cordon = [TOLERATIONS[7]] if self._chance(0.4) else []
        return self._small(tolerations=[{"operator": "Exists", "effect": "NoExecute"}, *cordon])

    def taints(self) -> Json:
        return self._small(tolerations=self._some(TOLERATIONS, most=4, none=0.2))

    def node_affinity(self) -> Json:
        affinity = wants(*self._some(TERMS, most=3)) if self._chance(0.8) else {}
        selector = {"nodeSelector": dict([self._one(LABELS)])} if not affinity or self._chance(0.2) else {}
        return self._small(**affinity, **selector)

    def ports(self) -> Json:
        return self._small(container(ports=self._some(PORTS, most=2)))

    def resources(self) -> Json:
        made = self._pod()
        made["spec"] |= TOLERATES_ALL
        return made

    def spread(self) -> Json:
        """Some also select nodes or lack a toleration, because two topology spread policies depend on that."""
        affinity = wants(*self._some(TERMS, most=3)) if self._chance(0.3) else {}
        tolerations = {"tolerations": self._some(TOLERATIONS, most=2)} if self._chance(0.6) else {}
        return self._small(topologySpreadConstraints=self._spread(), **affinity, **tolerations)

    def affinity(self) -> Json:
        return self._small(**self._of_kind("podAffinity"))

    def anti_affinity(self) -> Json:
        return self._small(**self._of_kind("podAntiAffinity"))

    def shunned(self) -> Json:
        return self._small()

    def features(self) -> Json:
        """A pod that needs one of two features of its node's kubelet, or both, or none."""
        made = container()
        users = {"hostUsers": False, "hostNetwork": True} if self._chance(0.6) else {}
        return self._small(restarting_all(made) if self._chance(0.6) else made, **users)

    def mixed(self) -> Json:
        return self.probe()

    def _small(self, *containers: Json, **spec: Any) -> Json:
        return pod(*containers, namespace=self._one([*NAMESPACES]), labels=self._labels(), **(TOLERATES_ALL | spec))


AIMS: dict[str, tuple[str, Callable[[Aims], Json]]] = {
    "cordoned nodes": ("NodeUnschedulable", Aims.unschedulable),
    "taints and tolerations": ("TaintToleration", Aims.taints),
    "node selector and node affinity": ("NodeAffinity", Aims.node_affinity),
    "host ports": ("NodePorts", Aims.ports),
    "resources": ("NodeResourcesFit", Aims.resources),
    "topology spread": ("PodTopologySpread", Aims.spread),
    "pod affinity": ("InterPodAffinity", Aims.affinity),
    "pod anti-affinity": ("InterPodAffinity", Aims.anti_affinity),
    "anti-affinity of pods there": ("InterPodAffinity", Aims.shunned),
    "features of the kubelet": ("NodeDeclaredFeatures", Aims.features),
    "everything together": ("", Aims.mixed),
}
"""By aim: the filter that should decide (empty for any), and how to draw such a pod."""
