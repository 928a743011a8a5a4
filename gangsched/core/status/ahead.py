"""Who is ahead of a waiting gang: those that are tried before it and that could take a node that it could use.

A gang that the present nodes could not take even if they were empty holds up nobody, and neither does one that waits
for the end of a pause that holds everywhere (`core.cluster.failures`), nor one that only other nodes accept. Which
nodes accept a refused gang is known from its classes; one that was not refused yet may want any node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterator
from heapq import merge
from itertools import islice
from typing import NamedTuple

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.operations import Wait
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.shape import Shape
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.refusal import Refusal
from gangsched.core.queueing.lines import Entry, Lines, Name, Rank

Wanted = frozenset[MemberClass]
"""The classes of a refused quorum, by what decides which nodes accept them; empty if any node may be wanted."""
Contends = Callable[[Wanted], bool]
"""Whether gangs with these classes could use a node that another gang could use."""
ANY: Wanted = frozenset()
MOST = 64
"""Where waiting gangs have more different classes than this, all of them count as wanting any node."""
_ALL: Name = ("all",)
_IN = "in"


def wanted_by(refusal: Refusal | None) -> Wanted:
    """What decides which nodes accept the members of a refused quorum."""
    return ANY if refusal is None else frozenset(map(_accepted_as, refusal.classes))


def holds_up(wait: Wait) -> bool:
    """Whether a gang whose last attempt ended so may take room from others at all."""
    refusal = wait.refusal
    return not wait.pause.everywhere and (refusal is None or not (refusal.never and refusal.nodes))


class _Filed(NamedTuple):
    """A gang's rank and last refusal, and what it wanted by that."""

    rank: Rank
    refusal: Refusal | None
    wanted: Wanted


class Ahead:
    """The gangs that may be ahead of others, in order, by the nodes that they want."""

    def __init__(self) -> None:
        self._lines: dict[Wanted, Lines] = {}
        self._filed: dict[GroupKey, _Filed] = {}

    def file(self, gang: Gang, rank: Rank) -> None:
        """Put the gang, which has this rank in the queue, among its likes if it may be ahead of others."""
        key, refusal = gang.key, gang.wait.refusal
        if rank[0] or not holds_up(gang.wait):
            self.drop(key)
            return
        filed = self._filed.get(key)
        if filed is not None and filed.rank == rank and filed.refusal is refusal:
            return
        wanted = wanted_by(refusal)
        if filed is not None and filed.wanted != wanted:
            self.drop(key)
        self._filed[key] = _Filed(rank, refusal, wanted)
        names = [_ALL] if gang.plain else [_ALL, (_IN, key.namespace)]
        if wanted not in self._lines:
            self._lines[wanted] = Lines()
        self._lines[wanted].file(key, rank, names)

    def drop(self, key: GroupKey) -> None:
        """Remove a gang that waits no more, or holds up nobody."""
        filed = self._filed.pop(key, None)
        if filed is not None:
            self._lines[filed.wanted].drop(key)
            if not self._lines[filed.wanted].lists:
                del self._lines[filed.wanted]

    def in_order(self) -> Iterator[GroupKey]:
        """All of them, the first in the order first."""
        return (key for _, key in merge(*(lines.lists[_ALL] for lines in self._lines.values())))

    def before(self, key: GroupKey, contends: Contends) -> list[GroupKey]:
        """The gangs ahead of this one, in order."""
        entry = self._entry(key)
        return [] if entry is None else list(self._merged(entry, _ALL, contends, None))

    def first(self, key: GroupKey, contends: Contends, *, most: int) -> tuple[list[GroupKey], int]:
        """The first `most` groups of its namespace that are ahead of the gang, and the number of all gangs ahead."""
        entry = self._entry(key)
        if entry is None:
            return [], 0
        own = list(islice(self._merged(entry, (_IN, key.namespace), contends, most), most))
        return own, sum(bisect_left(lines.lists[_ALL], entry) for lines in self._contending(contends))

    def _entry(self, key: GroupKey) -> Entry | None:
        filed = self._filed.get(key)
        return None if filed is None else (filed.rank, key)

    def _merged(self, entry: Entry, name: Name, contends: Contends, most: int | None) -> Iterator[GroupKey]:
        contending = [lines.lists.get(name, []) for lines in self._contending(contends)]
        parts = [line[: bisect_left(line, entry)][:most] for line in contending]
        return (key for _, key in merge(*parts))

    def _contending(self, contends: Contends) -> list[Lines]:
        if len(self._lines) > MOST:
            return list(self._lines.values())
        return [lines for wanted, lines in self._lines.items() if not wanted or contends(wanted)]

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        for lines in self._lines.values():
            yield from lines.validate("those ahead", alive)
        if self._filed.keys() != {key for lines in self._lines.values() for key in lines}:
            yield "the gangs that may be ahead of others are not those in the lists"


def _accepted_as(member: MemberClass) -> MemberClass:
    shape = member.shape
    accepted = Shape(
        node_selector=shape.node_selector,
        node_affinity=shape.node_affinity,
        tolerations=shape.tolerations,
        features=shape.features,
    )
    return MemberClass(accepted)
