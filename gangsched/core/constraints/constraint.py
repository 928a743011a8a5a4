"""What a constraint is: one filter plug-in of kube-scheduler, in one file of this folder and one line of `registry`.

A `Constraint` knows what the cluster has told it of nodes and of pods that count there. A `Plan` is the same on one
snapshot, where members are placed and taken back; so member k of a gang is judged with members 1 … k-1 in their places.
Everything is asked of many rows (nodes) at once and answered by arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Protocol, Self, TypeVar

from gangsched.core.constraints.nodes import Nodes
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Shape


class Stock(Protocol):
    """What nodes have of each resource (rows × columns), pods by number among them; `names` of nodes by row."""

    names: list[str]
    columns: dict[str, int]
    free: IntArray
    allocatable: IntArray

    def column(self, resource: str) -> int | None:
        """The resource's column; None where no node has any of it."""


@dataclass(frozen=True, slots=True)
class World:
    """What all constraints may read of the cluster."""

    nodes: Nodes
    stock: Stock
    namespaces: Mapping[str, Mapping[str, str]]


class Sight(Hashable, Protocol):
    """What one constraint sees of a pod beside its shape: pods of which all see the same are interchangeable."""

    def in_order(self) -> Sequence[object]:
        """The same in an order that does not depend on hashing."""


SightT = TypeVar("SightT", bound=Sight)


class Member(Protocol):
    """Members that no node can tell apart, as far as a constraint looks at them."""

    @property
    def shape(self) -> Shape:
        """What they say themselves."""

    def sight(self, kind: type[SightT]) -> SightT | None:
        """What the constraint of these sights sees of them beside their shape."""


class Happening(Enum):
    """What may open nodes on which nothing has happened."""

    POD_LEFT = "a pod has left another node"
    LABELS_CHANGED = "a namespace, or another node, has other labels"


@dataclass(frozen=True, slots=True)
class Words:
    """What people are told where nodes refuse for this reason.

    `told` says what such nodes are, with the `{resource}` in question if there is one; `remedy` what would open
    `{nodes}` so refused, empty where that is said otherwise.
    """

    reason: str
    told: str
    remedy: str = ""


class Constraint:
    """One filter plug-in. What a subclass leaves out does not matter to it."""

    words: ClassVar[tuple[Words, ...]]
    """The reasons for which it refuses."""

    def __init__(self, world: World) -> None:
        self._world = world

    def anew(self) -> Self:
        """The same constraint, told of nothing yet."""
        return type(self)(self._world)

    def set_node(self, row: int, node: Node) -> None:
        """The row's node has this form now.

        If its labels are others, its pods were removed before and are added again.
        """

    def remove_node(self, row: int) -> None:
        """The row has no node any more."""

    def add(self, pod: Pod, row: int) -> None:
        """The pod counts on the row from now on."""

    def remove(self, pod: Pod, row: int) -> None:
        """The pod, which was added, counts no more."""

    def labels_changed(self) -> None:
        """A namespace has other labels."""

    def opens_elsewhere(self, happening: Happening, pod: Pod | None = None) -> bool:  # noqa: ARG002 - for subclasses
        """Whether this (the end of this `pod`, for one) may open nodes that it does not happen on.

        What happens on a node may always open that node.
        """
        return False

    def told(self) -> object:
        """What it knows of nodes and pods: equal where these are."""

    def plan(self, *, emptied: bool) -> Plan:
        """The state of a new snapshot; of an `emptied` one no pod is on any node."""
        raise NotImplementedError


class Plan:
    """One constraint on one snapshot. `take` and `give_back` undo each other exactly."""

    @property
    def selective(self) -> bool:
        """Whether it sees more of any pod than its shape."""
        return False

    def sees(self, pod: Pod) -> Sight | None:  # noqa: ARG002 - for subclasses
        """What decides about the pod, or what it will mean for others, beside its shape."""
        return None

    def mask(self, member: Member, rows: IntArray) -> Mask | None:  # noqa: ARG002 - for subclasses
        """Which of the rows accept members of the class, whatever room there is; None for all."""
        return None

    def room(self, member: Member, rows: IntArray) -> IntArray | None:  # noqa: ARG002 - for subclasses
        """How many members of the class each of the rows takes at most, each row for itself; None for any number."""
        return None

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:  # noqa: ARG002 - for subclasses
        """So many members are placed on these rows, each of which is named once.

        Returns the rows for which `mask` may say something else now, and those beside `rows` for which `room` may.
        """
        return None

    def give_back(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:  # noqa: ARG002 - for subclasses
        """So many members, placed here or counted by the cluster, are there no more. Returns the same as `take`."""
        return None

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """Why one more member is refused, and on which of the rows: (reason, resource in question, where)."""
        raise NotImplementedError

    def look(self, rows: IntArray) -> Hashable:  # noqa: ARG002 - for subclasses
        """What is taken on these rows: equal while it is the same."""
        return None

    # For the exhaustive search, which goes through rows by themselves

    def couples(self, member: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a member placed on one row changes what other rows say to the class: such are placed one by one."""
        return False

    def amounts(self, member: Member) -> Mapping[int, int]:  # noqa: ARG002 - for subclasses
        """What one member takes of what rows have a stock of, by its number."""
        return {}

    def left(self, number: int, rows: IntArray) -> IntArray:
        """How much of the stock of this number each row has left."""
        raise NotImplementedError

    def excludes(self, member: Member, other: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the two (or two of one class) cannot stand on one node, though either can alone."""
        return False


class NodeConstraint(Constraint, Plan):
    """A constraint that depends on the shape and on what the node is, not on what stands there: it is its own plan."""

    def plan(self, *, emptied: bool) -> Plan:  # noqa: ARG002 - what the node is does not depend on it
        """Nothing is placed that it would have to know."""
        return self

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """The one reason of such a constraint."""
        mask = self.mask(member, rows)
        if mask is not None:
            yield self.words[0].reason, "", ~mask
