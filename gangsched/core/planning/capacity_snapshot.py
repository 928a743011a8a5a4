"""A private copy of the free capacity, on which a plan is tried and undone.

`mark` and `undo` frame an attempt: `undo` reverts exactly everything since the mark. A snapshot never changes the
cluster itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim, Viewer
from gangsched.core.cluster.labels import Within
from gangsched.core.constraints.constraint import Leavers, Plan, concerned, having
from gangsched.core.constraints.node_resources import ResourcesPlan
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.shape import Shape
from gangsched.core.objects.strategy import Scarce
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.classes import MOST, MemberClass, Taken
from gangsched.core.planning.guests import Guests
from gangsched.core.planning.leavers import leavers_of, prepared
from gangsched.core.planning.row_cache import RowCache
from gangsched.core.planning.scores import Scores
from gangsched.core.planning.strategies import GPU_SUFFIX


class _Departure(NamedTuple):
    """A change: these pods have left (-1), or stayed after all (1)."""

    leavers: Leavers
    sign: int


class Snapshot:
    """The free capacity and the pods at one moment, with undo. `emptied` gives the same nodes at their best.

    It is valid while no node and no nomination changes; pods that are assumed on the cluster must have been taken here
    first. `plans` are its constraints, `resources` is the plan of requests, `scores` holds the preferences of members;
    these and `own` (members of the current gang by row) are read-only. `counts_pods`: pods on nodes restrict newcomers;
    false on an emptied snapshot. `viewer` is who asks, on which it depends for whom room is left; None for nobody, for
    whom only claims count that count for all. All work is charged to `budget`.
    """

    def __init__(self, cluster: Cluster, *, emptied: bool = False, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self.cluster = cluster
        self.counts_pods = not emptied
        self.viewer: Viewer | None = None
        self.size = len(cluster.capacity.names)
        self.own: IntArray = np.zeros(self.size, dtype=np.int64)
        self.plans = [rule.plan(emptied=emptied) for rule in cluster.constraints if rule.proves or not emptied]
        self.having = having(self.plans)
        self.masking, self._limiting = self.having["mask"], self.having["room"]
        self._counting = self.having["take"]
        self.resources = next(plan for plan in self.plans if isinstance(plan, ResourcesPlan))
        self._bare: Snapshot | None = None
        self._away: set[str] = set()
        self._log: list[Taken | IntArray | _Departure] = []
        self._changed, self._turned = list[IntArray](), list[IntArray]()
        self._masks: RowCache[MemberClass, Mask] = RowCache(self.size, self._turned, self.budget)
        self._caps: RowCache[MemberClass, IntArray] = RowCache(self.size, self._changed, self.budget)
        names = cluster.labels.rank
        self.scores = Scores(self.having, self.accepts, names=names, turned=self._turned, budget=self.budget)
        self._guests = Guests(cluster, self.plans, self.resources, self._changed, self._change)
        self._fullness: RowCache[Shape, npt.NDArray[np.float64]] = RowCache(self.size, self._changed, self.budget)

    @property
    def free(self) -> IntArray:
        """The free amounts by row and column of the capacity matrix."""
        return self.resources.free

    def name(self, row: int) -> str:
        """The row's node name."""
        return self.cluster.capacity.names[row]

    def emptied(self) -> Snapshot:
        """The same nodes without any pod, judged by constraints that prove what they refuse; undo what you plan."""
        if self._bare is None:
            self._bare = Snapshot(self.cluster, emptied=True, budget=self.budget)
        return self._bare

    # Undo

    def mark(self) -> int:
        """The point to which `undo` returns."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Undo everything since the mark."""
        while len(self._log) > mark:
            done = self._log.pop()
            if isinstance(done, Taken):
                self._change(done, -1)
            elif isinstance(done, _Departure):
                self._recount(done.leavers, -done.sign)
            else:
                self.own = done

    def begin(self, own: Mapping[str, int]) -> None:
        """Switch to another gang; `own` counts its members that are already on nodes."""
        self._log.append(self.own)
        self.own = self.by_row(own)

    def by_row(self, own: Mapping[str, int]) -> IntArray:
        """These numbers of members by row instead of by node, without members on unknown nodes."""
        by_row: IntArray = np.zeros(self.size, dtype=np.int64)
        rows = self.cluster.capacity.rows
        for node, count in own.items():
            if node in rows:
                by_row[rows[node]] = count
        return by_row

    def stand_for(self, viewer: Viewer | None, *, gone: Collection[str] | None = None) -> None:
        """Leave room for pods that another scheduler has nominated, and for groups for which others are preempted.

        Those count whose claims do so for this viewer; none do for None. Until the next call, nominated pods count as
        if they were there. kube-scheduler does the same when it filters, but it considers only pods nominated to the
        node in question, and not always their required anti-affinity. Here their anti-affinity closes its whole domain
        at once, as it will when they are bound. Of what is reserved for a group, a node counts what the pods that leave
        it for that group do not hold any more. With `gone`, plans may have been opened, or have ended, since the last
        call, and these pods (by UID) are counted as gone.
        """
        if viewer == self.viewer and gone is None:
            return
        self.viewer = viewer
        self.budget.charge(self._guests.change_to(viewer, gone or ()))

    def take(self, row: int, member: MemberClass, count: int) -> None:
        """Take the requests of `count` members of the class on a node that has room for them."""
        self.take_all(member, [(row, count)])

    def take_all(self, member: MemberClass, shares: Sequence[tuple[int, int]]) -> None:
        """Take the requests of members on nodes with room: `shares` are (row, members) pairs, each row at most once.

        Raises:
            ValueError: no node has ever had one of the resources.
        """
        rows, counts = np.array(shares, dtype=np.int64).reshape(-1, 2).T
        taken = Taken(member, rows, counts)
        self._change(taken, 1)
        self._log.append(taken)

    def leave(self, claims: Iterable[Claim], *, keep_devices: bool = False) -> None:
        """Let the pods of these claims leave, whoever they are: all questions are answered as if they had never come.

        The claims were there when the snapshot was made. The devices of a ResourceClaim are free once all pods that use
        it have left, unless they `keep_devices` because the same pods are asked about next; a volume stays bound to its
        claim. Claims on unknown nodes, which count nowhere, are ignored, and so is everything on an emptied snapshot.
        `own` is the caller's.
        """
        self._depart([claim for claim in claims if claim.pod.uid not in self._away], -1, keep_devices=keep_devices)

    def depart(self, leavers: Leavers) -> None:
        """Let these leave, who are there still and were prepared with the rows of the snapshot."""
        self.budget.charge(units.CLASS + len(leavers.pods))
        self._recount(leavers, -1)
        self._log.append(_Departure(leavers, -1))

    def stay(self, claims: Iterable[Claim], *, keep_devices: bool = False) -> None:
        """Let pods that have left stay after all, in any order, and as they left."""
        self._depart([claim for claim in claims if claim.pod.uid in self._away], 1, keep_devices=keep_devices)

    def settle(self) -> None:
        """The cluster has released all claims that have left. What was done here until now cannot be undone."""
        for done in self._log:
            if isinstance(done, _Departure) and done.sign < 0:
                gone = [(pod, row) for pod, row in done.leavers.pods if pod.uid in self._away]
                for plan in self.having["settle"] if gone else ():
                    plan.settle(prepared(gone, done.leavers.preparing))
                self._away.difference_update(pod.uid for pod, _ in gone)
        self._log.clear()

    # Questions

    def selective(self) -> Sequence[Plan]:
        """The constraints that distinguish pods by more than their shape at present."""
        return [plan for plan in self.having["selective"] if plan.selective]

    def accepts(self, member: MemberClass) -> Mask:
        """The rows that would take the class if they had room; read-only."""
        member = member.impartial
        if member.within:
            # Not cached: there may be a domain for every node.
            return self.accepts(replace(member, within=())) & self.inside(member.within)
        return self._masks.get(member, self._mask)

    def caps(self, member: MemberClass) -> IntArray:
        """How many members of the class each row could take now; read-only."""
        member = member.impartial
        if not member.within:
            return self._caps.get(member, self._caps_of)
        caps: IntArray = np.zeros(self.size, dtype=np.int64)
        rows = np.flatnonzero(self.inside(member.within))
        caps[rows] = self._caps_of(member, rows)
        self.budget.charge(units.CLASS + len(rows))
        return caps

    def digest(self, within: Within) -> int:
        """A digest of what is there: unchanged while its nodes and everything taken there stay the same."""
        rows = np.flatnonzero(self.inside(within))
        digests = tuple(plan.digest(rows) for plan in self._counting)
        return hash((rows.tobytes(), self.cluster.nodes_by_row.last_change(rows), digests))

    def fits(self, member: MemberClass, row: int) -> bool:
        """Whether the row could take one member of the class now."""
        one = np.array([row], dtype=np.int64)
        if member.within and not self.inside(member.within)[row]:
            return False
        return bool(self._mask(member, one)[0]) and bool(self._room(member, one)[0])

    def fullness(self, shape: Shape) -> npt.NDArray[np.float64]:
        """`used` of every row, for the resources that the shape requests (the pod count if it requests none)."""
        return self._fullness.get(shape, self._fullness_of)

    def used(self, columns: Sequence[int] | npt.NDArray[np.intp], rows: IntArray) -> npt.NDArray[np.float64]:
        """For each row, the largest used share of the resources in these columns."""
        most: npt.NDArray[np.float64] = np.maximum.reduce([self.resources.used(column, rows) for column in columns])
        return most

    def scarce(self, member: MemberClass, rows: IntArray) -> Scarce:
        """These rows' amounts of the scarcest resource that the class requests (see `objects.strategy.Scarce`)."""
        vector = self.resources.vector(member.shape)
        if vector is None:
            return Scarce(np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64))
        columns, amounts = vector.columns, vector.amounts
        if len(columns) > 1:
            columns, amounts = columns[:-1], amounts[:-1]
        # A request for which devices stand, or that no node lists yet, is not among the columns.
        known, listed = self.cluster.capacity.columns, set(columns.tolist())
        gpus = [known.get(resource) for resource, _ in member.shape.requests if resource.endswith(GPU_SUFFIX)]
        column = next((each for each in gpus if each in listed), None)
        if column is None:
            # Floats, because a sum of absurd amounts would overflow.
            free = np.maximum(self.free[self.accepts(member)][:, columns], 0).astype(np.float64)
            column = columns[np.argmin(free.sum(axis=0) / amounts)]
        left = self.free[rows, column]
        return Scarce(left, self.cluster.capacity.allocatable[rows, column] - left)

    def inside(self, within: Within) -> Mask:
        """The rows that are in all of these domains."""
        return self.cluster.labels.inside(within)[: self.size]

    def columns(self, shape: Shape) -> npt.NDArray[np.intp]:
        """The columns of the requested resources; that of the pod count if there are none, or if no node has one."""
        vector = self.resources.vector(shape)
        if vector is None:
            return np.zeros(1, dtype=np.intp)
        return vector.columns[:-1] if len(vector.columns) > 1 else vector.columns

    def caps_by(self, member: MemberClass, masking: Sequence[Plan]) -> IntArray:
        """Like `caps`, but only these plans may close rows."""
        rows = np.arange(self.size)
        open_ = self._mask(member, rows, masking)
        if member.within:
            open_ &= self.inside(member.within)
        return np.where(open_, self._room(member, rows), 0)

    # Inside

    def _mask(self, member: MemberClass, rows: IntArray, masking: Sequence[Plan] | None = None) -> Mask:
        """Which of the rows accept the class, regardless of where it may be."""
        mask = self.cluster.nodes_by_row.there(rows)
        for plan in concerned(self.masking if masking is None else masking, member):
            accepting = plan.mask(member, rows)
            if accepting is not None:
                mask &= accepting
        if member.avoided:
            known = self.cluster.capacity.rows
            mask &= ~np.isin(rows, [known[node] for node in member.avoided if node in known])
        return mask

    def _room(self, member: MemberClass, rows: IntArray) -> IntArray:
        """How many members of the class each of these rows has room for, judged row by row."""
        room: IntArray = np.full(len(rows), MOST, dtype=np.int64)
        for plan in concerned(self._limiting, member):
            most = plan.room(member, rows)
            if most is not None:
                room = np.minimum(room, most)
        return room

    def _caps_of(self, member: MemberClass, rows: IntArray) -> IntArray:
        caps: IntArray = np.zeros(len(rows), dtype=np.int64)
        open_ = self.accepts(member)[rows]
        caps[open_] = self._room(member, rows[open_])
        return caps

    def _depart(self, claims: Sequence[Claim], sign: int, *, keep_devices: bool) -> None:
        counting = claims if self.counts_pods else ()
        leavers = leavers_of(counting, self.cluster.capacity.rows, keep_devices=keep_devices)
        self.budget.charge(units.MATCH * len(leavers.pods))
        self._recount(leavers, sign)
        self._log.append(_Departure(leavers, sign))

    def _recount(self, leavers: Leavers, sign: int) -> None:
        note = self._away.update if sign < 0 else self._away.difference_update
        note(leavers.uids)
        for alike in leavers.alike:
            self._changed.append(alike.rows)
        for plan in self.having["recount"]:
            turned = plan.recount(leavers, sign)
            if turned is not None:
                self._changed.append(turned)
                self._turned.append(turned)

    def _fullness_of(self, shape: Shape, rows: IntArray) -> npt.NDArray[np.float64]:
        return np.zeros(len(rows)) if self.resources.vector(shape) is None else self.used(self.columns(shape), rows)

    def _change(self, taken: Taken, sign: int, plans: Sequence[Plan] | None = None) -> None:
        """Apply the change (1) or revert it (-1), to these plans, or to all that count members."""
        rows, counts = taken.rows, sign * taken.counts
        self._changed.append(rows)
        if taken.of_gang:
            self.own[rows] += counts
        for plan in concerned(self._counting if plans is None else plans, taken.member):
            turned = plan.take(taken.member, rows, counts)
            if turned is not None:
                self._changed.append(turned)
                self._turned.append(turned)
