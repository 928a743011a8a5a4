"""The interface of constraints: each is one filter plug-in of kube-scheduler, one file here and a line of `registry`.

A `Constraint` holds what the cluster has told it of nodes and of pods that count there. A `Plan` is its state on one
snapshot, where members are placed and taken back; so member k of a gang is judged with members 1 … k-1 placed.
Every question concerns many rows (nodes) at once, and arrays answer it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from gangsched.core.constraints.column import Column, Value
from gangsched.core.constraints.device_store import DeviceStore
from gangsched.core.constraints.matching import Matchable
from gangsched.core.constraints.nodes import Nodes
from gangsched.core.constraints.storage import Stock, Storage
from gangsched.core.constraints.tally import Tallies
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding, Taken
from gangsched.core.objects.shape import Attachment, Shape
from gangsched.core.objects.soft import Soft
from gangsched.core.objects.volumes import StorageKey


@dataclass(frozen=True, slots=True)
class World:
    """What constraints may read of the cluster.

    `tallies` are of what pods require, `preferred` of what they prefer. `spoken_for`: by what they take, pre-bindings
    under way, by owner. `attached`: what a node of this name has attached.
    """

    nodes: Nodes
    stock: Stock
    namespaces: Mapping[str, Mapping[str, str]]
    volumes: Storage
    tallies: Tallies
    devices: DeviceStore
    preferred: Tallies
    spoken_for: Mapping[Taken, Mapping[str, Prebinding]]
    attached: Callable[[str], Collection[Attachment]]


class Sight(Hashable, Protocol):
    """What one constraint sees of a pod beside its shape. Pods are interchangeable if all constraints see the same."""

    def in_order(self) -> Sequence[object]:
        """The same in an order that does not depend on hashing."""


SightT = TypeVar("SightT", bound=Sight)


class Member(Protocol):
    """A class of members that no node can tell apart, as a constraint sees it."""

    @property
    def shape(self) -> Shape:
        """What the members say themselves."""

    @property
    def soft(self) -> Soft | None:
        """What they prefer."""

    @property
    def known(self) -> Matchable | None:
        """What preferences about other pods look at in them; None if they look at nothing."""

    def sight(self, kind: type[SightT]) -> SightT | None:
        """What the constraint with this kind of sight sees of them beside their shape."""


class Happening(Enum):
    """An event that may open nodes other than its own."""

    POD_LEFT = "a pod has left another node"
    LABELS_CHANGED = "a namespace, or another node, has other labels"


@dataclass(frozen=True, slots=True)
class Words:
    """What users are told where nodes refuse for this reason.

    `told` describes such nodes, with the `{resource}` in question if there is one (or whatever else the reason is
    about). `remedy` is what would open the refusing `{nodes}`; empty where another message says that.
    """

    reason: str
    told: str
    remedy: str = ""


class Constraint:
    """One filter plug-in. A subclass overrides what matters to it."""

    words: ClassVar[tuple[Words, ...]]
    """The reasons for which it refuses."""

    def __init__(self, world: World) -> None:
        self._world = world

    def anew(self) -> Self:
        """A constraint of the same type that knows no nodes and pods."""
        return type(self)(self._world)

    def set_node(self, row: int, node: Node) -> None:
        """Set the row's node.

        If its labels have changed, its pods were removed before and are added again afterwards.
        """

    def remove_node(self, row: int) -> None:
        """The row has no node any more."""

    def add(self, pod: Pod, row: int) -> None:
        """Count the pod on the row."""

    def remove(self, pod: Pod, row: int) -> None:
        """Stop counting the pod, which was added before."""

    def labels_changed(self) -> None:
        """A namespace, or a node, has other labels."""

    def claims_changed(self, keys: Sequence[StorageKey]) -> None:
        """These volume claims, or the volumes that they name, are not what they were when pods were added."""

    def opens_elsewhere(self, happening: Happening, pod: Pod | None = None) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the event (for POD_LEFT, of this `pod`) may open nodes other than its own.

        An event on a node may always open that node.
        """
        return False

    def told(self) -> object:
        """What it knows of nodes and pods; equal for equal nodes and pods."""

    def plan(self, *, emptied: bool) -> Plan:
        """The state of a new snapshot; of an `emptied` one no pod is on any node."""
        raise NotImplementedError


