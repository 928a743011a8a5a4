"""Which topology domain a gang goes to, if all its members must, or should, be in one (`placement.topology`).

Members that are placed already decide: the gang goes on where most of them are. Otherwise every domain with room enough
is tried, the one with the least room first, and of the first few that take the gang the one wins whose nodes it uses
best: the mean, over the members, of the fullest resource of the member's node. That is the rule by which palantir's
k8s-spark-scheduler chooses a zone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.snapshot import Snapshot

_SLACK = 1 + 1e-9
COMPARED = 8
"""So many domains that take the gang are compared; a label may have thousands of values."""


def home(snapshot: Snapshot, topology: Topology, own: Mapping[str, int]) -> str | None:
    """The domain in which most of the gang's members are, the first by name of several; None if they are in none."""
    found = snapshot.cluster.labels.domains(topology.key)
    rows = snapshot.cluster.capacity.rows
    there: Counter[int] = Counter()
    for node, count in own.items():
        if node in rows and count > 0:
            there[int(found.of_row[rows[node]])] += count
    there.pop(-1, None)
    if not there:
        return None
    most = max(there.values())
    return found.values[min(position for position, count in there.items() if count == most)]


def leading(snapshot: Snapshot, topology: Topology) -> tuple[str, int] | None:
    """As `home`, of the members that the snapshot has; and by how many more of them it has than any other domain."""
    found = snapshot.cluster.labels.domains(topology.key)
    of_row = found.of_row[: snapshot.size]
    inside = of_row >= 0
    there = np.bincount(of_row[inside], weights=snapshot.own[inside], minlength=len(found.values))
    if not there.any():
        return None
    first = int(np.argmax(there))
    others = np.delete(there, first).max(initial=0)
    return found.values[first], int(there[first] - others)


def candidates(snapshot: Snapshot, topology: Topology, classes: Sequence[MemberClass], need: int) -> list[str]:
    """The domains that may have room for so many members of these classes (one for each member), the tightest first."""
    found, fits, room = _room(snapshot, topology, classes)
    free = _free(snapshot, topology, classes, need)
    enough = [position for position in range(len(found)) if fits[position] >= need and free[position]]
    return [found[position] for position in sorted(enough, key=lambda position: (room[position], position))]


def roomiest(snapshot: Snapshot, topology: Topology, classes: Iterable[MemberClass]) -> str | None:
    """The domain that takes most of these members, the first by name of several; None if there is no domain."""
    found, fits, _ = _room(snapshot, topology, classes)
    return max(zip(found, fits, strict=True), key=lambda each: each[1], default=(None, 0))[0]


def utilisation(snapshot: Snapshot, placed: Iterable[tuple[Pod, str]]) -> float:
    """The mean over the members placed of how full their node is, by the fullest resource that any of them requests."""
    pods = list(placed)
    shapes = {pod.shape for pod, _ in pods}
    columns = sorted({column for shape in shapes for column in snapshot.columns(shape)})
    rows = np.array([snapshot.cluster.capacity.rows[node] for _, node in pods])
    given = snapshot.cluster.capacity.allocatable[rows[:, None], columns].astype(np.float64)
    used = given - snapshot.free[rows[:, None], columns]
    return float((used / np.maximum(given, 1.0)).max(axis=1).mean())


def _free(snapshot: Snapshot, topology: Topology, classes: Sequence[MemberClass], need: int) -> list[bool]:
    """Whether each domain has enough of every resource in all, even for so many members that ask for the least of it.

    It spares a search in thousands of domains which take members of each class, but not all of them together.
    """
    found = snapshot.cluster.labels.domains(topology.key)
    of_row = found.of_row[: snapshot.size]
    open_ = of_row >= 0
    enough = np.ones(len(found.values), dtype=np.bool_)
    asked = [snapshot.amounts(member) for member in classes]
    for column in {column for amounts in asked for column in amounts}:
        least = sorted(amounts.get(column, 0) for amounts in asked)[:need]
        # As floats, for sums of absurd amounts; what they lose is given to the domain.
        free = np.maximum(snapshot.free[: snapshot.size, column][open_], 0).astype(np.float64)
        sums = np.bincount(of_row[open_], weights=free, minlength=len(found.values))
        enough &= sums * _SLACK >= float(sum(least))
    result: list[bool] = enough.tolist()
    return result


def _room(
    snapshot: Snapshot, topology: Topology, classes: Iterable[MemberClass]
) -> tuple[tuple[str, ...], list[int], list[int]]:
    """The domains, how many of the members each takes if they do not compete, and how many of their sort in all."""
    found = snapshot.cluster.labels.domains(topology.key)
    inside = found.of_row[: snapshot.size] >= 0
    fits = np.zeros(len(found.values))
    room = np.zeros(len(found.values))
    for member, count in Counter(classes).items():
        caps = snapshot.caps(member)[inside]
        sums = np.bincount(found.of_row[: snapshot.size][inside], weights=caps, minlength=len(found.values))
        fits += np.minimum(sums, count)
        room += sums
    return found.values, fits.astype(np.int64).tolist(), room.astype(np.int64).tolist()
