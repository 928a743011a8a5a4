"""Clusters of the core that know the objects given, and the events that tell of them."""

from __future__ import annotations

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.devices import DeviceKind, DeviceObject
from gangsched.core.objects.events import Event, GroupsReplaced, NodesReplaced, PodsReplaced, Synced
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.volumes import StorageObject
from tests.harness import KINDS

Thing = Node | Pod | StorageObject | DeviceObject


def provide(cluster: Cluster, *things: Thing) -> Cluster:
    """The cluster, which knows these objects now."""
    for each in things:
        if isinstance(each, Node):
            cluster.set_node(each)
        elif isinstance(each, Pod):
            cluster.set_pod(each)
        elif isinstance(each, StorageObject):
            cluster.set_storage(KINDS[type(each)], each.key, each)
        else:
            cluster.set_devices(DeviceKind(type(each).__name__), each.key, each)
    return cluster


def cluster_of(*things: Thing) -> Cluster:
    """A cluster of these objects alone."""
    return provide(Cluster(), *things)


def listed(*things: Node | Pod | Group) -> list[Event]:
    """The events of a start beside these objects."""
    nodes = tuple(each for each in things if isinstance(each, Node))
    groups = tuple(each for each in things if isinstance(each, Group))
    pods = tuple(each for each in things if isinstance(each, Pod))
    return [NodesReplaced(nodes), GroupsReplaced(groups), PodsReplaced(pods), Synced()]
