"""The capacity that each instance group must add for a refused group, in the form of palantir's Demand objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gangsched.core.cluster.labels import names_of
from gangsched.core.declarations.terms import asked_for
from gangsched.core.objects.demands import DemandUnit, PoolDemand
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Amounts, Shape
from gangsched.core.planning import expansion
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.refusal import Refusal

_ZONE = names_of("topology.kubernetes.io/zone")


def pool_demands(refusal: Refusal, label: str, *, members: Sequence[Pod]) -> tuple[PoolDemand, ...]:
    """What the instance groups of this node label must add, by name; empty if that would not make the group fit.

    It would not if a member asks for none of them, if no new node helps, or if all members must be on one node, which
    Demand objects cannot express. `members` are the refused ones, in the order of trying; the units name some of them.
    """
    by_group: dict[str, dict[MemberClass, int]] = {}
    for member, count in refusal.missing.items():
        by_group.setdefault(asked_for(member.shape, label), {})[member] = count
    if not refusal.demand or "" in by_group or any(key == expansion.HOSTNAME for key, _ in refusal.within):
        return ()
    zones = [value or "" for key, value in refusal.within if key in _ZONE]
    return tuple(
        PoolDemand(
            instance_group=name,
            units=_units(missing, members),
            single_zone=bool(zones),
            zone=zones[-1] if zones else "",
        )
        for name, missing in sorted(by_group.items())
    )


def _units(missing: Mapping[MemberClass, int], members: Sequence[Pod]) -> tuple[DemandUnit, ...]:
    """The members by equal requests; the last unit also has the names of members whose requests no unit has."""
    names = _names(missing, members)
    wanted = expansion.demand(missing, ())
    units = [DemandUnit(each.count, each.requests, tuple(sorted(names.pop(each.requests, ())))) for each in wanted]
    if names and units:
        last = units[-1]
        rest = (name for some in names.values() for name in some)
        units[-1] = DemandUnit(last.count, last.requests, tuple(sorted((*last.pods, *rest))))
    return tuple(units)


def _names(missing: Mapping[MemberClass, int], members: Sequence[Pod]) -> dict[Amounts, list[str]]:
    """The names of missing pods, by their requests: of equal pods the last tried; placeholders count as the last."""
    counts: Counter[Shape] = Counter()
    for member, count in missing.items():
        counts[member.shape] += count
    found: dict[Amounts, list[str]] = {}
    for shape, count in counts.items():
        alike = sorted((pod for pod in members if pod.shape == shape), key=lambda pod: not pod.name)
        names = [pod.name for pod in alike[-count:] if pod.name]
        if names:
            found.setdefault(shape.requests, []).extend(names)
    return found
