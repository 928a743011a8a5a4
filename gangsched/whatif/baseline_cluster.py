"""The simulated cluster of the baselines: when gangs arrive, are bound and end."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable, Iterable, Sequence

from gangsched.core.objects.node import Node
from gangsched.whatif.baseline_room import Amount, Need, Room, Share
from gangsched.whatif.played import Change, Played
from gangsched.whatif.traces.trace_values import Trace

_END, _ARRIVAL = 0, 1


class Cluster:
    """The nodes, who waits and who runs. Gangs are known by their number in the order in which they are tried."""

    def __init__(self, trace: Trace, nodes: Sequence[Node]) -> None:
        self.played = [Played(gang=gang) for gang in trace.gangs]
        self.changes: list[Change] = []
        self.room = Room(trace, nodes)
        self.now = 0.0
        self.waiting: list[int] = []
        self.running: dict[int, float] = {}
        self.shares: dict[int, list[Share]] = {}
        self._nodes = nodes
        self._order = sorted(
            range(len(trace.gangs)), key=lambda place: (-trace.gangs[place].priority, trace.gangs[place].arrival_s)
        )
        numbers = range(len(self._order))
        of_kind: dict[object, tuple[Need, ...]] = {}
        self.kinds = [tuple((part.members, part.requests) for part in self.of(number).gang.parts) for number in numbers]
        for number, kind in enumerate(self.kinds):
            if kind not in of_kind:
                of_kind[kind] = self.room.needs(self.of(number).gang.parts)
        self.needs = [of_kind[kind] for kind in self.kinds]
        fitting = {kind: self.room.place(needs, self.room.total) is not None for kind, needs in of_kind.items()}
        self._agenda = [
            (self.of(number).gang.arrival_s, _ARRIVAL, number) for number in numbers if fitting[self.kinds[number]]
        ]
        heapq.heapify(self._agenda)

    def of(self, number: int) -> Played:
        """The course of this gang."""
        return self.played[self._order[number]]

    def play(self, rule: Rule, progress: Callable[[int, float], None] | None) -> None:
        """Let gangs arrive and end, and the rule start them."""
        ended = 0
        while self._agenda:
            self.now = self._agenda[0][0]
            arrived, freed = list[int](), list[int]()
            while self._agenda and self._agenda[0][0] <= self.now:
                _, kind, number = heapq.heappop(self._agenda)
                (arrived if kind == _ARRIVAL else freed).append(number)
            for number in freed:
                self._end(number)
            for number in arrived:
                insort(self.waiting, number)
            ended += len(freed)
            rule.decide(sorted(arrived), freed)
            if progress is not None:
                progress(ended, self.now)

    def bind(self, number: int, shares: Sequence[Share]) -> None:
        """Bind these members."""
        self.room.take(shares)
        self.shares.setdefault(number, []).extend(shares)
        self._note(number, shares, taken=True)

    def run(self, number: int) -> None:
        """All members are bound."""
        played = self.of(number)
        played.bound_s = self.now
        self.running[number] = self.now + played.gang.duration_s
        heapq.heappush(self._agenda, (self.running[number], _END, number))

    def start(self, number: int, shares: Sequence[Share]) -> None:
        """Bind the whole gang; whoever calls this takes it off the waiting ones."""
        self.bind(number, shares)
        self.run(number)

    def _end(self, number: int) -> None:
        del self.running[number]
        shares = self.shares.pop(number)
        self.room.give(shares)
        self._note(number, shares, taken=False)
        self.of(number).ended_s = self.now

    def _note(self, number: int, shares: Iterable[Share], *, taken: bool) -> None:
        for share in shares:
            for row, count in zip(share.rows.tolist(), share.counts.tolist(), strict=True):
                node, place = self._nodes[row].name, self._order[number]
                self.changes += [Change(self.now, node, place, share.part, taken)] * count
                if taken:
                    on = self.played[place].nodes
                    on[node] = on.get(node, 0) + count


class Rule(ABC):
    """Decides who starts. What did not fit does not fit until something ends, so that mostly few gangs are tried."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @abstractmethod
    def decide(self, arrived: Sequence[int], freed: Sequence[int]) -> None:
        """Start what may start, after these gangs have arrived and those ended."""

    def fitting(self, number: int, free: Amount) -> list[Share] | None:
        """Where the gang fits in these free amounts; None if it does not."""
        return self.cluster.room.place(self.cluster.needs[number], free)

    def leave(self, started: Iterable[int]) -> None:
        """These gangs no longer wait."""
        if gone := set(started):
            self.cluster.waiting = [number for number in self.cluster.waiting if number not in gone]
