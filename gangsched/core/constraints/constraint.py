"""The interface of constraints: each is one filter plug-in of kube-scheduler, one file here and a line of `registry`.

A `Constraint` holds its state of the cluster: nodes and the pods that count on them. A `Plan` is its state on one
snapshot, where members are placed and taken back; so member k of a gang is judged with members 1 … k-1 placed. Every
method evaluates many rows (nodes) at once, as arrays. A `NodeConstraint` is its own plan.

This module is long because it describes each question of the interface; those that raise NotImplementedError have no
default.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from msgspec import Struct

from gangsched.core.constraints.matching import Matchable
from gangsched.core.constraints.node_rows import Column, Nodes, Value
from gangsched.core.constraints.tally import Tallies
from gangsched.core.inventory.capacity import Capacity
from gangsched.core.inventory.device_index import Devices
from gangsched.core.inventory.volume_index import Volumes
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding, Taken
from gangsched.core.objects.shape import Shape, Soft
from gangsched.core.objects.volumes import StorageKey


class World(Struct, frozen=True):
    """The part of the cluster that constraints may read.

    `tallies` are for required terms, `preferred` for preferred ones. Pending pre-bindings are by object and by owner.
    """

    nodes: Nodes
    stock: Capacity
    namespaces: Mapping[str, Mapping[str, str]]
    volumes: Volumes
    tallies: Tallies
    devices: Devices
    preferred: Tallies
    pending_prebindings: Mapping[Taken, Mapping[str, Prebinding]]


class Alike(Struct, frozen=True):
    """Pods of one shape that the cluster counts, and the row of each."""

    shape: Shape
    pods: Sequence[Pod]
    rows: IntArray


class Leavers(Struct, frozen=True):
    """Pods that the cluster counts and that leave a snapshot or stay after all, each with its row; the same by shape.

    `choosy` are those with preferences or affinity; `preparing` are the UIDs of those with pre-bindings under way.
    `keep_devices`: their claims keep their devices, because the same pods are asked about again.
    """

    pods: Sequence[tuple[Pod, int]]
    alike: Sequence[Alike]
    uids: frozenset[str]
    choosy: Sequence[tuple[Pod, int]]
    preparing: frozenset[str]
    keep_devices: bool = False


class Sight(Hashable, Protocol):
    """The properties of a pod, besides its shape, that one constraint distinguishes; equal for interchangeable pods."""

    def in_order(self) -> Sequence[object]:
        """A sort key that does not depend on hashing."""


SightT = TypeVar("SightT", bound=Sight)


class Member(Protocol):
    """A class of members that no node can tell apart, as a constraint sees it."""

    @property
    def has(self) -> frozenset[object]:
        """What makes it differ from a plain pod: these fields of its shape, kinds of sight, and `soft` or `known`."""

    @property
    def shape(self) -> Shape:
        """The shape of the members' pods."""

    @property
    def soft(self) -> Soft | None:
        """The preferences of their pods."""

    @property
    def known(self) -> Matchable | None:
        """The labels by which preferences of other pods match them; None if no preference does."""

    def sight(self, kind: type[SightT]) -> SightT | None:
        """The properties, besides the shape, that the constraint with this kind of sight distinguishes."""


class Happening(Enum):
    """An event that may open nodes other than its own."""

    POD_LEFT = "a pod has left another node"
    LABELS_CHANGED = "a namespace, or another node, has other labels"


class Words(Struct, frozen=True):
    """The wording of one reason in messages to users.

    `description` is the wording for nodes that refuse for this reason; `{resource}` stands for the resource, or other
    subject of the reason, if any. `remedy` would open the refusing `{nodes}`; empty where another message says it.
    """

    reason: str
    description: str
    remedy: str = ""


