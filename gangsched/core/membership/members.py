"""Assigns pods to gangs, and keeps the gangs' pods and declarations up to date with the observed objects.

Membership is what the pod says now (contract rule 10). A pod without a group is a gang of one while it waits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.gang import placeholders
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.mail import Declared, Entered, Former, Joined, Left, News, NodeShown, Renewed
from gangsched.core.gang.news import former_of
from gangsched.core.membership import kubelets
from gangsched.core.membership.by_workload import Undeclared
from gangsched.core.membership.installations import Installations, concerns, group_of
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import WithdrawBinding
from gangsched.core.objects.events import Event, GroupsReplaced, PodsReplaced
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound


class Dirty(Collection[GroupKey], Protocol):
    """The gangs that are to be reconciled, in order; see `core.queueing.order`."""

    def note(self, *keys: GroupKey) -> None:
        """Add these gangs."""

    def forget_all(self) -> None:
        """Remove all gangs."""


class Members:
    """All gangs: `gangs` by key, and the key of every pod that matters; `dirty` holds the gangs to be reconciled.

    It stores what was observed and puts what that means for a gang into the gang's inbox (`core.gang.mail`), from when
    gangs are `entered` on; those `entering` have still to start from their records. `foreign` holds what other systems'
    objects and workloads declare, `undeclared` which pods follow a workload, `installations` which groups are not ours.
    `declared` counts what PodGroups have said that they had not said before.
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
        self.entered = False
        self.declared = 0
        self.entering: dict[GroupKey, None] = {}
        self._rivals: list[Pod] = []
        self._given_up: list[tuple[GroupKey, list[WithdrawBinding]]] = []
        self._key_of: dict[str, GroupKey] = {}

    def tell(self, gang: Gang, news: News) -> None:
        """Put the news into the gang's inbox, and mark the gang dirty."""
        self.declared += isinstance(news, Declared)
        if self.entered:
            gang.inbox.put(news)
            if isinstance(news, Entered):
                self.entering[gang.key] = None
        self.dirty.note(gang.key)

    def touch(self, uid: str) -> None:
        """Mark the pod's gang dirty, if it is in one."""
        gang = self.gang_of(uid)
        if gang is not None:
            self.dirty.note(gang.key)

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
        known = {uid for uid, pod in self._cluster.pods.items() if pod.name} | self._key_of.keys()
        return sorted((known | self.installations.pods().keys()) - {pod.uid for pod in pods})

    def is_known(self, pod: Pod) -> bool:
        """Whether the pod is known in this form; if only its lifetime is new, that is noted and no gang gets dirty."""
        pod = self.undeclared.declared(pod)
        return self._key_of.get(pod.uid) == self.key(pod) and kubelets.renews(self._cluster, self.gang_of(pod.uid), pod)

    def pod_seen(self, pod: Pod) -> None:
        """Note the pod's current form. Most updates by a kubelet touch no field that matters, or its lifetime alone."""
        pod = self.undeclared.declared(pod)
        key = self.key(pod)
        before, known = self._key_of.get(pod.uid), self._cluster.pods.get(pod.uid)
        if known is not None and known.node and not pod.node:
            # A pod stays bound: the watch lags behind the result of its binding.
            pod = replace(pod, node=known.node, bound_at=known.bound_at)
        if before == key and kubelets.renews(self._cluster, self.gang_of(pod.uid), pod):
            return
        old, ours = self._cluster.set_pod(pod), self.ours(pod)
        if not ours:
            self._cluster.nominate(pod)
        else:
            kubelets.note(self._avoidance, old, pod)
        former = None
        if key is None or before != key or old is None or not old.belongs_as(pod) or self.installations.beside(key):
            former = self._moved(pod, before, key, ours=ours)
        is_echo = ours and before == key and bool(pod.node) and self._cluster.flights.are_shown_by(old, pod)
        sent_to = self._cluster.flights.ended(pod.uid) if pod.node else set()
        if key is None:
            if pod.terminal:
                self._forget(pod.uid)
            return
        gang = self._gang(key)
        self._key_of[pod.uid] = key
        is_first = ours and not gang.observed.pods
        comes = ours and pod.uid not in gang.observed.pods and not (pod.terminating or pod.gated or pod.terminal)
        if comes and gang.record.run_start and gang.deserted():
            self.tell(gang, Renewed())
        gang.observed.note_pod(pod, foreign=not ours)
        if is_echo and not gang.plain:
            return
        if former is not None and old is not None:
            self.tell(gang, Joined(pod, former, role_of(old)))
        if pod.node and old is not None and not old.node and ours:
            if pod.node not in sent_to:
                self._rivals.append(pod)
            self.tell(gang, NodeShown(pod.uid, pod.node))
        self.dirty.note(key)
        if is_first:
            for other in [*self.installations.beside(key).values()]:
                self.pod_seen(self._cluster.pods.get(other.uid, other))

    def _moved(self, pod: Pod, before: GroupKey | None, key: GroupKey | None, *, ours: bool) -> Former | None:
        """Note where the pod belongs now. Returns what is under way in the gang that it leaves, if it leaves one."""
        self.installations.pod_seen(pod, ours=ours)
        former = None
        if before is not None and before != key:
            former = former_of(self.gangs[before], pod.uid)
            self.leave(pod.uid, before)
        self.undeclared.note(pod)
        return former

    def pod_gone(self, uid: str) -> None:
        """Note that a pod no longer exists; if it had ended, its gang may not have been reconciled since."""
        self._cluster.flights.ended(uid)
        key = self._key_of.get(uid)
        if key is not None:
            self.leave(uid, key, gone=True)
        self.installations.pod_gone(uid)
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        """Forget a pod that is gone, or that has ended and was in no gang."""
        self._cluster.remove_pod(uid)
        self._cluster.flights.ended(uid)
        self.undeclared.forget(uid)

    def set_aside(self, uid: str) -> None:
        """Remove a pod that the API server calls gone or bound from its gang until the watch shows its state."""
        pod = self._cluster.pods.get(uid)
        if uid in self._key_of and pod is not None and not (pod.node or pod.terminating):
            self.leave(uid, self._key_of[uid])

    def leave(self, uid: str, key: GroupKey, *, gone: bool = False) -> None:
        """Remove the pod from its gang; `gone`: it no longer exists. Its place is given up unless it may be there."""
        del self._key_of[uid]
        gang = self.gangs[key]
        was_last = gang.observed.pods.keys() == {uid}
        pod = gang.observed.forget_pod(uid)
        if self._cluster.flights.of(uid) is None:
            self._cluster.forget(uid)
        self.tell(gang, Left(pod, gone))
        if not gang.observed.pods:
            self.installations.doubt(key)
        if was_last:
            for other in [pod for pod in gang.observed.foreign_pods.values() if self.key(pod) != key]:
                self.leave(other.uid, key)

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

    def group_seen(self, group: Group) -> None:
        """Note the PodGroup's current form. State is restored from its status only when it is first seen."""
        outside = self._policy.namespace not in ("", group.key.namespace)
        if outside or self.installations.group_seen(group, self.gangs.get(group.key)):
            return
        gang = self._gang(group.key)
        old = gang.observed.group
        if old is not None and old.uid != group.uid:
            self.installations.doubt(group.key)
        gang.observed.declare(group)
        same = old is not None and replace(group, status=old.status, resource_version=old.resource_version) == old
        if same and not gang.written.overwritten_in(group.status):
            # Most changes are gangsched's own status writes, which change nothing.
            return
        self.tell(gang, Declared(old, group))
        if old is not None and old.uid == group.uid and (old.spec, old.error) != (group.spec, group.error):
            self.failures.forget(group.key)

    def group_gone(self, key: GroupKey) -> None:
        """Note that a PodGroup is gone. Its run ends unless its pods declare it; bound members stay (rule 10)."""
        self.installations.group_gone(key)
        gang = self.gangs.get(key)
        if gang is None or gang.observed.group is None:
            return
        self.tell(gang, Declared(gang.observed.group, None))
        gang.observed.declare(None)

    # After a restart

    def enter_all(self) -> None:
        """After the first complete lists: from now on gangs are decided about, each beginning with its record."""
        self.entered = True
        for gang in self.gangs.values():
            self.tell(gang, Entered())

    def take_entering(self, key: GroupKey) -> bool:
        """Whether the gang has still to start from its record; it does so now, or is gone."""
        return self.entering.pop(key, False) is None

    def take_rivals(self) -> list[Pod]:
        """Pods of ours that another scheduler has bound since the last call of this method."""
        rivals, self._rivals = self._rivals, []
        return rivals

    def facts(self) -> list[Event]:
        """Everything observed, as events for a successor, with bindings that the watch does not show yet."""
        gangs, flights = self.gangs.values(), self._cluster.flights
        groups = [gang.observed.group for gang in gangs if gang.observed.group is not None]
        pods = {**self.installations.pods(), **self._cluster.pods}
        bound = [PodBound(uid, flight.node) for uid in flights if (flight := flights.of(uid)) and flight.confirmed]
        return [
            GroupsReplaced((*groups, *self.installations.groups())),
            *self.foreign.facts(),
            PodsReplaced(tuple(pod for pod in pods.values() if pod.name)),
            *bound,
        ]

    def _gang(self, key: GroupKey) -> Gang:
        if (gang := self.gangs.get(key)) is None:
            gang = self.gangs[key] = Gang(key)
        return gang

    def renew(self, gang: Gang) -> None:
        """Replace the gang of this key, of whose decisions nothing is left but the bindings on their way."""
        old, self.gangs[gang.key] = self.gangs[gang.key], gang
        for uid in filter(placeholders.is_one, [*self._cluster.pods] if old.operations.placeholders_made else ()):
            if self.gang_of(uid) is gang:
                self._cluster.remove_pod(uid)
        for pod in gang.observed.pods.values():
            self._cluster.count_in_flight(pod)

    def give_up(self, gang: Gang, owner: str) -> None:
        """Drop the gang, whose group belongs to the installation of this schedulerName from now on."""
        flights = self._cluster.flights
        withdrawn = [WithdrawBinding(uid, node) for uid in gang.observed.pods if (node := flights.awaited(uid))]
        self.renew(Gang(gang.key, gang.observed))
        self.drop(gang.key)
        self.installations.give_up(gang.key, owner, gang.observed.group, gang.observed.pods.values())
        self.dirty.note(gang.key)
        self._given_up.append((gang.key, withdrawn))

    def take_given_up(self) -> list[tuple[GroupKey, list[WithdrawBinding]]]:
        """The gangs that were dropped since the last call, which must not wait for anything any more.

        Their bindings are withdrawn, so that those not sent yet are not sent.
        """
        given_up, self._given_up = self._given_up, []
        return given_up

    def take_over(self, key: GroupKey) -> None:
        """Make the gang of a group that has become ours; it starts from its record."""
        pods = [*self.installations.beside(key).values()]
        group = self.installations.make_ours(key)
        if group is not None:
            self.group_seen(group)
        for pod in pods:
            self.pod_seen(self._cluster.pods.get(pod.uid, pod))
        if key in self.gangs:
            self.tell(self.gangs[key], Entered())

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
