"""Chooses the topology domain of a gang whose members all must, or should, be in one (`placement.topology`).

Members that are already placed decide: the gang stays where most of them are. Otherwise every domain with enough room
is tried, the one with the least room first among those that may take equally many of the members that exist. Among the
first few that take as many the one with the highest utilisation wins: the mean, over the members of the quorum, of the
fullest resource of the member's node. palantir's k8s-spark-scheduler chooses a zone by the same rule.

A domain that did not take a quorum, and has not changed since, is not tried again: neither in the next call of the
machine nor after capacity was freed in another domain (`RecentRequests`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import hoped

_SLACK = 1 + 1e-9
COMPARED = 8
"""Limit for the number of domains with room for the gang that are compared; a label may have thousands of values."""
_REMEMBERED = 256
_MOST_EMPTY = 4096
_MOST_COMBINED = 128
"""Limit for the number of choices of several domains that are ordered by their room."""
_DIGEST = 100
"""Cost, in units of the budget, of checking whether a domain has changed."""


def home(snapshot: Snapshot, topology: Topology, own: Mapping[str, int]) -> str | None:
    """The domain with most of the gang's members, ties broken by name; None if no domain has any."""
    best = leading(snapshot, topology, snapshot.by_row(own)) if own else None
    return best[0] if best is not None else None


def occupied(snapshot: Snapshot, topology: Topology, own: IntArray) -> list[str]:
    """The domains that have members of the gang, counted by row, in order."""
    numbers = _sums(snapshot, topology, own)
    return [snapshot.cluster.labels.domains(topology.key).values[at] for at in np.flatnonzero(numbers).tolist()]


def combinations(rooms: Mapping[str, tuple[int, int]], number: int, need: int) -> Iterator[tuple[str, ...]]:
    """The choices of so many domains that may take `need` members together, the tightest of the first few first."""
    order = sorted(rooms, key=lambda value: (-rooms[value][0], rooms[value][1], value))
    choices = islice(_combined([(value, rooms[value][0]) for value in order], number, need), _MOST_COMBINED)
    yield from sorted(choices, key=lambda values: (sum(rooms[value][1] for value in values), values))


def _combined(values: Sequence[tuple[str, int]], number: int, need: int) -> Iterator[tuple[str, ...]]:
    """As `combinations`, for domains that take so many members, in descending order."""
    if number == 0:
        if need <= 0:
            yield ()
        return
    for at in range(len(values) - number + 1):
        if sum(takes for _, takes in values[at : at + number]) < need:
            return
        value, takes = values[at]
        for others in _combined(values[at + 1 :], number - 1, need - takes):
            yield (value, *others)


def leading(snapshot: Snapshot, topology: Topology, own: IntArray) -> tuple[str, int] | None:
    """Like `home`, for members counted by row, with the domain's lead in members over the next domain."""
    numbers = _sums(snapshot, topology, own)
    if not numbers.any():
        return None
    first = int(np.argmax(numbers))
    others = np.delete(numbers, first).max(initial=0)
    return snapshot.cluster.labels.domains(topology.key).values[first], int(numbers[first] - others)


def candidates(
    snapshot: Snapshot,
    topology: Topology,
    classes: Sequence[MemberClass],
    need: int,
    *,
    later: Sequence[MemberClass] = (),
    most: int | None = None,
) -> dict[str, int]:
    """The domains that may have room for `need` of these members (one class for each), and for how many at most.

    Those that may take more of them and of `later` ones come first, the tightest first among equals; more than `most`
    do not matter.
    """
    values, fits, room = _room(snapshot, topology, classes)
    free = _free(snapshot, topology, classes, need)
    takes = _room(snapshot, topology, [*classes, *later])[1] if later else fits
    takes = [number if most is None else min(number, max(need, most)) for number in takes]
    enough = [position for position in range(len(values)) if fits[position] >= need and free[position]]
    order = sorted(enough, key=lambda position: (-takes[position], room[position], position))
    return {values[position]: takes[position] for position in order}


def rooms(snapshot: Snapshot, topology: Topology, classes: Sequence[MemberClass]) -> dict[str, tuple[int, int]]:
    """For each domain, how many of these members it takes if they do not compete, and its room summed over classes."""
    values, fits, room = _room(snapshot, topology, classes)
    return {value: (fits[at], room[at]) for at, value in enumerate(values)}


