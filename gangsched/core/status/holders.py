"""Who holds the resource that a gang lacks: groups, terminating pods, and pods for which room is kept.

Groups and pods of the gang's own namespace may be named; others are only counted (contract rule 16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nsmallest

import numpy as np
from msgspec import Struct, field

from gangsched.core.cluster.cache import Cluster
from gangsched.core.membership.installations import group_of
from gangsched.core.objects.arrays import Mask
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.wording import moment, number_of
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.refusal import Refusal
from gangsched.core.status.ahead import Contends, Wanted, wanted_by

LOOKS = 10_000
"""Maximum number of pods examined in KEPT_S to find holders. Later messages say less about them, but cost nothing."""
KEPT_S = 0.5
"""Time, in seconds, for which holders are cached at least."""
KEPT_S_PER_LOOK = 0.00025
"""The same for each pod that was examined, so that a processor spends about a hundredth of its time on that."""
NAMED = 3
"""Maximum number of groups, or of pods, named in one sentence."""
STUCK_S = 120.0
"""How long, in seconds, after the end of its grace period (its deletionTimestamp) a terminating pod is called stuck.
Until then its node may still be unmounting its volumes, and what it holds is coming free."""


def amounts(pairs: Sequence[tuple[str, int]]) -> str:
    """Resource amounts in human-readable form: `cpu 2, nvidia.com/gpu 8`."""
    return ", ".join(f"{resource} {format_amount(resource, amount)}" for resource, amount in pairs)


def joined(named: Sequence[str], others: int) -> str:
    """These names and the number of `others`, which are not named."""
    if not named:
        return "1 other group or pod" if others == 1 else f"{others} other groups or pods"
    rest = "" if not others else " and 1 other" if others == 1 else f" and {others} others"
    return ", ".join(named) + rest


def scarcest(refusal: Refusal) -> str:
    """The resource that is said to be held: the first that is short, else one that no node has enough of, or none."""
    lacking = [*(resource for resource, _ in refusal.short), *refusal.lacking]
    return lacking[0] if lacking and not refusal.unlabelled else ""


def accepting_rows(cluster: Cluster, refusal: Refusal) -> Mask:
    """The rows that accept the members that found no room, within the refusal's domains."""
    return cluster.accepting(refusal.failing) & cluster.labels.inside(refusal.within)


def stuck_since(pod: Pod, now: float) -> float | None:
    """When the pod should have been gone, if it is stuck in termination; else None."""
    return pod.gone_by if pod.terminating and pod.gone_by and now >= pod.gone_by + STUCK_S else None


Share = tuple[Pod, int]
"""A pod, and how much of the resource in question it holds."""


class Held(Struct):
    """How much of a resource each group holds, how much terminating pods will free, and what is held otherwise.

    `stuck` are terminating pods that should long be gone, `nominated` the pods that another scheduler has nominated to
    one of the nodes, the most urgent first. `until`: the time at which a pod that is coming free would be called stuck,
    or at which those that are stuck may have gone. At `outdated` it is looked for again.
    """

    by: Counter[GroupKey] = field(default_factory=Counter)
    coming_free: int = 0
    stuck: list[Share] = field(default_factory=list)
    nominated: list[Share] = field(default_factory=list)
    until: float = float("inf")
    outdated: float = 0.0
    _largest: dict[str, list[tuple[GroupKey, int]]] = field(default_factory=dict)

    def largest(self, namespace: str) -> list[tuple[GroupKey, int]]:
        """The namespace's largest holders, one more than are named."""
        if namespace not in self._largest:
            own = [item for item in self.by.items() if item[0].namespace == namespace]
            self._largest[namespace] = nsmallest(NAMED + 1, own, key=lambda item: (-item[1], item[0]))
        return self._largest[namespace]

    def kept_from(self, priority: int) -> list[Share]:
        """The nominated pods for which room is kept from gangs of this priority (`Claim.counts_for`)."""
        return [(pod, amount) for pod, amount in self.nominated if pod.priority >= priority]


