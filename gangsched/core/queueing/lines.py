"""Sorted lists of gangs that wait, and the FIFO lanes of instance groups.

In a lane no group overtakes an earlier one that waits for room (contract rule 7). An instance group is a set of nodes
that pods select by one label. A group that can never fit holds up no other, nor does one that waits only for the end of
its pause (`core.cluster.failures`), nor a group younger than the age from which the order is enforced.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence

from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.queueing.order import OrderKey

Rank = tuple[int, OrderKey]
"""The sort key with a prefix. In the queue the prefix is 1 if only members above the minimum are wanted, else 0."""
Entry = tuple[Rank, GroupKey]
Name = tuple[Hashable, ...]


class Lines:
    """Lists of gangs by name, each sorted by rank and then key. A gang has the same rank in all its lists.

    `lists` has those that are not empty; only these methods change it.
    """

    def __init__(self) -> None:
        self.lists: dict[Name, list[Entry]] = {}
        self._filed: dict[GroupKey, tuple[Rank, Sequence[Name]]] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._filed

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._filed)

    def __len__(self) -> int:
        return len(self._filed)

    def rank(self, key: GroupKey) -> Rank | None:
        """The gang's rank; None if it is in no list."""
        return self._filed[key][0] if key in self._filed else None

    def names_of(self, key: GroupKey) -> Sequence[Name]:
        """The names of the lists that the gang is in."""
        return self._filed[key][1] if key in self._filed else ()

    def file(self, key: GroupKey, rank: Rank, names: Sequence[Name]) -> None:
        """Put the gang into these lists with this rank, and remove it from all others."""
        before = self._filed.get(key)
        if before == (rank, names):
            return
        if before is not None:
            self.drop(key)
        self._filed[key] = (rank, names)
        for name in names:
            insort(self.lists.setdefault(name, []), (rank, key))

    def drop(self, key: GroupKey) -> None:
        """Remove the gang from all lists."""
        if key not in self._filed:
            return
        rank, names = self._filed.pop(key)
        for name in names:
            line = self.lists[name]
            del line[bisect_left(line, (rank, key))]
            if not line:
                del self.lists[name]

    def validate(self, title: str, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        yield from unless_among(title, self._filed, alive)
        lines: dict[Name, list[Entry]] = {}
        for key, (rank, names) in self._filed.items():
            for name in names:
                lines.setdefault(name, []).append((rank, key))
        if self.lists != {name: sorted(entries) for name, entries in lines.items()}:
            yield f"the lists of {title} are not those of the gangs in it"


def unless_among(title: str, keys: Iterable[GroupKey], alive: Container[GroupKey]) -> Iterator[str]:
    """A sentence that names the keys that are not in `alive`; none if all are."""
    gone = [str(key) for key in keys if key not in alive]
    if gone:
        yield f"{', '.join(gone)}: still among {title} although gone"


class Lanes(Lines):
    """The FIFO lanes: the waiting gangs of each instance group, in order."""

    def line_up(self, gang: Gang, assessment: Assessment, rank: Rank) -> None:
        """Put a gang that wants its quorum placed into its lane; a gang that has begun is in no lane."""
        new = assessment.want.quorum is not None and not assessment.want.repair
        lane = assessment.terms.instance_group if new else ""
        self.file(gang.key, rank, ((lane,),) if lane else ())

    def held_up_by(
        self, key: GroupKey, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> GroupKey | None:
        """The first gang before this one in its lane that may not be overtaken; None if there is none."""
        rank = self.rank(key)
        for lane in self.names_of(key):
            for before, other in self.lists[lane]:
                if before == rank:
                    break
                if _holds_up(gangs[other], assessments[other], now):
                    return other
        return None

    def first(
        self, gangs: Mapping[GroupKey, Gang], assessments: Mapping[GroupKey, Assessment], now: float
    ) -> list[GroupKey]:
        """The gangs that are not held up: in each lane all up to and including the first that may not be overtaken."""
        keys = []
        for line in self.lists.values():
            for _, key in line:
                keys.append(key)
                if _holds_up(gangs[key], assessments[key], now):
                    break
        return keys


def _holds_up(gang: Gang, assessment: Assessment, now: float) -> bool:
    refusal = gang.wait.refusal
    if refusal is None or refusal.never or refusal.paused:
        return False
    return now - assessment.terms.created >= assessment.terms.fifo_after_s
