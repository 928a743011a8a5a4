"""What the condition of a native PodGroup should say, by its own pods in the gang that it declares or is a part of.

It is kept consistent by `core.phases`.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec import Struct, field
from msgspec.structs import replace

from gangsched.core.declarations.trees import TREE_KINDS
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup, GroupCondition
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.wording import shortened
from gangsched.core.status.conditions import NO_ROOM

LONGEST_MESSAGE = 1024
"""Longest message of a condition, in characters: quoted foreign text must not fill the object."""
ERRORS = frozenset(
    {
        Reason.INVALID_DECLARATION,
        Reason.CONTRADICTION,
        Reason.NOT_SUPPORTED,
        Reason.PRIORITY_CLASS_NOT_FOUND,
        Reason.STRATEGY_UNKNOWN,
        Reason.BINDING_REFUSED,
        Reason.BINDING_UNDONE,
    }
)
"""Reasons for which the condition says SchedulerError: the group was not tried, or trying it failed."""
REFUSALS = NO_ROOM | {Reason.VOLUME_NOT_READY, Reason.RESOURCE_CLAIM_NOT_READY}
"""Reasons for which the condition says Unschedulable: the group was tried and found no place."""


class Part(Struct):
    """The members of a gang that name one native group: how many are `bound`, and the first that is `waiting`.

    Members that have succeeded count as bound; `alive` are the others.
    """

    bound: int = 0
    waiting: Pod | None = None
    alive: list[Pod] = field(default_factory=list)

    @property
    def since(self) -> float:
        """When the last of them was bound, in full seconds by the API server's clock; 0.0 if there is none.

        The answer to a binding may come before the watch shows it.
        """
        return float(max((int(pod.bound_at or pod.created) for pod in self.alive), default=0))


def condition_of(
    gang: Gang,
    assessment: Assessment,
    group: ForeignGroup,
    generation: int,
    told: GroupCondition | None,
    parts: dict[GroupKey, dict[str, Part]],
) -> GroupCondition | None:
    """The condition that kube-scheduler would write for this generation; None before anything is decided about it.

    It is scheduled once the gang is and its own minCount is bound. Once True was `told`, as much must be bound as it
    had then. In a scheduled gang the other groups wait, and are refused as their pods are. `parts` keeps what was found
    out of each gang, by the native group that the pods name.
    """
    if not gang.record.scheduled_at:
        return _refusal(gang.written.reason, gang.written.message, generation)
    if gang.key not in parts:
        parts[gang.key] = _parts(gang, assessment)
    part = parts[gang.key].get(group.key.name, Part())
    if group.spec is not None:
        least = group.spec.min_member
        if told is None and part.bound >= least:
            return GroupCondition(scheduled=True, reason="Scheduled", generation=generation, since=part.since)
        had = min(least, dict(gang.record.satisfied.roles).get(group.key.name, gang.record.minimum))
        if told is not None and part.bound >= had:
            is_alone = max(assessment.terms.spec.minimum, gang.record.minimum) <= 1
            since = told.since if is_alone or _tells_of(told, part, had) else part.since
            return replace(told, generation=generation if part.bound >= least else told.generation, since=since)
    if part.waiting is None:
        return None
    return _refusal(part.waiting.condition_reason, part.waiting.condition_message, generation)


def _tells_of(told: GroupCondition, part: Part, had: int) -> bool:
    """Whether the condition is of a time at which half of the members that it had lived already.

    Once none of them does, a new leader cannot tell a group that was whole from one of which half was just bound.
    """
    return not told.since or not part.alive or 2 * sum(map(told.knew, part.alive)) >= had


def named_by(gang: Gang) -> frozenset[GroupKey]:
    """The native groups that the gang's pods name."""
    objects = gang.observed.traits.objects
    if objects is not None and not any(dialect in TREE_KINDS for dialect, _ in objects):
        return frozenset()
    names = set(map(_native_group, gang.observed.pods.values()))
    return frozenset(GroupKey(gang.key.namespace, name, NATIVE) for name in names if name)


def _parts(gang: Gang, assessment: Assessment) -> dict[str, Part]:
    """The gang's members of this run, by the native group that they name."""
    parts: defaultdict[str, Part] = defaultdict(Part)
    ended = (pod for uid, pod in gang.observed.pods.items() if uid not in gang.roster.past)
    done = (pod for pod in ended if pod.phase is PodPhase.SUCCEEDED)
    for pod in done:
        parts[_native_group(pod)].bound += 1
    for pod in assessment.census.bound:
        part = parts[_native_group(pod)]
        part.bound += 1
        part.alive.append(pod)
    for pod in assessment.census.waiting:
        part = parts[_native_group(pod)]
        part.waiting = part.waiting or pod
    return parts


def _native_group(pod: Pod) -> str:
    return pod.declaration.native_group if pod.declaration is not None else ""


def _refusal(why: str, message: str, generation: int) -> GroupCondition | None:
    """The condition of a group that was not scheduled for this reason; None if nothing was decided about it yet."""
    if why not in REFUSALS | ERRORS:
        return None
    text = shortened(message, LONGEST_MESSAGE)
    reason = "SchedulerError" if why in ERRORS else "Unschedulable"
    return GroupCondition(scheduled=False, reason=reason, message=text, generation=generation)
