"""Tracks the groups that belong to other installations of gangsched.

Such a group has no gang here: no status, no clock, no Events and no reservation of ours. Its PodGroup and its pods,
some of which may carry a schedulerName of ours, are kept here until the group becomes ours
(`core.intake`). Pods of other schedulers are kept for every group, because they help decide which
installation owns it (`core.declarations.installation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from gangsched.core.declarations.installation import Contenders, owner_of
from gangsched.core.declarations.trees import TREE_KINDS
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import OWN_DIALECT, Declaration, GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy

_NO_PODS: Mapping[str, Pod] = {}


def group_of(pod: Pod) -> GroupKey:
    """The group that the pod names, or the gang of one that it forms by itself."""
    if pod.declaration is not None:
        return GroupKey(pod.namespace, pod.declaration.group)
    return GroupKey(pod.namespace, pod.name, pod.uid)


def is_heard(pod: Pod) -> bool:
    """Whether a scheduler has bound the pod or set a condition on it."""
    return bool(pod.node or pod.condition_reason)


def concerns(declaration: Declaration, gang: Gang | None) -> bool:
    """Whether a pod of another scheduler with this declaration is told that it is no member of the gang of that name.

    Other schedulers share most dialects: there, what their pods say is not meant for gangsched. A native group, or a
    tree of them, is meant for one scheduler, so it is told while it has pods of gangsched's too.
    """
    if declaration.source in TREE_KINDS:
        return gang is not None and (declaration.source, "") in (gang.observed.traits.objects or ())
    return declaration.source == OWN_DIALECT


class Elsewhere(Struct, frozen=True):
    """A group of another installation: its owner's schedulerName (`owner`), its PodGroup, and the pods that name it."""

    key: GroupKey
    owner: str
    group: Group | None
    pods: Sequence[Pod]


