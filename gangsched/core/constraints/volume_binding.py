"""VolumeBinding: a node must match the node affinity of each volume of a pod, and have volumes for its unbound claims.

A claim that waits for the pod's node (WaitForFirstConsumer) is bound to the smallest sufficient volume that can be used
on the node; otherwise one must be provisioned there. The volume for each member is planned here and bound before the
member is (`prebindings`).

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding at v1.37.2. `inventory/unbound.py` determines
which claims are ready and which volumes they may be bound to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gangsched.core.constraints.constraint import AtBest, Leavers, Member, NodeConstraint, Plan, SeesAlike, Words, World
from gangsched.core.constraints.naming import node_terms
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.volume_pool import VolumePool, Wants
from gangsched.core.inventory import unbound
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import ClaimVolume, Prebinding, SelectNode, ShareVolume
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import NodeTerm
from gangsched.core.objects.volumes import Wanted


@dataclass(frozen=True, slots=True)
class BoundTo:
    """The distinct node affinities of a pod's volumes, and the wants of its other claims.

    `ready` is False if a claim is not ready. `claim`, the one that is not ready, and `volumes`, one for each affinity,
    are those of a single pod of the class.
    """

    affinities: tuple[tuple[NodeTerm, ...], ...] = ()
    wants: Wants = ()
    ready: bool = True
    claim: str = field(default="", compare=False)
    volumes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def shares(self) -> bool:
        """Whether other pods use one of the waiting claims."""
        return any(wanted.shared for wanted in self.wants)

    def in_order(self) -> Sequence[object]:
        """The fields that matter to placement."""
        return self.ready, repr(self.affinities), repr(self.wants)


class VolumeBinding(NodeConstraint):
    """The filter of this name."""

    about = frozenset({BoundTo})
    proves = True
    words = (
        Words(
            NodeReason.VOLUME_CLAIM,
            "closed until the PersistentVolumeClaim {resource} is ready",
            "a PersistentVolumeClaim that is bound: {nodes} closed without it",
        ),
        Words(
            NodeReason.VOLUME_AFFINITY,
            "where the PersistentVolume {resource} cannot be used",
            "room where the PersistentVolume {resource} can be used: {nodes} elsewhere",
        ),
        Words(
            NodeReason.VOLUME_SHORTAGE,
            "without a PersistentVolume of StorageClass {resource}",
            "a PersistentVolume for each claim, or a StorageClass that provisions it: {nodes} without",
        ),
        Words(
            NodeReason.STORAGE_CAPACITY,
            "without storage capacity for a volume of StorageClass {resource}",
            "more storage capacity of StorageClass {resource}: {nodes} without",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._affinity = NodeAffinity(world)

    def plan(self, *, emptied: bool) -> Plan:
        """The volumes that members take; ignored on an `emptied` snapshot, where more volumes might be free."""
        return AtBest(self) if emptied else VolumePlan(self._world, self._affinity, self) if self.selective else self

    def at_best(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows on which the volumes that its claims are bound to can be used; other claims are bound one day."""
        seen = member.sight(BoundTo)
        if seen is None or not seen.affinities:
            return None
        mask: Mask = np.ones(len(rows), dtype=np.bool_)
        for terms in seen.affinities:
            mask &= self._affinity.among_at_best(terms, rows)
        return mask

    @property
    def selective(self) -> bool:
        """Whether there are any claims."""
        return bool(self._world.volumes.claims)

    def sees(self, pod: Pod) -> BoundTo | None:
        """The requirements of the pod's claims on nodes; None if there are none."""
        if not pod.uses_claims:
            return None
        volumes = self._world.volumes
        unready = volumes.unready(pod)
        if unready is not None:
            return BoundTo(ready=False, claim=unready.claim)
        had = {volume.node_affinity: volume.name for volume in volumes.volumes(pod) if volume.node_affinity is not None}
        wants = tuple(wanted for wanted, _ in unbound.wants(volumes, pod))
        affinities = tuple(sorted(had, key=repr))
        names = tuple(had[terms] for terms in affinities)
        return BoundTo(affinities, wants, volumes=names) if affinities or wants else None

    def sees_nominated(self, pod: Pod) -> BoundTo | None:
        """The affinities of its bound volumes. Volumes that another scheduler has in mind for it are unknown."""
        seen = self.sees(pod)
        return None if seen is None or not seen.affinities else BoundTo(seen.affinities)

    def mask(self, member: Member, rows: IntArray, is_settled: Callable[[Wanted], bool] | None = None) -> Mask | None:
        """The rows on which all volumes can be used; none if a claim is not ready.

        A claim with a selected node keeps its pods there. Exempt are pods that share a volume usable on several nodes,
        once the claim `is_settled` by a pod on the selected node. Without `is_settled`, all such pods are exempt.
        """
        seen = member.sight(BoundTo)
        if seen is None:
            return None
        mask: Mask = np.full(len(rows), seen.ready, dtype=np.bool_)
        for terms in seen.affinities:
            mask &= self._affinity.among(terms, rows)
        for wanted in seen.wants:
            if _keeps(wanted, is_settled):
                mask &= self._world.nodes.names.among((wanted.selected,), rows)
        return mask

    def refusals(
        self, member: Member, rows: IntArray, is_settled: Callable[[Wanted], bool] | None = None
    ) -> Iterator[tuple[str, str, Mask]]:
        """The claim that is not ready, or for each volume the rows on which it is the first that cannot be used."""
        seen = member.sight(BoundTo)
        left: Mask = np.ones(len(rows), dtype=np.bool_)
        if seen is None:
            return
        if not seen.ready:
            yield NodeReason.VOLUME_CLAIM, seen.claim, left
            return
        for terms, volume in zip(seen.affinities, seen.volumes, strict=True):
            usable = self._affinity.among(terms, rows)
            yield NodeReason.VOLUME_AFFINITY, f"{volume} (node affinity {node_terms(terms)})", left & ~usable
            left &= usable
        for node in dict.fromkeys(wanted.selected for wanted in seen.wants if _keeps(wanted, is_settled)):
            on_node = self._world.nodes.names.among((node,), rows)
            yield NodeReason.VOLUME_AFFINITY, f"that is being provisioned for node {node}", left & ~on_node
            left &= on_node


