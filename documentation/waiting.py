"""Fifteen kinds of waiting: the table from which docs/why-pending.md is generated.

`tests/integration/why_pending.py` plays each of them on a real API server and runs the commands that users would run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from testbed.workloads import Json, member, pod_group

NAMESPACE = "team"
GPU = "nvidia.com/gpu"
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@dataclass(frozen=True)
class Node:
    """One node, with these labels and taints."""

    name: str
    cpu: str = "4"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    extra: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A kind of waiting: the group `name` waits for `reason`; `what` explains it in a sentence.

    `holders` are the objects of groups that are bound before, `ahead` those of groups that wait too.
    """

    title: str
    name: str
    reason: str
    what: str
    nodes: Sequence[Node]
    members: Sequence[Json]
    holders: Sequence[Json] = ()
    ahead: Sequence[Json] = ()
    others: Sequence[Json] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    minimum: int = 0

    @property
    def objects(self) -> list[Json]:
        """The objects that the user of the waiting group applies."""
        return [*self.others, group(self.name, self.minimum or len(self.members), **self.spec), *self.members]

    @property
    def manifest(self) -> str:
        """The PodGroup and one member as YAML, as a user would write them."""
        shown = [*self.others, group(self.name, self.minimum or len(self.members), **self.spec), self.members[0]]
        return yaml.safe_dump_all(map(_without_empty, shown), sort_keys=False)


def _without_empty(value: Any) -> Any:  # noqa: ANN401 - any part of a manifest
    if isinstance(value, dict):
        return {key: _without_empty(each) for key, each in value.items() if each not in ({}, 0)}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def group(name: str, minimum: int, **spec: object) -> Json:
    """A PodGroup with a timeout of an hour, so that it does not time out during the observation."""
    return pod_group(name, min_member=minimum, **{"maxScheduleTime": "1h", **spec})


def pods(name: str, number: int, requests: Mapping[str, str] | None = None, **spec: Any) -> list[Json]:  # noqa: ANN401 - a pod's spec has any fields
    """`number` members of the group."""
    return [member(f"{name}-{at}", name, requests=requests, **spec) for at in range(number)]


def holder(number: int, requests: Mapping[str, str], **spec: Any) -> list[Json]:  # noqa: ANN401 - the same
    """The objects of a group that gets bound completely."""
    return [group("holder", number), *pods("holder", number, requests, **spec)]


def _apart(name: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"gangsched.io/pod-group": name}}, "topologyKey": HOSTNAME}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _spread(name: str) -> list[Json]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"gangsched.io/pod-group": name}},
        }
    ]


_CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "accelerator"},
    "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "accelerators"}}]}},
}
_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "accelerators"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'accelerators.example.com'"}}]},
}

KINDS = (
    Waiting(
        title="Too few members",
        name="few",
        reason="GangIncomplete",
        what="Not all pods exist yet: check what should create them, or lower `minMember`.",
        nodes=[Node("few-1")],
        members=pods("few", 2),
        minimum=3,
    ),
    Waiting(
        title="CPU",
        name="cpu",
        reason="Unschedulable",
        what="Other groups hold the CPUs. The group is bound when one of them ends, or with a new node.",
        nodes=[Node("cpu-1"), Node("cpu-2")],
        holders=holder(2, {"cpu": "3"}),
        members=pods("cpu", 3, {"cpu": "1"}),
    ),
    Waiting(
        title="GPU",
        name="gpu",
        reason="Unschedulable",
        what="The same for the devices of a device plug-in.",
        nodes=[Node("gpu-1", extra={GPU: "8"})],
        holders=holder(1, {GPU: "6"}),
        members=pods("gpu", 2, {GPU: "2"}),
    ),
    Waiting(
        title="Fragmented",
        name="fragmented",
        reason="Unschedulable",
        what="Enough is free in total, but no single node has room for a member.",
        nodes=[Node("fragmented-1"), Node("fragmented-2")],
        holders=holder(2, {"cpu": "3"}, affinity=_apart("holder")),
        members=pods("fragmented", 1, {"cpu": "2"}),
    ),
    Waiting(
        title="Larger than any node",
        name="large",
        reason="NeverFits",
        what="A single member requests more than any node has.",
        nodes=[Node("large-1")],
        members=pods("large", 2, {"cpu": "40"}),
    ),
    Waiting(
        title="Selector",
        name="selector",
        reason="NeverFits",
        what="No node has the labels that the members select.",
        nodes=[Node("selector-1")],
        members=pods("selector", 2, nodeSelector={"disk": "ssd"}),
    ),
    Waiting(
        title="Taint",
        name="taint",
        reason="NeverFits",
        what="The nodes have a taint that the members do not tolerate.",
        nodes=[Node("taint-1", taints=[{"key": "dedicated", "value": "other", "effect": "NoSchedule"}])],
        members=pods("taint", 2),
    ),
    Waiting(
        title="Anti-affinity",
        name="apart",
        reason="NeverFits",
        what="Three members need a node each, and there are two nodes.",
        nodes=[Node("apart-1"), Node("apart-2")],
        members=pods("apart", 3, affinity=_apart("apart")),
    ),
    Waiting(
        title="Spread",
        name="spread",
        reason="NeverFits",
        what="One zone has too little room for its share of the members.",
        nodes=[Node("spread-1", labels={ZONE: "a"}), Node("spread-2", cpu="1", labels={ZONE: "b"})],
        members=pods("spread", 4, {"cpu": "1"}, topologySpreadConstraints=_spread("spread")),
    ),
    Waiting(
        title="Volume",
        name="volume",
        reason="VolumeNotReady",
        what="A PersistentVolumeClaim that the members use does not exist.",
        nodes=[Node("volume-1")],
        members=pods("volume", 1, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]),
    ),
    Waiting(
        title="Device",
        name="device",
        reason="NeverFits",
        what="No node offers a device that the ResourceClaim requests.",
        nodes=[Node("device-1")],
        others=[_CLASS, _CLAIM],
        members=pods("device", 1, resourceClaims=[{"name": "one", "resourceClaimName": "accelerator"}]),
    ),
    Waiting(
        title="Its turn",
        name="turn",
        reason="Unschedulable",
        what="A group with a higher priority waits for the same room and is tried first.",
        nodes=[Node("turn-1")],
        holders=holder(1, {"cpu": "4"}),
        ahead=[group("urgent", 1, priority=10), *pods("urgent", 1, {"cpu": "2"})],
        members=pods("turn", 1, {"cpu": "2"}),
    ),
    Waiting(
        title="Timed out",
        name="late",
        reason="TimedOut",
        what="`maxScheduleTime` has passed. The group is tried again after a back-off, or sooner if a change may help.",
        nodes=[Node("late-1")],
        holders=holder(1, {"cpu": "4"}),
        members=pods("late", 1, {"cpu": "2"}),
        spec={"maxScheduleTime": "1s"},
    ),
    Waiting(
        title="Never fits",
        name="never",
        reason="NeverFits",
        what="Each member fits on its own, but not all of them together, even if the nodes were empty.",
        nodes=[Node("never-1"), Node("never-2")],
        members=pods("never", 3, {"cpu": "3"}),
    ),
    Waiting(
        title="Gated",
        name="gated",
        reason="GangIncomplete",
        what="Pods with a scheduling gate are not members until the controller that set the gate removes it.",
        nodes=[Node("gated-1")],
        members=pods("gated", 2, schedulingGates=[{"name": "example.com/quota"}]),
    ),
)
