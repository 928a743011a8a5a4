"""What nodes are called, so that it can be kept from who may not list them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.volumes import StorageKind, Volume, VolumeClaim

_NAME = "metadata.name"
_OF_ONE = frozenset(("kubernetes.io/hostname", _NAME))
_OF_MANY = frozenset(
    f"{prefix}{name}"
    for prefix, names in {
        "beta.kubernetes.io/": ("arch", "instance-type", "os"),
        "failure-domain.beta.kubernetes.io/": ("region", "zone"),
        "kubernetes.io/": ("arch", "os"),
        "node.kubernetes.io/": ("instance-type",),
        "topology.kubernetes.io/": ("region", "zone"),
    }.items()
    for name in names
)
"""Labels whose values are of many nodes by their meaning, even where a cluster has one node for each value."""
_SHORTEST = 3


def names_of_nodes(cluster: Cluster) -> set[str]:
    """The names of nodes, also of those gone that storage still names, and what else tells one node from all others.

    That is the value of a label that no two of several nodes share, unless it is short or a number, as such a word may
    mean anything; and of a name with a domain the host's part.
    """
    values = Counter(label for node in cluster.nodes.values() for label in node.labels)
    shared = _OF_MANY | {key for (key, _), count in values.items() if count > 1}
    bearers = Counter(key for key, _ in values)
    named = [*_said_by_storage(cluster), *((key, value) for key, value in values if bearers[key] > 1 or key in _OF_ONE)]
    names = {
        *cluster.nodes,
        *(value for key, value in named if key in _OF_ONE or (key not in shared and _tells(value))),
    }
    return names | {host for name in names if _tells(host := name.partition(".")[0])}


def _tells(word: str) -> bool:
    return len(word) >= _SHORTEST and not word.isdigit()


def _said_by_storage(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """What volumes and claims say of the nodes that may use them: labels or fields, with their values."""
    for volume in cluster.volumes.known(StorageKind.VOLUME).values():
        if isinstance(volume, Volume):
            for term in volume.node_affinity or ():
                for each in (*term.expressions, *term.fields):
                    yield from ((each.key, value) for value in each.values)
    for claim in cluster.volumes.known(StorageKind.CLAIM).values():
        if isinstance(claim, VolumeClaim) and claim.selected:
            yield _NAME, claim.selected
