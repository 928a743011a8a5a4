"""Which pod belongs to which gang: keeps the gangs' pods and declarations in step with what is seen.

Membership is what the pod says now (contract rule 10). A pod without a group is a gang of one while it waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gangsched.core import bindings, clock
from gangsched.core.cluster import Cluster
from gangsched.core.demand import role_minima
from gangsched.core.gang import Binding, BindState, Gang, Run, Told, Transaction, role_of
from gangsched.core.model import Group, GroupKey, GroupStatus, Pod, PodPhase, Reservation
from gangsched.core.placement import classify
from gangsched.core.policy import Policy
from gangsched.core.snapshot import Snapshot
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
        on_its_way = self._leave(pod.uid, before) if before is not None and before != key else None
        if key is None:
            if pod.terminal:
                self._cluster.remove_pod(pod.uid)
            return
        gang = self._gang(key)
        self._key_of[pod.uid] = key
        ours, others = (gang.pods, gang.strangers) if self._ours(pod) else (gang.strangers, gang.pods)
        ours[pod.uid] = pod
        others.pop(pod.uid, None)
        if on_its_way is not None:
            gang.bindings[pod.uid] = on_its_way
        self.dirty[key] = None

    def pod_gone(self, uid: str) -> None:
        """A pod exists no longer."""
        key = self._key_of.get(uid)
        if key is not None:
            self._leave(uid, key)
        self._cluster.remove_pod(uid)

    def set_aside(self, uid: str) -> None:
        """The API server says that the pod is gone or bound; it is no member until the watch shows what is true."""
        key = self._key_of.get(uid)
        pod = self._cluster.pods.get(uid)
        if key is not None and pod is not None and not pod.node:
            self._leave(uid, key)

    def _leave(self, uid: str, key: GroupKey) -> Binding | None:
        """Take the pod out of its gang. Returns its binding if that can no longer be called back."""
        del self._key_of[uid]
        gang = self._gangs[key]
        gang.pods.pop(uid, None)
        gang.strangers.pop(uid, None)
        self.dirty[key] = None
        binding = gang.bindings.get(uid)
        if binding is None or binding.state is BindState.HELD:
            bindings.release(gang, self._cluster, uid)
            return None
        return gang.bindings.pop(uid)

    def _ours(self, pod: Pod) -> bool:
        return pod.scheduler in self._policy.scheduler_names

    def _key(self, pod: Pod) -> GroupKey | None:
        if self._policy.namespace and pod.namespace != self._policy.namespace:
            return None
        if pod.declaration is not None:
            if self._ours(pod) or not pod.terminal:
                return GroupKey(pod.namespace, pod.declaration.group)
            return None
        key = GroupKey(pod.namespace, pod.name, pod.uid)
        waits = self._ours(pod) and not pod.terminal and (not pod.node or self._key_of.get(pod.uid) == key)
        return key if waits else None

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
            old = None
        gang.group = group
        gang.resource_version = group.resource_version
        self.dirty[group.key] = None
        if old is None:
            _forget_what_was_told(gang)
            if synced:
                self._adopt(gang, now)
        elif (old.spec, old.error) != (group.spec, group.error):
            clock.begin_anew(gang)

    def group_gone(self, key: GroupKey) -> None:
        """A PodGroup exists no longer, and its run neither; bound members stay (rule 10)."""
        gang = self._gangs.get(key)
        if gang is None or gang.group is None:
            return
        gang.group = None
        gang.run = Run(past=gang.run.past)
        gang.durable = False
        gang.durable_asked_at = 0.0
        _forget_what_was_told(gang)
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
        group, status = gang.group, gang.group.status
        scheduled = next((condition for condition in status.conditions if condition.type == "Scheduled"), None)
        gang.told.status = status
        gang.told.event = scheduled.reason if scheduled is not None else ""
        gang.phase = Phase(status.phase) if status.phase in {phase.value for phase in Phase} else Phase.PENDING
        ended = gang.phase in (Phase.SUCCEEDED, Phase.FAILED) and bool(status.scheduled_time)
        same_spec = scheduled is None or scheduled.generation == group.generation
        trying = bool(status.schedule_start_time or status.scheduled_time or status.reservation)
        timeouts = max(0, status.attempts - trying)
        asked_as_before = group.spec is not None and group.spec.minimum <= status.minimum
        gang.run = Run(
            began=True,
            scheduled_at=status.scheduled_time,
            clock_start=status.schedule_start_time,
            minimum=status.minimum,
            role_minima=role_minima(group.spec) if group.spec is not None and asked_as_before else {},
            timeouts=timeouts,
            level=timeouts if same_spec else 0,
            failed_for_good=gang.phase is Phase.FAILED and not status.scheduled_time and same_spec,
            ended=ended,
            ended_well=gang.phase is Phase.SUCCEEDED,
            past={pod.uid for pod in gang.pods.values() if pod.terminal} if ended else set(),
        )
        live = gang.live()
        if status.scheduled_time and not status.succeeded and live and not any(pod.node for pod in live):
            # Nobody of that run is left: those who wait now began another one while nobody looked.
            gang.run = Run(past={pod.uid for pod in gang.pods.values() if pod.terminal})
            return
        _count_those_gone(gang, status)
        if status.reservation is not None and status.reservation.expires > now:
            self._hold_again(gang, status.reservation)

    def _hold_again(self, gang: Gang, reservation: Reservation) -> None:
        """Assume the places that were held before the restart, for pods that still wait and still fit there."""
        waiting = {pod.name: pod for pod in gang.live() if not pod.node}
        snapshot = Snapshot(self._cluster)
        for place in reservation.placements:
            row = self._cluster.capacity.rows.get(place.node)
            for name in place.pods:
                pod = waiting.pop(name, None)
                if pod is None or row is None:
                    continue
                member = classify(snapshot, [pod])[pod.uid]
                if snapshot.fits(member, row):
                    snapshot.take(row, member, 1)
                    self._cluster.assume(pod.uid, place.node)
                    gang.bindings[pod.uid] = Binding(pod, place.node)
        if gang.bindings and gang.group is not None and gang.group.spec is not None:
            spec = gang.group.spec
            there = {pod.uid for pod in gang.live() if pod.node} | gang.bindings.keys()
            gang.transaction = Transaction(spec.minimum, role_minima(spec), there)
            gang.durable = True
            gang.durable_asked_at = reservation.expires - self._policy.repair_deadline_s

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


def _forget_what_was_told(gang: Gang) -> None:
    """A PodGroup that came or went is told of anew; what pods were told stays told."""
    gang.told = Told(members=gang.told.members, strangers=gang.told.strangers)


def _count_those_gone(gang: Gang, status: GroupStatus) -> None:
    """Let members of this run that ended and no longer exist count on.

    Which roles they had is not known any more; they are taken for those that are missing.
    """
    there = [pod for pod in gang.pods.values() if pod.uid not in gang.run.past]
    succeeded = sum(pod.phase is PodPhase.SUCCEEDED for pod in there)
    failed = sum(pod.phase is PodPhase.FAILED for pod in there)
    present = Counter(role_of(pod) for pod in there if pod.node and pod.phase is not PodPhase.FAILED)
    missing = [role for role, number in gang.run.role_minima.items() for _ in range(number - present[role])]
    gone = range(status.succeeded - succeeded)
    gang.run.succeeded = {f"gone/{number}": missing[number] if number < len(missing) else "" for number in gone}
    gang.run.failed = {f"gone/{number}" for number in range(status.failed - failed)}