def _keeps(wanted: Wanted, is_settled: Callable[[Wanted], bool] | None) -> bool:
    """Whether the claim keeps its pods on its selected node."""
    elsewhere = wanted.shared and wanted.anywhere and (is_settled is None or is_settled(wanted))
    return bool(wanted.selected) and not elsewhere


class VolumePlan(SeesAlike[VolumeBinding]):
    """The volumes that members take on one snapshot.

    `_handed` counts, by wants and row, the members whose volumes were already assigned to pods (`prebindings`).
    """

    def __init__(self, world: World, affinity: NodeAffinity, constraint: VolumeBinding) -> None:
        super().__init__(constraint)
        self._world = world
        self._pool = VolumePool(world, affinity)
        self._handed: Counter[tuple[Wants, int]] = Counter()

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows on which all volumes can be used, however many are left, and shared ones can be used or obtained."""
        mask = self._of.mask(member, rows, self._pool.is_settled)
        seen = member.sight(BoundTo)
        if mask is not None and seen is not None and seen.shares:
            mask &= self._pool.may_share(seen.wants, rows)
        return mask

    def room(self, member: Member, rows: IntArray) -> IntArray | None:
        """The number of members for which each row has volumes, left over or provisioned."""
        seen = member.sight(BoundTo)
        if seen is None or not seen.wants:
            return None
        return self._pool.room(seen.wants, rows)

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:
        """Take the best volumes for each member, or give back those that the last members of the class took.

        Returns the rows whose volumes may change.
        """
        seen = member.sight(BoundTo)
        if seen is None or not seen.wants:
            return None
        chosen: set[str] = set()
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            chosen |= self._pool.take(seen.wants, row, count)
            for _ in range(-count):
                chosen.update(self._pool.give_back(seen.wants, row))
        return self._pool.rows_of(seen.wants, chosen, rows)

    def recount(self, leavers: Leavers, sign: int) -> IntArray | None:
        """Take again what the pods' pre-bindings take (1), or give it back (-1). A volume bound to a claim stays so."""
        if not leavers.preparing:
            return None
        self._pool.recount(leavers.preparing, sign)
        return np.arange(len(self._world.stock.names))

    def couples(self, member: Member, other: Member) -> bool:
        """Whether both may take the same volumes or storage, or share a claim that is yet to be bound."""
        seen, others = member.sight(BoundTo), other.sight(BoundTo)
        if seen is None or others is None:
            return False
        pool = self._pool
        limited = (wanted for wanted in others.wants if pool.offered(wanted) or pool.provisioning.segments_of([wanted]))
        wants = {wanted.storage_class for wanted in limited}
        claims = {wanted.claim for wanted in others.wants if wanted.shared}
        return any(wanted.storage_class in wants or wanted.claim in claims for wanted in seen.wants)

    def helps(self, member: Member, other: Member) -> bool:
        """Whether both share a claim that one may get bound on rows where the other cannot."""
        seen, others = member.sight(BoundTo), other.sight(BoundTo)
        if seen is None or others is None or not (seen.shares and others.shares):
            return False
        claims = {wanted.claim for wanted in others.wants if wanted.shared and wanted.anywhere}
        return any(wanted.claim in claims for wanted in seen.wants)

    def prebindings(self, pod: Pod, row: int) -> Sequence[Prebinding]:
        """The writes that bind the pod's claims to the volumes that it takes on the row."""
        seen = self._of.sees(pod)
        if seen is None or not seen.wants:
            return ()
        chosen = self._pool.taken(seen.wants, row)[self._handed[seen.wants, row]]
        self._handed[seen.wants, row] += 1
        asked: list[Prebinding] = []
        for (wanted, claim), name in zip(unbound.wants(self._world.volumes, pod), chosen, strict=True):
            if name:
                asked.append(ClaimVolume(name, claim.namespace, claim.name, claim.uid))
            elif self._pool.is_made_for(wanted, row):
                asked.append(SelectNode(claim.namespace, claim.name, claim.uid, self._world.stock.names[row]))
            else:
                asked.append(ShareVolume(claim.namespace, claim.name, claim.uid))
        return asked

    def digest(self, rows: IntArray) -> int:
        """A digest of the volumes taken on all rows, because rows may share volumes."""
        return hash((self._pool.digest(), len(rows)))

    def shared_digest(self, member: Member) -> Hashable:
        """A digest of the volumes and the storage that its claims may get."""
        seen = member.sight(BoundTo)
        return self._pool.choices(seen.wants) if seen is not None and seen.wants else None

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """The claim that is not ready, or the rows where volumes cannot be used or none is left."""
        yield from self._of.refusals(member, rows, self._pool.is_settled)
        seen, room = member.sight(BoundTo), self.room(member, rows)
        if seen is None or room is None:
            return
        lacking = (room == 0) | ~self._pool.may_share(seen.wants, rows)
        for text, where in self._pool.provisioning.full(seen.wants, rows):
            yield NodeReason.STORAGE_CAPACITY, text, lacking & where
            lacking = lacking & ~where
        for shortage, where in self._pool.shortages(seen.wants, rows, lacking):
            yield NodeReason.VOLUME_SHORTAGE, shortage, where
