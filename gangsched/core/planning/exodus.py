"""Pods that leave snapshots: prepared for one, and for those of several calls where most of them are the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

_CHANGED = 8
"""They are prepared anew once so many times those that differ are more than all."""


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
    alike = []
    for shape, (several, places) in by_shape.items():
        found = np.array(places, dtype=np.int64)
        alike.append(Alike(shape, several, found, *np.unique(found, return_counts=True)))
    return Leavers(pods, alike, frozenset(uids), choosy, preparing, keep_devices)


class Exodus:
    """Many that leave one snapshot after the other, of a cluster whose nodes have these rows until `nodes` changes."""

    def __init__(self) -> None:
        self._claims: Mapping[str, Claim] = {}
        self._prepared = leavers_of((), {})
        self._nodes = -1

    def leave(self, snapshot: Snapshot, leaving: Mapping[str, Claim]) -> None:
        """Let these leave the snapshot, which nobody has left yet: those of last time, but for those that differ."""
        known, nodes = self._claims, snapshot.cluster.node_changes
        former = [*compress(known.values(), map(is_not, known.values(), map(leaving.get, known)))]
        new = [*compress(leaving.values(), map(is_not, leaving.values(), map(known.get, leaving)))]
        if self._nodes != nodes or _CHANGED * (len(former) + len(new)) > len(leaving):
            self._claims, self._nodes, former, new = leaving, nodes, [], []
            self._prepared = leavers_of(leaving.values(), snapshot.cluster.capacity.rows)
        snapshot.depart(self._prepared)
        snapshot.stay(former)
        snapshot.leave(new)
