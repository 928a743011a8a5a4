"""What must be remembered of one run of a gang beside the cluster itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gangsched.core.objects.reasons import Reason


@dataclass(slots=True)
class Transaction:
    """A quorum on its way: the minimum and each role's with which it was decided, and its pods by UID."""

    minimum: int
    role_minima: dict[str, int] = field(default_factory=dict)
    pods: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Capped:
    """A cap keeps places for members to come from being held: which, and why, for a person; see `core.gang.caps`.

    Nothing is held before `until` (0.0: there is no back-off). `paused_at` is since when the clock stands, having run
    for `ran_s` seconds; 0.0 if it was not running.
    """

    reason: Reason
    note: str
    until: float = 0.0
    paused_at: float = 0.0
    ran_s: float = 0.0


@dataclass(slots=True)
class Run:
    """What must be remembered of one run beside the cluster itself. Times are 0.0 where unset.

    `minimum` and `role_minima` are those last satisfied; `timeouts` counts this run's time-outs and
    undone bindings, `level` is the back-off's exponent, which a change of the spec resets; `succeeded` has each
    success' role by UID; `gone_well` (by role) and `gone_badly` count members that ended, and were deleted, before this
    process began to decide; `past` are pods that belong to earlier runs. `vacated`: the time of places that were
    held for members to come is over, and none is held again before the gang is whole. `late`: so it was before the gang
    was ever whole, as far as is known; it counts as scheduled with what was bound. `led`: the member whose success is
    the gang's succeeded. `held_since` is when the first of the places was held that nobody has taken. `capped`: a cap
    has released places or keeps them from being held; `caps` counts those released for the time that they were held.
    """

    began: bool = False
    scheduled_at: float = 0.0
    clock_start: float = 0.0
    backoff_until: float = 0.0
    minimum: int = 0
    role_minima: dict[str, int] = field(default_factory=dict)
    timeouts: int = 0
    level: int = 0
    failed_for_good: bool = False
    ended: bool = False
    ended_well: bool = False
    succeeded: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    gone_well: Counter[str] = field(default_factory=Counter)
    gone_badly: int = 0
    past: set[str] = field(default_factory=set)
    vacated: bool = False
    late: bool = False
    led: bool = False
    held_since: float = 0.0
    capped: Capped | None = None
    caps: int = 0

    @property
    def successes(self) -> int:
        """How many members have succeeded."""
        return len(self.succeeded) + self.gone_well.total()

    @property
    def failures(self) -> int:
        """How many members have failed."""
        return len(self.failed) + self.gone_badly
