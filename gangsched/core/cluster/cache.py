"""The cluster as it is known now: nodes, pods and what they take; the only mutable aggregate that planning reads.

A pod counts against a node from the moment a binding is decided (`assume`) or seen, until it is seen to have ended or
gone, or the decision is withdrawn (`forget`): each is a claim in the one `ledger`. What changes here and could help
somebody who waits is noted in `relief`, which the queue reads after each batch of events.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gangsched.core.cluster.capacity import Capacity
from gangsched.core.cluster.holdings import Holdings
from gangsched.core.cluster.labels import NodeLabels
from gangsched.core.cluster.ledger import ASSUMED, BOUND, HELD, NOMINATED, Claim, Claims, Ledger
from gangsched.core.cluster.relief import Relief
from gangsched.core.cluster.validation import contradictions
from gangsched.core.constraints import registry
from gangsched.core.constraints.constraint import Member, NodeConstraint, World
from gangsched.core.constraints.nodes import Nodes
from gangsched.core.objects.arrays import Mask
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Labels


class Cluster:
    """Nodes and pods by name and UID, with exact accounting. All pods count, whoever scheduled them.

    `constraints` are told of each node here, and by the ledger of each pod that counts on one. `worsened` are nodes
    that have changed, or on which a pod was counted that we did not put there, since they were last read.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.relief = Relief()
        self.worsened: set[str] = set()
        self.capacity = Capacity()
        self.labels = NodeLabels(self.capacity)
        self.nodes_by_row = Nodes()
        world = World(self.nodes_by_row, self.capacity, self.namespaces)
        self.constraints = [each(world) for each in registry.CONSTRAINTS]
        self.ledger = Ledger(self.capacity, self.constraints, self.relief)

    # Nodes

    def set_node(self, node: Node) -> bool:
        """Add or replace a node. Returns whether anything that matters to placement changed."""
        old = self.nodes.get(node.name)
        if old == node:
            return False
        relabelled = old is not None and old.labels != node.labels
        if relabelled:
            self.ledger.labels_changed()
            self.ledger.node_leaves(node.name)
        self.nodes[node.name] = node
        row = self.capacity.set_node(node.name, node.allocatable)
        if old is None or relabelled:
            self.relief.note(domains=self.labels.set(node.name, node.labels))
        self.nodes_by_row.set(row, node.name, self.labels.of(node.name))
        for constraint in self.constraints:
            constraint.set_node(row, node)
        if old is None or relabelled:
            self.ledger.node_comes(node.name)
        self.relief.note(row=row)
        self.worsened.add(node.name)
        self.holdings.note_nodes_changed()
        return True

    def remove_node(self, name: str) -> bool:
        """Forget a node. Pods that still name it are kept and count again if it comes back."""
        if name not in self.nodes:
            return False
        self.ledger.node_leaves(name)
        row = self.capacity.remove_node(name)
        self.nodes_by_row.remove(row)
        for constraint in self.constraints:
            constraint.remove_node(row)
        del self.nodes[name]
        self.relief.note(domains=self.labels.remove(name))
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
        if pod.terminal or (claim is not None and claim.kind is BOUND and not pod.node):
            self.ledger.release(pod.uid)
        elif pod.node:
            if self.ledger.put(Claim(BOUND, pod.node, pod)):
                self.worsened.add(pod.node)
        elif claim is not None:
            self.ledger.put(Claim(claim.kind, claim.node, pod))
        return old

    def nominate(self, pod: Pod) -> None:
        """Know that somebody else keeps a node for this pod, or does so no longer."""
        if pod.nominated_node and not (pod.node or pod.terminal):
            self.ledger.put(Claim(NOMINATED, pod.nominated_node, pod))
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
            self.ledger.put(Claim(ASSUMED if pod.name else HELD, node, pod))

    def forget(self, uid: str) -> None:
        """Withdraw an assumption; a pod that is bound by its own word stays counted."""
        claim = self.ledger.of(uid)
        if claim is not None and claim.kind in (ASSUMED, HELD):
            self.ledger.release(uid)

    def set_namespace(self, name: str, labels: Labels) -> None:
        """Know a namespace's labels, which pods' terms may select by."""
        new = dict(labels)
        if self.namespaces.get(name) != new:
            self.namespaces[name] = new
            self.ledger.labels_changed()

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace's labels."""
        if self.namespaces.pop(name, None):
            self.ledger.labels_changed()

    # What is claimed

    @property
    def on_node(self) -> Mapping[str, Claims]:
        """Who counts on each node, by UID."""
        return self.ledger.on_node

    @property
    def nominated(self) -> Mapping[str, Pod]:
        """Pods for which somebody else keeps a node (`status.nominatedNodeName`)."""
        return {uid: claim.pod for uid, claim in self.ledger.nominated.items()}

    @property
    def holdings(self) -> Holdings:
        """What namespaces hold for members to come."""
        return self.ledger.holdings

    # Questions

    def accepting(self, member: Member) -> Mask:
        """The rows whose nodes take the class for what they are, whatever stands there."""
        rows = np.arange(len(self.capacity.names))
        accepting = self.nodes_by_row.there(rows)
        for constraint in self.constraints:
            if isinstance(constraint, NodeConstraint) and (mask := constraint.mask(member, rows)) is not None:
                accepting &= mask
        return accepting

    def worsen(self, node: str) -> None:
        """Somebody has room on the node that others rely on."""
        self.worsened.add(node)

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
