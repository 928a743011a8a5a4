"""Random gangs, judged by kube-scheduler's filters: placed gangs are feasible pod by pod, refused ones are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec.structs import replace as renewed

from gangsched.core.objects.declaration import Declaration
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.snapshot import Snapshot
from tests import effort
from tests.effort import tries
from tests.integration.aims import AIMS, Aims
from tests.integration.judged import Bench, Json, Standing, World, cluster_of, read_pod
from tests.integration.pairs import bench
from tests.integration.volume_aims import VOLUME_AIMS, VolumeAims
from tests.judge import Judge

pytestmark = pytest.mark.explores
_NODES = 4
_PODS = 10
_OF_EACH_AIM = 6
_SEARCHED = 3
_LARGEST = 8


def gangs(seed: int, aim: str) -> tuple[World, list[Json]]:
    """A world of at least five nodes, and a gang; every second gang is small enough for an exhaustive search.

    Its members are identical, or of two kinds; those with volumes are drawn one by one.
    """
    if aim in AIMS:
        aims = Aims(seed)
        # `alone` refuses all; `apart` is another zone.
        world, draw = aims.world(nodes=_NODES, pods=_PODS), lambda: AIMS[aim][1](aims)
    else:
        of_volumes = VolumeAims(seed)
        world, draw = of_volumes.world(nodes=_NODES + 1, pods=_PODS), lambda: VOLUME_AIMS[aim][1](of_volumes)
    size = _SEARCHED if seed % 2 else _LARGEST
    kinds = [draw() for _ in range(size if aim in VOLUME_AIMS else 1 + seed % 3 // 2)]
    return world, [kinds[at % len(kinds)] for at in range(size)]


class Replay:
    """Places the members of one gang into one world, one at a time."""

    def __init__(self, asking: Bench, world: World, members: Sequence[Json]) -> None:
        self._asking = asking
        self._world = world
        self._members = members
        self._failed: set[tuple[tuple[str, str], ...]] = set()

    def takers(self, placed: dict[int, str]) -> list[frozenset[str]]:
        """The nodes that kube-scheduler's filters accept for each member, with these members on these nodes."""
        there = [self._standing(at, node) for at, node in placed.items()]
        with self._asking.world(replace(self._world, pods=[*self._world.pods, *there])):
            return [verdict.feasible for verdict in self._asking.said(self._members).verdicts]

    def follows(self, wanted: dict[int, str]) -> bool:
        """Whether the members can be put on these nodes one after the other."""
        placed: dict[int, str] = {}
        while len(placed) < len(wanted):
            takers = self.takers(placed)
            at = next((at for at, node in wanted.items() if at not in placed and node in takers[at]), None)
            if at is None:
                return False
            placed[at] = wanted[at]
        return True

    def finds(self, placed: dict[int, str]) -> dict[int, str] | None:
        """A placement of all members in some order, after these; None if there is none."""
        if len(placed) == len(self._members):
            return placed
        # Members of one kind are interchangeable.
        state = tuple(sorted((str(self._members[at]), node) for at, node in placed.items()))
        if state in self._failed:
            return None
        takers = self.takers(placed)
        tried: set[str] = set()
        for at, nodes in enumerate(takers):
            if at in placed or str(self._members[at]) in tried:
                continue
            tried.add(str(self._members[at]))
            for node in sorted(nodes):
                found = self.finds({**placed, at: node})
                if found is not None:
                    return found
        self._failed.add(state)
        return None

    def _standing(self, at: int, node: str) -> Standing:
        manifest = self._members[at]
        return Standing(manifest | {"spec": manifest["spec"] | {"nodeName": node}})


def planned(asking: Bench, world: World, members: Sequence[Json]) -> dict[int, str] | None:
    """Where gangsched places the whole gang, by the members' positions; None if it refuses."""
    with asking.world(world):
        said = asking.said(members)
    cluster = cluster_of(said.objects)
    pods = [renewed(read_pod(verdict.pod), declaration=Declaration("gang")) for verdict in said.verdicts]
    for pod in pods:
        cluster.set_pod(pod)
    snapshot = Snapshot(cluster)
    snapshot.count_nominated(max(pod.priority for pod in pods))
    found = place(snapshot, Ask(members=pods, need=len(pods) if len(pods) <= _SEARCHED else len(pods) // 2))
    if not isinstance(found, Placement):
        return None
    position = {pod.uid: at for at, pod in enumerate(pods)}
    return {position[pod.uid]: node for pod, node in found.assignments}


@pytest.mark.parametrize("aim", [*AIMS, *VOLUME_AIMS])
def test_gangs_are_placed_exactly_if_kube_schedulers_filters_leave_a_way(judge: Judge, aim: str) -> None:
    asking = bench(judge)
    for seed in range(effort.first_seed, effort.first_seed + tries(_OF_EACH_AIM)):
        world, members = gangs(seed, aim)
        replay = Replay(asking, world, members)
        found = planned(asking, world, members)
        if found is not None:
            assert replay.follows(found), f"seed {seed}: {found} of {members}"
        elif len(members) <= _SEARCHED:
            assert replay.finds({}) is None, f"seed {seed}: {replay.finds({})} of {members}"
