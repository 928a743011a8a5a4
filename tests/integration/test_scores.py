"""kube-scheduler itself judges pods' preferences: gangsched must compute the same number for each score it knows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gangsched.core.objects.pod import Pod
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify, preferring
from testbed.control_plane import ControlPlane
from tests.effort import seeded
from tests.integration.judged import Json, World
from tests.integration.oracle import Oracle
from tests.integration.oracle_worlds import TOLERATES_ALL, ZONE, Dice, container, likes, node, pod

MIB = 1 << 20
BIG = "example.com/big:1"
KNOWN = ("TaintToleration", "NodeAffinity", "ImageLocality")
NODES = [
    node("n1", labels={"disk": "ssd"}, images={BIG: 700 * MIB, "example.com:5000/app:latest": 90 * MIB}, pods="500"),
    node("n2", labels={ZONE: "b"}, taints=["old:PreferNoSchedule"], images={BIG: 700 * MIB}, pods="500"),
    node(
        "n3", taints=["old=x:PreferNoSchedule", "slow:PreferNoSchedule"], images={"x@sha256:0": 5000 * MIB}, pods="500"
    ),
    node(
        "n4", labels={"disk": "ssd", "gen": "7"}, taints=["old=x:PreferNoSchedule", "dedicated:NoSchedule"], pods="500"
    ),
    node("n5", labels={ZONE: "b", "gen": "9"}, images={"x@sha256:0": 5000 * MIB}, pods="500"),
]
PROBES: dict[str, Json] = {
    "prefers nothing": pod(),
    "prefers a disk": pod(**likes((10, "disk In ssd"))),
    "prefers one thing to another": pod(**likes((70, "disk In ssd"), (30, f"{ZONE} In b"))),
    "prefers much": pod(
        **likes((100, "disk In ssd"), (33, f"{ZONE} In b"), (10, "gen Gt 7"), (5, "disk DoesNotExist"))
    ),
    "prefers a name": pod(**likes((10, "metadata.name In n3"), (7, "disk In ssd"))),
    "prefers two things at once": pod(**likes((10, f"{ZONE} In b", "gen Exists"), (3, "gen NotIn 9"))),
    "prefers what no node has": pod(**likes((10, "disk In tape"))),
    "tolerates one taint": pod(tolerations=[{"key": "old", "operator": "Exists"}]),
    "tolerates a value": pod(tolerations=[{"key": "old", "value": "x", "effect": "PreferNoSchedule"}]),
    "tolerates another effect": pod(tolerations=[{"key": "old", "operator": "Exists", "effect": "NoSchedule"}]),
    "tolerates everything": pod(**TOLERATES_ALL),
    "prefers a disk and tolerates": pod(**likes((10, "disk In ssd")), **TOLERATES_ALL),
    "has a large image": pod(container() | {"image": BIG}),
    "has an image without a tag": pod(container() | {"image": "example.com:5000/app"}),
    "has an image by its digest": pod(container() | {"image": "x@sha256:0"}),
    "has two images": pod(container() | {"image": BIG}, container() | {"image": "x@sha256:0"}),
    "has an image in two containers": pod(
        container() | {"image": BIG},
        initContainers=[container("i") | {"image": BIG}],
    ),
    "has an image as a volume": pod(
        container() | {"image": "nowhere"}, volumes=[{"name": "v", "image": {"reference": BIG}}]
    ),
    "has an image that no node has": pod(container() | {"image": "nowhere:1"}),
}


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with ControlPlane(controllers=False, kwok=False, not_ready_taint=False) as control_plane:
        control_plane.api.post("/api/v1/namespaces", {"metadata": {"name": "red"}})
        yield Oracle(control_plane)


def ours(snapshot: Snapshot, member: Pod) -> dict[str, dict[str, int]]:
    """gangsched's scores of the nodes that take the pod, by plug-in, with kube-scheduler's weights."""
    asked = preferring(snapshot, [member], classify(snapshot, [member]), {})[member.uid]
    rows = np.flatnonzero(snapshot.accepts(asked))
    names = [snapshot.name(row) for row in rows.tolist()]
    found = {}
    for plan in snapshot.plans:
        if (name := type(plan).__name__) in KNOWN:
            weight = plan.weight or 1
            scores = plan.score(asked, rows) * weight if plan.prefers(asked) else np.zeros(len(rows), dtype=np.int64)
            found[name] = dict(zip(names, scores.tolist(), strict=True))
    return found


def agree(oracle: Oracle, probes: list[Json]) -> int:
    """How many scores were compared."""
    snapshot = Snapshot(oracle.cluster())
    compared = 0
    for member, theirs in oracle.scores(probes):
        known = {name: theirs[name] for name in KNOWN if name in theirs}
        assert not theirs or "TaintToleration" in known
        found = ours(snapshot, member)
        for name, by_node in known.items():
            if name == "TaintToleration" and not any(found[name].values()):
                assert set(by_node.values()) <= {300}, "all nodes are equal"
                continue
            assert found[name] == by_node, f"{name} of {member.name}, which prefers {member.soft}"
            compared += len(by_node)
    return compared


def test_each_score_of_the_table_is_that_of_kube_scheduler(oracle: Oracle) -> None:
    with oracle.world(World(NODES)):
        assert agree(oracle, list(PROBES.values())) > 100


@seeded(3)
def test_scores_in_a_random_world_are_those_of_kube_scheduler(oracle: Oracle, seed: int) -> None:
    dice = Dice(seed)
    with oracle.world(World([dice.scored_node(f"n{number}") for number in range(12)])):
        assert agree(oracle, [dice.choosy_probe() for _ in range(60)]) > 500
