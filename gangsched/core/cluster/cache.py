"""The cluster as it is known now: nodes, pods and what they take; the only mutable aggregate that planning reads.

A pod counts against a node from the moment a binding is decided (`assume`) or seen, until it is seen to have ended or
gone, or the decision is withdrawn (`forget`). What changes here and could help somebody who waits is noted in `relief`,
which the queue reads after each batch of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from gangsched.core.cluster.capacity import Capacity
from gangsched.core.cluster.holdings import Holdings
from gangsched.core.cluster.labels import NodeLabels
from gangsched.core.cluster.relief import Relief
from gangsched.core.cluster.validation import contradictions
from gangsched.core.constraints.anti_affinity import AntiAffinityIndex
from gangsched.core.constraints.feasibility import Codes, Feasibility
from gangsched.core.constraints.ports import PortsInUse
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Labels, Shape

Forbidden = frozenset[tuple[str, str]]
"""(topology key, value) pairs whose nodes an existing pod's required anti-affinity closes to a newcomer."""


class Cluster:
    """Nodes and pods by name and UID, with exact accounting. All pods count, whoever scheduled them.

    `ports` holds the host ports in use by row; `port_rows`, by protocol and number, how often each row has one in use.
    `nominated` are pods for which somebody else keeps a node (`status.nominatedNodeName`). `worsened` are nodes that
    have changed, or on which a pod was counted that we did not put there, since they were last read.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.capacity = Capacity()
        self.holdings = Holdings()
        self.ports: dict[int, PortsInUse] = {}
        self.port_rows: dict[tuple[str, int], dict[int, int]] = {}
        self.anti_affinity = AntiAffinityIndex()
        self.on_node: dict[str, set[str]] = {}
        self.relief = Relief()
        self.nominated: dict[str, Pod] = {}
        self.worsened: set[str] = set()
        self.labels = NodeLabels(self.capacity)
        self._assumed: dict[str, str] = {}
        self._feasibility = Feasibility()

    # Nodes

    def set_node(self, node: Node) -> bool:
        """Add or replace a node. Returns whether anything that matters to placement changed."""
        old = self.nodes.get(node.name)
        if old == node:
            return False
        if old is not None and old.labels != node.labels:
            self._relieve_terms()
            for pod in self._pods_on(node.name):
                self._count_terms(pod, node.name, -1)
        if old is None or old.labels != node.labels:
            self.relief.domains |= self.labels.set(node.name, node.labels)
        self.nodes[node.name] = node
        row = self.capacity.set_node(node.name, node.allocatable)
        if old is None:
            for pod in self._pods_on(node.name):
                self._take(pod, node.name)
        elif old.labels != node.labels:
            for pod in self._pods_on(node.name):
                self._count_terms(pod, node.name, 1)
        self._feasibility.set_node(row, node, self.labels.of(node.name))
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
        if any(pod.anti_affinity for pod in self.nominated.values() if pod.nominated_node == name):
            self.relief.everywhere = True
        row = self.capacity.remove_node(name)
        self.ports.pop(row, None)
        del self.nodes[name]
        self.relief.domains |= self.labels.remove(name)
        self._feasibility.remove_node(row)
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
        """Know a namespace's labels, which anti-affinity of existing pods may select by."""
        new = dict(labels)
        if self.namespaces.get(name) != new:
            self.namespaces[name] = new
            self._relieve_terms()

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace's labels."""
        if self.namespaces.pop(name, None):
            self._relieve_terms()

    # Questions

    def verdicts(self, shape: Shape) -> Codes:
        """Every row's static verdict on the shape: ACCEPTED, 1 + index into STATIC_REASONS, or VACANT."""
        return self._feasibility.verdicts(shape, len(self.capacity.names))

    def accepts(self, shape: Shape, row: int) -> bool:
        """Whether the row's node takes the shape if it has room: one row of `verdicts`, without the others."""
        return self._feasibility.accepts(shape, row)

    def changes(self, rows: npt.NDArray[np.int64]) -> int:
        """A number that grows whenever the node of one of these rows changes."""
        return self._feasibility.generation(rows)

    def closes(self, forbidden: Forbidden, row: int) -> bool:
        """Whether the row's node carries one of the forbidden topology values."""
        labels = self.labels.of(self.capacity.names[row])
        if len(labels) < len(forbidden):
            return any(pair in forbidden for pair in labels.items())
        return any(labels.get(key) == value for key, value in forbidden)

    def forbidden(self, pod: Pod) -> Forbidden:
        """The topology values that required anti-affinity of existing pods closes to this pod."""
        return self.anti_affinity.forbidden(pod, self.namespaces.get(pod.namespace, {}))

    def closed_rows(self, forbidden: Forbidden) -> list[int]:
        """The rows whose nodes carry one of the forbidden topology values."""
        values: dict[str, set[str]] = {}
        for key, value in forbidden:
            values.setdefault(key, set()).add(value)
        return list({row for key, closed in values.items() for row in self._feasibility.rows_with(key, closed)})

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
            if before.anti_affinity:
                self.relief.everywhere = True

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
        if pod.shape.host_ports:
            self.ports.setdefault(row, PortsInUse()).add(pod.shape.host_ports)
            for port in pod.shape.host_ports:
                rows = self.port_rows.setdefault((port.protocol, port.port), {})
                rows[row] = rows.get(row, 0) + 1
        self._count_terms(pod, node, 1)

    def _give_back(self, pod: Pod, node: str) -> None:
        row = self.capacity.rows[node]
        self.capacity.give_back(row, pod.shape.requests)
        if pod.shape.host_ports:
            self.ports[row].remove(pod.shape.host_ports)
            for port in pod.shape.host_ports:
                rows = self.port_rows[port.protocol, port.port]
                rows[row] -= 1
                if not rows[row]:
                    del rows[row]
                if not rows:
                    del self.port_rows[port.protocol, port.port]
        self._count_terms(pod, node, -1)
        self.relief.rows.add(row)
        if pod.anti_affinity:
            self.relief.everywhere = True

    def _count_terms(self, pod: Pod, node: str, sign: int) -> None:
        labels = self.labels.of(node)
        for term in pod.anti_affinity:
            if sign > 0:
                self.anti_affinity.add(term, labels)
            else:
                self.anti_affinity.remove(term, labels)

    def _relieve_terms(self) -> None:
        """What anti-affinity closes may change anywhere, unless there is none."""
        self.anti_affinity.namespaces_changed()
        if self.anti_affinity or any(pod.anti_affinity for pod in self.nominated.values()):
            self.relief.everywhere = True
