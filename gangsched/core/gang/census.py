"""A gang's members, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from gangsched.core.gang.gang import _BOUND, Gang
from gangsched.core.objects.pod import Pod, PodPhase, member_order, role_of


class Census(Struct, frozen=True, kw_only=True):
    """A gang's members counted: `bound` on a node, `waiting` for one in the order of trying, the rest on their way."""

    live: Sequence[Pod]
    bound: Sequence[Pod]
    waiting: Sequence[Pod]
    running: int
    bound_roles: Counter[str]
    done_roles: Counter[str]

    @property
    def done(self) -> int:
        """Members that succeeded in this run."""
        return self.done_roles.total()


def take_census(gang: Gang) -> Census:
    """Count the gang's members by what the pods say and what the server has confirmed."""
    live = gang.live()
    bound = []
    waiting = []
    for pod in live:
        binding = gang.bindings.get(pod.uid)
        if pod.node or (binding is not None and binding.state is _BOUND):
            bound.append(pod)
        elif binding is None:
            waiting.append(pod)
    waiting.sort(key=member_order)
    return Census(
        live=live,
        bound=bound,
        waiting=waiting,
        running=sum(pod.phase is PodPhase.RUNNING for pod in bound),
        bound_roles=Counter(map(role_of, bound)),
        done_roles=Counter(dict(gang.record.succeeded)),
    )
