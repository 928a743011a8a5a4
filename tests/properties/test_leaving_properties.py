"""The law of leaving: a snapshot that pods have left answers every question as one of a cluster that never had them.

It holds whether a question is asked before or after, in whichever order pods leave and stay, and `undo` brings back
exactly what was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.constraint import concerned
from gangsched.core.objects.devices import AllocatedDevice, Allocation, DeviceKind, DeviceObject, ResourceClaim
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import Capacity
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import ClaimVolume, Prebinding, SelectNode, ShareVolume, UseDevices
from gangsched.core.objects.quantity import MAX_AMOUNT
from gangsched.core.objects.shape import Disk, HostPort, NodeTerm, PodTerm, Requirement, Spread
from gangsched.core.objects.volumes import (
    CsiDriver,
    CsiNode,
    StorageCapacity,
    StorageClass,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.filling import classify, preferring
from tests.builders import claim, node, pod, volume
from tests.effort import examples
from tests.gadgets import DRIVER, GPUS, device_claim, gpu, gpus
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
        labels=draw(st.sampled_from(({"team": "red"}, {"team": "blue"}, {}))),
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
        own = draw(st.sampled_from(((), (), (f"later-{name}",), ("later-shared",), (f"some-{name}",))))
        devices = draw(st.sampled_from(((), (f"d-{name}",), ("d-shared",))))
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
            labels=draw(st.sampled_from(({"zone": "a"}, {"zone": "b"}, {}))) | {"kubernetes.io/hostname": name},
        )
        for name in NODES
    ]
    storage = [
        StorageClass("later", "csi", waits=True, provisions=True),
        StorageClass("some", "csi", waits=True),
        *(
            volume(
                f"some-v{at}", zone=draw(st.sampled_from(("", "a", "b"))), storage_class="some", size=1, available=True
            )
            for at in range(len(placed) + draw(st.integers(0, 1)))
        ),
        CsiDriver("csi", capacity=True),
        StorageCapacity("kube-system", "s0", "later", EVERYWHERE, draw(st.integers(1, 4)), None),
        *(CsiNode(name, (("csi", draw(st.sampled_from((1, 1, 2, 3)))),), frozenset({"csi"})) for name in NODES),
        *(VolumeAttachment(f"a-{name}", name, "v2", "csi") for name in NODES if draw(st.booleans())),
    ]
    return World(placed, asked, nodes, storage, draw(st.sampled_from((0, 1, 1, 2))), draw(st.booleans()))


@dataclass
class World:
    """A cluster with the pods `placed`, of which some are only assumed on their nodes, and pods `asked` about.

    Each node has `gpu` devices, or one that so many claims may share (`shared`).
    """

    placed: Sequence[Pod]
    asked: Sequence[Pod]
    nodes: Sequence[Node]
    storage: Sequence[Any]
    gpu: int
    shared: bool

    def cluster(self, *, without: frozenset[str] = frozenset()) -> Cluster:
        """The cluster, or what it would be if the pods of these UIDs had never come: nobody else's objects change."""
        cluster = Cluster()
        for each_node in self.nodes:
            cluster.set_node(each_node)
        cluster.set_namespace("other", (("kind", "x"),))
        for stored in [*self.storage, *self._volumes()]:
            cluster.set_storage(KINDS[type(stored)], stored.key, stored)
        there = [each for each in self.placed if each.uid not in without]
        offered = [gpu(f"gpu-{at}") for at in range(self.gpu)]
        if self.shared and self.gpu:
            offered = [gpu("gpu-0", multiple=True, shares=(Capacity("slots", self.gpu, default=1),))]
        devices: list[DeviceObject] = [GPUS, *(gpus(name, devices=tuple(offered)) for name in NODES)]
        devices += self._claims(there)
        for device in devices:
            cluster.set_devices(DeviceKind(type(device).__name__), device.key, device)
        for each in self.asked:
            cluster.set_pod(each)
        for each in there:
            later = _later(each)
            if not later:
                cluster.set_pod(each)
                continue
            cluster.set_pod(replace(each, node=""))
            chosen = [self._binding(each, name) for name in later]
            for use in each.device_claims:
                if use.claim in self._devices and self._preparing(use.claim) == each.uid:
                    key = (each.namespace, use.claim)
                    allocation = Allocation((self._devices[use.claim],))
                    consumer = cluster.devices.consumer(each, key)
                    chosen.append(UseDevices(*key, f"uid-{use.claim}", consumer, allocation))
            cluster.assume(each.uid, each.node, tuple(chosen))
        return cluster

    def _binding(self, each: Pod, name: str) -> Prebinding:
        """What is under way for this volume claim of a placed pod: the first that names a shared one prepares it."""
        namers = [one for one in self.placed if name in one.volume_claims]
        if namers[0] is not each:
            return ShareVolume(each.namespace, name, f"uid-{name}")
        if name.startswith("some-"):
            return ClaimVolume(f"some-v{self.placed.index(each)}", each.namespace, name, f"uid-{name}")
        return SelectNode(each.namespace, name, f"uid-{name}", each.node)

    def _volumes(self) -> list[VolumeClaim | Volume]:
        found: list[VolumeClaim | Volume] = []
        for at, name in enumerate(BOUND):
            found += [claim(name, f"v{at}", single_pod=at == 0), volume(f"v{at}", attachment=("csi", f"h-v{at}"))]
        for each in (*self.placed, *self.asked):
            found += [
                claim(name, uid=f"uid-{name}", storage_class=name.partition("-")[0], size=1) for name in _later(each)
            ]
        return found

    def _claims(self, there: Sequence[Pod]) -> list[ResourceClaim]:
        """The claims of devices. One with a device is allocated for its holders while a pod of the cluster names it.

        One that a pre-binding is yet to allocate has no device without that, whoever else names it.
        """
        uids = {each.uid for each in there}
        asked = {use.claim for each in self.asked for use in each.device_claims}
        found = []
        for name in dict.fromkeys(use.claim for each in (*self.placed, *self.asked) for use in each.device_claims):
            made, device = device_claim(name), self._devices.get(name)
            is_named = name in asked or not uids.isdisjoint(self._users.get(name, ()))
            if device is not None and is_named and not self._preparing(name):
                holders = tuple(uid for uid in self._holders(name) if uid in uids)
                made = replace(made, allocation=Allocation((device,)), reserved=holders)
            found.append(made)
        return found

    @cached_property
    def _users(self) -> Mapping[str, Mapping[str, Pod]]:
        """The placed pods that name each claim of devices, by UID."""
        found: dict[str, dict[str, Pod]] = {}
        for each in self.placed:
            for use in each.device_claims:
                found.setdefault(use.claim, {})[each.uid] = each
        return found

    @cached_property
    def _devices(self) -> Mapping[str, AllocatedDevice]:
        """The device of each claim that a placed pod names: one of its first user's node, if any has a share left."""
        taken: Counter[str] = Counter()
        found: dict[str, AllocatedDevice] = {}
        for name, users in self._users.items():
            on = next(iter(users.values())).node
            if taken[on] < self.gpu:
                device = (DRIVER, on, f"gpu-{0 if self.shared else taken[on]}")
                consumed = (("slots", 1),) if self.shared else ()
                found[name] = AllocatedDevice("gpu", device, shared=self.shared, consumed=consumed)
                taken[on] += 1
        return found

    def _holders(self, name: str) -> list[str]:
        """The UIDs of the claim's users on the node of its device."""
        return [uid for uid, each in self._users[name].items() if each.node == self._devices[name].device[1]]

    def _preparing(self, name: str) -> str:
        """The UID of the pod whose pre-binding is yet to allocate the claim: its only holder, if that is assumed."""
        holders = self._holders(name)
        return holders[0] if len(holders) == 1 and _later(self._users[name][holders[0]]) else ""


