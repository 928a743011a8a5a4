"""Constraints that depend on the pod and the node, not on the pods there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic

from gangsched.core.constraints.constraint import Constraint, Member, Plan, SeesAlike, World
from gangsched.core.constraints.node_rows import Column, Value
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.node import Node


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
