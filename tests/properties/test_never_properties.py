"""NeverFits is a promise: whatever passes may pass, and whoever has a node may go, the gang still does not fit."""

from __future__ import annotations

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from tests import naive
from tests.builders import GPU
from tests.effort import examples
from tests.naive import World
from tests.properties.test_dependent_properties import KEYS, problems
from tests.properties.test_placement_properties import rich_problems
from tests.strategies import LABEL_KEYS, LABEL_VALUES

STARTING = (
    Taint("node.kubernetes.io/not-ready", "NoExecute"),
    Taint("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule", "true"),
    Taint("agent.example.com/agent-not-ready", "NoSchedule"),
)
PRESSED = (
    Taint("node.kubernetes.io/unschedulable", "NoSchedule"),
    Taint("node.kubernetes.io/disk-pressure", "NoSchedule"),
    Taint("ToBeDeletedByClusterAutoscaler", "NoSchedule", "1"),
)


@st.composite
def shut(draw: st.DrawFn, node: Node) -> Node:
    """The node in a state that passes, often, and short of what comes with it."""
    kind = draw(st.sampled_from(("settled", "settled", "starting", "pressed", "cordoned", "awaiting", "silent")))
    lost = draw(st.sampled_from(("", *LABEL_KEYS, *KEYS)))
    match kind:
        case "starting":
            labels = tuple(pair for pair in node.labels if pair[0] != lost)
            amounts = tuple(each for each in node.allocatable if each[0] != GPU or draw(st.booleans()))
            return replace(
                node, taints=(*node.taints, draw(st.sampled_from(STARTING))), labels=labels, allocatable=amounts
            )
        case "pressed":
            return replace(node, taints=(*node.taints, draw(st.sampled_from(PRESSED))))
        case "cordoned":
            return replace(node, unschedulable=True)
        case "awaiting":
            amounts = tuple(each for each in node.allocatable if each[0] != GPU)
            return replace(node, allocatable=amounts, awaited=(GPU,))
        case "silent":
            return replace(node, allocatable=())
    return node


@st.composite
def opened(draw: st.DrawFn, node: Node) -> Node:
    """The node later: without what passes, and with some of what may come."""
    labels, amounts = dict(node.labels), dict(node.allocatable)
    if any(taint in STARTING for taint in node.taints) or not node.allocatable:
        missing = [key for key in ("zone", "rack", "disk", "host") if key not in labels]
        come = draw(st.lists(st.sampled_from(missing), unique=True)) if missing else []
        labels |= {key: draw(st.sampled_from((*LABEL_VALUES, "z1", "r1"))) for key in come}
        amounts |= {GPU: draw(st.integers(1, 8))} if draw(st.booleans()) else {}
    if node.awaited:
        amounts |= {GPU: draw(st.integers(1, 8))}
    if not node.allocatable:
        amounts |= {"cpu": draw(st.integers(1000, 20000)), "memory": 1 << 40, "pods": 10}
    return replace(
        node,
        taints=tuple(taint for taint in node.taints if taint not in (*STARTING, *PRESSED)),
        unschedulable=False,
        labels=tuple(sorted(labels.items())),
        allocatable=tuple(sorted(amounts.items())),
        awaited=(),
    )


@given(st.one_of(problems(), rich_problems()), st.sampled_from((None, *KEYS)), st.data())
@settings(max_examples=examples(300))
def test_what_is_said_never_to_fit_does_not_fit_later_either(problem, key, data):
    cluster, world, members = problem
    for name, node in list(world.nodes.items()):
        world.nodes[name] = data.draw(shut(node))
        cluster.set_node(world.nodes[name])
    need = data.draw(st.integers(1, len(members)))
    wanted = None if key is None else Topology(key)
    found = place(Snapshot(cluster), Ask(members=members, need=need, topology=wanted))
    never = isinstance(found, Refusal) and found.never
    event(f"{'never' if never else type(found).__name__}")
    assume(never)
    later = World(namespaces=world.namespaces)
    later.nodes = {name: data.draw(opened(node)) for name, node in world.nodes.items()}
    later.standing = [each for each in world.standing if data.draw(st.booleans())]
    assert not fits(later, members, need, key)


def fits(world: World, members: list[Pod], need: int, key: str | None) -> bool:
    """Whether the quorum can be placed in some order, in one domain of the label if there is one."""
    if key is None:
        return naive.one_by_one(world, [(member, list(world.nodes)) for member in members], need)
    domains: dict[str, list[str]] = {}
    for name, node in world.nodes.items():
        if key in dict(node.labels):
            domains.setdefault(dict(node.labels)[key], []).append(name)
    return any(naive.one_by_one(world, [(member, names) for member in members], need) for names in domains.values())