def _later(each: Pod) -> list[str]:
    """The volume claims that are bound only with the pod. If that is placed, it is assumed and they are under way."""
    return [name for name in each.volume_claims if name.startswith(("later-", "some-"))]


def classes_of(snapshot: Snapshot, asked: Sequence[Pod]) -> Mapping[str, MemberClass]:
    """The class of each pod with its preferences, by UID."""
    return preferring(snapshot, asked, classify(snapshot, asked), {})


def answers(snapshot: Snapshot, asked: Sequence[Pod], classes: Mapping[str, MemberClass]) -> list[tuple[Any, ...]]:
    """All that the snapshot says about each pod, by node; room for more than one only of interchangeable pods."""
    every = np.arange(snapshot.size)
    found: list[tuple[Any, ...]] = []
    for each in asked:
        member = classes[each.uid]
        room, accepts = snapshot.caps(member), snapshot.accepts(member)
        if each.volume_claims or each.device_claims:
            room = np.minimum(room, 1)
        named = {*each.volume_claims, *(use.claim for use in each.device_claims)}
        if named & {"later-shared", "d-shared"}:
            # Whether others use the claim decides which of the two closes a node.
            accepts = room > 0
        refusals = [
            (reason, subject, np.flatnonzero(where).tolist())
            for plan in snapshot.plans
            for reason, subject, where in plan.refusals(member, every)
            if where.any()
        ]
        open_ = np.flatnonzero(accepts)
        scores = [
            plan.score(member, open_).tolist() if plan.prefers(member) else [0] * len(open_) for plan in snapshot.plans
        ]
        found.append((room.tolist(), accepts.tolist(), refusals, scores))
    return found


