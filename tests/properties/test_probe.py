from __future__ import annotations

from msgspec.structs import replace

from gangsched.core.effects import BindPod
from gangsched.core.events import *
from gangsched.core.machine import Machine
from gangsched.core.model import PodTerm, Requirement, Topology
from gangsched.core.policy import NamespaceLimits, Policy
from tests.builders import group, key, node, pod, pods

LONG = Policy(default_max_schedule_time_s=1e6)


def binds(effects):
    return [e.name for e in effects if isinstance(e, BindPod)]


def test_many_fresh_rows():
    """CPU-rich and memory-rich nodes, more than FEW; the first event after the start frees memory on one."""
    m = Machine(LONG)
    nodes = [NodeSeen(node(f"c{i}", cpu=8, memory=4)) for i in range(6)] + [
        NodeSeen(node(f"m{i}", cpu=4, memory=8)) for i in range(6)
    ]
    fill = [PodSeen(pod(f"fc{i}", group="", node=f"c{i}", cpu="1m", memory=4)) for i in range(6)]
    fill += [PodSeen(pod(f"fm{i}", group="", node=f"m{i}", cpu=4, memory="1")) for i in range(6)]
    m.handle([*nodes, *fill, GroupSeen(group("a", min_member=1)), PodSeen(pod("a-0", cpu=1, memory=1)), Synced()], 0.0)
    assert m.gangs[key("a")].parked
    e = m.handle([PodGone("uid-default/fc3")], 1.0)
    while not binds(e) and (d := m.next_deadline()) is not None and d <= 1.0:
        e = m.handle([TimePassed()], 1.0)
    assert binds(e) == ["a-0"]


def test_nominated_rest():
    m = Machine(LONG)
    N = 300
    nom = pod("nom", group="", cpu=4, scheduler="default-scheduler", nominated_node="n1", priority=1000)
    seen = [NodeSeen(node(cpu=4, pods=1000)), PodSeen(nom)]
    for i in range(N):
        seen += [GroupSeen(group(f"g{i}", min_member=1)), PodSeen(pod(f"g{i}-0", group=f"g{i}", cpu=f"{1000 + i}m"))]
    m.handle([*seen, Synced()], 0.0)
    n = 0
    while m.next_deadline() == 0.0:
        m.handle([TimePassed()], 0.0)
        n += 1
        assert n < 100
    m.handle([NodeSeen(node(cpu=4, pods=1000, labels={"x": "y"}))], 1.0)
    n = 0
    while (d := m.next_deadline()) is not None and d <= 1.0:
        m.handle([TimePassed()], 1.0)
        n += 1
        assert n < 100


def test_large_extras():
    m = Machine(LONG, look_s_per_pod=0.01)
    N = 300
    mem = [pod(f"a-{i:03}", cpu=2) for i in range(N)]
    x, y = pod("x", group="", node="n1", cpu=2), pod("y", group="", node="n2", cpu=2)
    seen = [
        NodeSeen(node("n1", cpu=4)),
        NodeSeen(node("n2", cpu=2)),
        PodSeen(x),
        PodSeen(y),
        GroupSeen(group("a", min_member=1)),
        *map(PodSeen, mem),
    ]
    seen += [GroupSeen(group("b", min_member=3)), *map(PodSeen, pods("b", 3, cpu=3))]
    e = m.handle([*seen, Synced()], 0.0)
    assert binds(e) == ["a-000"]

    def rest(now):
        out = []
        while (d := m.next_deadline()) is not None and d <= now:
            out += binds(m.handle([TimePassed()], now))
        return out

    m.handle([PodSeen(replace(mem[0], node="n1"))], 0.1)
    for t in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10):
        rest(float(t))
    # a node that helps nobody is seen: the members are tried and refused again
    m.handle([NodeSeen(node("n3", cpu=1))], 10.5)
    rest(10.5)
    out = binds(m.handle([PodGone(y.uid)], 11.0))
    out += rest(11.0)
    for t in range(12, 30):
        out += rest(float(t))
    assert len(out) == 1


def test_generic_bucket_everywhere():
    m = Machine(LONG)
    term = PodTerm("zone", (Requirement("app", "In", ("x",)),), frozenset(["default"])) if False else None


def test_unknown_leak():
    m = Machine(LONG)
    m.handle([NodeSeen(node(cpu=4)), Synced()], 0.0)
    for i in range(50):
        p = pod(f"a{i}", group="", requests={f"example.com/r{i}": 1, "cpu": 1})
        m.handle([PodSeen(p)], float(i))
        m.handle([PodGone(p.uid)], i + 0.5)
    for t in range(100, 105):
        m.handle([TimePassed()], float(t))
    m.handle([NodeSeen(node(cpu=5))], 106.0)
    m.handle([TimePassed()], 107.0)
    assert not m._queue._refused.buckets
    assert len(m._queue._refused._unknown) < 5


def test_entrance_leak():
    m = Machine(Policy(default_max_schedule_time_s=1e6, namespace_limits=NamespaceLimits(waiting_groups=1)))
    m.handle([NodeSeen(node(cpu=1)), GroupSeen(group("a", min_member=1)), PodSeen(pod("a-0", cpu=9)), Synced()], 0.0)
    for i in range(300):
        p = pod(f"b{i}-0", group=f"b{i}", cpu=9)
        m.handle([GroupSeen(group(f"b{i}", min_member=1)), PodSeen(p)], float(i))
        m.handle([PodGone(p.uid), GroupGone(key(f"b{i}"))], i + 0.5)
    assert sum(map(len, m._entrance._order.values())) < 200


def test_ports_look():
    m = Machine(LONG)
    top = Topology("rack", True)
    nodes = [NodeSeen(node(f"n{i}", cpu=2, labels={"rack": f"r{i}"})) for i in range(3)]
    fill = [PodSeen(pod(f"f{i}", group="", node=f"n{i}", cpu=1, host_ports=[80])) for i in range(3)]
    m.handle(
        [
            *nodes,
            *fill,
            GroupSeen(group("a", min_member=1, topology=top)),
            PodSeen(pod("a-0", cpu=1, host_ports=[80])),
            Synced(),
        ],
        0.0,
    )
    assert m.gangs[key("a")].parked
    e = m.handle([PodGone("uid-default/f1"), PodSeen(pod("other", group="", node="n1", cpu=1))], 1.0)
    out = binds(e)
    while (d := m.next_deadline()) is not None and d <= 1.0:
        out += binds(m.handle([TimePassed()], 1.0))
    assert out == ["a-0"]
