"""Events on a gang and on pods that name it, each emitted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gangsched.core.declarations.trees import TREE_KINDS
from gangsched.core.gang import preempted
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect, EmitEvent
from gangsched.core.objects.pod import Pod, by_age
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Phase
from gangsched.core.objects.wording import number_of
from gangsched.core.status.conditions import NAMES_SHOWN, NO_ROOM, QUIET_REASONS, refused_reason
from gangsched.core.status.degraded import degraded_message, degraded_reason
from gangsched.core.status.plan_sentences import reserved_later, waits_for_victims

NODES_SHOWN = 30
"""The number of nodes that the Scheduled Event names; an Event's note holds 1,024 characters."""
_NORMAL = QUIET_REASONS | {
    Reason.WAITS_FOR_VICTIMS,
    Reason.PREEMPTED,
    Reason.RESERVED_LATER,
    Reason.RESERVATION_MOVED,
    Reason.BACKFILLED,
}
NAMED = 8
"""The number of fields, or of domains, that one Event names."""


def emit(gang: Gang, assessment: Assessment, reason: Reason, note: str) -> list[Effect]:
    """The Event on the PodGroup, else on the oldest member, or one that leaves; none without them."""
    members = assessment.census.live or (gang.observed.pods.values() if reason is Reason.PREEMPTED else ())
    oldest = min(members, key=by_age, default=None)
    if gang.observed.group is not None:
        kind, name, uid = "PodGroup", gang.key.name, gang.observed.group.uid
    elif oldest is not None:
        kind, name, uid = "Pod", oldest.name, oldest.uid
    else:
        return []
    severity = "Normal" if reason in _NORMAL else "Warning"
    return [EmitEvent(kind, gang.key.namespace, name, uid, severity, reason, "Scheduling", note)]


def _is_newly_preempted(gang: Gang) -> bool:
    """Whether no Event has said yet that all members leave; none does before it is certain."""
    return gang.record.preemptions > gang.written.preemptions and not preempted.is_awaited(gang)


def on_plan_lost(gang: Gang, assessment: Assessment, why: str) -> list[Effect]:
    """The Event on a group whose plan has come to nothing.

    The API server has said `why` it refuses to evict one of those that were to leave or, if that is empty, another has
    taken the room that they left.
    """
    if not why:
        note = "Pods have left for this group, but another scheduler has taken their room: it is planned again later."
        return emit(gang, assessment, Reason.ROOM_LOST, note)
    note = f"The API server refuses to evict a pod that was to leave for this group, so others are looked for: {why}"
    return emit(gang, assessment, Reason.PREEMPTION_REFUSED, note)


_WHY_MOVED = {
    "Moved": "it starts earlier than it would have",
    "NodeLost": "a node is gone that it had, or accepts its members no longer",
    "Overtaken": "a group before it in the order, or another scheduler, has taken some of them",
    "RoomLost": "another scheduler has taken some of them",
    "Expired": "some pods there have not ended in time",
    "Unkept": "a pod there has lasted longer than declared, and may not be evicted",
    "Refused": "a pod there has not ended in time, and cannot be evicted",
    "Changed": "it asks for something else now, or less has to end than was thought",
    "Yielded": "a group before it in the order had reserved nodes that it needs",
}


def on_moved(gang: Gang, assessment: Assessment, ending: str) -> list[Effect]:
    """The Event on a group that has other places reserved for later than before, whose last plan had this ending."""
    why = _WHY_MOVED.get(ending, "what it had is gone")
    return emit(gang, assessment, Reason.RESERVATION_MOVED, f"{reserved_later(gang)} These are new places: {why}.")


def on_backfilled(gang: Gang, assessment: Assessment) -> list[Effect]:
    """The Event on a group that uses nodes until another group needs them."""
    note = (
        "Members use nodes that are reserved for another group later, because they will have ended before: by "
        "activeDeadlineSeconds or by the declared run time. If they last longer, the whole group may be evicted."
    )
    return emit(gang, assessment, Reason.BACKFILLED, note)


