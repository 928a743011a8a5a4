"""`python -m bench.bytecodes`: how many bytecodes of Python the life of one gang costs in the core, without a clock.

A stream of gangs, each from its PodGroup to its members' phase Running: the last members come together, bindings are
confirmed and shown in two halves. The number is the same on every machine with the same version of Python, and so shows
what a change costs where times are too uncertain. Work inside numpy is not counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from msgspec.structs import replace

from bench.calls import ROOM
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import Event, GroupSeen, NodesReplaced, PodSeen, Synced
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound
from gangsched.core.objects.shape import Shape

NODES, GANGS, SIZES = 500, 10, (3, 20)
_CORE = Path(__file__).resolve().parent.parent / "gangsched" / "core"
_BEGAN = 1_800_000_000.0


class Stream:
    """Gangs of one size that come one after the other to an empty cluster."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._machine = Machine(Policy())
        self._now = _BEGAN
        nodes = tuple(Node(f"n{at}", ROOM) for at in range(NODES))
        self._machine.handle([NodesReplaced(nodes), Synced()], self._now)

    def run(self, gangs: int) -> int:
        """Let so many gangs live. Returns the number of bound members."""
        return sum(self._live(f"g{at}") for at in range(gangs))

    def _live(self, name: str) -> int:
        said, shape = Declaration(group=name), Shape(requests=(("cpu", 1000),))
        pods = {
            f"uid-{name}-{at}": Pod(
                f"uid-{name}-{at}", "default", f"{name}-{at}", shape, _BEGAN, "gangsched", declaration=said
            )
            for at in range(self._size)
        }
        first, *others = map(PodSeen, pods.values())
        spec = GroupSpec(min_member=self._size)
        group = Group(GroupKey("default", name), f"uid-{name}", "1", 1, _BEGAN, spec)
        self._handle([GroupSeen(group), first])
        sent = self._handle(others)
        for half in (sent[: len(sent) // 2], sent[len(sent) // 2 :]):
            self._handle([PodBound(each.uid, each.node) for each in half])
            bound = [replace(pods[each.uid], node=each.node, bound_at=self._now) for each in half]
            self._handle(list(map(PodSeen, bound)))
            self._handle([PodSeen(replace(each, phase=PodPhase.RUNNING)) for each in bound])
        return len(sent)

    def _handle(self, events: Sequence[Event]) -> list[BindPod]:
        self._now += 0.01
        effects = self._machine.handle(events, self._now)
        return [effect for effect in effects if isinstance(effect, BindPod)]


def counted(work: Callable[[], object]) -> Counter[CodeType]:
    """How many bytecodes each function executes in this work."""
    executed: Counter[CodeType] = Counter()

    def enter(frame: FrameType, _event: str, _: object) -> Callable[[FrameType, str, Any], Any]:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        code = frame.f_code

        def step(_frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - as sys.settrace wants it
            if event == "opcode":
                executed[code] += 1
            return step

        return step

    sys.settrace(enter)
    try:
        work()
    finally:
        sys.settrace(None)
    return executed


def by_room(executed: Counter[CodeType]) -> Counter[str]:
    """The same by room of the core; what runs elsewhere is `library`."""
    rooms: Counter[str] = Counter()
    for code, number in executed.items():
        path = Path(code.co_filename)
        rooms[path.relative_to(_CORE).parts[0] if path.is_relative_to(_CORE) else "library"] += number
    return rooms


def main() -> None:
    """Print the bytecodes a gang for each size, and those of the rooms that have most of them."""
    for size in SIZES:
        executed = counted(partial(Stream(size).run, GANGS))
        most = ", ".join(f"{room} {number // GANGS:,}" for room, number in by_room(executed).most_common(8))
        print(f"a gang of {size}: {executed.total() // GANGS:,} bytecodes ({most})")


if __name__ == "__main__":
    main()
