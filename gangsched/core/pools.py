"""What each instance group must add for a refused group, as the Demand objects of palantir's autoscaler say it."""

from __future__ import annotations

from dataclasses import dataclass

from gangsched.core import expansion
from gangsched.core.declaration import asked_for
from gangsched.core.domains import names_of
from gangsched.core.model import Demand
from gangsched.core.refusal import Refusal
from gangsched.core.snapshot import MemberClass

_ZONE = names_of("topology.kubernetes.io/zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDemand:
    """What one instance group must add, by equal requests: all in one zone if `single_zone`, in `zone` if not empty."""

    instance_group: str
    units: tuple[Demand, ...]
    single_zone: bool = False
    zone: str = ""


def pool_demands(refusal: Refusal, label: str) -> tuple[PoolDemand, ...]:
    """What the instance groups of this node label must add, by name; nothing where that would not make the group fit.

    It would not if a member asks for none of them, if no new node helps, or if all members must be on one node, which
    this form cannot say.
    """
    key, value = refusal.domain or ("", None)
    by_group: dict[str, dict[MemberClass, int]] = {}
    for member, count in refusal.missing.items():
        by_group.setdefault(asked_for(member.shape, label), {})[member] = count
    if not refusal.demand or "" in by_group or key == expansion.HOSTNAME:
        return ()
    zonal = key in _ZONE
    return tuple(
        PoolDemand(
            instance_group=name,
            units=expansion.demand(missing, None),
            single_zone=zonal,
            zone=(value or "") if zonal else "",
        )
        for name, missing in sorted(by_group.items())
    )
