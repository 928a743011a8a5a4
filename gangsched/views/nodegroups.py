"""Groups of similar nodes: how many members of a refused quorum each group takes, and what refuses the rest.

A group is named by what its nodes share: pool, machine (the instance type, else what they offer) and zone. If these
distinguish more groups than a person can take in, fewer of them are compared, and the remaining nodes are summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Viewer
from gangsched.core.objects.node import Node
from gangsched.core.objects.status import Shared
from gangsched.core.objects.wording import number_of
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, quorum_in
from gangsched.core.planning.refusal import Obstacle, Refusal, obstacles
from gangsched.core.status.fitting import kinds_of

MOST = 9
"""Maximum number of groups that are listed; the others are summed."""
NAMED = 3
"""Maximum number of nodes of a group that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes with these `shared` properties (empty: all remaining nodes); `first` are the first few names.

    `members` of the quorum are placed there when as many as possible are; `obstacles` say why these nodes take no more.
    """

    shared: Shared
    nodes: int
    first: Sequence[str]
    members: int
    obstacles: Sequence[Obstacle]

    @property
    def name(self) -> str:
        """The group's name for a person: what its nodes share, with their names if they are few."""
        if not self.shared:
            return number_of(self.nodes, "other node")
        names = f" ({', '.join(self.first)})" if self.nodes == len(self.first) else ""
        return " ".join(value for _, value in self.shared) + names


def node_groups(cluster: Cluster, refusal: Refusal, ask: Ask, priority: int) -> list[NodeGroup]:
    """The groups, the largest first. `ask` is the request that was refused to a gang of this priority."""
    snapshot = Snapshot(cluster)
    snapshot.stand_for(Viewer(priority))
    snapshot.begin(ask.own)
    before = snapshot.own.copy()
    _, failing, _ = quorum_in(snapshot, ask, refusal.within).take_most()
    placed = snapshot.own - before
    rows = cluster.capacity.rows
    groups = []
    for shared, names in _distinguished(cluster.nodes):
        row_numbers = np.array(sorted(rows[name] for name in names), dtype=np.int64)
        groups.append(
            NodeGroup(
                shared=shared,
                nodes=len(names),
                first=sorted(names)[:NAMED],
                members=int(placed[row_numbers].sum()),
                obstacles=obstacles(snapshot, failing, row_numbers),
            )
        )
    return groups


def _distinguished(nodes: Mapping[str, Node]) -> Iterator[tuple[Shared, Sequence[str]]]:
    """Node names grouped by what they share: as many groups as possible, but at most MOST, and then the rest."""
    every = {name: kinds_of(node) for name, node in nodes.items()}
    ways = [chosen for number in (3, 2, 1) for chosen in combinations(range(3), number)]
    groupings = [_grouped(every, way) for way in ways]
    readable = [groups for groups in groupings if len(groups) <= MOST]
    groups = max(readable, key=len) if readable else min(groupings, key=len)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    yield from ordered[:MOST]
    rest = [name for _, names in ordered[MOST:] for name in names]
    if rest:
        yield (), rest


def _grouped(every: Mapping[str, tuple[Shared, ...]], way: tuple[int, ...]) -> dict[Shared, list[str]]:
    groups: dict[Shared, list[str]] = {}
    for name, kinds in every.items():
        groups.setdefault(tuple(pair for index in way for pair in kinds[index]), []).append(name)
    return groups