class Holders:
    """Those who hold a resource on the nodes that accept a shape, cached for some time.

    Many waiting groups need the same answer at once; `renew` clears what is older.
    """

    def __init__(self, cluster: Cluster, now: float = 0.0) -> None:
        self._cluster = cluster
        self._known: dict[tuple[str, bytes], Held] = {}
        self._accepted: dict[tuple[Wanted, int], Mask] = {}
        self._looks = LOOKS
        self._since = float("-inf")
        self._now = now

    def renew(self, now: float) -> None:
        """Note the time, and clear what is cached and outdated."""
        self._now = now
        self._known = {key: held for key, held in self._known.items() if now < held.outdated}
        if now >= self._since + KEPT_S:
            self._accepted.clear()
            self._since, self._looks = now, LOOKS

    def sentence(self, key: GroupKey, refusal: Refusal, priority: int) -> str:
        """The holders of the scarcest resource: up to three groups of the gang's namespace by name, others by number.

        Terminating pods hold it too, until they are gone; the sentence says how much they will free, or that they are
        stuck. Room may also be kept from a gang of this priority for pods that another scheduler has nominated.
        """
        resource = scarcest(refusal)
        if not resource:
            return ""
        held = self.of(refusal)
        own = [(holder, amount) for holder, amount in held.largest(key.namespace) if holder != key]
        named = [f"{holder} ({amounts([(resource, amount)])})" for holder, amount in own[:NAMED]]
        others = len(held.by) - (key in held.by) - len(named)
        parts = [f"Held by {joined(named, others)}"] if named or others else []
        if kept := held.kept_from(priority):
            pods = f"{'pod' if len(kept) == 1 else 'pods'} that another scheduler has nominated to a node"
            parts.append(f"{_sum(resource, kept)} is kept for the {pods}: {_names(kept, key.namespace)}")
        if held.coming_free:
            parts.append(f"{amounts([(resource, held.coming_free)])} of terminating pods is coming free")
        if held.stuck:
            parts.append(f"{_sum(resource, held.stuck)} is not coming free: {self._overdue(held.stuck, key.namespace)}")
        return "; ".join(parts)

    def contending(self, refusal: Refusal) -> Contends:
        """Which waiting gangs could use a node that the members of this refused quorum could use.

        Those that want the same nodes count even while there are none: the first such node is theirs.
        """
        mine = wanted_by(refusal)
        accepting = self._accepting(mine)
        return lambda wanted: bool(mine & wanted) or bool((accepting & self._accepting(wanted)).any())

    def _accepting(self, wanted: Wanted) -> Mask:
        """The rows that accept any of the classes. There may be more rows than when others were cached."""
        at = (wanted, len(self._cluster.capacity.names))
        known = self._accepted.get(at)
        if known is None:
            masks = [self._cluster.accepting(member) for member in sorted(wanted, key=MemberClass.in_order)]
            known = self._accepted[at] = np.logical_or.reduce(masks)
        return known

    def of(self, refusal: Refusal) -> Held:
        """What is held of the scarcest resource on the nodes that accept the members; nothing if none is scarce."""
        resource = scarcest(refusal)
        accepting = accepting_rows(self._cluster, refusal) if resource else np.zeros(0, dtype=np.bool_)
        known = self._known.get((resource, accepting.tobytes()))
        if known is None:
            known = self._known[resource, accepting.tobytes()] = self._look(resource, accepting)
        return known

    def _look(self, resource: str, accepting: Mask) -> Held:
        taken, looks = Held(), self._looks
        for pod in self._pods_on(accepting):
            amount = dict(pod.shape.requests).get(resource, 0)
            if not amount:
                continue
            if stuck_since(pod, self._now) is not None:
                taken.stuck.append((pod, amount))
                taken.until = min(taken.until, self._now + STUCK_S)
            elif pod.terminating:
                taken.coming_free += amount
                taken.until = min(taken.until, pod.gone_by + STUCK_S) if pod.gone_by else taken.until
            else:
                taken.by[group_of(pod)] += amount
        taken.outdated = min(taken.until, self._now + max(KEPT_S, KEPT_S_PER_LOOK * (looks - self._looks)))
        rows = self._cluster.capacity.rows
        for claim in self._cluster.ledger.nominated.values():
            amount = dict(claim.pod.shape.requests).get(resource, 0)
            if amount and claim.node in rows and accepting[rows[claim.node]]:
                taken.nominated.append((claim.pod, amount))
        taken.nominated.sort(key=lambda share: (-share[0].priority, share[0].namespace, share[0].name))
        return taken

    def _pods_on(self, accepting: Mask) -> Iterator[Pod]:
        names = self._cluster.capacity.names
        for row in np.flatnonzero(accepting).tolist():
            if self._looks <= 0:
                break
            uids = self._cluster.on_node.get(names[row], ())
            self._looks -= len(uids) + 1
            yield from (self._cluster.pods[uid] for uid in uids)

    def _overdue(self, stuck: Sequence[Share], namespace: str) -> str:
        due = moment(min(pod.gone_by for pod, _ in stuck))
        are, them = ("is", "it") if len(stuck) == 1 else ("are", "them")
        return (
            f"{_names(stuck, namespace)} {are} stuck terminating and should have been gone by {due}: remove what "
            f"keeps {them}, such as a finalizer or an unreachable node"
        )


def _sum(resource: str, shares: Sequence[Share]) -> str:
    return amounts([(resource, sum(amount for _, amount in shares))])


def _names(shares: Sequence[Share], namespace: str) -> str:
    """The pods of the namespace by name, at most NAMED, and the number of the others."""
    named = [f"{pod.namespace}/{pod.name}" for pod, _ in shares if pod.namespace == namespace][:NAMED]
    others = len(shares) - len(named)
    if not named:
        return f"{number_of(others, 'pod')} of other namespaces"
    return joined(named, others)
