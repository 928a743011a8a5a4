"""Random gangs, judged by kube-scheduler's filters: placed gangs are feasible pod by pod, refused ones are not.

A gang that is said never to fit must not fit on the same nodes without pods, once nothing that passes keeps them shut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import pytest
from msgspec.structs import replace as renewed

from gangsched.core.cluster.claims import Viewer
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.prebindings import UseDevices
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.needed_prebindings import prebindings
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from gangsched.kube.reading.storage_values import MARK
from gangsched.kube.writing import claiming
from gangsched.kube.writing.claiming import FINALIZER
from tests import effort
from tests.effort import tries
from tests.integration.aims import AIMS, Aims
from tests.integration.device_aims import DEVICE_AIMS, DeviceAims
from tests.integration.judged import Bench, Json, Standing, World, cluster_of, read_pod
from tests.integration.oracle_worlds import taint
from tests.integration.pairs import bench
from tests.integration.volume_aims import VOLUME_AIMS, VolumeAims
from tests.judge import Judge

pytestmark = pytest.mark.explores
_NODES = 4
_PODS = 10
_OF_EACH_AIM = 6
_SEARCHED = 3
_LARGEST = 8
_SHUT = (
    "node.kubernetes.io/not-ready:NoExecute",
    "node.kubernetes.io/unreachable:NoExecute",
    "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
    "node.cilium.io/agent-not-ready:NoSchedule",
    "node.kubernetes.io/disk-pressure:NoSchedule",
)
"""Taints of nodes that are shut for now."""
_OF_DEVICES = 20
WITH_CLAIMS = [aim for aim in DEVICE_AIMS if aim != "resources of DeviceClasses"]
"""Pods that request resources have no claims before they are placed."""


def gangs(seed: int, aim: str) -> tuple[World, list[Json]]:
    """A world of at least five nodes, and a gang; every second gang is small enough for an exhaustive search.

    Its members are identical, or of two kinds; those with volumes or devices are drawn one by one.
    """
    if aim in DEVICE_AIMS:
        of_devices = DeviceAims(seed)
        world, draw = of_devices.world(nodes=_NODES + 1, pods=_PODS), lambda: DEVICE_AIMS[aim][1](of_devices)
    elif aim in AIMS:
        aims = Aims(seed)
        # `alone` refuses all; `apart` is another zone.
        world, draw = aims.world(nodes=_NODES, pods=_PODS), lambda: AIMS[aim][1](aims)
    else:
        of_volumes = VolumeAims(seed)
        world, draw = of_volumes.world(nodes=_NODES + 1, pods=_PODS), lambda: VOLUME_AIMS[aim][1](of_volumes)
    world = shut(world, seed)
    size = _SEARCHED if seed % 2 else _LARGEST
    if aim in DEVICE_AIMS:
        size = 2 + seed % 4
    kinds = [draw() for _ in range(1 + seed % 3 // 2 if aim in AIMS else size)]
    return world, [kinds[at % len(kinds)] for at in range(size)]


def shut(world: World, seed: int) -> World:
    """In every third world some nodes are shut for now."""
    dice = Random(seed)
    if seed % 3:
        return world
    nodes = []
    for each in world.nodes:
        spec = dict(each.get("spec", {}))
        more, there = taint(dice.choice(_SHUT)), list(spec.get("taints") or ())
        if dice.random() < 0.4 and more["key"] not in [one["key"] for one in there]:
            spec["taints"] = [*there, more]
        nodes.append(dict(each) | {"spec": spec})
    return replace(world, nodes=nodes)


def emptied(world: World) -> World:
    """The same nodes without pods, cordons and taints that pass."""
    nodes = []
    for each in world.nodes:
        spec = dict(each.get("spec", {}), unschedulable=False)
        spec["taints"] = [one for one in spec.get("taints") or () if not _passes(one["key"])]
        nodes.append(dict(each) | {"spec": spec})
    return replace(world, nodes=nodes, pods=[])


def _passes(key: str) -> bool:
    return key.startswith(("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node.cilium.io/"))


class Replay:
    """Places `need` of the members of one gang into one world, one at a time; by default all of them.

    `uses` are the claims that each member has allocated.
    """

    def __init__(
        self,
        asking: Bench,
        world: World,
        members: Sequence[Json],
        *,
        need: int | None = None,
        uses: Mapping[int, Sequence[UseDevices]] | None = None,
    ) -> None:
        self._asking = asking
        self._world = world
        self._members = members
        self._need = len(members) if need is None else need
        self._uses = uses or {}
        self._failed: set[tuple[tuple[str, str], ...]] = set()

    def takers(self, placed: dict[int, str]) -> list[frozenset[str]]:
        """The nodes that kube-scheduler's filters accept for each member, with these members on these nodes."""
        there = [self._standing(at, node) for at, node in placed.items()]
        uses = {use.claim: use for at in placed for use in self._uses.get(at, ())}
        others = [_allocated(each, uses.get(each["metadata"]["name"])) for each in self._world.others]
        with self._asking.world(replace(self._world, pods=[*self._world.pods, *there], others=others)):
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
        """A placement of a quorum in some order, after these; None if there is none."""
        if len(placed) == self._need:
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


