"""kube-scheduler itself judges pods' preferences: gangsched must compute the same number for each score it knows."""

from __future__ import annotations

from gangsched.core.cluster.cache import Cluster
from gangsched.core.planning.capacity_snapshot import Snapshot
from tests.effort import seeded
from tests.integration.judged import Json, Surroundings, World
from tests.integration.oracle_worlds import TOLERATES_ALL, ZONE, Dice, container, likes, node, pod
from tests.integration.scored import compared
from tests.judge import Judge

MIB = 1 << 20
BIG = "example.com/big:1"
HERE = Surroundings({"red": {}})
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


def agree(judge: Judge, nodes: list[Json], probes: list[Json]) -> int:
    """How many scores were compared."""
    plans = {type(plan).__name__: type(plan) for plan in Snapshot(Cluster()).plans}
    return sum(compared(judge, HERE, World(nodes), probes, plans[name], name)[0] for name in KNOWN)


def test_each_score_of_the_table_is_that_of_kube_scheduler(judge: Judge) -> None:
    assert agree(judge, NODES, list(PROBES.values())) > 100


@seeded(3)
def test_scores_in_a_random_world_are_those_of_kube_scheduler(judge: Judge, seed: int) -> None:
    dice = Dice(seed)
    nodes = [dice.scored_node(f"n{number}") for number in range(12)]
    assert agree(judge, nodes, [dice.choosy_probe() for _ in range(60)]) > 500
