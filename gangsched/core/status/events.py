"""Events on a gang and on pods that name it, each emitted once."""

from __future__ import annotations

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.objects.effects import Effect, EmitEvent
from gangsched.core.objects.pod import Pod, member_order
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.wording import number_of
from gangsched.core.status.conditions import NO_ROOM, QUIET_REASONS, refused_reason

FIELDS_SHOWN = 5
"""The number of fields that an Event about fields that are not honoured names."""
NODES_SHOWN = 30
"""The number of nodes that the Scheduled Event names; an Event's note holds 1,024 characters."""


def emit(gang: Gang, assessment: Assessment, reason: Reason, note: str) -> list[Effect]:
    """The Event on the PodGroup, else on the oldest member; none if there is neither."""
    oldest = min(assessment.census.live, key=member_order, default=None)
    if gang.observed.group is not None:
        kind, name, uid = "PodGroup", gang.key.name, gang.observed.group.uid
    elif oldest is not None:
        kind, name, uid = "Pod", oldest.name, oldest.uid
    else:
        return []
    severity = "Normal" if reason in QUIET_REASONS else "Warning"
    return [EmitEvent(kind, gang.key.namespace, name, uid, severity, reason, "Scheduling", note)]


def events_of(gang: Gang, assessment: Assessment, reason: Reason, message: str, *, scheduler: str) -> list[Effect]:
    """The Events that are due: about the gang's condition, pods of other schedulers, further owners and ignored groups.

    `scheduler` is the schedulerName that a pod of another scheduler should have.
    """
    effects = _on_condition(gang, assessment, reason, message)
    for pod in _new_foreign_pods(gang):
        gang.written.foreign_pod_reported(pod.uid)
        note = (
            f"The pod names the group {gang.key.name}, but its schedulerName is {pod.scheduler}: it is not a "
            f"member. Set schedulerName to {scheduler} or remove the label."
        )
        about = ("Pod", pod.namespace, pod.name, pod.uid)
        effects.append(EmitEvent(*about, "Warning", Reason.FOREIGN_MEMBER, "Scheduling", note))
    # Once for the same owners, until all members are gone.
    if not assessment.census.live:
        gang.written.named_owners = frozenset()
    if _has_new_owners(gang):
        gang.written.named_owners |= gang.observed.ownership.owners.keys()
        effects += emit(gang, assessment, Reason.SEVERAL_OWNERS, gang.observed.ownership.described(gang.key.name))
    passed_over = _passed_over(gang)
    if passed_over:
        gang.written.ignored_group_reported(passed_over)
        note = (
            f"The pods also name the PodGroup {passed_over} of scheduling.k8s.io, such as the Job controller creates. "
            f"It is ignored because of their label for the group {gang.key.name}: remove that label to use it."
        )
        effects += emit(gang, assessment, Reason.NATIVE_GROUP_IGNORED, note)
    return effects + _on_fields(gang, assessment)


def has_news(gang: Gang, assessment: Assessment) -> bool:
    """Whether an Event is due about a pod of another scheduler, a further owner, an ignored group or ignored fields."""
    of_pods = bool(_new_foreign_pods(gang)) or _has_new_owners(gang) or bool(_passed_over(gang))
    return of_pods or _has_new_fields(gang, assessment)


def _has_new_fields(gang: Gang, assessment: Assessment) -> bool:
    """Whether the fields that are not honoured are others than those of which the last Event said so."""
    terms = assessment.terms
    return terms.workload is not None and bool(assessment.census.live) and terms.ignored != gang.written.fields


def _on_fields(gang: Gang, assessment: Assessment) -> list[Effect]:
    """The Event about fields of the workload that are not honoured, once for the same fields."""
    if not _has_new_fields(gang, assessment) or (workload := assessment.terms.workload) is None:
        return []
    fields = assessment.terms.ignored
    gang.written.fields = fields
    if not fields:
        return []
    shown = ", ".join(fields[:FIELDS_SHOWN]) + (", …" if len(fields) > FIELDS_SHOWN else "")
    note = (
        f"The {workload.kind} {workload.name} has fields that this version of gangsched does not honour: {shown}. Its "
        "pods are scheduled as if it did not have them; remove them if that is meant."
    )
    return emit(gang, assessment, Reason.FIELDS_IGNORED, note)


def _passed_over(gang: Gang) -> str:
    """The native group that the pods also name, if no Event says so yet; all pods of a gang name the same one."""
    first = next(iter(gang.observed.pods.values()), None)
    said = first.declaration.passed_over if first is not None and first.declaration is not None else ""
    return said if said != gang.written.passed_over else ""


def _new_foreign_pods(gang: Gang) -> list[Pod]:
    """Pods of other schedulers that name the group and have no Event yet that says so."""
    return [pod for uid, pod in gang.observed.foreign_pods.items() if uid not in gang.written.foreign_pods]


def _has_new_owners(gang: Gang) -> bool:
    """Whether the gang has a further owner that no Event has named yet."""
    return not gang.observed.ownership.owners.keys() <= gang.written.named_owners


def _on_condition(gang: Gang, assessment: Assessment, reason: Reason, message: str) -> list[Effect]:
    written = gang.written
    hindrance = assessment.terms.hindrance
    if gang.record.scheduled_at and hindrance is not None and assessment.census.waiting:
        if hindrance.reason == written.hindered or _is_heard(assessment, hindrance.reason):
            return []
        written.hindered = hindrance.reason
        return emit(gang, assessment, hindrance.reason, hindrance.message)
    written.hindered = ""
    if reason == written.event or reason in (Reason.BINDING, Reason.PLACES_HELD, Reason.NO_MEMBERS):
        return []
    if reason is Reason.GANG_INCOMPLETE and not assessment.census.live:
        return []
    refused = reason in NO_ROOM - {Reason.TIMED_OUT}
    if refused and gang.attempt.refusal is None:
        return []
    before = written.event_emitted(reason)
    if (refused or reason is Reason.NOT_ITS_TURN) and before == Reason.TIMED_OUT:
        return []
    members = refused_reason(gang.attempt.refusal) if refused and gang.attempt.refusal is not None else reason
    if gang.observed.group is None and not before and _is_heard(assessment, members):
        return []
    note = _scheduled_note(gang, assessment) if reason is Reason.SCHEDULED else message
    return emit(gang, assessment, reason, note)


def _is_heard(assessment: Assessment, reason: Reason) -> bool:
    """Whether the conditions of waiting members have this reason already: it was written before a restart."""
    return any(pod.condition_reason == reason for pod in assessment.census.waiting)


def _scheduled_note(gang: Gang, assessment: Assessment) -> str:
    """The note of the Scheduled Event, which names the nodes."""
    nodes: dict[str, int] = {}
    for pod in assessment.census.bound:
        node = pod.node or gang.operations.bindings[pod.uid].node
        nodes[node] = nodes.get(node, 0) + 1
    shown = ", ".join(f"{node} ({count})" for node, count in sorted(nodes.items())[:NODES_SHOWN])
    more = f" and {number_of(len(nodes) - NODES_SHOWN, 'more node')}" if len(nodes) > NODES_SHOWN else ""
    return f"Bound {number_of(len(assessment.census.bound), 'member')} to {shown}{more}."
