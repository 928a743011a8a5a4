"""Caps on places for members to come: how long they are held, and how many of them a namespace may hold.

A place is counted while no member has taken it; bindings of members that exist are not. At a cap places are released,
or not held to begin with, and nothing else happens to the group: its phase and attempts stay, its clock is paused
(contract rules 4 and 11), who is bound stays bound, and members that come are bound one by one as soon as there is
room. What was held for too long is held again after a back-off at the earliest, which doubles with each time; what is
too much for the namespace, as soon as the namespace holds less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from heapq import nlargest

import numpy as np
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.capacity import LIMIT
from gangsched.core.cluster.ledger import asked_by
from gangsched.core.gang import clock, placeholders
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.terms import Terms
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.duration import format_duration
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import NamespaceLimits, Policy
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Capped
from gangsched.core.objects.retry import doubled
from gangsched.core.objects.shape import PODS
from gangsched.core.objects.status import Reservation
from gangsched.core.objects.wording import number_of

FREE_NODES = 4
"""A namespace's first places are no more than so many of the largest nodes could have."""


def keep(gang: Gang, cluster: Cluster, terms: Terms, *, now: float, policy: Policy) -> None:
    """Release places that have been held for too long, end a back-off that is over, and let the clock stand."""
    capped = gang.record.capped
    if capped is not None and 0 < capped.until <= now:
        gang.note(capped=replace(capped, until=0.0))
        gang.attempt.try_again()
    ended = placeholders.held_until(gang, terms)
    if ended <= now and ended < placeholders.expires(gang, terms):
        placeholders.vacate(gang, cluster)
        hold_no_longer(gang, ended, policy)
    capped = gang.record.capped
    if capped is None or capped.paused_at or gang.vacant():
        return
    if gang.record.clock_start or any(pod.node for pod in gang.live()):
        clock.pause(gang, now)


def hold_no_longer(gang: Gang, since: float, policy: Policy) -> None:
    """Places have been held for maxHoldTime until `since`, and are to be held again after a back-off."""
    times = gang.record.caps + 1
    wait_s = doubled(policy.backoff_initial_s, times, longest=policy.backoff_max_s)
    gang.note(caps=times, capped=Capped(Reason.HOLD_LIMIT, _held_long(policy.max_hold_s), until=since + wait_s))
    clock.pause(gang, since)
    gang.attempt.try_again()


def _held_long(max_hold_s: float) -> str:
    return (
        f"Places for members to come were held for {format_duration(max_hold_s)}, the most that this cluster allows "
        "(maxHoldTime), and are released; they are held again after a back-off if there is room: create the members "
        "sooner, and they are bound as soon as there is room."
    )


def may_hold_again(gang: Gang, cluster: Cluster, reservation: Reservation, policy: Policy) -> bool:
    """Whether the limits, which may have been lowered, still allow the places that a former leader held."""
    asked: Counter[str] = Counter()
    for place in reservation.placements:
        number = place.count - len(place.pods)
        asked.update({resource: number * amount for resource, amount in place.requests})
        asked[PODS] += number
    note = limit(cluster, policy.namespace_limits, gang.key.namespace, asked) if asked[PODS] else ""
    if note:
        stop(gang, note)
    return not note


def limit(
    cluster: Cluster, limits: NamespaceLimits, namespace: str, asked: Mapping[str, int], *, beside: bool = True
) -> str:
    """Which limit of the namespace these places would exceed, beside those that it holds, in a sentence; empty if none.

    Of each resource it may hold a share of what all nodes have, cordoned ones too, whoever uses it. In a small cluster
    that is less than any application needs: the first few places are measured by the largest nodes instead.
    """
    held = cluster.holdings.of(namespace) if beside else {}
    number = held.get(PODS, 0) + asked[PODS]
    if number > limits.held_places:
        return (
            f"Namespace {namespace} may hold {number_of(limits.held_places, 'place')} for members to come "
            f"(namespaceLimits.heldPlaces); it holds {held.get(PODS, 0)}, and this group asks for {asked[PODS]} more: "
            f"{_REMEDY}"
        )
    for resource, amount in sorted(asked.items()):
        column = cluster.capacity.column(resource)
        given = cluster.capacity.allocatable[:, column] if column is not None else np.zeros(0, dtype=np.int64)
        total = _sum(given)
        most = total * limits.held_percent // 100
        has = held.get(resource, 0)
        if has + amount <= most:
            continue
        if number <= limits.free_places and has + amount <= sum(nlargest(FREE_NODES, given.tolist())):
            continue
        return (
            f"Namespace {namespace} may hold {limits.held_percent}% of the cluster's {resource} for members to come "
            f"(namespaceLimits.heldPercent), {format_amount(resource, most)} of {format_amount(resource, total)}; "
            f"it holds {format_amount(resource, has)}, and this group asks for {format_amount(resource, amount)} more: "
            f"{_REMEDY}"
        )
    return ""


