"""One-line construction of clusters from nodes and pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gangsched.core.cluster.cache import Cluster
from tests import clusters

MakeCluster = Callable[..., Cluster]


@pytest.fixture
def cluster_of() -> Iterator[MakeCluster]:
    """`cluster_of(node("n1"), pod("a", node="n1"))`; each cluster's accounting is checked when the test ends."""
    made: list[Cluster] = []

    def make(*things: clusters.Thing) -> Cluster:
        made.append(clusters.cluster_of(*things))
        return made[-1]

    yield make
    for cluster in made:
        assert cluster.validate() == []
