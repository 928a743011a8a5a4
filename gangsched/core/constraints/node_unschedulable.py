"""NodeUnschedulable: a cordoned node takes only pods that tolerate the `node.kubernetes.io/unschedulable` taint.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeunschedulable. The node need not have the taint.
"""

from __future__ import annotations

from gangsched.core.constraints.constraint import Member, PropertyConstraint, Words
from gangsched.core.constraints.taint_toleration import tolerated
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.reasons import NodeReason

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(PropertyConstraint[bool]):
    """The filter of this name."""

    words = (Words(NodeReason.UNSCHEDULABLE, "cordoned", "uncordoning nodes: {nodes} cordoned"),)

    def of_node(self, node: Node) -> bool:
        """Whether the node is cordoned."""
        return node.unschedulable

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """All nodes except cordoned ones."""
        if not self.column.may_have(True) or tolerated(member.shape.tolerations, _CORDON):
            return None
        return ~self.column.among((True,), rows)
