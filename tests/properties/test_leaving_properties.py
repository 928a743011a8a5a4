"""The law of leaving: a snapshot that pods have left answers every question as one of a cluster that never had them.

It holds whether a question is asked before or after, in whichever order pods leave and stay, and `undo` brings back
exactly what was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.devices import AllocatedDevice, Allocation, DeviceKind, DeviceObject, ResourceClaim
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import SelectNode
from gangsched.core.objects.quantity import MAX_AMOUNT
from gangsched.core.objects.shape import Disk, HostPort, NodeTerm, PodTerm, Requirement, Spread
from gangsched.core.objects.volumes import CsiDriver, CsiNode, StorageCapacity, StorageClass, Volume, VolumeClaim
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.filling import classify
from tests.builders import claim, node, pod, volume
from tests.effort import examples
from tests.gadgets import DRIVER, GPUS, device_claim, gpus
from tests.harness import KINDS

NODES = ("n0", "n1", "n2")
TEAMS = ("red", "blue")
BOUND = ("b0", "b1", "b2")
"""Claims that are bound, which placed and asked pods may name; b0 is for a single pod."""

EVERYWHERE = NodeTerm((Requirement("zone", "Exists"),))

keys = st.sampled_from(("zone", "kubernetes.io/hostname"))
terms = st.builds(
    PodTerm,
    topology_key=keys,
    selector=st.sampled_from(TEAMS).map(lambda team: (Requirement("team", "In", (team,)),)),
    namespaces=st.sampled_from((("default",), ("default", "other"))),
    namespace_selector=st.sampled_from((None, None, (Requirement("kind", "Exists"),))),
)
spreads = st.builds(
    Spread,
    term=terms.map(lambda term: replace(term, namespaces=("default",), namespace_selector=None)),
    max_skew=st.integers(1, 2),
)
disks = st.builds(
    Disk,
    st.just("iscsi"),
    st.sampled_from((("x",), ("y",))),
    st.booleans(),
    st.sampled_from((None, ("csi", "h-inline"))),
)


def few(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Mostly none of these values, at most one."""
    return st.lists(values, max_size=1)


@st.composite
def pods(draw: st.DrawFn, name: str, *, placed: bool) -> Pod:
    """A pod with a few of everything that constraints read. One that is `placed` may be of any scheduler."""
    amounts = {"cpu": draw(st.sampled_from((0, 1, 1, 2, MAX_AMOUNT if placed else 3)))}
    amounts |= draw(st.sampled_from(({}, {}, {"x.io/a": 1}, {"x.io/gone": 1})))
    made = pod(
        f"{draw(st.sampled_from(('default', 'default', 'other')))}/{name}",
        requests=amounts,
        labels={"team": draw(st.sampled_from(TEAMS))},
        host_ports=draw(st.sampled_from(((), (), (80,), (HostPort(80, ip="10.0.0.1"), 81)))),
        affinity=draw(few(terms)) if draw(st.booleans()) else (),
        anti_affinity=draw(few(terms)),
        spread=draw(few(spreads)),
        near=dict(zip(draw(st.sampled_from(((3,), (-2,)))), draw(few(terms)), strict=False)),
        spread_if_possible=draw(few(spreads)),
        disks=draw(few(disks)),
        group="" if placed else "a",
        terminating=placed and draw(st.booleans()),
        node=draw(st.sampled_from(NODES)) if placed else "",
    )
    if made.namespace == "default":
        named = draw(st.sampled_from(((), (), ("b0",), ("b1", "b2"), ("b2",))))
        own = draw(st.sampled_from(((), (), (f"later-{name}",))))
        devices = draw(st.sampled_from(((), (f"d-{name}",), ("d-shared",) if placed else (f"d-{name}",))))
        uses = pod(made.name, device_claims=devices).device_claims
        made = replace(made, volume_claims=(*named, *own), device_claims=uses)
    return made


@st.composite
def worlds(draw: st.DrawFn) -> World:
    placed = [draw(pods(f"p{at}", placed=True)) for at in range(draw(st.integers(1, 5)))]
    asked = [draw(pods(f"a{at}", placed=False)) for at in range(draw(st.integers(1, 3)))]
    nodes = [
        node(
            name,
            cpu=draw(st.integers(1, 4)),
            pods=draw(st.integers(2, 5)),
            extra=draw(st.sampled_from(({}, {"x.io/a": 2}))),
            labels={"zone": draw(st.sampled_from("ab")), "kubernetes.io/hostname": name},
        )
        for name in NODES
    ]
    storage = [
        StorageClass("later", "csi", waits=True, provisions=True),
        CsiDriver("csi", capacity=True),
        StorageCapacity("kube-system", "s0", "later", EVERYWHERE, draw(st.integers(1, 4)), None),
        *(CsiNode(name, (("csi", draw(st.integers(1, 3))),), frozenset({"csi"})) for name in NODES),
    ]
    return World(placed, asked, nodes, storage, draw(st.integers(0, 3)))