class Constraint:
    """One filter plug-in. A subclass overrides the methods that concern it."""

    words: ClassVar[tuple[Words, ...]]
    """The reasons for which it refuses nodes."""
    proves: ClassVar[bool] = False
    """Whether all that its `plan` refuses on emptied nodes is refused for good. Only then can it make a gang NeverFits:
    a constraint that is not certain of that is left out when empty nodes are asked."""
    counts_any: ClassVar[bool] = False
    """Whether it counts something of any pod. If not, only those are added that may restrict others."""

    def __init__(self, world: World) -> None:
        self._world = world

    def fresh(self) -> Self:
        """A new constraint of the same type, without nodes and pods."""
        return type(self)(self._world)

    def set_node(self, row: int, node: Node) -> None:
        """Set the row's node. If its labels have changed, its pods are removed before and added again afterwards."""

    def remove_node(self, row: int) -> None:
        """Forget the row's node."""

    def add(self, pod: Pod, row: int) -> None:
        """Count the pod on the row."""

    def remove(self, pod: Pod, row: int) -> None:
        """Stop counting a pod that was added before."""

    def labels_changed(self) -> None:
        """Handle a change of the labels of a namespace or node."""

    def claims_changed(self, keys: Sequence[StorageKey]) -> None:
        """Handle a change of these volume claims, or of the volumes that they name, since pods were added."""

    def opens_elsewhere(self, happening: Happening, pod: Pod | None = None) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the event may open nodes other than its own; for POD_LEFT, `pod` is the one that left.

        An event on a node may always open that node.
        """
        return False

    def state(self) -> object:
        """The state derived from nodes and pods, for consistency checks; equal for equal nodes and pods."""

    def plan(self, *, emptied: bool) -> Plan:
        """The plan of a new snapshot.

        On an `emptied` one there are no pods, and what passes has passed: cordons, taints that are lifted by whoever
        set them, nodes that are not ready, objects that are not there yet. Whatever it does not know it takes for good.
        """
        raise NotImplementedError


class Plan:
    """One constraint on one snapshot. `take` reverts itself exactly, as does `recount`.

    What it answers is what the cluster counts, less the pods that have left, and the members placed here.
    """

    overrides: ClassVar[frozenset[str]] = frozenset()
    """The methods that this type of plan has of its own; nobody needs to ask for what the others answer."""
    about: frozenset[object] | None = None
    """A class must have one of these (`Member.has`) for `mask`, `room` and `take` to answer; None: it need not."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.overrides = frozenset(name for name in _METHODS if getattr(cls, name) is not getattr(Plan, name))

    @property
    def selective(self) -> bool:
        """Whether it distinguishes pods by more than their shape."""
        return False

    def expect(self, shapes: Collection[Shape]) -> None:
        """Prepare for members of these shapes: their required terms about other pods count from now on."""

    def sees(self, pod: Pod) -> Sight | None:  # noqa: ARG002 - for subclasses
        """The properties, besides the shape, that matter to the pod's placement, or to other pods once it is placed."""
        return None

    def sees_nominated(self, pod: Pod) -> Sight | None:
        """The properties of a nominated pod that may matter to members, including members not expected yet."""
        return self.sees(pod)

    def mask(self, member: Member, rows: IntArray) -> Mask | None:  # noqa: ARG002 - for subclasses
        """Which of the rows accept members of the class, regardless of room; None for all."""
        return None

    def room(self, member: Member, rows: IntArray) -> IntArray | None:  # noqa: ARG002 - for subclasses
        """The most members of the class that each of the rows takes, judged row by row; None for no limit."""
        return None

    def unsure(self, member: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a search for room for the class was cut short, so that there may be more than `room` has said."""
        return False

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:  # noqa: ARG002 - for subclasses
        """Place `counts` members on these rows, each of which occurs once; or take back so many where all are negative.

        Returns the rows for which `mask` may change and those other than `rows` for which `room` may. If only `score`
        may change, returns an empty array.
        """
        return None

    def recount(self, leavers: Leavers, sign: int) -> IntArray | None:  # noqa: ARG002 - for subclasses
        """Answer all questions from now on as if the cluster had never counted these pods (-1), or revert that (1).

        Others may have left or stayed meanwhile. What a member's sight is does not change with that, so that members
        which were seen before are still known. Returns the same as `take`.
        """
        return None

    def settle(self, leavers: Leavers) -> None:
        """The cluster counts these pods, which have left, no more: subtract nothing of them from what it says later."""

    def prebindings(self, pod: Pod, row: int) -> Sequence[Prebinding]:  # noqa: ARG002 - for subclasses
        """The writes that must precede the binding of this pod, a member taken on the row. Call it once per member."""
        return ()

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """Why one more member is refused, and on which of the rows: (reason, resource or other subject, mask)."""
        raise NotImplementedError

    def digest(self, rows: IntArray) -> Hashable:  # noqa: ARG002 - for subclasses
        """A digest of what is taken on these rows: equal while that is unchanged."""
        return None

    def shared_digest(self, member: Member) -> Hashable:  # noqa: ARG002 - for subclasses
        """A digest of what members of the class may take that belongs to no row: equal while that is unchanged."""
        return None

    # Preferences
    weight: ClassVar[int] = 0
    """kube-scheduler's weight of this score. With weight 0 the score only orders nodes that are otherwise equal."""

    def prefers(self, member: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether members of the class may prefer some rows to others."""
        return False

    def score(self, member: Member, rows: IntArray) -> IntArray:
        """The score of each of the rows that accept the class: 0 to 100, normalised as kube-scheduler does."""
        raise NotImplementedError

    def relevant(self, soft: Soft) -> Soft:
        """The preferences without those that make no difference on the current nodes."""
        return soft

    def expect_preferences(self, soft: Soft) -> None:
        """Prepare for members with these preferences: their preferred terms about other pods count from now on."""

    @property
    def keys(self) -> Collection[str] | None:
        """The label keys that preferences about other pods use; None while there are no such preferences."""
        return None

    def notices(self, pod: Matchable) -> bool:  # noqa: ARG002 - for subclasses
        """Whether such a preference may match the pod, of which only the labels with these keys are given."""
        return False

    def changes_scores(self, member: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether placing a member changes the score of the others of its class, of which preferences notice pods."""
        return False

    # How members depend on each other
    def couples(self, member: Member, other: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether placing a member on one row changes which other rows take the `other`, maybe of the same class."""
        return False

    def helps(self, member: Member, other: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether placing a member may open rows to the `other`."""
        return False

    def bond(self, member: Member) -> str:  # noqa: ARG002 - for subclasses
        """The label by which all members must share one domain, whichever it is; empty if there is none."""
        return ""

    # For the exhaustive search, which visits single rows
    def amounts(self, member: Member) -> Mapping[int, int]:  # noqa: ARG002 - for subclasses
        """The amount that one member takes of each countable resource of a row, by the resource's number here."""
        return {}

    def left(self, number: int, rows: IntArray) -> IntArray:
        """The amount that each row has left of the resource with this number."""
        raise NotImplementedError

    def excludes(self, member: Member, other: Member) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the two, or two of one class, cannot share a node that takes either alone."""
        return False


_METHODS = [name for name in vars(Plan) if not name.startswith("_")]
PlanT = TypeVar("PlanT", bound=Plan)


class SeesAlike(Plan, Generic[PlanT]):
    """A plan that distinguishes pods as another one does."""

    def __init__(self, of: PlanT) -> None:
        self._of, self.about = of, of.about

    @property
    def selective(self) -> bool:
        """As the other one."""
        return self._of.selective

    def sees(self, pod: Pod) -> Sight | None:
        """As the other one."""
        return self._of.sees(pod)

    def sees_nominated(self, pod: Pod) -> Sight | None:
        """As the other one."""
        return self._of.sees_nominated(pod)


def having(plans: Iterable[Plan]) -> Mapping[str, Sequence[Plan]]:
    """For each method of plans, those that have it of their own, in order."""
    by_method: dict[str, list[Plan]] = {name: [] for name in _METHODS}
    for plan in plans:
        for name in plan.overrides:
            by_method[name].append(plan)
    return by_method


def concerned(plans: Iterable[Plan], member: Member) -> list[Plan]:
    """The plans that are about something that the class has."""
    has = member.has
    return [plan for plan in plans if plan.about is None or not plan.about.isdisjoint(has)]


class NodeConstraint(Constraint, Plan):
    """A constraint that depends on the pod and the node, not on the pods there: it is its own plan."""

    def plan(self, *, emptied: bool) -> Plan:
        """The constraint itself, because placed members do not affect it."""
        return AtBest(self) if emptied else self

    def at_best(self, member: Member, rows: IntArray) -> Mask | None:
        """Like `mask`, once what passes has passed (see `Constraint.plan`); None for all, as without `proves`."""
        raise NotImplementedError

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """The only reason of such a constraint."""
        mask = self.mask(member, rows)
        if mask is not None:
            yield self.words[0].reason, "", ~mask


class AtBest(SeesAlike[NodeConstraint]):
    """A constraint on nodes, once what passes has passed."""

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows that may accept members of the class one day."""
        return self._of.at_best(member, rows)


class PropertyConstraint(NodeConstraint, Generic[Value]):
    """A constraint on one property of nodes, kept in `column`."""

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
        """Remove the property of the row."""
        self.column.set(row, None)

    def state(self) -> object:
        """The properties by row."""
        return self.column.by_row()
