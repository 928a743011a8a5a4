"""Which owners claim a group: whether unrelated owners have given their pods the same group name by chance.

Owners are compared among the present members of one role. A group may well have several owners: each role may have its
own, a member may own others (a driver its executors), some controllers mark all their pods with one label, and the
ReplicaSets of a rolling update belong to one Deployment. An owner is identified by kind and name, not by UID: one that
is deleted and created again keeps its claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gangsched.core.gang.gang import Gang
from gangsched.core.objects.pod import Pod, member_order, role_of
from gangsched.core.objects.policy import OwnerGuard

CONTROLLERS = (
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
)
"""Labels by which a controller marks all its pods, though these are owned by several objects of it."""
TEMPLATE_HASH = "pod-template-hash"
"""The label that a Deployment puts on its ReplicaSets' pods; their names end with its value."""
NAMED = 5
"""A message names at most this many owners."""

_REPLICA_SET = ("apps", "ReplicaSet")


def guard(gang: Gang, what: OwnerGuard) -> list[Pod]:
    """Note which owners claim the gang, and under Refuse which waiting members therefore do not count.

    Returns the live members that count. In each role the owners of members with a node or a reservation keep the name;
    where there are none, the owner of the first member keeps it.
    """
    if gang.disowned and gang.record.run_start and not gang.record.ended and gang.deserted():
        # Its owner's last member has gone: members that were refused until now begin another run.
        gang.roster.note_emptied()
    gang.disowned = frozenset()
    gang.claims = {}
    members = gang.live()
    if what is OwnerGuard.OFF or gang.plain:
        return members
    if len({pod.owner for pod in members}) > 1:
        rivals = _rivals(gang, members)
        gang.claims = Counter(claim for claims in rivals for claim, pods in claims.items() for _ in pods)
        if what is OwnerGuard.REFUSE:
            gang.disowned = frozenset(pod.uid for claims in rivals for pod in _latecomers(gang, claims))
    return gang.live() if gang.disowned else members


def described(gang: Gang) -> str:
    """A sentence about the owners that claim the gang and what to do; empty unless there are several."""
    if not gang.claims:
        return ""
    named = [f"{claim} ({number})" for claim, number in sorted(gang.claims.items())[:NAMED]]
    more = f" and {len(gang.claims) - NAMED} more" if len(gang.claims) > NAMED else ""
    kept = "; only members of who came first are bound" if gang.disowned else ""
    return (
        f"Pods of several owners name the group {gang.key.name}: {', '.join(named)}{more}{kept}. If they "
        "are one group, give each owner's pods a role of their own; if not, give the groups different names."
    )


def _rivals(gang: Gang, members: Sequence[Pod]) -> list[Mapping[str, Sequence[Pod]]]:
    """The members by claim, for each role that has more than one."""
    roles: dict[str, dict[str, list[Pod]]] = {}
    for pod in members:
        roles.setdefault(role_of(pod), {}).setdefault(_claim(gang, pod), []).append(pod)
    return [claims for claims in roles.values() if len(claims) > 1]


def _claim(gang: Gang, pod: Pod) -> str:
    """The owner for which the pod names the group, in words for a person."""
    seen = set()
    while pod.owner is not None and pod.owner.uid in gang.pods and pod.owner.uid not in seen:
        seen.add(pod.owner.uid)
        pod = gang.pods[pod.owner.uid]
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


def _latecomers(gang: Gang, claims: Mapping[str, Sequence[Pod]]) -> list[Pod]:
    """The waiting members of owners that may not use the name."""
    keepers = {claim for claim, pods in claims.items() if any(_placed(gang, pod) for pod in pods)}
    if not keepers:
        keepers = {min(claims, key=lambda claim: min(map(member_order, claims[claim])))}
    return [pod for claim in claims if claim not in keepers for pod in claims[claim]]


def _placed(gang: Gang, pod: Pod) -> bool:
    return bool(pod.node) or pod.uid in gang.bindings
