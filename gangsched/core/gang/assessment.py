"""What a call has found out about a gang: what everyone else reads of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from gangsched.core.declarations.minima import chosen, minima, missing_of
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Census
from gangsched.core.gang.states import Facts
from gangsched.core.gang.wants import Want
from gangsched.core.objects.pod import Pod, role_of


class Assessment(Struct, frozen=True, kw_only=True):
    """The current state of the gang.

    `complete`: the members and placeholders are enough, and nothing keeps the gang from being tried. `surplus` are
    members beyond a maximum. `facts`, `minimum` and `due` are known once the call is over: `due` is when, in epoch
    seconds, the gang must be reconciled even without an event. By `aged` it is ahead of its priority, for its waiting.
    `timed_out`: its clock has just run out; `newly_scheduled`: its quorum has just been bound.
    """

    census: Census
    terms: Terms
    complete: bool = False
    facts: Facts = Facts()
    want: Want = Want()
    minimum: int = 0
    surplus: Sequence[Pod] = ()
    due: float = NEVER
    aged: int = 0
    timed_out: bool = False
    newly_scheduled: bool = False

    @property
    def missing(self) -> int:
        """Number of members that do not exist yet."""
        if self.terms.spec.tree is not None:
            return missing_of(self.terms.spec.tree, Counter(map(role_of, self.census.live))).number
        return max(0, self.terms.spec.minimum - len(self.census.live))

    @property
    def missing_roles(self) -> dict[str, int]:
        """Number of members that do not exist yet, by role."""
        live = Counter(map(role_of, self.census.live))
        least = chosen(minima(self.terms.spec), live).roles
        return {role: number - live[role] for role, number in least if number > live[role]}
