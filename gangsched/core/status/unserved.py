"""Reports pods that name a group and that no scheduler has noticed: most often their schedulerName is misspelt.

Such a group belongs to an installation that does not exist, so no other process reports it. The installation that would
own the group without its pods does so, and only after a delay: by then an existing scheduler has bound the pod, or any
other pod of its own that is known here, or has said why not in its condition.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangsched.core.declarations.installation import KUBE_SCHEDULER, owner_of
from gangsched.core.membership.installations import Installations, group_of
from gangsched.core.objects.declaration import OWN_DIALECT, GroupKey
from gangsched.core.objects.duration import format_duration
from gangsched.core.objects.effects import Effect, EmitEvent
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.queueing.deadlines import Deadlines

SILENT_S = 20.0
"""Time, in seconds, after which a pod is reported if no scheduler has bound it or set a condition on it."""


class Unserved:
    """The pods that no scheduler has noticed yet, and when they are due to be reported. Each is reported once."""

    def __init__(self, installations: Installations, policy: Policy) -> None:
        self._installations = installations
        self._policy = policy
        self._due = Deadlines()
        self._reported: set[str] = set()

    def decide(self, now: float) -> list[Effect]:
        """The Events that are due."""
        for uid, pod in self._installations.take_foreign_pods().items():
            if pod is None:
                self._due.drop(_key(uid))
                self._reported.discard(uid)
            elif uid not in self._reported and self._is_silent(pod):
                self._due.hasten(_key(uid), now + SILENT_S)
        effects: list[Effect] = []
        while (key := self._due.take_due(now)) is not None:
            pods = self._installations.pods()
            silent = pods[key.pod_uid]
            alike = (each for each in pods.values() if each.scheduler == silent.scheduler)
            if self._is_silent(silent) and all(map(_is_unheard, alike)):
                self._reported.add(key.pod_uid)
                effects.append(self._event(silent))
        return effects

    def next_due(self) -> float:
        """When the next Event is due, in epoch seconds; infinity if none is."""
        return self._due.next()

    def validate(self) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        there = self._installations.pods()
        yield from (f"{uid}: an Event reported it though it is gone" for uid in self._reported if uid not in there)

    def _is_silent(self, pod: Pod) -> bool:
        """Whether the pod waits for a scheduler that has not reacted, and this installation has to report it."""
        said = pod.declaration
        if said is None or said.source != OWN_DIALECT or pod.terminating or pod.terminal or pod.gated:
            return False
        key = group_of(pod)
        owner = self._installations.whose(key)
        if pod.scheduler != owner or pod.scheduler == KUBE_SCHEDULER or not _is_unheard(pod):
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
    """The key of the pod in `Deadlines`."""
    return GroupKey("", "", uid)


def _is_unheard(pod: Pod) -> bool:
    """Whether no scheduler has bound the pod or set a condition on it."""
    return not (pod.node or pod.condition_reason)
