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
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Shape

if TYPE_CHECKING:
    from gangsched.core.planning.capacity_snapshot import Snapshot

_MORE = 200
"""So many more are prepared at once."""


def leavers_of(claims: Iterable[Claim], rows: Mapping[str, int], *, keep_devices: bool = False) -> Leavers:
    """Those that count on known nodes, which have these rows."""
    there = [each for each in claims if each.node in rows and each.counts]
    preparing = frozenset([each.pod.uid for each in there if each.prebindings])
    return prepared([(each.pod, rows[each.node]) for each in there], preparing, keep_devices=keep_devices)


def prepared(pods: Sequence[tuple[Pod, int]], preparing: frozenset[str], *, keep_devices: bool = False) -> Leavers:
    """These pods, each with its row."""
    by_shape: dict[Shape, tuple[list[Pod], list[int]]] = {}
    uids, choosy = list[str](), list[tuple[Pod, int]]()
    for each in pods:
        pod, row = each
        uids.append(pod.uid)
        if pod.soft is not None or pod.shape.affinity:
            choosy.append(each)
        several, places = by_shape.get(pod.shape) or by_shape.setdefault(pod.shape, ([], []))
        several.append(pod)
        places.append(row)
    alike = [_alike(shape, several, np.array(places, dtype=np.int64)) for shape, (several, places) in by_shape.items()]
    return Leavers(pods, alike, frozenset(uids), choosy, preparing, keep_devices)


def _alike(shape: Shape, pods: Sequence[Pod], rows: IntArray) -> Alike:
    return Alike(shape, pods, rows, *np.unique(rows, return_counts=True))


def _joined(several: Leavers, more: Leavers) -> Leavers:
    """All of them, none of whom is in both."""
    by_shape = {each.shape: each for each in several.alike}
    for each in more.alike:
        before = by_shape.get(each.shape)
        if before is None:
            by_shape[each.shape] = each
        else:
            rows = np.concatenate([before.rows, each.rows])
            by_shape[each.shape] = _alike(each.shape, [*before.pods, *each.pods], rows)
    choosy, preparing = [*several.choosy, *more.choosy], several.preparing | more.preparing
    return Leavers([*several.pods, *more.pods], [*by_shape.values()], several.uids | more.uids, choosy, preparing)


def _without(several: Leavers, gone: AbstractSet[str]) -> Leavers:
    """The others, without these pods (by UID)."""
    alike = []
    for each in several.alike:
        stays = [pod.uid not in gone for pod in each.pods]
        if all(stays):
            alike.append(each)
        elif any(stays):
            alike.append(_alike(each.shape, [*compress(each.pods, stays)], each.rows[stays]))
    pods, choosy = ([each for each in those if each[0].uid not in gone] for those in (several.pods, several.choosy))
    return Leavers(pods, alike, several.uids - gone, choosy, several.preparing - gone)


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
        if not known.items() <= leaving.items():
            former = {*compress(known, map(is_not, known.values(), map(leaving.get, known)))}
            self._prepared = _without(self._prepared, former)
            for uid in former:
                del known[uid]
        new = {uid: leaving[uid] for uid in sorted(leaving.keys() - known.keys())} if len(leaving) > len(known) else {}
        # The others change once more when they begin to terminate.
        lasting = {uid: each for uid, each in new.items() if each.pod.terminating}
        if len(lasting) > _MORE:
            self._prepared = _joined(self._prepared, leavers_of(lasting.values(), rows))
            known.update(lasting)
            new = {uid: each for uid, each in new.items() if uid not in lasting}
        snapshot.depart(self._prepared)
        snapshot.leave(new.values())
