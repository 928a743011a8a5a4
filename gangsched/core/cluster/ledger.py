"""The ledger of claims: which pod takes capacity on which node, and why it counts.

All capacity in use is a claim here, whatever it is for; planning reads what is derived from the claims. An owner (a pod
UID) has one claim at a time. `put` creates it, moves it or changes its kind, `release` ends it. Only these two update
what is derived from claims: the capacity, the constraints, the lists by node and the holdings of namespaces.

| kind | who claims | ends |
|---|---|---|
| Bound | a pod that shows its node, whichever scheduler bound it | it has ended or was deleted |
| Assumed | a pod of ours for which a binding was decided | the pod shows its node, or the decision is withdrawn |
| Held | a placeholder: a pod without a name, for a future member | a member takes the reservation, or it is given up |
| Nominated | another scheduler's pod (`status.nominatedNodeName`) | it is bound, has ended, or names another node |

A nominated pod is not on its node: its claim counts only in plans that heed it (`Snapshot.heed_nominated`). A claim on
an unknown node is kept, and counts as soon as the node is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from gangsched.core.cluster.capacity import Capacity, Relief
from gangsched.core.constraints.constraint import Constraint, Happening
from gangsched.core.constraints.tally import Question, Tallies
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding, Taken
from gangsched.core.objects.shape import PODS


class Kind(StrEnum):
    """What a claim is for."""

    BOUND = "Bound"
    ASSUMED = "Assumed"
    HELD = "Held"
    NOMINATED = "Nominated"


BOUND, ASSUMED, HELD, NOMINATED = Kind
# Module constants, because they are compared for each event of a pod.


class Claim(Struct, frozen=True, gc=False):
    """The pod takes on the node what its shape requests, what constraints see in it, and what `prebindings` take."""

    kind: Kind
    node: str
    pod: Pod
    prebindings: tuple[Prebinding, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it takes capacity from all other pods."""
        return self.kind is not NOMINATED


Claims = Mapping[str, Claim]
"""Claims by owner."""

_NONE: Claims = {}
_NOTHING: Mapping[str, int] = Counter()


def asked_by(placeholders: Iterable[Pod]) -> Counter[str]:
    """The sum of what these placeholders request, by resource; `pods` is their number."""
    asked: Counter[str] = Counter()
    for pod in placeholders:
        asked[PODS] += 1
        for resource, amount in pod.shape.requests:
            asked[resource] += amount
    return asked


class Holdings:
    """What each namespace holds for members that do not exist yet: the amounts that caps limit."""

    def __init__(self) -> None:
        self._nodes_changed = False
        self._eased: set[str] = set()
        self._held: dict[str, Counter[str]] = {}

    def __eq__(self, other: object) -> bool:
        """Whether the same amounts are held."""
        return isinstance(other, Holdings) and self._held == other._held

    __hash__ = None  # type: ignore[assignment]

    def of(self, namespace: str) -> Mapping[str, int]:
        """What the namespace holds, by resource; `pods` is the number of reservations."""
        return self._held.get(namespace, _NOTHING)

    def add(self, placeholder: Pod) -> None:
        """Count another reservation."""
        self._held.setdefault(placeholder.namespace, Counter()).update(asked_by([placeholder]))

    def remove(self, placeholder: Pod) -> None:
        """Stop counting a reservation: a member has taken it, or it was given up."""
        held = self._held[placeholder.namespace]
        held.subtract(asked_by([placeholder]))
        self._eased.add(placeholder.namespace)
        if not held[PODS]:
            del self._held[placeholder.namespace]

    def note_nodes_changed(self) -> None:
        """Note that the limits of namespaces, which are shares of the cluster, may have changed."""
        self._nodes_changed = True

    def take_eased(self, namespaces: Iterable[str]) -> list[str]:
        """Which of these namespaces hold less, or may have a higher limit, than at the last call."""
        eased = [name for name in namespaces if self._nodes_changed or name in self._eased]
        self._eased, self._nodes_changed = set(), False
        return eased


