"""Objects as the API server lists them, for tests of the soak's checks: only the fields that a check reads."""

from __future__ import annotations

from typing import Any

from testbed.nodes import node as node_manifest
from testbed.workloads import member, pod_group
from tests.faults.objects import GROUP_LABEL, Json

CREATED = "2026-01-01T00:00:00Z"
OWNED = {"ownerReferences": [{"kind": "ReplicaSet", "name": "made", "uid": "owner", "controller": True}]}


def a_node(name: str = "n1", *, cpu: str = "4", **spec: Any) -> Json:
    """A Ready node."""
    found = node_manifest(name, cpu=cpu, ready=True)
    found["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": CREATED}
    found["spec"] |= spec
    return found


def a_pod(
    name: str,
    group: str = "",
    *,
    node: str = "",
    cpu: str = "1",
    phase: str = "",
    role: str = "",
    uid: str = "",
    meta: Json | None = None,
    **spec: Any,
) -> Json:
    """A pod of 1 CPU, owned by a controller unless `meta` says otherwise; Running if it has a node."""
    labels = {"gangsched.io/role": role} if role else None
    found = member(name, group, requests={"cpu": cpu}, labels=labels, **spec)
    found["metadata"] |= {"namespace": "default", "uid": uid or f"uid-{name}", "creationTimestamp": CREATED}
    found["metadata"] |= OWNED if meta is None else meta
    if node:
        found["spec"]["nodeName"] = node
    found["status"] = {"phase": phase or ("Running" if node else "Pending")}
    return found


def a_job(name: str, *, completions: int, again: str = "") -> Json:
    """A Job whose pods are created all at once and use its name as their group.

    `again` distinguishes a Job that was created again.
    """
    meta = {"name": name, "namespace": "default", "uid": f"uid-job-{name}{again}", "labels": {GROUP_LABEL: name}}
    spec = {"parallelism": completions, "completions": completions}
    return {"metadata": meta, "spec": spec, "status": {}}


def made_by(job: Json) -> Json:
    """The owner metadata of the Job's pods."""
    owner = {"kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"], "controller": True}
    return {"ownerReferences": [owner]}


def members(group: str, *nodes: str, **fields: Any) -> list[Json]:
    """Members of a group, one for each node; an empty node name makes a waiting member."""
    return [a_pod(f"{group}-{number}", group, node=node, **fields) for number, node in enumerate(nodes)]


def a_driver(app: str, *, executors: int, **fields: Any) -> Json:
    """A Spark driver of 1 CPU that wants `executors` executors of 1 CPU and 1Gi."""
    found = a_pod(f"{app}-driver", **({"meta": {}} | fields))
    found["metadata"]["labels"] |= {"spark-app-id": app, "spark-role": "driver"}
    said = {"spark-executor-count": str(executors), "spark-executor-cpu": "1", "spark-executor-mem": "1Gi"}
    found["metadata"]["annotations"] |= said
    return found


def an_executor(app: str, number: int, **fields: Any) -> Json:
    """An executor of 1 CPU, created by its driver."""
    found = a_pod(f"{app}-exec-{number}", **fields)
    found["metadata"]["labels"] |= {"spark-app-id": app, "spark-role": "executor"}
    return found


def a_group(name: str, *, min_member: int, degraded: str = "", uid: str = "", **fields: Any) -> Json:
    """A PodGroup; status fields are given as such (`phase="Running"`), those of the spec in `spec`.

    With `degraded` it is shown as Degraded for that reason.
    """
    found = pod_group(name, min_member=min_member, **fields.pop("spec", {}))
    found["metadata"] |= {"namespace": "default", "uid": uid or f"uid-group-{name}", "creationTimestamp": CREATED}
    conditions = [_condition("Scheduled", fields.pop("reason", "Said"), true="scheduledTime" in fields)]
    if degraded:
        conditions.append(_condition("Degraded", degraded, true=True))
    found["status"] = {"conditions": conditions, **fields} if fields else {}
    return found


def _condition(type_: str, reason: str, *, true: bool) -> Json:
    return {
        "type": type_,
        "status": str(true),
        "reason": reason,
        "message": "as said",
        "lastTransitionTime": CREATED,
        "observedGeneration": 1,
    }
