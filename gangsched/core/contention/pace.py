"""How fast others are preempted: so many pods a minute, and no plan for a while where the last one was in vain."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.duration import doubled

PASSED_S = 300.0
"""For so many seconds, nobody whose eviction was refused is part of a plan again, and nobody who has left in vain for a
group is part of one for that group."""
FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 300.0
"""After a plan that was in vain, its group has no plan for FIRST_PAUSE_S, doubled up to LONGEST_PAUSE_S."""
KEPT_S = 30.0
"""For at most so many seconds, what a plan had reserved is kept while another one is looked for."""
_ROUNDING = 1e-6


class _Pause(Struct):
    """How many plans of a group were in vain in a row, and until when it opens no other."""

    times: int
    until: float


class Tokens(Struct):
    """A bucket of evictions: it fills with so many `a_minute`, up to as many, and is empty after a start."""

    a_minute: int
    available: float = 0.0
    at: float = 0.0

    def fill(self, now: float) -> None:
        """Add what has come since the last call."""
        gained = self.a_minute * (now - self.at) / 60.0 if self.at else 0.0
        self.available, self.at = min(float(self.a_minute), self.available + gained), now

    def take(self, number: int) -> None:
        """Spend this many; what is missing is made up later."""
        self.available -= number

    def __bool__(self) -> bool:
        """Whether there is one."""
        return self.available >= 1 - _ROUNDING

    def next(self) -> float:
        """When there is one again, in epoch seconds."""
        return self.at if self else self.at + (1 - self.available) * 60.0 / self.a_minute


class Pace:
    """Which groups have no plan for now, and who is part of none; `tokens` limit all evictions."""

    def __init__(self, a_minute: int) -> None:
        self.tokens = Tokens(a_minute)
        self._pauses: dict[GroupKey, _Pause] = {}
        self._passed: dict[tuple[GroupKey | None, str], float] = {}

    def allowed_from(self, key: GroupKey) -> float:
        """From when on the group may have a plan, in epoch seconds; 0.0 if it may."""
        return self._pauses[key].until if key in self._pauses else 0.0

    def pause(self, key: GroupKey, now: float, *, excused: bool = False) -> None:
        """The group's plan was in vain; once in a row that may be `excused`."""
        times = self._pauses[key].times + 1 if key in self._pauses else 1
        pauses = times - excused
        pause_s = doubled(FIRST_PAUSE_S, pauses, longest=LONGEST_PAUSE_S) if pauses else 0.0
        self._pauses[key] = _Pause(times, now + pause_s)

    def forget(self, key: GroupKey) -> None:
        """The group has its places, or is gone."""
        self._pauses.pop(key, None)
        for pair in [pair for pair in self._passed if pair[0] == key]:
            del self._passed[pair]

    def pass_over(self, names: Iterable[str], now: float, holder: GroupKey | None = None) -> None:
        """These units could not be evicted or, if a group is given, have left for it in vain."""
        self._passed.update(((holder, name), now + PASSED_S) for name in names)

    def passed_until(self) -> float:
        """When somebody may be part of a plan again, in epoch seconds; infinity if nobody is passed over."""
        return min(self._passed.values(), default=float("inf"))

    def passed(self, now: float, holder: GroupKey | None = None) -> set[str]:
        """The names of units that are part of no plan for now or, if a group is given, of none for it."""
        self._passed = {pair: until for pair, until in self._passed.items() if now < until}
        return {name for key, name in self._passed if key in (None, holder)}
