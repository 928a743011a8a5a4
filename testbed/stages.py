"""KWOK stages for pods that become ready late, as real pods do."""

from __future__ import annotations

import copy
import re

import yaml

from testbed.api import Json

_READY = "pod-ready"
_ENDS = "-initializer"
"""Suffix of the names of containers that end by themselves, as in Kubeflow Trainer's containers that load data."""


def late(stages: str, after_s: float) -> str:
    """The stages with others for pods: a pod runs at once, is ready after `after_s` and then ends if `ends` says so.

    ``stages`` are KWOK's own, as several YAML documents.
    """
    found: list[Json] = [stage for stage in yaml.safe_load_all(stages) if stage]
    [ready] = [stage for stage in found if stage["metadata"]["name"] == _READY]
    others = [stage for stage in found if stage is not ready]
    return yaml.safe_dump_all([*others, _running(ready), _ready(ready, after_s), _complete(ready)])


def ends(pod: Json) -> bool:
    """Whether the pod ends by itself once it is ready."""
    return any(container["name"].endswith(_ENDS) for container in pod["spec"]["containers"])


def _named(stage: Json, name: str) -> Json:
    made = copy.deepcopy(stage)
    made["metadata"]["name"] = name
    return made


def _expressions(stage: Json) -> dict[str, Json]:
    return {each["key"]: each for each in stage["spec"]["selector"]["matchExpressions"]}


def _running(ready: Json) -> Json:
    made = _named(ready, "pod-running")
    told = made["spec"]["next"]["statusTemplate"]
    for kind in ("Ready", "ContainersReady"):
        told = told.replace(f'status: "True"\n  type: {kind}\n', f'status: "False"\n  type: {kind}\n')
    made["spec"]["next"]["statusTemplate"] = told.replace("ready: true", "ready: false")
    return made


def _ready(ready: Json, after_s: float) -> Json:
    """The stage that makes a pod ready, without the addresses, which the pod already has since it runs."""
    made = _named(ready, _READY)
    told = made["spec"]["next"]["statusTemplate"]
    made["spec"]["next"]["statusTemplate"] = re.sub(r"(?s)\{\{ \$hostIPs := .*(?=phase: )", "", told)
    _expressions(made)[".status.phase"]["values"] = ["Running"]
    made["spec"]["delay"] = {"durationMilliseconds": round(after_s * 1000)}
    return made


def _complete(ready: Json) -> Json:
    """The stage that ends a pod once it is ready, so that the delay is that of readiness."""
    made = _named(ready, "pod-complete")
    expressions = _expressions(made)
    expressions[".status.phase"]["values"] = ["Running"]
    [condition] = [each for key, each in expressions.items() if '"Ready"' in key]
    condition["operator"] = "In"
    named = f'.spec.containers.[] | select( .name | endswith("{_ENDS}") ) | .name'
    made["spec"]["selector"]["matchExpressions"].append({"key": named, "operator": "Exists"})
    made["spec"]["next"] = {"statusTemplate": "phase: Succeeded\n"}
    return made
