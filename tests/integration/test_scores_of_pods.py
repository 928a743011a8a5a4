"""kube-scheduler's own code judges pods' preferences about other pods: each score must be the same number."""

from __future__ import annotations

import pytest

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.pod_preferences import PodPreferencesPlan
from gangsched.core.constraints.topology_spread import SpreadPlan
from gangsched.core.planning.capacity_snapshot import Snapshot
from tests.effort import seeded
from tests.integration.judged import Json, Standing, Surroundings, World
from tests.integration.oracle_worlds import HOST, NAMESPACES, ZONE, Dice, node, on, pod
from tests.integration.scored import compared
from tests.judge import Judge

PLANS = {PodPreferencesPlan: "InterPodAffinity", SpreadPlan: "PodTopologySpread"}
HERE = Surroundings(NAMESPACES)
A, B = {"app": "a"}, {"app": "b"}
NODES = [
    node("n1", labels={ZONE: "a"}, pods="500", cpu="64"),
    node("n2", labels={ZONE: "a"}, pods="500", cpu="64"),
    node("n3", labels={ZONE: "b"}, pods="500", cpu="64"),
    node("n4", labels={ZONE: "c"}, taints=["dedicated:NoSchedule"], pods="500", cpu="64"),
    node("n5", labels={ZONE: None}, pods="500", cpu="64"),
    node("n6", labels={ZONE: "b", HOST: "twin"}, pods="500", cpu="64"),
    node("n7", labels={ZONE: "d", HOST: "twin"}, pods="500", cpu="64"),
    node("n8", labels={ZONE: "d", HOST: None}, pods="500", cpu="64"),
]


def term(labels: Json | None, key: str = ZONE, **more: object) -> Json:
    return {"topologyKey": key, **({} if labels is None else {"labelSelector": {"matchLabels": labels}}), **more}


def near(*terms: tuple[int, Json], kind: str = "podAffinity") -> Json:
    """`affinity` with preferred terms, each with its weight."""
    found = [{"weight": weight, "podAffinityTerm": each} for weight, each in terms]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": found}}}


def far(*terms: tuple[int, Json]) -> Json:
    return near(*terms, kind="podAntiAffinity")


def beside(*terms: Json) -> Json:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def spread(key: str = ZONE, labels: Json | None = A, *, skew: int = 1, **more: object) -> Json:
    found = term(labels, key, **more) | {"maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway"}
    return {"topologySpreadConstraints": [found]}


def spreads(*found: Json) -> Json:
    return {"topologySpreadConstraints": [each for one in found for each in one["topologySpreadConstraints"]]}


STANDING = [
    on("n1", pod(labels=A)),
    on("n1", pod(labels=A)),
    on("n2", pod(labels=A | {"tier": "x"})),
    on("n3", pod(labels=B)),
    on("n3", pod(labels=A, namespace="blue")),
    on("n4", pod(labels=A)),
    on("n5", pod(labels=A)),
    on("n6", pod(labels=A), leaving=True),
    on("n6", pod(labels={"app": "attracts"}, **near((7, term({"app": "c"}))))),
    on("n2", pod(labels={"app": "repels"}, **far((9, term({"app": "c"}, HOST))))),
    on("n7", pod(labels={"app": "requires"}, **beside(term({"app": "d"})))),
    on("n3", pod(labels={"app": "anywhere"}, **near((3, term({"app": "d"}, namespaceSelector={}))))),
    on("n1", pod(labels=A), status={"phase": "Succeeded"}),
]
OF_AFFINITY: dict[str, Json] = {
    "prefers nothing": pod(),
    "near a by zone": pod(**near((10, term(A)))),
    "near a by host": pod(**near((10, term(A, HOST)))),
    "near a and b": pod(**near((10, term(A)), (30, term(B)))),
    "near a, far from b": pod(affinity=near((10, term(A)))["affinity"] | far((25, term(B)))["affinity"]),
    "far from a": pod(**far((10, term(A)))),
    "far from a everywhere": pod(**far((10, term(A, HOST, namespaceSelector={})))),
    "near a of another namespace": pod(**near((10, term(A, namespaces=["blue"])))),
    "near what is nowhere": pod(**near((10, term({"app": "z"})))),
    "without a selector": pod(**near((10, term(None)))),
    "near any pod": pod(**near((10, term({})))),
    "near by a label that no node has": pod(**near((10, term(A, "rack")))),
    "near by merged label keys": pod(labels={"tier": "x"}, **near((10, term(A, matchLabelKeys=["tier"])))),
    "attracted by one and repelled by another": pod(labels={"app": "c"}),
    "attracted by required affinity": pod(labels={"app": "d"}),
    "attracted from another namespace": pod(labels={"app": "d"}, namespace="blue"),
    "prefers and is attracted": pod(labels={"app": "c"}, **near((5, term(A)))),
    "matches itself": pod(labels={"app": "own"}, **near((5, term({"app": "own"})))),
}
OF_SPREAD: dict[str, Json] = {
    "spreads nothing": pod(labels=A),
    "by zone": pod(labels=A, **spread()),
    "by host": pod(labels=A, **spread(HOST)),
    "by zone and host": pod(labels=A, **spreads(spread(), spread(HOST))),
    "by zone with skew": pod(labels=A, **spread(skew=3)),
    "by zone and host, skewed": pod(labels=A, **spreads(spread(skew=5), spread(HOST, skew=3))),
    "without matching itself": pod(**spread()),
    "without a selector": pod(labels=A, **spread(labels=None)),
    "with an empty selector": pod(labels=A, **spread(labels={})),
    "with an empty selector by host": pod(labels=A, **spread(HOST, labels={}, skew=2)),
    "in another namespace": pod(labels=A, namespace="blue", **spread()),
    "nothing to count": pod(labels=A, **spread(labels={"app": "z"})),
    "by a label that no node has": pod(labels=A, **spread("rack")),
    "by label keys": pod(labels=A | {"tier": "x"}, **spread(matchLabelKeys=["tier"])),
    "honours taints": pod(labels=A, **spread(nodeTaintsPolicy="Honor")),
    "ignores affinity": pod(labels=A, nodeSelector={ZONE: "a"}, **spread(HOST, nodeAffinityPolicy="Ignore")),
    "honours affinity": pod(labels=A, nodeSelector={ZONE: "a"}, **spread(nodeAffinityPolicy="Honor")),
}


