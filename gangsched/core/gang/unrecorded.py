"""Infers after a restart, from pod timestamps, what is written nowhere.

It handles groups without a PodGroup's record, and members that a former leader bound after the record was last written.
No other module of the core infers anything from timestamps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.minima import begun, chosen, minima, rest_of, roles_in
from gangsched.core.declarations.resolution import declared_spec, said_minima
from gangsched.core.gang import parts, recovery, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.mail import Context
from gangsched.core.gang.wants import placed_of
from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.pod import Pod, PodPhase, by_age, role_of
from gangsched.core.objects.podgroup import GroupSpec, SeenCondition
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Minima, Outcome, Phase

OUTAGE_S = 300.0
"""Time in seconds, added to the repair deadline, after which a quorum is no longer taken for half bound unless a
PodGroup of gangsched's API declares the group."""


def find_begun(gang: Gang, context: Context) -> None:
    """Find out whether a former leader began a quorum that is not complete; a gang that has failed has none."""
    # Pods of owners that do not count say nothing about the quorum, however long they have waited.
    gang.update_ownership(context.policy.owner_guard, context.foreign)
    if not gang.record.run_start:
        # All members of a quorum exist when it is bound, so pods bound before that belong to earlier runs.
        oldest = min((pod.created for pod in gang.live()), default=float("inf"))
        old = (pod.uid for pod in gang.observed.pods.values() if pod.terminal and pod.bound_by < oldest)
        gang.roster.end_run(gang.roster.past.union(old))
    record = gang.record
    failed = record.outcome is Outcome.OUT_OF_TIME or (record.phase is Phase.FAILED and not record.ended)
    if not failed and (record.ended or not record.scheduled_at):
        gang.roster.inherit_only(_half_done(gang, context))
        if gang.roster.inherited:
            # Time without a leader does not count (rule 1), but its length is unknown: assume at least half is left.
            rollback.count_on(gang, since=_since(gang, gang.roster.inherited, context))
            date_begun(gang)
    spec = declared_spec(gang.key, gang.observed.group, gang.live(), context.foreign)
    if gang.roster.inherited and spec is not None:
        recovery.take_over(gang, spec)
    if spec is not None and spec.tree is not None and not failed:
        _find_begun_parts(gang, spec.tree, context)
    if _remembers_nothing(gang) and not gang.plain and not gang.roster.inherited:
        _recall_scheduled(gang, spec, context)


def date_begun(gang: Gang) -> None:
    """Record since when the members of a quorum under way were bound, if they are older than the PodGroup.

    It was made anew meanwhile, or only then. Otherwise a new leader would count none of those.
    """
    group, begun, live = gang.observed.group, gang.begun(), gang.live()
    # A binding that is not shown yet is younger than those of other members, by the resolution of pod timestamps.
    others = max((pod.bound_at + 1 for pod in live if pod.uid not in begun), default=1.0)
    members = (pod for pod in live if pod.uid in begun and gang.node_of(pod))
    first = min((pod.bound_at or max(pod.created, others) for pod in members), default=float("inf"))
    if group is not None and not group.made and first < group.created:
        gang.change(settled_at=first)


def _since(gang: Gang, uids: Iterable[str], context: Context) -> float:
    """Since when these members count as bound while others of their quorum or part are not."""
    first = min(gang.observed.pods[uid].bound_at for uid in uids)
    return min(context.now, max(first, context.now - rollback.lasts_s(context.policy) / 2))


def _find_begun_parts(gang: Gang, tree: Minima, context: Context) -> None:
    """Find out of which parts of a tree, beside its quorum, a former leader has bound or reserved some members only."""
    placed, bound = placed_of(gang), Counter(role_of(pod) for pod in gang.live() if pod.node)
    counts = Counter(map(role_of, placed))
    mine = gang.record.satisfied if gang.record.scheduled_at else gang.record.quorum or Minima(0)
    for part in begun(tree, counts, bound):
        roles = {*roles_in(part)} - {role for role, _ in mine.roles}
        lacking = {role for role, number in chosen(rest_of(part, bound), bound).roles if number}
        done = _half_done(gang, context, roles, lacking)
        members = [pod for pod in placed if pod.uid in done or (role_of(pod) in roles and not pod.node)]
        needs = Counter(map(role_of, members)) + Counter(dict(chosen(rest_of(part, counts), Counter()).roles))
        bound_uids = [pod.uid for pod in members if pod.node]
        parts.begin(gang, members, needs=needs, since=_since(gang, bound_uids, context) if bound_uids else 0.0)


def _remembers_nothing(gang: Gang) -> bool:
    """Whether the gang has no PodGroup written by a user, or one just created to hold reservations with placeholders.

    No member is bound beside such reservations before they are in the status, so bound members were bound before it was
    created.
    """
    group = gang.observed.group
    if group is None or group.spec is None:
        return group is None
    return group.made and not group.status.phase and any(role.template for role in group.spec.roles)


