"""The one ledger of claims: who takes what on which node, and why it counts.

All that is spoken for is a claim here, whatever it is for; who plans reads what is derived of the claims. An owner has
one claim at a time. `put` makes it, moves it or changes its kind, `release` ends it. Both tell whoever counts: the
capacity, the constraints, the lists by node and what namespaces hold. Nobody else does.

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

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from gangsched.core.cluster.capacity import Capacity
from gangsched.core.cluster.holdings import Holdings
from gangsched.core.cluster.relief import Relief
from gangsched.core.constraints.constraint import Constraint, Happening
from gangsched.core.objects.pod import Pod


class Kind(StrEnum):
    """What a claim is for."""

    BOUND = "Bound"
    ASSUMED = "Assumed"
    HELD = "Held"
    NOMINATED = "Nominated"


BOUND, ASSUMED, HELD, NOMINATED = Kind
# Named once, because they are looked at for each event of a pod.


class Claim(Struct, frozen=True, gc=False):
    """The pod takes on the node what its shape requests, and whatever else constraints see of it."""

    kind: Kind
    node: str
    pod: Pod

    @property
    def owner(self) -> str:
        """Who claims, by UID."""
        return self.pod.uid

    @property
    def counts(self) -> bool:
        """Whether it takes its share of the node from everybody."""
        return self.kind is not NOMINATED


Claims = Mapping[str, Claim]
"""Claims by owner."""

_NONE: Claims = {}


class Ledger:
    """The claims, and what is derived of them: `holdings` here, and what `capacity` and `constraints` count.

    What a released claim makes better is noted in `relief`.
    """

    def __init__(self, capacity: Capacity, constraints: Sequence[Constraint], relief: Relief) -> None:
        self.holdings = Holdings()
        self._capacity = capacity
        self._constraints = constraints
        self._relief = relief
        self._claims: dict[str, Claim] = {}
        self._on: dict[str, dict[str, Claim]] = {}
        self._nominated: dict[str, Claim] = {}

    # Claims

    def put(self, claim: Claim) -> bool:
        """Enter the claim in place of its owner's former one. Returns whether it takes anything that this did not."""
        before = self._claims.get(claim.pod.uid)
        if before is not None and _takes_alike(before, claim):
            self._enter(claim)
            return False
        if before is not None:
            self.release(before.pod.uid)
        self._enter(claim)
        if claim.kind is HELD:
            self.holdings.add(claim.pod)
        self._take(claim)
        return True

    def release(self, owner: str) -> None:
        """End the owner's claim, if it has one."""
        claim = self._claims.pop(owner, None)
        if claim is None:
            return
        if claim.kind is NOMINATED:
            del self._nominated[owner]
        else:
            there = self._on[claim.node]
            del there[owner]
            if not there:
                del self._on[claim.node]
        if claim.kind is HELD:
            self.holdings.remove(claim.pod)
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

    def node_comes(self, name: str) -> None:
        """The node, its labels among it, is known from now on: what is claimed on it counts."""
        for claim in self._on.get(name, _NONE).values():
            self._take(claim)

    def node_leaves(self, name: str) -> None:
        """The node is about to be unknown, or to have other labels: until it comes, claims on it take nothing."""
        for claim in (*self._on.get(name, _NONE).values(), *self._nominated_to(name)):
            self._give_back(claim)

    def labels_changed(self) -> None:
        """Of a namespace, or of a node: what pods close to others may change anywhere, unless none does."""
        for constraint in self._constraints:
            constraint.labels_changed()
            self._relief.note(everywhere=constraint.opens_elsewhere(Happening.LABELS_CHANGED))
        for claim in self._nominated.values():
            self._relief.note(everywhere=self._opens_elsewhere(claim.pod))

    # Who counts

    def _enter(self, claim: Claim) -> None:
        owner = claim.pod.uid
        self._claims[owner] = claim
        if claim.kind is NOMINATED:
            self._nominated[owner] = claim
        elif claim.node in self._on:
            self._on[claim.node][owner] = claim
        else:
            self._on[claim.node] = {owner: claim}

    def _take(self, claim: Claim) -> None:
        row = self._capacity.rows.get(claim.node)
        if row is None or not claim.counts:
            return
        self._capacity.take(row, claim.pod.shape.requests)
        for constraint in self._constraints:
            constraint.add(claim.pod, row)

    def _give_back(self, claim: Claim) -> None:
        row = self._capacity.rows.get(claim.node)
        if row is None:
            return
        if claim.counts:
            self._capacity.give_back(row, claim.pod.shape.requests)
            for constraint in self._constraints:
                constraint.remove(claim.pod, row)
        self._relief.note(row=row, everywhere=self._opens_elsewhere(claim.pod))

    def _opens_elsewhere(self, pod: Pod) -> bool:
        """The end of a pod opens its node; it may open others, too."""
        return any(constraint.opens_elsewhere(Happening.POD_LEFT, pod) for constraint in self._constraints)

    def _nominated_to(self, node: str) -> list[Claim]:
        return [claim for claim in self._nominated.values() if claim.node == node]

    def validate(self, constraints: Sequence[Constraint]) -> list[str]:
        """Whatever differs from what it would be if it were made of the claims anew, in a sentence each.

        `constraints` know the same nodes as those of the ledger, and of no pod.
        """
        on: dict[str, dict[str, Claim]] = {}
        holdings = Holdings()
        taken = []
        nominated = {owner: claim for owner, claim in self._claims.items() if not claim.counts}
        for owner in self._claims.keys() - nominated.keys():
            claim = self._claims[owner]
            on.setdefault(claim.node, {})[owner] = claim
            if claim.kind is HELD:
                holdings.add(claim.pod)
            row = self._capacity.rows.get(claim.node)
            if row is not None:
                taken.append((claim.node, claim.pod.shape.requests))
                for constraint in constraints:
                    constraint.add(claim.pod, row)
        wrong = self._capacity.mismatches(taken)
        for what, kept, found in (
            ("lists of claims by node", self._on, on),
            ("nominated claims", self._nominated, nominated),
            ("amounts that namespaces hold", self.holdings, holdings),
        ):
            if kept != found:
                wrong.append(f"the {what} are not those of the claims")
        for known, anew in zip(self._constraints, constraints, strict=True):
            if known.told() != anew.told():
                wrong.append(f"what {type(known).__name__} knows is not what nodes and claims say")
        return wrong


def _takes_alike(before: Claim, after: Claim) -> bool:
    """Whether the claim goes on, of a pod that is now seen in another form, or that shows the node assumed for it."""
    old, new = before.pod, after.pod
    return (
        before.node == after.node
        and (before.kind is after.kind or (before.kind is ASSUMED and after.kind is BOUND))
        and old.shape == new.shape
        and old.anti_affinity == new.anti_affinity
    )
