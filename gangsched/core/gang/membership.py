"""Which pod belongs to which gang: keeps the gangs' pods and declarations in step with what is seen.

Membership is what the pod says now (contract rule 10). A pod without a group is a gang of one while it waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings, clock, placeholders, recovery, rollback, runs, unrecorded
from gangsched.core.gang.dirty import Dirty
from gangsched.core.gang.foreign import Foreign
from gangsched.core.gang.gang import Gang, forget_run, forget_what_was_told
from gangsched.core.gang.validation import contradictions
from gangsched.core.gang.writes import Binding, BindState
from gangsched.core.objects.declaration import OWN_DIALECT, GroupKey
from gangsched.core.objects.events import Event, GroupsReplaced, PodsReplaced
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound


class Members:
    """`gangs` by key, and the key of every pod that is of interest; `dirty` names gangs to be brought up to date.

    `foreign` is what other systems' objects declare. `sent` are the nodes that a waiting pod's bindings named.
    """

    def __init__(self, cluster: Cluster, gangs: dict[GroupKey, Gang], avoidance: Avoidance, policy: Policy) -> None:
        self.dirty = Dirty()
        self.foreign = Foreign()
        self._cluster = cluster
        self.gangs = gangs
        self._policy = policy
        self._avoidance = avoidance
        self.sent: dict[str, set[str]] = {}
        self._rivals: list[Pod] = []
        self._key_of: dict[str, GroupKey] = {}

    def touch(self, uid: str) -> GroupKey | None:
        """Have the pod's gang brought up to date. Returns its key; None if the pod is in none."""
        gang = self.gang_of(uid)
        if gang is None:
            return None
        self.dirty.note(gang.key)
        return gang.key

    def gang_of(self, uid: str) -> Gang | None:
        """The gang of the pod, or of a member to come for which it stands; None if it is in none."""
        key = self._key_of.get(uid)
        if key is None:
            pod = self._cluster.pods.get(uid)
            if pod is None or pod.name or pod.declaration is None:
                return None
            key = GroupKey(pod.namespace, pod.declaration.group)
        return self.gangs.get(key)

    # Pods

    def unlisted(self, pods: Sequence[Pod]) -> list[str]:
        """The pods, by UID, that are known and not among all that there are."""
        known = {uid for uid, pod in self._cluster.pods.items() if pod.name}
        return sorted((known | self._key_of.keys()) - {pod.uid for pod in pods})

    def is_known(self, pod: Pod) -> bool:
        """Whether the pod is known in just this form."""
        return self._cluster.pods.get(pod.uid) == pod and self._key_of.get(pod.uid) == self.key(pod)

    def pod_seen(self, pod: Pod) -> None:
        """A pod exists in this form. Most of what a kubelet writes of a pod is not known here and changes nothing."""
        key = self.key(pod)
        before, known = self._key_of.get(pod.uid), self._cluster.pods.get(pod.uid)
        if known is not None and known.node and not pod.node:
            # A pod stays bound: the watch is behind an answer that told of a binding.
            pod = replace(pod, node=known.node, bound_at=known.bound_at)
        if before == key and known == pod:
            return
        old = self._cluster.set_pod(pod)
        if old is not None and old.phase is not pod.phase and self.ours(pod):
            self._note_kubelet(pod)
        if not self.ours(pod):
            self._cluster.nominate(pod)
        on_its_way = self._leave(pod.uid, before) if before is not None and before != key else None
        if key is None:
            if pod.terminal:
                self._cluster.remove_pod(pod.uid)
            return
        gang = self._gang(key)
        self._key_of[pod.uid] = key
        ours = self.ours(pod)
        comes = ours and pod.uid not in gang.pods and not (pod.terminating or pod.gated or pod.terminal)
        if comes and gang.record.run_start and not gang.record.ended and gang.deserted():
            gang.roster.note_emptied()
        gang.add(pod, stranger=not ours)
        if on_its_way is not None:
            bindings.carry_over(gang, on_its_way)
            gang.roster.inherit(pod.uid)
        if pod.node and old is not None and not old.node and ours:
            self._note_bound(pod, gang)
        self.dirty.note(key)

    def _note_kubelet(self, pod: Pod) -> None:
        """See whether the kubelet has just refused one of our pods, or started one."""
        if pod.rejected:
            name = pod.declaration.group if pod.declaration is not None else ""
            key = GroupKey(pod.namespace, name) if name else GroupKey(pod.namespace, pod.name, pod.uid)
            said = f"pod {pod.namespace}/{pod.name} failed when it was to be started"
            self._avoidance.refused(key, pod.uid, pod.node, said, by_kubelet=True)
        elif pod.phase is PodPhase.RUNNING:
            self._avoidance.ran(pod.node)

    def _note_bound(self, pod: Pod, gang: Gang) -> None:
        """See who bound the pod. A group of which members are bound without our asking may be partly bound."""
        if pod.node not in self.sent.pop(pod.uid, ()):
            self._rivals.append(pod)
        if pod.uid in gang.bindings:
            bindings.note_bound(gang, self._cluster, pod.uid, pod.node)
        else:
            gang.roster.inherit(pod.uid)

    def pod_gone(self, uid: str) -> None:
        """A pod exists no longer. Its end may have been seen just before, and its gang not been looked at since."""
        self.sent.pop(uid, None)
        key = self._key_of.get(uid)
        if key is not None:
            gang = self.gangs[key]
            pod = gang.pods.get(uid)
            if pod is not None:
                runs.note_ended(gang, pod)
            self._leave(uid, key)
            gang.roster.forget(uid)
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
        gang = self.gangs[key]
        gang.remove(uid)
        gang.told.forget_pod(uid)
        rollback.forget_pod(gang, uid)
        self.dirty.note(key)
        return bindings.take_out(gang, self._cluster, uid)

    def ours(self, pod: Pod) -> bool:
        """Whether the pod is to be scheduled by us."""
        return pod.scheduler in self._policy.scheduler_names

    def key(self, pod: Pod) -> GroupKey | None:
        """The gang that the pod belongs to, as a member or a stranger; None if it is in none."""
        if self._policy.namespace and pod.namespace != self._policy.namespace:
            return None
        if pod.declaration is not None:
            # What another scheduler's pod says in a dialect that others speak too is not meant for us.
            to_us = pod.declaration.source == OWN_DIALECT and not pod.terminal
            return GroupKey(pod.namespace, pod.declaration.group) if self.ours(pod) or to_us else None
        key = GroupKey(pod.namespace, pod.name, pod.uid)
        waits = self.ours(pod) and not pod.terminal and (not pod.node or self._key_of.get(pod.uid) == key)
        return key if waits else None

    def group_seen(self, group: Group, *, now: float, synced: bool) -> None:
        """A PodGroup exists in this form. Its status is ours: it is read only when it is first seen."""
        if self._policy.namespace and group.key.namespace != self._policy.namespace:
            return
        gang = self._gang(group.key)
        old = gang.group
        if old is not None and old.uid != group.uid:
            self.group_gone(group.key)
            old = None
        gang.declare(group)
        gang.look_at_once()
        if old is not None and replace(group, status=old.status, resource_version=old.resource_version) == old:
            # What comes back of our own status writes, the most of all, changes nothing.
            return
        self.dirty.note(group.key)
        if old is None:
            forget_what_was_told(gang)
            if synced:
                recovery.adopt(gang, self._cluster, policy=self._policy, now=now)
        elif (old.spec, old.error) != (group.spec, group.error):
            clock.begin_anew(gang)

    def group_gone(self, key: GroupKey) -> None:
        """A PodGroup exists no longer, and its run neither unless its pods declare it; bound members stay (rule 10)."""
        gang = self.gangs.get(key)
        if gang is None or gang.group is None:
            return
        gang.look_at_once()
        # What declares the gang does so without a PodGroup that was made of it.
        goes_on = gang.group.made and bool(gang.record.scheduled_at) and any(map(_declares, gang.live()))
        gang.declare(None)
        if gang.vacant():
            # What was begun beside them cannot become whole without them: whoever is bound stays (rule 10).
            placeholders.vacate(gang, self._cluster)
            gang.drop_quorum()
            gang.roster.inherit_only()
        if not goes_on:
            forget_run(gang)
        if gang.undo is not None and gang.undo.restart is not None:
            rollback.end(gang)
        gang.durability.drop()
        forget_what_was_told(gang)
        self.dirty.note(key)

    # After a restart

    def adopt(self, gang: Gang, now: float) -> None:
        """Everything has been listed once: take over what the status of the gang's PodGroup remembers."""
        # Whom a standby has seen being bound it has not looked at since: who began a quorum is found out anew.
        gang.roster.inherit_only()
        recovery.adopt(gang, self._cluster, policy=self._policy, now=now)
        unrecorded.find_begun(gang, foreign=self.foreign, policy=self._policy, now=now)

    def note_sent(self, uid: str, node: str) -> None:
        """A binding of the pod to this node is asked for."""
        self.sent.setdefault(uid, set()).add(node)

    def take_rivals(self) -> list[Pod]:
        """Pods of ours that somebody else has bound since the last call."""
        rivals, self._rivals = self._rivals, []
        return rivals

    def file(self, uid: str) -> list[GroupKey]:
        """Know to which gang the pod belongs, and tell nobody. Returns the gangs it was in and is in."""
        before, pod = self._key_of.pop(uid, None), self._cluster.pods.get(uid)
        if pod is None or (key := self.key(pod)) is None:
            return [] if before is None else [before]
        self._key_of[uid] = key
        self._gang(key).add(pod)
        return [key] if before is None else [*{before: None, key: None}]

    def facts(self) -> list[Event]:
        """What was seen, as events for a successor, and which pods the server has called bound before the watch has."""
        bound = [
            PodBound(uid, binding.node)
            for gang in self.gangs.values()
            for uid, binding in gang.bindings.items()
            if binding.state is BindState.BOUND
        ]
        return [
            GroupsReplaced(tuple(gang.group for gang in self.gangs.values() if gang.group is not None)),
            *self.foreign.facts(),
            PodsReplaced(tuple(pod for pod in self._cluster.pods.values() if pod.name)),
            *bound,
        ]

    def validate(self) -> list[str]:
        """Contradictions between gangs, pods and claims, and what is remembered of pods that are gone."""
        return [*contradictions(self)]

    def _gang(self, key: GroupKey) -> Gang:
        gang = self.gangs.get(key)
        if gang is None:
            gang = self.gangs[key] = Gang(key)
        return gang

    def put(self, gang: Gang) -> None:
        """This is the gang of its key from now on."""
        self.gangs[gang.key] = gang

    def finished(self, gang: Gang) -> bool:
        """Whether nothing speaks of the gang any more, or it was a plain pod that is bound."""
        if gang.group is not None or gang.bindings:
            return False
        return not (gang.pods or gang.strangers) or (gang.plain and all(pod.node for pod in gang.pods.values()))

    def drop(self, key: GroupKey) -> None:
        """Forget a finished gang."""
        gang = self.gangs.pop(key, None)
        if gang is not None:
            for uid in (*gang.pods, *gang.strangers):
                self._key_of.pop(uid, None)


def _declares(pod: Pod) -> bool:
    """Whether the pod says its gang's terms, or whose object does."""
    said = pod.declaration
    return said is not None and bool(said.roles or said.min_member or said.objects)
