"""Measures capacity that is reserved or used without a whole gang running on it, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.record import Phase
from gangsched.core.planning.guests import withheld


def held(gangs: Iterable[Gang], placeholders: Collection[str], pods: Mapping[str, Pod]) -> Counter[str]:
    """Amounts, by resource, reserved for members without a node and for these `placeholders` of lost members."""
    amounts: Counter[str] = Counter()
    for gang in gangs:
        for binding in gang.operations.bindings.values():
            if binding.state is not BindState.BOUND:
                _add(amounts, binding.pod)
    for uid in placeholders:
        _add(amounts, pods[uid])
    return amounts


def idle(gangs: Iterable[Gang]) -> Counter[str]:
    """Amounts, by resource, of members that have a node in groups of which fewer than the minimum have one."""
    amounts: Counter[str] = Counter()
    for gang in gangs:
        if gang.operations.partial_since or gang.record.phase is Phase.DEGRADED:
            for pod in gang.live():
                if pod.node:
                    _add(amounts, pod)
    return amounts


def reserved_idle(cluster: Cluster) -> Counter[str]:
    """Amounts, by resource, that are kept free where places are reserved for later."""
    amounts: Counter[str] = Counter()
    for reserved in cluster.ledger.reserved.values():
        if reserved.start is not None:
            kept = withheld(cluster, reserved, {})
            amounts.update(dict(zip(kept.resources, kept.amounts.sum(axis=0).tolist(), strict=True)))
    return amounts


def _add(amounts: Counter[str], pod: Pod) -> None:
    for resource, amount in pod.shape.requests:
        amounts[resource] += amount
