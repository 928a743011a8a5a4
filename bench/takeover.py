"""The work of a standby at a takeover: `python -m bench.takeover [NODES GROUPS SIZE]`, one JSON line.

A standby receives the same events as the leader and decides nothing. `fed_s` is its work before the takeover.
`decided_s` is the work at the takeover: recovery of everything it has seen, and the first scheduling cycle.
"""

from __future__ import annotations

import json
import sys
import time

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import GroupsReplaced, NodesReplaced, PodsReplaced, Synced
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.shape import Shape

_ARGUMENTS = 3


def measure(nodes: int, groups: int, size: int) -> dict[str, float]:
    """Feed a machine with `nodes` nodes and `groups` groups of `size` one-CPU pods, and let it take over."""
    shape = Shape(requests=(("cpu", 1000),))
    room = (("cpu", 1000 * (1 + groups * size // nodes)), ("pods", 110))
    machine = Machine(Policy())
    began = time.perf_counter()
    machine.handle([NodesReplaced(tuple(Node(f"n{number}", room) for number in range(nodes)))], 1.0)
    keys = [GroupKey("default", f"g{number}") for number in range(groups)]
    machine.handle(
        [GroupsReplaced(tuple(Group(key, key.name, "1", 1, 0.0, GroupSpec(min_member=size)) for key in keys))], 1.0
    )
    machine.handle([PodsReplaced(tuple(_member(key, number, shape) for key in keys for number in range(size)))], 1.0)
    fed = time.perf_counter()
    effects = machine.handle([Synced()], 2.0)
    decided = time.perf_counter()
    return {
        "fed_s": round(fed - began, 3),
        "decided_s": round(decided - fed, 3),
        "bindings": sum(isinstance(effect, BindPod) for effect in effects),
    }


def _member(key: GroupKey, number: int, shape: Shape) -> Pod:
    name = f"{key.name}-{number}"
    return Pod(name, key.namespace, name, shape, 0.0, "gangsched", declaration=Declaration(key.name))


def main(arguments: list[str]) -> None:
    """Measure and print."""
    chosen = [int(argument) for argument in arguments]
    nodes, groups, size = chosen if len(chosen) == _ARGUMENTS else (5000, 50, 100)
    figures = {"scenario": "takeover", "nodes": nodes, "groups": groups, "size": size, **measure(nodes, groups, size)}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
