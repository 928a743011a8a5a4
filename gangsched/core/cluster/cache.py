"""The cluster as it is known now: nodes, pods and what they take; the only mutable aggregate that planning reads.

A pod counts against a node from the moment a binding is decided (`assume`) or seen, until it is seen to have ended or
gone, or the decision is withdrawn (`forget`). What changes here and could help somebody who waits is noted in `relief`,
which the queue reads after each batch of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from gangsched.core.cluster.capacity import Capacity
from gangsched.core.cluster.holdings import Holdings
from gangsched.core.cluster.labels import NodeLabels
from gangsched.core.cluster.relief import Relief
from gangsched.core.cluster.validation import contradictions
from gangsched.core.constraints import registry
from gangsched.core.constraints.constraint import Happening, Member, NodeConstraint, World
from gangsched.core.constraints.nodes import Nodes
from gangsched.core.objects.arrays import Mask
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Labels


class Cluster:
    """Nodes and pods by name and UID, with exact accounting. All pods count, whoever scheduled them.

    `constraints` are told of each node, and of each pod that counts on one. `nominated` are pods for which somebody
    else keeps a node (`status.nominatedNodeName`). `worsened` are nodes that have changed, or on which a pod was
    counted that we did not put there, since they were last read.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.capacity = Capacity()
        self.holdings = Holdings()
        self.nodes_by_row = Nodes()
        world = World(self.nodes_by_row, self.capacity, self.namespaces)
        self.constraints = [each(world) for each in registry.CONSTRAINTS]
        self.on_node: dict[str, set[str]] = {}
        self.relief = Relief()
        self.nominated: dict[str, Pod] = {}
        self.worsened: set[str] = set()
        self.labels = NodeLabels(self.capacity)
        self._assumed: dict[str, str] = {}

    # Nodes

    def set_node(self, node: Node) -> bool:
        """Add or replace a node. Returns whether anything that matters to placement changed."""
        old = self.nodes.get(node.name)
        if old == node:
            return False
        moved = old is not None and old.labels != node.labels
        if moved:
            self._labels_changed()
            for pod in self._pods_on(node.name):
                self._uncount_in_constraints(pod, self.capacity.rows[node.name])
        if old is None or moved:
            self.relief.domains |= self.labels.set(node.name, node.labels)
        self.nodes[node.name] = node
        row = self.capacity.set_node(node.name, node.allocatable)
        self.nodes_by_row.set(row, node.name, self.labels.of(node.name))
        for constraint in self.constraints:
            constraint.set_node(row, node)
        for pod in self._pods_on(node.name) if old is None or moved else ():
            if moved:
                self._count_in_constraints(pod, row)
            else:
                self._take(pod, node.name)
        self.relief.rows.add(row)
        self.worsened.add(node.name)
        self.holdings.note_nodes_changed()
        return True

    def remove_node(self, name: str) -> bool:
        """Forget a node. Pods that still name it are kept and count again if it comes back."""
        if name not in self.nodes:
            return False
        for pod in self._pods_on(name):
            self._give_back(pod, name)
        for pod in self.nominated.values():
            if pod.nominated_node == name:
                self._relieve_elsewhere(pod)
        row = self.capacity.remove_node(name)
        self.nodes_by_row.remove(row)
        for constraint in self.constraints:
            constraint.remove_node(row)
        del self.nodes[name]
        self.relief.domains |= self.labels.remove(name)
        self.relief.rows.discard(row)
        self.worsened.add(name)
        return True

    # Pods

    def node_of(self, uid: str) -> str:
        """The node on which the pod counts now, by its own word or by our decision; empty if on none."""
        pod = self.pods.get(uid)
        if pod is not None and pod.node:
            return pod.node
        return self._assumed.get(uid, "")

    def set_pod(self, pod: Pod) -> Pod | None:
        """Add or replace a pod. What the pod says of its node replaces what was assumed. Returns the former value."""
        old = self.pods.get(pod.uid)
        if old is not None and self._counts_alike(old, pod):
            self.pods[pod.uid] = pod
            if pod.node:
                self._assumed.pop(pod.uid, None)
            return old
        self._uncount(old)
        if pod.node or pod.terminal:
            self._assumed.pop(pod.uid, None)
        self.pods[pod.uid] = pod
        self._recount(pod)
        if pod.node:
            self.worsened.add(pod.node)
        if old is None and not pod.name:
            self.holdings.add(pod)
        return old

    def nominate(self, pod: Pod) -> None:
        """Know that somebody else keeps a node for this pod, or does so no longer."""
        self._denominate(pod.uid)
        if pod.nominated_node and not (pod.node or pod.terminal):
            self.nominated[pod.uid] = pod

    def remove_pod(self, uid: str) -> Pod | None:
        """Forget a pod and free what it took. Returns its last value."""
        old = self.pods.get(uid)
        self._uncount(old)
        self._denominate(uid)
        if old is not None and not old.name:
            self.holdings.remove(old)
        self.pods.pop(uid, None)
        self._assumed.pop(uid, None)
        return old

    def assume(self, uid: str, node: str) -> None:
        """Count an unbound pod on the node from now on."""
        pod = self.pods[uid]
        self._uncount(pod)
        self._assumed[uid] = node
        self._recount(pod)

    def forget(self, uid: str) -> None:
        """Withdraw an assumption; a pod that is bound by its own word stays counted."""
        if uid not in self._assumed:
            return
        pod = self.pods[uid]
        self._uncount(pod)
        del self._assumed[uid]
        self._recount(pod)

    def set_namespace(self, name: str, labels: Labels) -> None:
        """Know a namespace's labels, which pods' terms may select by."""
        new = dict(labels)
        if self.namespaces.get(name) != new:
            self.namespaces[name] = new
            self._labels_changed()

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace's labels."""
        if self.namespaces.pop(name, None):
            self._labels_changed()

    # Questions

    def accepting(self, member: Member) -> Mask:
        """The rows whose nodes take the class for what they are, whatever stands there."""
        rows = np.arange(len(self.capacity.names))
        accepting = self.nodes_by_row.there(rows)
        for constraint in self.constraints:
            if isinstance(constraint, NodeConstraint) and (mask := constraint.mask(member, rows)) is not None:
                accepting &= mask
        return accepting

    def validate(self) -> list[str]:
        """Contradictions between the accounting and the pods; empty when all is well (checked after every test)."""
        return contradictions(self)

    def worsen(self, node: str) -> None:
        """Somebody has room on the node that others rely on."""
        self.worsened.add(node)

    def take_worsened(self) -> set[str]:
        """The nodes that may have less room, or other demands, than when places on them were decided."""
        worsened, self.worsened = self.worsened, set()
        return worsened

    def take_relief(self) -> Relief:
        """What has become better since the last call."""
        relief, self.relief = self.relief, Relief()
        return relief

    # Accounting

    def _counts_alike(self, old: Pod, new: Pod) -> bool:
        node = self.node_of(old.uid)
        return (
            node == (new.node or self._assumed.get(new.uid, ""))
            and old.terminal == new.terminal
            and old.shape == new.shape
            and old.anti_affinity == new.anti_affinity
        )

    def _pods_on(self, node: str) -> Iterable[Pod]:
        return [self.pods[uid] for uid in self.on_node.get(node, ())]

    def _denominate(self, uid: str) -> None:
        before = self.nominated.pop(uid, None)
        if before is not None and before.nominated_node in self.capacity.rows:
            self.relief.rows.add(self.capacity.rows[before.nominated_node])
            self._relieve_elsewhere(before)

    def _uncount(self, pod: Pod | None) -> None:
        if pod is None or pod.terminal:
            return
        node = self.node_of(pod.uid)
        if not node:
            return
        self.on_node[node].discard(pod.uid)
        if not self.on_node[node]:
            del self.on_node[node]
        if node in self.nodes:
            self._give_back(pod, node)

    def _recount(self, pod: Pod) -> None:
        node = self.node_of(pod.uid)
        if not node or pod.terminal:
            return
        self.on_node.setdefault(node, set()).add(pod.uid)
        if node in self.nodes:
            self._take(pod, node)

    def _take(self, pod: Pod, node: str) -> None:
        row = self.capacity.rows[node]
        self.capacity.take(row, pod.shape.requests)
        self._count_in_constraints(pod, row)

    def _give_back(self, pod: Pod, node: str) -> None:
        row = self.capacity.rows[node]
        self.capacity.give_back(row, pod.shape.requests)
        self._uncount_in_constraints(pod, row)
        self.relief.rows.add(row)
        self._relieve_elsewhere(pod)

    def _count_in_constraints(self, pod: Pod, row: int) -> None:
        for constraint in self.constraints:
            constraint.add(pod, row)

    def _uncount_in_constraints(self, pod: Pod, row: int) -> None:
        for constraint in self.constraints:
            constraint.remove(pod, row)

    def _relieve_elsewhere(self, pod: Pod) -> None:
        """The end of a pod opens its node; it may open others, too."""
        if any(constraint.opens_elsewhere(Happening.POD_LEFT, pod) for constraint in self.constraints):
            self.relief.everywhere = True

    def _labels_changed(self) -> None:
        """Of a namespace, or of a node: what pods close to others may change anywhere, unless none does."""
        for constraint in self.constraints:
            constraint.labels_changed()
            if constraint.opens_elsewhere(Happening.LABELS_CHANGED):
                self.relief.everywhere = True
        for pod in self.nominated.values():
            self._relieve_elsewhere(pod)
