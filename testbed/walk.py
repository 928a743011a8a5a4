"""The drawings of docs/architecture.md: the actual calls between modules for one pod and for one restart.

Both run on the machine, from the bytes that the API server sends to the effects that go back to it. The first call from
each room into each other is drawn, with the module and the function that are called; of the machine, the upkeep and the
cycle, which lead through everything, the first call into each module.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Raw

from gangsched.api.status_conversion import status_to_object
from gangsched.core.machine import Machine
from gangsched.core.objects.effects import BindPod, Effect, PatchStatus
from gangsched.core.objects.events import Event, Synced
from gangsched.core.objects.policy import Policy
from gangsched.kube.resources import GROUPS, NODES, PODS, Resource
from testbed.filling import put
from testbed.workloads import member, pod_group

PACKAGE = Path(__file__).resolve().parent.parent / "gangsched"
_LEADING = ("machine", "upkeep", "cycle")
_LEFT_OUT = ("budget",)
_NOW = 1_800_000_000.0
_AT = "2027-01-15T08:00:00Z"
_NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "8", "pods": "110"}}}


def with_drawings(page: str) -> str:
    """The page with both drawings, each of them behind a comment that names it."""
    for name, story in (("one pod", _one_pod), ("one restart", _one_restart)):
        head = f"<!-- Drawing of {name}, made by make docs from what testbed/walk.py sees -->"
        drawn = "\n".join([head, "", *_drawn(story), ""])
        page = put(rf"<!-- Drawing of {name}, .*\n(\n```mermaid\n([^`].*\n)*```\n)?", drawn, page)
    return page


def _one_pod() -> tuple[Callable[[], Sequence[Effect]], type[Effect]]:
    """The last member of a gang is seen, and all of it is bound."""
    machine = Machine(Policy())
    machine.handle([*_read(NODES, _NODE), *_read(GROUPS, _group()), *_read(PODS, _pod(0)), Synced()], _NOW)
    return lambda: machine.handle(_read(PODS, _pod(1)), _NOW + 1), BindPod


def _one_restart() -> tuple[Callable[[], Sequence[Effect]], type[Effect]]:
    """A new leader reads the record of a gang that was bound, and one of whose members is gone."""
    machine = Machine(Policy())
    first = [*_read(NODES, _NODE), *_read(GROUPS, _group()), *_read(PODS, _pod(0)), *_read(PODS, _pod(1)), Synced()]
    machine.handle(first, _NOW)
    effects = machine.handle([*_read(PODS, _pod(0, node="n1")), *_read(PODS, _pod(1, node="n1"))], _NOW + 1)
    (written,) = (effect.status for effect in effects if isinstance(effect, PatchStatus))
    successor = Machine(Policy())
    known = [*_read(NODES, _NODE), *_read(PODS, _pod(0, node="n1")), *_read(PODS, _pod(2))]
    group = {**_group(), **status_to_object(written)}
    return lambda: successor.handle([*known, *_read(GROUPS, group), Synced()], _NOW + 60), BindPod


def _drawn(story: Callable[[], tuple[Callable[[], Sequence[Effect]], type[Effect]]]) -> list[str]:
    step, wanted = story()
    trace = _Trace()
    sys.setprofile(trace)
    try:
        effects = step()
    finally:
        sys.setprofile(None)
    if not any(isinstance(effect, wanted) for effect in effects):
        raise AssertionError(f"the story of the drawing does not come to {wanted.__name__}: {story.__doc__}")
    return ["```mermaid", "sequenceDiagram", *trace.lines, "```"]


class _Trace:
    """Notes the first calls, as the module's docstring says."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_name
        called = _place(frame)
        if event != "call" or called is None or name.startswith(("<", "__")):
            return
        room, module = called
        caller = frame.f_back
        while caller is not None and _place(caller) is None:
            caller = caller.f_back
        place = _place(caller) if caller is not None else None
        origin = place[0] if place is not None else "API server"
        step = (origin, module if origin in _LEADING else room)
        if room != origin and module not in _LEFT_OUT and step not in self._seen:
            self._seen.add(step)
            self.lines.append(f"    {origin}->>{room}: {module}.{name.strip('_')}")


def _place(frame: FrameType) -> tuple[str, str] | None:
    """Room and module of the code that runs; None for values, which every room uses, and for other packages."""
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(PACKAGE) or "objects" in path.parts:
        return None
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    inside = parts[1:] if parts[0] == "core" else parts
    return inside[0], inside[-1]


def _read(resource: Resource[Any], manifest: dict[str, Any]) -> list[Event]:
    """What the bytes of a watch event with this object become."""
    _, value = resource.read(Raw(json.dumps(manifest).encode()))
    return [resource.seen(value)]


def _group() -> dict[str, Any]:
    return _named(pod_group("train", min_member=2))


def _pod(number: int, *, node: str = "") -> dict[str, Any]:
    made = _named(member(f"train-{number}", "train"))
    if node:
        made["spec"]["nodeName"] = node
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _AT}
        made["status"] = {"phase": "Running", "conditions": [condition]}
    return made


def _named(manifest: dict[str, Any]) -> dict[str, Any]:
    name = manifest["metadata"]["name"]
    known = {"namespace": "team", "uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": _AT}
    return {**manifest, "metadata": manifest["metadata"] | known | {"generation": 1}}
