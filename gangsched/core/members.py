"""Which pod belongs to which gang: keeps the gangs' pods and declarations in step with what is seen.

Membership is what the pod says now (contract rule 10). A pod without a group is a gang of one while it waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.core import bindings, life
from gangsched.core.cluster import Cluster
from gangsched.core.gang import Binding, BindState, Gang, Run, Told
from gangsched.core.model import Group, GroupKey, Pod, Reservation
from gangsched.core.policy import Policy
from gangsched.core.states import Phase


class Members:
    """Gangs by key and the key of every pod that is of interest; `dirty` names gangs to be brought up to date."""

    def __init__(self, cluster: Cluster, gangs: dict[GroupKey, Gang], policy: Policy) -> None:
        self.dirty: dict[GroupKey, None] = {}
        self._cluster = cluster
        self._gangs = gangs
        self._policy = policy
        self._key_of: dict[str, GroupKey] = {}

    def touch(self, uid: str) -> GroupKey | None:
        """Have the pod's gang brought up to date. Returns its key; None if the pod is in none."""
        key = self._key_of.get(uid)
        if key is not None:
            self.dirty[key] = None
        return key

    # Pods

    def pods_replaced(self, pods: Sequence[Pod]) -> None:
        """These are all the pods there are."""
        for uid in (self._cluster.pods.keys() | self._key_of.keys()) - {pod.uid for pod in pods}:
            self.pod_gone(uid)
        for pod in pods:
            self.pod_seen(pod)

    def pod_seen(self, pod: Pod) -> None:
        """A pod exists in this form."""
        self._cluster.set_pod(pod)
        key = self._key(pod)
        before = self._key_of.get(pod.uid)
        if before is not None and before != key:
            self._leave(pod.uid, before)
        if key is None:
            if pod.terminal:
                self._cluster.remove_pod(pod.uid)
            return
        gang = self._gang(key)
        self._key_of[pod.uid] = key
        ours, others = (gang.pods, gang.strangers) if self._ours(pod) else (gang.strangers, gang.pods)
        ours[pod.uid] = pod
        others.pop(pod.uid, None)
        self.dirty[key] = None

    def pod_gone(self, uid: str) -> None:
        """A pod exists no longer."""
        key = self._key_of.get(uid)
        if key is not None:
            self._leave(uid, key)
        self._cluster.remove_pod(uid)

    def _leave(self, uid: str, key: GroupKey) -> None:
        del self._key_of[uid]
        gang = self._gangs[key]
        bindings.release(gang, self._cluster, uid)
        gang.pods.pop(uid, None)
        gang.strangers.pop(uid, None)
        self.dirty[key] = None

    def _ours(self, pod: Pod) -> bool:
        return pod.scheduler in self._policy.scheduler_names

    def _key(self, pod: Pod) -> GroupKey | None:
        if self._policy.namespace and pod.namespace != self._policy.namespace:
            return None
        if pod.declaration is not None:
            if self._ours(pod) or not pod.terminal:
                return GroupKey(pod.namespace, pod.declaration.group)
            return None
        waits = self._ours(pod) and not pod.terminal and (not pod.node or pod.uid in self._key_of)
        return GroupKey(pod.namespace, pod.name, pod.uid) if waits else None

    # PodGroups

    def groups_replaced(self, groups: Sequence[Group], *, now: float, synced: bool) -> None:
        """These are all the PodGroups there are."""
        listed = {group.key for group in groups}
        for key in [key for key, gang in self._gangs.items() if gang.group is not None and key not in listed]:
            self.group_gone(key)
        for group in groups:
            self.group_seen(group, now=now, synced=synced)

    def group_seen(self, group: Group, *, now: float, synced: bool) -> None:
        """A PodGroup exists in this form. Its status is ours: it is read only when it is first seen."""
        if self._policy.namespace and group.key.namespace != self._policy.namespace:
            return
        gang = self._gang(group.key)
        old = gang.group
        if old is not None and old.uid != group.uid:
            self.group_gone(group.key)
            gang = self._gang(group.key)
            gang.run = Run(past=gang.run.past)
            old = None
        gang.group = group
        gang.resource_version = group.resource_version
        self.dirty[group.key] = None
        if old is None:
            gang.told = Told(members=gang.told.members)
            if synced:
                self._adopt(gang, now)
        elif (old.spec, old.error) != (group.spec, group.error):
            life.begin_anew(gang)

    def group_gone(self, key: GroupKey) -> None:
        """A PodGroup exists no longer: places without a bound member are released, bound members stay (rule 10)."""
        gang = self._gangs.get(key)
        if gang is None or gang.group is None:
            return
        gang.group = None
        gang.told = Told(members=gang.told.members)
        gang.durable = False
        gang.durable_asked_at = 0.0
        if len(gang.flying()) == len(gang.bindings) and not any(pod.node for pod in gang.live()):
            for uid, binding in list(gang.bindings.items()):
                if binding.state is not BindState.SENT:
                    bindings.release(gang, self._cluster, uid)
        self.dirty[key] = None

    # After a restart

    def adopt_all(self, now: float) -> None:
        """Everything has been listed once: take over what the PodGroups' status remembers."""
        for gang in self._gangs.values():
            if gang.group is not None:
                self._adopt(gang, now)

    def _adopt(self, gang: Gang, now: float) -> None:
        if gang.group is None or not gang.group.status.phase:
            return
        status = gang.group.status
        gang.told.status = status
        gang.told.event = next(
            (condition.reason for condition in status.conditions if condition.type == "Scheduled"), ""
        )
        gang.phase = Phase(status.phase) if status.phase in {phase.value for phase in Phase} else Phase.PENDING
        ended = gang.phase in (Phase.SUCCEEDED, Phase.FAILED)
        spec = gang.group.spec
        gang.run = Run(
            began=bool(status.scheduled_time) or not ended,
            scheduled_at=status.scheduled_time,
            clock_start=status.schedule_start_time,
            minimum=status.minimum,
            role_minima={role.name: role.min_member for role in spec.roles} if spec else {},
            timeouts=max(0, status.attempts - (0 if gang.phase is Phase.TIMED_OUT or ended else 1)),
            failed_for_good=gang.phase is Phase.FAILED and not status.scheduled_time,
            ended=ended and bool(status.scheduled_time),
            ended_well=gang.phase is Phase.SUCCEEDED,
            past={pod.uid for pod in gang.pods.values() if pod.terminal} if ended else set(),
        )
        if status.reservation is not None and status.reservation.expires > now:
            self._hold_again(gang, status.reservation)

    def _hold_again(self, gang: Gang, reservation: Reservation) -> None:
        """Assume the places that were held before the restart, for pods that still wait."""
        waiting = {pod.name: pod for pod in gang.live() if not pod.node}
        for place in reservation.placements:
            for name in place.pods:
                pod = waiting.pop(name, None)
                if pod is not None and place.node in self._cluster.nodes:
                    self._cluster.assume(pod.uid, place.node)
                    gang.bindings[pod.uid] = Binding(pod, place.node)
        gang.durable = bool(gang.bindings)
        gang.durable_asked_at = reservation.expires - self._policy.repair_deadline_s if gang.durable else 0.0

    # The gangs themselves

    def _gang(self, key: GroupKey) -> Gang:
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = Gang(key)
        return gang

    def finished(self, gang: Gang) -> bool:
        """Whether nothing speaks of the gang any more, or it was a plain pod that is bound."""
        if gang.group is not None or gang.bindings:
            return False
        return not (gang.pods or gang.strangers) or (gang.plain and bool(gang.run.scheduled_at))

    def drop(self, key: GroupKey) -> None:
        """Forget a finished gang."""
        gang = self._gangs.pop(key, None)
        if gang is not None:
            for uid in (*gang.pods, *gang.strangers):
                self._key_of.pop(uid, None)
