"""What the condition of a native PodGroup should say, by its own pods in the gang that it declares or is a part of.

It is kept consistent by `core.phases`.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from gangsched.core.declarations.trees import TREE_KINDS
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.pod import Pod, PodPhase, by_age
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


class Parts(Struct):
    """A gang's members by the native group that they name: how many are `bound`, and the first that is `waiting`.

    `oldest` is the oldest bound member that lives, `since` when the last of them was bound.
    """

    bound: Counter[str] = field(default_factory=Counter)
    waiting: dict[str, Pod] = field(default_factory=dict)
    oldest: dict[str, Pod] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)


def condition_of(
    gang: Gang,
    assessment: Assessment,
    group: ForeignGroup,
    generation: int,
    told: GroupCondition | None,
    parts: dict[GroupKey, Parts],
) -> GroupCondition | None:
    """The condition that kube-scheduler would write for this generation; None before anything is decided about it.

    It is scheduled once the gang is and its own minCount is bound, with the time that it has in `told`, what was
    written before, if a bound member is that old; one member alone is never bound in part. In a scheduled gang the
    other groups wait, and are refused as their pods are. `parts` keeps what was found out of each gang.
    """
    if not gang.record.scheduled_at:
        return _refusal(gang.written.reason, gang.written.message, generation)
    if gang.key not in parts:
        parts[gang.key] = _parts(gang, assessment)
    found, name = parts[gang.key], group.key.name
    if group.spec is not None and found.bound[name] >= group.spec.min_member:
        oldest = found.oldest.get(name) if group.spec.min_member > 1 else None
        if told is None or not told.scheduled or (oldest is not None and not told.knew(oldest)):
            since = float(found.since.get(name, 0))
        else:
            since = told.since
        return GroupCondition(scheduled=True, reason="Scheduled", generation=generation, since=since)
    waiting = found.waiting.get(name)
    if waiting is None:
        return None
    return _refusal(waiting.condition_reason, waiting.condition_message, generation)


def named_by(gang: Gang) -> frozenset[GroupKey]:
    """The native groups that the gang's pods name."""
    objects = gang.observed.traits.objects
    if objects is not None and not any(dialect in TREE_KINDS for dialect, _ in objects):
        return frozenset()
    names = set(map(_native_group, gang.observed.pods.values()))
    return frozenset(GroupKey(gang.key.namespace, name, NATIVE) for name in names if name)


def _parts(gang: Gang, assessment: Assessment) -> Parts:
    """The gang's members of this run, by the native group that they name; those that have succeeded were bound."""
    found = Parts()
    ended = (pod for uid, pod in gang.observed.pods.items() if uid not in gang.roster.past)
    done = (pod for pod in ended if pod.phase is PodPhase.SUCCEEDED)
    for pod in (*assessment.census.bound, *done):
        found.bound[_native_group(pod)] += 1
    for pod in assessment.census.bound:
        name = _native_group(pod)
        found.oldest[name] = min(found.oldest.get(name, pod), pod, key=by_age)
        found.since[name] = max(found.since.get(name, 0), int(pod.bound_at))
    for pod in assessment.census.waiting:
        found.waiting.setdefault(_native_group(pod), pod)
    return found


def _native_group(pod: Pod) -> str:
    return pod.declaration.native_group if pod.declaration is not None else ""


def _refusal(why: str, message: str, generation: int) -> GroupCondition | None:
    """The condition of a group that was not scheduled for this reason; None if nothing was decided about it yet."""
    if why not in REFUSALS | ERRORS:
        return None
    text = shortened(message, LONGEST_MESSAGE)
    reason = "SchedulerError" if why in ERRORS else "Unschedulable"
    return GroupCondition(scheduled=False, reason=reason, message=text, generation=generation)