def _half_done(
    gang: Gang, context: Context, roles: Container[str] | None = None, lacking: Container[str] = ()
) -> set[str]:
    """The members, by UID, with which a former leader may have begun a quorum of a group that was never scheduled.

    With a PodGroup, whose status would show that the group was scheduled, these are the members bound since it was
    created, or all bound members if it was created because some were bound. Without one, or with one that was made anew
    just after they were bound and has no status yet, the timestamps decide: members that still wait already existed
    when the others were bound, and that was not long ago, unless a native group shows whether it was scheduled since
    one of them existed. Replacements of members that a scheduled group has lost are younger. If `roles` are given, only
    their members count: those of a part that is bound together, which was whole once if the groups of all roles that
    are `lacking` members were.
    """
    ours = [pod for pod in gang.live() if roles is None or role_of(pod) in roles]
    bound, sure = {pod.uid: pod.bound_at for pod in ours if pod.node}, set[str]()
    begun_at = min(bound.values(), default=0.0)
    if roles is None and gang.observed.group is not None and not _remembers_nothing(gang):
        created = 0.0 if gang.observed.group.made else gang.observed.group.created
        # Pod timestamps have a resolution of one second.
        since = int(gang.record.settled_at) or created
        sure = {uid for uid, at in bound.items() if at >= since}
        # A part is undone by the repair deadline, so what was bound longer before the PodGroup was created was whole.
        if gang.observed.group.status.record is not None or begun_at + context.policy.repair_deadline_s < created:
            return sure
    # A member that is being evicted was also waiting when the others were bound.
    not_ours = gang.roster.past | gang.observed.ownership.former
    waited = (pod for pod in gang.observed.pods.values() if not (pod.node or pod.terminal or pod.uid in not_ours))
    theirs = (pod for pod in waited if roles is None or role_of(pod) in roles)
    telling = (pod for pod in ours if (pod.node if roles is None else role_of(pod) in lacking))
    seen = [phase for pod in telling if (phase := _shown(pod, context.foreign)) is not None]
    # One that gangsched does not write may be of an earlier run, and so may one that is older than all bound members.
    oldest = min((pod for pod in ours if pod.node), key=by_age, default=None)
    shown = [phase.scheduled for phase in seen if phase.writable and oldest is not None and not phase.is_older(oldest)]
    recent = bool(shown) or context.now <= begun_at + OUTAGE_S + context.policy.repair_deadline_s
    was_whole = bool(shown) and (any(shown) if roles is None else all(shown))
    if not recent or was_whole or not any(pod.created <= begun_at for pod in theirs):
        return sure
    return set(bound)


def _shown(pod: Pod, foreign: Foreign) -> SeenCondition | None:
    """What the native group that the pod names shows of itself; None if the pod names none that is known."""
    name = pod.declaration.native_group if pod.declaration is not None else ""
    group = foreign.stored(NATIVE, GroupKey(pod.namespace, name)) if name else None
    return group.phase if group is not None and isinstance(group.phase, SeenCondition) else None


def _recall_scheduled(gang: Gang, spec: GroupSpec | None, context: Context) -> None:
    """Treat a group as scheduled that has live bound members, no half-bound quorum and no PodGroup written by a user.

    Nothing else records it. Members that are leaving show nothing, because their quorum may have been rolled back. A
    quorum is bound together, so members that wait beside bound ones came later. If the minimum of a native group may
    have been raised after it was scheduled, no more counts as satisfied than is bound: what is missing was lost or is
    new, and is bound together or not at all (rule 9). If members come later by a template, the missing ones may never
    have existed, so the group counts as scheduled late, with what is bound (rule 11).
    """
    bound = [pod for pod in gang.observed.pods.values() if pod.node and pod.uid not in gang.roster.past]
    if not any(map(gang.lives, bound)):
        # No bound member of that run is left: the waiting members begin another run.
        gang.roster.end_run(gang.roster.past.union(pod.uid for pod in bound))
        return
    says = [pod.declaration for pod in bound if pod.declaration is not None]
    counts = Counter(map(role_of, bound))
    least = said_minima(says) if spec is None else chosen(minima(spec), counts)
    if least is None:
        return
    changed = {role_of(pod) for pod in bound if (seen := _shown(pod, context.foreign)) and seen.may_be_raised}
    if spec is not None and spec.tree is not None:
        # A part of which nothing or not yet all is bound is none that the group had: it is bound whole or not at all.
        open_ = {role for part in gang.operations.parts for role in part.needs}
        had = {role_of(pod) for pod in bound if gang.lives(pod)} - open_
        roles = tuple((role, min(number, counts[role]) if role in changed else number) for role, number in least.roles)
        roles = tuple((role, number) for role, number in roles if role in had)
        least = Minima(sum(number for _, number in roles), roles)
    elif changed:
        least = Minima(min(least.total, counts.total()), least.roles)
    begun_at = min(filter(None, (pod.bound_by for pod in bound)), default=1.0)
    by_template = any(role.template for say in says for role in say.roles)
    late = by_template and sum(pod.phase is not PodPhase.FAILED for pod in bound) < least.total
    gang.change(run_start=begun_at, scheduled_at=begun_at, satisfied=least, late=late)
    if not late and begun_at + OUTAGE_S < context.now:
        # A former leader has had the time to say so.
        gang.written.event_emitted(Reason.SCHEDULED)