class Plan:
    """One constraint on one snapshot. `take` and `give_back` revert each other exactly."""

    @property
    def selective(self) -> bool:
        """Whether it sees more of any pod than its shape."""
        return False

    def expect(self, shapes: Collection[Shape]) -> None:
        """Members of these shapes are to be placed: what they ask of other pods matters from now on."""

    def sees(self, pod: Pod) -> Sight | None:  # noqa: ARG002 - for subclasses
        """What matters beside the pod's shape: to its placement, or to other pods once it is placed."""
        return None

    def sees_nominated(self, pod: Pod) -> Sight | None:
        """What may matter to members, also to those not expected yet, of a pod that is nominated to a node."""
        return self.sees(pod)

    def mask(self, member: Member, rows: IntArray) -> Mask | None:  # noqa: ARG002 - for subclasses
        """Which of the rows accept members of the class, whatever room there is; None for all."""
        return None

    def room(self, member: Member, rows: IntArray) -> IntArray | None:  # noqa: ARG002 - for subclasses
        """How many members of the class each of the rows takes at most, each row for itself; None for any number."""
        return None

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:  # noqa: ARG002 - for subclasses
        """Place so many members on these rows, each of which is named once.

        Returns the rows for which `mask` may change, and those other than `rows` for which `room` may. If only `score`
        may, that is an empty array.
        """
        return None

    def give_back(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:  # noqa: ARG002 - for subclasses
        """Take back so many members, placed here or counted by the cluster. Returns the same as `take`."""
        return None

    def prebindings(self, pod: Pod, row: int) -> Sequence[Prebinding]:  # noqa: ARG002 - for subclasses
        """What must be done before this pod, a member taken on the row, is bound. Asked once for each such member."""
        return ()

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """Why one more member is refused, and on which of the rows: (reason, resource in question, where)."""
        raise NotImplementedError

    def look(self, rows: IntArray) -> Hashable:  # noqa: ARG002 - for subclasses
        """What is taken on these rows: equal while it is the same."""
        return None

    def beyond(self, member: Member) -> Hashable:  # noqa: ARG002 - for subclasses
        """What members of the class may take that belongs to no row: equal while the cluster has the same."""
        return None

    # Preferences

    weight: ClassVar[int] = 0
    """kube-scheduler's weight of this score. Where it is 0 the score orders nodes that are equal by all else."""

    def prefers(self, member: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether members of the class may prefer some rows to others."""
        return False

    def score(self, member: Member, rows: IntArray) -> IntArray:
        """How much they prefer each of the rows that accept the class: 0 to 100, normalised as kube-scheduler does."""
        raise NotImplementedError

    def minded(self, soft: Soft) -> Soft:
        """The same preferences without those that can make no difference on the present nodes."""
        return soft

    def heed(self, soft: Soft) -> None:
        """Members with these preferences are to be placed: what they prefer of other pods matters from now on."""

    @property
    def keys(self) -> Collection[str] | None:
        """The labels that preferences about other pods look at; None while there are no such preferences."""
        return None

    def notices(self, pod: Matchable) -> bool:  # noqa: ARG002 - for subclasses
        """Whether such a preference may concern pods with these of the labels."""
        return False

    def stirs(self, member: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a member placed changes the score of the others of its class."""
        return False

    # How members depend on each other

    def couples(self, member: Member, other: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a member placed on one row changes which other rows take the `other`, which may be of its class."""
        return False

    def helps(self, member: Member, other: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a member placed may open rows to the `other` that are closed before."""
        return False

    def bond(self, member: Member) -> str:  # noqa: ARG002 - for subclasses
        """The label of which all members must be in one domain, whichever it is; empty if there is none."""
        return ""

    # For the exhaustive search, which visits single rows

    def amounts(self, member: Member) -> Mapping[int, int]:  # noqa: ARG002 - for subclasses
        """What one member takes of each stock of the rows, by the stock's number."""
        return {}

    def left(self, number: int, rows: IntArray) -> IntArray:
        """How much of the stock of this number each row has left."""
        raise NotImplementedError

    def excludes(self, member: Member, other: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the two (or two of one class) cannot stand on one node, though either can alone."""
        return False


class NodeConstraint(Constraint, Plan):
    """A constraint that depends on the pod's shape and on the node, not on the pods there: it is its own plan."""

    def plan(self, *, emptied: bool) -> Plan:  # noqa: ARG002 - what the node is does not depend on it
        """The constraint itself, because what is placed does not matter to it."""
        return self

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """The one reason of such a constraint."""
        mask = self.mask(member, rows)
        if mask is not None:
            yield self.words[0].reason, "", ~mask


class PropertyConstraint(NodeConstraint, Generic[Value]):
    """A constraint that looks at one property of nodes, kept in `column`."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.column: Column[Value] = Column()

    def of_node(self, node: Node) -> Value:
        """The node's property."""
        raise NotImplementedError

    def set_node(self, row: int, node: Node) -> None:
        """Set the property of the row."""
        self.column.set(row, self.of_node(node))

    def remove_node(self, row: int) -> None:
        """The row has no property any more."""
        self.column.set(row, None)

    def told(self) -> object:
        """The properties by row."""
        return self.column.by_row()
