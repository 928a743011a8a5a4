"""One-line construction of clusters from nodes and pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod

MakeCluster = Callable[..., Cluster]


@pytest.fixture
def cluster_of() -> Iterator[MakeCluster]:
    """`cluster_of(node("n1"), pod("a", node="n1"))`; each cluster's accounting is checked when the test ends."""
    made: list[Cluster] = []

    def make(*things: Node | Pod) -> Cluster:
        cluster = Cluster()
        made.append(cluster)
        for thing in things:
            if isinstance(thing, Node):
                cluster.set_node(thing)
            else:
                cluster.set_pod(thing)
        return cluster

    yield make
    for cluster in made:
        assert cluster.validate() == []
