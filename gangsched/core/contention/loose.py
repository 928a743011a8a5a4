"""Evicts pods without a group for open plans, because no gang does."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.evicting import Cause, Evictions
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import EvictionRefused, PodEvicted


class Loose:
    """The `pods` without a group that leave, and their evictions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.pods: dict[str, Pod] = {}
        self._evictions = Evictions(Cause.PREEMPTION, review_at=float("inf"))

    def evict(self, uids: Iterable[str]) -> None:
        """These pods leave from now on."""
        self.pods.update((uid, pod) for uid in uids if (pod := self._to_leave(uid)) is not None)

    def keep(self, uids: Iterable[str]) -> None:
        """These pods stay after all, unless their evictions are on their way."""
        for uid in uids:
            if not self._evictions.is_asked(uid):
                self.pods.pop(uid, None)
                self._evictions.forget(uid)

    def go_on(self, wanted: Collection[str], now: float) -> list[Effect]:
        """The evictions that are due of pods that a plan has `wanted` to leave, by UID."""
        for uid in [*self.pods]:
            pod = self._to_leave(uid)
            if pod is None or not (uid in wanted or self._evictions.is_asked(uid)):
                del self.pods[uid]
                self._evictions.forget(uid)
            else:
                self.pods[uid] = pod
        return self._evictions.go_on(self.pods.values(), now)

    def refused(self) -> dict[str, EvictionRefused]:
        """Why the API server has last refused to evict pods, by UID."""
        return self._evictions.refused()

    def note(self, result: PodEvicted | EvictionRefused, now: float) -> None:
        """Note the result of an eviction."""
        if self._evictions.note(result, now):
            self.pods.pop(result.uid, None)

    def next_due(self) -> float:
        """When an eviction is due without an event, in epoch seconds; infinity if none is."""
        return self._evictions.next_due(self.pods.values()) if self.pods else float("inf")

    def _to_leave(self, uid: str) -> Pod | None:
        """The pod, if its eviction is not accepted yet."""
        pod = self._cluster.pods.get(uid)
        return None if pod is None or pod.terminal or pod.terminating else pod
