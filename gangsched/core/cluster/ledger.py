"""The one ledger of claims: who takes what on which node, and why it counts.

All that is spoken for is a claim here, whatever it is for; who plans reads the indexes that are derived from the
claims. An owner has one claim at a time. `put` makes it, moves it or changes its kind, `release` ends it, and nothing
else changes an index: neither free amounts nor host ports, anti-affinity, lists by node or what namespaces hold.

| kind | who claims | ends |
|---|---|---|
| Bound | a pod that shows its node, whoever bound it | it is seen to have ended or gone |
| Assumed | a pod of ours for which a binding was decided | the pod shows its node, or the decision is withdrawn |
| Held | a member to come, for which a pod without a name stands | a member takes the place, or it is given up |
| Nominated | another scheduler's pod (`status.nominatedNodeName`) | it is bound, has ended, or names another node |

A nominated pod is not on its node: its claim counts only for those who heed it (`core.planning.nominated`). A claim on
a node that is not known stays, and counts as soon as the node is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from gangsched.core.cluster.capacity import Capacity
from gangsched.core.cluster.holdings import Holdings
from gangsched.core.cluster.host_ports import ClaimedPorts
from gangsched.core.cluster.labels import NodeLabels
from gangsched.core.cluster.relief import Relief
from gangsched.core.constraints.anti_affinity import AntiAffinityIndex
from gangsched.core.objects.shape import PodTerm, Shape


class Kind(StrEnum):
    """What a claim is for."""

    BOUND = "Bound"
    ASSUMED = "Assumed"
    HELD = "Held"
    NOMINATED = "Nominated"


class Claim(Struct, frozen=True, gc=False):
    """The owner, by UID, takes on the node what the shape requests, its host ports, and what anti-affinity closes."""

    owner: str
    kind: Kind
    node: str
    namespace: str
    shape: Shape
    anti_affinity: tuple[PodTerm, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it takes its share of the node from everybody."""
        return self.kind is not Kind.NOMINATED


Claims = Mapping[str, Claim]
"""Claims by owner."""

_NONE: Claims = {}


