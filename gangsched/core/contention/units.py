"""Which pods of a gang may leave for a group, and what leaves together; likewise for a pod without a gang.

A unit is a member above its gang's minimum, a pod without a group, or all live members of a gang. Some pods are in no
unit: those of other schedulers, those that belong to their node or to a DaemonSet, those of system-critical priority,
those under more than one PodDisruptionBudget, which the Eviction API refuses to evict, and gangs whose bindings are on
their way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import BOUND, Claim
from gangsched.core.contention.pool import Obstacle, Victim
from gangsched.core.contention.surplus import divided, is_held, is_in_flight, leaving_of
from gangsched.core.declarations.automatic import is_patient
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.planning.unit_table import Unit

CRITICAL = 2_000_000_000
"""Pods of at least this priority are system-critical in Kubernetes: they are never evicted."""
UNDECLARED_S = 60.0
"""A gang is protected for so many seconds once its PodGroup is missing, because that may be replaced just now."""
MOST_PROTECTED_S = 3600.0
"""Longest time in seconds for which a group is protected after it was scheduled."""


class Share(Struct, frozen=True, gc=False):
    """What a gang, or a pod without one, has that may leave, and how many of its pods may not, by why.

    Those `leaving` leave in any case, though they do not terminate yet. It does not depend on the time:
    `Unit.protected` says from when on a unit may leave.
    """

    units: tuple[Unit, ...] = ()
    victims: tuple[Victim, ...] = ()
    obstacles: tuple[tuple[Obstacle, int], ...] = ()
    leaving: tuple[Claim, ...] = ()


class Shares:
    """Finds the share of a gang or pod. It reads the present state, and changes nothing."""

    def __init__(
        self, cluster: Cluster, assessments: Mapping[GroupKey, Assessment], policy: Policy, foreign: Foreign
    ) -> None:
        self._cluster = cluster
        self._assessments = assessments
        self._policy = policy
        self._foreign = foreign

    def of_pod(self, claim: Claim, promised: Collection[str]) -> Share:
        """The share of a pod without a gang. Those `promised` (by UID) leave for an open plan."""
        pod = claim.pod
        if claim.kind is not BOUND:
            return Share()
        why = self._why_stays(pod) if pod.uid not in promised else Obstacle.IN_FLIGHT
        if why is not None:
            return Share(obstacles=((why, 1),))
        level = min(pod.priority, self._policy.max_priority)
        unit = self._unit(name_of(pod), level, [claim], since=pod.bound_at, protected=self._protected(pod.bound_at, 0))
        return Share((unit,), (Victim(None, frozenset((pod.uid,)), whole=False),))

    def of_gang(self, gang: Gang, claims: Sequence[Claim], promised: Collection[str], *, leaves: bool = False) -> Share:
        """The share of a gang with these claims, not all of which are there when it `leaves` as a whole."""
        assessment = self._assessments.get(gang.key)
        claims, leaving = sorted(claims, key=lambda claim: claim.pod.uid), list[Claim]()
        if is_in_flight(gang) or gang.roster.leaving:
            leaving = leaving_of(claims, gang)
            gone = {claim.pod.uid for claim in leaving}
            claims = [claim for claim in claims if claim.pod.uid not in gone]
        past = gang.roster.past
        claims = [claim for claim in claims if claim.pod.uid not in past] if past else claims
        if not claims:
            return Share(leaving=tuple(leaving))
        unclear = assessment is None or is_in_flight(gang, marked=leaves) or assessment.terms.unseen
        held = [claim for claim in claims if claim.kind is not BOUND and is_held(claim, gang)]
        claims = [claim for claim in claims if claim not in held] if held else claims
        free = all(claim.kind is BOUND and claim.pod.uid not in promised for claim in claims)
        if assessment is None or unclear or not free or not claims:
            return Share(obstacles=((Obstacle.IN_FLIGHT, len(claims) + len(held)),), leaving=tuple(leaving))
        level = assessment.terms.priority
        since = gang.record.scheduled_at or min(claim.pod.bound_at for claim in claims)
        protected = self._protected(since, gang.record.preemptions - bool(gang.record.preempted_at))
        if gang.operations.undeclared_since:
            protected = max(protected, gang.operations.undeclared_since + UNDECLARED_S)
        kept, surplus = divided(gang, assessment.terms, claims)
        units, victims, obstacles, names = list[Unit](), list[Victim](), Counter[Obstacle](), list[str]()
        for claim in surplus:
            names.append(f"{gang.key}/{claim.pod.name}/{claim.pod.uid}")
            why = self._why_stays(claim.pod)
            if why is None:
                units.append(self._unit(names[-1], level, [claim], since=claim.pod.bound_at, protected=protected))
                victims.append(Victim(gang.key, frozenset((claim.pod.uid,)), whole=False))
            else:
                obstacles[why] += 1
        why = next(filter(None, (self._why_stays(claim.pod) for claim in (*kept, *surplus))), None)
        if kept and why is not None:
            obstacles[why] += len(kept)
        elif kept:
            along = tuple(names)
            # What it holds for members that are not bound is given up as soon as it leaves.
            taken = [*kept, *held]
            whole = self._unit(str(gang.key), level, taken, since=since, protected=protected, whole=True, along=along)
            units.append(whole)
            uids, beside = (frozenset(claim.pod.uid for claim in those) for those in (claims, held))
            victims.append(Victim(gang.key, uids, whole=True, held=beside))
        return Share(tuple(units), tuple(victims), tuple(sorted(obstacles.items())), tuple(leaving))

    def _unit(
        self,
        name: str,
        level: int,
        claims: Sequence[Claim],
        *,
        since: float,
        protected: float,
        whole: bool = False,
        along: tuple[str, ...] = (),
    ) -> Unit:
        budgets = self._cluster.budgets
        drawn = [budget.key for claim in claims for budget in budgets.drawn_by(claim.pod)] if budgets.allowed else ()
        return Unit(
            name,
            level,
            tuple(claims),
            tuple([claim.pod.bound_at or float("inf") for claim in claims]),
            since,
            weights=tuple([1 + self._is_lost_for_good(claim.pod) for claim in claims]),
            whole=whole,
            along=along,
            draws=tuple(sorted(Counter(drawn).items())) if drawn else (),
            protected=protected,
        )

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

    def _is_lost_for_good(self, pod: Pod) -> bool:
        """Whether no controller would create the pod again, or its Job would count a failure: its work counts twice."""
        owner = pod.owner
        if owner is None:
            return True
        return (owner.kind, owner.api_group) == ("Job", "batch") and not is_patient(pod, self._foreign)

    def _protected(self, since: float, times: int) -> float:
        """Until when who has run since then is spared, in epoch seconds; twice as long for each preemption."""
        least_s = self._policy.preemption.min_runtime_s
        return since + min(MOST_PROTECTED_S, least_s * 2 ** min(times, 20)) if least_s and since else 0.0


def name_of(pod: Pod) -> str:
    """The name of the unit that a pod without a gang is."""
    return f"{pod.namespace}/{pod.name}/{pod.uid}"
