"""Finds the names of nodes, so that they can be hidden from users who may not list nodes."""

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
"""Labels whose values by their meaning belong to many nodes, even if a cluster has only one node for each value."""
_SHORTEST = 3


def names_of_nodes(cluster: Cluster) -> set[str]:
    """The names of nodes, including deleted ones that storage still names, and other words that identify one node.

    Such a word is the value of a label that several nodes have, each with a value of its own, unless the value is short
    or a number and so could mean anything. Of a name with a domain, the host part counts too.
    """
    values = Counter(label for node in cluster.nodes.values() for label in node.labels)
    shared = _OF_MANY | {key for (key, _), count in values.items() if count > 1}
    bearers = Counter(key for key, _ in values)
    named = [
        *_names_in_storage(cluster),
        *((key, value) for key, value in values if bearers[key] > 1 or key in _OF_ONE),
    ]
    names = {
        *cluster.nodes,
        *(value for key, value in named if key in _OF_ONE or (key not in shared and _is_distinctive(value))),
    }
    return names | {host for name in names if _is_distinctive(host := name.partition(".")[0])}


def _is_distinctive(word: str) -> bool:
    return len(word) >= _SHORTEST and not word.isdigit()


def _names_in_storage(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """The labels and fields, with their values, by which volumes and claims name the nodes that may use them."""
    for volume in cluster.volumes.known(StorageKind.VOLUME).values():
        if isinstance(volume, Volume):
            for term in volume.node_affinity or ():
                for each in (*term.expressions, *term.fields):
                    yield from ((each.key, value) for value in each.values)
    for claim in cluster.volumes.known(StorageKind.CLAIM).values():
        if isinstance(claim, VolumeClaim) and claim.selected:
            yield _NAME, claim.selected
