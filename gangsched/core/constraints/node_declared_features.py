"""NodeDeclaredFeatures: a node takes a pod only if its kubelet declares all features that the pod needs.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodedeclaredfeatures.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gangsched.core.constraints.constraint import Member, PropertyConstraint, Words
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.node import Node
from gangsched.core.objects.reasons import NodeReason


class NodeDeclaredFeatures(PropertyConstraint[tuple[str, ...]]):
    """The filter of this name."""

    about = frozenset({"features"})
    proves = True
    words = (
        Words(
            NodeReason.FEATURE,
            "that do not declare the feature {resource}",
            "kubelets that declare the feature {resource}: {nodes} without it",
        ),
    )

    def of_node(self, node: Node) -> tuple[str, ...]:
        """The features that the node declares."""
        return node.features

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The nodes that declare all features that the members need."""
        needed = member.shape.features
        return self.column.where(set(needed).issubset, rows, question=needed) if needed else None

    def at_best(self, member: Member, rows: IntArray) -> Mask | None:
        """These nodes, and those whose kubelet may not have declared everything yet."""
        mask = self.mask(member, rows)
        return None if mask is None else mask | self._world.nodes.unsettled(rows)

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """For each feature, the rows on which it is the first one missing."""
        left: Mask = np.ones(len(rows), dtype=np.bool_)
        for feature in member.shape.features:
            declared = self.column.where(partial(_declares, feature), rows, question=feature)
            yield NodeReason.FEATURE, feature, left & ~declared
            left &= declared


def _declares(feature: str, declared: tuple[str, ...]) -> bool:
    return feature in declared
