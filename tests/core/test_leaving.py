"""Which units leave for an ask: a table of cases, each with the units that must leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.core.planning import leaving, victim_sets
from gangsched.core.planning.after import After, NoWay
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.leaving import Search
from gangsched.core.planning.removable import Removable
from gangsched.core.planning.unit_table import Unit
from tests.builders import node, pod
from tests.clusters import cluster_of

RED = PodTerm("kubernetes.io/hostname", (Requirement("team", "In", ("red",)),), ("default",))


def nodes(*cpus: int, racks: str = "") -> list[Node]:
    """Nodes n0, n1, … with so many CPUs, each in the rack that its letter names."""
    letters = racks or "a" * len(cpus)
    return [
        node(f"n{at}", cpu=each, labels={"kubernetes.io/hostname": f"n{at}", "rack": letters[at]})
        for at, each in enumerate(cpus)
    ]


@dataclass
class Left:
    """A unit to be: its pods as (node, CPUs), and what `Unit` says of it."""

    pods: Sequence[tuple[str, int]]
    level: int = 0
    lost_s: float = 60.0
    since: float = 0.0
    whole: bool = False
    along: tuple[str, ...] = ()
    draws: Mapping[str, int] = field(default_factory=dict)
    like: Mapping[str, Any] = field(default_factory=dict)

    def unit(self, name: str, cluster: Cluster) -> Unit:
        """The unit, with its pods on the cluster."""
        placed = [
            pod(f"{name}-{at}", cpu=cpus, group="", node=where, **self.like)
            for at, (where, cpus) in enumerate(self.pods)
        ]
        for each in placed:
            cluster.set_pod(each)
        return Unit(
            name,
            self.level,
            tuple(cluster.ledger.claims[each.uid] for each in placed),
            (-self.lost_s,) * len(placed),
            self.since,
            whole=self.whole,
            along=self.along,
            draws=tuple(self.draws.items()),
        )


def members(number: int, cpu: int = 2, **like: Any) -> list[Pod]:
    return [pod(f"a{at}", cpu=cpu, **like) for at in range(number)]


def search(
    there: Iterable[Node],
    units: Mapping[str, Left],
    asked: Sequence[Pod],
    allowed: Mapping[str, int] | None = None,
    **terms: Any,
) -> After | NoWay | None:
    """The result of a search without limit of effort."""
    cluster = cluster_of(*there)
    several = [each.unit(name, cluster) for name, each in units.items()]
    ask = Ask(members=asked, need=len(asked), **terms)
    return Search(ask, Removable.of(cluster, several), allowed or {}).go_on(Snapshot(cluster, budget=Budget(1 << 40)))


def plain(where: str, cpus: int = 2, **fields: Any) -> Left:
    return Left([(where, cpus)], **fields)


RACK: Mapping[str, Any] = {"topology": Topology("rack", required=True)}
GANG = Left([("n0", 1), ("n0", 1)], whole=True, lost_s=60.0)

CASES: Mapping[str, tuple[Callable[[], After | NoWay | None], set[str]]] = {
    "nobody, where there is room": (lambda: search(nodes(4), {"p": plain("n0")}, members(1)), set()),
    "surplus before a plain pod": (
        lambda: search(
            nodes(2, 2, 2),
            {"a": plain("n0"), "g": Left([("n1", 2)], whole=True, along=("g-s",)), "g-s": plain("n2")},
            members(1),
        ),
        {"g-s"},
    ),
    "a plain pod before a gang": (
        lambda: search(nodes(2, 2), {"a": GANG, "b": plain("n1")}, members(1)),
        {"b"},
    ),
    "a gang with all that it takes along": (
        lambda: search(
            nodes(2, 2),
            {"g": Left([("n0", 2)], whole=True, along=("g-s",)), "g-s": plain("n1", lost_s=9e9), "p": plain("n1", 0)},
            members(1, node_selector={"kubernetes.io/hostname": "n0"}),
        ),
        {"g", "g-s"},
    ),
    "least lost work, though it is two gangs": (
        lambda: search(
            nodes(4, 4),
            {
                "big": Left([("n0", 4)], whole=True, lost_s=90_000.0),
                "x": Left([("n1", 2)], whole=True),
                "y": Left([("n1", 2)], whole=True),
            },
            members(2),
        ),
        {"x", "y"},
    ),
    "a gang counts with its pods elsewhere": (
        lambda: search(
            nodes(2, 2, 8),
            {"g": Left([("n0", 2), ("n2", 8)], whole=True), "p": plain("n1", lost_s=120.0)},
            members(1),
        ),
        {"p"},
    ),
    "a gang that leaves gives all its room": (
        lambda: search(
            nodes(2, 2, 2, 2),
            {
                "g": Left([("n0", 2), ("n1", 2)], whole=True, lost_s=100.0),
                "p": plain("n2", lost_s=90.0),
                "q": plain("n3", lost_s=150.0),
            },
            members(2),
        ),
        {"g"},
    ),
    "the youngest of equals": (
        lambda: search(nodes(2, 2), {"a": plain("n0", since=5.0), "b": plain("n1", since=9.0)}, members(1)),
        {"b"},
    ),
    "the first by name of equals": (
        lambda: search(nodes(2, 2), {"b": plain("n0"), "a": plain("n1")}, members(1)),
        {"a"},
    ),
    "one level, where two are lower than the holder": (
        lambda: search(nodes(2, 2), {"a": plain("n0", level=2), "b": plain("n1", level=1, lost_s=9e9)}, members(1)),
        {"b"},
    ),
    "of two levels no more than it takes": (
        lambda: search(
            nodes(2, 2, 2),
            {"a": plain("n0", level=1), "b": plain("n1", level=2), "c": plain("n2", level=2, lost_s=70.0)},
            members(2),
        ),
        {"a", "b"},
    ),
    "on two nodes": (
        lambda: search(nodes(2, 2, 1), {"a": plain("n0"), "b": plain("n1"), "c": plain("n2", 1)}, members(2)),
        {"a", "b"},
    ),
    "in the rack with victims": (
        lambda: search(
            nodes(2, 2, 2, 2, racks="aabb"),
            {"a": plain("n0"), "b": plain("n1", lost_s=900.0), "c": plain("n2", lost_s=100.0), "d": plain("n3")},
            members(2),
            **RACK,
        ),
        {"c", "d"},
    ),
    "in no rack that has room without": (
        lambda: search(nodes(2, 2, 2, racks="aab"), {"a": plain("n0")}, members(1), **RACK),
        set(),
    ),
    "who has the host port": (
        lambda: search(
            nodes(8, 2),
            {"a": plain("n0", 1), "b": plain("n0", 1, like={"host_ports": [80]}, lost_s=900.0), "c": plain("n1")},
            members(1, cpu=3, host_ports=[80]),
        ),
        {"b"},
    ),
    "whom required anti-affinity avoids": (
        lambda: search(
            nodes(8),
            {"a": plain("n0"), "b": plain("n0", like={"labels": {"team": "red"}})},
            members(1, anti_affinity=[RED]),
        ),
        {"b"},
    ),
    "who avoids the members": (
        lambda: search(
            nodes(8),
            {"a": plain("n0"), "b": plain("n0", like={"anti_affinity": [RED]})},
            members(1, labels={"team": "red"}),
        ),
        {"b"},
    ),
    "not whom required affinity needs": (
        lambda: search(
            nodes(4),
            {"a": plain("n0", lost_s=900.0), "b": plain("n0", like={"labels": {"team": "red"}})},
            members(1, affinity=[RED]),
        ),
        {"a"},
    ),
    "a victim is spared that another made needless": (
        lambda: search(
            nodes(6),
            {"a": plain("n0", 1, lost_s=60.0), "b": plain("n0", 1, lost_s=61.0), "c": plain("n0", 4, lost_s=250.0)},
            members(1, cpu=4),
        ),
        {"c"},
    ),
    "as many as a budget allows, and another": (
        lambda: search(
            nodes(2, 2, 2),
            {
                "a": plain("n0", draws={"b": 1}),
                "b": plain("n1", draws={"b": 1}),
                "c": plain("n2", lost_s=9000.0),
            },
            members(2),
            {"b": 1},
        ),
        {"a", "c"},
    ),
    "the one of two under a budget that helps": (
        lambda: search(
            nodes(2, 1),
            {"a": plain("n0", lost_s=900.0, draws={"b": 1}), "b": plain("n1", 1, draws={"b": 1})},
            members(1),
            {"b": 1},
        ),
        {"a"},
    ),
    "no gang that a budget does not allow at once": (
        lambda: search(
            nodes(2, 2),
            {"g": Left([("n0", 1), ("n0", 1)], whole=True, draws={"b": 2}), "p": plain("n1", lost_s=9000.0)},
            members(1),
            {"b": 1},
        ),
        {"p"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_those_leave_who_must(name: str) -> None:
    find, names = CASES[name]
    found = find()
    assert isinstance(found, After)
    assert {unit.name for unit in found.leaving} == names


def test_the_least_work_is_lost_in_a_large_cluster_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """There fewer ways of choosing are compared, and little is improved afterwards."""
    monkeypatch.setattr(victim_sets, "_SMALL", 0)
    monkeypatch.setattr(leaving, "_IMPROVING", 0)
    units = {name: plain(f"n{at}", lost_s=90.0 - at) for at, name in enumerate("abc")}
    found = search(nodes(2, 2, 2), units, members(1))
    assert isinstance(found, After)
    assert [unit.name for unit in found.leaving] == ["c"]


def test_the_level_is_that_of_the_most_important_unit_that_leaves() -> None:
    found = search(nodes(2, 2), {"a": plain("n0", level=3), "b": plain("n1", level=7)}, members(2))
    assert isinstance(found, After)
    assert found.level == 7


def test_what_sums_exclude_is_hopeless() -> None:
    """All of both nodes is less than what is asked for."""
    found = search(nodes(2, 2), {"a": plain("n0"), "b": plain("n1")}, members(3))
    assert found == NoWay(hopeless=True)


def test_an_unknown_resource_is_hopeless() -> None:
    assert search(nodes(2), {"a": plain("n0")}, members(1, gpu=1)) == NoWay(hopeless=True)


def test_two_units_under_a_budget_for_one_make_no_way() -> None:
    """A budget is for all that leave together. Which sets it allows was not tried one by one, so it is no proof."""
    units = {"a": plain("n0", draws={"b": 1}), "b": plain("n1", draws={"b": 1})}
    assert search(nodes(2, 2), units, members(2), {"b": 1}) == NoWay(exhausted=True)
    assert isinstance(search(nodes(2, 2), units, members(2), {"b": 2}), After)


def test_a_port_of_a_pod_that_is_no_unit_is_a_proof() -> None:
    """Who has the port stays, whoever else leaves."""
    cluster = cluster_of(node("n0"), pod("x", group="", node="n0", host_ports=[80]))
    units = [plain("n0").unit("a", cluster)]
    ask = Ask(members=members(1, host_ports=[80]), need=1)
    found = Search(ask, Removable.of(cluster, units), {}).go_on(Snapshot(cluster))
    assert found == NoWay()


def test_only_units_below_a_level_leave() -> None:
    cluster = cluster_of(*nodes(2, 2))
    several = {"a": plain("n0", level=1, lost_s=9e9), "b": plain("n1", level=2)}
    removable = Removable.of(cluster, [each.unit(name, cluster) for name, each in several.items()])
    found = Search(Ask(members=members(1), need=1), removable, {}, below=2).go_on(Snapshot(cluster))
    assert isinstance(found, After)
    assert [unit.name for unit in found.leaving] == ["a"]
    assert Search(Ask(members=members(1), need=1), removable, {}, below=1).go_on(Snapshot(cluster)) == NoWay(
        hopeless=True
    )


def test_beyond_so_many_trials_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members avoid more pods than there are trials, and each must leave."""
    monkeypatch.setattr(leaving, "MOST_TRIALS", 10)
    there = nodes(*[2] * 20)
    units = {each.name: plain(each.name, 1, like={"labels": {"team": "red"}}) for each in there}
    assert search(there, units, members(20, cpu=1, anti_affinity=[RED])) == NoWay(exhausted=True)


def test_who_has_a_host_port_is_found_with_few_trials() -> None:
    """Which pods must leave because they have the port follows from sums, so that not each is tried by itself."""
    there = nodes(*[4] * 20)
    cluster = cluster_of(*there)
    units = [plain(each.name, 1, like={"host_ports": [80]}).unit(each.name, cluster) for each in there]
    units += [plain(each.name, 1).unit(f"{each.name}-other", cluster) for each in there]
    asked = Ask(members=members(20, cpu=1, host_ports=[80]), need=20)
    running = Search(asked, Removable.of(cluster, units), {})
    found = running.go_on(Snapshot(cluster, budget=Budget(1 << 40)))
    assert isinstance(found, After)
    assert {unit.name for unit in found.leaving} == {each.name for each in there}
    assert running.trials <= 10  # of which some try to improve the set
