"""Why a group waits and what would help, as values, and how much of that a status alone says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gangsched.api.conversion import SCHEDULER
from gangsched.core.contention.prospects import Prospect
from gangsched.core.membership.installations import Elsewhere
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.expected_start import ExpectedStart
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.status import Demand, Fitting
from gangsched.core.planning.refusal import Gap
from gangsched.views.nodegroups import NodeGroup
from gangsched.views.resource_names import resource_of


@dataclass(frozen=True, slots=True)
class PodShares:
    """Pods that hold a resource: their names as NAMESPACE/NAME, and the `amount` of all."""

    names: Sequence[str] = ()
    amount: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Why members do not fit: `wanted` members must fit together, and `fits` of them do, on a cluster of `nodes` nodes.

    `lacks` is the total shortage by resource. `held` are the holders of `resource`, the scarcest one, on nodes that
    accept the members, the largest first. `ahead` are the waiting groups that are tried earlier. `gaps` say what
    refuses the other members. `groups` are groups of nodes: where members fit, and what refuses those of the first gap.
    `kept_for` are the pods that another scheduler has nominated and for which room is kept, `stuck` the pods that
    should long be gone.
    """

    wanted: int
    fits: int
    nodes: int
    lacks: Sequence[tuple[str, int]]
    gaps: Sequence[Gap]
    resource: str
    held: Sequence[tuple[GroupKey, int]]
    ahead: Sequence[GroupKey]
    groups: Sequence[NodeGroup]
    kept_for: PodShares = PodShares()
    stuck: PodShares = PodShares()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The state of a group and its cause. `besides` says why other members wait; `helps` lists remedies.

    The `minimum` is 0 if it is unknown.
    `source` says how the group was declared; empty for a pod without a group. `demand` is what new nodes must provide.
    `preemption` is the group's plan, or why it has none; None if it does not wait for room that others could leave.
    `starts` is when it will probably start; None as well if that was not asked. It is `aged` by its waiting to the
    priority `place`; 0 if it is not.
    `since` and `fitting` come from a status alone: when the group began to wait or was scheduled (0.0 if unknown), and
    where members fit, which a `shortfall` says in more detail.
    """

    key: GroupKey
    phase: str
    reason: str
    message: str
    minimum: int
    members: int
    bound: int
    source: str = ""
    besides: Sequence[str] = ()
    shortfall: Shortfall | None = None
    helps: Sequence[str] = ()
    demand: Sequence[Demand] = ()
    since: float = 0.0
    fitting: Sequence[Fitting] = ()
    preemption: Prospect | None = None
    starts: ExpectedStart | None = None
    place: int = 0
    aged: int = 0

    @property
    def resource(self) -> str:
        """The kind of the object that declares the group, as kubectl writes it."""
        return resource_of(self.key, self.source)


def from_status(group: Group) -> Diagnosis:
    """The diagnosis from the status that the operator last wrote."""
    status = group.status
    telling = status.telling
    raised = [condition.message for condition in status.conditions if condition.reason == Reason.MINIMUM_RAISED]
    return Diagnosis(
        key=group.key,
        phase=status.phase,
        reason=telling.reason if telling else "",
        message=telling.message if telling else "It has no status yet: check that the operator runs.",
        minimum=group.spec.minimum if group.spec else 0,
        members=status.members,
        bound=status.bound,
        source=status.source,
        besides=raised,
        demand=status.demand,
        helps=status.helps,
        starts=status.expected,
        since=telling.since if telling else 0.0,
        fitting=status.fitting,
    )


def from_elsewhere(elsewhere: Elsewhere, policy: Policy) -> Diagnosis:
    """The diagnosis of a group of another installation: which one, and why; the rest is taken from the status."""
    group, ours = elsewhere.group, policy.scheduler_names[0]
    carrying = sum(pod.scheduler == elsewhere.owner for pod in elsewhere.pods)
    if carrying:
        pods = "1 pod that names it has" if carrying == 1 else f"{carrying} pods that name it have"
        why = f"{pods} this schedulerName"
        remedy = f"pods with schedulerName: {ours}"
    elif group is not None and group.scheduler:
        why, remedy = f"its annotation {SCHEDULER} says so", f"the annotation {SCHEDULER}: {ours}"
    elif group is not None and group.status.scheduler:
        why, remedy = "its last members had this schedulerName", f"the annotation {SCHEDULER}: {ours}"
    else:
        why = f"no pod names it, and it has no annotation {SCHEDULER}"
        remedy = f"the annotation {SCHEDULER}: {ours}, or pods with this schedulerName"
    status = from_status(group) if group is not None else None
    message = status.message if status is not None and status.reason else ""
    return Diagnosis(
        key=elsewhere.key,
        phase=status.phase if status is not None else "",
        reason=status.reason if status is not None else "",
        message=(
            f"The group belongs to the installation of gangsched that serves the schedulerName {elsewhere.owner}, "
            f"because {why}. {message}"
        ).rstrip(),
        minimum=status.minimum if status is not None else 0,
        members=status.members if status is not None else 0,
        bound=status.bound if status is not None else 0,
        source=status.source if status is not None else "",
        helps=(
            f"asking with --scheduler-name {elsewhere.owner}, if such an installation runs",
            f"{remedy}, if it should be scheduled by {ours}",
        ),
    )