def roomiest(snapshot: Snapshot, topology: Topology, classes: Iterable[MemberClass]) -> str | None:
    """The domain that takes most of these members, ties broken by name; None if there is no domain."""
    values, fits, _ = _room(snapshot, topology, classes)
    return max(zip(values, fits, strict=True), key=lambda pair: pair[1], default=(None, 0))[0]


def utilisation(snapshot: Snapshot, placed: Iterable[tuple[Pod, str]]) -> float:
    """The mean, over the placed members, of their node's fullest resource among those that any of them requests."""
    pods = list(placed)
    shapes = {pod.shape for pod, _ in pods}
    columns = sorted({column for shape in shapes for column in snapshot.columns(shape).tolist()})
    rows = np.array([snapshot.cluster.capacity.rows[node] for _, node in pods])
    return float(snapshot.used(columns, rows).mean())


def _free(snapshot: Snapshot, topology: Topology, classes: Sequence[MemberClass], need: int) -> list[bool]:
    """For each domain, whether its total of every resource is enough for the `need` members that request least of it.

    This avoids searching thousands of domains that take members of each class, but not all of them together.
    """
    enough = np.ones(len(snapshot.cluster.labels.domains(topology.key).values), dtype=np.bool_)
    asked = [snapshot.resources.amounts(member) for member in classes]
    for column in {column for amounts in asked for column in amounts}:
        least = sorted(amounts.get(column, 0) for amounts in asked)[:need]
        # Floats, because sums of absurd amounts would overflow; `_SLACK` settles rounding in the domain's favour.
        free = np.maximum(snapshot.free[:, column], 0).astype(np.float64)
        enough &= _sums(snapshot, topology, free) * _SLACK >= float(sum(least))
    result: list[bool] = enough.tolist()
    return result


def _room(
    snapshot: Snapshot, topology: Topology, classes: Iterable[MemberClass]
) -> tuple[tuple[str, ...], list[int], list[int]]:
    """The domains, how many of these members each takes if they do not compete, and its room summed over classes."""
    values = snapshot.cluster.labels.domains(topology.key).values
    fits, room = np.zeros((2, len(values)))
    counts = Counter(classes)
    for member, count in counts.items():
        sums = _sums(snapshot, topology, hoped(snapshot, member, counts))
        fits += np.minimum(sums, count)
        room += sums
    return values, fits.astype(np.int64).tolist(), room.astype(np.int64).tolist()


def _sums(
    snapshot: Snapshot, topology: Topology, weights: IntArray | npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The sum of the rows' weights in each domain."""
    domains = snapshot.cluster.labels.domains(topology.key)
    # Rows without a domain, at -1, are summed in the first element.
    sums = np.bincount(domains.of_row[: snapshot.size] + 1, weights=weights, minlength=len(domains.values) + 1)
    return sums[1:].astype(np.float64, copy=False)


class RecentRequests:
    """For recent requests: the state in which each domain did not take the quorum, and whether empty nodes would."""

    def __init__(self) -> None:
        self._failed: dict[Hashable, dict[str, int]] = {}
        self._nodes: Hashable = None
        self._empty: dict[Hashable, bool] = {}

    def fits_empty(self, asked: Hashable, nodes: Hashable, find: Callable[[], bool | None]) -> bool | None:
        """The cached result of `find` for this request and these nodes; a None is not cached."""
        if self._nodes != nodes:
            self._nodes, self._empty = nodes, {}
        if asked not in self._empty:
            fits = find()
            if fits is None:
                return None
            if len(self._empty) >= _MOST_EMPTY:
                del self._empty[next(iter(self._empty))]
            self._empty[asked] = fits
        return self._empty[asked]

    def of(self, asked: Hashable) -> dict[str, int]:
        """The domains that did not take this quorum, with their states (`worth_trying`); the caller adds to them."""
        failed = self._failed[asked] = self._failed.pop(asked, {})
        if len(self._failed) > _REMEMBERED:
            del self._failed[next(iter(self._failed))]
        return failed


def worth_trying(
    snapshot: Snapshot, key: str, values: Sequence[str], failed: Mapping[str, int], shared_digest: int
) -> Iterator[tuple[str, int]]:
    """The domains worth trying, with their states; domains never tried come first.

    A domain in `failed` is skipped while its state is unchanged. `shared_digest` is the state of everything that
    members may take and that belongs to no domain.
    """
    for value in sorted(values, key=failed.__contains__):
        snapshot.budget.charge(_DIGEST)
        digest = hash((snapshot.digest(((key, value),)), shared_digest))
        if failed.get(value) != digest:
            yield value, digest
