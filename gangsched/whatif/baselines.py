"""Other ways to decide who starts when, on the same nodes and traces, to compare gangsched with.

They share no code with the scheduler: a member fits a node by its requests alone, and a gang goes to the fullest nodes
that it fits. Gangs are ordered by priority, then by arrival; nothing is preempted. A gang that does not fit on the
empty nodes is left out, so that it blocks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from gangsched.core.objects.node import Node
from gangsched.whatif.baseline_cluster import Cluster, Rule
from gangsched.whatif.baseline_room import Amount, Need, Share
from gangsched.whatif.played import Replay
from gangsched.whatif.traces.trace_values import Trace


def play(
    trace: Trace, nodes: Sequence[Node], name: str, progress: Callable[[int, float], None] | None = None
) -> Replay:
    """Play the trace until all gangs that start have ended; `name` is one of `BASELINES`.

    `progress` is called regularly with the number of gangs that have ended and the seconds since the start.
    """
    cluster = Cluster(trace, nodes)
    cluster.play(BASELINES[name](cluster), progress)
    return Replay(strategy=name, gangs=cluster.played, changes=cluster.changes, nodes=nodes)


class Fifo(Rule):
    """Strict order: the first gang that does not fit blocks all behind it."""

    def decide(self, _: Sequence[int], __: Sequence[int]) -> None:
        """Start gangs from the first on."""
        self.start_first()

    def start_first(self) -> bool:
        """Start gangs from the first on, until one does not fit; whether any has started."""
        started = []
        for number in self.cluster.waiting:
            shares = self.now_fitting(number)
            if shares is None:
                break
            self.cluster.start(number, shares)
            started.append(number)
        self.leave(started)
        return bool(started)

    def now_fitting(self, number: int) -> list[Share] | None:
        """Where the gang fits now; None if it does not."""
        return self.fitting(number, self.cluster.room.free)


class FirstFit(Rule):
    """Whoever fits starts; a gang that does not fit blocks nobody."""

    def decide(self, arrived: Sequence[int], freed: Sequence[int]) -> None:
        """Try all gangs if something ended, else those that arrived."""
        started, failed = [], set()
        for number in self.cluster.waiting if freed else arrived:
            kind = self.cluster.kinds[number]
            if kind in failed:
                continue
            shares = self.fitting(number, self.cluster.room.free)
            if shares is None:
                failed.add(kind)
            else:
                self.cluster.start(number, shares)
                started.append(number)
        self.leave(started)


class Quota(Rule):
    """Quota by counts, as in Kueue without topology: a gang is admitted if the sum of free amounts suffices.

    Nodes do not matter for that. The members of admitted gangs are bound one by one where they fit, in the order of
    admission; they hold their quota, and those that are bound their nodes, until the last one is bound and the gang has
    run. Gangs that exceed the free quota block nobody (BestEffortFIFO).
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._free = cluster.room.total.sum(axis=0)
        self._asked = {number: self._sum(needs) for number, needs in enumerate(cluster.needs)}
        self._unbound: dict[int, list[int]] = {}

    def decide(self, arrived: Sequence[int], freed: Sequence[int]) -> None:
        """Admit gangs, and bind members of those that are admitted."""
        for number in freed:
            self._free += self._asked[number]
        admitted = []
        for number in self.cluster.waiting if freed else arrived:
            if (self._asked[number] <= self._free).all():
                self._free -= self._asked[number]
                self._unbound[number] = [need.members for need in self.cluster.needs[number]]
                admitted.append(number)
        self.leave(admitted)
        for number in list(self._unbound) if freed else admitted:
            self._bind(number)

    def _bind(self, number: int) -> None:
        left = self._unbound[number]
        for part, need in enumerate(self.cluster.needs[number]):
            if left[part]:
                share = self.cluster.room.place_some(part, need._replace(members=left[part]), self.cluster.room.free)
                if share is not None:
                    self.cluster.bind(number, [share])
                    left[part] -= int(share.counts.sum())
        if not any(left):
            del self._unbound[number]
            self.cluster.run(number)

    def _sum(self, needs: Sequence[Need]) -> Amount:
        total = np.zeros(self._free.shape, dtype=np.int64)
        for need in needs:
            total[need.columns] += need.members * need.amounts
        return total


