"""Clusters of the core that know the objects given."""

from __future__ import annotations

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.devices import DeviceKind, DeviceObject
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
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