class Ledger:
    """All `claims` by owner, and what is derived from them.

    `on_node` lists those that count, by node, `nominated` the others; `spoken_for` are pre-bindings by what they take
    and by owner. `changes` grows with each change of a claim. The end of a claim is noted in `relief`.
    """

    def __init__(self, capacity: Capacity, constraints: Sequence[Constraint], tallies: Tallies, relief: Relief) -> None:
        self.holdings = Holdings()
        self.spoken_for: dict[Taken, dict[str, Prebinding]] = {}
        self._tallies = tallies
        self._capacity = capacity
        self._constraints = constraints
        self._relief = relief
        self.changes = 0
        self.claims: dict[str, Claim] = {}
        self.on_node: dict[str, dict[str, Claim]] = {}
        self.nominated: dict[str, Claim] = {}

    # Claims

    def put(self, claim: Claim) -> bool:
        """Replace the owner's claim, if any. Returns whether the new one takes anything that the former did not."""
        before = self.claims.get(claim.pod.uid)
        if before is not None and _takes_alike(before, claim):
            self._silence(before)
            self._enter(claim)
            self._count_again(before, claim)
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
        claim = self.claims.pop(owner, None)
        if claim is None:
            return
        self._silence(claim)
        self.changes += 1
        if claim.kind is NOMINATED:
            del self.nominated[owner]
        else:
            there = self.on_node[claim.node]
            del there[owner]
            if not there:
                del self.on_node[claim.node]
        if claim.kind is HELD:
            self.holdings.remove(claim.pod)
        self._give_back(claim)

    # Nodes and namespaces

    def node_comes(self, name: str) -> None:
        """The node is known from now on, with its labels: claims on it count."""
        for claim in self.on_node.get(name, _NONE).values():
            self._take(claim)

    def node_leaves(self, name: str) -> None:
        """The node is about to be removed or relabelled: claims on it take nothing until `node_comes`."""
        nominated = [claim for claim in self.nominated.values() if claim.node == name]
        for claim in (*self.on_node.get(name, _NONE).values(), *nominated):
            self._give_back(claim)

    def labels_changed(self) -> None:
        """A namespace or a node has other labels: which nodes pods close to others may change everywhere."""
        self._relief.note(all_asked=bool(self._tallies))
        for constraint in self._constraints:
            constraint.labels_changed()
            self._relief.note(everywhere=constraint.opens_elsewhere(Happening.LABELS_CHANGED))
        for claim in self.nominated.values():
            self._relief.note(everywhere=self._opens_elsewhere(claim.pod))

    # What is derived

    def _enter(self, claim: Claim) -> None:
        self.changes += 1
        owner = claim.pod.uid
        self.claims[owner] = claim
        for prebinding, taken in ((each, taken) for each in claim.prebindings for taken in each.takes):
            self.spoken_for.setdefault(taken, {})[owner] = prebinding
        if claim.kind is NOMINATED:
            self.nominated[owner] = claim
        else:
            self.on_node.setdefault(claim.node, {})[owner] = claim

    def _silence(self, claim: Claim) -> None:
        """What its pre-bindings took is spoken for no longer; others may wait for it."""
        for taken in [taken for each in claim.prebindings for taken in each.takes]:
            del self.spoken_for[taken][claim.pod.uid]
            if not self.spoken_for[taken]:
                del self.spoken_for[taken]
            self._relief.note(everywhere=True)

    def _take(self, claim: Claim) -> None:
        row = self._capacity.rows.get(claim.node)
        if row is None or not claim.counts:
            return
        self._capacity.take(row, claim.pod.shape.requests)
        for constraint in self._constraints:
            constraint.add(claim.pod, row)
        self._note(self._tallies.add(claim.pod, row))

    def _give_back(self, claim: Claim) -> None:
        row = self._capacity.rows.get(claim.node)
        if row is None:
            return
        if claim.counts:
            self._capacity.give_back(row, claim.pod.shape.requests)
            for constraint in self._constraints:
                constraint.remove(claim.pod, row)
            self._note(self._tallies.remove(claim.pod, row))
        self._relief.note(row=row, everywhere=self._opens_elsewhere(claim.pod))

    def _count_again(self, before: Claim, claim: Claim) -> None:
        """The pod has other labels, or terminates."""
        old, new, row = before.pod, claim.pod, self._capacity.rows.get(claim.node)
        if row is not None and claim.counts and (old.labels, old.terminating) != (new.labels, new.terminating):
            self._note(self._tallies.remove(old, row))
            self._note(self._tallies.add(new, row))

    def _note(self, asked: Iterable[Question]) -> None:
        """These questions have other answers now, and if some were dropped, perhaps those too."""
        self._relief.note(asked=asked, all_asked=self._tallies.forgetful)

    def _opens_elsewhere(self, pod: Pod) -> bool:
        """Whether the end of the pod may open nodes other than its own."""
        return any(constraint.opens_elsewhere(Happening.POD_LEFT, pod) for constraint in self._constraints)

    def validate(self, constraints: Sequence[Constraint]) -> list[str]:
        """Compare what is kept with the same derived again from the claims; one sentence for each difference.

        `constraints` know the same nodes as those of the ledger, and no pods.
        """
        fresh = Ledger(self._capacity, constraints, self._tallies, self._relief)
        taken = []
        for claim in self.claims.values():
            fresh._enter(claim)
            if claim.kind is HELD:
                fresh.holdings.add(claim.pod)
            row = self._capacity.rows.get(claim.node)
            if row is not None and claim.counts:
                taken.append((claim.node, claim.pod.shape.requests))
                for constraint in constraints:
                    constraint.add(claim.pod, row)
        wrong = self._capacity.mismatches(taken)
        for what, kept, found in (
            ("lists of claims by node", self.on_node, fresh.on_node),
            ("nominated claims", self.nominated, fresh.nominated),
            ("amounts that namespaces hold", self.holdings, fresh.holdings),
            ("pre-bindings under way", self.spoken_for, fresh.spoken_for),
        ):
            if kept != found:
                wrong.append(f"the {what} are not those of the claims")
        for known, other in zip(self._constraints, constraints, strict=True):
            if known.told() != other.told():
                wrong.append(f"what {type(known).__name__} knows is not what nodes and claims say")
        return wrong + self._tallies.contradictions()

    def placed(self) -> Iterator[tuple[Pod, int]]:
        """The pods that count on known nodes, each with its row."""
        for name, claims in self.on_node.items():
            row = self._capacity.rows.get(name)
            if row is not None:
                for claim in claims.values():
                    yield claim.pod, row


def _takes_alike(before: Claim, after: Claim) -> bool:
    """Whether the claim only continues: its pod was updated, or now shows the node that was assumed for it."""
    old, new = before.pod, after.pod
    return (
        before.node == after.node
        and (before.kind is after.kind or (before.kind is ASSUMED and after.kind is BOUND))
        and old.shape == new.shape
        and old.volume_claims == new.volume_claims
        and old.own_volume_claims == new.own_volume_claims
    )
