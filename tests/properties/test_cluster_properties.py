from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.shape import HostPort, Labels, PodTerm, Requirement, Shape
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import Sights
from tests.builders import node, pod
from tests.effort import examples
from tests.naive import World
from tests.strategies import labels, nodes, pod_terms, shapes
from tests.verdicts import class_of

NODE_NAMES = ("n0", "n1", "n2", "n3")
UIDS = tuple(f"pod-{at}" for at in range(6))
HEIRS = ("heir-0", "heir-1")
NAMESPACES = ("default", "other")

node_names = st.sampled_from(NODE_NAMES)
uids = st.sampled_from(UIDS)
phases = st.sampled_from((*(PodPhase.RUNNING,) * 3, PodPhase.PENDING, PodPhase.SUCCEEDED, PodPhase.FAILED))
close_terms = st.sampled_from(
    (
        PodTerm(topology_key="zone", selector=(), namespaces=("default",)),
        PodTerm(topology_key="zone", selector=(Requirement("zone", "Exists"),), namespace_selector=()),
        PodTerm(topology_key="rack", selector=(), namespace_selector=(Requirement("disk", "Exists"),)),
    )
)
terms = st.lists(close_terms | pod_terms, max_size=2).map(tuple)
node_labels = st.tuples(st.sampled_from(("", "a", "b")), st.sampled_from(("", "1"))).map(
    lambda pair: tuple((key, value) for key, value in (("rack", pair[1]), ("zone", pair[0])) if value)
)

small_shapes = st.just(Shape()) | shapes

PROBES: tuple[Pod, ...] = (
    pod("default/plain", cpu="500m", labels={"zone": "a"}),
    pod("other/tolerant", cpu="1", labels={"zone": "b"}, tolerations=[""]),
    pod("default/picky", cpu=None, node_selector={"zone": "a"}, tolerations=[""]),
    pod("other/ports", cpu=None, host_ports=[80], tolerations=[""]),
    pod("default/port", cpu="1", host_ports=[HostPort(443, ip="10.0.0.1")], labels={"rack": "1"}, tolerations=[""]),
    pod("default/device", cpu="1", gpu=1, labels={"disk": "2"}, tolerations=[""]),
)


Rooms = dict[tuple[int, Sights], dict[str, int]]


