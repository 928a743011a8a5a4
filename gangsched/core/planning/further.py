"""Finds places for members above the minimum: each on its own, in order, but counted by class like a quorum.

Consecutive members of one class are placed together wherever each then gets the node that it would have got alone.
Where there is room for all members, each class is placed as a whole. A member without room does not stop the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import dropwhile, groupby

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from gangsched.core.cluster.labels import Within
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.pod import Pod
from gangsched.core.planning import budget as units
from gangsched.core.planning import topology
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.filling import classify, fill_singly, hand_out, preferring
from gangsched.core.planning.levels import placed_in
from gangsched.core.planning.pausing import place
from gangsched.core.planning.placement import Ask, Unfinished
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.search import Share
from gangsched.core.planning.topology import RecentRequests


class Found(Struct):
    """The places, taken on the snapshot; refusals by UID; and the members `left` when the budget ran out."""

    places: list[tuple[Pod, str]] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)
    left: Sequence[Pod] = ()


def place_each(snapshot: Snapshot, ask: Ask, recent: RecentRequests) -> Found:
    """Find a place for each of the members on its own; `need` and `role_needs` of the ask do not matter.

    Stops when the snapshot's budget is used up, but not before it has placed or refused a member.
    """
    return _Each(snapshot, ask, recent).run()


class _Each:
    def __init__(self, snapshot: Snapshot, ask: Ask, recent: RecentRequests) -> None:
        self._snapshot = snapshot
        self._ask = ask
        self._recent_requests = recent
        self._result = Found()
        self._closed: dict[MemberClass, Refusal] = {}

    def run(self) -> Found:
        snapshot, result = self._snapshot, self._result
        most = max(1, snapshot.budget.left // units.MEMBER)
        members, rest = self._ask.members[:most], self._ask.members[most:]
        mark = snapshot.mark()
        snapshot.begin(self._ask.own)
        inside = placed_in(snapshot, self._ask, members) if self._ask.levels else None
        classes = inside or classify(snapshot, members, self._ask.avoided)
        classes = preferring(snapshot, members, classes, self._ask.wishes)
        cost = len(set(classes.values())) * (units.CLASS + snapshot.size)
        if self._ask.topology is None and cost < snapshot.budget.left and self._all(members, classes):
            result.left = rest
            return result
        done = 0
        for member, pods in groupby(members, key=lambda pod: classes[pod.uid]):
            run = list(pods)
            placed = self._run(member, run)
            done += placed
            if placed < len(run) or not snapshot.budget:
                break
        result.left = [*members[done:], *rest]
        if not result.places:
            snapshot.undo(mark)
        return result

    def _all(self, members: Sequence[Pod], classes: Mapping[str, MemberClass]) -> bool:
        """Place all members class by class, or none."""
        mark = self._snapshot.mark()
        shares: list[Share] = []
        for member, count in Counter(classes[pod.uid] for pod in members).items():
            left = count
            while left and (placed := self._next_shares(member, left)):
                shares += [(member, row, number) for _, row, number in placed]
                left -= sum(number for _, _, number in placed)
            if left:
                self._snapshot.undo(mark)
                return False
        self._result.places = hand_out(self._snapshot, members, classes, shares)
        self._snapshot.budget.charge(units.MEMBER * len(members))
        return True

    def _run(self, member: MemberClass, pods: Sequence[Pod]) -> int:
        """Place or refuse members of one class, in order. Returns the number placed or refused."""
        done = 0
        while done < len(pods) and member not in self._closed:
            if done and not self._snapshot.budget:
                return done
            if self._ask.topology is not None and self._home() is None:
                result = place(self._snapshot, self._alone(pods[done]), self._recent_requests)
                if isinstance(result, Unfinished):
                    return done
                if isinstance(result, Refusal):
                    self._closed[member] = result
                    break
                self._take(pods[done : done + 1], [node for _, node in result.assignments])
                done += 1
                continue
            shares = self._next_shares(member, len(pods) - done)
            names = [self._snapshot.name(row) for _, row, number in shares for _ in range(number)]
            if not names:
                refused = place(self._snapshot, self._alone(pods[done]), self._recent_requests)
                if not isinstance(refused, Refusal):
                    raise TypeError(f"{pods[done].name} has a place though its class has none")
                self._closed[member] = refused
                break
            self._take(pods[done : done + len(names)], names)
            done += len(names)
        if done < len(pods):
            self._result.refused.update(dict.fromkeys([pod.uid for pod in pods[done:]], self._closed[member]))
        return len(pods)

    def _take(self, pods: Sequence[Pod], names: Sequence[str]) -> None:
        self._result.places += zip(pods, names, strict=True)
        self._snapshot.budget.charge(units.MEMBER * len(pods))

    def _alone(self, pod: Pod) -> Ask:
        rows = np.flatnonzero(self._snapshot.own).tolist()
        own = {self._snapshot.name(row): int(self._snapshot.own[row]) for row in rows}
        following = tuple(dropwhile(lambda other: other is not pod, self._ask.members))[1:]
        return replace(self._ask, members=(pod,), need=1, role_needs={}, own=own, following=following)

    def _next_shares(self, member: MemberClass, count: int) -> list[Share]:
        """Places for the next members of the class, as many as can be decided at once; empty if there is no room."""
        wanted = self._ask.topology
        home = self._home()
        for avoided in dict.fromkeys((member.avoided, self._ask.refused, self._ask.pause.nodes)):
            one = replace(member, avoided=avoided)
            if wanted is None or home is None:
                shares = self._fill(one, count)
            else:
                value, lead = home
                shares = self._fill(replace(one, within=((wanted.key, value), *one.within)), count)
                if not shares and not wanted.required:
                    # At most `lead` members may go elsewhere before another domain has most of them and becomes home.
                    shares = self._elsewhere(one, wanted, count, min(count, max(1, lead)))
            if shares:
                return shares
        return []

    def _elsewhere(self, member: MemberClass, wanted: Topology, count: int, most: int) -> list[Share]:
        """Places outside the home domain for `most` of `count` members, in as few further domains as possible."""
        used = tuple(topology.occupied(self._snapshot, wanted, self._snapshot.own))
        places: list[Within] = [((wanted.key, used), *member.within)]
        fullest = next(iter(topology.candidates(self._snapshot, wanted, [member] * count, 1)), None)
        if fullest is not None:
            places.append(((wanted.key, fullest), *member.within))
        tries = (self._fill(replace(member, within=within), most) for within in places)
        return next(filter(None, tries), None) or self._fill(member, most)

    def _fill(self, member: MemberClass, count: int) -> list[Share]:
        return fill_singly(self._snapshot, member, count, strategy=self._ask.strategy, prefer=self._ask.prefer)

    def _home(self) -> tuple[str, int] | None:
        """See `topology.leading`; None without `placement.topology`."""
        return (
            topology.leading(self._snapshot, self._ask.topology, self._snapshot.own)
            if self._ask.topology is not None
            else None
        )
