"""How long people wait for answers about many gangs: `simulate`, `explain` with and without a name, `list`, the page.

Each gang has four members of 1 CPU, and the 50 nodes of 8 CPUs have room for a hundred gangs: all others wait, are
refused, and time out. Times are processor times.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.lab import Figures
from gangsched.cli.explain_all import copied, waiting
from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.events import Event, GroupsReplaced, NodesReplaced, PodsReplaced, Synced
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.shape import Amounts, Shape
from gangsched.page.machine_reader import MachineReader
from gangsched.views.decided_copy import decided
from gangsched.views.diagnosis import from_cluster
from gangsched.views.group_rows import rows
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.contents import World

MEMBERS, NODES = 4, 50
_ROOM: Amounts = (("cpu", 8000), ("memory", 32 << 30), ("pods", 110))
_SHAPE = Shape(requests=(("cpu", 1000), ("pods", 1)))


def simulated(gangs: int) -> Figures:
    """`gangsched simulate` of so many gangs, without reading the files."""
    groups, pods = _gangs(gangs)
    world = World(nodes=_nodes(), groups=groups, pods=pods, start=1000.0)
    start = time.process_time()
    told = simulate(world, Policy())
    return {"cpu_s": time.process_time() - start, "decisions": len(told.decisions)}


def answered(gangs: int) -> Figures:
    """What is shown of a cluster with so many gangs: the whole list, all that waits, one of them, and the page."""
    groups, pods = _gangs(gangs)
    events: list[Event] = [
        NodesReplaced(tuple(_nodes())),
        GroupsReplaced(tuple(groups)),
        PodsReplaced(tuple(pods)),
        Synced(),
    ]
    machine = decided(events, policy=Policy(), now=1000.0)
    reader = MachineReader(lambda: machine)
    last = GroupKey("default", f"g{gangs - 1}")
    return {
        "list_cpu_s": _took(lambda: rows(decided(events, policy=Policy(), now=1000.0))),
        "explain_all_cpu_s": _took(lambda: list(waiting(copied(events, policy=Policy(), now=1000.0)))),
        "explain_one_cpu_s": _took(lambda: from_cluster(events, last, policy=Policy(), now=1000.0)),
        "page_cpu_s": _took(lambda: list(reader.look())),
        "page_again_cpu_s": _took(lambda: list(reader.look())),
    }


def _took(answer: Callable[[], object]) -> float:
    start = time.process_time()
    answer()
    return time.process_time() - start


def _nodes() -> list[Node]:
    return [Node(name=f"node-{number}", allocatable=_ROOM) for number in range(NODES)]


def _gangs(number: int) -> tuple[list[Group], list[Pod]]:
    keys = [GroupKey("default", f"g{at}") for at in range(number)]
    groups = [Group(key, f"uid-{key.name}", "1", 1, float(at), GroupSpec(MEMBERS)) for at, key in enumerate(keys)]
    pods = [
        Pod(
            uid=f"{key.name}-{member}",
            namespace=key.namespace,
            name=f"{key.name}-{member}",
            shape=_SHAPE,
            created=float(at),
            scheduler="gangsched",
            declaration=Declaration(key.name),
        )
        for at, key in enumerate(keys)
        for member in range(MEMBERS)
    ]
    return groups, pods
