"""A group that preempts others on the real API server, and what becomes of those."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from testbed.control_plane import ControlPlane
from tests.integration.cluster import Cluster, Json, end_terminating

CLASS = "urgent"
HIGH = {"priorityClassName": CLASS}
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@contextmanager
def urgent_class(control_plane: ControlPlane) -> Iterator[None]:
    """The PriorityClass of groups that preempt others exists inside the context."""
    control_plane.api.post(_CLASSES, {"metadata": {"name": CLASS}, "value": 1000})
    yield
    control_plane.api.delete(f"{_CLASSES}/{CLASS}")


def add_urgent(cluster: Cluster, size: int, *, name: str = "high", **fields: Any) -> None:
    """A group of this size that preempts others; `fields` are of its pods."""
    cluster.add_group(name, min_member=size, **HIGH)
    cluster.add_pods(name, size, **fields)


def until_replaced(cluster: Cluster, group: str, size: int, *, within_s: float = 20) -> None:
    def bound() -> bool:
        end_terminating(cluster.api, cluster.namespace)
        return len(cluster.bound(group)) == size

    cluster.until(bound, within_s=within_s, what=f"{group} has the nodes of others")


def alive(cluster: Cluster, group: str) -> list[Json]:
    return [pod for pod in cluster.pods(group) if "deletionTimestamp" not in pod["metadata"]]


def uids(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def evictions(cluster: Cluster) -> list[tuple[str, int]]:
    """The names of pods that were to be evicted, each with the answer, in the order of the answers."""
    return [
        (entry["objectRef"]["name"], entry["responseStatus"]["code"])
        for entry in cluster.control_plane.audited(naming=cluster.namespace)
        if entry.get("objectRef", {}).get("subresource") == "eviction"
        and entry["objectRef"]["namespace"] == cluster.namespace
        and "dryRun" not in (entry.get("requestObject", {}).get("deleteOptions") or {})
    ]


def budget_path(cluster: Cluster, name: str = "") -> str:
    return f"/apis/policy/v1/namespaces/{cluster.namespace}/poddisruptionbudgets" + (f"/{name}" if name else "")


def add_budget(cluster: Cluster, name: str, labels: dict[str, str], **spec: object) -> None:
    """A PodDisruptionBudget, which its controller has seen."""
    cluster.api.post(
        budget_path(cluster), {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, **spec}}
    )
    cluster.until(lambda: "observedGeneration" in cluster.api.get(budget_path(cluster, name))["status"])


def until_allowed(cluster: Cluster, budget: str, number: int) -> None:
    """Wait until the budget allows this many evictions."""
    cluster.until(
        lambda: cluster.api.get(budget_path(cluster, budget))["status"].get("disruptionsAllowed") == number,
        what=f"the budget allows {number}",
    )
