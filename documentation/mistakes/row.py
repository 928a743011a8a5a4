"""One row of the table, and helpers for the manifests of its rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from testbed.workloads import SCHEDULER, member, pod_group

Json = dict[str, Any]
LABEL = "gangsched.io/pod-group"


class Where(StrEnum):
    """Where users read the message."""

    EXPLAIN = "`gangsched explain`"
    POD = "condition and Event of the waiting pods"
    EVENT = "Event of the pods"
    GROUP = "condition of the PodGroup"
    KUBECTL = "`kubectl apply`"
    HELM = "`helm`"
    ERROR = "the command's error"
    OUTPUT = "the command's output"
    LOG = "the operator's log"


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One row. `told` is the message in each place; … in it stands for any text.

    A row does one of three things. It applies `objects`, and `group` is the group to ask about; {namespace} is their
    namespace and {elsewhere} another one, for objects that have `elsewhere`. Or it runs the `command` of gangsched with
    the credentials named by `access`. Or it renders the `chart` with these values. `alone`: the API server refuses the
    objects.
    """

    told: Mapping[Where, str]
    objects: Sequence[Json] = ()
    group: str = ""
    command: Sequence[str] = ()
    access: str = ""
    chart: Sequence[str] | None = None
    alone: bool = False


def said(sentence: str, **words: str) -> re.Pattern[str]:
    """A pattern that finds the sentence, with these words filled in, in a message."""
    for name, word in words.items():
        sentence = sentence.replace(f"{{{name}}}", word)
    return re.compile(".*?".join(map(re.escape, sentence.split("…"))))


def template(group: str, *, scheduler: str = SCHEDULER, requests: Json | None = None, **spec: object) -> Json:
    """The pod template of a workload whose pods name the group (none if empty)."""
    pod = member("", group, scheduler=scheduler, requests=requests)
    metadata = {"labels": pod["metadata"]["labels"] | {"made": "yes"}, "annotations": {}}
    return {"metadata": metadata, "spec": pod["spec"] | spec}


def job(name: str, number: int, made: Json, *, labels: Json | None = None, **spec: object) -> Json:
    """A Job with `number` pods in parallel."""
    made["spec"]["restartPolicy"] = "Never"
    asked = {"parallelism": number, "completions": number, "template": made}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": asked | spec}


def stateful_set(name: str, number: int, made: Json, *, policy: str = "Parallel") -> Json:
    """A StatefulSet with `number` replicas."""
    made["metadata"]["labels"]["set"] = name
    asked = {
        "replicas": number,
        "serviceName": name,
        "podManagementPolicy": policy,
        "selector": {"matchLabels": {"set": name}},
        "template": made,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": asked}


def marked(made: Json, *, labels: Json | None = None, annotations: Json | None = None) -> Json:
    made["metadata"]["labels"] |= labels or {}
    made["metadata"]["annotations"] |= annotations or {}
    return made


def annotated(workload: Json, annotations: Json) -> Json:
    workload["metadata"]["annotations"] = annotations
    return workload


def claim(name: str, storage_class: str) -> Json:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def volume(claim: str) -> Json:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def devices(template: str) -> Json:
    return {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}]}


def quota(name: str, resource: str, most: str = "0") -> Json:
    spec = {"hard": {f"requests.{resource}": most}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}


def group_and_job(
    name: str,
    number: int = 2,
    *,
    minimum: int = 0,
    made: Json | None = None,
    labels: Json | None = None,
    **spec: object,
) -> list[Json]:
    workload = job(name, number, made or template(name), labels=labels, **spec)
    return [pod_group(name, min_member=minimum or number), workload]