class Easy(Fifo):
    """EASY backfilling that knows all run times exactly: an oracle. Source: Lifka, JSSPP 1995.

    The first gang that does not fit gets the earliest time at which it will, as running gangs end, and nodes for then.
    Others may start if they end before that time, or if they leave the room on these nodes that it will need.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._head: int | None = None
        self._start_s = 0.0
        self._planned: list[Share] = []
        self._spare = cluster.room.free

    def decide(self, arrived: Sequence[int], freed: Sequence[int]) -> None:
        """Start gangs from the first on, reserve for the next one, and start others that do not delay it.

        A reservation stands until its gang starts, or until one before it in the order comes.
        """
        overtaken = self.start_first()
        if not self.cluster.waiting:
            self._head = None
            return
        again = bool(freed)
        if overtaken or self.cluster.waiting[0] != self._head:
            self._head = self.cluster.waiting[0]
            self._reserve(self._head)
            again = True
        waiting = set(self.cluster.waiting)
        self._backfill(self.cluster.waiting[1:] if again else [gang for gang in arrived if gang in waiting])

    def now_fitting(self, number: int) -> list[Share] | None:
        """Where the gang fits now; the first one fits where it has its reservation, once that room is free."""
        shares = super().now_fitting(number)
        if shares is not None or number != self._head or self.cluster.now < self._start_s:
            return shares
        left = self.cluster.room.free.copy()
        for share in self._planned:
            left[share.rows] -= share.amounts
        return self._planned if (left >= 0).all() else None

    def _backfill(self, candidates: Iterable[int]) -> None:
        started, failed = [], set()
        for number in candidates:
            kind = self.cluster.kinds[number]
            is_short = self.cluster.now + self.cluster.of(number).gang.duration_s <= self._start_s
            if number == self._head or (kind, True) in failed or (kind, is_short) in failed:
                continue
            free = self.cluster.room.free
            shares = self.fitting(number, free if is_short else np.minimum(free, self._spare))
            if shares is None:
                failed.add((kind, is_short))
                continue
            self.cluster.start(number, shares)
            started.append(number)
            if not is_short:
                self._take(shares)
        self.leave(started)

    def _reserve(self, head: int) -> None:
        """Find the earliest time and the nodes. What stays free beside it then is spare, for gangs that end later."""
        ends = sorted((end_s, number) for number, end_s in self.cluster.running.items())
        shares = [share for _, number in ends for share in self.cluster.shares[number]]
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *(share.rows for share in shares)])
        amounts = np.concatenate([self.cluster.room.free[:0], *(share.amounts for share in shares)])
        sizes = [sum(len(share.rows) for share in self.cluster.shares[number]) for _, number in ends]
        until = np.cumsum([0, *sizes])

        def after(count: int) -> Amount:
            free = self.cluster.room.free.copy()
            np.add.at(free, rows[: until[count]], amounts[: until[count]])
            return free

        least, most = 0, len(ends)
        while least < most:
            middle = (least + most) // 2
            if self.fitting(head, after(middle)) is None:
                least = middle + 1
            else:
                most = middle
        self._start_s = ends[most - 1][0] if most else self.cluster.now
        while most < len(ends) and ends[most][0] <= self._start_s:
            most += 1
        self._spare = after(most)
        self._planned = self.fitting(head, self._spare) or []
        self._take(self._planned)

    def _take(self, shares: Iterable[Share]) -> None:
        for share in shares:
            self._spare[share.rows] -= share.amounts


BASELINES: Mapping[str, Callable[[Cluster], Rule]] = {
    "fifo": Fifo,
    "first-fit": FirstFit,
    "quota": Quota,
    "easy": Easy,
}