def on_divided(gang: Gang, assessment: Assessment, divided: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[Effect]:
    """The Events on a group that gets a further member though others are in several domains of these node labels."""
    told = gang.written.divided
    gang.written.divided = frozenset(divided)
    for key, domains in dict.fromkeys(divided):
        if (key, domains) not in told:
            note = (
                f"Members must be in one domain of the node label {key} and are in {len(domains)} ({_some(domains)}), "
                "because others have bound some, a node's label was changed, or the group requires it only since then; "
                "further members go where most are. Correct the label, or delete the members outside that domain: once "
                "created again, they are bound there."
            )
            yield from emit(gang, assessment, Reason.TOPOLOGY_BROKEN, note)


def on_preempted(pod: Pod, holder: GroupKey, *, overdue: bool) -> EmitEvent:
    """The Event on a pod that leaves for this group without the rest of its own, or that has none."""
    note = preempted_note(GroupKey(pod.namespace, ""), holder, overdue=overdue)
    return EmitEvent("Pod", pod.namespace, pod.name, pod.uid, "Normal", Reason.PREEMPTED, "Preempting", note)


def preempted_note(key: GroupKey, holder: GroupKey | None, *, overdue: bool = False) -> str:
    """Why these leave, such as because they are `overdue`; a group of another namespace is not named."""
    whom = f"the group {holder.name}" if holder is not None and holder.namespace == key.namespace else "a group"
    evicted = "All members are evicted together" if key.name else "The pod is evicted"
    if overdue:
        return f"{evicted}, because the declared run time is over and {whom} has waited for long for the nodes."
    return f"{evicted}, because {whom} of higher priority needs {'their nodes' if key.name else 'its node'}."


def events_of(gang: Gang, assessment: Assessment, reason: Reason, message: str, *, scheduler: str) -> list[Effect]:
    """The Events that are due: about the gang's condition, pods of other schedulers, further owners and ignored groups.

    `scheduler` is the schedulerName that a pod of another scheduler should have.
    """
    effects = _on_condition(gang, assessment, reason, message) + _on_degraded(gang, assessment, reason)
    for pod in _new_foreign_pods(gang):
        gang.written.foreign_pod_reported(pod.uid)
        effects += _on_foreign_pod(gang, assessment, pod, scheduler)
    if _is_newly_preempted(gang):
        gang.written.preemption_reported(gang.record.preemptions)
        note = preempted_note(gang.key, gang.operations.preempted_for, overdue=preempted.is_overdue(gang))
        effects += emit(gang, assessment, Reason.PREEMPTED, note)
    # Once for the same owners, until all members are gone.
    if not assessment.census.live:
        gang.written.named_owners = frozenset()
    if _has_new_owners(gang):
        gang.written.named_owners |= gang.observed.ownership.owners.keys()
        effects += emit(gang, assessment, Reason.SEVERAL_OWNERS, gang.observed.ownership.described(gang.key.name))
    passed_over = _passed_over(gang)
    if passed_over:
        gang.written.passed_over = passed_over
        automatic = assessment.terms.workload is not None
        note = (
            f"The pods also name the PodGroup {passed_over} of scheduling.k8s.io, such as the Job controller creates. "
            f"They are members of the group {gang.key.name} instead, by {assessment.terms.keys.group}, "
            f"{'with its topology and priority' if automatic else 'and what it asks for is ignored'}."
        )
        effects += emit(gang, assessment, Reason.NATIVE_GROUP_IGNORED, note)
    ignored = _ignored(gang, assessment)
    if ignored:
        gang.written.ignored |= frozenset(ignored)
        note = (
            f"gangsched does not honour {_some(ignored)}, which {'is' if len(ignored) == 1 else 'are'} set for the "
            f"group {gang.key.name}: it is scheduled without. docs/dialects.md and docs/gangs.md say what would be "
            "different."
        )
        effects += emit(gang, assessment, Reason.FIELDS_IGNORED, note)
    return effects


def has_news(gang: Gang, assessment: Assessment) -> bool:
    """Whether an Event is due about a pod of another scheduler, a further owner, an ignored group or ignored fields."""
    if _is_newly_preempted(gang):
        return True
    news = _new_foreign_pods(gang) or _has_new_owners(gang) or _passed_over(gang) or _ignored(gang, assessment)
    return bool(news)


def _on_foreign_pod(gang: Gang, assessment: Assessment, pod: Pod, scheduler: str) -> list[Effect]:
    """The Event on a pod of another scheduler and, of a native group, on the group too."""
    declaration = pod.declaration
    native = declaration is not None and declaration.source in TREE_KINDS
    field = declaration.keys.group if declaration is not None and native else "the label"
    own = declaration.own.group if declaration is not None and declaration.own is not None else ""
    named = f"{own}, which is a part of the group {gang.key.name}" if own else gang.key.name
    note = (
        f"The pod names the group {named}, but its schedulerName is {pod.scheduler}: it is not a "
        f"member. Set schedulerName to {scheduler} or remove {field}."
    )
    about = ("Pod", pod.namespace, pod.name, pod.uid)
    effects: list[Effect] = [EmitEvent(*about, "Warning", Reason.FOREIGN_MEMBER, "Scheduling", note)]
    if native:
        note = (
            f"The pod {pod.name} names the group {named} too, but its schedulerName is {pod.scheduler}: it "
            "counts for nothing here, and kube-scheduler binds no pod of a group with several schedulerNames. Give all "
            "pods of the group the same one."
        )
        effects += emit(gang, assessment, Reason.FOREIGN_MEMBER, note)
    return effects


def _some(names: Sequence[str]) -> str:
    """The first of the names, as text."""
    return ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")


def _ignored(gang: Gang, assessment: Assessment) -> list[str]:
    """The fields that are not honoured and of which no Event says so yet; none while no member is there to be told."""
    fields = assessment.terms.ignored
    if not fields or not assessment.census.live:
        return []
    return [field for field in fields if field not in gang.written.ignored]


def _passed_over(gang: Gang) -> str:
    """The native group that the pods also name, if no Event says so yet; all pods of a gang name the same one."""
    first = next(iter(gang.observed.pods.values()), None)
    group = first.declaration.passed_over if first is not None and first.declaration is not None else ""
    return group if group != gang.written.passed_over else ""


def _new_foreign_pods(gang: Gang) -> list[Pod]:
    """Pods of other schedulers that name the group, one for each schedulerName of which no Event says so yet.

    At most NAMES_SHOWN of them, because anyone may create any number of such pods with any names.
    """
    pods = gang.observed.foreign_pods
    told = {pods[uid].scheduler for uid in gang.written.foreign_pods if uid in pods}
    new: dict[str, Pod] = {}
    for pod in pods.values():
        if pod.scheduler not in told and len(new) < NAMES_SHOWN:
            new.setdefault(pod.scheduler, pod)
    return list(new.values())


def _has_new_owners(gang: Gang) -> bool:
    """Whether the gang has a further owner that no Event has named yet."""
    return not gang.observed.ownership.owners.keys() <= gang.written.named_owners


def _on_waiting(gang: Gang, assessment: Assessment) -> tuple[Reason, str] | None:
    """The reason and the sentence about members that a scheduled group waits for; None if they only find no room."""
    hindrance = assessment.terms.hindrance
    if hindrance is not None:
        return hindrance.reason, hindrance.message
    return (Reason.WAITS_FOR_VICTIMS, waits_for_victims(gang)) if gang.operations.plan is not None else None


def _on_condition(gang: Gang, assessment: Assessment, reason: Reason, message: str) -> list[Effect]:
    written = gang.written
    if gang.record.scheduled_at and assessment.census.waiting and (news := _on_waiting(gang, assessment)) is not None:
        why, note = news
        if why == written.hindered or _is_heard(assessment, why):
            return []
        written.hindered = why
        return emit(gang, assessment, why, note)
    written.hindered = ""
    if reason == written.event or reason in (Reason.BINDING, Reason.PLACES_HELD, Reason.NO_MEMBERS, Reason.PREEMPTED):
        return []
    if reason is Reason.GANG_INCOMPLETE and not assessment.census.live:
        return []
    refused = reason in NO_ROOM - {Reason.TIMED_OUT}
    if refused and gang.wait.refusal is None:
        return []
    before = written.event_emitted(reason)
    if (refused or reason is Reason.NOT_ITS_TURN) and before == Reason.TIMED_OUT:
        return []
    members = refused_reason(gang.wait.refusal) if refused and gang.wait.refusal is not None else reason
    if gang.observed.group is None and not before and _is_heard(assessment, members):
        return []
    note = _scheduled_note(gang, assessment) if reason is Reason.SCHEDULED else message
    return emit(gang, assessment, reason, note)


def _on_degraded(gang: Gang, assessment: Assessment, reason: Reason) -> list[Effect]:
    """The Event on a Degraded group, once for each cause; none if that of its condition `reason` or another says it."""
    if gang.record.phase is not Phase.DEGRADED:
        gang.written.degraded = frozenset()
    why = degraded_reason(gang, assessment)
    if gang.record.phase is not Phase.DEGRADED or why is None or gang.observed.group is None:
        return []
    # A former leader emitted one for what its status says.
    told = gang.observed.group.status.condition("Degraded")
    if why in gang.written.degraded | {reason, Reason.PREEMPTED} or (told and told.status and told.reason == why):
        return []
    gang.written.degraded |= {why}
    return emit(gang, assessment, why, degraded_message(gang, assessment))


def _is_heard(assessment: Assessment, reason: Reason) -> bool:
    """Whether the conditions of waiting members have this reason already: it was written before a restart."""
    return any(pod.condition_reason == reason for pod in assessment.census.waiting)


def _scheduled_note(gang: Gang, assessment: Assessment) -> str:
    """The note of the Scheduled Event, which names the nodes."""
    nodes = Counter(filter(None, map(gang.node_of, assessment.census.bound)))
    shown = ", ".join(f"{node} ({count})" for node, count in sorted(nodes.items())[:NODES_SHOWN])
    more = f" and {number_of(len(nodes) - NODES_SHOWN, 'more node')}" if len(nodes) > NODES_SHOWN else ""
    return f"Bound {number_of(len(assessment.census.bound), 'member')} to {shown}{more}."