class Installations:
    """Pods `beside` the gangs by the group they name, PodGroups that are not ours, and the owner of each such group.

    A group is in doubt when something has changed that decides which installation owns it. `changed` are pods, by UID,
    of which one of another scheduler appeared or changed, or which disappeared, until they are taken. `_left` are
    the groups that a pod named until it disappeared, and the native groups that it named in its spec. `_heard` counts,
    by schedulerName, the pods kept here to which a scheduler has reacted.
    """

    def __init__(self, policy: Policy) -> None:
        self._names = frozenset(policy.scheduler_names)
        self._namespace = policy.namespace
        self._elsewhere: dict[GroupKey, str] = {}
        self._beside: dict[GroupKey, dict[str, Pod]] = {}
        self._named: dict[str, GroupKey] = {}
        self._groups: dict[GroupKey, Group] = {}
        self._doubted: dict[GroupKey, None] = {}
        self._contenders: dict[GroupKey, Contenders] = {}
        self._heard: Counter[str] = Counter()
        self._left: dict[GroupKey, None] = {}
        self.changed: dict[str, None] = {}

    def whose(self, key: GroupKey) -> str:
        """The schedulerName of the installation that owns the group; empty if the group is ours."""
        return self._elsewhere.get(key, "")

    def beside(self, key: GroupKey) -> Mapping[str, Pod]:
        """The pods, by UID, that name the group and are not in its gang."""
        return self._beside.get(key, _NO_PODS)

    def group(self, key: GroupKey) -> Group | None:
        """The PodGroup, if it belongs to another installation."""
        return self._groups.get(key)

    def find(self, namespace: str, name: str) -> Elsewhere | None:
        """The group of this name, or of our pod of this name, if it belongs to another installation."""
        key = GroupKey(namespace, name)
        if key not in self._elsewhere:
            own = (pod for pod in self.pods().values() if (pod.namespace, pod.name) == (namespace, name))
            key = next((group_of(pod) for pod in own if pod.scheduler in self._names), key)
        owner = self._elsewhere.get(key)
        return Elsewhere(key, owner, self._groups.get(key), [*self.beside(key).values()]) if owner else None

    def groups(self) -> Iterable[Group]:
        """The PodGroups of other installations."""
        return self._groups.values()

    def pods(self) -> Mapping[str, Pod]:
        """All pods that are kept here, by UID."""
        return {uid: pod for pods in self._beside.values() for uid, pod in pods.items()}

    def pod(self, uid: str) -> Pod | None:
        """The pod of this UID; None if it is not kept here."""
        key = self._named.get(uid)
        return self._beside[key][uid] if key is not None else None

    def hears(self, scheduler: str) -> bool:
        """Whether a scheduler of this name has reacted to one of the pods that are kept here."""
        return self._heard[scheduler] > 0

    # Events

    def pod_seen(self, pod: Pod, *, ours: bool) -> None:
        """Note that the pod exists in this form; `ours`: it has a schedulerName of ours."""
        declared = pod.declaration is not None and self._namespace in ("", pod.namespace)
        key = group_of(pod) if declared else None
        in_gang = ours and key not in self._elsewhere
        before = self._named.get(pod.uid)
        if before is not None and (before != key or in_gang):
            self.pod_gone(pod.uid)
        if key is None:
            return
        if not in_gang:
            self._keep(key, pod)
            if not ours:
                self.changed[pod.uid] = None
        if not in_gang or key in self._beside:
            if key in self._contenders:
                self._contenders[key].note(pod)
            self.doubt(key)

    def pod_gone(self, uid: str) -> None:
        """Drop a pod that is gone or has joined a gang."""
        key = self._named.pop(uid, None)
        if key is None:
            return
        pod = self._beside[key].pop(uid)
        self._count(pod, -1)
        if pod.declaration is not None and pod.declaration.native_group:
            self._left |= {key: None, GroupKey(pod.namespace, pod.declaration.native_group): None}
        if not self._beside[key]:
            del self._beside[key]
            self._contenders.pop(key, None)
        self.changed[uid] = None
        self.doubt(key)

    def _keep(self, key: GroupKey, pod: Pod) -> None:
        kept = self._beside.setdefault(key, {})
        if pod.uid in kept:
            self._count(kept[pod.uid], -1)
        kept[pod.uid] = pod
        self._named[pod.uid] = key
        self._count(pod, 1)

    def _count(self, pod: Pod, sign: int) -> None:
        """Count whether a scheduler has reacted to a pod that is kept from now on (1), or no longer (-1)."""
        if is_heard(pod):
            self._heard[pod.scheduler] += sign
            if not self._heard[pod.scheduler]:
                del self._heard[pod.scheduler]

    def group_seen(self, group: Group, gang: Gang | None) -> bool:
        """Note that the PodGroup exists in this form. Returns whether another installation is known to own it."""
        key = group.key
        if gang is None and key not in self._elsewhere and (owner := self._owner(key, None, group)) not in self._names:
            self._elsewhere[key] = owner
        if key in self._elsewhere:
            self._groups[key] = group
            self.doubt(key)
            return True
        old = gang.observed.group if gang is not None else None
        if old is None or (old.scheduler, old.status.scheduler) != (group.scheduler, group.status.scheduler):
            self.doubt(key)
        return False

    def group_gone(self, key: GroupKey) -> None:
        """Note that the PodGroup no longer exists."""
        self._groups.pop(key, None)
        self.doubt(key)

    def doubt(self, key: GroupKey) -> None:
        """Note that the owner of the group may have changed."""
        self._doubted[key] = None

    def take_changed(self) -> str:
        """Remove and return the UID of the first of the pods that have changed; there must be one."""
        uid = next(iter(self.changed))
        del self.changed[uid]
        return uid

    def take_doubted(self) -> list[GroupKey]:
        """The groups that came into doubt since the last call of this method."""
        doubted, self._doubted = [*self._doubted], {}
        return doubted

    def take_left(self) -> list[GroupKey]:
        """The groups beside which there is a pod less that names a native group, since the last call of this method."""
        left, self._left = [*self._left], {}
        return left

    def forget_gone(self) -> None:
        """Forget which pods of other schedulers are gone, where nobody reads it yet, as on a standby."""
        self._left.clear()
        self.changed = {uid: None for uid in self.changed if uid in self._named}

    # Ownership

    def owner(self, key: GroupKey, gang: Gang | None) -> str:
        """The schedulerName of the installation that should own the group, by all that is known."""
        group = gang.observed.group if gang is not None and gang.observed.group is not None else self._groups.get(key)
        return self._owner(key, gang, group)

    def _owner(self, key: GroupKey, gang: Gang | None, group: Group | None) -> str:
        members, beside = gang.observed.pods if gang is not None else _NO_PODS, self.beside(key)
        if members and not beside:
            return next(iter(members.values())).scheduler
        contenders = self._contenders.setdefault(key, Contenders()) if beside else Contenders()
        return owner_of(
            contenders.first(
                lambda: chain(members.values(), beside.values()), names=lambda uid: uid in members or uid in beside
            ),
            annotated=group.scheduler if group is not None else "",
            kept_by=group.status.scheduler if group is not None else "",
            ours=self._names,
        )

    def serves(self, name: str) -> bool:
        """Whether pods with this schedulerName are ours."""
        return name in self._names

    def give_up(self, key: GroupKey, owner: str, group: Group | None, pods: Iterable[Pod]) -> None:
        """Assign the group to that installation, with these pods beside those that are already kept here."""
        self._elsewhere[key] = owner
        if group is not None:
            self._groups[key] = group
        for pod in pods:
            self._keep(key, pod)

    def belongs(self, key: GroupKey, owner: str) -> None:
        """Assign a group that has no gang here to that installation."""
        self._elsewhere[key] = owner

    def forget(self, key: GroupKey) -> None:
        """Forget a group that nothing names any more."""
        self._elsewhere.pop(key, None)

    def make_ours(self, key: GroupKey) -> Group | None:
        """Make the group ours. Returns its PodGroup; the caller passes its pods to `Members.pod_seen` again."""
        self._elsewhere.pop(key, None)
        return self._groups.pop(key, None)

    def validate(self) -> Iterator[str]:
        """Contradictions in what is known, each as a sentence."""
        if self._heard != Counter(pod.scheduler for pod in self.pods().values() if is_heard(pod)):
            yield "the numbers of pods to which schedulers have reacted are not what the pods say"
        yield from (
            f"{key}: pods decide about it though none is beside it"
            for key in self._contenders.keys() - self._beside.keys()
        )
        for key, pods in self._beside.items():
            for uid, pod in pods.items():
                if self._named.get(uid) != key or group_of(pod) != key:
                    yield f"{uid}: known beside {key}, which it does not name"
                elif pod.scheduler in self._names and key not in self._elsewhere:
                    yield f"{uid}: kept from {key}, which is ours"
        for key in self._elsewhere:
            if key not in self._groups and key not in self._beside:
                yield f"{key}: known as another installation's though nothing mentions it"
        for key in self._groups.keys() - self._elsewhere.keys():
            yield f"{key}: its PodGroup is kept from a group that is ours"
