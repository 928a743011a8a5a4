"""The scores of nodes for pods by gangsched and by kube-scheduler's own code, compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangsched.core.constraints.constraint import Plan
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify, preferring
from tests.integration.judged import Json, Surroundings, World, cluster_of, read_pod
from tests.judge import Judge


def scores_of(snapshot: Snapshot, pod: Pod, kind: type[Plan]) -> dict[str, int]:
    """The weighted scores of the pod's feasible nodes; all 0 if the plug-in has nothing to score."""
    member = preferring(snapshot, [pod], classify(snapshot, [pod]), {})[pod.uid]
    rows = np.flatnonzero(snapshot.accepts(member))
    [plan] = [plan for plan in snapshot.plans if isinstance(plan, kind)]
    # Images only decide between nodes that are otherwise equal, and have no weight.
    weight = plan.weight or 1
    scores = weight * plan.score(member, rows) if plan.prefers(member) else np.zeros(len(rows), dtype=np.int64)
    return {snapshot.name(row): int(score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)}


def compared(
    judge: Judge, here: Surroundings, world: World, probes: Sequence[Json], kind: type[Plan], plugin: str
) -> tuple[int, int]:
    """How many pairs of node and pod were compared, and how many pods prefer some node to another."""
    named = [here.admitted(each, name=f"probe-{at}", uid=f"probe-{at}") for at, each in enumerate(probes)]
    said = judge.ask(here.objects(world), named, score=True)
    snapshot = Snapshot(cluster_of(said.objects))
    pairs = choosy = 0
    for verdict in said.verdicts:
        theirs = {name: scores.get(plugin, 0) for name, scores in verdict.scores.items()}
        found = scores_of(snapshot, read_pod(verdict.pod), kind)
        # Where no taint decides, kube-scheduler gives all nodes the most.
        assert found == theirs or (plugin == "TaintToleration" and theirs == dict.fromkeys(found, 300)), verdict.pod
        pairs += len(theirs)
        choosy += len(set(theirs.values())) > 1
    return pairs, choosy
