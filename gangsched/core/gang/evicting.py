"""Evicts pods from their nodes, whatever the cause: asks, asks again, and leaves in place whom the cause spares.

Pods are evicted and never deleted (contract rule 13). A rollback spares pods that no controller would recreate and
those of Jobs that would count it as a failure; these Jobs are looked up first. The API server may refuse an eviction
for a while, as a PodDisruptionBudget does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct, field

from gangsched.core.objects.duration import doubled
from gangsched.core.objects.effects import Effect, EvictPod, LookUpOwner
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.results import EvictionRefused, OwnerSeen, PodEvicted, Spared

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 15.0
UNHEARD_S = 15.0
"""Time in seconds after which a look-up of a Job is repeated if it has no result."""
REVIEW_S = 60.0
"""Seconds after which the reasons for sparing members are checked again: a suspended Job may have been resumed."""


class Cause(StrEnum):
    """Why pods are evicted."""

    ROLLBACK = "Rollback"
    """A quorum, or a part, is bound in part and cannot be completed."""
    RESTART = "Restart"
    """The group fell below its minimum, and onDegraded is Restart."""
    PREEMPTION = "Preemption"
    """A group of higher priority needs their nodes."""
    OVERDUE = "Overdue"
    """They have lasted longer than declared, on nodes that are reserved for a group."""

    @property
    def spares(self) -> bool:
        """Whether pods that would be lost by an eviction, or count as failed, are left in place."""
        return self is Cause.ROLLBACK


class Eviction(Struct):
    """The eviction of a pod. `asked`: it is in flight, or was accepted."""

    asked: bool = False
    tries: int = 0
    retry_at: float = 0.0
    refused_with: EvictionRefused | None = None

    def ask(self) -> None:
        """The eviction was sent."""
        self.asked = True
        self.tries += 1

    def refused(self, refusal: EvictionRefused, retry_at: float) -> None:
        """The API server has refused it for now."""
        self.asked = False
        self.refused_with = refusal
        self.retry_at = retry_at


class Evictions(Struct):
    """The evictions under way for one cause, by the pods' UIDs. They are changed only by these methods.

    `spared` says why a pod is left in place. What is known of the pods' Jobs (`_jobs`, by UID) is asked for again at
    `review_at`; `_looked_up` is when each was asked for last.
    """

    cause: Cause
    review_at: float
    spared: dict[str, str] = field(default_factory=dict)
    _evictions: dict[str, Eviction] = field(default_factory=dict)
    _jobs: dict[str, OwnerSeen] = field(default_factory=dict)
    _looked_up: dict[str, float] = field(default_factory=dict)

    def go_on(self, pods: Iterable[Pod], now: float) -> list[Effect]:
        """What is to be sent now so that these pods leave."""
        if self.review_at <= now:
            for known in (self.spared, self._jobs, self._looked_up):
                known.clear()
            self.review_at = now + REVIEW_S
        return [effect for pod in pods for effect in self._evict(pod, now)]

    def note(self, result: PodEvicted | EvictionRefused | OwnerSeen, now: float) -> bool:
        """Note the API server's answer. Returns whether it accepts the eviction of a pod; others change nothing."""
        if isinstance(result, OwnerSeen):
            self._jobs[result.uid] = result
            return False
        eviction = self._evictions.get(result.uid)
        if eviction is None:
            return False
        if isinstance(result, PodEvicted):
            del self._evictions[result.uid]
            return True
        wait_s = doubled(FIRST_RETRY_S, eviction.tries, longest=LONGEST_RETRY_S)
        eviction.refused(result, retry_at=now + max(wait_s, result.retry_after_s))
        return False

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self.spared.pop(uid, None)
        self._evictions.pop(uid, None)

    def asks_about(self, owner: str) -> bool:
        """Whether the owner with this UID was looked up."""
        return owner in self._looked_up

    def of(self) -> Iterator[str]:
        """The UIDs of the pods of which something is known."""
        return iter({*self.spared, *self._evictions})

    def next_due(self, pods: Collection[Pod]) -> float:
        """When `go_on` has something to send for these pods without an event, in epoch seconds; infinity if never."""
        due = [self.review_at if pods else float("inf")]
        for pod in pods:
            eviction = self._evictions.get(pod.uid)
            if eviction is None:
                if pod.owner is not None and pod.uid not in self.spared:
                    due.append(self._look_up_at(pod.owner))
            elif not eviction.asked:
                due.append(eviction.retry_at)
        return min(due)

    def can_do_no_more(self, pods: Iterable[Pod], now: float) -> bool:
        """Whether each of these pods is spared, or the server has refused its eviction and no retry is due yet."""
        return all(pod.uid in self.spared or self._is_refused(pod, now) for pod in pods)

    def left(self, pods: Iterable[Pod]) -> list[Pod]:
        """Those of these pods that are left in place for now; `spared` says why."""
        return [pod for pod in pods if pod.uid in self.spared]

    def is_asked(self, uid: str) -> bool:
        """Whether the pod's eviction is in flight."""
        return uid in self._evictions and self._evictions[uid].asked

    def refused(self) -> dict[str, EvictionRefused]:
        """Why the API server has last refused evictions, by UID."""
        return {uid: why for uid, eviction in self._evictions.items() if (why := eviction.refused_with) is not None}

    def refusals(self, pods: Iterable[Pod]) -> Sequence[EvictionRefused]:
        """The refusals that prevent evictions of these pods at present."""
        refusals = (self._evictions[pod.uid].refused_with for pod in pods if pod.uid in self._evictions)
        return [refusal for refusal in refusals if refusal is not None]

    def _is_refused(self, pod: Pod, now: float) -> bool:
        """Whether the server has refused the eviction, rather than failed to respond, and no retry is due yet."""
        eviction = self._evictions.get(pod.uid)
        if eviction is None or eviction.asked or eviction.refused_with is None:
            return False
        return eviction.refused_with.why is not Spared.UNAVAILABLE and now < eviction.retry_at

    def _evict(self, pod: Pod, now: float) -> list[Effect]:
        """Evict the pod or spare it, or look up the Job on which that depends."""
        eviction = self._evictions.get(pod.uid)
        if eviction is None:
            why = self._why_spared(pod.owner) if self.cause.spares else ""
            if why is None:
                return self._look_up_job(pod, now)
            if why:
                self.spared[pod.uid] = why
                return []
            eviction = self._evictions[pod.uid] = Eviction()
        if eviction.asked or now < eviction.retry_at:
            return []
        eviction.ask()
        return [EvictPod(pod.uid, pod.namespace, pod.name, self.cause)]

    def _why_spared(self, owner: Owner | None) -> str | None:
        """Why pods of this owner are spared (rule 13); empty if they are evicted, None if their Job is unknown."""
        if owner is None:
            return "no controller would recreate it"
        if (owner.kind, owner.api_group) == ("Node", ""):
            return "it belongs to its node"
        if (owner.kind, owner.api_group) != ("Job", "batch"):
            return ""
        return self._jobs[owner.uid].why if owner.uid in self._jobs else None

    def _look_up_job(self, pod: Pod, now: float) -> list[Effect]:
        owner = pod.owner
        if owner is None or now < self._look_up_at(owner):
            return []
        self._looked_up[owner.uid] = now
        return [LookUpOwner(owner.uid, pod.namespace, owner.name)]

    def _look_up_at(self, owner: Owner) -> float:
        """When the owner may be looked up again, in epoch seconds."""
        return self._looked_up.get(owner.uid, float("-inf")) + UNHEARD_S