def digests(snapshot: Snapshot, member: MemberClass) -> tuple[object, ...]:
    """What the search for a topology domain remembers, for all rows together."""
    every = np.arange(snapshot.size)
    return tuple((plan.digest(every), plan.shared_digest(member)) for plan in snapshot.plans)


@given(worlds())
@settings(max_examples=examples(300), print_blob=True)
def test_a_constraint_has_no_answer_for_a_class_that_has_nothing_it_is_about(world):
    snapshot = Snapshot(world.cluster())
    every, ones = np.arange(snapshot.size), np.ones(snapshot.size, dtype=np.int64)
    for member in classes_of(snapshot, world.asked).values():
        for plan in [plan for plan in snapshot.plans if plan not in concerned(snapshot.plans, member)]:
            assert (plan.mask(member, every), plan.room(member, every), plan.prefers(member)) == (None, None, False)
            before = plan.digest(every)
            assert plan.take(member, every, ones) is None
            assert plan.digest(every) == before
        bare = member.impartial
        assert not any(plan.prefers(bare) for plan in snapshot.plans if plan.about is not None)


@given(worlds(), st.data())
@settings(max_examples=examples(1200), print_blob=True)
def test_a_snapshot_that_pods_have_left_answers_as_one_of_a_cluster_that_never_had_them(world, data):
    cluster = world.cluster()
    snapshot = Snapshot(cluster)
    claims = [cluster.ledger.claims[each.uid] for each in world.placed]
    whole = Snapshot(cluster)
    before = answers(whole, world.asked, classes_of(whole, world.asked))
    first = data.draw(st.booleans(), label="asked before")
    if first:
        classes = classes_of(snapshot, world.asked)
        assert answers(snapshot, world.asked, classes) == before
    remembered = {each.uid: digests(snapshot, classes[each.uid]) for each in world.asked if first}
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
        classes = classes_of(snapshot, world.asked)
    never = Snapshot(world.cluster(without=frozenset(gone)))
    others = classes_of(never, world.asked)
    assert answers(snapshot, world.asked, classes) == answers(never, world.asked, others)
    for each, was, now in zip(world.asked, before, answers(snapshot, world.asked, classes), strict=True):
        if first and was[0] != now[0]:
            assert digests(snapshot, classes[each.uid]) != remembered[each.uid]
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


@pytest.mark.slow
@given(worlds(), st.data())
@settings(max_examples=examples(800), print_blob=True)
def test_what_the_cluster_has_released_of_those_who_left_is_not_subtracted_again(world, data):
    """Questions that are first asked later read what the cluster counts by then."""
    cluster = world.cluster()
    snapshot = Snapshot(cluster)
    leaving = data.draw(st.lists(st.sampled_from(world.placed), min_size=1, max_size=4, unique_by=lambda one: one.uid))
    back = data.draw(st.lists(st.sampled_from(leaving), max_size=2, unique_by=lambda one: one.uid))
    snapshot.leave(cluster.ledger.claims[each.uid] for each in leaving)
    snapshot.stay(cluster.ledger.claims[each.uid] for each in back)
    gone = frozenset(each.uid for each in leaving) - {each.uid for each in back}
    for uid in gone:
        cluster.remove_pod(uid)
    snapshot.settle()
    never = Snapshot(world.cluster(without=gone))
    classes, others = classes_of(snapshot, world.asked), classes_of(never, world.asked)
    assert answers(snapshot, world.asked, classes) == answers(never, world.asked, others)
