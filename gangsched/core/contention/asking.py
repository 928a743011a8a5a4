"""What a group asks for, and on which snapshot: with it searches begin, and a plan is proven once more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.plans import Plans
from gangsched.core.contention.surplus import is_leaving
from gangsched.core.contention.units import Collector
from gangsched.core.contention.viewers import Viewers
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.gang.wants import as_a_whole
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.policy import Policy
from gangsched.core.planning import budget as units
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import fits
from gangsched.core.planning.refusal import Refusal


def refused(gang: Gang, assessment: Assessment) -> Refusal | None:
    """Why there is no room for what others may leave for; None if there is nothing, or it was not refused."""
    ask = as_a_whole(gang, assessment.terms, assessment.want)
    if ask is None or ask is assessment.want.quorum:
        return gang.wait.refusal if ask is not None else None
    return next(filter(None, (gang.wait.refused_members.get(pod.uid) for pod in ask.members)), None)


class Asking:
    """What groups ask for that others may leave for."""

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: Mapping[GroupKey, Assessment],
        plans: Plans,
        viewers: Viewers,
        *,
        avoidance: Avoidance,
        policy: Policy,
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._plans = plans
        self._viewers = viewers
        self._avoidance = avoidance
        self._policy = policy

    def of(self, gang: Gang, assessment: Assessment) -> Ask | None:
        """What others may leave for; None if there is nothing, or the group's pods fail wherever they are."""
        pause = self._avoidance.failures.closed(gang.key, gang.live())
        ask = as_a_whole(gang, assessment.terms, assessment.want)
        if ask is None or pause.everywhere:
            return None
        return replace(ask, start=None).avoiding(self._avoidance.by_all(), self._avoidance.by_gang(gang.key), pause)

    def collector(self, now: float, plan: Plan | None = None) -> Collector:
        """Collects all that may leave or, with a `plan`, those of it that still may."""
        return Collector(self._cluster, self._members, self._assessments, policy=self._policy, now=now, plan=plan)

    def snapshot(
        self, gang: Gang, assessment: Assessment, leaving: Iterable[Claim], budget: Budget
    ) -> tuple[Snapshot, Sequence[Claim]]:
        """The cluster as the group sees it, without pods that leave; and their claims.

        Those that leave a node for a group before it stay: what they leave is reserved.
        """
        budget.charge(units.CLASS + len(self._cluster.nodes))
        snapshot = Snapshot(self._cluster, budget=budget)
        viewer = self._viewers.of(gang.key, assessment)
        snapshot.stand_for(viewer)
        claims, promised = self._cluster.ledger.claims, set[str]()
        for key, reserved in self._cluster.ledger.reserved.items():
            if key not in viewer.hidden:
                nodes = {claim.node for claim in reserved.claims.values()}
                promised |= {uid for uid in reserved.leaving if uid in claims and claims[uid].node in nodes}
        gone = [each for each in leaving if each.pod.uid not in promised and claims.get(each.pod.uid) is each]
        snapshot.leave(gone)
        return snapshot, gone

    def proves(self, gang: Gang, plan: Plan, budget: Budget, now: float) -> bool:
        """Whether an open plan of the group is right still.

        All that leave for it may, it fits once they have, and not before more of them are told to.
        """
        assessment = self._assessments[gang.key]
        ask, pool = self.of(gang, assessment), self.collector(now, plan).collect()
        levels = {unit.name: unit.level for unit in pool.removable.units}
        claims = self._cluster.ledger.claims
        for name, uids in plan.units.items():
            there = [claims[uid] for uid in uids if uid in claims and claims[uid].counts]
            if (
                not all(is_leaving(claim, self._members.gang_of(claim.pod.uid)) for claim in there)
                and levels.get(name, assessment.terms.priority) >= assessment.terms.priority
            ):
                return False
        if ask is None or not {pod.uid for pod in ask.members} >= plan.members:
            return False
        left = self._plans.allowed()
        if not self._policy.preemption.exceeds_budgets and any(left[name] < 0 for name in self._plans.drawn(plan)):
            return False
        leaving = [claims[uid] for uid in plan.leaving if uid in claims]
        on_their_way = [claim for claim in leaving if claim.pod.terminating]
        snapshot, _ = self.snapshot(gang, assessment, on_their_way, budget)
        if fits(snapshot, ask):
            # Nobody more has to leave.
            return False
        snapshot, _ = self.snapshot(gang, assessment, leaving, budget)
        return fits(snapshot, ask)
