"""Claims: what a pod takes on a node, why and for whom it counts; what namespaces hold. `ledger` has their table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding
from gangsched.core.objects.shape import PODS


class Kind(StrEnum):
    """What a claim is for."""

    BOUND = "Bound"
    ASSUMED = "Assumed"
    HELD = "Held"
    NOMINATED = "Nominated"
    RESERVED = "Reserved"


BOUND, ASSUMED, HELD, NOMINATED, RESERVED = Kind
# Module constants, because they are compared for each event of a pod.


class Viewer(Struct, frozen=True):
    """Who asks for room: on that it depends which claims count.

    `hidden` are groups for which others are preempted and whose reserved claims do not count: its own, and those behind
    it in the order. `later` are groups whose places are reserved for later and do count: those ahead of it that need
    them before it has ended. So two who ask are equal if neither is concerned by a reservation that has come or gone.
    """

    priority: int
    hidden: frozenset[GroupKey] = frozenset()
    later: frozenset[GroupKey] = frozenset()

    def sees(self, holder: GroupKey, start: float | None) -> bool:
        """Whether what is reserved for this group counts; with a `start` it is for later."""
        return holder not in self.hidden if start is None else holder in self.later


class Claim(Struct, frozen=True, gc=False):
    """A pod's use of a node: the requests of its shape, its effects on constraints, and what its `prebindings` take.

    `holder` is the group for which it is reserved; None for all other kinds.
    """

    kind: Kind
    node: str
    pod: Pod
    prebindings: tuple[Prebinding, ...] = ()
    holder: GroupKey | None = None

    @property
    def counts(self) -> bool:
        """Whether it takes capacity from all other pods."""
        return self.kind is not NOMINATED and self.kind is not RESERVED

    def counts_for(self, viewer: Viewer) -> bool:
        """Whether it takes capacity from this one's pods: one that is nominated does so from no higher priority."""
        return self.counts or self.pod.priority >= viewer.priority


Claims = Mapping[str, Claim]
"""Claims by owner."""


class Withheld(NamedTuple):
    """The `amounts` by row (of `rows`) and resource (of `resources`), and the `members`: each kind, one such pod, and
    the rows of all of the kind.

    Rows are those after so many changes of `nodes`.
    """

    rows: IntArray
    resources: tuple[str, ...]
    amounts: IntArray
    members: Sequence[tuple[object, Pod, IntArray]]
    nodes: int


class Reserved(Struct):
    """The reserved claims of a group by owner, and the pods, by UID, that are `leaving` for it.

    What those still hold on a node is not taken there from others: only the rest of what is reserved is. What is
    `withheld` thus while some of them stay there, by their UIDs, is kept until one of these claims changes
    (`core.planning.guests`). None is evicted if there is a `start`, at which the places are needed (epoch seconds,
    infinity if nobody knows): they end by themselves. Where nobody knows, the nodes fill up: all that is reserved is
    withheld but what is `missing` there, by node and resource.
    """

    claims: dict[str, Claim] = field(default_factory=dict)
    leaving: frozenset[str] = frozenset()
    start: float | None = None
    missing: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    withheld: dict[frozenset[str], Withheld] = field(default_factory=dict)
    _remaining: frozenset[str] | None = None

    @property
    def fills_up(self) -> bool:
        """Whether whatever comes free of it is withheld, as nobody knows when the rest will."""
        return self.start == float("inf")

    def remaining(self, claims: Claims) -> frozenset[str]:
        """Those that leave, by UID, and still hold something on the reserved nodes, by all of these claims."""
        if self._remaining is None:
            nodes = {claim.node for claim in self.claims.values()}
            known = ((uid, claims.get(uid)) for uid in self.leaving)
            self._remaining = frozenset([uid for uid, claim in known if claim and claim.counts and claim.node in nodes])
        return self._remaining

    def keep(self, staying: frozenset[str], withheld: Withheld) -> None:
        """Keep what is withheld while these are there, until one of the claims changes."""
        self.withheld[staying] = withheld

    def lack(self, missing: Mapping[str, Mapping[str, int]]) -> None:
        """So much is missing."""
        if missing != self.missing:
            self.missing = missing
            self.changed()

    def changed(self) -> None:
        """One of the claims has changed."""
        self.withheld, self._remaining = {}, None


def claim_contradictions(claims: Claims, pods: Mapping[str, Pod]) -> list[str]:
    """One sentence for each claim that contradicts its pod, and for each pod that lacks a claim."""
    wrong = [
        f"{uid}: claims {claim.kind} {claim.node or 'no node'}, which its pod does not"
        for uid, claim in claims.items()
        if not _agrees(pods.get(uid), claim)
    ]
    unclaimed = {uid: pod for uid, pod in pods.items() if uid not in claims}
    running = {uid: pod for uid, pod in unclaimed.items() if pod.node and not pod.terminal}
    wrong += [f"{uid}: is on {pod.node} and has no claim" for uid, pod in running.items()]
    wrong += [f"{uid}: a placeholder without a claim" for uid, pod in unclaimed.items() if not pod.name]
    return wrong


def _agrees(pod: Pod | None, claim: Claim) -> bool:
    """Whether the pod's state allows the claim."""
    if claim.kind is RESERVED and not claim.pod.name:
        return pod is None  # a member to come has no placeholder before it has a place
    if pod is None or pod != claim.pod or pod.terminal:
        return False
    match claim.kind:
        case Kind.BOUND:
            return pod.node == claim.node
        case Kind.NOMINATED:
            return not pod.node and pod.nominated_node == claim.node
        case Kind.RESERVED:
            return not pod.node and claim.holder is not None
        case _:
            return not pod.node and bool(pod.name) is (claim.kind is ASSUMED)


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
    """The amounts that each namespace holds for members that do not exist yet.

    `eased`: some may hold more than when `take_eased` was last called.
    """

    def __init__(self) -> None:
        self.eased = False
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
        self.eased = True
        self._eased.add(placeholder.namespace)
        if not held[PODS]:
            del self._held[placeholder.namespace]

    def note_nodes_changed(self) -> None:
        """Note that the limits of namespaces, which are shares of the cluster, may have changed."""
        self.eased = self._nodes_changed = True

    def take_eased(self, namespaces: Iterable[str]) -> list[str]:
        """The namespaces among these that hold less, or may have a higher limit, than at the last call."""
        eased = [name for name in namespaces if self._nodes_changed or name in self._eased]
        self._eased, self._nodes_changed, self.eased = set(), False, False
        return eased
