"""Assigns pods to gangs, and keeps the gangs' pods and declarations up to date with the observed objects.

Membership is what the pod says now (contract rule 10). A pod without a group is a gang of one while it waits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.gang import bindings, clock, placeholders, recovery, rollback, runs
from gangsched.core.gang.gang import Gang, forget_written
from gangsched.core.gang.steps import Step, forget_run, take
from gangsched.core.gang.writes import Binding, BindState
from gangsched.core.membership import changed_groups, kubelets, unrecorded
from gangsched.core.membership.dirty import Dirty
from gangsched.core.membership.installations import Installations, concerns, group_of
from gangsched.core.membership.undeclared import Undeclared
from gangsched.core.membership.validation import contradictions
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event, GroupsReplaced, PodsReplaced
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound


class Members:
    """All gangs: `gangs` by key, and the key of every pod that matters; `dirty` holds the gangs to be reconciled.

    `foreign` holds what other systems' objects and workloads declare, `undeclared` which pods follow a workload,
    `installations` which groups are not ours. `sent`: the nodes in a waiting pod's bindings.
    """

    def __init__(
        self, cluster: Cluster, gangs: dict[GroupKey, Gang], avoidance: Avoidance, policy: Policy, dirty: Dirty
    ) -> None:
        self.dirty = dirty
        self.foreign = Foreign()
        self.undeclared = Undeclared(cluster, self.foreign, policy)
        self.installations = Installations(policy)
        self._cluster = cluster
        self.gangs = gangs
        self._policy = policy
        self._avoidance = avoidance
        self.failures = avoidance.failures
        self.sent: dict[str, set[str]] = {}
        self._rivals: list[Pod] = []
        self._key_of: dict[str, GroupKey] = {}

    def touch(self, uid: str) -> GroupKey | None:
        """Mark the pod's gang dirty. Returns its key; None if the pod is in none."""
        gang = self.gang_of(uid)
        if gang is not None:
            self.dirty.note(gang.key)
        return gang.key if gang is not None else None

    def gang_of(self, uid: str) -> Gang | None:
        """The gang of the pod or placeholder; None if it is in none."""
        key = self._key_of.get(uid)
        if key is None:
            pod = self._cluster.pods.get(uid)
            if pod is None or pod.name or pod.declaration is None:
                return None
            key = group_of(pod)
        return self.gangs.get(key)

    # Pods

    def unlisted(self, pods: Sequence[Pod]) -> list[str]:
        """The known pods, by UID, that are missing from this complete list."""
        known = {uid for uid, pod in self._cluster.pods.items() if pod.name}
        return sorted((known | self._key_of.keys() | self.installations.pods().keys()) - {pod.uid for pod in pods})

    def is_known(self, pod: Pod) -> bool:
        """Whether the pod is known in exactly this form."""
        pod = self.undeclared.declared(pod)
        return self._cluster.pods.get(pod.uid) == pod and self._key_of.get(pod.uid) == self.key(pod)

    def pod_seen(self, pod: Pod) -> None:
        """Note the pod's current form. Most updates by a kubelet touch no field that is read and change nothing."""
        pod = self.undeclared.declared(pod)
        key = self.key(pod)
        before, known = self._key_of.get(pod.uid), self._cluster.pods.get(pod.uid)
        if known is not None and known.node and not pod.node:
            # A pod stays bound: the watch lags behind the result of its binding.
            pod = replace(pod, node=known.node, bound_at=known.bound_at)
        if before == key and known == pod:
            return
        old = self._cluster.set_pod(pod)
        ours = self.ours(pod)
        self.installations.pod_seen(pod, ours=ours)
        if not ours:
            self._cluster.nominate(pod)
        else:
            kubelets.note(self._avoidance, old, pod)
        sent = self.leave(pod.uid, before) if before is not None and before != key else None
        self.undeclared.note(pod)
        if key is None:
            if pod.node:
                self.sent.pop(pod.uid, None)
            if pod.terminal:
                self._forget(pod.uid)
            return
        gang = self._gang(key)
        self._key_of[pod.uid] = key
        is_first = ours and not gang.observed.pods
        comes = ours and pod.uid not in gang.observed.pods and not (pod.terminating or pod.gated or pod.terminal)
        if comes and gang.record.run_start and not gang.record.ended and gang.deserted():
            gang.roster.note_emptied()
        gang.observed.note_pod(pod, foreign=not ours)
        if before is not None and before != key and old is not None:
            changed_groups.continue_part(self.gangs[before], gang, old)
            if pod.node or sent is not None:
                changed_groups.continue_in_tree(self.gangs[before], gang, pod)
        if sent is not None:
            bindings.carry_over(gang, sent)
            gang.roster.inherit(pod.uid)
        if pod.node and old is not None and not old.node and ours:
            self._note_bound(pod, gang)
        self.dirty.note(key)
        if is_first:
            for other in [*self.installations.beside(key).values()]:
                self.pod_seen(self._cluster.pods.get(other.uid, other))

    def _note_bound(self, pod: Pod, gang: Gang) -> None:
        """Note who bound the pod. A group with members bound by another scheduler may be partly bound."""
        if pod.node not in self.sent.pop(pod.uid, ()):
            self._rivals.append(pod)
        if pod.uid in gang.operations.bindings:
            bindings.note_bound(gang, self._cluster, pod.uid, pod.node)
        else:
            gang.roster.inherit(pod.uid)

    def pod_gone(self, uid: str) -> None:
        """Note that a pod no longer exists; if it had ended, its gang may not have been reconciled since."""
        self.sent.pop(uid, None)
        key = self._key_of.get(uid)
        if key is not None:
            gang = self.gangs[key]
            if uid in gang.observed.pods:
                runs.note_ended(gang, gang.observed.pods[uid])
            self.leave(uid, key)
        self.installations.pod_gone(uid)
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        """Forget a pod that is gone, or that has ended and was in no gang."""
        self._cluster.remove_pod(uid)
        self.undeclared.forget(uid)

    def set_aside(self, uid: str) -> None:
        """Remove a pod that the API server calls gone or bound from its gang until the watch shows its state."""
        pod = self._cluster.pods.get(uid)
        if uid in self._key_of and pod is not None and not (pod.node or pod.terminating):
            self.leave(uid, self._key_of[uid])

    def leave(self, uid: str, key: GroupKey) -> Binding | None:
        """Remove the pod from its gang. Returns its binding if that has been sent and cannot be recalled."""
        del self._key_of[uid]
        gang = self.gangs[key]
        was_last = gang.observed.pods.keys() == {uid}
        gang.observed.forget_pod(uid)
        gang.roster.forget(uid)
        gang.written.forget_pod(uid)
        rollback.forget_pod(gang, uid)
        self.dirty.note(key)
        if not gang.observed.pods:
            self.installations.doubt(key)
        if was_last:
            for other in [pod for pod in gang.observed.foreign_pods.values() if self.key(pod) != key]:
                self.leave(other.uid, key)
        return bindings.take_out(gang, self._cluster, uid)

    def ours(self, pod: Pod) -> bool:
        """Whether gangsched schedules the pod."""
        return pod.scheduler in self._policy.scheduler_names

    def key(self, pod: Pod) -> GroupKey | None:
        """The gang that the pod belongs to, as a member or a foreign pod; None if it is in none."""
        key = group_of(pod)
        if self._policy.namespace not in ("", pod.namespace) or self.installations.whose(key):
            return None
        if pod.declaration is not None:
            counts = self.ours(pod) or (not pod.terminal and concerns(pod.declaration, self.gangs.get(key)))
        else:
            counts = self.ours(pod) and not pod.terminal and (not pod.node or self._key_of.get(pod.uid) == key)
        return key if counts else None

    # PodGroups

    def group_seen(self, group: Group, *, now: float, synced: bool) -> None:
        """Note the PodGroup's current form. State is restored from its status only when it is first seen."""
        outside = self._policy.namespace not in ("", group.key.namespace)
        if outside or self.installations.group_seen(group, self.gangs.get(group.key)):
            return
        gang = self._gang(group.key)
        if gang.observed.group is not None and gang.observed.group.uid != group.uid:
            self.group_gone(group.key)
        old = gang.observed.group
        gang.observed.declare(group)
        same = old is not None and replace(group, status=old.status, resource_version=old.resource_version) == old
        if same and not gang.written.overwritten_in(group.status):
            # Most changes are gangsched's own status writes, which change nothing.
            return
        gang.allow_reconcile()
        self.dirty.note(group.key)
        if old is None:
            forget_written(gang)
            if synced:
                recovery.resume(gang, self._cluster, foreign=self.foreign, policy=self._policy, now=now)
        elif (old.spec, old.error) != (group.spec, group.error):
            clock.reset_back_off(gang)
            self.failures.forget(group.key)

    def group_gone(self, key: GroupKey) -> None:
        """Note that a PodGroup is gone. Its run ends unless its pods declare it; bound members stay (rule 10)."""
        self.installations.group_gone(key)
        gang = self.gangs.get(key)
        if gang is None or gang.observed.group is None:
            return
        gang.allow_reconcile()
        # A PodGroup that gangsched made only repeats what the pods declare.
        says = (pod.declaration for pod in gang.live() if pod.declaration is not None)
        goes_on = gang.observed.group.made and bool(gang.record.scheduled_at) and any(said.complete for said in says)
        gang.observed.declare(None)
        if gang.operations.placeholders():
            # A quorum with placeholders cannot become whole without them: its bound members stay (rule 10).
            placeholders.release(gang, self._cluster)
            take(gang, Step.QUORUM_DROPPED)
            gang.roster.inherit_only()
        if not goes_on:
            forget_run(gang)
        if gang.operations.rollback is not None and gang.operations.rollback.restart is not None:
            rollback.end(gang)
        gang.durability.drop()
        forget_written(gang)
        self.dirty.note(key)

    # After a restart

    def resume(self, gang: Gang, now: float) -> None:
        """After the first complete lists: restore the gang from its PodGroup's status, and infer the rest."""
        # A standby does not examine members that are bound meanwhile, so find those that began a quorum again.
        gang.roster.inherit_only()
        recovery.resume(gang, self._cluster, foreign=self.foreign, policy=self._policy, now=now)
        unrecorded.find_begun(gang, foreign=self.foreign, policy=self._policy, now=now)

    def note_sent(self, uid: str, node: str) -> None:
        """Note that a binding of the pod to this node is sent."""
        self.sent.setdefault(uid, set()).add(node)

    def take_rivals(self) -> list[Pod]:
        """Pods of ours that another scheduler has bound since the last call of this method."""
        rivals, self._rivals = self._rivals, []
        return rivals

    def file(self, uid: str) -> list[GroupKey]:
        """Update which gang the pod is in, without further effects. Returns the gangs that it was in and is in."""
        before, pod = self._key_of.pop(uid, None), self._cluster.pods.get(uid)
        self.undeclared.note_or_forget(uid)
        key = self.key(pod) if pod is not None else None
        if pod is not None and key is not None:
            self._key_of[uid] = key
            self._gang(key).observed.note_pod(pod)
        return [each for each in dict.fromkeys((before, key)) if each is not None]

    def facts(self) -> list[Event]:
        """Everything observed, as events for a successor, with bindings that the watch does not show yet."""
        gangs = self.gangs.values()
        bound = [each for gang in gangs for each in gang.operations.bindings.values() if each.state is BindState.BOUND]
        groups = [gang.observed.group for gang in gangs if gang.observed.group is not None]
        pods = {**self.installations.pods(), **self._cluster.pods}
        return [
            GroupsReplaced((*groups, *self.installations.groups())),
            *self.foreign.facts(),
            PodsReplaced(tuple(pod for pod in pods.values() if pod.name)),
            *(PodBound(binding.pod.uid, binding.node) for binding in bound),
        ]

    def validate(self, beside: Collection[str] = ()) -> list[str]:
        """Contradictions between gangs, pods and claims, except claims `beside`, and leftovers of gone pods."""
        return [*contradictions(self, beside)]

    def _gang(self, key: GroupKey) -> Gang:
        if key not in self.gangs:
            self.gangs[key] = Gang(key)
        return self.gangs[key]

    def put(self, gang: Gang) -> None:
        """Replace the gang of this key."""
        self.gangs[gang.key] = gang

    def finished(self, gang: Gang) -> bool:
        """Whether nothing refers to the gang any more, or it was a plain pod that is bound."""
        if gang.observed.group is not None or gang.operations.bindings:
            return False
        return gang.observed.empty or (gang.plain and all(pod.node for pod in gang.observed.pods.values()))

    def drop(self, key: GroupKey) -> None:
        """Forget a finished gang."""
        gang = self.gangs.pop(key, None)
        for uid in (*gang.observed.pods, *gang.observed.foreign_pods) if gang is not None else ():
            self._key_of.pop(uid, None)
