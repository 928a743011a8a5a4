"""Pods that leave snapshots: prepared for one, and for those of several calls where most of them are the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING

import numpy as np

from gangsched.core.cluster.claims import Claim
from gangsched.core.constraints.constraint import Alike, Leavers
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Shape

if TYPE_CHECKING:
    from gangsched.core.planning.capacity_snapshot import Snapshot

_MORE = 200
"""So many more are prepared at once."""


def leavers_of(claims: Iterable[Claim], rows: Mapping[str, int], *, keep_devices: bool = False) -> Leavers:
    """Those that count on known nodes, which have these rows."""
    present = [claim for claim in claims if claim.node in rows and claim.counts]
    preparing = frozenset([claim.pod.uid for claim in present if claim.prebindings])
    return prepared([(claim.pod, rows[claim.node]) for claim in present], preparing, keep_devices=keep_devices)


def prepared(pods: Sequence[tuple[Pod, int]], preparing: frozenset[str], *, keep_devices: bool = False) -> Leavers:
    """These pods, each with its row."""
    by_shape: dict[Shape, tuple[list[Pod], list[int]]] = {}
    uids, choosy = list[str](), list[tuple[Pod, int]]()
    for pair in pods:
        pod, row = pair
        uids.append(pod.uid)
        if pod.soft is not None or pod.shape.affinity:
            choosy.append(pair)
        same, places = by_shape.get(pod.shape) or by_shape.setdefault(pod.shape, ([], []))
        same.append(pod)
        places.append(row)
    alike = [Alike(shape, same, np.array(places, dtype=np.int64)) for shape, (same, places) in by_shape.items()]
    return Leavers(pods, alike, frozenset(uids), choosy, preparing, keep_devices)


def _joined(leavers: Leavers, more: Leavers) -> Leavers:
    """All of them, none of whom is in both."""
    by_shape = {alike.shape: alike for alike in leavers.alike}
    for alike in more.alike:
        before = by_shape.get(alike.shape)
        if before is None:
            by_shape[alike.shape] = alike
        else:
            rows = np.concatenate([before.rows, alike.rows])
            by_shape[alike.shape] = Alike(alike.shape, [*before.pods, *alike.pods], rows)
    choosy, preparing = [*leavers.choosy, *more.choosy], leavers.preparing | more.preparing
    return Leavers([*leavers.pods, *more.pods], [*by_shape.values()], leavers.uids | more.uids, choosy, preparing)


def _without(leavers: Leavers, gone: AbstractSet[str]) -> Leavers:
    """The others, without these pods (by UID)."""
    rest = []
    for alike in leavers.alike:
        stays = [pod.uid not in gone for pod in alike.pods]
        if all(stays):
            rest.append(alike)
        elif any(stays):
            rest.append(Alike(alike.shape, [*compress(alike.pods, stays)], alike.rows[stays]))
    pods, choosy = ([pair for pair in pairs if pair[0].uid not in gone] for pairs in (leavers.pods, leavers.choosy))
    return Leavers(pods, rest, leavers.uids - gone, choosy, leavers.preparing - gone)


class PreparedLeavers:
    """Many that leave one snapshot after the other, on nodes that had these rows when so many `nodes` had changed."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self._prepared = leavers_of((), {})
        self._nodes = -1

    def leave(self, snapshot: Snapshot, leaving: Mapping[str, Claim]) -> None:
        """Let these leave the snapshot, which nobody has left yet: those of last time, but for those that differ."""
        nodes, rows = snapshot.cluster.node_changes, snapshot.cluster.capacity.rows
        if self._nodes != nodes:
            self._claims, self._prepared, self._nodes = {}, leavers_of((), rows), nodes
        known = self._claims
        # Some of them may be gone, and nobody leaves who is not there.
        if former := {*compress(known, map(is_not, known.values(), map(leaving.get, known)))}:
            self._prepared = _without(self._prepared, former)
            for uid in former:
                del known[uid]
        new = {uid: leaving[uid] for uid in sorted(leaving.keys() - known.keys())} if len(leaving) > len(known) else {}
        # The others change once more when they begin to terminate.
        lasting = {uid: claim for uid, claim in new.items() if claim.pod.terminating}
        if len(lasting) > _MORE:
            self._prepared = _joined(self._prepared, leavers_of(lasting.values(), rows))
            known.update(lasting)
            new = {uid: claim for uid, claim in new.items() if uid not in lasting}
        snapshot.depart(self._prepared)
        snapshot.leave(new.values())
