"""Which pods may leave for a group, and what leaves together.

A unit is a member above its gang's minimum, a pod without a group, or all live members of a gang. Some pods are in no
unit: those of other schedulers, those that belong to their node or to a DaemonSet, those of system-critical priority,
those under more than one PodDisruptionBudget, which the Eviction API refuses to evict, and gangs whose bindings are on
their way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import BOUND, Claim
from gangsched.core.contention.pool import Obstacle, Pool, Victim
from gangsched.core.contention.surplus import divided, is_in_flight, is_leaving
from gangsched.core.declarations.automatic import is_patient
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.removable import Removable, Unit

CRITICAL = 2_000_000_000
"""Pods of at least this priority are system-critical in Kubernetes: they are never evicted."""
LEAST_S = 60.0
"""A pod counts as having worked for at least so many seconds, so that many young ones are not given up lightly."""
MOST_PROTECTED_S = 3600.0
"""Longest time in seconds for which a group is protected after it was scheduled."""
_LOOKED_AT, _OF_GANG, _INDEXED = 20, 60, 40
"""Cost of looking at a pod, of finding out what of its gang may leave, and of its place in the index, in units of the
budget."""
_AT_ONCE = 1000
OVERDUE_S = 60.0
"""So many seconds after a pod should be gone, it counts as one that stays."""


class Collector:
    """Collects units, for as long as the budget of a call lasts; what it found before may have changed meanwhile."""

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: Mapping[GroupKey, Assessment],
        *,
        policy: Policy,
        now: float,
        plan: Plan | None = None,
    ) -> None:
        """With a `plan`, units are those that leave for it, whether or not they are told so already."""
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._policy = policy
        self._now = now
        self._units: list[Unit] = []
        self._victims: dict[str, Victim] = {}
        self._obstacles: Counter[Obstacle] = Counter()
        self._until = float("inf")
        self._protected_until = 0.0
        self._leaving: list[Claim] = []
        self._by_gang: dict[GroupKey, list[Claim]] = {}
        self._nodes = cluster.node_changes
        self._plan = plan
        self._promised = frozenset[str]().union(*(each.leaving for each in cluster.ledger.reserved.values()))
        if plan is not None:
            self._promised -= plan.leaving
        self._steps = self._collect()

    def collect(self) -> Pool:
        """All units at once."""
        for _ in self._steps:
            pass
        return self._pool()

    def go_on(self, budget: Budget) -> Pool | None:
        """All units; None if the budget has ended before they were found."""
        for charge in self._steps:
            budget.charge(charge)
            if not budget:
                return None
        budget.charge(_INDEXED * len(self._cluster.ledger.claims))
        return self._pool()

    def _pool(self) -> Pool:
        removable = Removable(self._cluster, self._units)
        return Pool(
            removable,
            self._victims,
            self._leaving,
            self._obstacles,
            self._until,
            protected_until=self._protected_until,
            at=self._now,
            nodes=self._nodes,
        )

    def _collect(self) -> Iterator[int]:
        """Look at all pods; yields what each step has cost, in units of the budget."""
        ledger = self._cluster.ledger
        claims = [*ledger.claims.values()]
        if self._plan is not None:
            gangs = [
                self._members.gangs[key]
                for key in (*self._plan.whole, *self._plan.single)
                if key in self._members.gangs
            ]
            uids = dict.fromkeys([*self._plan.loose, *(uid for gang in gangs for uid in gang.observed.pods)])
            claims = [ledger.claims[uid] for uid in uids if uid in ledger.claims]
        for first in range(0, len(claims), _AT_ONCE):
            for claim in claims[first : first + _AT_ONCE]:
                self._look_at(claim)
            yield _LOOKED_AT * _AT_ONCE
        for key, several in self._by_gang.items():
            gang = self._members.gangs.get(key)
            if gang is not None:
                self._gang(gang, several)
                yield _OF_GANG * len(several)

    def _look_at(self, claim: Claim) -> None:
        pod = claim.pod
        gang = self._members.gang_of(pod.uid)
        if not claim.counts:
            return
        if pod.terminating:
            # Also one whose run is over already.
            if self._is_about_to_leave(pod):
                self._leaving.append(claim)
        elif gang is not None and pod.uid in gang.roster.past:
            return
        elif gang is not None:
            self._by_gang.setdefault(gang.key, []).append(claim)
        elif claim.kind is BOUND:
            self._single(claim)

    def _is_about_to_leave(self, pod: Pod) -> bool:
        end = pod.gone_by + OVERDUE_S if pod.gone_by else float("inf")
        if end > self._now:
            self._until = min(self._until, end)
        return end > self._now

    def _single(self, claim: Claim) -> None:
        """A pod without a group."""
        pod = claim.pod
        why = self._why_stays(pod) if self._is_free(claim) else Obstacle.IN_FLIGHT
        if self._stays(why, 1) or self._is_protected(pod.bound_at, 0, 1):
            return
        name, level = f"{pod.namespace}/{pod.name}/{pod.uid}", min(pod.priority, self._policy.max_priority)
        self._add(name, level, [claim], since=pod.bound_at, victim=Victim(None, frozenset((pod.uid,)), whole=False))

    def _is_free(self, claim: Claim) -> bool:
        """Whether the pod is bound, and is not to leave for an open plan: not all of these are told so yet."""
        return claim.kind is BOUND and claim.pod.uid not in self._promised

    def _gang(self, gang: Gang, several: Sequence[Claim]) -> None:
        claims = several
        if is_in_flight(gang) or gang.roster.leaving:
            claims = [each for each in several if not is_leaving(each, gang)]
            self._leaving += [each for each in several if is_leaving(each, gang)]
        if not claims:
            return
        assessment = self._assessments.get(gang.key)
        leaves = self._plan is not None and gang.key in self._plan.whole
        unclear = assessment is None or is_in_flight(gang, marked=leaves) or not assessment.terms.minimum_known
        if assessment is None or unclear or not all(map(self._is_free, claims)):
            self._stays(Obstacle.IN_FLIGHT, len(claims))
            return
        terms = assessment.terms
        since = gang.record.scheduled_at or min(each.pod.bound_at for each in claims)
        times = gang.record.preemptions - bool(gang.record.preempted_at)
        if self._is_protected(since, times, len(claims)):
            return
        kept, surplus = divided(gang, terms, claims)
        singles = []
        for claim in surplus:
            why = self._why_stays(claim.pod)
            name = f"{gang.key}/{claim.pod.name}/{claim.pod.uid}"
            if not self._stays(why, 1):
                victim = Victim(gang.key, frozenset((claim.pod.uid,)), whole=False)
                self._add(name, terms.priority, [claim], since=claim.pod.bound_at, victim=victim)
            singles.append((name, why))
        if not kept:
            return
        obstacles = [
            why for why in (*map(self._why_stays, (each.pod for each in kept)), *(w for _, w in singles)) if why
        ]
        if not obstacles:
            uids = frozenset(each.pod.uid for each in claims)
            along = tuple(name for name, _ in singles)
            victim = Victim(gang.key, uids, whole=True)
            self._add(str(gang.key), terms.priority, kept, since=since, victim=victim, along=along)
        else:
            self._stays(obstacles[0], len(kept))

    def _add(
        self,
        name: str,
        level: int,
        claims: Sequence[Claim],
        *,
        since: float,
        victim: Victim,
        along: tuple[str, ...] = (),
    ) -> None:
        draws: Counter[str] = Counter()
        for claim in claims:
            draws.update(self._draws(claim.pod))
        self._units.append(
            Unit(
                name,
                level,
                tuple(claims),
                tuple(map(self._lost_s, (each.pod for each in claims))),
                since,
                whole=victim.whole,
                along=along,
                draws=tuple(sorted(draws.items())),
            )
        )
        self._victims[name] = victim

    def _draws(self, pod: Pod) -> list[str]:
        """The budgets that count an eviction of the pod; they do not count one that is not ready."""
        budgets = self._cluster.budgets.of(pod) if pod.lifetime.ready else ()
        return [each.key for each in budgets]

    def _lost_s(self, pod: Pod) -> float:
        """The seconds of work that are lost with the pod, twofold if it is lost for good."""
        worked_s = max(LEAST_S, self._now - (pod.bound_at or self._now))
        return 2 * worked_s if self._is_lost_for_good(pod) else worked_s

    def _is_lost_for_good(self, pod: Pod) -> bool:
        """Whether no controller would create the pod again, or its Job would count a failure."""
        owner = pod.owner
        if owner is None:
            return True
        return (owner.kind, owner.api_group) == ("Job", "batch") and not is_patient(pod, self._members.foreign)

    def _why_stays(self, pod: Pod) -> Obstacle | None:
        """Why the pod may not leave, whatever its gang; None if it may."""
        owner = pod.owner
        if pod.scheduler not in self._policy.scheduler_names and not self._policy.preemption.all_victims:
            return Obstacle.SCHEDULER
        if self._policy.namespace not in ("", pod.namespace):
            return Obstacle.SCHEDULER
        if pod.priority >= CRITICAL or (owner is not None and owner.kind in ("Node", "DaemonSet")):
            return Obstacle.NODE
        if len(self._cluster.budgets.of(pod)) > 1:
            return Obstacle.BUDGETS
        if self._policy.preemption.spares_uncontrolled and self._is_lost_for_good(pod):
            return Obstacle.UNCONTROLLED
        return None

    def _is_protected(self, since: float, times: int, pods: int) -> bool:
        """Whether these pods have not run for as long as they are to be spared; twice as long for each preemption."""
        least_s = self._policy.preemption.min_runtime_s
        until = since + min(MOST_PROTECTED_S, least_s * 2 ** min(times, 20)) if least_s and since else 0.0
        if until <= self._now:
            return False
        self._until = min(self._until, until)
        self._protected_until = min(self._protected_until or until, until)
        return self._stays(Obstacle.PROTECTED, pods)

    def _stays(self, why: Obstacle | None, pods: int) -> bool:
        if why is not None:
            self._obstacles[why] += pods
        return why is not None
