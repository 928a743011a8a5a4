"""What preemption means for one group, for people: its open plan, or who stands in the way of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from gangsched.core.cluster.cache import Cluster
from gangsched.core.contention.asking import Asking, refused
from gangsched.core.contention.bars import Bar, bar_of
from gangsched.core.contention.plans import Plans
from gangsched.core.contention.pool import Obstacle, Pool
from gangsched.core.contention.searching import Searching
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClasses
from gangsched.core.planning.after import After, NoWay


class OpenPlan(NamedTuple):
    """A plan: so many `pods` leave, of so many `groups`. Times are in epoch seconds; `since` is 0.0 if unknown."""

    pods: int
    groups: int
    since: float
    expires: float


class Prospect(NamedTuple):
    """The open `plan` of a group or, without one, why it has none.

    A `bar` forbids all plans. From `due` on one may be opened (epoch seconds, 0.0: at any time); `pods` of `groups`
    would leave then. With `fits` nobody would, because the group fits once the pods that terminate are gone. Otherwise
    `obstacles` say how many pods may not leave, by why, some of them until `protected_until` (epoch seconds, 0.0
    without any); `exhausted`: not every way was tried.
    """

    plan: OpenPlan | None = None
    bar: Bar | None = None
    due: float = 0.0
    pods: int = 0
    groups: int = 0
    fits: bool = False
    obstacles: Mapping[Obstacle, int] = {}
    protected_until: float = 0.0
    exhausted: bool = False


class Prospects:
    """Answers questions about single groups. Nothing is changed, and a question costs a whole search."""

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        plans: Plans,
        searching: Searching,
        *,
        asking: Asking,
        policy: Policy,
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._plans = plans
        self._searching = searching
        self._asking = asking
        self._policy = policy

    def of(self, gang: Gang, assessment: Assessment, classes: PriorityClasses, now: float) -> Prospect | None:
        """The prospect of the group; None if it does not wait for room, or nobody is there who could leave."""
        plan, refusal = gang.operations.plan, refused(gang, assessment)
        if plan is not None and plan.start is None:
            return Prospect(plan=self._opened(plan))
        if refusal is None or refusal.never or refusal.paused:
            return None
        bar = bar_of(gang, assessment, classes, self._policy)
        if bar is not None:
            return Prospect(bar=bar)
        pool = self._searching.pool()
        result = self._asking.searched(gang, pool, now)
        if not (pool.victims or pool.about_to_go(now) or pool.obstacles):
            return None
        due = self._searching.due(gang)
        due = due if due > now else 0.0
        if isinstance(result, After):
            victims = [pool.victims[unit.name] for unit in result.leaving]
            groups = {victim.gang for victim in victims if victim.gang is not None}
            pods = frozenset[str]().union(*(victim.uids for victim in victims))
            return Prospect(due=due, pods=len(pods), groups=len(groups), fits=not pods)
        return Prospect(
            due=due,
            obstacles=self._obstacles(pool, gang.key, assessment.terms.priority, now),
            protected_until=until if (until := pool.protected_until(now)) < float("inf") else 0.0,
            exhausted=isinstance(result, NoWay) and result.exhausted,
        )

    def _opened(self, plan: Plan) -> OpenPlan:
        if not plan.former:
            return OpenPlan(
                len(plan.leaving - plan.held), len({*plan.whole, *plan.single}), plan.opened_at, plan.expires
            )
        # Who leaves for it is seen from the marks of groups, and from the pods that terminate on its nodes.
        marked, terminating = dict[GroupKey, float](), set[str]()
        for node in {node for _, node in plan.places}:
            for uid in self._cluster.on_node.get(node, ()):
                gang = self._members.gang_of(uid)
                if gang is not None and gang.record.preempted_at:
                    marked[gang.key] = gang.record.preempted_at
                elif self._cluster.pods[uid].terminating:
                    terminating.add(uid)
        whole = {uid for key in marked for uid, pod in self._members.gangs[key].observed.pods.items() if pod.node}
        return OpenPlan(len(whole | terminating), len(marked), min(marked.values(), default=0.0), plan.expires)

    def _obstacles(self, pool: Pool, key: GroupKey, priority: int, now: float) -> Mapping[Obstacle, int]:
        """Why pods may not leave for this group, which has this priority."""
        obstacles = Counter(pool.obstacles)
        allowed = self._plans.allowed()
        passed = self._plans.pace.passed(now, key)
        for unit in pool.removable.units:
            if unit.protected > now:
                why = Obstacle.PROTECTED
            elif unit.level >= priority:
                why = Obstacle.PRIORITY
            elif unit.name in passed:
                why = Obstacle.REFUSED
            elif any(allowed.get(budget, 0) < number for budget, number in unit.draws):
                why = Obstacle.BUDGET
            else:
                continue
            obstacles[why] += len(unit.claims)
        return {why: number for why, number in obstacles.items() if number}
