"""NodeUnschedulable: a cordoned node takes no pod that does not tolerate the taint which stands for a cordon.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeunschedulable. Whether the taint is there does not matter.
"""

from __future__ import annotations

from gangsched.core.constraints.column import Column
from gangsched.core.constraints.constraint import Member, NodeConstraint, Words, World
from gangsched.core.constraints.taint_toleration import tolerated
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.reasons import NodeReason

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(NodeConstraint):
    """The filter of this name."""

    words = (Words(NodeReason.UNSCHEDULABLE, "cordoned", "uncordoning nodes: {nodes} cordoned"),)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._cordoned: Column[bool] = Column()

    def set_node(self, row: int, node: Node) -> None:
        """Note whether the node is cordoned."""
        self._cordoned.set(row, node.unschedulable)

    def remove_node(self, row: int) -> None:
        """Forget it."""
        self._cordoned.set(row, None)

    def told(self) -> object:
        """Who is cordoned."""
        return self._cordoned.by_row()

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """All but cordoned nodes."""
        if tolerated(member.shape.tolerations, _CORDON):
            return None
        return ~self._cordoned.among((True,), rows)
