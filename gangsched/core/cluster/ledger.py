"""The ledger of claims: which pod takes capacity on which node, and why it counts.

All capacity in use is a claim here, whatever it is for; planning reads data derived from the claims. An owner (a pod
UID) has one claim at a time. `put` creates it, moves it or changes its kind, `release` ends it. Only these two update
the derived data: the capacity, the constraints, the lists by node and the holdings of namespaces.

| kind | owner | ends when |
|---|---|---|
| Bound | a pod that shows its node, whichever scheduler bound it | it has ended or was deleted |
| Assumed | a pod of ours for which a binding was decided | the pod shows its node, or the decision is withdrawn |
| Held | a placeholder: a pod without a name, for a future member | a member takes the reservation, or it is given up |
| Nominated | another scheduler's pod (`status.nominatedNodeName`) | it is bound, has ended, or names another node |
| Reserved | a member for whose group pods are preempted | it is bound, or the plan ends (`core.contention`) |

A nominated or reserved pod is not on its node: its claim counts only for some who ask (`Claim.counts_for`,
`Snapshot.stand_for`). A claim on an unknown node is kept, and counts as soon as the node is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from gangsched.core.cluster.changes import Journal, Relief, Touched
from gangsched.core.cluster.claims import ASSUMED, BOUND, HELD, NOMINATED, RESERVED, Claim, Claims, Holdings, Reserved
from gangsched.core.constraints.constraint import Constraint, Happening
from gangsched.core.constraints.tally import Question, Tallies
from gangsched.core.inventory.capacity import Capacity
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.indexes import drop
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding, Taken
from gangsched.core.objects.shape import PodTerm

_NONE: Claims = {}


class Ledger:
    """All `claims` by owner, and the data derived from them; each that begins, ends or changes is noted in `touched`.

    Each that takes more than before is noted in `tightened` as well; nodes that have changed are noted in both.
    `on_node` lists the claims that count, by node; others are `nominated`, or `reserved` for groups. `holdings` sums
    what namespaces hold.
    `pending_prebindings` are the pre-bindings of claims, by the objects that they take and by owner. `capacity`,
    `constraints` and tallies count claims on known nodes; the tallies of `preferred` terms wake no gang. The end of a
    claim is noted in `relief`.
    """

    def __init__(
        self,
        capacity: Capacity,
        constraints: Sequence[Constraint],
        tallies: Tallies,
        preferred: Tallies,
        relief: Relief,
    ) -> None:
        self.holdings = Holdings()
        self.pending_prebindings: dict[Taken, dict[str, Prebinding]] = {}
        self._tallies = tallies
        self._preferred = preferred
        self._capacity = capacity
        self._constraints = constraints
        self._relief = relief
        self.touched, self.tightened = Touched(capacity), Touched(capacity)
        self.journal = Journal()
        self.claims: dict[str, Claim] = {}
        self.on_node: dict[str, dict[str, Claim]] = {}
        self.nominated: dict[str, Claim] = {}
        self.reserved: dict[GroupKey, Reserved] = {}
        self._promised: frozenset[str] | None = None

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
        if self.reserved:
            self._withhold_anew(claim.pod.uid)
        if claim.kind is HELD:
            self.holdings.add(claim.pod)
        self._take(claim)
        return True

    def release(self, owner: str) -> None:
        """End the owner's claim, if it has one."""
        claim = self.claims.pop(owner, None)
        self.journal.note(owner)
        if claim is None:
            return
        self.touched.note(claim.node)
        self._withhold_anew(owner)
        self._silence(claim)
        if claim.kind is NOMINATED:
            del self.nominated[owner]
        elif claim.holder is not None:
            reserved = self.reserved[claim.holder]
            reserved.claims.pop(owner, None)
            reserved.changed()
            if not reserved.claims:
                del self.reserved[claim.holder]
                self._promised = None
        else:
            drop(self.on_node, claim.node, owner)
        if claim.kind is HELD:
            self.holdings.remove(claim.pod)
        self._give_back(claim)

    def reserve(
        self,
        holder: GroupKey,
        places: Iterable[tuple[Pod, str]],
        leaving: Collection[str],
        *,
        start: float | None = None,
    ) -> None:
        """Reserve these places for the group, instead of what was; these pods (by UID) are `leaving` for it.

        With a `start` they end by themselves, and it is when the group needs the places (`Reserved`).
        """
        self.unreserve(holder)
        for pod, node in places:
            self.put(Claim(RESERVED, node, pod, holder=holder))
        self.reserved.setdefault(holder, Reserved()).start = start
        self._let_leave(holder, leaving)

    def leave_for(self, holder: GroupKey, leaving: Collection[str]) -> None:
        """These pods (by UID) and no others leave the places that are reserved for the group.

        Those that leave for another group already count for that one alone, unless it only waits for any of them to
        end. If nothing is reserved for it any more, as its last member is gone, nobody leaves. What the others hold is
        not kept from anybody beside them any more.
        """
        for uid in self._let_leave(holder, leaving):
            row = self._capacity.rows.get(self.claims[uid].node) if uid in self.claims else None
            if row is not None:
                self._relief.note(row=row)

    def _let_leave(self, holder: GroupKey, leaving: Collection[str]) -> frozenset[str]:
        """Note who leaves. Returns those who did not so far."""
        if (reserved := self.reserved.get(holder)) is None:
            return frozenset()
        before = reserved.leaving
        others = (other.leaving for key, other in self.reserved.items() if key != holder and not other.fills_up)
        reserved.leaving = frozenset(leaving).difference(*others)
        for changed in (reserved, *(other for other in self.reserved.values() if other.fills_up)):
            changed.changed()
        self._promised = None
        for claim in reserved.claims.values():
            self.touched.note(claim.node)
        return reserved.leaving - before

    def promised(self) -> frozenset[str]:
        """The pods, by UID, that are preempted for groups: the same set until that changes."""
        if self._promised is None:
            leaving = (room.leaving for room in self.reserved.values() if room.start is None)
            self._promised = frozenset[str]().union(*leaving)
        return self._promised

    def unreserve(self, holder: GroupKey) -> None:
        """Reserve nothing for the group any more."""
        for owner in [*self.reserved[holder].claims] if holder in self.reserved else ():
            self.release(owner)
        self.reserved.pop(holder, None)
        self._promised = None

    # Nodes and namespaces

    def node_comes(self, name: str) -> None:
        """Count the claims on a node that was added, or has new labels."""
        for claim in self.on_node.get(name, _NONE).values():
            self._take(claim)

    def node_leaves(self, name: str) -> None:
        """Stop counting the claims on a node that is about to be removed or relabelled, until `node_comes`."""
        conditional = [claim for claim in self._conditional() if claim.node == name]
        for claim in (*self.on_node.get(name, _NONE).values(), *conditional):
            self._give_back(claim)

    def labels_changed(self) -> None:
        """The labels of a namespace or a node have changed, so pods may exclude others from other nodes than before."""
        self._relief.note(all_asked=bool(self._tallies.counts))
        for constraint in self._constraints:
            constraint.labels_changed()
            self._relief.note(everywhere=constraint.opens_elsewhere(Happening.LABELS_CHANGED))
        for claim in self._conditional():
            self._relief.note(everywhere=self._opens_elsewhere(claim.pod))

    def _conditional(self) -> Iterator[Claim]:
        """The claims that count only for some who ask."""
        yield from self.nominated.values()
        for reserved in self.reserved.values():
            yield from reserved.claims.values()

    # Derived data

    @cached_property
    def _counting(self) -> tuple[Sequence[Constraint], Sequence[Constraint]]:
        """The constraints that count any pod, and all that count one that restricts others.

        They are registered after the ledger is created, before the first claim.
        """
        counting = [constraint for constraint in self._constraints if type(constraint).add is not Constraint.add]
        return [constraint for constraint in counting if constraint.counts_any], counting

    @cached_property
    def _opening(self) -> Sequence[Constraint]:
        """Likewise, the constraints by which an event on one node may make others available."""
        default = Constraint.opens_elsewhere
        return [constraint for constraint in self._constraints if type(constraint).opens_elsewhere is not default]

    def _enter(self, claim: Claim) -> None:
        self.touched.note(claim.node)
        owner = claim.pod.uid
        self.claims[owner] = claim
        for prebinding in claim.prebindings:
            for taken in prebinding.takes:
                self.pending_prebindings.setdefault(taken, {})[owner] = prebinding
        if claim.kind is NOMINATED:
            self.nominated[owner] = claim
        elif claim.holder is not None:
            reserved = self.reserved.setdefault(claim.holder, Reserved())
            reserved.claims[owner] = claim
            reserved.changed()
        else:
            self.on_node.setdefault(claim.node, {})[owner] = claim
        self.journal.note(owner)

    def _withhold_anew(self, owner: str) -> None:
        """The owner takes or gives back its place; one that only begins to terminate holds as much as before."""
        for reserved in self.reserved.values():
            if owner in reserved.leaving:
                reserved.changed()

    def _silence(self, claim: Claim) -> None:
        """Release the objects that the claim's pre-bindings took; others may wait for them."""
        for prebinding in claim.prebindings:
            for taken in prebinding.takes:
                drop(self.pending_prebindings, taken, claim.pod.uid)
                self._relief.note(everywhere=True)

    def _take(self, claim: Claim) -> None:
        row = self._capacity.rows.get(claim.node)
        if row is None or not claim.counts:
            return
        self.tightened.note(claim.node)
        self._capacity.count(row, claim.pod.shape.requests)
        for constraint in self._counting[claim.pod.restricts]:
            constraint.add(claim.pod, row)
        if self._tallies.counts:
            self._note(self._tallies.add(claim.pod, row))
        if self._preferred.counts:
            self._preferred.add(claim.pod, row)

    def _give_back(self, claim: Claim) -> None:
        row = self._capacity.rows.get(claim.node)
        if row is None:
            return
        if claim.counts:
            self._capacity.count(row, claim.pod.shape.requests, -1)
            for constraint in self._counting[claim.pod.restricts]:
                constraint.remove(claim.pod, row)
            self._note(self._tallies.remove(claim.pod, row))
            self._preferred.remove(claim.pod, row)
        self._relief.note(row=row, everywhere=self._opens_elsewhere(claim.pod))

    def _count_again(self, before: Claim, claim: Claim) -> None:
        """Count the pod again if its labels have changed or it terminates."""
        old, new, row = before.pod, claim.pod, self._capacity.rows.get(claim.node)
        if row is None or (old.labels, old.terminating) == (new.labels, new.terminating):
            return
        if not claim.counts:
            self._relief.note(row=row)  # its labels exclude others from this node alone
        else:
            self._note(self._tallies.remove(old, row))
            self._note(self._tallies.add(new, row))
            self._preferred.remove(old, row)
            self._preferred.add(new, row)

    def _note(self, asked: Iterable[Question]) -> None:
        """Note that the answers to these questions have changed, and if some were dropped, perhaps those to others."""
        self._relief.note(asked=asked, all_asked=self._tallies.forgetful)

    def _opens_elsewhere(self, pod: Pod) -> bool:
        """Whether the end of the pod may help on nodes other than its own."""
        return any(constraint.opens_elsewhere(Happening.POD_LEFT, pod) for constraint in self._opening)

    def validate(self, constraints: Sequence[Constraint]) -> list[str]:
        """Compare the derived data with data derived afresh from the claims; one sentence for each difference.

        `constraints` know the same nodes as those of the ledger, and no pods.
        """
        fresh = Ledger(self._capacity, constraints, self._tallies, self._preferred, self._relief)
        taken = []
        for claim in self.claims.values():
            fresh._enter(claim)
            if claim.kind is HELD:
                fresh.holdings.add(claim.pod)
            if claim.counts and (row := self._capacity.rows.get(claim.node)) is not None:
                taken.append((claim.node, claim.pod.shape.requests))
                for constraint in constraints:
                    constraint.add(claim.pod, row)
        wrong = self._capacity.mismatches(taken)
        for name, kept, expected in (
            ("lists of claims by node", self.on_node, fresh.on_node),
            ("nominated claims", self.nominated, fresh.nominated),
            ("reserved claims", _claims_of(self.reserved), _claims_of(fresh.reserved)),
            ("amounts that namespaces hold", self.holdings, fresh.holdings),
            ("pre-bindings under way", self.pending_prebindings, fresh.pending_prebindings),
        ):
            if kept != expected:
                wrong.append(f"the {name} are not those of the claims")
        for known, other in zip(self._constraints, constraints, strict=True):
            if known.state() != other.state():
                wrong.append(f"what {type(known).__name__} knows is not what nodes and claims say")
        return wrong + self._tallies.contradictions() + self._preferred.contradictions()

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
        and before.holder == after.holder
        and (before.kind is after.kind or (before.kind is ASSUMED and after.kind is BOUND))
        and old.shape == new.shape
        and (old.soft is new.soft or _preferred_terms(old) == _preferred_terms(new))
        and old.volume_claims == new.volume_claims
        and old.own_volume_claims == new.own_volume_claims
    )


def _claims_of(reserved: Mapping[GroupKey, Reserved]) -> dict[GroupKey, dict[str, Claim]]:
    return {holder: room.claims for holder, room in reserved.items()}


def _preferred_terms(pod: Pod) -> tuple[tuple[int, PodTerm], ...]:
    return pod.soft.pod_terms if pod.soft is not None else ()