def _allocated(found: Json, use: UseDevices | None) -> Json:
    """The claim after the pre-binding, if there is one and it has no devices yet."""
    if use is None or found["kind"] != "ResourceClaim" or "allocation" in found.get("status", {}):
        return found
    meta = found["metadata"] | {"annotations": {MARK: ""}, "finalizers": [FINALIZER]}
    return found | {"metadata": meta} | (claiming.using(found | {"metadata": meta}, use) or {})


@dataclass(frozen=True)
class Planned:
    """Where gangsched places the quorum, and the claims that it allocates for each, by the members' positions."""

    nodes: dict[int, str]
    uses: dict[int, list[UseDevices]]


def planned(asking: Bench, world: World, members: Sequence[Json], need: int) -> Planned | Refusal:
    """gangsched's plan for the quorum, or why it refuses."""
    with asking.world(world):
        said = asking.said(members)
    cluster = cluster_of(said.objects)
    pods = [renewed(read_pod(verdict.pod), declaration=Declaration("gang")) for verdict in said.verdicts]
    for pod in pods:
        cluster.set_pod(pod)
    snapshot = Snapshot(cluster)
    snapshot.stand_for(Viewer(max(pod.priority for pod in pods)))
    found = place(snapshot, Ask(members=pods, need=need))
    if not isinstance(found, Placement):
        return found
    position = {pod.uid: at for at, pod in enumerate(pods)}
    nodes = {position[pod.uid]: node for pod, node in found.assignments}
    asked = prebindings(snapshot, found.assignments)
    uses = {position[uid]: [use for use in several if isinstance(use, UseDevices)] for uid, several in asked.items()}
    return Planned(nodes, uses)


@pytest.mark.parametrize("aim", WITH_CLAIMS)
def test_gangs_get_devices_that_kube_schedulers_filters_leave_them(judge: Judge, aim: str) -> None:
    """tests/core/test_devices.py shows that no gang is refused that could have devices: no filter can say that."""
    asking = bench(judge)
    placed = tried = 0
    while tried < tries(_OF_DEVICES) or not placed:
        seed = effort.first_seed + tried
        tried += 1
        world, members = gangs(seed, aim)
        found = planned(asking, world, members, len(members) if len(members) <= _SEARCHED else len(members) // 2)
        if isinstance(found, Planned):
            placed += 1
            replay = Replay(asking, world, members, uses=found.uses)
            assert replay.follows(found.nodes), f"seed {seed}: {found} of {members}"


@pytest.mark.parametrize("aim", [*AIMS, *VOLUME_AIMS])
def test_gangs_are_placed_exactly_if_kube_schedulers_filters_leave_a_way(judge: Judge, aim: str) -> None:
    asking, compared = bench(judge), 0
    for seed in range(effort.first_seed, effort.first_seed + tries(_OF_EACH_AIM)):
        world, members = gangs(seed, aim)
        need = len(members) if len(members) <= _SEARCHED else len(members) // 2
        replay = Replay(asking, world, members, need=need)
        found = planned(asking, world, members, need)
        if isinstance(found, Planned):
            assert replay.follows(found.nodes), f"seed {seed}: {found} of {members}"
        elif len(members) <= _SEARCHED:
            assert replay.finds({}) is None, f"seed {seed}: {replay.finds({})} of {members}"
        if isinstance(found, Refusal) and found.never:
            one_day = Replay(asking, emptied(world), members, need=need).finds({})
            assert one_day is None, f"seed {seed}: said never to fit, but {one_day} of {members}"
        compared += isinstance(found, Planned) or len(members) <= _SEARCHED
    assert compared
