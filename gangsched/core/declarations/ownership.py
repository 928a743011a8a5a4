"""Detects whether unrelated owners have given their pods the same group name by chance (the owner guard).

Owners are compared among the present members of one role. A group may legitimately have several owners: each role may
have its own, a member may own others (a driver its executors), some controllers mark all their pods with one label, and
the ReplicaSets of a rolling update belong to one Deployment. An owner is identified by kind and name here: of two that
differ in their UID alone only one exists, and the members of the other have been sorted out before (`former`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.former import former_among
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.policy import OwnerGuard
from gangsched.core.objects.wording import first_named

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
