"""A new constraint is one file and one line in the registry: all other code reaches it through the interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints import registry
from gangsched.core.constraints.constraint import Constraint, Happening, Member, Plan, Words, World
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from tests.builders import group, node, pod, pods
from tests.harness import Harness
from tests.verdicts import class_of

# The file of the new constraint


@dataclass(frozen=True)
class Team:
    """The label whose value must not occur twice in a rack."""

    name: str

    def in_order(self) -> tuple[str]:
        return (self.name,)


class OnePerRack(Constraint):
    """Allows one pod of a team in a rack; no kube-scheduler plug-in has this rule."""

    proves = True
    words = (Words("TeamInRack", "in a rack where the team is", "the end of the team's pods: {nodes} closed"),)
    counts_any = True

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.there: Counter[tuple[str, str]] = Counter()

    def add(self, pod: Pod, row: int) -> None:
        self.there.update(self._places(pod, row))

    def remove(self, pod: Pod, row: int) -> None:
        self.there.subtract(self._places(pod, row))

    def opens_elsewhere(self, happening: Happening, pod: Pod | None = None) -> bool:
        if happening is Happening.POD_LEFT:
            return pod is not None and "team" in dict(pod.labels)
        return bool(+self.there)

    def told(self) -> object:
        return +self.there

    def plan(self, *, emptied: bool) -> Plan:
        return TeamsPlan(self._world, Counter() if emptied else self.there.copy())

    def _places(self, pod: Pod, row: int) -> list[tuple[str, str]]:
        team, rack = dict(pod.labels).get("team"), self._world.nodes.labels(row).get("rack")
        return [(team, rack)] if team and rack else []


class TeamsPlan(Plan):
    def __init__(self, world: World, there: Counter[tuple[str, str]]) -> None:
        self.nodes = world.nodes
        self.there = there

    @property
    def selective(self) -> bool:
        return True

    def sees(self, pod: Pod) -> Team | None:
        team = dict(pod.labels).get("team")
        return Team(team) if team else None

    def room(self, member: Member, rows: IntArray) -> IntArray | None:
        return None if member.sight(Team) is None else np.where(self._closed(member, rows), 0, 1)

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        if member.sight(Team) is not None:
            yield "TeamInRack", "", self._closed(member, rows)

    def digest(self, rows: IntArray) -> Hashable:
        return frozenset((+self.there).items()), len(rows)

    def couples(self, member: Member, other: Member) -> bool:
        return member.sight(Team) is not None and member.sight(Team) == other.sight(Team)

    def _closed(self, member: Member, rows: IntArray) -> Mask:
        team = member.sight(Team)
        assert team is not None
        racks = {rack for (name, rack), count in self.there.items() if name == team.name and count > 0}
        return self.nodes.by_label("rack").among(racks, rows)

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:
        team = member.sight(Team)
        if team is None:
            return None
        racks = {self.nodes.labels(row).get("rack", "") for row in rows.tolist()}
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            self.there[team.name, self.nodes.labels(row).get("rack", "")] += count
        every = np.arange(self.nodes.size)
        return every[self.nodes.by_label("rack").among(racks, every)]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The line in the registry."""
    monkeypatch.setattr(registry, "CONSTRAINTS", [*registry.CONSTRAINTS, OnePerRack])


# The code that uses the constraint through the interface


def racks(*names, **fields):
    return [node(name, labels={"rack": name[:2]}, **fields) for name in names]


def of_team(count, **fields):
    return pods("a", count, labels={"team": "red"}, **fields)


def test_a_gang_is_placed_by_a_constraint_of_which_only_the_registry_knows():
    harness = Harness.settled(*racks("r1-a", "r1-b", "r2-a", "r3-a", cpu=8), group("a", min_member=3), *of_team(3))
    assert sorted(found.node[:2] for found in harness.pods.values()) == ["r1", "r2", "r3"]
    assert harness.machine.validate() == []


def test_what_it_refuses_is_explained_in_its_own_words_and_holds_nothing():
    harness = Harness.settled(*racks("r1-a", "r1-b", "r2-a", cpu=8), group("a", min_member=3), *of_team(3))
    harness.wait(20.0)
    assert harness.bound() == []
    said = harness.condition("default/a").message
    assert "Only 2 of 3 members fit" in said
    assert "Of 3 nodes: 3 in a rack where the team is" in said
    words = registry.words_of("TeamInRack")
    assert words is not None
    assert words.remedy.format(nodes="3 nodes") == "the end of the team's pods: 3 nodes closed"


def test_a_gang_that_waits_is_woken_by_what_opens_nodes_elsewhere():
    """The node of the pod that ends stays full, but the end of the pod opens the other node of the rack."""
    harness = Harness.of(
        *racks("r1-a", cpu=2),
        *racks("r1-b", "r2-a", cpu=8),
        pod("old", group="", scheduler="x", node="r1-a", labels={"team": "red"}, cpu=0),
        pod("full", group="", scheduler="x", node="r1-a", cpu=2),
    )
    harness.settle(group("a", min_member=2), *of_team(2))
    assert harness.bound("default/a-") == []
    harness.delete("default/old")
    harness.settle()
    assert sorted(found.node for found in harness.pods.values() if found.name.startswith("a-")) == ["r1-b", "r2-a"]


@pytest.mark.without("all", why="it has no harness")
def test_it_is_undone_with_the_rest_of_a_plan():
    cluster = Cluster()
    for each in racks("r1-a", "r1-b", "r2-a"):
        cluster.set_node(each)
    snapshot = Snapshot(cluster)
    members = of_team(3)
    asked = class_of(snapshot, members[0])
    assert snapshot.caps(asked).tolist() == [1, 1, 1]
    mark = snapshot.mark()
    snapshot.take(0, asked, 1)
    assert snapshot.caps(asked).tolist() == [0, 0, 1]
    assert [snapshot.fits(asked, row) for row in range(3)] == [False, False, True]
    snapshot.undo(mark)
    assert snapshot.caps(asked).tolist() == [1, 1, 1]
    assert isinstance(place(snapshot, Ask(members=members[:2], need=2)), Placement)


@pytest.mark.parametrize(("number", "never"), [(2, True), (300, False)])
@pytest.mark.without("all", why="it has no harness")
def test_members_that_depend_on_each_other_are_said_never_to_fit_only_if_every_order_was_tried(number, never):
    cluster = Cluster()
    for each in racks(*(f"{at:03}-a" for at in range(number))):
        cluster.set_node(each)
    members = [*of_team(number), *of_team(1, first=number, cpu=2)]
    refused = place(Snapshot(cluster), Ask(members=members, need=number + 1))
    assert isinstance(refused, Refusal)
    assert refused.never is never


@pytest.mark.without("all", why="it has no harness")
def test_a_constraint_that_does_not_say_that_it_is_certain_makes_no_gang_hopeless(monkeypatch):
    monkeypatch.setattr(OnePerRack, "proves", False)
    cluster = Cluster()
    for each in racks("0-a"):
        cluster.set_node(each)
    refused = place(Snapshot(cluster), Ask(members=of_team(2), need=2))
    assert isinstance(refused, Refusal)
    assert not refused.never