class World:
    """A cluster with the pods `placed`, of which some are only assumed on their nodes, and pods `asked` about."""

    def __init__(
        self, placed: Sequence[Pod], asked: Sequence[Pod], nodes: Sequence[Node], storage: Sequence[Any], gpu: int
    ) -> None:
        self.placed, self.asked, self.nodes, self.storage, self.gpu = placed, asked, nodes, storage, gpu

    def cluster(self, *, without: frozenset[str] = frozenset()) -> Cluster:
        """The cluster, or what it would be if the pods of these UIDs had never come: nobody else's objects change."""
        cluster = Cluster()
        for offered in self.nodes:
            cluster.set_node(offered)
        cluster.set_namespace("other", (("kind", "x"),))
        for stored in [*self.storage, *self._volumes()]:
            cluster.set_storage(KINDS[type(stored)], stored.key, stored)
        there = [each for each in self.placed if each.uid not in without]
        devices: list[DeviceObject] = [GPUS, *(gpus(name, self.gpu) for name in NODES), *self._claims(there)]
        for device in devices:
            cluster.set_devices(DeviceKind(type(device).__name__), device.key, device)
        for each in self.asked:
            cluster.set_pod(each)
        for each in there:
            later = [name for name in each.volume_claims if name.startswith("later-")]
            if not later:
                cluster.set_pod(each)
                continue
            cluster.set_pod(replace(each, node=""))
            chosen = tuple(SelectNode(each.namespace, name, f"uid-{name}", each.node) for name in later)
            cluster.assume(each.uid, each.node, chosen)
        return cluster

    def _volumes(self) -> list[VolumeClaim | Volume]:
        found: list[VolumeClaim | Volume] = []
        for at, name in enumerate(BOUND):
            found += [claim(name, f"v{at}", single_pod=at == 0), volume(f"v{at}", attachment=("csi", f"h-v{at}"))]
        for each in (*self.placed, *self.asked):
            found += [
                claim(name, uid=f"uid-{name}", storage_class="later", size=1)
                for name in each.volume_claims
                if name.startswith("later-")
            ]
        return found

    def _claims(self, there: Sequence[Pod]) -> list[ResourceClaim]:
        """The claims of devices: those of placed pods have one of their node's, as far as there are any."""
        taken: dict[str, list[str]] = {}
        found: dict[str, ResourceClaim] = {}
        for each in (*self.placed, *self.asked):
            for use in each.device_claims:
                if use.claim in found or each.namespace != "default":
                    continue
                users = [one.uid for one in there if use in one.device_claims and one.node == each.node]
                known = device_claim(use.claim)
                if each.node and len(taken.setdefault(each.node, [])) < self.gpu:
                    name = f"gpu-{len(taken[each.node])}"
                    taken[each.node].append(name)
                    device = AllocatedDevice("gpu", (DRIVER, f"{each.node}-gpus", name))
                    if users:
                        known = replace(known, allocation=Allocation((device,)), reserved=tuple(users))
                found[use.claim] = known
        return list(found.values())


def answers(snapshot: Snapshot, asked: Sequence[Pod], classes: dict[str, MemberClass]) -> list[object]:
    """All that the snapshot says about each pod, by node; room for more than one only of interchangeable pods."""
    every = np.arange(snapshot.size)
    found: list[object] = []
    for each in asked:
        member = classes[each.uid]
        room = snapshot.caps(member)
        if each.volume_claims or each.device_claims:
            room = np.minimum(room, 1)
        refusals = [
            (reason, subject, np.flatnonzero(where).tolist())
            for plan in snapshot.plans
            for reason, subject, where in plan.refusals(member, every)
            if where.any()
        ]
        open_ = np.flatnonzero(snapshot.accepts(member))
        scores = [
            plan.score(member, open_).tolist() if plan.prefers(member) else [0] * len(open_) for plan in snapshot.plans
        ]
        found.append((room.tolist(), snapshot.accepts(member).tolist(), refusals, scores))
    return found


@given(worlds(), st.data())
@settings(max_examples=examples(400), print_blob=True)
def test_a_snapshot_that_pods_have_left_answers_as_one_of_a_cluster_that_never_had_them(world, data):
    cluster = world.cluster()
    snapshot = Snapshot(cluster)
    claims = [cluster.ledger.claims[each.uid] for each in world.placed]
    whole = Snapshot(cluster)
    before = answers(whole, world.asked, classify(whole, world.asked))
    first = data.draw(st.booleans(), label="asked before")
    if first:
        classes = classify(snapshot, world.asked)
        assert answers(snapshot, world.asked, classes) == before
    gone: set[str] = set()
    mark = snapshot.mark()
    for _ in range(data.draw(st.integers(1, 4))):
        chosen = data.draw(st.lists(st.sampled_from(claims), min_size=1, max_size=4, unique_by=lambda one: one.pod.uid))
        leaving = [each for each in chosen if each.pod.uid not in gone]
        staying = [each for each in chosen if each.pod.uid in gone]
        snapshot.leave(leaving)
        if data.draw(st.booleans()):
            snapshot.stay(staying)
            gone -= {each.pod.uid for each in staying}
        gone |= {each.pod.uid for each in leaving}
    event(f"{len(gone)} of {len(claims)} have left")
    if not first:
        classes = classify(snapshot, world.asked)
    never = Snapshot(world.cluster(without=frozenset(gone)))
    others = classify(never, world.asked)
    assert answers(snapshot, world.asked, classes) == answers(never, world.asked, others)
    for at, each in enumerate(world.asked):
        rows = [row for row in range(snapshot.size) if never.fits(others[each.uid], row)]
        if rows:
            row = data.draw(st.sampled_from(rows))
            snapshot.take(row, classes[each.uid], 1)
            never.take(row, others[each.uid], 1)
        left = world.asked[at + 1 :]
        assert answers(snapshot, left, classes) == answers(never, left, others)
    snapshot.undo(mark)
    assert answers(snapshot, world.asked, classes) == before
    assert cluster.validate() == []
