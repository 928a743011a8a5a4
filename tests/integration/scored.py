"""gangsched's scores of nodes for a pod, by plug-in."""

from __future__ import annotations

import numpy as np

from gangsched.core.constraints.constraint import Plan
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify, preferring


def scores_of(snapshot: Snapshot, pod: Pod, kind: type[Plan]) -> dict[str, int]:
    """The weighted scores of the pod's feasible nodes; all 0 if the plug-in has nothing to score."""
    member = preferring(snapshot, [pod], classify(snapshot, [pod]), {})[pod.uid]
    rows = np.flatnonzero(snapshot.accepts(member))
    [plan] = [plan for plan in snapshot.plans if isinstance(plan, kind)]
    scores = plan.weight * plan.score(member, rows) if plan.prefers(member) else np.zeros(len(rows), dtype=np.int64)
    return {snapshot.name(row): int(score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)}
