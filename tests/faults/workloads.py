"""Workloads whose controllers create members, as a user would write them."""

from __future__ import annotations

from tests.faults.objects import Json

WORKLOADS = {
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
}
"""The collection path of each kind."""
_IGNORE_DISRUPTION = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}


def workload(
    kind: str, name: str, pod: Json, *, count: int, counts_disruption: bool = False, gives_up: bool = False
) -> Json:
    """A workload with `count` pods like this one; a Job may count an eviction as a failure.

    With `gives_up` a Job never tries an index again whose pod has failed.
    """
    meta = {key: value for key, value in pod["metadata"].items() if key != "name"}
    template: Json = {"metadata": meta | {"labels": meta["labels"] | {"app": name}}, "spec": dict(pod["spec"])}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        spec: Json = {
            "parallelism": count,
            "completions": count,
            "completionMode": "Indexed",
            "template": template,
            **({"backoffLimitPerIndex": 0} if gives_up else {"backoffLimit": 1000}),
        }
        if not counts_disruption:
            spec["podFailurePolicy"] = _IGNORE_DISRUPTION
    else:
        spec = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template}
    if kind == "StatefulSet":
        spec |= {"podManagementPolicy": "Parallel", "serviceName": name}
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}
