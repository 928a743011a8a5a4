"""What nothing has written down: guessed from the pods' times after a restart, for groups without a PodGroup's record.

Also whom a former leader has bound since the record was last written.
"""

from __future__ import annotations

from gangsched.core.gang import ownership, recovery, rollback
from gangsched.core.gang.declaration import declared_spec, said_minimum
from gangsched.core.gang.foreign import Foreign
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Minima, Outcome, Phase

OUTAGE_S = 300.0
"""A group without a PodGroup of ours whose members were bound longer ago, and the repair deadline, is not begun."""


def find_begun(gang: Gang, *, foreign: Foreign, policy: Policy, now: float) -> None:
    """Find out whether a former leader has begun a quorum that was not completed; one that has failed is not."""
    # Pods that the group does without say nothing of its quorum, however long they have waited.
    ownership.guard(gang, policy.owner_guard)
    if not gang.record.run_start:
        gang.roster.end_run(gang.roster.past | _of_earlier_runs(gang))
    record = gang.record
    failed = record.outcome is Outcome.OUT_OF_TIME or (record.phase is Phase.FAILED and not record.ended)
    if not failed and (record.ended or not record.scheduled_at):
        gang.roster.inherit_only(_half_done(gang, now, policy))
        _count_on(gang, policy, now)
    spec = declared_spec(gang, foreign)
    if _remembers_nothing(gang) and not gang.plain and not gang.roster.inherited:
        _recall_scheduled(gang, spec)
    if gang.roster.inherited and spec is not None:
        recovery.take_over(gang, spec)


def _of_earlier_runs(gang: Gang) -> set[str]:
    """The pods, by UID, that ended in earlier runs: bound before any live member was made.

    A quorum's members are all there when it is bound.
    """
    oldest = min((pod.created for pod in gang.live()), default=float("inf"))
    return {pod.uid for pod in gang.pods.values() if pod.terminal and pod.bound_at < oldest}


def _remembers_nothing(gang: Gang) -> bool:
    """Whether the gang has no PodGroup of ours, or one that was only just made to hold places for members to come.

    Nobody is bound beside such places before they are in the status: whoever is bound was bound before it was made.
    """
    group = gang.group
    if group is None:
        return True
    if group.spec is None or not group.made or group.status.phase:
        return False
    return any(role.template for role in group.spec.roles)


def _count_on(gang: Gang, policy: Policy, now: float) -> None:
    """Let the time count on for which a former leader's quorum has been partly bound, but leave half of it.

    Nobody knows for how long nobody led, which does not count (rule 1); and the quorum must have a chance.
    """
    if gang.roster.inherited:
        first = min(gang.pods[uid].bound_at for uid in gang.roster.inherited)
        rollback.count_on(gang, since=min(now, max(first, now - rollback.lasts_s(policy) / 2)))


def _half_done(gang: Gang, now: float, policy: Policy) -> set[str]:
    """The members, by UID, with which a former leader may have begun a quorum, of a group that was never scheduled.

    With a PodGroup, whose status would know if it had been scheduled, these are the members bound since it exists, and
    all of them where it was made because some were bound.
    Without one it shows in the times: those who still wait existed when the others were bound, and that is not long
    ago. Replacements of members that a scheduled group has lost are younger.
    """
    live = gang.live()
    bound = [pod for pod in live if pod.node]
    if gang.group is not None and not _remembers_nothing(gang):
        since = 0.0 if gang.group.made else gang.group.created
        return {pod.uid for pod in bound if pod.bound_at >= since}
    begun_at = min((pod.bound_at for pod in bound), default=0.0)
    if now > begun_at + OUTAGE_S + policy.repair_deadline_s:
        return set()
    # One that is leaving waited as well when the others were bound.
    not_ours = gang.roster.past | gang.disowned
    waited = (pod for pod in gang.pods.values() if not (pod.node or pod.terminal or pod.uid in not_ours))
    return {pod.uid for pod in bound} if any(pod.created <= begun_at for pod in waited) else set()


def _recall_scheduled(gang: Gang, spec: GroupSpec | None) -> None:
    """Take a group without a PodGroup of ours, of which members are bound and no quorum is half done, for scheduled.

    Nothing else remembers it: a quorum is bound together, so whoever waits beside bound members came later. Where some
    come later by their template, those missing may never have been there, and it is only said what is bound (rule 11).
    """
    bound = [pod for pod in gang.pods.values() if pod.node and pod.uid not in gang.roster.past]
    says = [pod.declaration for pod in bound if pod.declaration is not None]
    minimum = said_minimum(says) if spec is None else spec.minimum
    if all(pod.terminal for pod in bound):
        # Nobody of that run is left: those who wait begin another one.
        gang.roster.end_run({*gang.roster.past, *(pod.uid for pod in bound)})
        return
    if minimum is None:
        return
    begun_at = min(pod.bound_at for pod in bound) or 1.0
    by_template = any(role.template for say in says for role in say.roles)
    there = sum(pod.phase is not PodPhase.FAILED for pod in bound)
    gang.note(
        run_start=begun_at,
        scheduled_at=begun_at,
        satisfied=Minima(minimum),
        late=by_template and there < minimum,
    )
