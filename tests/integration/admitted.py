"""Random pods, and the LimitRanges and RuntimeClasses by which the API server changes or refuses them."""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

TOPOLOGY = "kubernetes.io/hostname"
MARK = "ephemeral-storage"
"""The resource of which every LimitRange here gives a default, so that one can see whether it is in force."""
_SIZES = {"cpu": ["100m", "500m", "1", "2", "3"], "memory": ["16Mi", "64Mi", "1Gi", "2Gi", "3Gi"]}
_WHOLE = ["example.com/gpu", "hugepages-1Gi"]
"""Resources of which a container has as many as it requests."""
_LABELS = {"app": ["a", "b"], "team": ["x", "y"], "tier": ["front", "back"]}
_TOLERATIONS = [
    {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
    {"key": "dedicated", "operator": "Exists"},
    {"operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
]
_REFUSED = [
    {"key": "level", "operator": "Gt", "value": "3", "effect": "NoSchedule"},
    {"key": "dedicated", "operator": "Exists", "value": "batch"},
    {"operator": "Equal", "value": "batch"},
    {"value": "batch"},
]
"""Tolerations that the API server refuses by default."""


class Dice:
    """The random choices of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def limit_range(self) -> Json:
        """A LimitRange with defaults, and with limits that some pods break."""
        of_containers = self._bounds("min", "defaultRequest", "default", "max") if self._chance(0.8) else {}
        of_containers.setdefault("defaultRequest", {})[MARK] = "1Mi"
        items = [{"type": "Container", **of_containers}]
        if self._chance(0.3):
            ratio = {"maxLimitRequestRatio": {"cpu": self._one(["2", "4", "1500m"])}}
            items.append({"type": "Pod", **(self._bounds("min", "max") if self._chance(0.7) else ratio)})
        return {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "limits"},
            "spec": {"limits": items},
        }

    def runtime_class(self, name: str) -> Json:
        """A RuntimeClass with overhead, a node selector and tolerations, or some of these."""
        made: Json = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}}
        made["handler"] = "h"
        if self._chance(0.7):
            made["overhead"] = {"podFixed": self._amounts(0.7) or {"cpu": "250m"}}
        if self._chance(0.7):
            made["scheduling"] = {
                "nodeSelector": {"runtime": self._one(["r", "s"])},
                "tolerations": self._random.sample(_TOLERATIONS, self._random.randint(0, 3)),
            }
        return made

    def pod(self, name: str, runtimes: list[str]) -> Json:
        """A pod that one of these rules may change."""
        spec: Json = {
            "schedulerName": "gangsched",
            "containers": [self._container(f"c{number}") for number in range(self._random.randint(1, 2))],
        }
        if self._chance(0.4):
            restarts = {"restartPolicy": "Always"} if self._chance(0.5) else {}
            spec["initContainers"] = [self._container("init") | restarts]
        if self._chance(0.2):
            spec["resources"] = self._resources(0.5)
            if self._chance(0.2):
                spec["resources"].setdefault("requests", {})["hugepages-1Gi"] = "1Gi"
        if self._chance(0.6):
            spec["runtimeClassName"] = self._one(runtimes)
        if self._chance(0.3):
            spec["nodeSelector"] = {self._one(["runtime", "disk"]): self._one(["r", "s"])}
        if self._chance(0.5):
            spec["tolerations"] = self._random.sample(_TOLERATIONS, self._random.randint(1, 3))
            spec["tolerations"] += [self._one(_REFUSED)] if self._chance(0.1) else []
        if self._chance(0.2):
            spec["priorityClassName"] = "system-cluster-critical"
        if self._chance(0.5):
            spec["affinity"] = {self._one(["podAffinity", "podAntiAffinity"]): self._affinity()}
        if self._chance(0.1):
            spec["hostNetwork"] = True
        if self._chance(0.5):
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": TOPOLOGY,
                    "whenUnsatisfiable": self._one(["DoNotSchedule", "ScheduleAnyway"]),
                    **self._selecting("matchLabelKeys"),
                }
            ]
        labels = {key: self._one(values) for key, values in _LABELS.items() if self._chance(0.7)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}

    def _affinity(self) -> Json:
        term = {"topologyKey": TOPOLOGY, **self._selecting("matchLabelKeys", "mismatchLabelKeys")}
        if self._chance(0.5):
            return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": term}]}

    def _selecting(self, *fields: str) -> Json:
        """A label selector, and label keys that it does not contain, as the API demands."""
        keys = ["team", "tier"]
        self._random.shuffle(keys)
        given = {field: [key] for field, key in zip(fields, keys, strict=False) if self._chance(0.7)}
        return {"labelSelector": {"matchLabels": {"app": self._one(_LABELS["app"])}}, **given}

    def _container(self, name: str) -> Json:
        made: Json = {"name": name, "image": "registry.example/x:1", "resources": self._resources(0.4)}
        for field in ("requests", "limits"):
            if self._chance(0.15):
                made["resources"].setdefault(field, {})[self._one(_WHOLE)] = self._one(["1Gi", "2Gi"])
        return made | ({"ports": [{"containerPort": 80}]} if self._chance(0.3) else {})

    def _resources(self, chance: float) -> Json:
        found: Json = {"requests": {}, "limits": {}}
        for name, sizes in _SIZES.items():
            least, most = sorted(self._random.sample(range(len(sizes)), 2))
            if self._chance(chance):
                found["requests"][name] = sizes[least]
            if self._chance(chance):
                found["limits"][name] = sizes[most]
        return {field: amounts for field, amounts in found.items() if amounts}

    def _bounds(self, *fields: str) -> Json:
        """Amounts for some of these fields, which never decrease from one to the next."""
        found: Json = {}
        for name, sizes in _SIZES.items():
            for field, at in zip(fields, sorted(self._random.choices(range(len(sizes)), k=len(fields))), strict=True):
                if self._chance(0.5):
                    found.setdefault(field, {})[name] = sizes[at]
        return found

    def _amounts(self, chance: float) -> Json:
        return {name: self._one(sizes) for name, sizes in _SIZES.items() if self._chance(chance)}

    def _one(self, choices: list[Any]) -> Any:
        return self._random.choice(choices)

    def _chance(self, chance: float) -> bool:
        return self._random.random() < chance