class Ledger:
    """The claims, and what is derived of them: `ports`, `anti_affinity`, `holdings` and, in `capacity`, what is free.

    What a released claim makes better is noted in `relief`.
    """

    def __init__(self, capacity: Capacity, labels: NodeLabels, relief: Relief) -> None:
        self.ports = ClaimedPorts()
        self.anti_affinity = AntiAffinityIndex()
        self.holdings = Holdings()
        self._capacity = capacity
        self._labels = labels
        self._relief = relief
        self._claims: dict[str, Claim] = {}
        self._on: dict[str, dict[str, Claim]] = {}
        self._nominated: dict[str, Claim] = {}

    # Claims

    def put(self, claim: Claim) -> bool:
        """Enter the claim in place of its owner's former one. Returns whether it takes anything that this did not."""
        before = self._claims.get(claim.owner)
        if before == claim:
            return False
        self._claims[claim.owner] = claim
        takes_more = before is None or not _takes_alike(before, claim)
        if before is not None and (takes_more or before.kind is Kind.HELD):
            self._unlist(before)
        if before is not None and takes_more:
            self._give_back(before)
        self._list(claim)
        if takes_more:
            self._take(claim)
        return takes_more

    def release(self, owner: str) -> None:
        """End the owner's claim, if it has one."""
        claim = self._claims.pop(owner, None)
        if claim is not None:
            self._unlist(claim)
            self._give_back(claim)

    def of(self, owner: str) -> Claim | None:
        """The owner's claim."""
        return self._claims.get(owner)

    @property
    def claims(self) -> Claims:
        """All claims."""
        return self._claims

    @property
    def on_node(self) -> Mapping[str, Claims]:
        """Those that count, by node."""
        return self._on

    @property
    def nominated(self) -> Claims:
        """Those that others have nominated."""
        return self._nominated

    # Nodes and namespaces

    def node_added(self, name: str) -> None:
        """The node, its labels among them, is known from now on: what is claimed on it counts."""
        for claim in self._on.get(name, _NONE).values():
            self._take(claim)

    def node_leaves(self, name: str) -> None:
        """The node is about to be unknown: what is claimed on it takes nothing while it is."""
        for claim in (*self._on.get(name, _NONE).values(), *self._nominated_to(name)):
            self._give_back(claim)

    def node_relabelled(self, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """The node is in other domains than before."""
        self.selectors_changed()
        for claim in self._on.get(name, _NONE).values():
            for term in claim.anti_affinity:
                self.anti_affinity.remove(term, before)
                self.anti_affinity.add(term, after)

    def selectors_changed(self) -> None:
        """Anti-affinity may mean other pods, or other nodes, than before: what it closes may change anywhere."""
        self.anti_affinity.namespaces_changed()
        if self.anti_affinity or any(claim.anti_affinity for claim in self._nominated.values()):
            self._relief.note(everywhere=True)

    # Indexes

    def _list(self, claim: Claim) -> None:
        if not claim.counts:
            self._nominated[claim.owner] = claim
            return
        self._on.setdefault(claim.node, {})[claim.owner] = claim
        if claim.kind is Kind.HELD:
            self.holdings.add(claim.namespace, claim.shape)

    def _unlist(self, claim: Claim) -> None:
        if not claim.counts:
            del self._nominated[claim.owner]
            return
        there = self._on[claim.node]
        del there[claim.owner]
        if not there:
            del self._on[claim.node]
        if claim.kind is Kind.HELD:
            self.holdings.remove(claim.namespace, claim.shape)

    def _take(self, claim: Claim) -> None:
        row = self._capacity.rows.get(claim.node)
        if row is None or not claim.counts:
            return
        self._capacity.take(row, claim.shape.requests)
        self.ports.add(row, claim.shape.host_ports)
        for term in claim.anti_affinity:
            self.anti_affinity.add(term, self._labels.of(claim.node))

    def _give_back(self, claim: Claim) -> None:
        row = self._capacity.rows.get(claim.node)
        if row is None:
            return
        if claim.counts:
            self._capacity.give_back(row, claim.shape.requests)
            self.ports.remove(row, claim.shape.host_ports)
            for term in claim.anti_affinity:
                self.anti_affinity.remove(term, self._labels.of(claim.node))
        self._relief.note(row=row, everywhere=bool(claim.anti_affinity))

    def _nominated_to(self, node: str) -> list[Claim]:
        return [claim for claim in self._nominated.values() if claim.node == node]

    def validate(self) -> list[str]:
        """Each index that differs from what it would be if it were made of the claims anew, in a sentence."""
        on: dict[str, dict[str, Claim]] = {}
        ports, terms, holdings = ClaimedPorts(), AntiAffinityIndex(), Holdings()
        taken = []
        nominated = {owner: claim for owner, claim in self._claims.items() if not claim.counts}
        for owner in self._claims.keys() - nominated.keys():
            claim = self._claims[owner]
            on.setdefault(claim.node, {})[owner] = claim
            if claim.kind is Kind.HELD:
                holdings.add(claim.namespace, claim.shape)
            row = self._capacity.rows.get(claim.node)
            if row is not None:
                taken.append((claim.node, claim.shape.requests))
                ports.add(row, claim.shape.host_ports)
                for term in claim.anti_affinity:
                    terms.add(term, self._labels.of(claim.node))
        wrong = self._capacity.mismatches(taken)
        for what, kept, found in (
            ("lists of claims by node", self._on, on),
            ("nominated claims", self._nominated, nominated),
            ("host ports in use", self.ports, ports),
            ("anti-affinity terms", self.anti_affinity, terms),
            ("amounts that namespaces hold", self.holdings, holdings),
        ):
            if kept != found:
                wrong.append(f"the {what} are not those of the claims")
        return wrong


def _takes_alike(one: Claim, other: Claim) -> bool:
    """Whether both take the same from everybody."""
    return (
        one.counts == other.counts
        and one.node == other.node
        and one.shape == other.shape
        and one.anti_affinity == other.anti_affinity
    )
