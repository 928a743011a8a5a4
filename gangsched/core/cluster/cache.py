"""The present state of the cluster: nodes, pods and what they take. Planning reads no other mutable state.

A pod counts against a node from the moment a binding is decided (`assume`) or observed, until the pod has ended or was
deleted, or the decision is withdrawn (`forget`): each is a claim in the `ledger`. Changes that could help waiting gangs
are noted in `relief`, which the queue reads after each batch of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec.structs import replace

from gangsched.core.cluster.budgets import Budgets
from gangsched.core.cluster.changes import Relief
from gangsched.core.cluster.claims import ASSUMED, BOUND, HELD, NOMINATED, Claim, Claims, claim_contradictions
from gangsched.core.cluster.in_flight import Flights, Prebindings
from gangsched.core.cluster.labels import NodeLabels
from gangsched.core.cluster.ledger import Ledger
from gangsched.core.constraints import registry
from gangsched.core.constraints.constraint import Constraint, Member, NodeConstraint, World
from gangsched.core.constraints.node_rows import Nodes
from gangsched.core.constraints.tally import Tallies
from gangsched.core.inventory import unbound
from gangsched.core.inventory.capacity import Capacity
from gangsched.core.inventory.device_index import Devices
from gangsched.core.inventory.volume_index import Volumes
from gangsched.core.objects.arrays import Mask
from gangsched.core.objects.devices import DeviceKind, DeviceObject
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding
from gangsched.core.objects.shape import Labels
from gangsched.core.objects.volumes import StorageKey, StorageKind, StorageObject


class Cluster:
    """Nodes by name and pods by UID, with exact accounting. All pods count, whichever scheduler placed them.

    `namespaces` are their labels by name, and `terminating` those that are being deleted.
    `on_node` lists the claims that count by node, `holdings` what namespaces hold, `flights` the bindings on their way.
    `constraints` are updated from here when nodes change, and from the ledger when pods do. `worsened` are the nodes
    that have changed since they were last taken, or on which a pod was counted that we did not place there.
    """

    def __init__(self, flights: Flights | None = None) -> None:
        """`flights` are those of a former cluster, whose state is built anew."""
        self.flights = Flights() if flights is None else flights
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.terminating: set[str] = set()
        self.relief = Relief()
        self.node_changes = 0
        self.worsened: dict[str, None] = {}
        self.devices = Devices()
        self.capacity = Capacity(self.devices.provided)
        self.nodes_by_row = Nodes()
        self.labels = NodeLabels(self.capacity, self.nodes_by_row)
        self.volumes = Volumes()
        self.budgets = Budgets()
        self.tallies = Tallies(self.namespaces, self._placed)
        self.preferred = Tallies(self.namespaces, self._placed)
        self.constraints: list[Constraint] = []
        self.ledger = Ledger(self.capacity, self.constraints, self.tallies, self.preferred, self.relief)
        self.prebindings = Prebindings(self.volumes, self.devices, self.ledger.pending_prebindings)
        world = World(
            self.nodes_by_row,
            self.capacity,
            self.namespaces,
            self.volumes,
            self.tallies,
            self.devices,
            self.preferred,
            self.ledger.pending_prebindings,
        )
        self.constraints += [kind(world) for kind in registry.CONSTRAINTS]
        self.on_node: Mapping[str, Claims] = self.ledger.on_node
        self.holdings = self.ledger.holdings

    # Nodes

    def set_node(self, node: Node) -> bool:
        """Add or replace a node. Returns whether anything that matters to placement changed."""
        old = self.nodes.get(node.name)
        if old == node:
            return False
        if old is not None and replace(old, images=node.images) == node:
            # Nodes often pull an image with a new pod; that cannot help a waiting gang.
            self.nodes[node.name] = node
            for constraint in self.constraints:
                constraint.set_node(self.capacity.rows[node.name], node)
            return False
        relabelled = old is not None and old.labels != node.labels
        if relabelled:
            self.ledger.labels_changed()
            self.ledger.node_leaves(node.name)
        self.nodes[node.name] = node
        row = self.capacity.set_node(node.name, node.allocatable)
        if old is None or relabelled:
            changed = None if old is None else {key for key, _ in {*old.labels} ^ {*node.labels}}
            self.relief.note(domains=self.labels.forget(changed))
        self.nodes_by_row.set(row, node)
        for constraint in self.constraints:
            constraint.set_node(row, node)
        if old is None or relabelled:
            self.ledger.node_comes(node.name)
        # Topology spread may decide about other nodes by whether it counts this one; a new, empty node opens no other.
        alike = old is None or (old.labels, old.taints) == (node.labels, node.taints)
        asked, everywhere = bool(self.tallies.counts) and not alike, self.capacity.redelegated()
        self.relief.note(row=row, all_asked=asked, everywhere=everywhere, doubts=True)
        self.ledger.touched.note(node.name)
        self.ledger.tightened.note(node.name)
        self.worsen(node.name)
        self.node_changes += 1
        self.holdings.note_nodes_changed()
        return True

    def remove_node(self, name: str) -> bool:
        """Remove a node. Pods that still name it are kept and count again if it comes back."""
        if name not in self.nodes:
            return False
        self.ledger.node_leaves(name)
        row = self.capacity.remove_node(name)
        self.nodes_by_row.remove(row)
        for constraint in self.constraints:
            constraint.remove_node(row)
        del self.nodes[name]
        moved, asked = self.labels.forget(), bool(self.tallies.counts)
        self.relief.note(domains=moved, all_asked=asked, everywhere=self.capacity.redelegated())
        self.relief.no_node(row)
        self.node_changes += 1
        self.worsen(name)
        return True

    # Pods and their claims

    def node_of(self, uid: str) -> str:
        """The node on which the pod counts, by its own spec or by our decision; empty if on none."""
        pod = self.pods.get(uid)
        if pod is not None and pod.node:
            return pod.node
        claim = self.ledger.claims.get(uid)
        return claim.node if claim is not None and claim.counts else ""

    def set_pod(self, pod: Pod) -> Pod | None:
        """Add or replace a pod. A node that the pod shows replaces an assumed one. Returns the former value."""
        old = self.pods.get(pod.uid)
        self.pods[pod.uid] = pod
        if old is None:
            self.budgets.begin(pod)
        # Checked inline, because most pods use none.
        if pod.volume_claims or pod.own_volume_claims or (old and (old.volume_claims or old.own_volume_claims)):
            self.volumes.pod_changes(old, pod)
        if pod.device_claims or pod.extended or (old and old.uses_devices):
            self.devices.users.pod_changes(old, pod)
        claim = self.ledger.claims.get(pod.uid)
        if pod.terminal or (claim is not None and claim.kind is BOUND and not pod.node):
            self.ledger.release(pod.uid)
        elif pod.node:
            if self.ledger.put(Claim(BOUND, pod.node, pod)):
                self.worsen(pod.node)
        elif claim is not None:
            self.ledger.put(replace(claim, pod=pod))
        return old

    def nominate(self, pod: Pod) -> None:
        """Note the node that another scheduler has nominated for this pod, or that it no longer has one."""
        if pod.nominated_node and not (pod.node or pod.terminal):
            self.ledger.put(Claim(NOMINATED, pod.nominated_node, pod))
        elif pod.uid in self.ledger.nominated:
            self.ledger.release(pod.uid)

    def remove_pod(self, uid: str) -> Pod | None:
        """Remove a pod and free what it took. Returns its last value."""
        self.ledger.release(uid)
        pod = self.pods.pop(uid, None)
        if pod is not None and pod.uses_claims:
            self.volumes.pod_changes(pod, None)
        if pod is not None:
            self.devices.users.pod_changes(pod, None)
            self.budgets.forget(pod)
        return pod

    def assume(self, uid: str, node: str, prebindings: tuple[Prebinding, ...] = ()) -> None:
        """Count an unbound pod, or a placeholder, on the node from now on, with its pre-bindings."""
        pod = self.pods[uid]
        if not (pod.node or pod.terminal):
            self.ledger.put(Claim(ASSUMED if pod.name else HELD, node, pod, prebindings))

    def forget(self, uid: str) -> None:
        """Withdraw an assumption; a pod that shows its node stays counted."""
        claim = self.ledger.claims.get(uid)
        if claim is not None and claim.kind in (ASSUMED, HELD):
            self.ledger.release(uid)

    def count_in_flight(self, pod: Pod) -> None:
        """Count the pod, which is on no node, on the node of its binding on its way, and on no other."""
        flight = self.flights.of(pod.uid)
        node = flight.node if flight is not None else ""
        if not pod.node and self.node_of(pod.uid) != node:
            self.forget(pod.uid)
            if node:
                self.assume(pod.uid, node)

    def resume_flights(self) -> None:
        """Count the bindings on their way, after the state was built anew; none of a pod that is not there any more."""
        for uid in self.flights:
            if uid in self.pods:
                self.count_in_flight(self.pods[uid])
            else:
                self.flights.ended(uid)

    def set_namespace(self, name: str, labels: Labels) -> None:
        """Set a namespace's labels, by which affinity terms of pods may select it."""
        new = dict(labels)
        if self.namespaces.get(name) != new:
            self.namespaces[name] = new
            self._namespaces_changed()

    def note_terminating(self, name: str, *, terminating: bool) -> bool:
        """Note whether the namespace is being deleted. Returns whether that has changed."""
        if terminating is (name in self.terminating):
            return False
        self.terminating ^= {name}
        return True

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace."""
        if self.namespaces.pop(name, None):
            self._namespaces_changed()

    def set_storage(self, kind: StorageKind, key: StorageKey, new: StorageObject | None) -> list[str]:
        """Set a storage object; None removes it. Returns the UIDs of the known pods whose claims are affected."""
        old, demanded = self.volumes.known(kind).get(key), key[1] in self.volumes.demanding
        promised = len(self.volumes.marked)
        attached = self.volumes.nodes_of(old) | self.volumes.nodes_of(new) if old != new else frozenset()
        claims = self.volumes.set(kind, key, new)
        self.relief.note(everywhere=len(self.volumes.marked) < promised or unbound.gives_storage(old, new))
        for constraint in self.constraints if claims else ():
            constraint.claims_changed(claims)
        users = dict.fromkeys(uid for claim in claims for uid in self.volumes.users(claim))
        nodes = {self.node_of(uid) for uid in users}
        if kind is StorageKind.NODE and old != new:
            nodes.add(key[1])
        if demanded != (key[1] in self.volumes.demanding):
            nodes |= self.nodes.keys()
        for node in attached & self.nodes.keys():
            for constraint in self.constraints:
                constraint.set_node(self.capacity.rows[node], self.nodes[node])
        # The volume of a pod is attached some time after the pod was bound, which frees nothing.
        eased = new is None or kind is not StorageKind.ATTACHMENT
        for node in sorted((nodes | attached) & self.nodes.keys()):
            if eased:
                self.relief.note(row=self.capacity.rows[node])
            self.worsen(node)
        return list(users)

    def set_devices(self, kind: DeviceKind, key: ObjectKey, new: DeviceObject | None) -> list[str]:
        """Set a ResourceSlice, a DeviceClass or a ResourceClaim; None removes it.

        Returns the UIDs of the known pods whose claims are affected. A device may be usable on several nodes.
        """
        generation, taken = self.devices.generation, self.devices.taken
        claims = self.devices.set(kind, key, new)
        self.relief.note(everywhere=self.devices.generation != generation or self.devices.taken < taken)
        return list(dict.fromkeys(uid for claim in claims for uid in self.devices.users.of(claim)))

    # Queries

    @property
    def changes(self) -> int:
        """Grows with each change of a claim or a node."""
        return self.ledger.touched.changes + self.node_changes

    def accepting(self, member: Member) -> Mask:
        """The rows whose nodes accept the class, regardless of the pods there."""
        rows = np.arange(len(self.capacity.names))
        accepting = self.nodes_by_row.there(rows)
        for constraint in self.constraints:
            if isinstance(constraint, NodeConstraint) and (mask := constraint.mask(member, rows)) is not None:
                accepting &= mask
        return accepting

    def _namespaces_changed(self) -> None:
        self.tallies.namespaces_changed()
        self.preferred.namespaces_changed()
        self.ledger.labels_changed()

    def _placed(self) -> Iterable[tuple[Pod, int]]:
        return self.ledger.placed()

    def worsen(self, node: str) -> None:
        """Note that capacity on the node, which other decisions rely on, was taken."""
        self.worsened[node] = None

    def take_worsened(self) -> str | None:
        """Remove and return the first node that may have less room, or other requirements, than before; or None."""
        node = next(iter(self.worsened), None)
        if node is not None:
            del self.worsened[node]
        return node

    def forget_worsened(self) -> None:
        """Forget these nodes, as long as nothing is decided."""
        self.worsened.clear()

    def validate(self) -> list[str]:
        """One sentence for each contradiction between pods, claims, nodes and the data derived from them."""
        wrong = claim_contradictions(self.ledger.claims, self.pods)
        rows = self.capacity.rows
        by_row = {rows[name]: node for name, node in self.nodes.items() if name in rows}
        fresh = [constraint.fresh() for constraint in self.constraints]
        for constraint in fresh:
            for row, node in by_row.items():
                constraint.set_node(row, node)
        wrong += self.ledger.validate(fresh)
        wrong += self.nodes_by_row.contradictions(by_row)
        wrong += self.capacity.misplaced({name: node.allocatable for name, node in self.nodes.items()})
        wrong += self.labels.mismatches()
        wrong += self.volumes.contradictions(self.pods.values())
        wrong += self.devices.contradictions(self.pods.values())
        wrong += self.budgets.contradictions()
        if not self.relief.rows <= by_row.keys():
            wrong.append("a row without a node is noted as improved")
        return wrong