def _sum(amounts: IntArray) -> int:
    """Summed as Python integers where an int64 might overflow."""
    if not len(amounts):
        return 0
    return int(amounts.sum()) if int(amounts.max()) <= LIMIT // len(amounts) else sum(amounts.tolist())


_REMEDY = (
    "create members at once instead of waiting for places, lower the minimum of roles with templates, or ask whoever "
    "runs gangsched to raise the limit."
)


class Caps:
    """Who may hold nothing more because of the namespace's limits, and who may again."""

    def __init__(self, cluster: Cluster, policy: Policy) -> None:
        self._cluster = cluster
        self._limits = policy.namespace_limits
        self._stopped: dict[str, dict[GroupKey, Counter[str]]] = {}

    def stops(self, gang: Gang, members: Sequence[Pod]) -> bool:
        """Whether the namespace may not hold the places among these; the gang then waits until it may."""
        to_come = [pod for pod in members if not pod.name]
        if not to_come:
            return False
        asked = asked_by(to_come)
        note = limit(self._cluster, self._limits, gang.key.namespace, asked)
        if not note:
            return False
        stop(gang, note)
        self._stopped.setdefault(gang.key.namespace, {})[gang.key] = asked
        return True

    def beyond(self, gang: Gang, members: Sequence[Pod]) -> bool:
        """Whether the namespace may never hold the places among these: it is not room that the gang waits for."""
        asked = asked_by(pod for pod in members if not pod.name)
        return bool(limit(self._cluster, self._limits, gang.key.namespace, asked, beside=False))

    def drop(self, key: GroupKey) -> None:
        """The gang exists no longer."""
        stopped = self._stopped.get(key.namespace, {})
        if stopped.pop(key, None) is not None and not stopped:
            del self._stopped[key.namespace]

    def take_eased(self, gangs: Mapping[GroupKey, Gang]) -> list[GroupKey]:
        """Who was stopped and may hold its places now, because of what its namespace or the nodes have become."""
        eased = self._cluster.holdings.take_eased(self._stopped)
        return [key for namespace in eased for key in self._eased(namespace, gangs)]

    def validate(self, gangs: Container[GroupKey]) -> list[str]:
        """Who is stopped though gone, in a sentence each."""
        gone = [str(key) for stopped in self._stopped.values() for key in stopped if key not in gangs]
        empty = [namespace for namespace, stopped in self._stopped.items() if not stopped]
        return [f"{name}: stopped by the namespace's limits though gone" for name in (*gone, *empty)]

    def _eased(self, namespace: str, gangs: Mapping[GroupKey, Gang]) -> list[GroupKey]:
        stopped = self._stopped[namespace]
        found = []
        for key, asked in list(stopped.items()):
            gang = gangs.get(key)
            if gang is None or gang.record.capped is None or gang.record.capped.reason is not Reason.NAMESPACE_LIMIT:
                del stopped[key]
            elif not limit(self._cluster, self._limits, namespace, asked):
                # Each for itself, for one that finds no room keeps none from its share; they are tried in their order.
                del stopped[key]
                found.append(key)
        if not stopped:
            del self._stopped[namespace]
        return found


def stop(gang: Gang, note: str) -> None:
    """The namespace may not hold the gang's places; the note says why."""
    capped = gang.record.capped or Capped(Reason.NAMESPACE_LIMIT, note)
    gang.note(capped=replace(capped, reason=Reason.NAMESPACE_LIMIT, note=note))
    gang.attempt.stopped()
