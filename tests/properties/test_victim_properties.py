"""What holds for the units that must leave, whatever the cluster: `place` itself is the judge, on every subset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm, Requirement, Spread
from gangsched.core.planning.after import After, NoWay
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.leaving import Search
from gangsched.core.planning.placement import Placement, place
from gangsched.core.planning.removable import Removable
from gangsched.core.planning.unit_table import Unit
from tests.builders import node, pod
from tests.effort import examples
from tests.properties.test_leaving_properties import answers, classes_of

# `make nightly` tries 10,000 clusters, each with dozens of placements.
pytestmark = pytest.mark.timeout(1800)

HOST, RACK = "kubernetes.io/hostname", "rack"
PLENTY = 1 << 40
RED = (Requirement("team", "In", ("red",)),)
WORK = (60.0, 100.0, 1000.0)

terms = st.sampled_from((HOST, RACK)).map(lambda key: PodTerm(key, RED, ("default",)))
seldom = st.sampled_from((True, False, False, False, False))


@dataclass
class World:
    """A cluster, the units that may leave, the ask, and the evictions that budgets allow."""

    cluster: Cluster
    units: Sequence[Unit]
    ask: Ask
    allowed: Mapping[str, int]

    def search(self, *, budget: int = PLENTY, units: Sequence[Unit] | None = None) -> After | NoWay:
        """The result, found in slices of so many units of effort, each on a snapshot of its own."""
        search = Search(self.ask, Removable.of(self.cluster, self.units if units is None else units), self.allowed)
        found = None
        while found is None:
            found = search.go_on(Snapshot(self.cluster, budget=Budget(budget)))
        return found

    def places(self, leaving: Collection[Unit]) -> bool:
        """Whether the ask is placed once these have left."""
        snapshot = Snapshot(self.cluster, budget=Budget(PLENTY))
        snapshot.leave(claim for unit in leaving for claim in unit.claims)
        return isinstance(place(snapshot, self.ask), Placement)

    def within_budgets(self, leaving: Collection[Unit]) -> bool:
        """Whether budgets allow that all of these leave."""
        drawn = Counter[str]()
        for unit in leaving:
            drawn.update(dict(unit.draws))
        return all(number <= self.allowed.get(name, 0) for name, number in drawn.items())

    def sets(self) -> Iterator[frozenset[Unit]]:
        """Every set of units that may leave, gangs with all that they take along."""
        for chosen in chain.from_iterable(combinations(self.units, number) for number in range(len(self.units) + 1)):
            names = {unit.name for unit in chosen}
            if all(names.issuperset(unit.along) for unit in chosen) and self.within_budgets(chosen):
                yield frozenset(chosen)

    @property
    def needs_pods(self) -> bool:
        """Whether a unit that stays may help the ask."""
        return any(each.shape.affinity or each.shape.spread for each in self.ask.members)


def draw_members(draw: st.DrawFn, *, rich: bool) -> list[Pod]:
    number = draw(st.integers(1, 4))
    like: dict[str, Any] = {"labels": {"team": "red"}}
    if rich and draw(st.booleans()):
        like |= draw(
            st.sampled_from(
                (
                    {"host_ports": [80]},
                    {"anti_affinity": [draw(terms)]},
                    {"affinity": [draw(terms)]},
                    {"spread": [Spread(draw(terms), max_skew=1)]},
                    {"node_selector": {RACK: "r0"}},
                )
            )
        )
    same = not rich or draw(st.booleans())
    cpus = [draw(st.integers(1, 3))] * number if same else [draw(st.integers(1, 3)) for _ in range(number)]
    return [pod(f"a{at}", cpu=cpu, **like) for at, cpu in enumerate(cpus)]


@st.composite
def worlds(draw: st.DrawFn, *, rich: bool = True, budgets: bool = True, most: int = 7) -> World:
    """Full small nodes in two racks; `rich` in what constraints read besides amounts."""
    cluster, free = Cluster(), dict[str, int]()
    for at in range(draw(st.integers(1, 4))):
        free[f"n{at}"] = draw(st.integers(2, 6))
        cluster.set_node(node(f"n{at}", cpu=free[f"n{at}"], labels={RACK: f"r{at % 2}", HOST: f"n{at}"}))
    placed = list[Pod]()
    for at in range(draw(st.integers(2, 2 * most))):
        where, cpu = draw(st.sampled_from(sorted(free))), draw(st.integers(1, 3))
        if free[where] >= cpu:
            free[where] -= cpu
            ports = [80] if rich and draw(seldom) else []
            apart = [draw(terms)] if rich and draw(seldom) else []
            team = {"team": draw(st.sampled_from(("red", "blue")))}
            placed.append(
                pod(f"p{at}", cpu=cpu, group="", node=where, labels=team, host_ports=ports, anti_affinity=apart)
            )
            cluster.set_pod(placed[-1])
    units, left = list[Unit](), [cluster.ledger.claims[each.uid] for each in draw(st.permutations(placed))]
    while left and len(units) < most:
        several = left[: draw(st.sampled_from((1, 1, 2, 3)))]
        del left[: len(several)]
        level, name, along = draw(st.integers(0, 2)), f"u{len(units)}", list[Unit]()
        if len(several) > 1 and draw(st.booleans()):
            surplus = several.pop()
            draws = (("b", 1),) if budgets and draw(seldom) else ()
            along = [Unit(f"{name}-s", level, (surplus,), (-draw(st.sampled_from(WORK)),), 1.0, draws=draws)]
        began = tuple(-draw(st.sampled_from(WORK)) for _ in several)
        names, draws = tuple(each.name for each in along), (("b", len(several)),) if budgets and draw(seldom) else ()
        since, whole = draw(st.sampled_from((1.0, 2.0))), bool(along) or len(several) > 1
        units += [*along, Unit(name, level, tuple(several), began, since, whole=whole, along=names, draws=draws)]
    asked = draw_members(draw, rich=rich)
    topology = Topology(RACK, required=draw(st.booleans())) if draw(seldom) else None
    ask = Ask(members=asked, need=max(1, len(asked) - draw(seldom)), topology=topology)
    return World(cluster, units, ask, {"b": draw(st.integers(0, 3))})


@given(worlds())
@settings(max_examples=examples(500), print_blob=True)
def test_no_victim_is_in_vain_and_none_could_be_spared(world):
    found = world.search()
    event(type(found).__name__)
    if isinstance(found, NoWay):
        return
    leaving, names = set(found.leaving), {unit.name for unit in found.leaving}
    event(f"{len(leaving)} leave")
    assert world.places(leaving)
    assert world.within_budgets(leaving)
    assert all(names.issuperset(unit.along) for unit in leaving)
    assert found.level == max((unit.level for unit in leaving), default=None)
    taken = {name for unit in leaving for name in unit.along}
    for unit in leaving:
        if unit.name not in taken:
            assert not world.places(leaving - {unit})


@given(worlds(budgets=False))
@settings(max_examples=examples(300), print_blob=True)
def test_no_lower_level_would_do(world):
    """Where budgets do not bind. A gang counts at the level of the most important unit that it takes along."""
    found = world.search()
    if isinstance(found, NoWay) or found.level is None or world.needs_pods:
        return
    below = [unit for unit in world.units if unit.level < found.level]
    assert not world.places(below)


@given(worlds(most=6))
@settings(max_examples=examples(200), print_blob=True)
def test_what_is_called_impossible_is_impossible(world):
    found = world.search()
    if isinstance(found, NoWay) and not found.exhausted:
        assert not any(world.places(chosen) for chosen in world.sets())
    if isinstance(found, NoWay) and found.hopeless:
        event("hopeless")
        assert not world.places(world.units) or not world.within_budgets(world.units)


@given(worlds(), st.randoms(use_true_random=False), st.sampled_from((1, 5000, 20_000)))
@settings(max_examples=examples(300), print_blob=True)
def test_neither_the_size_of_slices_nor_the_order_of_units_changes_the_result(world, random, budget):
    found = world.search()
    assert world.search(budget=budget) == found
    units = list(world.units)
    random.shuffle(units)
    assert world.search(units=units) == found


@given(worlds())
@settings(max_examples=examples(200), print_blob=True)
def test_a_search_leaves_the_snapshot_as_it_was(world):
    snapshot = Snapshot(world.cluster, budget=Budget(1))
    classes = classes_of(snapshot, world.ask.members)
    before = answers(snapshot, world.ask.members, classes), snapshot.digest(()), snapshot.free.tolist()
    search = Search(world.ask, Removable.of(world.cluster, world.units), world.allowed)
    while search.go_on(snapshot) is None:
        assert snapshot.free.tolist() == before[2]
    assert (answers(snapshot, world.ask.members, classes), snapshot.digest(()), snapshot.free.tolist()) == before
    assert world.cluster.validate() == []


def work(unit: Unit) -> float:
    """The work lost with the unit, where CPUs alone are short: it needs no total of the cluster to be compared."""
    requests = [dict(claim.pod.shape.requests)["cpu"] for claim in unit.claims]
    return sum(-began * cpus for began, cpus in zip(unit.began, requests, strict=True))


@given(worlds(budgets=False, most=6))
@settings(max_examples=examples(200), print_blob=True)
def test_never_twice_as_much_work_is_lost_as_must_be(world):
    """But where a member must be beside some pod: who could be that pod is spared, even at the cost of others."""
    assume(not any(pod.shape.affinity for pod in world.ask.members))
    found = world.search()
    if isinstance(found, NoWay):
        return
    level = -1 if found.level is None else found.level
    enough = [chosen for chosen in world.sets() if all(unit.level <= level for unit in chosen) and world.places(chosen)]
    lost, least = sum(map(work, found.leaving)), min(sum(map(work, chosen)) for chosen in enough)
    assert lost <= 2 * least
