"""What groups that have started still need of their minResources.

Law: a leaf that only reads gangs. Only `state` imports it; the check itself is `core.planning.start`.

A group starts with its first members, and its other members come later. Until they do, what they will need is promised
to it: no other group with minResources may count on it, or several would start and none could go on. Other groups may
take it, as in Volcano, because it is no reservation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping

from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.start import Start

_Sizes = Mapping[str, int]


class Starts:
    """For each started group what it is promised, and which groups a promise may keep from starting.

    `eased`: less is promised than when `take_eased` was last called.
    """

    def __init__(self) -> None:
        self._left: dict[GroupKey, _Sizes] = {}
        self._whole: dict[GroupKey, _Sizes] = {}
        self._promised: Counter[str] = Counter()
        self._waiting: dict[GroupKey, None] = {}
        self.eased = False

    def note(self, gang: Gang, asked: Amounts) -> None:
        """Note what the group, whose minResources are `asked`, is promised now."""
        if not asked and gang.key not in self._left:
            return
        had = _had(gang)
        before = self._whole.get(gang.key, {})
        self._forget(gang.key)
        whole: _Sizes = {}
        if had is not None and asked:
            whole = {name: max(amount, had[name]) for name, amount in asked}
            left = {name: whole[name] - had[name] for name in whole}
            self._promised.update(left)
            self._left[gang.key], self._whole[gang.key] = left, whole
        # Where less is promised because members took their part, as much less is free.
        self.eased |= any(amount > whole.get(name, 0) for name, amount in before.items())

    def start_of(self, asked: Amounts) -> Start:
        """What must be free for another group with these minResources."""
        return Start(asked, tuple((name, self._promised[name]) for name, _ in asked if self._promised[name]))

    def wait(self, key: GroupKey) -> None:
        """Note that the group was not allowed to start."""
        self._waiting[key] = None

    def drop(self, key: GroupKey) -> None:
        """Forget a group that is gone."""
        self.eased |= any(self._left.get(key, {}).values())
        self._forget(key)
        self._waiting.pop(key, None)

    def take_eased(self, gangs: Container[GroupKey]) -> list[GroupKey]:
        """The groups that may start now because less is promised to others."""
        self.eased = False
        waiting, self._waiting = self._waiting, {}
        return [key for key in waiting if key in gangs]

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        yield from (f"{key}: promised resources although it is gone" for key in self._left if key not in alive)
        total: Counter[str] = Counter()
        for left in self._left.values():
            total.update(left)
        if +total != +self._promised:
            yield "the sum of promised resources is not that of the groups"

    def _forget(self, key: GroupKey) -> None:
        self._promised.subtract(self._left.pop(key, {}))
        self._whole.pop(key, None)


def _had(gang: Gang) -> Counter[str] | None:
    """What the members of this run have or had on nodes; None if the group has not started, or has ended."""
    had: Counter[str] = Counter()
    started = False
    for pod in gang.observed.pods.values():
        placed = bool(pod.node) or pod.uid in gang.operations.bindings
        if placed and pod.uid not in gang.roster.past:
            started |= gang.lives(pod)
            had.update(dict(pod.shape.requests))
    return had if started else None
