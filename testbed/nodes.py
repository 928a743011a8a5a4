"""Nodes for a control plane without kubelets: created complete, kept Ready by KWOK."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from testbed.api import Api, Json

NOT_READY = "node.kubernetes.io/not-ready"
_READY_WITHIN_S = 30


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    extra: Mapping[str, str] | None = None,
    ready: bool = False,
) -> Json:
    """A Node manifest.

    ``extra`` are further resources such as ``{"nvidia.com/gpu": "8"}``. ``ready`` is for a control plane without
    KWOK, which otherwise makes nodes ready.
    """
    resources = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi"} | dict(extra or {})
    ready_condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Testbed",
        "message": "declared ready by the testbed",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | dict(labels or {})},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [ready_condition] if ready else [],
        },
    }


def wait_until_ready(api: Api, name: str) -> None:
    """Waits until the initial taint of a node is gone; schedulers ignore the node until then.

    Raises:
        TimeoutError: it is still there after 30 s.
    """
    deadline = time.monotonic() + _READY_WITHIN_S
    while any(taint["key"] == NOT_READY for taint in api.get(f"/api/v1/nodes/{name}")["spec"].get("taints", [])):
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"node {name} still has the taint {NOT_READY} after {_READY_WITHIN_S} s: "
                f"see the logs of kwok and kube-controller-manager"
            )
        time.sleep(0.05)


def delete_all(api: Api) -> None:
    """Deletes every node and waits until they are gone.

    Raises:
        TimeoutError: some are left after 30 s.
    """
    deadline = time.monotonic() + _READY_WITHIN_S
    api.delete("/api/v1/nodes", grace_s=0)
    while left := [item["metadata"]["name"] for item in api.get("/api/v1/nodes")["items"]]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"nodes {', '.join(left)} are still there {_READY_WITHIN_S} s after their deletion")
        time.sleep(0.05)
