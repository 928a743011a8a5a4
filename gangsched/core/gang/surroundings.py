"""Nodes, namespaces and PriorityClasses as they are seen: what gangs are placed and ordered by, beside their pods."""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.gang.membership import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    Event,
    NamespaceGone,
    NamespaceSeen,
    NamespacesReplaced,
    NodeGone,
    NodeSeen,
    NodesReplaced,
    PriorityClassesReplaced,
    PriorityClassGone,
    PriorityClassSeen,
)


class Surroundings:
    """Keeps the cluster in step with them. `priority_classes` are the values by name."""

    def __init__(self, cluster: Cluster, members: Members, assessments: Mapping[GroupKey, Assessment]) -> None:
        self.priority_classes: dict[str, int] = {}
        self._cluster = cluster
        self._members = members
        self._assessments = assessments

    def note(self, event: Event) -> None:
        """Something of them may have changed."""
        match event:
            case NodeSeen(node):
                self._cluster.set_node(node)
            case NodeGone(name):
                self._node_gone(name)
            case NodesReplaced(nodes):
                for name in sorted(self._cluster.nodes.keys() - {node.name for node in nodes}):
                    self._node_gone(name)
                for node in nodes:
                    self._cluster.set_node(node)
            case NamespaceSeen(name, labels):
                self._cluster.set_namespace(name, labels)
            case NamespaceGone(name):
                self._cluster.remove_namespace(name)
            case NamespacesReplaced(namespaces):
                for name in sorted(self._cluster.namespaces.keys() - {name for name, _ in namespaces}):
                    self._cluster.remove_namespace(name)
                for name, labels in namespaces:
                    self._cluster.set_namespace(name, labels)
            case PriorityClassSeen(name, value):
                self._set_priority_classes({**self.priority_classes, name: value})
            case PriorityClassGone(name):
                left = {other: value for other, value in self.priority_classes.items() if other != name}
                self._set_priority_classes(left)
            case PriorityClassesReplaced(classes):
                self._set_priority_classes(dict(classes))

    def facts(self) -> list[Event]:
        """What was seen, as events for a successor."""
        cluster = self._cluster
        return [
            NamespacesReplaced(tuple((name, tuple(labels.items())) for name, labels in cluster.namespaces.items())),
            PriorityClassesReplaced(tuple(self.priority_classes.items())),
            NodesReplaced(tuple(cluster.nodes.values())),
        ]

    def _node_gone(self, name: str) -> None:
        """Held places on the node are worth nothing any more; their gangs are looked at anew."""
        for uid in sorted(self._cluster.on_node.get(name, ())):
            self._members.touch(uid)
        self._cluster.remove_node(name)

    def _set_priority_classes(self, classes: dict[str, int]) -> None:
        known = self.priority_classes
        changed = {name for name in classes.keys() | known.keys() if classes.get(name) != known.get(name)}
        self.priority_classes = classes
        for key, assessment in self._assessments.items():
            if assessment.terms.spec.priority_class in changed:
                self._members.dirty.note(key)
