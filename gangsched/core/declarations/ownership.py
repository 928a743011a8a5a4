"""Detects whether several owners use a group's name: by chance (the owner guard), or because one is gone.

Two objects of one kind never have the same name at the same time. So of two owners that differ in their UID alone, such
as a Job that was deleted and created again, only one exists. Its pods are the ones that count. The others are about to
be deleted, or were left behind.

Owners are compared among the present members of one role. A group may legitimately have several owners: each role may
have its own, a member may own others (a driver its executors), some controllers mark all their pods with one label, and
the ReplicaSets of a rolling update belong to one Deployment. An owner is identified by kind and name here: of two that
differ in their UID alone the members of the one that is gone have been sorted out before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Owner, Pod, role_of
from gangsched.core.objects.policy import OwnerGuard
from gangsched.core.objects.wording import first_named
from gangsched.core.objects.workload import Workload

CONTROLLERS = (
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
)
"""Labels with which a controller marks all its pods, even if several of its objects own them."""
TEMPLATE_HASH = "pod-template-hash"
"""The label that a Deployment puts on its ReplicaSets' pods; their names end with its value."""
NAMED = 5
"""Number of owners that a message names at most."""

_REPLICA_SET = ("apps", "ReplicaSet")
_Name = tuple[str, str]
"""An object's kind, with its API group for owners, and its name."""
_Party = tuple[Owner | None, Workload | None]
_POD = "Pod."
_EXISTS = float("inf")


class Ownership(Struct, frozen=True):
    """The owners that use a group's name, if there are several, each with the number of its members.

    `former` are members (by UID), bound or not, that do not count: their owner is gone and another object has its name.
    """

    owners: Mapping[str, int] = field(default_factory=dict)
    former: frozenset[str] = frozenset()

    def described(self, group: str) -> str:
        """A sentence about the owners that use this group name, and what to do; empty unless there are several."""
        if not self.owners:
            return ""
        named = first_named([f"{claim} ({number})" for claim, number in sorted(self.owners.items())], NAMED)
        return (
            f"Pods of several owners name the group {group}: {named}. If they are one group, "
            "give each owner's pods a role of their own; if not, give the groups different names."
        )


UNDISPUTED = Ownership()


def ownership_of(members: Sequence[Pod], pods: Mapping[str, Pod], *, guard: OwnerGuard, foreign: Foreign) -> Ownership:
    """Which owners use the group's name, given its live `members` and all its `pods`, and which of them are gone."""
    # A fast path: most members have the same owner and workload.
    works = {None if pod.workload is None else pod.workload.identity for pod in members}
    if len({pod.owner for pod in members}) <= 1 and len(works - {None}) <= 1:
        return UNDISPUTED
    former = former_among(members, pods, foreign)
    counted = [pod for pod in members if pod.uid not in former] if former else members
    if guard is OwnerGuard.OFF or len({pod.owner for pod in counted}) <= 1:
        return Ownership(former=former) if former else UNDISPUTED
    rivals = _rivals(counted, pods)
    return Ownership(Counter(claim for claims in rivals for claim, theirs in claims.items() for _ in theirs), former)


def _rivals(members: Sequence[Pod], pods: Mapping[str, Pod]) -> list[Mapping[str, Sequence[Pod]]]:
    """The members by owner, for each role that has more than one owner."""
    roles: dict[str, dict[str, list[Pod]]] = {}
    for pod in members:
        roles.setdefault(role_of(pod), {}).setdefault(_claim(pod, pods), []).append(pod)
    return [claims for claims in roles.values() if len(claims) > 1]


def _claim(pod: Pod, pods: Mapping[str, Pod]) -> str:
    """The owner on whose behalf the pod uses the group's name, formatted for messages."""
    seen = set()
    while pod.owner is not None and pod.owner.uid in pods and pod.owner.uid not in seen:
        seen.add(pod.owner.uid)
        pod = pods[pod.owner.uid]
    labels = dict(pod.labels)
    for label in CONTROLLERS:
        if label in labels:
            return f"{label}={labels[label]}"
    if pod.owner is None:
        return "no owner"
    owner = pod.owner
    suffix = f"-{labels.get(TEMPLATE_HASH, '')}"
    if (owner.api_group, owner.kind) == _REPLICA_SET and len(suffix) > 1 and owner.name.endswith(suffix):
        return f"Deployment {owner.name.removesuffix(suffix)}"
    return f"{owner.kind}{'.' if owner.api_group else ''}{owner.api_group} {owner.name}"


def former_among(members: Sequence[Pod], pods: Mapping[str, Pod], foreign: Foreign) -> frozenset[str]:
    """The `members`, by UID, that an object above them created that is gone; `pods` are all of the gang, by UID.

    Of several objects of one name the one that is watched exists, or the pod that is a member itself, or else the one
    with the youngest pod.
    """
    parties: dict[_Party, list[Pod]] = {}
    for pod in members:
        parties.setdefault((pod.owner, pod.workload), []).append(pod)
    lines = {party: list(_lineage(*party, pods)) for party in parties}
    seen: dict[_Name, dict[str, float]] = {}
    for party, theirs in parties.items():
        youngest = max(pod.created for pod in theirs)
        for name, uid in lines[party]:
            uids = seen.setdefault(name, {})
            uids[uid] = max(youngest, uids.get(uid, youngest))
    for pod in members:
        if (name := (_POD, pod.name)) in seen:
            seen[name][pod.uid] = _EXISTS
    namesakes = {name: uids for name, uids in seen.items() if len(uids) > 1}
    if not namesakes:
        return frozenset()
    existing = _watched({work for _, work in parties}, members[0].namespace, foreign)
    for uids in namesakes.values():
        uids.update(dict.fromkeys(uids.keys() & existing, _EXISTS))
    present = {name: max(uids, key=lambda uid: (uids[uid], uid)) for name, uids in namesakes.items()}
    return frozenset(
        pod.uid
        for party, theirs in parties.items()
        if any(present.get(name, uid) != uid for name, uid in lines[party])
        for pod in theirs
    )


def came_after(members: Sequence[Pod], since: float) -> bool:
    """Whether none of these members has a node, and all came since then, as the API server counts seconds.

    Never, if `since` is 0.0.
    """
    return bool(since) and all(not pod.node and pod.created >= int(since) for pod in members)


def _lineage(owner: Owner | None, workload: Workload | None, pods: Mapping[str, Pod]) -> Iterator[tuple[_Name, str]]:
    """The objects above a pod, each with its name and UID: its workload, its owner, and the owners of owning pods."""
    if workload is not None and workload.uid:
        yield (workload.kind, workload.name), workload.uid
    passed = set()
    while owner is not None and owner.uid not in passed:
        passed.add(owner.uid)
        yield (f"{owner.kind}.{owner.api_group}", owner.name), owner.uid
        owner = pods[owner.uid].owner if owner.uid in pods else None


def _watched(works: Iterable[Workload | None], namespace: str, foreign: Foreign) -> set[str]:
    """The UIDs of the workloads of these names that exist, as far as their kinds are watched."""
    names = {(work.kind, work.name) for work in works if work is not None}
    return {group.uid for kind, name in names if (group := foreign.find(kind, GroupKey(namespace, name))) is not None}
