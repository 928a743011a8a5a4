"""Who leaves for whom in a simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gangsched.core.gang.plan import Plan
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.wording import number_of
from gangsched.views.findings import Finding, Findings


class Holder(NamedTuple):
    """The group for which others leave, with its priority."""

    key: GroupKey
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Pods of one group that begin to leave for another, the `holder`, by name with their nodes.

    `whole`: they are all members of their group. Its key has the UID of a pod without a group. `finding` is what the
    group was before.
    """

    group: GroupKey
    finding: Finding
    holder: Holder
    whole: bool
    pods: dict[str, str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """Why they leave."""
        if self.group.pod_uid:
            who = "The pod leaves"
        elif self.whole:
            who = f"All members leave ({len(self.pods)})"
        else:
            who = f"{len(self.pods)} of its members {'leaves' if len(self.pods) == 1 else 'leave'}"
        return f"{who} for {self.holder.key}, which has the priority {self.holder.priority}."

    @property
    def described(self) -> str:
        """Who leaves."""
        if self.group.pod_uid:
            return f"the pod {self.group}"
        members = number_of(len(self.pods), "member")
        return f"{self.group} as a whole ({members})" if self.whole else f"{members} of {self.group}"


class Departures:
    """Knows for whom pods leave from the machine's open plans, and what has begun to leave since the last `take`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._of: dict[str, tuple[Holder, bool]] = {}
        self._known: dict[GroupKey, Mapping[str, frozenset[str]]] = {}
        self._leaving: dict[tuple[GroupKey, GroupKey], Leaving] = {}

    def note_plans(self) -> Sequence[Plan]:
        """Note for whom pods are to leave. Returns the plans of groups that had none before."""
        new = []
        for key, plan in self._machine.plans.items():
            if self._known.get(key) is plan.units:
                continue
            if key not in self._known:
                new.append(plan)
            self._known[key] = plan.units
            holder = Holder(key, self._machine.assessments[key].terms.priority)
            whole = {uid for uids in plan.whole.values() for uid in uids}
            self._of.update({uid: (holder, uid in whole) for uid in plan.leaving})
        return new

    def note_leaving(self, pod: Pod, alone: Callable[[Pod], Finding]) -> None:
        """The eviction of the pod was accepted; nothing is noted if it is not evicted for another group.

        `alone` is the finding for a pod without a group.
        """
        if pod.uid not in self._of:
            return
        holder, whole = self._of[pod.uid]
        gang = self._machine.gang_of(pod.uid)
        before = alone(pod) if gang is None or gang.plain else None
        group = gang.key if before is None and gang is not None else GroupKey(pod.namespace, pod.name, pod.uid)
        if (group, holder.key) not in self._leaving:
            before = before or Findings(self._machine).of(group)
            leaving = Leaving(group=group, finding=before, holder=holder, whole=whole)
            self._leaving[group, holder.key] = leaving
        self._leaving[group, holder.key].pods[pod.name] = pod.node

    def take(self) -> Sequence[Leaving]:
        """What has begun to leave since the last call, by the names of those who leave."""
        leaving, self._leaving = self._leaving, {}
        return [leaving[key] for key in sorted(leaving)]
