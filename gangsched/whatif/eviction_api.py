"""Evictions in a simulated cluster: what the API server answers, and when the evicted pods are gone.

PodDisruptionBudgets allow what their statuses say, and less with each eviction that draws from them: nothing creates
pods again, so nothing is added. Each pod uses its whole grace period.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from msgspec.structs import replace

from gangsched.core.cluster.budgets import Budgets
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import BudgetSeen, Event, PodGone, PodSeen
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import EvictionRefused, PodEvicted, Spared


class Evictions:
    """The pods that are about to be gone, and what the budgets still allow."""

    def __init__(self, budgets: Iterable[DisruptionBudget] = ()) -> None:
        self._budgets = Budgets()
        for budget in budgets:
            self._budgets.set(budget.key, budget)
        self._ends: list[tuple[float, str]] = []

    def evict(self, pod: Pod, now: float) -> tuple[Pod | None, list[Event]]:
        """Evict this pod. Returns what it is then, None if it is gone at once, and what the machine is to be told."""
        if pod.terminating or pod.terminal:
            return pod, [PodEvicted(pod.uid)]
        budgets = self._budgets.of(pod)
        if len(budgets) > 1:
            names = " and ".join(budget.name for budget in budgets)
            return pod, [EvictionRefused(pod.uid, Spared.FORBIDDEN, f"more than one PodDisruptionBudget: {names}")]
        events: list[Event] = []
        for budget in self._budgets.drawn_by(pod):
            if budget.allowed <= 0:
                return pod, [
                    EvictionRefused(pod.uid, Spared.BUDGET, f"the PodDisruptionBudget {budget.name} forbids it")
                ]
            left = replace(budget, allowed=budget.allowed - 1, disrupted=budget.disrupted | {pod.name})
            self._budgets.set(budget.key, left)
            events.append(BudgetSeen(left))
        if not pod.lifetime.grace_s:
            return None, [*events, PodEvicted(pod.uid), PodGone(pod.uid)]
        leaving = replace(pod, terminating=True, gone_by=now + pod.lifetime.grace_s)
        self.await_end(leaving.uid, leaving.gone_by)
        return leaving, [*events, PodEvicted(pod.uid), PodSeen(leaving)]

    def await_end(self, uid: str, at: float) -> None:
        """The pod will be gone then, in epoch seconds."""
        heapq.heappush(self._ends, (at, uid))

    def next_end(self) -> float:
        """When the next pod is gone, in epoch seconds; infinity if none is about to be."""
        return self._ends[0][0] if self._ends else float("inf")

    def take_ended(self, now: float) -> list[str]:
        """The UIDs of the pods that are gone by now, each once."""
        ended = []
        while self.next_end() <= now:
            ended.append(heapq.heappop(self._ends)[1])
        return ended