class ClusterMachine(RuleBasedStateMachine):
    """Any sequence of changes to a cluster, compared with a plain record of them."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.assumed: dict[str, str] = {}
        self.namespaces: dict[str, Labels] = {}
        self.seen = self.rooms(self.cluster)
        self.steps = 0

    @initialize(labelled=st.lists(node_labels, min_size=3, max_size=3), patience=st.sampled_from((1, 1, 2, 5)))
    def begin_with_roomy_nodes(self, labelled, patience):
        self.patience = patience
        for name, each in zip(NODE_NAMES, labelled, strict=False):
            self.nodes[name] = node(name, gpu=4, labels=dict(each))
            self.cluster.set_node(self.nodes[name])
        self.read_relief(self.rooms(self.cluster))

    # Steps

    @rule(name=node_names, data=st.data())
    def set_node(self, name, data):
        new = data.draw(nodes(name))
        changed = self.cluster.set_node(new)
        assert changed is (self.nodes.get(name) != new)
        self.nodes[name] = new

    @precondition(lambda self: self.nodes)
    @rule(data=st.data(), labelled=node_labels, cordoned=st.integers(0, 3), relabelled=st.booleans())
    def change_node(self, data, labelled, cordoned, relabelled):
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        old = self.nodes[name]
        new = replace(old, labels=labelled if relabelled else old.labels, unschedulable=not cordoned)
        self.nodes[name] = new
        assert self.cluster.set_node(new) is (old != new)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data):
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        assert self.cluster.remove_node(name)
        assert not self.cluster.remove_node(name)
        del self.nodes[name]

    @rule(
        uid=uids,
        name=node_names | st.just(""),
        shape=small_shapes,
        terms=st.just(()) | terms | close_terms.map(lambda term: (term,)),
    )
    def set_pod(self, uid, name, shape, terms):
        self.see(replace(pod(uid, uid=uid, node=name), shape=replace(shape, anti_affinity=terms)))

    @precondition(lambda self: self.pods)
    @rule(
        data=st.data(),
        phase=phases,
        shape=small_shapes,
        terms=terms,
        what=st.sampled_from(["status", "shape", "terms"]),
    )
    def change_pod(self, data, phase, shape, terms, what):
        old = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        fields = {
            "status": {"phase": old.phase if old.terminal else phase, "terminating": True},
            "shape": {"shape": shape},
            "terms": {"shape": replace(old.shape, anti_affinity=terms)},
        }[what]
        self.see(replace(old, **fields))

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def remove_pod(self, data):
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        assert self.cluster.remove_pod(uid) == self.pods.pop(uid)
        self.assumed.pop(uid, None)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), name=node_names)
    def assume(self, data, name):
        uid = data.draw(st.sampled_from(self.waiting()))
        self.cluster.assume(uid, name)
        self.assumed[uid] = name

    @precondition(lambda self: self.assumed)
    @rule(data=st.data())
    def forget(self, data):
        uid = data.draw(st.sampled_from(sorted(self.assumed)))
        self.cluster.forget(uid)
        del self.assumed[uid]

    @precondition(lambda self: self.assumed)
    @rule(data=st.data(), elsewhere=st.booleans(), name=node_names)
    def confirm(self, data, elsewhere, name):
        uid = data.draw(st.sampled_from(sorted(self.assumed)))
        self.see(replace(self.pods[uid], node=name if elsewhere else self.assumed[uid]))

    @rule(
        uid=st.sampled_from(HEIRS),
        nominated=node_names | st.just(""),
        bound=st.booleans(),
        terms=st.just(()) | close_terms.map(lambda term: (term,)),
    )
    def see_pod_of_another_scheduler(self, uid, nominated, bound, terms):
        where = {"node": nominated} if bound else {"nominated_node": nominated}
        seen = pod(uid, uid=uid, **where, anti_affinity=terms)
        self.see(seen)
        self.cluster.nominate(seen)

    @rule(name=st.sampled_from(NAMESPACES), labelled=labels, gone=st.booleans())
    def change_namespace(self, name, labelled, gone):
        if gone:
            self.cluster.remove_namespace(name)
            self.namespaces.pop(name, None)
        else:
            self.cluster.set_namespace(name, labelled)
            self.namespaces[name] = labelled

    def waiting(self) -> list[str]:
        waiting = (uid for uid, there in self.pods.items() if not there.node and not there.terminal)
        return sorted(uid for uid in waiting if uid not in HEIRS)

    def see(self, seen: Pod) -> None:
        former = self.cluster.set_pod(seen)
        assert former == self.pods.get(seen.uid)
        self.pods[seen.uid] = seen
        if seen.node or seen.terminal:
            self.assumed.pop(seen.uid, None)

    # Invariants

    @invariant()
    def all_is_well(self):
        assert self.cluster.validate() == []
        rooms = self.rooms(self.cluster)
        self.check_against_a_cluster_made_anew(rooms)
        self.check_against_the_oracle(rooms)
        self.check_that_nothing_got_better_without_relief(rooms)
        self.steps += 1
        if self.steps >= self.patience:
            self.read_relief(rooms)

    def check_against_a_cluster_made_anew(self, rooms: Rooms) -> None:
        anew = Cluster()
        for uid, there in self.pods.items():
            anew.set_pod(there)
            if uid in self.assumed:
                anew.assume(uid, self.assumed[uid])
        for name, labelled in self.namespaces.items():
            anew.set_namespace(name, labelled)
        for each in self.nodes.values():
            anew.set_node(each)
        assert rooms == self.rooms(anew)
        assert self.cluster.on_node == anew.on_node
        heirs = {uid: self.pods[uid] for uid in HEIRS if uid in self.pods}
        assert {uid: claim.pod for uid, claim in self.cluster.ledger.nominated.items()} == {
            uid: heir for uid, heir in heirs.items() if heir.nominated_node and not heir.terminal
        }
        for name in self.nodes:
            assert self.free(self.cluster, name) == self.free(anew, name)

    def check_against_the_oracle(self, rooms: Rooms) -> None:
        world = World(nodes=self.nodes, namespaces=self.namespaces)
        for uid, there in self.pods.items():
            where = there.node or self.assumed.get(uid)
            if where and not there.terminal:
                world.put(there, where)
        for (asked, _), room in zip(rooms, rooms.values(), strict=True):
            assert {name for name, number in room.items() if number} == {
                name for name in self.nodes if not world.objection(PROBES[asked], name)
            }

    def check_that_nothing_got_better_without_relief(self, rooms: Rooms) -> None:
        relief = self.cluster.relief
        for (_, forbidden), had, room in zip(self.seen, self.seen.values(), rooms.values(), strict=True):
            for name, number in room.items():
                if number > had.get(name, 0):
                    assert self.cluster.capacity.rows[name] in relief.rows or (relief.everywhere and forbidden)

    def read_relief(self, rooms: Rooms) -> None:
        self.seen = rooms
        self.steps = 0
        self.cluster.relief.take()
        assert not self.cluster.relief

    def rooms(self, cluster: Cluster) -> Rooms:
        """For each probe and its anti-affinity: how many such pods each node accepts."""
        snapshot = Snapshot(cluster)
        found = {}
        for at, probe in enumerate(PROBES):
            member = class_of(snapshot, probe)
            caps = snapshot.caps(member).tolist()
            found[at, member.seen] = {name: caps[row] for name, row in cluster.capacity.rows.items()}
        return found

    def free(self, cluster: Cluster, name: str) -> dict[str, int]:
        row = cluster.capacity.rows[name]
        return {
            resource: cluster.capacity.free_of(row, resource) for resource in ("cpu", "memory", "pods", "x/unknown")
        }


TestCluster = ClusterMachine.TestCase
TestCluster.settings = settings(max_examples=examples(100), stateful_step_count=40)


zones = st.sampled_from(({}, {"zone": "a"}, {"zone": "b", "rack": "1"}, {"zone": "a", "rack": "1"}))
domain_steps = st.one_of(
    st.tuples(st.just("node"), node_names, zones),
    st.tuples(st.just("node gone"), node_names, st.none()),
    st.tuples(st.just("pod"), st.sampled_from(UIDS[:3]), st.tuples(node_names, close_terms)),
    st.tuples(st.just("pod gone"), st.sampled_from(UIDS[:3]), st.none()),
    st.tuples(st.just("namespace"), st.sampled_from(NAMESPACES), st.sampled_from(((), (("disk", "1"),)))),
    st.tuples(st.just("namespace gone"), st.sampled_from(NAMESPACES), st.none()),
)


@given(st.lists(domain_steps, min_size=6, max_size=20), st.sampled_from((1, 3)))
@settings(max_examples=examples(200))
def test_whatever_opens_a_domain_that_anti_affinity_closed_is_told(steps, patience):
    """The same checks with few other changes: roomy nodes in few domains, and pods that forbid these."""
    machine = ClusterMachine()
    machine.patience = patience
    for what, name, value in steps:
        match what:
            case "node":
                machine.nodes[name] = node(name, gpu=1, labels=value)
                machine.cluster.set_node(machine.nodes[name])
            case "node gone":
                machine.cluster.remove_node(name)
                machine.nodes.pop(name, None)
            case "pod":
                where, term = value
                machine.see(replace(pod(name, uid=name, node=where), shape=Shape(anti_affinity=(term,))))
            case "pod gone":
                machine.cluster.remove_pod(name)
                machine.pods.pop(name, None)
            case "namespace":
                machine.cluster.set_namespace(name, value)
                machine.namespaces[name] = value
            case "namespace gone":
                machine.cluster.remove_namespace(name)
                machine.namespaces.pop(name, None)
        machine.all_is_well()
