"""The race of examples/race/ on a real API server: two groups, room for one.

Nodes, PodGroups and StatefulSets come from the example's files. kube-controller-manager creates the pods, KWOK runs
them, and gangsched, which must be running already, binds them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.api import ApiError, Json
from testbed.control_plane import ControlPlane

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "race"
FILES = tuple(sorted(FOLDER.glob("*.yaml")))
RESOURCE = "cpu"
"""The resource that does not suffice for both groups."""

_GROUP_LABEL = "gangsched.io/pod-group"
_PATHS = {
    "PodGroup": "/apis/gangsched.io/v1alpha1/namespaces/{namespace}/podgroups",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
}
_LOOK_EVERY_S = 0.05
_WITHIN_S = 60.0


class RaceError(Exception):
    """The race did not go as expected; the message says what happened instead."""


@dataclass(frozen=True)
class Member:
    """A pod of a group. `node` is empty while it is unbound."""

    name: str
    node: str
    running: bool


@dataclass(frozen=True)
class Group:
    """A PodGroup according to its status, with the pods that name it."""

    name: str
    minimum: int
    phase: str
    reason: str
    message: str
    members: tuple[Member, ...]

    @property
    def bound(self) -> int:
        """The number of its pods that have a node."""
        return sum(bool(member.node) for member in self.members)

    @property
    def runs_whole(self) -> bool:
        """Whether all its pods run and its status agrees."""
        running = sum(member.running for member in self.members)
        return self.phase == "Running" and running == len(self.members) >= self.minimum

    def waits_whole(self, holder: str) -> bool:
        """Whether all pods exist, none is bound, and the status names the missing resource and the holding group."""
        there = len(self.members) >= self.minimum and not self.bound
        return there and RESOURCE in self.message and holder in self.message


@dataclass(frozen=True)
class Scene:
    """A snapshot of all groups, by name, and of the pods on each node."""

    groups: Mapping[str, Group]
    nodes: Mapping[str, tuple[str, ...]]

    def check(self) -> None:
        """Check that the room is not divided among groups.

        Raises:
            RaceError: more than one group has bound members.
        """
        holding = [group for group in self.groups.values() if group.bound]
        if len(holding) > 1:
            said = " and ".join(f"{group.bound} of {group.name}" for group in holding)
            raise RaceError(f"members of two groups were bound at the same time: {said}")

    def winner(self) -> str:
        """The group that runs whole while every other waits whole and unbound; empty while it is undecided."""
        for name, group in self.groups.items():
            others = [other for other in self.groups.values() if other is not group]
            if others and group.runs_whole and all(other.waits_whole(name) for other in others):
                return name
        return ""

    def describe(self) -> str:
        """The scene in words, for the message of a failure."""
        return "; ".join(
            f"{group.name} is {group.phase or 'without status'} ({group.reason}: {group.message}) with {group.bound} "
            f"of {len(group.members)} members bound"
            for group in self.groups.values()
        )


class Race:
    """The race in one namespace of a control plane."""

    def __init__(self, control_plane: ControlPlane, namespace: str = "default") -> None:
        self._control_plane = control_plane
        self._api = control_plane.api
        self._namespace = namespace
        objects = list(_objects())
        self._nodes = [each for each in objects if each["kind"] == "Node"]
        self._system_pods = [each for each in objects if each["kind"] == "Pod"]
        self.entries: Sequence[Json] = [each for each in objects if each["kind"] in ("PodGroup", "StatefulSet")]
        """The PodGroups and StatefulSets, in the order of the files."""

    def prepare(self) -> None:
        """Add the nodes and the pods that already run on them."""
        for node in self._nodes:
            given = node["status"]["allocatable"]
            self._control_plane.add_node(
                node["metadata"]["name"], cpu=given["cpu"], memory=given["memory"], pods=given["pods"]
            )
        for pod in self._system_pods:
            self._post_when_accepted(_path("Pod", pod["metadata"]["namespace"]), pod)

    def start(self, entries: Sequence[Json]) -> None:
        """Create PodGroups and StatefulSets in this order, without pauses."""
        for entry in entries:
            self._api.post(_path(entry["kind"], self._namespace), entry)

    def look(self) -> Scene:
        """The current scene."""
        pods = self._api.get(_path("Pod", self._namespace))["items"]
        groups = self._api.get(_path("PodGroup", self._namespace))["items"]
        nodes: dict[str, list[str]] = {node["metadata"]["name"]: [] for node in self._nodes}
        for pod in (*self._system_pods, *pods):
            if (node := pod["spec"].get("nodeName", "")) in nodes:
                nodes[node].append(pod["metadata"]["name"])
        return Scene(
            groups={group["metadata"]["name"]: _group(group, pods) for group in groups},
            nodes={name: tuple(sorted(there)) for name, there in nodes.items()},
        )

    def until(
        self, condition: Callable[[Scene], object], *, what: str, seen: Callable[[Scene], None] = lambda _: None
    ) -> Scene:
        """Poll until the condition holds; `seen` receives every scene.

        Raises:
            RaceError: it does not hold within a minute, or room was divided in the meantime.
        """
        deadline = time.monotonic() + _WITHIN_S
        while True:
            scene = self.look()
            seen(scene)
            scene.check()
            if condition(scene):
                return scene
            if time.monotonic() > deadline:
                raise RaceError(f"{what} did not happen within {_WITHIN_S:g} s: {scene.describe()}")
            time.sleep(_LOOK_EVERY_S)

    def delete(self, name: str) -> None:
        """Delete a group: its StatefulSet, whose pods follow, and its PodGroup."""
        for kind in ("StatefulSet", "PodGroup"):
            self._api.delete(f"{_path(kind, self._namespace)}/{name}")

    def clear(self) -> None:
        """Delete all groups and wait until their pods are gone."""
        for kind in ("StatefulSet", "PodGroup"):
            self._api.delete(_path(kind, self._namespace))
        self.until(lambda scene: not scene.groups and not self._pods_left(), what="the end of all groups")

    def tidy(self) -> None:
        """Delete the pods that `prepare` created."""
        for pod in self._system_pods:
            self._api.delete(f"{_path('Pod', pod['metadata']['namespace'])}/{pod['metadata']['name']}", grace_s=0)

    def _pods_left(self) -> bool:
        return bool(self._api.get(_path("Pod", self._namespace))["items"])

    def _post_when_accepted(self, path: str, pod: Json) -> None:
        """Create a pod; retries, because pods are refused until the namespace has its default service account."""
        deadline = time.monotonic() + _WITHIN_S
        while True:
            try:
                self._api.post(path, pod)
            except ApiError as error:
                if "serviceaccount" not in error.message or time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_EVERY_S)
            else:
                return


def _objects() -> Iterator[Json]:
    for file in FILES:
        yield from yaml.safe_load_all(file.read_text())


def _path(kind: str, namespace: str) -> str:
    return _PATHS[kind].format(namespace=namespace)


def _group(group: Json, pods: Sequence[Json]) -> Group:
    name = group["metadata"]["name"]
    status = group.get("status", {})
    condition: Mapping[str, Any] = next(
        (each for each in status.get("conditions", []) if each["type"] == "Scheduled"), {}
    )
    return Group(
        name=name,
        minimum=group["spec"]["minMember"],
        phase=status.get("phase", ""),
        reason=condition.get("reason", ""),
        message=condition.get("message", ""),
        members=tuple(
            Member(
                name=pod["metadata"]["name"],
                node=pod["spec"].get("nodeName", ""),
                running=pod.get("status", {}).get("phase") == "Running",
            )
            for pod in pods
            if pod["metadata"].get("labels", {}).get(_GROUP_LABEL) == name
        ),
    )
