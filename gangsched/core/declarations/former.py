"""Finds members whose owner is gone, although another one has its name now: they are not members of its gang.

Two objects of one kind never have the same name at the same time. So of two owners that differ in their UID alone, such
as a Job that was deleted and created again, only one exists. Its pods are the ones that count. The others are about to
be deleted, or were left behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.workload import Workload

_Name = tuple[str, str]
"""An object's kind, with its API group for owners, and its name."""
_Party = tuple[Owner | None, Workload | None]
_POD = "Pod."
_EXISTS = float("inf")


def former_among(members: Sequence[Pod], pods: Mapping[str, Pod], foreign: Foreign) -> frozenset[str]:
    """The `members`, by UID, that an object above them created that is gone; `pods` are all of the gang, by UID.

    Of several objects of one name the one that is watched exists, or the pod that is a member itself, or else the one
    with the youngest pod.
    """
    # A fast path: most members have the same owner and workload.
    works = {pod.workload for pod in members}
    if len({pod.owner for pod in members}) <= 1 and len({work.identity for work in works if work is not None}) <= 1:
        return frozenset()
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
    several = {name: uids for name, uids in seen.items() if len(uids) > 1}
    if not several:
        return frozenset()
    there = _watched(works, members[0].namespace, foreign)
    for uids in several.values():
        uids.update(dict.fromkeys(uids.keys() & there, _EXISTS))
    present = {name: max(uids, key=lambda uid: (uids[uid], uid)) for name, uids in several.items()}
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
    found = (foreign.find(kind, GroupKey(namespace, name)) for kind, name in names)
    return {each.uid for each in found if each is not None}
