"""Reports pods that name a group and that no scheduler has noticed: most often their schedulerName is misspelt.

Such a group belongs to an installation that does not exist, so no other process reports it. The installation that would
own the group without its pods does so, and only after a delay: by then an existing scheduler has bound the pod, or any
other pod of its own that is known here, or has said why not in its condition. Anyone may create such pods by the
thousand, so neither their number nor that of the others makes a call long, and Events are few (contract rule 16).
"""

from __future__ import annotations

from collections.abc import Iterator

from gangsched.core.declarations.installation import KUBE_SCHEDULER, owner_of
from gangsched.core.gang.clock import NEVER
from gangsched.core.membership.installations import Installations, group_of, is_heard
from gangsched.core.objects.declaration import OWN_DIALECT, GroupKey
from gangsched.core.objects.duration import format_duration
from gangsched.core.objects.effects import Effect, EmitEvent
from gangsched.core.objects.indexes import Grouped
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.queueing.agenda import Agenda, Due
from gangsched.core.status.pod_events import RateLimit

SILENT_S = 20.0
"""Time, in seconds, after which a pod is reported if no scheduler has bound it or set a condition on it."""

_LOOK = 150
"""Cost of looking at one pod, in units of the budget."""
_SHARE = 16
"""Part of a call's budget that is left for these pods, whatever was spent before."""
Place = tuple[GroupKey, str]
"""A group, and a schedulerName that a pod of it has."""


class Unserved:
    """The pods that no scheduler has noticed yet, and when they are due to be reported.

    Of the pods of one group with one schedulerName only the first is reported, once, and at most `RateLimit` allows in
    all; pods that would have to wait too long for their turn are not reported. `_reported` holds the place of each pod
    that was reported or has its turn, and `_turns` the pods that have it but were not reported yet.
    """

    def __init__(self, installations: Installations, policy: Policy, agenda: Agenda) -> None:
        self._installations = installations
        self._policy = policy
        self._rate_limit = RateLimit()
        self._agenda = agenda
        self._reported = Grouped[str, Place]()
        self._turns: set[str] = set()

    def decide(self, now: float, budget: Budget) -> list[Effect]:
        """The Events that are due. Pods that the budget does not reach are looked at in the next call."""
        budget.leave(units.CALL // _SHARE)
        while self._installations.changed and budget:
            budget.charge(_LOOK)
            self._note(self._installations.take_changed(), now)
        effects: list[Effect] = []
        while budget and (key := self._agenda.take_due(Due.REPORT, now)) is not None:
            budget.charge(_LOOK)
            pod = self._installations.pod(key.pod_uid)
            if pod is not None and self._is_silent(pod) and not self._installations.hears(pod.scheduler):
                effects += self._report(pod, now)
        return effects

    @property
    def waits(self) -> bool:
        """Whether pods have changed that the budget did not reach."""
        return bool(self._installations.changed)

    def validate(self) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        for uid in self._reported:
            if self._installations.pod(uid) is None and uid not in self._installations.changed:
                yield f"{uid}: an Event reported it though it is gone"
        if any(uid not in self._reported for uid in self._turns):
            yield "a pod has its turn that is not among the reported ones"

    def _note(self, uid: str, now: float) -> None:
        """Handle a pod that has changed or gone."""
        pod = self._installations.pod(uid)
        if uid in self._reported and (pod is None or _place(pod) != self._reported.group_of(uid)):
            self._reported.drop(uid)
            self._turns.discard(uid)
        if pod is None:
            self._agenda.drop(Due.REPORT, _key(uid))
        elif not self._reported.of(_place(pod)) and self._is_silent(pod):
            self._agenda.hasten(Due.REPORT, _key(uid), now + SILENT_S)

    def _report(self, pod: Pod, now: float) -> list[Effect]:
        """The Event on the pod, if it is its turn. Otherwise its turn is set, or it is passed over."""
        if pod.uid in self._turns:
            self._turns.discard(pod.uid)
            return [self._event(pod)]
        if self._reported.of(_place(pod)):
            return []
        self._reported.put(pod.uid, _place(pod))
        turn = self._rate_limit.allot(1, now)
        if turn <= now:
            return [self._event(pod)]
        if turn < NEVER:
            self._turns.add(pod.uid)
            self._agenda.set(Due.REPORT, _key(pod.uid), turn)
        return []

    def _is_silent(self, pod: Pod) -> bool:
        """Whether the pod waits for a scheduler that has not reacted, and this installation has to report it."""
        declaration = pod.declaration
        if declaration is None or declaration.source != OWN_DIALECT or pod.terminating or pod.terminal or pod.gated:
            return False
        key = group_of(pod)
        owner = self._installations.whose(key)
        if pod.scheduler != owner or pod.scheduler == KUBE_SCHEDULER or is_heard(pod):
            return False
        group = self._installations.group(key)
        teller = owner_of(
            (),
            annotated=group.scheduler if group is not None else "",
            kept_by=group.status.scheduler if group is not None else "",
            ours=(),
        )
        return self._installations.serves(teller)

    def _event(self, pod: Pod) -> Effect:
        name = self._policy.scheduler_names[0]
        note = (
            f"The pod names the group {group_of(pod).name}, but no scheduler named {pod.scheduler} has reacted to it "
            f"within {format_duration(SILENT_S)}: set schedulerName to {name}, or run the scheduler of that name."
        )
        about = ("Pod", pod.namespace, pod.name, pod.uid)
        return EmitEvent(*about, "Warning", Reason.FOREIGN_MEMBER, "Scheduling", note)


def _key(uid: str) -> GroupKey:
    """The key of the pod in the agenda."""
    return GroupKey("", "", uid)


def _place(pod: Pod) -> Place:
    return group_of(pod), pod.scheduler