def agree(judge: Judge, world: World, probes: list[Json], kind: type) -> tuple[int, int]:
    return compared(judge, HERE, world, probes, kind, PLANS[kind])


@pytest.mark.parametrize("name", OF_AFFINITY)
def test_each_edge_of_affinity_scores_as_in_kube_scheduler(judge: Judge, name: str) -> None:
    assert agree(judge, World(NODES, STANDING), [OF_AFFINITY[name]], PodPreferencesPlan)[0] >= 5


@pytest.mark.parametrize("name", OF_SPREAD)
def test_each_edge_of_spread_scores_as_in_kube_scheduler(judge: Judge, name: str) -> None:
    assert agree(judge, World(NODES, STANDING), [OF_SPREAD[name]], SpreadPlan)[0] >= 2


class Choosy(Dice):
    """Random pods with many preferences about each other and about existing pods."""

    def scored(self) -> World:
        nodes = [self.scored_node(f"n{number}") for number in range(12)]
        for each in nodes:
            if self._chance(0.2):
                each["metadata"]["labels"].pop(self._one([ZONE, HOST]))
        return World(nodes, [self._there() for _ in range(30)])

    def _there(self) -> Standing:
        made = pod(namespace=self._one([*NAMESPACES]), labels=self._labels(), **self._terms(self._anti_affinity_term))
        if self._chance(0.2):
            made["spec"] |= beside(self._anti_affinity_term())
        return on(f"n{self._random.randint(0, 11)}", made, leaving=self._chance(0.2))

    def of_affinity(self) -> Json:
        return pod(namespace=self._one([*NAMESPACES]), labels=self._labels(), **self._terms(self._term_of_probe))

    def of_spread(self) -> Json:
        found = self._spread() or self._spread()
        for each in found:
            each.pop("minDomains", None)
            each |= {"whenUnsatisfiable": "ScheduleAnyway", "maxSkew": self._one([1, 1, 2, 5])}
        selector = {"nodeSelector": {"pool": "batch"}} if self._chance(0.1) else {}
        made = pod(namespace=self._one([*NAMESPACES]), labels=self._labels(), **selector)
        made["spec"]["topologySpreadConstraints"] = found
        return made

    def _terms(self, one: object) -> Json:
        assert callable(one)
        found: Json = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            if self._chance(0.6):
                terms = [(self._random.randint(1, 100), one()) for _ in range(self._one([1, 1, 2]))]
                found.setdefault("affinity", {}).update(near(*terms, kind=kind)["affinity"])
        return found


@seeded(5)
def test_random_pods_score_nodes_as_kube_scheduler_does(judge: Judge, seed: int) -> None:
    dice = Choosy(seed)
    world = dice.scored()
    of_affinity = agree(judge, world, [dice.of_affinity() for _ in range(60)], PodPreferencesPlan)
    of_spread = agree(judge, world, [dice.of_spread() for _ in range(60)], SpreadPlan)
    assert min(of_affinity[0], of_spread[0]) >= 200
    assert min(of_affinity[1], of_spread[1]) >= 15


def test_a_cluster_without_such_terms_asks_nothing_of_pods() -> None:
    assert [plan.keys for plan in Snapshot(Cluster()).plans if type(plan) in PLANS] == [None, None]
