"""Caps on reservations for members that do not exist: how long they are held, and how many a namespace may hold.

A reservation counts until a member has taken it; bindings of existing members do not count. At a cap, reservations are
released or not made, and nothing else changes for the group: its phase and attempts stay, its clock is paused (contract
rules 4 and 11), bound members stay bound, and new members are bound one by one as soon as there is room. Reservations
that were held too long are made again after a back-off at the earliest, which doubles each time. Reservations beyond a
namespace's limit are made as soon as the namespace holds less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from heapq import nlargest

import numpy as np
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import asked_by
from gangsched.core.gang import clock, placeholders
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.turn import Turn
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.duration import doubled, format_duration
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import NamespaceLimits, Policy
from gangsched.core.objects.quantity import MAX_AMOUNT, format_amount
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Capped
from gangsched.core.objects.shape import PODS
from gangsched.core.objects.status import Reservation
from gangsched.core.objects.wording import number_of

FREE_NODES = 4
"""Number of largest nodes whose combined capacity limits the first reservations of a namespace."""


def concern(turn: Turn) -> bool:
    """Whether reservations for members to come are held, or a cap forbids them."""
    return turn.gang.record.capped is not None or turn.gang.record.held_since > 0


def is_back_off_over(turn: Turn) -> bool:
    """Whether reservations may be made again after they were held too long."""
    capped = turn.gang.record.capped
    return capped is not None and bool(capped.until) and capped.until <= turn.now


def end_back_off(turn: Turn) -> None:
    """Try to make them again."""
    capped = turn.gang.record.capped
    if capped is not None:
        turn.gang.change(capped=replace(capped, until=0.0))
        turn.gang.wait.try_again()


def are_held_too_long(turn: Turn) -> bool:
    """Whether reservations have been held for as long as the cluster allows."""
    ended = placeholders.held_until(turn.gang, turn.terms)
    return ended <= turn.now and ended < placeholders.expires(turn.gang, turn.terms)


def release(turn: Turn) -> None:
    """Release them."""
    ended = placeholders.held_until(turn.gang, turn.terms)
    placeholders.release(turn.gang, turn.cluster)
    hold_no_longer(turn.gang, ended, turn.policy)


def is_to_pause(turn: Turn) -> bool:
    """Whether a cap forbids placeholders, and the clock is not paused for that."""
    capped = turn.gang.record.capped
    if capped is None or capped.paused_at or turn.census.held or is_lifted(turn):
        return False
    return bool(turn.gang.record.clock_start) or bool(turn.census.bound)


def pause(turn: Turn) -> None:
    """Pause the clock."""
    clock.pause(turn.gang, turn.now)


def is_lifted(turn: Turn) -> bool:
    """Whether placeholders are not wanted any more, or are reserved again."""
    gang = turn.gang
    if gang.record.capped is None or turn.terms.hindrance is not None or turn.progress.to_come:
        return False
    return bool(turn.census.held or gang.record.scheduled_at or not turn.census.bound)


def lift(turn: Turn) -> None:
    """No cap forbids anything."""
    turn.gang.change(capped=None)


def hold_no_longer(gang: Gang, since: float, policy: Policy) -> None:
    """Note that reservations were held for maxHoldTime until `since`; a back-off precedes the next ones."""
    times = gang.record.caps + 1
    wait_s = doubled(policy.backoff_initial_s, times, longest=policy.backoff_max_s)
    note = (
        f"Reservations for members that do not exist yet were released after {format_duration(policy.max_hold_s)}, the "
        "longest time that this cluster allows (maxHoldTime); they are made again after a back-off if there is room: "
        "create the members sooner, and they are bound as soon as there is room."
    )
    gang.change(caps=times, capped=Capped(Reason.HOLD_LIMIT, note, until=since + wait_s))
    clock.pause(gang, since)
    gang.wait.try_again()


def may_hold_again(gang: Gang, cluster: Cluster, reservation: Reservation, policy: Policy) -> bool:
    """Whether the limits, which may have been lowered, still allow what a former leader held for members to come.

    Reservations on nodes that are gone are lost and do not count.
    """
    asked: Counter[str] = Counter()
    for place in reservation.placements:
        if place.node not in cluster.nodes:
            continue
        for resource, amount in (*place.requests, (PODS, 1)):
            asked[resource] += (place.count - len(place.pods)) * amount
    note = limit(cluster, policy.namespace_limits, gang.key.namespace, asked) if asked[PODS] else ""
    if note:
        stop(gang, note)
    return not note


def limit(
    cluster: Cluster, limits: NamespaceLimits, namespace: str, asked: Mapping[str, int], *, beside: bool = True
) -> str:
    """Which limit of the namespace these reservations would exceed, in a sentence; empty if none.

    What the namespace already holds counts too, unless `beside` is False. The limit for each resource is a share of the
    capacity of all nodes, including cordoned nodes and capacity in use. In a small cluster that share is less than any
    application needs, so the first few reservations are limited by the largest nodes instead.
    """
    held = cluster.holdings.of(namespace) if beside else {}
    number = held.get(PODS, 0) + asked[PODS]
    if number > limits.held_places:
        return (
            f"Namespace {namespace} may hold {number_of(limits.held_places, 'reservation')} for members that do not "
            f"exist yet (namespaceLimits.heldPlaces); it holds {held.get(PODS, 0)}, and this group asks for "
            f"{asked[PODS]} more: "
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
            f"Namespace {namespace} may hold {limits.held_percent}% of the cluster's {resource} for members that do "
            f"not exist yet (namespaceLimits.heldPercent), {format_amount(resource, most)} of "
            f"{format_amount(resource, total)}; "
            f"it holds {format_amount(resource, has)}, and this group asks for {format_amount(resource, amount)} more: "
            f"{_REMEDY}"
        )
    return ""


def _sum(amounts: IntArray) -> int:
    """The sum, computed with Python integers where an int64 might overflow."""
    if not len(amounts):
        return 0
    return int(amounts.sum()) if int(amounts.max()) <= MAX_AMOUNT // len(amounts) else sum(amounts.tolist())


_REMEDY = (
    "create the members at once, lower the minimum of roles with templates, or ask the cluster administrator to raise "
    "the limit."
)


class Caps:
    """Tracks the gangs that may hold nothing more because of their namespace's limits."""

    def __init__(self, cluster: Cluster, policy: Policy) -> None:
        self._cluster = cluster
        self._limits = policy.namespace_limits
        self._stopped: dict[str, dict[GroupKey, Counter[str]]] = {}

    def stops(self, gang: Gang, members: Sequence[Pod]) -> bool:
        """Whether a limit forbids the placeholders among these members; the gang then waits until they are allowed."""
        to_come = [pod for pod in members if not pod.name]
        if not to_come:
            return False
        asked = asked_by(to_come)
        note = limit(self._cluster, self._limits, gang.key.namespace, asked)
        if note:
            stop(gang, note)
            self._stopped.setdefault(gang.key.namespace, {})[gang.key] = asked
        return bool(note)

    def exceeds_limit(self, gang: Gang, members: Sequence[Pod]) -> bool:
        """Whether the placeholders among these members alone exceed the limit, so that freed room would not help."""
        asked = asked_by(pod for pod in members if not pod.name)
        return bool(limit(self._cluster, self._limits, gang.key.namespace, asked, beside=False))

    def drop(self, key: GroupKey) -> None:
        """Forget the gang."""
        stopped = self._stopped.get(key.namespace, {})
        if stopped.pop(key, None) is not None and not stopped:
            del self._stopped[key.namespace]

    def take_eased(self, gangs: Mapping[GroupKey, Gang]) -> list[GroupKey]:
        """Stopped gangs that may hold their reservations now, because their namespace or the nodes have changed."""
        eased = []
        for namespace in self._cluster.holdings.take_eased(self._stopped):
            for key, asked in list(self._stopped[namespace].items()):
                capped = gangs[key].record.capped if key in gangs else None
                waits = capped is not None and capped.reason is Reason.NAMESPACE_LIMIT
                # Checked one by one, so that a gang without room does not block the others; the queue orders them.
                if waits and limit(self._cluster, self._limits, namespace, asked):
                    continue
                self.drop(key)
                if waits:
                    eased.append(key)
        return eased

    def validate(self, gangs: Container[GroupKey]) -> list[str]:
        """Describe, in a sentence each, entries of gangs that no longer exist."""
        gone = [str(key) for stopped in self._stopped.values() for key in stopped if key not in gangs]
        empty = [namespace for namespace, stopped in self._stopped.items() if not stopped]
        return [f"{name}: still stopped by the namespace's limits although it is gone" for name in (*gone, *empty)]


def stop(gang: Gang, note: str) -> None:
    """Record that the namespace may not hold the gang's reservations; the note says why."""
    capped = gang.record.capped or Capped(Reason.NAMESPACE_LIMIT, note)
    gang.change(capped=replace(capped, reason=Reason.NAMESPACE_LIMIT, note=note))
    gang.wait.refuse(None)
