"""So many waiting groups of one namespace are tried; those beyond stand outside until others have left.

A group waits from the moment it is complete until its quorum has places. Who is inside stays: the others keep their
order and enter one by one, so that a flood of groups, of whatever priority, costs the other namespaces nothing. A group
in the back-off after a time-out gives way to one outside, so that those that never fit do not keep all others out for
ever. Repairs, scheduled groups and pods without a group are always tried. A former leader's attempts go on first.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import TypeVar

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.wording import number_of
from gangsched.core.queueing.lanes import OrderKey
from gangsched.core.queueing.queue import order_key

_Rank = tuple[int, OrderKey]
Value = TypeVar("Value")
_SLACK = 64
_BEGUN, _NEW, _BACKING_OFF = range(3)


class Admission:
    """`most` are inside for each namespace. `newcomers` are who asked to enter since the last `let_in`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside: dict[str, dict[GroupKey, None]] = {}
        self._outside: dict[str, dict[GroupKey, _Rank]] = {}
        self._order: dict[str, list[tuple[_Rank, GroupKey]]] = {}
        self._newcomers: dict[GroupKey, None] = {}
        self._resting: dict[str, dict[GroupKey, None]] = {}
        self._giving_way: list[GroupKey] = []

    def admits(self, gang: Gang, assessment: Assessment, now: float) -> bool:
        """Whether the gang may be tried now; one that waits and may not is let in, or told so, by `let_in`."""
        key = gang.key
        want = assessment.want
        if gang.plain or gang.record.scheduled_at or want.quorum is None or want.repair:
            self.drop(key)
            gang.outside = ""
            return True
        backing_off = assessment.facts.backing_off
        begun = 0 < gang.record.clock_start < now
        rank = (_BACKING_OFF if backing_off else _BEGUN if begun else _NEW, order_key(gang, assessment))
        # Nobody leaves who would be the next to enter: two that back off would change places for ever.
        if key in self._inside.get(key.namespace, ()) and not (backing_off and self._is_behind(rank, key.namespace)):
            if backing_off:
                self._resting.setdefault(key.namespace, {})[key] = None
            else:
                _remove(self._resting, key)
            return True
        _remove(self._inside, key)
        _remove(self._resting, key)
        if not backing_off and key.namespace in self._resting:
            last = next(reversed(self._resting[key.namespace]))
            self._giving_way.append(last)
            _remove(self._resting, last)
        outside = self._outside.setdefault(key.namespace, {})
        if outside.get(key) != rank:
            outside[key] = rank
            order = self._order.setdefault(key.namespace, [])
            heappush(order, (rank, key))
            if len(order) > 2 * len(outside) + _SLACK:
                # Outdated entries would otherwise stay for as long as nobody leaves.
                order[:] = [(known, other) for other, known in outside.items()]
                heapify(order)
        self._newcomers[key] = None
        return False

    def _is_behind(self, rank: _Rank, namespace: str) -> bool:
        """Whether somebody outside comes before this."""
        outside, order = self._outside.get(namespace, {}), self._order.get(namespace, [])
        while order and outside.get(order[0][1]) != order[0][0]:
            heappop(order)
        return bool(order) and order[0][0] < rank

    def drop(self, key: GroupKey) -> None:
        """The gang does not wait any more."""
        _remove(self._inside, key)
        _remove(self._resting, key)
        _remove(self._outside, key)
        if key.namespace not in self._outside:
            self._order.pop(key.namespace, None)
        self._newcomers.pop(key, None)

    def let_in(self, gangs: Mapping[GroupKey, Gang]) -> tuple[list[GroupKey], list[GroupKey]]:
        """Let in as many as have room, in order. Returns who has entered, and who now stands outside and did not."""
        entered = []
        for namespace in list(self._outside):
            inside = self._inside.setdefault(namespace, {})
            outside, order = self._outside[namespace], self._order[namespace]
            while len(inside) < self._most and outside:
                rank, key = heappop(order)
                if outside.get(key) == rank:
                    del outside[key]
                    inside[key] = None
                    entered.append(key)
            if not outside:
                del self._outside[namespace], self._order[namespace]
        for key in entered:
            self._newcomers.pop(key, None)
            gangs[key].outside = ""
        kept_out = [key for key in self._newcomers if not gangs[key].outside]
        for key in kept_out:
            gangs[key].outside = self._note(key.namespace)
        self._newcomers.clear()
        return entered, kept_out

    def take_giving_way(self) -> list[GroupKey]:
        """Who is inside, backs off, and is to be looked at again because somebody else has come."""
        giving_way, self._giving_way = self._giving_way, []
        return giving_way

    def _note(self, namespace: str) -> str:
        return (
            f"{number_of(self._most, 'group')} of namespace {namespace} wait already, the most of one namespace that "
            "are tried (namespaceLimits.waitingGroups); this one is tried in its turn, once one of them is bound, "
            "deleted or times out: delete groups that nobody needs, or ask whoever runs gangsched to raise the limit."
        )


def _remove(known: dict[str, dict[GroupKey, Value]], key: GroupKey) -> None:
    """Let the gang be none of its namespace's, and the namespace be none if it has no other."""
    of_namespace = known.get(key.namespace)
    if of_namespace is not None:
        of_namespace.pop(key, None)
        if not of_namespace:
            del known[key.namespace]
