"""The cluster as it is known now: nodes, pods and what they take; the only mutable aggregate that planning reads.

A pod counts against a node from the moment a binding is decided (`assume`) or seen, until it is seen to have ended or
gone, or the decision is withdrawn (`forget`): each is a claim in the one `ledger`. What changes here and could help
somebody who waits is noted in `relief`, which the queue reads after each batch of events.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gangsched.core.cluster.capacity import Capacity
from gangsched.core.cluster.holdings import Holdings
from gangsched.core.cluster.labels import NodeLabels
from gangsched.core.cluster.ledger import Claim, Claims, Kind, Ledger
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

    `worsened` are nodes that have changed, or on which a pod was counted that we did not put there, since they were
    last read.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.relief = Relief()
        self.worsened: set[str] = set()
        self.capacity = Capacity()
        self.labels = NodeLabels(self.capacity)
        self.ledger = Ledger(self.capacity, self.labels, self.relief)
        self._feasibility = Feasibility()

    # Nodes

    def set_node(self, node: Node) -> bool:
        """Add or replace a node. Returns whether anything that matters to placement changed."""
        old = self.nodes.get(node.name)
        if old == node:
            return False
        row = self.capacity.set_node(node.name, node.allocatable)
        if old is None or old.labels != node.labels:
            before = self.labels.of(node.name)
            self.relief.note(domains=self.labels.set(node.name, node.labels))
            if old is None:
                self.ledger.node_added(node.name)
            else:
                self.ledger.node_relabelled(node.name, before, self.labels.of(node.name))
        self.nodes[node.name] = node
        self._feasibility.set_node(row, node, self.labels.of(node.name))
        self.relief.note(row=row)
        self.worsened.add(node.name)
        self.ledger.holdings.nodes_changed()
        return True

    def remove_node(self, name: str) -> bool:
        """Forget a node. Pods that still name it are kept and count again if it comes back."""
        if name not in self.nodes:
            return False
        self.ledger.node_leaves(name)
        row = self.capacity.remove_node(name)
        del self.nodes[name]
        self.relief.note(domains=self.labels.remove(name))
        self._feasibility.remove_node(row)
        self.relief.no_node(row)
        self.worsened.add(name)
        return True

    # Pods and their claims

    def node_of(self, uid: str) -> str:
        """The node on which the pod counts now, by its own word or by our decision; empty if on none."""
        pod = self.pods.get(uid)
        if pod is not None and pod.node:
            return pod.node
        claim = self.ledger.of(uid)
        return claim.node if claim is not None and claim.counts else ""

    def set_pod(self, pod: Pod) -> Pod | None:
        """Add or replace a pod. What the pod says of its node replaces what was assumed. Returns the former value."""
        old = self.pods.get(pod.uid)
        self.pods[pod.uid] = pod
        claim = self.ledger.of(pod.uid)
        if pod.terminal or (claim is not None and claim.kind is Kind.BOUND and not pod.node):
            self.ledger.release(pod.uid)
        elif pod.node:
            if self.ledger.put(claim_of(pod, Kind.BOUND, pod.node)):
                self.worsened.add(pod.node)
        elif claim is not None:
            self.ledger.put(claim_of(pod, claim.kind, claim.node))
        return old

    def nominate(self, pod: Pod) -> None:
        """Know that somebody else keeps a node for this pod, or does so no longer."""
        if pod.nominated_node and not (pod.node or pod.terminal):
            self.ledger.put(claim_of(pod, Kind.NOMINATED, pod.nominated_node))
        elif pod.uid in self.ledger.nominated:
            self.ledger.release(pod.uid)

    def remove_pod(self, uid: str) -> Pod | None:
        """Forget a pod and free what it took. Returns its last value."""
        self.ledger.release(uid)
        return self.pods.pop(uid, None)

    def assume(self, uid: str, node: str) -> None:
        """Count an unbound pod, or a member to come, on the node from now on."""
        pod = self.pods[uid]
        if not (pod.node or pod.terminal):
            self.ledger.put(claim_of(pod, Kind.ASSUMED if pod.name else Kind.HELD, node))

    def forget(self, uid: str) -> None:
        """Withdraw an assumption; a pod that is bound by its own word stays counted."""
        claim = self.ledger.of(uid)
        if claim is not None and claim.kind in (Kind.ASSUMED, Kind.HELD):
            self.ledger.release(uid)

    def set_namespace(self, name: str, labels: Labels) -> None:
        """Know a namespace's labels, which anti-affinity of existing pods may select by."""
        new = dict(labels)
        if self.namespaces.get(name) != new:
            self.namespaces[name] = new
            self.ledger.selectors_changed()

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace's labels."""
        if self.namespaces.pop(name, None):
            self.ledger.selectors_changed()

    # What is claimed

    @property
    def on_node(self) -> Mapping[str, Claims]:
        """Who counts on each node, by UID."""
        return self.ledger.on_node

    @property
    def nominated(self) -> Mapping[str, Pod]:
        """Pods for which somebody else keeps a node (`status.nominatedNodeName`)."""
        return {uid: self.pods[uid] for uid in self.ledger.nominated}

    @property
    def holdings(self) -> Holdings:
        """What namespaces hold for members to come."""
        return self.ledger.holdings

    @property
    def ports(self) -> Mapping[int, PortsInUse]:
        """The host ports in use by row."""
        return self.ledger.ports.by_row

    @property
    def port_rows(self) -> Mapping[tuple[str, int], Mapping[int, int]]:
        """By protocol and number, how often each row has the port in use."""
        return self.ledger.ports.rows_of

    @property
    def anti_affinity(self) -> AntiAffinityIndex:
        """What required anti-affinity of pods that count closes."""
        return self.ledger.anti_affinity

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
        return self.ledger.anti_affinity.forbidden(pod, self.namespaces.get(pod.namespace, {}))

    def closed_rows(self, forbidden: Forbidden) -> list[int]:
        """The rows whose nodes carry one of the forbidden topology values."""
        values: dict[str, set[str]] = {}
        for key, value in forbidden:
            values.setdefault(key, set()).add(value)
        return list({row for key, closed in values.items() for row in self._feasibility.rows_with(key, closed)})

    def take_worsened(self) -> set[str]:
        """The nodes that may have less room, or other demands, than when places on them were decided."""
        worsened, self.worsened = self.worsened, set()
        return worsened

    def take_relief(self) -> Relief:
        """What has become better since the last call."""
        return self.relief.take()

    def validate(self) -> list[str]:
        """Contradictions between the claims, what is derived of them and the pods; empty when all is well."""
        return contradictions(self)


def claim_of(pod: Pod, kind: Kind, node: str) -> Claim:
    """The pod's claim on the node."""
    return Claim(pod.uid, kind, node, pod.namespace, pod.shape, pod.anti_affinity)
