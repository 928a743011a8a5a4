"""The drawings of docs/architecture.md: the actual calls between modules for one pod and for one restart.

`python -m documentation.walk` (make walk) prints how much code of the core runs when the last member of a gang of three
comes, until its bindings are sent.

Both run on the machine, from the bytes that the API server sends to the effects that go back to it. Each story draws
the calls that are its milestones, in the order of their first call. An arrow starts at the room whose milestone is next
on the stack. A milestone that is not called is an error, so the drawing cannot become stale.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Raw

from documentation.filling import put
from gangsched.api.status_conversion import status_to_object
from gangsched.core.machine import Machine
from gangsched.core.objects.effects import BindPod, Effect, PatchStatus
from gangsched.core.objects.events import Event, Synced
from gangsched.core.objects.policy import Policy
from gangsched.kube.client.resource import Resource
from gangsched.kube.reading.watched_resources import GROUPS, NODES, PODS
from testbed.workloads import member, pod_group

PACKAGE = Path(__file__).resolve().parent.parent / "gangsched"
_SERVER = "API server"
_NOW = 1_800_000_000.0
_AT = "2027-01-15T08:00:00Z"
_ONE_POD = {
    "watched_resources.read": "decode the watch event",
    "machine.handle": "handle(events, now)",
    "intake.store": "store the events",
    "members.pod_seen": "find the gang of the pod",
    "cache.set_pod": "enter the pod in the ledger",
    "cycle.run": "go through the gangs in order",
    "reconcile.reconcile": "bring the gang up to date",
    "queue.file": "put the gang into the queue",
    "queue.next": "take the next gang",
    "placement.place": "find nodes for the whole quorum",
    "bindings.begin": "assume the nodes, return BindPod",
    "reconcile.conclude": "find the phase and what is due",
    "upkeep.write_status": "write the status that is due",
    "writer.schedule": "compare it with the last one written",
}
"""Calls of the first story, as `module.function`, and what each does."""
_ONE_RESTART = {
    "watched_resources.read_group": "decode the PodGroup",
    "status_conversion.status_from_object": "read the record from the status",
    "machine.handle": "handle(events, now)",
    "intake.store": "store the events, Synced is the last",
    "cache.set_node": "enter the node",
    "cache.set_pod": "enter the pods in the ledger",
    "news.take_in": "start each gang from its record",
    "recovery.resume": "with its record, without operations",
    "cycle.run": "go through the gangs in order",
    "reconcile.reconcile": "bring the gang up to date",
    "further.place_each": "find a node for the replaced member",
    "bindings.begin": "assume the node, return BindPod",
}
_NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "8", "pods": "110"}}}


def with_drawings(page: str) -> str:
    """The page with both drawings, each after a comment that names it."""
    for name, story, milestones in (("one pod", _one_pod, _ONE_POD), ("one restart", _one_restart, _ONE_RESTART)):
        head = f"<!-- Drawing of {name}, made by make docs from what documentation/walk.py sees -->"
        drawn = "\n".join([head, "", *_drawn(story, milestones), ""])
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


def _of_three() -> Callable[[], Sequence[Effect]]:
    """The last member of a gang of three is seen, and all of it is bound."""
    machine = Machine(Policy())
    group = _group()
    group["spec"]["minMember"] = 3
    seen = [*_read(PODS, _pod(0)), *_read(PODS, _pod(1))]
    machine.handle([*_read(NODES, _NODE), *_read(GROUPS, group), *seen, Synced()], _NOW)
    last = _read(PODS, _pod(2))
    return lambda: machine.handle(last, _NOW + 1)


def counted() -> tuple[int, int, int]:
    """How many calls of functions of the core the last member of a gang of three costs, in how many of its modules.

    And how often a gang is reconciled. Comprehensions count as calls before Python 3.12.
    """
    step, calls = _of_three(), Counter[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE / "core"):
            calls[f"{path}:{frame.f_code.co_name}"] += 1

    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
    modules = {name.rpartition(":")[0] for name in calls}
    reconciles = calls[f"{PACKAGE / 'core' / 'gang' / 'reconcile.py'}:reconcile"]
    return calls.total(), len(modules), reconciles


def _drawn(
    story: Callable[[], tuple[Callable[[], Sequence[Effect]], type[Effect]]], milestones: Mapping[str, str]
) -> list[str]:
    step, wanted = story()
    trace = _Trace(milestones)
    sys.setprofile(trace)
    try:
        effects = step()
    finally:
        sys.setprofile(None)
    if not any(isinstance(effect, wanted) for effect in effects):
        raise AssertionError(f"the story of the drawing does not come to {wanted.__name__}: {story.__doc__}")
    if trace.missing:
        raise AssertionError(f"the story of the drawing does not call {trace.missing}: {story.__doc__}")
    return ["```mermaid", "sequenceDiagram", *trace.lines, "```"]


class _Trace:
    """Records the first call of each milestone."""

    def __init__(self, milestones: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._milestones = milestones
        self._seen: set[str] = set()

    @property
    def missing(self) -> list[str]:
        """The milestones that were not called."""
        return [call for call in self._milestones if call not in self._seen]

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        called = _call(frame)
        if event != "call" or called not in self._milestones or called in self._seen:
            return
        self._seen.add(called)
        self.lines.append(f"    {self._caller(frame)}->>{_room(frame)}: {self._milestones[called]}<br/>({called})")

    def _caller(self, frame: FrameType) -> str:
        caller = frame.f_back
        while caller is not None and _call(caller) not in self._milestones:
            caller = caller.f_back
        return _room(caller) if caller is not None else _SERVER


def _call(frame: FrameType) -> str:
    """The running function as `module.function`; empty for other packages."""
    path = Path(frame.f_code.co_filename)
    return f"{path.stem}.{frame.f_code.co_name.strip('_')}" if path.is_relative_to(PACKAGE) else ""


def _room(frame: FrameType) -> str:
    """The package or room of the core whose code runs; for modules directly in the core, the module."""
    parts = Path(frame.f_code.co_filename).relative_to(PACKAGE).with_suffix("").parts
    return parts[1] if parts[0] == "core" else parts[0]


def _read(resource: Resource[Any], manifest: dict[str, Any]) -> list[Event]:
    """The events that the bytes of a watch event with this object are parsed into."""
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


if __name__ == "__main__":
    print("The last member of a gang of three: {} calls in {} modules of the core, {} reconcile".format(*counted()))
