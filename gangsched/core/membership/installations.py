"""Which groups belong to another installation of gangsched, and what is known of them meanwhile.

No gang is made of such a group: it has no status, no clock, no Events and no reservation of ours. Its PodGroup and its
pods, of which some may have a schedulerName of ours, wait here until it becomes ours (`core.membership.handover`). Pods
of other schedulers are known for every group, because they decide whose it is (`core.declarations.installation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from gangsched.core.declarations.installation import owner_of
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy

_NO_PODS: Mapping[str, Pod] = {}


def group_of(pod: Pod) -> GroupKey:
    """The group that the pod names, or that it is by itself."""
    if pod.declaration is not None:
        return GroupKey(pod.namespace, pod.declaration.group)
    return GroupKey(pod.namespace, pod.name, pod.uid)


class Elsewhere(Struct, frozen=True):
    """A group of another installation: the schedulerName of its `owner`, its PodGroup, and pods that name it."""

    key: GroupKey
    owner: str
    group: Group | None
    pods: Sequence[Pod]


class Installations:
    """Pods `beside` the gangs by the group they name, PodGroups that are not ours, and whose each such group is.

    A group is doubted when something has changed that decides whose it is; `strangers` are pods of other schedulers
    that came or changed since the last call of `take_strangers`, `gone` those known here that are there no longer.
    """

    def __init__(self, policy: Policy) -> None:
        self._names = frozenset(policy.scheduler_names)
        self._namespace = policy.namespace
        self._elsewhere: dict[GroupKey, str] = {}
        self._beside: dict[GroupKey, dict[str, Pod]] = {}
        self._named: dict[str, GroupKey] = {}
        self._groups: dict[GroupKey, Group] = {}
        self._doubted: dict[GroupKey, None] = {}
        self._strangers: dict[str, Pod] = {}
        self._gone: dict[str, None] = {}

    def whose(self, key: GroupKey) -> str:
        """The schedulerName whose installation has the group; empty if it is ours."""
        return self._elsewhere.get(key, "")

    def beside(self, key: GroupKey) -> Mapping[str, Pod]:
        """The pods, by UID, that name the group and are not in its gang."""
        return self._beside.get(key, _NO_PODS)

    def group(self, key: GroupKey) -> Group | None:
        """The PodGroup, if it is another installation's."""
        return self._groups.get(key)

    def find(self, namespace: str, name: str) -> Elsewhere | None:
        """The group of this name, or of the pod of ours that has this name, if it is another installation's."""
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
        """All pods that are known here, by UID."""
        return {uid: pod for pods in self._beside.values() for uid, pod in pods.items()}

    # What happens

    def pod_seen(self, pod: Pod, *, ours: bool) -> None:
        """The pod is there in this form; `ours`: it has a schedulerName of ours."""
        declared = pod.declaration is not None and self._namespace in ("", pod.namespace)
        key = group_of(pod) if declared else None
        in_gang = ours and key not in self._elsewhere
        before = self._named.get(pod.uid)
        if before is not None and (before != key or in_gang):
            self.pod_gone(pod.uid)
        if key is None:
            return
        if not in_gang:
            self._beside.setdefault(key, {})[pod.uid] = pod
            self._named[pod.uid] = key
            if not ours:
                self._strangers[pod.uid] = pod
        if not in_gang or key in self._beside:
            self.doubt(key)

    def pod_gone(self, uid: str) -> None:
        """The pod is gone, or in a gang now."""
        key = self._named.pop(uid, None)
        if key is None:
            return
        del self._beside[key][uid]
        if not self._beside[key]:
            del self._beside[key]
        self._strangers.pop(uid, None)
        self._gone[uid] = None
        self.doubt(key)

    def group_seen(self, group: Group, gang: Gang | None) -> bool:
        """The PodGroup exists in this form. Returns whether it is another installation's as far as is known."""
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
        """The PodGroup no longer exists."""
        self._groups.pop(key, None)
        self.doubt(key)

    def doubt(self, key: GroupKey) -> None:
        """Whose the group is may have changed."""
        self._doubted[key] = None

    def take_doubted(self) -> list[GroupKey]:
        """The groups that are doubted since the last call."""
        doubted, self._doubted = [*self._doubted], {}
        return doubted

    def take_strangers(self) -> dict[str, Pod | None]:
        """Pods of other schedulers, by UID, that came or changed since the last call; None for those that are gone."""
        found: dict[str, Pod | None] = {**dict.fromkeys(self._gone), **self._strangers}
        self._strangers, self._gone = {}, {}
        return found

    def forget_gone(self) -> None:
        """Forget which strangers are gone, where nobody has asked for any yet, as on a standby."""
        self._gone.clear()

    # Whose a group is

    def owner(self, key: GroupKey, gang: Gang | None) -> str:
        """The schedulerName whose installation should have the group with this gang of ours, by all that is known."""
        group = gang.observed.group if gang is not None and gang.observed.group is not None else self._groups.get(key)
        return self._owner(key, gang, group)

    def _owner(self, key: GroupKey, gang: Gang | None, group: Group | None) -> str:
        pods = gang.observed.pods if gang is not None else _NO_PODS
        if pods and key not in self._beside:
            return next(iter(pods.values())).scheduler
        return owner_of(
            chain(pods.values(), self.beside(key).values()),
            annotated=group.scheduler if group is not None else "",
            kept_by=group.status.scheduler if group is not None else "",
            ours=self._names,
        )

    def serves(self, name: str) -> bool:
        """Whether pods with this schedulerName are ours."""
        return name in self._names

    def give_up(self, key: GroupKey, owner: str, group: Group | None, pods: Iterable[Pod]) -> None:
        """The group belongs to that installation from now on, with these pods beside those that are known here."""
        self._elsewhere[key] = owner
        if group is not None:
            self._groups[key] = group
        for pod in pods:
            self._beside.setdefault(key, {})[pod.uid] = pod
            self._named[pod.uid] = key

    def belongs(self, key: GroupKey, owner: str) -> None:
        """The group, of which there is no gang, belongs to that installation."""
        self._elsewhere[key] = owner

    def forget(self, key: GroupKey) -> None:
        """Nothing names the group any more."""
        self._elsewhere.pop(key, None)

    def take(self, key: GroupKey) -> Group | None:
        """The group is ours from now on. Returns its PodGroup; its pods are seen anew by the caller."""
        self._elsewhere.pop(key, None)
        return self._groups.pop(key, None)

    def validate(self) -> Iterator[str]:
        """Contradictions in what is known, each as a sentence."""
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
