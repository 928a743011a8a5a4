"""Workloads, other systems' groups and pods as an API server serves them, in the namespace `default`, and as read."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gangsched.config.settings import Settings
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube import wire
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.reading.pod_values import pod_value
from gangsched.kube.workloads.workload_table import chosen

WORKLOADS = chosen(Settings())
KINDS = WORKLOADS.kinds


def served(name: str, spec: object, *, status: object = None, **metadata: Any) -> bytes:
    """An object of this name, with the UID `uid-NAME` unless `uid` is given; without a status unless there is one."""
    body = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"} | metadata, "spec": spec}
    return json.dumps(body if status is None else {**body, "status": status}).encode()


def served_workload(kind: str, name: str, spec: object, **others: Any) -> ForeignGroup:
    return KINDS[kind].read(served(name, spec, **others))[1]


def served_group(dialect: str, name: str, spec: object, **others: Any) -> ForeignGroup:
    return DEFAULT.kinds[dialect].read(dialect, served(name, spec, **others))[1]


def served_pod(name: str, spec: object, **others: Any) -> Pod:
    return pod_value(msgspec.json.decode(served(name, spec, **others), type=wire.Pod), DEFAULT, WORKLOADS)
